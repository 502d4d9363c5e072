bin_PROGRAMS += bench/all_reduce_perf
bench_all_reduce_perf_SOURCES = bench/all_reduce_perf.c \
	bench/flags.c bench/flags.h bench/perf.c bench/perf.h
bench_all_reduce_perf_LDADD = $(RG_PROGRAM_LDADD)
dist_man1_MANS += bench/all_reduce_perf.1

bin_PROGRAMS += bench/recovery_perf
bench_recovery_perf_SOURCES = bench/recovery.h \
	bench/recovery_figures.c bench/recovery_member.c \
	bench/recovery_perf.c bench/recovery_play.c
bench_recovery_perf_LDADD = $(RG_PROGRAM_LDADD)

TESTS += bench/test/perf.t
EXTRA_DIST += bench/test/perf.t

bin_PROGRAMS += bench/frame_perf
bench_frame_perf_SOURCES = bench/frame_perf.c
bench_frame_perf_LDADD = $(RG_PROGRAM_LDADD)
dist_man1_MANS += bench/frame_perf.1
