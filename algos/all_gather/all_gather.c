/*
 * All-gather entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of
 * the compiler at hand.
 */
#include "algos/all_gather/all_gather_direct.c"
#include "algos/all_gather/all_gather_direct_ll.c"
#include "algos/all_gather/all_gather_hierarchical.c"
#include "algos/all_gather/all_gather_ring.c"

/* One rank. */
RG_FN void all_gather_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = all_gather_blocks(call);

    (void)op;
    rg_blocks_alone(call, &blocks);
}

#define RG_FRAME         all_gather
#define RG_FRAME_LIST(X) RG_ALL_GATHER_LIST(X)
#define RG_FRAME_REDUCES 0
#include "runtime/device/frame.h"
