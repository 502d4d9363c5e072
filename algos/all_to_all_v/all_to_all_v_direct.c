/* All-to-all-v by flows: every pair's bytes straight to their rank
 * (pattern/exchange.h). */
#include "algos/all_to_all_v/all_to_all_v.h"
#include "algos/pattern/exchange.h"

RG_FN int all_to_all_v_direct(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = all_to_all_v_blocks(call);

    (void)op;
    return rg_exchange_run(call, &blocks);
}

RG_ALGO_LAYOUT(all_to_all_v_direct)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(all_to_all_v_direct, "direct", RG_COLL_all_to_all_v, 0, 1,
           RG_FLOW_MAX_RANKS, RG_FLOW_AREA);
