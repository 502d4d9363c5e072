/*
 * Exit codes and the count of what passed, shared by all programs.
 *
 * A verdict is built the same way on every rank: cases are decided on merged
 * figures, so counts agree; the exit code is reduced over ranks at the end.
 */
#ifndef RG_HARNESS_VERDICT_H
#define RG_HARNESS_VERDICT_H

#include "runtime/regroup.h"

enum rg_exit {
    RG_EXIT_PASS = 0,
    RG_EXIT_WRONG = 1,       /* wrong data */
    RG_EXIT_USAGE = 2,       /* usage or configuration */
    RG_EXIT_ENVIRONMENT = 3, /* no device, no peer library, no runtime */
    RG_EXIT_TIMEOUT = 4,     /* a deadline or a hang */
    RG_EXIT_GATE = 5,        /* a performance gate missed */
    RG_EXIT_RECOVERY = 6,    /* recovery failed */
    RG_EXIT_SKIP = 77        /* nothing could run */
};

struct rg_verdict {
    long passed;
    long failed;
    long skipped;
    int code; /* the worst rg_exit so far */
};

/* One case. A failed one brings its code; a skipped one leaves the code. */
void rg_verdict_pass(struct rg_verdict *verdict);
void rg_verdict_fail(struct rg_verdict *verdict, enum rg_exit code);
void rg_verdict_skip(struct rg_verdict *verdict);
/* A measured row: wrong elements, and a ratio that is to be `least` (0: any).
 */
void rg_verdict_row(struct rg_verdict *verdict, int64_t wrong, double ratio,
                    double least);

/*
 * The worse of two codes. From bad to good: wrong data, timeout, recovery,
 * environment, usage, gate, skip, pass.
 */
int rg_exit_worse(int a, int b);
/* The exit code that a runtime status stands for. */
int rg_exit_of_status(int status);
/* Whether the runtime has said, for all ranks, what is wrong: a setting or a
 * selection. */
int rg_status_is_told(int status);

/*
 * The code to exit with: the worst one; nothing run is a failure
 * (ENVIRONMENT), everything skipped is SKIP.
 */
int rg_verdict_exit(const struct rg_verdict *verdict);
/*
 * Reduces over all ranks: the largest counts and the worst code. Collective.
 * RG_OK or the status of the exchange.
 */
int rg_verdict_reduce(struct rg_verdict *verdict, struct rg_comm *comm);

#endif
