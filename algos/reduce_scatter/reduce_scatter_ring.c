/*
 * Reduce-scatter, ring: in n - 1 hops every block goes once around, from the
 * rank behind the one that it is for, and each rank adds its part. A rank sends
 * no more than in any other way, and to one peer only.
 */
#include "algos/pattern/ring.h"
#include "algos/reduce_scatter/reduce_scatter.h"

/* Of one hop: what has come, and the own part of the same block. */
struct reduce_scatter_hop {
    uint64_t at; /* elements, in a block */
    uint64_t n;
    int t;
    uint64_t m; /* the message's number */
};

/* What has come is reduced where it lies, or into the output. */
RG_FN int reduce_scatter_ring_keep(struct rg_call *call, enum rg_op op,
                                   const struct rg_fold *fold,
                                   struct rg_flow *flow,
                                   const struct reduce_scatter_hop *hop)
{
    const int n = flow->nranks, prev = rg_ring_prev(flow->rank, n);
    const int block = (flow->rank - 2 - hop->t + 2 * n) % n;
    uint8_t *slot = rg_flow_take(call, flow, prev, hop->m);
    struct rg_sources from;

    if (!slot)
        return 1;
    from.own = rg_fold_own(call, fold, block, hop->at);
    from.inbox = slot;
    from.stride = 0;
    from.rank = 1;
    from.count = 2;
    if (block == flow->rank) {
        rg_team_reduce(&call->team, op, (rg_elem *)call->recv + hop->at, 0,
                       &from, hop->n, n);
    } else {
        rg_team_reduce(&call->team, op, slot, 0, &from, hop->n, 0);
        rg_team_barrier(&call->team);
        if (rg_flow_put(call, flow, rg_ring_next(flow->rank, n), hop->m + 1,
                        slot, hop->n * sizeof(rg_elem)))
            return 1;
    }
    return rg_flow_give(call, flow, prev, hop->m);
}

/* A chunk of every block. */
RG_FN int reduce_scatter_ring_round(struct rg_call *call, enum rg_op op,
                                    const struct rg_fold *fold,
                                    struct rg_flow *flow,
                                    struct reduce_scatter_hop *hop)
{
    const int n = flow->nranks;

    if (rg_flow_put(
            call, flow, rg_ring_next(flow->rank, n), hop->m,
            rg_fold_own(call, fold, rg_ring_prev(flow->rank, n), hop->at),
            hop->n * sizeof(rg_elem)))
        return 1;
    RG_ROLLED
    for (hop->t = 0; hop->t < n - 1; hop->t++, hop->m++) {
        call->step = hop->m;
        if (reduce_scatter_ring_keep(call, op, fold, flow, hop))
            return 1;
    }
    return 0;
}

RG_FN int reduce_scatter_ring_channel(struct rg_call *call, enum rg_op op,
                                      const struct rg_fold *fold, int channel)
{
    struct rg_flow flow = rg_flow_open(call, channel);
    const uint64_t most = flow.chunk / sizeof(rg_elem);
    struct reduce_scatter_hop hop;
    uint64_t end;

    rg_share_elems(call->count, channel, (int)call->rule->channels, &hop.at,
                   &end);
    RG_ROLLED
    for (hop.m = 0; hop.at < end; hop.at += most) {
        hop.n = rg_min_u64(end - hop.at, most);
        if (reduce_scatter_ring_round(call, op, fold, &flow, &hop))
            return 1;
    }
    rg_flow_sent(call, &flow, rg_ring_next(flow.rank, flow.nranks), hop.m);
    rg_flow_taken(call, &flow, rg_ring_prev(flow.rank, flow.nranks), hop.m);
    return 0;
}

RG_FN int reduce_scatter_ring(struct rg_call *call, enum rg_op op)
{
    const struct rg_fold fold = reduce_scatter_fold(call);

    RG_ROLLED
    for (int c = call->team.index; c < (int)call->rule->channels;
         c += call->team.count)
        if (reduce_scatter_ring_channel(call, op, &fold, c))
            return 1;
    return 0;
}

RG_ALGO_LAYOUT(reduce_scatter_ring)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(reduce_scatter_ring, "ring", RG_COLL_reduce_scatter, 0, 1,
           RG_FLOW_MAX_RANKS, RG_FLOW_AREA);
