/*
 * Reduce-scatter entries of one data type (-DRG_ENTRY_DTYPE), for the device of
 * the compiler at hand.
 */
#include "algos/reduce_scatter/reduce_scatter_direct.c"
#include "algos/reduce_scatter/reduce_scatter_direct_ll.c"
#include "algos/reduce_scatter/reduce_scatter_hierarchical.c"
#include "algos/reduce_scatter/reduce_scatter_ring.c"

/* One rank. */
RG_FN void reduce_scatter_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_fold fold = reduce_scatter_fold(call);

    (void)op;
    rg_fold_alone(call, &fold);
}

#define RG_FRAME         reduce_scatter
#define RG_FRAME_LIST(X) RG_REDUCE_SCATTER_LIST(X)
#define RG_FRAME_REDUCES 1
#include "runtime/device/frame.h"
