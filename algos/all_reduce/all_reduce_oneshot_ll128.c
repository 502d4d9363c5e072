/*
 * All-reduce, one shot by LL128: each batch of the input goes to every other
 * rank, and each batch of every rank is reduced in rank order
 * (pattern/fold_ll128.h).                         (n-1) x 16/15 x bytes
 *
 * Neither barrier nor flag nor credit, and nearly all of a line is payload:
 * best where both latency and bandwidth count. In place, a batch is sent before
 * the same worker writes its result.
 */
#include "algos/all_reduce/all_reduce.h"
#include "algos/pattern/fold_ll128.h"

RG_FN int all_reduce_oneshot_ll128(struct rg_call *call, enum rg_op op)
{
    struct rg_fold fold;

    fold.send = call->send;
    fold.step = 0;
    fold.count = call->count;
    fold.maker = RG_TO_ALL;
    return rg_fold_ll128_run(call, op, &fold);
}

RG_ALGO_LAYOUT(all_reduce_oneshot_ll128)
{
    return rg_exchange_ll128_layout(shape, 1, limits_out);
}

RG_ALGO_IN(all_reduce_oneshot_ll128, "oneshot_ll128", RG_COLL_all_reduce,
           RG_ALGO_DIRECT, 1, RG_MAX_SLOTS, RG_LL128_AREA);
