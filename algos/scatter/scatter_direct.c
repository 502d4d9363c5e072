/* Scatter by flows: every block straight from the root (pattern/exchange.h). */
#include "algos/scatter/scatter.h"
#include "algos/pattern/exchange.h"

RG_FN int scatter_direct(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = scatter_blocks(call);

    (void)op;
    return rg_exchange_run(call, &blocks);
}

RG_ALGO_LAYOUT(scatter_direct)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(scatter_direct, "direct", RG_COLL_scatter, 0, 1, RG_FLOW_MAX_RANKS,
           RG_FLOW_AREA);
