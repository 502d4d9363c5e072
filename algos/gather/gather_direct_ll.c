/* Gather by packets: every block straight to the root (pattern/exchange_ll.h).
 */
#include "algos/gather/gather.h"
#include "algos/pattern/exchange_ll.h"

RG_FN int gather_direct_ll(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = gather_blocks(call);

    (void)op;
    return rg_exchange_ll_run(call, &blocks);
}

RG_ALGO_LAYOUT(gather_direct_ll)
{
    return rg_exchange_ll_layout(shape, (uint64_t)shape->capacity, limits_out);
}

RG_ALGO_IN(gather_direct_ll, "direct_ll", RG_COLL_gather, RG_ALGO_DIRECT, 1,
           RG_MAX_SLOTS, RG_EXCHANGE_LL_AREA);
