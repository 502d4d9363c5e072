/* The all-gather algorithms in table order, and what their files share. */
#ifndef RG_ALL_GATHER_H
#define RG_ALL_GATHER_H

#include "runtime/algo.h"
#include "algos/pattern/blocks.h"

#define RG_ALL_GATHER_LIST(X)                                                  \
    X(direct_ll)                                                               \
    X(ring)                                                                    \
    X(hierarchical)                                                            \
    X(direct)

#undef RG_ENTRIES
#define RG_ENTRIES rg_all_gather_entries
extern const struct rg_entries rg_all_gather_entries;

/* Every other rank gets the input, and each block comes from its slot. */
RG_FN struct rg_blocks all_gather_blocks(const struct rg_call *call)
{
    struct rg_blocks blocks = {0};

    blocks.out = call->send;
    blocks.in = call->recv;
    blocks.in_step = call->count;
    blocks.bytes = call->count;
    blocks.to = blocks.from = RG_TO_ALL;
    return blocks;
}

#endif
