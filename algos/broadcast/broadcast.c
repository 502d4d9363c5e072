/*
 * Broadcast entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of the
 * compiler at hand.
 */
#include "algos/broadcast/broadcast_chain.c"
#include "algos/broadcast/broadcast_direct.c"
#include "algos/broadcast/broadcast_direct_ll.c"
#include "algos/broadcast/broadcast_hierarchical.c"

/* One rank. */
RG_FN void broadcast_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = broadcast_blocks(call);

    (void)op;
    rg_blocks_alone(call, &blocks);
}

#define RG_FRAME         broadcast
#define RG_FRAME_LIST(X) RG_BROADCAST_LIST(X)
#define RG_FRAME_REDUCES 0
#include "runtime/device/frame.h"
