/*
 * Gather entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of the
 * compiler at hand.
 */
#define RG_INCLUDE_gather
#include "algos/registry.h"
#include "algos/gather/gather.h"

/* One rank. */
RG_FN void gather_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = gather_blocks(call);

    (void)op;
    rg_blocks_alone(call, &blocks);
}

#define RG_FRAME         gather
#define RG_FRAME_LIST(X) RG_GATHER_LIST(X)
#define RG_FRAME_REDUCES 0
#define RG_FRAME_SMALL   0
#include "runtime/device/frame.h"
