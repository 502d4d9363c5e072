/*
 * The flags of the <collective>_perf programs; names as in nccl-tests where
 * that has them.
 */
#ifndef RG_BENCH_FLAGS_H
#define RG_BENCH_FLAGS_H

#include <stddef.h>
#include <stdint.h>

#include "harness/launch.h"
#include "harness/measure.h"
#include "harness/options.h"

struct perf_options {
    uint64_t min_bytes, max_bytes;
    uint64_t step_bytes; /* 0: multiply */
    int factor;          /* 0: add, or 2 */
    int iterations;      /* samples at most */
    int warmup;
    int check;       /* every so many blocks, 0: never */
    uint32_t dtypes; /* bit per enum rg_dtype */
    uint32_t ops;    /* bit per enum rg_op */
    const char *root_text;
    int root;      /* -1: each in turn */
    uint64_t seed; /* of an all_to_all_v's counts */
    int blocking;
    int graph;
    int merge; /* enum rg_merge */
    int timeout_s;
    const char *json;
    uint64_t cache_cutoff;
    int cache;   /* enum rg_cache */
    int device;  /* enum rg_device_kind */
    int backend; /* enum rg_backend; UNSET: auto */
    const char *algo;
    const char *policy;
    uint32_t compare; /* bit per name of RG_PEER_NAMES */
    int mode;         /* enum perf_mode */
    struct rg_launch_options launch;
    const char *fault;
    double min_ratio; /* 0: no gate */
    int guidelines;
    int max_violations; /* -1: no gate */
    const char *limit;
    double max_seconds; /* for each figure */
};

enum perf_mode { PERF_AUTO = 0, PERF_THROUGHPUT, PERF_LATENCY };

/*
 * Defaults, flags, and what they or the collective contradict. `program` names
 * the program in messages. Afterwards `mode` is not AUTO and `factor` or
 * `step_bytes` is set.
 */
enum rg_options_result perf_options_parse(const char *program,
                                          const char *summary,
                                          enum rg_collective collective,
                                          int argc, char **argv,
                                          struct perf_options *options_out);

/* The size after `bytes` in the sweep; above max_bytes: the sweep is over. */
uint64_t perf_options_next(const struct perf_options *options, uint64_t bytes);

#endif
