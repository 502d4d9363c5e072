/*
 * The body of every <collective>_perf program: flags, sweep, rows, verdict.
 * A program brings its collective and one call of it.
 */
#ifndef RG_BENCH_PERF_H
#define RG_BENCH_PERF_H

#include <stddef.h>

#include "harness/session.h"
#include "runtime/regroup.h"

struct perf_collective {
    const char *program;
    const char *summary; /* one sentence for --help */
    enum rg_collective collective;
    /* Launches one invocation on the session's stream; arg is the session. */
    int (*run)(void *arg, const void *send, void *recv, size_t count,
               enum rg_dtype dtype, enum rg_op op);
};

/* Returns the process's exit code. */
int perf_main(const struct perf_collective *collective, int argc, char **argv);

#endif
