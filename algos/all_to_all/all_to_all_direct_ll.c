/* All-to-all by packets: every block straight to its rank
 * (pattern/exchange_ll.h). */
#include "algos/all_to_all/all_to_all.h"
#include "algos/pattern/exchange_ll.h"

RG_FN int all_to_all_direct_ll(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = all_to_all_blocks(call);

    (void)op;
    return rg_exchange_ll_run(call, &blocks);
}

RG_ALGO_LAYOUT(all_to_all_direct_ll)
{
    return rg_exchange_ll_layout(shape, (uint64_t)shape->capacity, limits_out);
}

RG_ALGO_IN(all_to_all_direct_ll, "direct_ll", RG_COLL_all_to_all,
           RG_ALGO_DIRECT, 1, RG_MAX_SLOTS, RG_EXCHANGE_LL_AREA);
