/* Broadcast: each byte enters a node once (pattern/tree.h). */
#include "algos/broadcast/broadcast.h"
#include "algos/pattern/tree.h"

RG_FN int broadcast_hierarchical(struct rg_call *call, enum rg_op op)
{
    (void)op;
    return rg_tree_run(call, RG_TREE_NODES);
}

RG_ALGO_LAYOUT(broadcast_hierarchical)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(broadcast_hierarchical, "hierarchical", RG_COLL_broadcast, 0, 1,
           RG_FLOW_MAX_RANKS, RG_FLOW_AREA);
