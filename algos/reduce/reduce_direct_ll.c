/* Reduce by packets, straight to whoever makes it (pattern/fold_ll.h). */
#include "algos/reduce/reduce.h"
#include "algos/pattern/fold_ll.h"

RG_FN int reduce_direct_ll(struct rg_call *call, enum rg_op op)
{
    const struct rg_fold fold = reduce_fold(call);

    return rg_fold_ll_run(call, op, &fold);
}

RG_ALGO_LAYOUT(reduce_direct_ll)
{
    return rg_exchange_ll_layout(shape, 1, limits_out);
}

RG_ALGO_IN(reduce_direct_ll, "direct_ll", RG_COLL_reduce, RG_ALGO_DIRECT, 1,
           RG_MAX_SLOTS, RG_EXCHANGE_LL_AREA);
