/*
 * Barrier, dissemination: in round j each rank tells the one 2^j behind it that
 * it has come so far, and waits for the one 2^j ahead. After the rounds it has
 * heard, through others, of all.
 * Source: Hensgen, Finkel and Manber, "Two algorithms for barrier
 * synchronization", IJPP 17(1), 1988.
 *
 *   area: uses, word[round]   one word a line
 */
#include "algos/barrier/barrier.h"
#include "runtime/device/transfer.h"

enum { RG_DISSEMINATION_ROUNDS = 12 };

static_assert(1 << RG_DISSEMINATION_ROUNDS >= RG_MAX_SLOTS, "enough rounds");

RG_FN int barrier_dissemination_round(struct rg_call *call, int j, uint64_t use)
{
    const int n = (int)call->plan->nranks, rank = (int)call->plan->rank;
    const uint64_t word = call->workspace + (uint64_t)(1 + j) * RG_LINE;

    call->step = (uint64_t)j;
    if (rg_signal(call, (rank + (1 << j)) % n, 0, word, RG_SIGNAL_SET, use))
        return 1;
    return rg_wait(call, (rank + n - (1 << j)) % n, word, use);
}

RG_FN int barrier_dissemination(struct rg_call *call, enum rg_op op)
{
    uint64_t *uses = (uint64_t *)(void *)rg_inbox(call, call->workspace);
    uint64_t use;

    (void)op;
    if (call->team.index != 0)
        return 0;
    use = rg_load_relaxed(uses) + 1;
    RG_ROLLED
    for (int j = 0; 1 << j < (int)call->plan->nranks; j++)
        if (barrier_dissemination_round(call, j, use))
            return 1;
    if (call->team.thread == 0)
        rg_store_relaxed(uses, use);
    return 0;
}

RG_ALGO_LAYOUT(barrier_dissemination)
{
    limits_out->max_bytes = UINT64_MAX;
    limits_out->max_chunk = 0;
    limits_out->head = (1 + RG_DISSEMINATION_ROUNDS) * RG_LINE;
    return limits_out->head <= shape->budget ? limits_out->head : 0;
}

RG_ALGO(barrier_dissemination, "dissemination", RG_COLL_barrier, 0, 1,
        RG_MAX_SLOTS);
