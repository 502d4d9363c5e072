/* Broadcast by LL128: the block straight from the root to every rank
 * (pattern/exchange_ll128.h). */
#include "algos/broadcast/broadcast.h"
#include "algos/pattern/exchange_ll128.h"

RG_FN int broadcast_direct_ll128(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = broadcast_blocks(call);

    (void)op;
    return rg_exchange_ll128_run(call, &blocks);
}

RG_ALGO_LAYOUT(broadcast_direct_ll128)
{
    return rg_exchange_ll128_layout(shape, 1, limits_out);
}

RG_ALGO_IN(broadcast_direct_ll128, "direct_ll128", RG_COLL_broadcast,
           RG_ALGO_DIRECT, 1, RG_MAX_SLOTS, RG_LL128_AREA);
