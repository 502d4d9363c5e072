/* Gather by flows: every block straight to the root (pattern/exchange.h). */
#include "algos/gather/gather.h"
#include "algos/pattern/exchange.h"

RG_FN int gather_direct(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = gather_blocks(call);

    (void)op;
    return rg_exchange_run(call, &blocks);
}

RG_ALGO_LAYOUT(gather_direct)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(gather_direct, "direct", RG_COLL_gather, 0, 1, RG_FLOW_MAX_RANKS,
           RG_FLOW_AREA);
