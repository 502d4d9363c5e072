/* Reduce by flows, straight to whoever makes it (pattern/fold.h). */
#include "algos/reduce/reduce.h"

RG_FN int reduce_direct(struct rg_call *call, enum rg_op op)
{
    const struct rg_fold fold = reduce_fold(call);

    return rg_fold_run(call, op, &fold);
}

RG_ALGO_LAYOUT(reduce_direct)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(reduce_direct, "direct", RG_COLL_reduce, 0, 1, RG_FLOW_MAX_RANKS,
           RG_FOLD_AREA);
