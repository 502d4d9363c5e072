/*
 * Scatter entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of the
 * compiler at hand.
 */
#include "algos/scatter/scatter_direct.c"
#include "algos/scatter/scatter_direct_ll.c"

/* One rank. */
RG_FN void scatter_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = scatter_blocks(call);

    (void)op;
    rg_blocks_alone(call, &blocks);
}

#define RG_FRAME         scatter
#define RG_FRAME_LIST(X) RG_SCATTER_LIST(X)
#define RG_FRAME_REDUCES 0
#include "runtime/device/frame.h"
