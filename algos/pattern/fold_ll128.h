/*
 * Reductions by LL128: every rank sends its part of a result straight to the
 * rank that makes it, which reduces each batch in rank order. See
 * pattern/exchange_ll128.h.
 */
#ifndef RG_PATTERN_FOLD_LL128_H
#define RG_PATTERN_FOLD_LL128_H

#include "algos/pattern/exchange_ll128.h"
#include "algos/pattern/fold.h"

/* The own part of what a rank makes. */
RG_FN struct rg_ll128_stream rg_fold_ll128_own(struct rg_call *call,
                                               const struct rg_fold *fold)
{
    const int rank = (int)call->plan->rank;
    struct rg_ll128_stream own = {0, 0, 0, 0, 0, rank};

    own.from = rg_fold_own(call, fold, rank, 0);
    own.to = call->recv;
    own.bytes = fold->count * sizeof(rg_elem);
    return own;
}

/* All below: 0, or 1 for failed. */
RG_FN int rg_fold_ll128_make_by(const struct rg_exchange_ll128 *s,
                                enum rg_op op,
                                const struct rg_ll128_stream *own, uint64_t b)
{
    const uint64_t at = b * RG_LL128_PAYLOAD;
    struct rg_ll128_accum acc;
    struct rg_ll128 mine, batch;

    rg_ll128_load(&s->worker.team, &mine, own->from + at,
                  rg_ll128_left(own, b));
    RG_ROLLED
    for (int r = 0; r < s->nranks; r++) {
        if (r == s->rank)
            batch = mine;
        else if (rg_exchange_ll128_take(s, r, b, &batch))
            return 1;
        rg_ll128_combine(op, &acc, &batch, r == 0);
    }
    batch = rg_ll128_finish(op, &acc, s->nranks);
    rg_ll128_store(&s->worker.team, &batch, own->to + at,
                   rg_ll128_left(own, b));
    return 0;
}

/* Batch b of the own result. */
RG_FN_SHARED int rg_fold_ll128_make(const struct rg_exchange_ll128 *s,
                                    enum rg_op op,
                                    const struct rg_ll128_stream *own,
                                    uint64_t b)
{
    switch (op) {
#define RG_X(name)                                                             \
    case RG_##name:                                                            \
        return rg_fold_ll128_make_by(s, RG_##name, own, b);
        RG_BUILT_LIST(RG_X)
#undef RG_X
    default:
        /* Not built for the type: the dispatch has given it to another. */
        RG_TRAP();
    }
}

/* It makes nothing: an empty batch from each other rank. */
RG_FN int rg_fold_ll128_hear(const struct rg_exchange_ll128 *s)
{
    struct rg_ll128 batch;

    RG_ROLLED
    for (int p = 0; p < s->nranks; p++)
        if (p != s->rank && rg_exchange_ll128_take(s, p, 0, &batch))
            return 1;
    return 0;
}

/* The part for the i-th rank above; with the last one, the own result, one
 * batch behind. */
RG_FN int rg_fold_ll128_round(struct rg_call *call, enum rg_op op,
                              const struct rg_fold *fold,
                              const struct rg_exchange_ll128 *s,
                              const struct rg_ll128_stream *own, int i)
{
    const int p = (s->rank + i) % s->nranks;
    const int goes = rg_blocks_go(fold->maker, p);
    const int makes = i == s->nranks - 1 && rg_blocks_go(fold->maker, s->rank);
    struct rg_ll128_stream writes;

    if (rg_exchange_ll128_to(call, s, p, rg_fold_own(call, fold, p, 0),
                             own->bytes, goes, &writes))
        return 1;
    RG_ROLLED
    for (uint64_t b = s->begin; b < s->batches + s->step; b += s->step) {
        rg_exchange_ll128_write(s, &writes, b);
        if (makes && b >= s->step && b - s->step < s->batches &&
            rg_fold_ll128_make(s, op, own, b - s->step))
            return 1;
    }
    return 0;
}

RG_FN int rg_fold_ll128_run(struct rg_call *call, enum rg_op op,
                            const struct rg_fold *fold)
{
    const struct rg_exchange_ll128 s =
        rg_exchange_ll128_open(call, fold->count * sizeof(rg_elem));
    const struct rg_ll128_stream own = rg_fold_ll128_own(call, fold);

    RG_ROLLED
    for (int i = 1; i < s.nranks; i++)
        if (rg_fold_ll128_round(call, op, fold, &s, &own, i))
            return 1;
    return !rg_blocks_go(fold->maker, s.rank) && s.begin == 0 &&
           rg_fold_ll128_hear(&s);
}

#endif
