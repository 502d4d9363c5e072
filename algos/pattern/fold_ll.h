/*
 * Reductions by packets: every rank sends its part of a result straight to the
 * rank that makes it, which reduces each unit in rank order. See
 * pattern/exchange_ll.h.
 */
#ifndef RG_PATTERN_FOLD_LL_H
#define RG_PATTERN_FOLD_LL_H

#include "algos/pattern/exchange_ll.h"
#include "algos/pattern/fold.h"

/* Unit i of every rank. 0, or 1 for failed. */
RG_FN int rg_fold_ll_unit(struct rg_call *call, enum rg_op op,
                          const struct rg_fold *fold,
                          const struct rg_exchange_ll *s, uint64_t i)
{
    rg_accum acc[RG_UNIT_ELEMS] = {0};
    uint64_t word;

    RG_ROLLED
    for (int r = 0; r < s->nranks; r++) {
        if (r == s->rank)
            word = rg_unit_load(rg_fold_own(call, fold, r, 0), i, fold->count);
        else if (rg_packets_wait(call, &s->packets,
                                 rg_exchange_ll_slot(s, r, i), r, &word))
            return 1;
        rg_unit_combine(op, acc, word, r == 0);
    }
    rg_unit_store(call->recv, i, fold->count,
                  rg_unit_finish(op, acc, s->nranks));
    return 0;
}

/* The units of the own result; or an empty one from each other rank. */
RG_FN int rg_fold_ll_make(struct rg_call *call, enum rg_op op,
                          const struct rg_fold *fold,
                          const struct rg_exchange_ll *s)
{
    const int makes = rg_blocks_go(fold->maker, s->rank);

    RG_ROLLED
    for (uint64_t i = s->begin; makes && i < s->end; i += s->step)
        if (rg_fold_ll_unit(call, op, fold, s, i))
            return 1;
    RG_ROLLED
    for (int p = 0; !makes && p < s->nranks; p++)
        if (p != s->rank && rg_exchange_ll_keep(call, s, p, 1, 0, 0))
            return 1;
    return 0;
}

RG_FN int rg_fold_ll_run(struct rg_call *call, enum rg_op op,
                         const struct rg_fold *fold)
{
    const struct rg_exchange_ll s = rg_exchange_ll_open(call, fold->count);

    RG_ROLLED
    for (int i = 1; i < s.nranks; i++) {
        const int p = (s.rank + i) % s.nranks;
        const int goes = rg_blocks_go(fold->maker, p);

        if (rg_exchange_ll_send(call, &s, p, rg_exchange_ll_units(&s, goes),
                                rg_fold_own(call, fold, p, 0),
                                goes ? fold->count : 0))
            return 1;
    }
    if (rg_fold_ll_make(call, op, fold, &s))
        return 1;
    rg_packets_end(call, &s.packets);
    return 0;
}

#endif
