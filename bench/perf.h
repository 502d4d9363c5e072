/* The body of every <collective>_perf program: flags, sweep, rows, verdict. */
#ifndef RG_BENCH_PERF_H
#define RG_BENCH_PERF_H

#include "runtime/regroup.h"

/* Returns the process's exit code. */
int perf_main(const char *program, enum rg_collective collective, int argc,
              char **argv);

#endif
