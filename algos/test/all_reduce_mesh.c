/*
 * The example of algos/README.md: all-reduce, mesh. Every rank sends all it has
 * to every other one, a chunk at a time, and reduces what has come, in rank
 * order.
 */
#include "algos/all_reduce/all_reduce.h"
#include "algos/pattern/flow.h"
#include "runtime/device/reduce.h"

/* Elements [at, at + n), message k. 0, or 1 for failed. */
RG_FN int all_reduce_mesh_chunk(struct rg_call *call, enum rg_op op,
                                struct rg_flow *flow, uint64_t at, uint64_t n,
                                uint64_t k)
{
    const rg_elem *own = (const rg_elem *)call->send + at;
    struct rg_sources from = {0};

    for (int p = 0; p < flow->nranks; p++)
        if (p != flow->rank &&
            rg_flow_put(call, flow, p, k, own, n * sizeof(rg_elem)))
            return 1;
    for (int p = flow->nranks - 1; p >= 0; p--)
        if (p != flow->rank && !(from.inbox = rg_flow_take(call, flow, p, k)))
            return 1;
    from.own = (const uint8_t *)own;
    from.stride = RG_FLOW_DEPTH * flow->slot; /* between two ranks' slots */
    from.rank = flow->rank;
    from.count = flow->nranks;
    rg_team_reduce(&call->team, op, (rg_elem *)call->recv + at, 0, &from, n,
                   flow->nranks);
    for (int p = 0; p < flow->nranks; p++)
        if (p != flow->rank && rg_flow_give(call, flow, p, k))
            return 1;
    return 0;
}

RG_FN int all_reduce_mesh(struct rg_call *call, enum rg_op op)
{
    const int channels = (int)call->rule->channels;

    for (int c = call->team.index; c < channels; c += call->team.count) {
        struct rg_flow flow = rg_flow_open(call, c);
        const uint64_t most = flow.chunk / sizeof(rg_elem);
        uint64_t at, end, k = 0;

        rg_share_elems(call->count, c, channels, &at, &end);
        for (; at < end; at += most, k++)
            if (all_reduce_mesh_chunk(call, op, &flow, at,
                                      rg_min_u64(end - at, most), k))
                return 1;
        for (int p = 0; p < flow.nranks; p++)
            if (p != flow.rank) {
                rg_flow_sent(call, &flow, p, k);
                rg_flow_taken(call, &flow, p, k);
            }
    }
    return 0;
}

RG_ALGO_LAYOUT(all_reduce_mesh)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO(all_reduce_mesh, "mesh", RG_COLL_all_reduce, 0, 1, RG_FLOW_MAX_RANKS);
