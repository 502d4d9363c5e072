/*
 * Reduce entries of one data type (-DRG_ENTRY_DTYPE), for the device of the
 * compiler at hand.
 */
#define RG_INCLUDE_reduce
#include "algos/registry.h"
#include "algos/reduce/reduce.h"

/* One rank. */
RG_FN void reduce_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_fold fold = reduce_fold(call);

    (void)op;
    rg_fold_alone(call, &fold);
}

#define RG_FRAME         reduce
#define RG_FRAME_LIST(X) RG_REDUCE_LIST(X)
#define RG_FRAME_REDUCES 1
#define RG_FRAME_SMALL   0
#include "runtime/device/frame.h"
