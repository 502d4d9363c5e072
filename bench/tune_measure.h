/*
 * Measuring what a tuning asks for, on all ranks. Rank 0 decides and gives
 * orders; the others follow them until the last one. Everything travels over
 * the control plane.
 */
#ifndef RG_BENCH_TUNE_MEASURE_H
#define RG_BENCH_TUNE_MEASURE_H

#include "bench/tune_search.h"
#include "harness/session.h"

struct tune_subject {
    const char *program;
    enum rg_device_kind device;
    enum rg_collective collective;
    enum rg_dtype dtype;
    enum rg_op op;
    int graph;  /* invocations in a graph that is replayed, 0: eager */
    int warmup; /* invocations before each case */
    int timeout_s;
    uint64_t max_bytes; /* of all cases */
    uint32_t compare;   /* bit per name of RG_PEER_NAMES */
};

struct tune_ranks;

/* Collective. What failed has been reported. */
int tune_ranks_create(const struct tune_subject *subject,
                      const struct rg_job *job, struct tune_ranks **ranks_out);
void tune_ranks_destroy(struct tune_ranks *ranks); /* accepts null */

const struct rg_session *tune_ranks_session(const struct tune_ranks *ranks);
/* All candidates that can run here; the same at every rank. */
const struct tune_space *tune_ranks_space(const struct tune_ranks *ranks);

/* Rank 0: tune_meter's measure, with the ranks as its argument. */
int tune_ranks_measure(void *ranks, const struct tune_order *order,
                       struct tune_figure *figures_out);
/* Rank 0: the others' last order, with the code that all exit with; after a
 * case that failed nobody listens, and nothing is done. */
int tune_ranks_end(struct tune_ranks *ranks, int code);
/* The others: RG_OK with rank 0's code, or why it ended before. */
int tune_ranks_follow(struct tune_ranks *ranks, int *code_out);

#endif
