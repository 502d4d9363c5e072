/*
 * Barrier entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of the
 * compiler at hand.
 */
#include "algos/barrier/barrier_direct.c"
#include "algos/barrier/barrier_dissemination.c"

/* One rank. */
RG_FN void barrier_alone(struct rg_call *call, enum rg_op op)
{
    (void)call;
    (void)op;
}

#define RG_FRAME         barrier
#define RG_FRAME_LIST(X) RG_BARRIER_LIST(X)
#define RG_FRAME_REDUCES 0
#include "runtime/device/frame.h"
