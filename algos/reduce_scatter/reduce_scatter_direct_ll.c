/* Reduce-scatter by packets, straight to whoever makes it (pattern/fold_ll.h).
 */
#include "algos/reduce_scatter/reduce_scatter.h"
#include "algos/pattern/fold_ll.h"

RG_FN int reduce_scatter_direct_ll(struct rg_call *call, enum rg_op op)
{
    const struct rg_fold fold = reduce_scatter_fold(call);

    return rg_fold_ll_run(call, op, &fold);
}

RG_ALGO_LAYOUT(reduce_scatter_direct_ll)
{
    return rg_exchange_ll_layout(shape, (uint64_t)shape->capacity, limits_out);
}

RG_ALGO_IN(reduce_scatter_direct_ll, "direct_ll", RG_COLL_reduce_scatter,
           RG_ALGO_DIRECT, 1, RG_MAX_SLOTS, RG_EXCHANGE_LL_AREA);
