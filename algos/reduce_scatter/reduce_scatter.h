/* The reduce-scatter algorithms in table order, and what their files share. */
#ifndef RG_REDUCE_SCATTER_H
#define RG_REDUCE_SCATTER_H

#include "runtime/algo.h"
#include "algos/pattern/fold.h"

#define RG_REDUCE_SCATTER_LIST(X)                                              \
    X(direct_ll)                                                               \
    X(ring)                                                                    \
    X(hierarchical)                                                            \
    X(direct)

#undef RG_ENTRIES
#define RG_ENTRIES rg_reduce_scatter_entries
extern const struct rg_entries rg_reduce_scatter_entries;

/* Each rank makes the block of its own slot. */
RG_FN struct rg_fold reduce_scatter_fold(const struct rg_call *call)
{
    struct rg_fold fold;

    fold.send = call->send;
    fold.step = call->count * sizeof(rg_elem);
    fold.count = call->count;
    fold.maker = RG_TO_ALL;
    return fold;
}

#endif
