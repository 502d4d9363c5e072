/*
 * All-to-all entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of
 * the compiler at hand.
 */
#include "algos/all_to_all/all_to_all_direct.c"
#include "algos/all_to_all/all_to_all_direct_ll.c"

/* One rank. */
RG_FN void all_to_all_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = all_to_all_blocks(call);

    (void)op;
    rg_blocks_alone(call, &blocks);
}

#define RG_FRAME         all_to_all
#define RG_FRAME_LIST(X) RG_ALL_TO_ALL_LIST(X)
#define RG_FRAME_REDUCES 0
#include "runtime/device/frame.h"
