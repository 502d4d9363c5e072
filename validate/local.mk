bin_PROGRAMS += validate/rg_validate
validate_rg_validate_SOURCES = \
	validate/cases_replay.c \
	validate/cases_results.c \
	validate/oracle.c validate/oracle.h \
	validate/pairwise.c validate/pairwise.h \
	validate/rg_validate.c
validate_rg_validate_LDADD = $(RG_PROGRAM_LDADD)
