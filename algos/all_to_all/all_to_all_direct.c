/* All-to-all by flows: every block straight to its rank (pattern/exchange.h).
 */
#include "algos/all_to_all/all_to_all.h"
#include "algos/pattern/exchange.h"

RG_FN int all_to_all_direct(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = all_to_all_blocks(call);

    (void)op;
    return rg_exchange_run(call, &blocks);
}

RG_ALGO_LAYOUT(all_to_all_direct)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(all_to_all_direct, "direct", RG_COLL_all_to_all, 0, 1,
           RG_FLOW_MAX_RANKS, RG_FLOW_AREA);
