/*
 * Reduce-scatter entries of one data type (-DRG_ENTRY_DTYPE), for the device of
 * the compiler at hand.
 */
#define RG_INCLUDE_reduce_scatter
#include "algos/registry.h"
#include "algos/reduce_scatter/reduce_scatter.h"
#include "algos/pattern/small.h"

/* One rank. */
RG_FN void reduce_scatter_alone(struct rg_call *call, enum rg_op op)
{
    const struct rg_fold fold = reduce_scatter_fold(call);

    (void)op;
    rg_fold_alone(call, &fold);
}

/* Small blocks. */
RG_FN int reduce_scatter_small(struct rg_call *call, enum rg_op op,
                               const struct rg_hot *hot)
{
    return rg_small_run(call, RG_SMALL_FOLD, op, hot);
}

RG_FN int reduce_scatter_try(const struct rg_launch *launch,
                             struct rg_team *team, enum rg_op op,
                             uint64_t *claim_out)
{
    return rg_small_try(launch, team, RG_SMALL_FOLD, op, RG_HOT_reduce_scatter,
                        RG_RUN(RG_COLL_reduce_scatter, 0, 1, 0), claim_out);
}

#define RG_FRAME         reduce_scatter
#define RG_FRAME_LIST(X) RG_REDUCE_SCATTER_LIST(X)
#define RG_FRAME_REDUCES 1
#define RG_FRAME_SMALL   1
#include "runtime/device/frame.h"
