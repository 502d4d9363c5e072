/*
 * Barrier entries (-DRG_ENTRY_DTYPE=u8: data is bytes), for the device of the
 * compiler at hand.
 */
#define RG_INCLUDE_barrier
#include "algos/registry.h"
#include "algos/barrier/barrier.h"

/* One rank. */
RG_FN void barrier_alone(struct rg_call *call, enum rg_op op)
{
    (void)call;
    (void)op;
}

#define RG_FRAME         barrier
#define RG_FRAME_LIST(X) RG_BARRIER_LIST(X)
#define RG_FRAME_REDUCES 0
#define RG_FRAME_SMALL   0
#include "runtime/device/frame.h"
