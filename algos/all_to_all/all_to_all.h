/* The all-to-all algorithms in table order, and what their files share. */
#ifndef RG_ALL_TO_ALL_H
#define RG_ALL_TO_ALL_H

#include "runtime/algo.h"
#include "algos/pattern/blocks.h"

#define RG_ALL_TO_ALL_LIST(X)                                                  \
    X(direct_ll)                                                               \
    X(direct)

#undef RG_ENTRIES
#define RG_ENTRIES rg_all_to_all_entries
extern const struct rg_entries rg_all_to_all_entries;

/* A block for each slot, and one from each. */
RG_FN struct rg_blocks all_to_all_blocks(const struct rg_call *call)
{
    struct rg_blocks blocks = {0};

    blocks.out = call->send;
    blocks.in = call->recv;
    blocks.out_step = blocks.in_step = call->count;
    blocks.bytes = call->count;
    blocks.to = blocks.from = RG_TO_ALL;
    return blocks;
}

#endif
