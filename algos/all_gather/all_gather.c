/*
 * All-gather entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of
 * the compiler at hand.
 */
#define RG_INCLUDE_all_gather
#include "algos/registry.h"
#include "algos/all_gather/all_gather.h"
#include "algos/pattern/small.h"

/* One rank. */
RG_FN void all_gather_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = all_gather_blocks(call);

    (void)op;
    rg_blocks_alone(call, &blocks);
}

/* Small blocks. */
RG_FN int all_gather_small(struct rg_call *call, enum rg_op op,
                           const struct rg_hot *hot)
{
    return rg_small_run(call, RG_SMALL_GATHER, op, hot);
}

RG_FN int all_gather_try(const struct rg_launch *launch, struct rg_team *team,
                         enum rg_op op, uint64_t *claim_out)
{
    return rg_small_try(launch, team, RG_SMALL_GATHER, op, RG_HOT_all_gather,
                        RG_RUN(RG_COLL_all_gather, 0, 1, 0), claim_out);
}

#define RG_FRAME         all_gather
#define RG_FRAME_LIST(X) RG_ALL_GATHER_LIST(X)
#define RG_FRAME_REDUCES 0
#define RG_FRAME_SMALL   1
#include "runtime/device/frame.h"
