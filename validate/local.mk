bin_PROGRAMS += validate/rg_validate
validate_rg_validate_SOURCES = \
	validate/cases_plant.c \
	validate/cases_replay.c \
	validate/cases_results.c \
	validate/oracle.c validate/oracle.h \
	validate/pairwise.c validate/pairwise.h \
	validate/rg_validate.c \
	validate/suite.c validate/suite.h \
	validate/trial.c validate/trial.h
validate_rg_validate_LDADD = $(RG_PROGRAM_LDADD)

rg_unit_tests += validate/test/test_oracle validate/test/test_pairwise
validate_test_test_oracle_SOURCES = validate/test/test_oracle.c \
	validate/oracle.c
validate_test_test_oracle_LDADD = $(CMOCKA_LIBS) -lm
validate_test_test_pairwise_SOURCES = validate/test/test_pairwise.c \
	validate/pairwise.c
validate_test_test_pairwise_LDADD = $(CMOCKA_LIBS)
