/*
 * Reduce entries of one data type (-DRG_ENTRY_DTYPE), for the device of the
 * compiler at hand.
 */
#include "algos/reduce/reduce_chain.c"
#include "algos/reduce/reduce_direct.c"
#include "algos/reduce/reduce_direct_ll.c"

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
#include "runtime/device/frame.h"
