/* The broadcast algorithms in table order, and what their files share. */
#ifndef RG_BROADCAST_H
#define RG_BROADCAST_H

#include "runtime/algo.h"
#include "algos/pattern/blocks.h"

#define RG_BROADCAST_LIST(X)                                                   \
    X(direct_ll)                                                               \
    X(chain)                                                                   \
    X(hierarchical)                                                            \
    X(direct)

#undef RG_ENTRIES
#define RG_ENTRIES rg_broadcast_entries
extern const struct rg_entries rg_broadcast_entries;

/* The root gives its input to all, itself too; the others give nothing. */
RG_FN struct rg_blocks broadcast_blocks(const struct rg_call *call)
{
    struct rg_blocks blocks = {0};

    blocks.out = call->send;
    blocks.in = call->recv;
    blocks.bytes = call->count;
    blocks.to = call->root == (int)call->plan->rank ? RG_TO_ALL : RG_TO_NOBODY;
    blocks.from = call->root;
    return blocks;
}

#endif
