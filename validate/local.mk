bin_PROGRAMS += validate/rg_validate
validate_rg_validate_SOURCES = \
	validate/blocks.c validate/blocks.h \
	validate/cases_messages.c \
	validate/cases_plant.c \
	validate/cases_policy.c \
	validate/cases_recovery.c \
	validate/cases_replay.c \
	validate/cases_results.c validate/cases_route.c \
	validate/cases_selection.c \
	validate/cases_traffic.c \
	validate/findings.c validate/findings.h \
	validate/messages.h validate/messages_worker.c \
	validate/oracle.c validate/oracle.h \
	validate/pairwise.c validate/pairwise.h \
	validate/recovery.h validate/recovery_member.h \
	validate/recovery_census.c validate/recovery_faults.c \
	validate/recovery_judge.c validate/recovery_step.c \
	validate/recovery_worker.c \
	validate/rg_validate.c \
	validate/selection.h \
	validate/selection_worker.c \
	validate/suite.c validate/suite.h \
	validate/trial.c validate/trial.h validate/work.h
validate_rg_validate_LDADD = $(RG_PROGRAM_LDADD)
dist_man1_MANS += validate/rg_validate.1

rg_unit_tests += validate/test/test_oracle validate/test/test_pairwise
validate_test_test_oracle_SOURCES = validate/test/test_oracle.c \
	validate/oracle.c
validate_test_test_oracle_LDADD = $(CMOCKA_LIBS) -lm
validate_test_test_pairwise_SOURCES = validate/test/test_pairwise.c \
	validate/pairwise.c
validate_test_test_pairwise_LDADD = $(CMOCKA_LIBS)
TESTS += validate/test/validate.t validate/test/recovery.t
EXTRA_DIST += validate/test/validate.t validate/test/recovery.t

# The full product with every rank count, ranks as threads and as processes,
# and the proof that planted bugs are found. Takes hours.
RG_LONG_RANKS = 1 2 3 4 5 6 7 8
check-long: validate/rg_validate
	for n in $(RG_LONG_RANKS); do \
	    validate/rg_validate --full --launch local --ranks $$n || exit 1; \
	    RG_BUILD_DIR=$(abs_top_builddir) RG_RUN_TIMEOUT=36000 \
	        $(top_srcdir)/scripts/run --survive -n $$n validate/rg_validate \
	        --case 'results.*,replay.*,selection.*,recovery.*,messages.*' || exit 1; \
	    for off in 0 1; do \
	        RG_BUILD_DIR=$(abs_top_builddir) RG_DISABLE_P2P_ROUTE=$$off \
	            $(top_srcdir)/scripts/run --survive -n $$n \
	            validate/rg_validate --case 'route_conformance.*' || exit 1; \
	    done; \
	done
	$(top_srcdir)/scripts/plant-check
	$(top_srcdir)/algos/test/example.t
.PHONY: check-long
