/* All-gather by flows: every block straight to every rank (pattern/exchange.h).
 */
#include "algos/all_gather/all_gather.h"
#include "algos/pattern/exchange.h"

RG_FN int all_gather_direct(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = all_gather_blocks(call);

    (void)op;
    return rg_exchange_run(call, &blocks);
}

RG_ALGO_LAYOUT(all_gather_direct)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(all_gather_direct, "direct", RG_COLL_all_gather, 0, 1,
           RG_FLOW_MAX_RANKS, RG_FLOW_AREA);
