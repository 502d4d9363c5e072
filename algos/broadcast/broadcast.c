/*
 * Broadcast entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of the
 * compiler at hand.
 */
#define RG_INCLUDE_broadcast
#include "algos/registry.h"
#include "algos/broadcast/broadcast.h"
#include "algos/pattern/small.h"

/* One rank. */
RG_FN void broadcast_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = broadcast_blocks(call);

    (void)op;
    rg_blocks_alone(call, &blocks);
}

/* Small blocks. */
RG_FN int broadcast_small(struct rg_call *call, enum rg_op op,
                          const struct rg_hot *hot)
{
    return rg_small_run(call, RG_SMALL_SPREAD, op, hot);
}

RG_FN int broadcast_try(const struct rg_launch *launch, struct rg_team *team,
                        enum rg_op op, uint64_t *claim_out)
{
    return rg_small_try(launch, team, RG_SMALL_SPREAD, op, RG_HOT_broadcast,
                        RG_RUN(RG_COLL_broadcast, 0, 1, 0), claim_out);
}

#define RG_FRAME         broadcast
#define RG_FRAME_LIST(X) RG_BROADCAST_LIST(X)
#define RG_FRAME_REDUCES 0
#define RG_FRAME_SMALL   1
#include "runtime/device/frame.h"
