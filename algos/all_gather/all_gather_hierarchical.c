/*
 * All-gather in two levels: a block crosses to each other node once, to its
 * agent there (pattern/agents.h), which hands it on within the node.
 *
 * A chunk takes as many phases as the busiest agent of the node has wards, and
 * one. In phase 0 a rank sends its own chunk to its node and to its agents; in
 * phase j it hands on its j-th ward's. In each phase it then keeps what the
 * others of its node have sent in the same one. So at most one message a phase
 * goes to a peer before the same phase's are taken, and nobody waits in a
 * circle.
 */
#include "algos/all_gather/all_gather.h"
#include "algos/pattern/agents.h"
#include "algos/pattern/flow.h"

struct all_gather_hierarchical {
    struct rg_flow flow;
    uint64_t at, bytes; /* the chunk, in a block */
    uint64_t k;         /* its number */
    int phases;
};

/* The number of a rank's message of a phase within its node. */
RG_FN uint64_t all_gather_hierarchical_number(
    const struct rg_call *call, const struct all_gather_hierarchical *s,
    int writer, int phase)
{
    const uint64_t each = 1 + (uint64_t)rg_agent_wards(call->plan, writer);

    return s->k * each + (uint64_t)phase;
}

RG_FN uint8_t *
all_gather_hierarchical_block(const struct rg_call *call,
                              const struct all_gather_hierarchical *s, int rank)
{
    return call->recv + (uint64_t)rg_slot_of(call, rank) * call->count + s->at;
}

/* All below: 0, or 1 for failed. To the other ranks of the node. */
RG_FN int all_gather_hierarchical_spread(struct rg_call *call,
                                         struct all_gather_hierarchical *s,
                                         int phase, const uint8_t *src)
{
    const int rank = s->flow.rank;
    const uint64_t m = all_gather_hierarchical_number(call, s, rank, phase);

    RG_ROLLED
    for (int p = 0; p < s->flow.nranks; p++)
        if (p != rank && rg_agent_same_node(call->plan, p, rank) &&
            rg_flow_put(call, &s->flow, p, m, src, s->bytes))
            return 1;
    return 0;
}

/* The own chunk to the agents in other nodes. */
RG_FN int all_gather_hierarchical_cross(struct rg_call *call,
                                        struct all_gather_hierarchical *s)
{
    RG_ROLLED
    for (int p = 0; p < s->flow.nranks; p++)
        if (rg_agent_for(call->plan, p, s->flow.rank) &&
            rg_flow_put(call, &s->flow, p, s->k, call->send + s->at, s->bytes))
            return 1;
    return 0;
}

/* A ward's chunk: kept, and handed on. */
RG_FN int all_gather_hierarchical_ward(struct rg_call *call,
                                       struct all_gather_hierarchical *s,
                                       int phase)
{
    const int ward = rg_agent_ward(call->plan, s->flow.rank, phase);
    const uint8_t *from;

    if (ward < 0)
        return 0;
    from = rg_flow_take(call, &s->flow, ward, s->k);
    if (!from || all_gather_hierarchical_spread(call, s, phase, from))
        return 1;
    rg_team_copy(&call->team, all_gather_hierarchical_block(call, s, ward),
                 from, s->bytes);
    return rg_flow_give(call, &s->flow, ward, s->k);
}

/* What the others of the node have sent in a phase. */
RG_FN int all_gather_hierarchical_keep(struct rg_call *call,
                                       struct all_gather_hierarchical *s,
                                       int phase)
{
    RG_ROLLED
    for (int p = 0; p < s->flow.nranks; p++) {
        const uint64_t m = all_gather_hierarchical_number(call, s, p, phase);
        const uint8_t *from;
        int whose = p;

        if (p == s->flow.rank ||
            !rg_agent_same_node(call->plan, p, s->flow.rank))
            continue;
        if (phase > 0)
            whose = rg_agent_ward(call->plan, p, phase);
        if (whose < 0)
            continue;
        from = rg_flow_take(call, &s->flow, p, m);
        if (!from)
            return 1;
        rg_team_copy(&call->team, all_gather_hierarchical_block(call, s, whose),
                     from, s->bytes);
        if (rg_flow_give(call, &s->flow, p, m))
            return 1;
    }
    return 0;
}

RG_FN int all_gather_hierarchical_chunk(struct rg_call *call,
                                        struct all_gather_hierarchical *s)
{
    if (all_gather_hierarchical_cross(call, s) ||
        all_gather_hierarchical_spread(call, s, 0, call->send + s->at) ||
        all_gather_hierarchical_keep(call, s, 0))
        return 1;
    RG_ROLLED
    for (int phase = 1; phase < s->phases; phase++)
        if (all_gather_hierarchical_ward(call, s, phase) ||
            all_gather_hierarchical_keep(call, s, phase))
            return 1;
    return 0;
}

/* How many chunks have gone each way. */
RG_FN void
all_gather_hierarchical_close(struct rg_call *call,
                              const struct all_gather_hierarchical *s)
{
    const int rank = s->flow.rank;

    RG_ROLLED
    for (int p = 0; p < s->flow.nranks; p++) {
        if (p == rank)
            continue;
        if (rg_agent_same_node(call->plan, p, rank)) {
            rg_flow_sent(call, &s->flow, p,
                         all_gather_hierarchical_number(call, s, rank, 0));
            rg_flow_taken(call, &s->flow, p,
                          all_gather_hierarchical_number(call, s, p, 0));
        }
        if (rg_agent_for(call->plan, p, rank))
            rg_flow_sent(call, &s->flow, p, s->k);
        if (rg_agent_for(call->plan, rank, p))
            rg_flow_taken(call, &s->flow, p, s->k);
    }
}

RG_FN int all_gather_hierarchical_channel(struct rg_call *call, int channel)
{
    const struct rg_blocks blocks = all_gather_blocks(call);
    struct all_gather_hierarchical s;
    uint64_t begin, end;

    s.flow = rg_flow_open(call, channel);
    s.phases = 1 + rg_agent_most(call->plan, s.flow.rank);
    rg_share_elems(call->count, channel, (int)call->rule->channels, &begin,
                   &end);
    s.k = 0;
    RG_ROLLED
    for (s.at = begin; s.at < end; s.at += s.flow.chunk, s.k++) {
        s.bytes = rg_min_u64(end - s.at, s.flow.chunk);
        call->step = s.k;
        if (all_gather_hierarchical_chunk(call, &s))
            return 1;
    }
    rg_blocks_own(call, &blocks, begin, end);
    all_gather_hierarchical_close(call, &s);
    return 0;
}

RG_FN int all_gather_hierarchical(struct rg_call *call, enum rg_op op)
{
    (void)op;
    RG_ROLLED
    for (int c = call->team.index; c < (int)call->rule->channels;
         c += call->team.count)
        if (all_gather_hierarchical_channel(call, c))
            return 1;
    return 0;
}

RG_ALGO_LAYOUT(all_gather_hierarchical)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(all_gather_hierarchical, "hierarchical", RG_COLL_all_gather, 0, 1,
           RG_FLOW_MAX_RANKS, RG_FLOW_AREA);
