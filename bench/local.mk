# One program a collective, all with one body.
bench_perf_body = bench/flags.c bench/flags.h \
	bench/guideline.c bench/guideline.h \
	bench/guideline_rows.c bench/guideline_rows.h \
	bench/perf.c bench/perf.h
bin_PROGRAMS += bench/all_reduce_perf
bench_all_reduce_perf_SOURCES = bench/all_reduce_perf.c $(bench_perf_body)
bench_all_reduce_perf_LDADD = $(RG_PROGRAM_LDADD)
bin_PROGRAMS += bench/all_gather_perf
bench_all_gather_perf_SOURCES = bench/all_gather_perf.c $(bench_perf_body)
bench_all_gather_perf_LDADD = $(RG_PROGRAM_LDADD)
bin_PROGRAMS += bench/reduce_scatter_perf
bench_reduce_scatter_perf_SOURCES = bench/reduce_scatter_perf.c $(bench_perf_body)
bench_reduce_scatter_perf_LDADD = $(RG_PROGRAM_LDADD)
bin_PROGRAMS += bench/broadcast_perf
bench_broadcast_perf_SOURCES = bench/broadcast_perf.c $(bench_perf_body)
bench_broadcast_perf_LDADD = $(RG_PROGRAM_LDADD)
bin_PROGRAMS += bench/reduce_perf
bench_reduce_perf_SOURCES = bench/reduce_perf.c $(bench_perf_body)
bench_reduce_perf_LDADD = $(RG_PROGRAM_LDADD)
bin_PROGRAMS += bench/all_to_all_perf
bench_all_to_all_perf_SOURCES = bench/all_to_all_perf.c $(bench_perf_body)
bench_all_to_all_perf_LDADD = $(RG_PROGRAM_LDADD)
bin_PROGRAMS += bench/all_to_all_v_perf
bench_all_to_all_v_perf_SOURCES = bench/all_to_all_v_perf.c $(bench_perf_body)
bench_all_to_all_v_perf_LDADD = $(RG_PROGRAM_LDADD)
bin_PROGRAMS += bench/gather_perf
bench_gather_perf_SOURCES = bench/gather_perf.c $(bench_perf_body)
bench_gather_perf_LDADD = $(RG_PROGRAM_LDADD)
bin_PROGRAMS += bench/scatter_perf
bench_scatter_perf_SOURCES = bench/scatter_perf.c $(bench_perf_body)
bench_scatter_perf_LDADD = $(RG_PROGRAM_LDADD)
bin_PROGRAMS += bench/sendrecv_perf
bench_sendrecv_perf_SOURCES = bench/sendrecv_perf.c $(bench_perf_body)
bench_sendrecv_perf_LDADD = $(RG_PROGRAM_LDADD)
bin_PROGRAMS += bench/barrier_perf
bench_barrier_perf_SOURCES = bench/barrier_perf.c $(bench_perf_body)
bench_barrier_perf_LDADD = $(RG_PROGRAM_LDADD)

# The pages of the others say what differs; all_reduce_perf.1 has the rest.
RG_PERF_PAGES = bench/all_gather_perf.1 \
	bench/reduce_scatter_perf.1 \
	bench/broadcast_perf.1 \
	bench/reduce_perf.1 \
	bench/all_to_all_perf.1 \
	bench/all_to_all_v_perf.1 \
	bench/gather_perf.1 \
	bench/scatter_perf.1 \
	bench/sendrecv_perf.1 \
	bench/barrier_perf.1
dist_man1_MANS += bench/all_reduce_perf.1
nodist_man1_MANS = $(RG_PERF_PAGES)
$(RG_PERF_PAGES): bench/perf.1.in bench/local.mk
	$(AM_V_GEN)$(MKDIR_P) $(@D); \
	collective=`basename $@ _perf.1`; \
	sed -e "s/@COLLECTIVE@/$$collective/g" \
	    -e "s/@TITLE@/`echo $${collective}_perf | tr a-z A-Z`/" \
	    $(srcdir)/bench/perf.1.in >$@
CLEANFILES += $(RG_PERF_PAGES)
EXTRA_DIST += bench/perf.1.in

bin_PROGRAMS += bench/recovery_perf
bench_recovery_perf_SOURCES = bench/recovery.h \
	bench/recovery_figures.c bench/recovery_member.c \
	bench/recovery_perf.c bench/recovery_play.c bench/recovery_turn.c
bench_recovery_perf_LDADD = $(RG_PROGRAM_LDADD)
dist_man1_MANS += bench/recovery_perf.1
rg_unit_tests += bench/test/test_recovery
bench_test_test_recovery_SOURCES = bench/test/test_recovery.c \
	bench/recovery_figures.c bench/recovery_turn.c
bench_test_test_recovery_LDADD = $(CMOCKA_LIBS) -lm
TESTS += bench/test/recovery.t
EXTRA_DIST += bench/test/recovery.t

TESTS += bench/test/perf.t
EXTRA_DIST += bench/test/perf.t

bin_PROGRAMS += bench/frame_perf
bench_frame_perf_SOURCES = bench/frame_perf.c
bench_frame_perf_LDADD = $(RG_PROGRAM_LDADD)
dist_man1_MANS += bench/frame_perf.1

bin_PROGRAMS += bench/transfer_perf
bench_transfer_perf_SOURCES = bench/transfer_perf.c
bench_transfer_perf_LDADD = $(RG_PROGRAM_LDADD)
dist_man1_MANS += bench/transfer_perf.1
TESTS += bench/test/transfer.t
EXTRA_DIST += bench/test/transfer.t

bin_PROGRAMS += bench/rg_tune
bench_rg_tune_SOURCES = bench/rg_tune.c \
	bench/tune_export.c bench/tune_export.h \
	bench/tune_measure.c bench/tune_measure.h \
	bench/tune_merge.c bench/tune_merge.h \
	bench/tune_policy.c bench/tune_policy.h \
	bench/tune_report.c bench/tune_report.h \
	bench/tune_tools.c bench/tune_tools.h $(RG_TUNE_PURE)
bench_rg_tune_LDADD = $(RG_PROGRAM_LDADD)
dist_man1_MANS += bench/rg_tune.1
TESTS += bench/test/tune.t
EXTRA_DIST += bench/test/tune.t

bench/tune_tools.o: AM_CPPFLAGS += \
	-DRG_TUNE_SCRIPTS='"$(abs_top_srcdir)/scripts"'

# Which commit a table comes from; written anew when it is another one.
bench/rg_tune.o: bench/tune_commit
bench/rg_tune.o: AM_CPPFLAGS += -DTUNE_COMMIT="\"`cat bench/tune_commit`\""
CLEANFILES += bench/tune_commit
bench/tune_commit: rg-always
	@$(MKDIR_P) $(@D); \
	commit=`cd $(srcdir) && git describe --always --dirty --abbrev=12 \
		--exclude='*' 2>/dev/null` || commit=unknown; \
	echo "$$commit" >$@.tmp; \
	if cmp -s $@.tmp $@; then rm $@.tmp; else mv $@.tmp $@; fi
.PHONY: rg-always

RG_TUNE_PURE = bench/tune_bounds.c \
	bench/tune_choose.c bench/tune_choose.h \
	bench/tune_look.c \
	bench/tune_raw.c bench/tune_raw.h \
	bench/tune_search.c bench/tune_search.h \
	bench/tune_space.c bench/tune_space.h \
	bench/tune_state.c bench/tune_state.h \
	bench/tune_stats.c bench/tune_stats.h
rg_unit_tests += bench/test/test_guideline
bench_test_test_guideline_SOURCES = bench/test/test_guideline.c \
	bench/guideline.c bench/guideline.h
bench_test_test_guideline_LDADD = $(CMOCKA_LIBS) -lm

rg_unit_tests += bench/test/test_tune
bench_test_test_tune_SOURCES = bench/test/test_tune.c $(RG_TUNE_PURE)
bench_test_test_tune_LDADD = $(JANSSON_LIBS) $(CMOCKA_LIBS) -lm
