/* The all-to-all-v algorithms in table order, and what their files share. */
#ifndef RG_ALL_TO_ALL_V_H
#define RG_ALL_TO_ALL_V_H

#include "runtime/algo.h"
#include "algos/pattern/blocks.h"

#define RG_ALL_TO_ALL_V_LIST(X)                                                \
    X(direct_ll)                                                               \
    X(direct)

#undef RG_ENTRIES
#define RG_ENTRIES rg_all_to_all_v_entries
extern const struct rg_entries rg_all_to_all_v_entries;

/* As many bytes as the layout says for each pair, and where it says. */
RG_FN struct rg_blocks all_to_all_v_blocks(const struct rg_call *call)
{
    const struct rg_launch *launch = call->launch;
    struct rg_blocks blocks = {0};

    blocks.out = call->send;
    blocks.in = call->recv;
    blocks.bytes = call->count;
    blocks.to = blocks.from = RG_TO_ALL;
    blocks.pairs = launch->layout;
    blocks.unit = launch->unit;
    blocks.room[0] = launch->room[0] * launch->unit;
    blocks.room[1] = launch->room[1] * launch->unit;
    blocks.slots = (int)launch->slots;
    return blocks;
}

#endif
