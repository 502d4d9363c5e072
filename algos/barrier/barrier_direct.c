/*
 * Barrier, direct: every rank sets its word at every other one to the number of
 * barriers there have been, and waits for theirs.
 *
 *   area: uses, word[rank]   one word a line
 */
#include "algos/barrier/barrier.h"
#include "runtime/device/transfer.h"

RG_FN int barrier_direct(struct rg_call *call, enum rg_op op)
{
    const int n = (int)call->plan->nranks, rank = (int)call->plan->rank;
    const uint64_t words = call->workspace + RG_LINE;
    uint64_t *uses = (uint64_t *)(void *)rg_inbox(call, call->workspace);
    uint64_t use;

    (void)op;
    if (call->team.index != 0)
        return 0;
    use = rg_load_relaxed(uses) + 1;
    rg_signal_all(call, 0, words + (uint64_t)rank * RG_LINE, RG_SIGNAL_SET,
                  use);
    if (rg_wait_all(call, words, RG_LINE, n, rank, use))
        return 1;
    if (call->team.thread == 0)
        rg_store_relaxed(uses, use);
    return 0;
}

RG_ALGO_LAYOUT(barrier_direct)
{
    limits_out->max_bytes = UINT64_MAX;
    limits_out->max_chunk = 0;
    limits_out->head = (1 + (uint64_t)shape->capacity) * RG_LINE;
    return limits_out->head <= shape->budget ? limits_out->head : 0;
}

RG_ALGO(barrier_direct, "direct", RG_COLL_barrier, 0, 1, RG_MAX_SLOTS);
