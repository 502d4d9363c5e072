/*
 * All-to-all-v entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of
 * the compiler at hand.
 */
#include "algos/all_to_all_v/all_to_all_v_direct.c"
#include "algos/all_to_all_v/all_to_all_v_direct_ll.c"

/* One rank. */
RG_FN void all_to_all_v_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_blocks blocks = all_to_all_v_blocks(call);

    (void)op;
    rg_blocks_alone(call, &blocks);
}

#define RG_FRAME         all_to_all_v
#define RG_FRAME_LIST(X) RG_ALL_TO_ALL_V_LIST(X)
#define RG_FRAME_REDUCES 0
#include "runtime/device/frame.h"
