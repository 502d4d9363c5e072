/* Reduce-scatter by LL128, straight to whoever makes it (pattern/fold_ll128.h).
 */
#include "algos/reduce_scatter/reduce_scatter.h"
#include "algos/pattern/fold_ll128.h"

RG_FN int reduce_scatter_direct_ll128(struct rg_call *call, enum rg_op op)
{
    const struct rg_fold fold = reduce_scatter_fold(call);

    return rg_fold_ll128_run(call, op, &fold);
}

RG_ALGO_LAYOUT(reduce_scatter_direct_ll128)
{
    return rg_exchange_ll128_layout(shape, (uint64_t)shape->capacity,
                                    limits_out);
}

RG_ALGO_IN(reduce_scatter_direct_ll128, "direct_ll128", RG_COLL_reduce_scatter,
           RG_ALGO_DIRECT, 1, RG_MAX_SLOTS, RG_LL128_AREA);
