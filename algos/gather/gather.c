/*
 * Gather entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of the
 * compiler at hand.
 */
#include "algos/gather/gather_direct.c"
#include "algos/gather/gather_direct_ll.c"

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
#include "runtime/device/frame.h"
