/* Broadcast by packets: the block straight from the root to every rank
 * (pattern/exchange_ll.h). */
#include "algos/broadcast/broadcast.h"
#include "algos/pattern/exchange_ll.h"

RG_FN int broadcast_direct_ll(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = broadcast_blocks(call);

    (void)op;
    return rg_exchange_ll_run(call, &blocks);
}

RG_ALGO_LAYOUT(broadcast_direct_ll)
{
    return rg_exchange_ll_layout(shape, 1, limits_out);
}

RG_ALGO_IN(broadcast_direct_ll, "direct_ll", RG_COLL_broadcast, RG_ALGO_DIRECT,
           1, RG_MAX_SLOTS, RG_EXCHANGE_LL_AREA);
