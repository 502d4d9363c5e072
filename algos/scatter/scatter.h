/* The scatter algorithms in table order, and what their files share. */
#ifndef RG_SCATTER_H
#define RG_SCATTER_H

#include "runtime/algo.h"
#include "algos/pattern/blocks.h"

#define RG_SCATTER_LIST(X)                                                     \
    X(direct_ll)                                                               \
    X(direct)

#undef RG_ENTRIES
#define RG_ENTRIES rg_scatter_entries
extern const struct rg_entries rg_scatter_entries;

/* The root has a block for each slot. */
RG_FN struct rg_blocks scatter_blocks(const struct rg_call *call)
{
    struct rg_blocks blocks = {0};

    blocks.out = call->send;
    blocks.in = call->recv;
    blocks.out_step = call->count;
    blocks.bytes = call->count;
    blocks.to = call->root == (int)call->plan->rank ? RG_TO_ALL : RG_TO_NOBODY;
    blocks.from = call->root;
    return blocks;
}

#endif
