/* What the reduce algorithms share. */
#ifndef RG_REDUCE_H
#define RG_REDUCE_H

#include "algos/registry.h"
#include "runtime/algo.h"
#include "algos/pattern/fold.h"

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
