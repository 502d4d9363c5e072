/* The reduce algorithms in table order, and what their files share. */
#ifndef RG_REDUCE_H
#define RG_REDUCE_H

#include "runtime/algo.h"
#include "algos/pattern/fold.h"

#define RG_REDUCE_LIST(X)                                                      \
    X(direct_ll)                                                               \
    X(chain)                                                                   \
    X(direct)

#undef RG_ENTRIES
#define RG_ENTRIES rg_reduce_entries
extern const struct rg_entries rg_reduce_entries;

/* The root makes it all. */
RG_FN struct rg_fold reduce_fold(const struct rg_call *call)
{
    struct rg_fold fold;

    fold.send = call->send;
    fold.step = 0;
    fold.count = call->count;
    fold.maker = call->root;
    return fold;
}

#endif
