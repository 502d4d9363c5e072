/* All-gather by LL128: every block straight to every rank
 * (pattern/exchange_ll128.h). */
#include "algos/all_gather/all_gather.h"
#include "algos/pattern/exchange_ll128.h"

RG_FN int all_gather_direct_ll128(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = all_gather_blocks(call);

    (void)op;
    return rg_exchange_ll128_run(call, &blocks);
}

RG_ALGO_LAYOUT(all_gather_direct_ll128)
{
    return rg_exchange_ll128_layout(shape, (uint64_t)shape->capacity,
                                    limits_out);
}

RG_ALGO_IN(all_gather_direct_ll128, "direct_ll128", RG_COLL_all_gather,
           RG_ALGO_DIRECT, 1, RG_MAX_SLOTS, RG_LL128_AREA);
