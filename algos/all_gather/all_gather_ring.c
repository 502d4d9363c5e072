/*
 * All-gather, ring: in n - 1 hops every block goes once around, from each rank
 * to the next one. A rank sends no more than in any other way, and to one peer
 * only.
 */
#include "algos/all_gather/all_gather.h"
#include "algos/pattern/flow.h"
#include "algos/pattern/ring.h"

/* Hop t of a chunk: message `m` of the invocation. 0, or 1 for failed. */
RG_FN int all_gather_ring_hop(struct rg_call *call, struct rg_flow *flow,
                              uint64_t at, uint64_t bytes, int t, uint64_t m)
{
    const int n = flow->nranks, next = rg_ring_next(flow->rank, n);
    const int prev = rg_ring_prev(flow->rank, n);
    const int sent = (flow->rank - t + n) % n;
    const uint64_t out = (uint64_t)rg_slot_of(call, sent) * call->count + at;
    const uint64_t in =
        (uint64_t)rg_slot_of(call, (sent + n - 1) % n) * call->count + at;
    const uint8_t *from;

    if (rg_flow_put(call, flow, next, m,
                    t == 0 ? call->send + at : call->recv + out, bytes))
        return 1;
    from = rg_flow_take(call, flow, prev, m);
    if (!from)
        return 1;
    rg_team_copy(&call->team, call->recv + in, from, bytes);
    return rg_flow_give(call, flow, prev, m);
}

RG_FN int all_gather_ring_channel(struct rg_call *call, int channel)
{
    const struct rg_blocks blocks = all_gather_blocks(call);
    struct rg_flow flow = rg_flow_open(call, channel);
    const int hops = flow.nranks - 1;
    uint64_t begin, end, m = 0;

    rg_share_elems(call->count, channel, (int)call->rule->channels, &begin,
                   &end);
    RG_ROLLED
    for (uint64_t at = begin; at < end; at += flow.chunk)
        RG_ROLLED
    for (int t = 0; t < hops; t++, m++) {
        call->step = m;
        if (all_gather_ring_hop(call, &flow, at,
                                rg_min_u64(end - at, flow.chunk), t, m))
            return 1;
    }
    rg_blocks_own(call, &blocks, begin, end);
    rg_flow_sent(call, &flow, rg_ring_next(flow.rank, flow.nranks), m);
    rg_flow_taken(call, &flow, rg_ring_prev(flow.rank, flow.nranks), m);
    return 0;
}

RG_FN int all_gather_ring(struct rg_call *call, enum rg_op op)
{
    (void)op;
    RG_ROLLED
    for (int c = call->team.index; c < (int)call->rule->channels;
         c += call->team.count)
        if (all_gather_ring_channel(call, c))
            return 1;
    return 0;
}

RG_ALGO_LAYOUT(all_gather_ring)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(all_gather_ring, "ring", RG_COLL_all_gather, 0, 1, RG_FLOW_MAX_RANKS,
           RG_FLOW_AREA);
