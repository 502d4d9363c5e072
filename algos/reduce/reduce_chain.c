/*
 * Reduce, chain: the rank behind the root begins, each adds its part to what it
 * has got and sends it to the next, and the root keeps it. A pipeline of
 * chunks, in which a rank sends the buffer once.
 */
#include "algos/pattern/ring.h"
#include "algos/reduce/reduce.h"

/* Elements [at, at + n) of the buffer, message k. 0, or 1 for failed. */
RG_FN int reduce_chain_step(struct rg_call *call, enum rg_op op,
                            struct rg_flow *flow, uint64_t at, uint64_t n,
                            uint64_t k)
{
    const int next = rg_ring_next(flow->rank, flow->nranks);
    const int prev = rg_ring_prev(flow->rank, flow->nranks);
    const int last = flow->rank == call->root;
    struct rg_sources from;
    uint8_t *slot;

    from.own = call->send + at * sizeof(rg_elem);
    if (prev == call->root)
        return rg_flow_put(call, flow, next, k, from.own, n * sizeof(rg_elem));
    slot = rg_flow_take(call, flow, prev, k);
    if (!slot)
        return 1;
    from.inbox = slot;
    from.stride = 0;
    from.rank = 1;
    from.count = 2;
    rg_team_reduce(&call->team, op,
                   last ? call->recv + at * sizeof(rg_elem) : slot, 0, &from, n,
                   last ? flow->nranks : 0);
    rg_team_barrier(&call->team);
    if (!last && rg_flow_put(call, flow, next, k, slot, n * sizeof(rg_elem)))
        return 1;
    return rg_flow_give(call, flow, prev, k);
}

RG_FN int reduce_chain_channel(struct rg_call *call, enum rg_op op, int channel)
{
    struct rg_flow flow = rg_flow_open(call, channel);
    const uint64_t most = flow.chunk / sizeof(rg_elem);
    const int prev = rg_ring_prev(flow.rank, flow.nranks);
    uint64_t begin, end, k = 0;

    rg_share_elems(call->count, channel, (int)call->rule->channels, &begin,
                   &end);
    RG_ROLLED
    for (uint64_t at = begin; at < end; at += most, k++) {
        call->step = k;
        if (reduce_chain_step(call, op, &flow, at, rg_min_u64(end - at, most),
                              k))
            return 1;
    }
    if (flow.rank != call->root)
        rg_flow_sent(call, &flow, rg_ring_next(flow.rank, flow.nranks), k);
    if (prev != call->root)
        rg_flow_taken(call, &flow, prev, k);
    return 0;
}

RG_FN int reduce_chain(struct rg_call *call, enum rg_op op)
{
    RG_ROLLED
    for (int c = call->team.index; c < (int)call->rule->channels;
         c += call->team.count)
        if (reduce_chain_channel(call, op, c))
            return 1;
    return 0;
}

RG_ALGO_LAYOUT(reduce_chain)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(reduce_chain, "chain", RG_COLL_reduce, 0, 1, RG_FLOW_MAX_RANKS,
           RG_FLOW_AREA);
