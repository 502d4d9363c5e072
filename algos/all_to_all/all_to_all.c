/*
 * All-to-all entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of
 * the compiler at hand.
 */
#define RG_INCLUDE_all_to_all
#include "algos/registry.h"
#include "algos/all_to_all/all_to_all.h"
#include "algos/pattern/small.h"

/* One rank. */
RG_FN void all_to_all_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = all_to_all_blocks(call);

    (void)op;
    rg_blocks_alone(call, &blocks);
}

/* Small blocks. */
RG_FN int all_to_all_small(struct rg_call *call, enum rg_op op,
                           const struct rg_hot *hot)
{
    return rg_small_run(call, RG_SMALL_EXCHANGE, op, hot);
}

RG_FN int all_to_all_try(const struct rg_launch *launch, struct rg_team *team,
                         enum rg_op op, uint64_t *claim_out)
{
    return rg_small_try(launch, team, RG_SMALL_EXCHANGE, op, RG_HOT_all_to_all,
                        RG_RUN(RG_COLL_all_to_all, 0, 1, 0), claim_out);
}

#define RG_FRAME         all_to_all
#define RG_FRAME_LIST(X) RG_ALL_TO_ALL_LIST(X)
#define RG_FRAME_REDUCES 0
#define RG_FRAME_SMALL   1
#include "runtime/device/frame.h"
