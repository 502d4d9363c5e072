/* The gather algorithms in table order, and what their files share. */
#ifndef RG_GATHER_H
#define RG_GATHER_H

#include "runtime/algo.h"
#include "algos/pattern/blocks.h"

#define RG_GATHER_LIST(X)                                                      \
    X(direct_ll)                                                               \
    X(direct)

#undef RG_ENTRIES
#define RG_ENTRIES rg_gather_entries
extern const struct rg_entries rg_gather_entries;

/* The root gets a block from each slot. */
RG_FN struct rg_blocks gather_blocks(const struct rg_call *call)
{
    struct rg_blocks blocks = {0};

    blocks.out = call->send;
    blocks.in = call->recv;
    blocks.in_step = call->count;
    blocks.bytes = call->count;
    blocks.to = call->root;
    blocks.from =
        call->root == (int)call->plan->rank ? RG_TO_ALL : RG_TO_NOBODY;
    return blocks;
}

#endif
