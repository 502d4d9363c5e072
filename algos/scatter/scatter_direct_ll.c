/* Scatter by packets: every block straight from the root
 * (pattern/exchange_ll.h). */
#include "algos/scatter/scatter.h"
#include "algos/pattern/exchange_ll.h"

RG_FN int scatter_direct_ll(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = scatter_blocks(call);

    (void)op;
    return rg_exchange_ll_run(call, &blocks);
}

RG_ALGO_LAYOUT(scatter_direct_ll)
{
    return rg_exchange_ll_layout(shape, (uint64_t)shape->capacity, limits_out);
}

RG_ALGO_IN(scatter_direct_ll, "direct_ll", RG_COLL_scatter, RG_ALGO_DIRECT, 1,
           RG_MAX_SLOTS, RG_EXCHANGE_LL_AREA);
