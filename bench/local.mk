bin_PROGRAMS += bench/all_reduce_perf
bench_all_reduce_perf_SOURCES = bench/all_reduce_perf.c \
	bench/flags.c bench/flags.h bench/perf.c bench/perf.h
bench_all_reduce_perf_LDADD = $(RG_PROGRAM_LDADD)
dist_man1_MANS += bench/all_reduce_perf.1
TESTS += bench/test/perf.t
EXTRA_DIST += bench/test/perf.t
