/* All-to-all by LL128: every block straight to its rank
 * (pattern/exchange_ll128.h). */
#include "algos/all_to_all/all_to_all.h"
#include "algos/pattern/exchange_ll128.h"

RG_FN int all_to_all_direct_ll128(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = all_to_all_blocks(call);

    (void)op;
    return rg_exchange_ll128_run(call, &blocks);
}

RG_ALGO_LAYOUT(all_to_all_direct_ll128)
{
    return rg_exchange_ll128_layout(shape, (uint64_t)shape->capacity,
                                    limits_out);
}

RG_ALGO_IN(all_to_all_direct_ll128, "direct_ll128", RG_COLL_all_to_all,
           RG_ALGO_DIRECT, 1, RG_MAX_SLOTS, RG_LL128_AREA);
