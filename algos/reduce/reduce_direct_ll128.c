/* Reduce by LL128, straight to whoever makes it (pattern/fold_ll128.h). */
#include "algos/reduce/reduce.h"
#include "algos/pattern/fold_ll128.h"

RG_FN int reduce_direct_ll128(struct rg_call *call, enum rg_op op)
{
    const struct rg_fold fold = reduce_fold(call);

    return rg_fold_ll128_run(call, op, &fold);
}

RG_ALGO_LAYOUT(reduce_direct_ll128)
{
    return rg_exchange_ll128_layout(shape, 1, limits_out);
}

RG_ALGO_IN(reduce_direct_ll128, "direct_ll128", RG_COLL_reduce, RG_ALGO_DIRECT,
           1, RG_MAX_SLOTS, RG_LL128_AREA);
