/*
 * Reduce-scatter in two levels: a node's parts of a remote rank's block are
 * reduced by the rank's agent there (pattern/agents.h), so that they cross to
 * the rank's node once.
 *
 * A chunk takes as many phases as the busiest agent of the node has wards, and
 * one. In phase j a rank sends each agent of its node its part of the agent's
 * j-th ward's block; then, an agent itself, reduces those that it has got, and
 * sends the result across. In the last phase it is its own ward: what its node
 * and its agents elsewhere have sent goes into the output. Everything waited
 * for was sent in an earlier phase or earlier in the same one, so nobody waits
 * in a circle.
 */
#include "algos/pattern/agents.h"
#include "algos/reduce_scatter/reduce_scatter.h"

struct reduce_scatter_hierarchical {
    struct rg_flow flow;
    struct rg_fold fold;
    uint64_t at, n; /* the chunk, elements in a block */
    uint64_t k;     /* its number */
    int phases;
};

/* The number of a message of a phase to an agent of the node; its own block
 * comes behind its wards'. */
RG_FN uint64_t reduce_scatter_hierarchical_number(
    const struct rg_call *call, const struct reduce_scatter_hierarchical *s,
    int agent, int phase)
{
    const int wards = rg_agent_wards(call->plan, agent);

    return s->k * (uint64_t)(1 + wards) +
           (uint64_t)(phase < wards ? phase : wards);
}

/* Whose block an agent makes in a phase; -1: nobody's. */
RG_FN int
reduce_scatter_hierarchical_whose(const struct rg_call *call,
                                  const struct reduce_scatter_hierarchical *s,
                                  int agent, int phase)
{
    return phase == s->phases - 1 ? agent
                                  : rg_agent_ward(call->plan, agent, phase + 1);
}

/* All below: 0, or 1 for failed. */
RG_FN int reduce_scatter_hierarchical_send(
    struct rg_call *call, struct reduce_scatter_hierarchical *s, int phase)
{
    RG_ROLLED
    for (int p = 0; p < s->flow.nranks; p++) {
        int whose;

        if (p == s->flow.rank ||
            !rg_agent_same_node(call->plan, p, s->flow.rank))
            continue;
        whose = reduce_scatter_hierarchical_whose(call, s, p, phase);
        if (whose >= 0 &&
            rg_flow_put(call, &s->flow, p,
                        reduce_scatter_hierarchical_number(call, s, p, phase),
                        rg_fold_own(call, &s->fold, whose, s->at),
                        s->n * sizeof(rg_elem)))
            return 1;
    }
    return 0;
}

/* dst = what there is of it, and what lies in the slot. */
RG_FN void
reduce_scatter_hierarchical_add(struct rg_call *call, enum rg_op op,
                                const struct reduce_scatter_hierarchical *s,
                                void *dst, const uint8_t *sofar,
                                const uint8_t *slot, int divide)
{
    struct rg_sources from;

    from.own = sofar;
    from.inbox = slot;
    from.stride = 0;
    from.rank = 0;
    from.count = 2;
    rg_team_reduce(&call->team, op, dst, 0, &from, s->n, divide);
    rg_team_barrier(&call->team);
}

/*
 * A ward's block: reduced in the slot of the first that has come, sent, and
 * given back with it. A node of one rank sends its own part.
 */
RG_FN int
reduce_scatter_hierarchical_ward(struct rg_call *call, enum rg_op op,
                                 struct reduce_scatter_hierarchical *s,
                                 int phase)
{
    const int rank = s->flow.rank;
    const int ward = rg_agent_ward(call->plan, rank, phase + 1);
    const uint64_t m = reduce_scatter_hierarchical_number(call, s, rank, phase);
    const uint8_t *sofar;
    uint8_t *sum = 0;
    int first = -1;

    if (ward < 0)
        return 0;
    sofar = rg_fold_own(call, &s->fold, ward, s->at);
    RG_ROLLED
    for (int p = 0; p < s->flow.nranks; p++) {
        uint8_t *slot;

        if (p == rank || !rg_agent_same_node(call->plan, p, rank))
            continue;
        slot = rg_flow_take(call, &s->flow, p, m);
        if (!slot)
            return 1;
        if (!sum) {
            sum = slot;
            first = p;
        }
        reduce_scatter_hierarchical_add(call, op, s, sum, sofar, slot, 0);
        sofar = sum;
        if (p != first && rg_flow_give(call, &s->flow, p, m))
            return 1;
    }
    if (rg_flow_put(call, &s->flow, ward, s->k, sofar, s->n * sizeof(rg_elem)))
        return 1;
    return first < 0 ? 0 : rg_flow_give(call, &s->flow, first, m);
}

/* The own block: from the others of the node, and from agents elsewhere. */
RG_FN int reduce_scatter_hierarchical_own(struct rg_call *call, enum rg_op op,
                                          struct reduce_scatter_hierarchical *s)
{
    const int rank = s->flow.rank, n = s->flow.nranks;
    rg_elem *out = (rg_elem *)call->recv + s->at;
    const uint8_t *sofar = rg_fold_own(call, &s->fold, rank, s->at);
    int left = 0;

    RG_ROLLED
    for (int p = 0; p < n; p++)
        left += p != rank && (rg_agent_same_node(call->plan, p, rank) ||
                              rg_agent_for(call->plan, p, rank));
    RG_ROLLED
    for (int p = 0; p < n; p++) {
        uint64_t m = s->k;
        uint8_t *slot;

        if (p == rank)
            continue;
        if (rg_agent_same_node(call->plan, p, rank))
            m = reduce_scatter_hierarchical_number(call, s, rank,
                                                   s->phases - 1);
        else if (!rg_agent_for(call->plan, p, rank))
            continue;
        slot = rg_flow_take(call, &s->flow, p, m);
        if (!slot)
            return 1;
        reduce_scatter_hierarchical_add(call, op, s, out, sofar, slot,
                                        --left ? 0 : n);
        sofar = (const uint8_t *)out;
        if (rg_flow_give(call, &s->flow, p, m))
            return 1;
    }
    return 0;
}

RG_FN int
reduce_scatter_hierarchical_chunk(struct rg_call *call, enum rg_op op,
                                  struct reduce_scatter_hierarchical *s)
{
    RG_ROLLED
    for (int phase = 0; phase < s->phases; phase++) {
        if (reduce_scatter_hierarchical_send(call, s, phase))
            return 1;
        if (phase < s->phases - 1 &&
            reduce_scatter_hierarchical_ward(call, op, s, phase))
            return 1;
    }
    return reduce_scatter_hierarchical_own(call, op, s);
}

RG_FN void
reduce_scatter_hierarchical_close(struct rg_call *call,
                                  const struct reduce_scatter_hierarchical *s)
{
    const int rank = s->flow.rank;

    RG_ROLLED
    for (int p = 0; p < s->flow.nranks; p++) {
        if (p == rank)
            continue;
        if (rg_agent_same_node(call->plan, p, rank)) {
            rg_flow_sent(call, &s->flow, p,
                         reduce_scatter_hierarchical_number(call, s, p, 0));
            rg_flow_taken(call, &s->flow, p,
                          reduce_scatter_hierarchical_number(call, s, rank, 0));
        }
        if (rg_agent_for(call->plan, rank, p))
            rg_flow_sent(call, &s->flow, p, s->k);
        if (rg_agent_for(call->plan, p, rank))
            rg_flow_taken(call, &s->flow, p, s->k);
    }
}

RG_FN int reduce_scatter_hierarchical_channel(struct rg_call *call,
                                              enum rg_op op, int channel)
{
    struct reduce_scatter_hierarchical s;
    uint64_t end, most;

    s.flow = rg_flow_open(call, channel);
    s.fold = reduce_scatter_fold(call);
    s.phases = 1 + rg_agent_most(call->plan, s.flow.rank);
    most = s.flow.chunk / sizeof(rg_elem);
    rg_share_elems(call->count, channel, (int)call->rule->channels, &s.at,
                   &end);
    RG_ROLLED
    for (s.k = 0; s.at < end; s.at += most, s.k++) {
        s.n = rg_min_u64(end - s.at, most);
        call->step = s.k;
        if (reduce_scatter_hierarchical_chunk(call, op, &s))
            return 1;
    }
    reduce_scatter_hierarchical_close(call, &s);
    return 0;
}

RG_FN int reduce_scatter_hierarchical(struct rg_call *call, enum rg_op op)
{
    RG_ROLLED
    for (int c = call->team.index; c < (int)call->rule->channels;
         c += call->team.count)
        if (reduce_scatter_hierarchical_channel(call, op, c))
            return 1;
    return 0;
}

RG_ALGO_LAYOUT(reduce_scatter_hierarchical)
{
    return rg_flow_layout(shape, limits_out);
}

RG_ALGO_IN(reduce_scatter_hierarchical, "hierarchical", RG_COLL_reduce_scatter,
           0, 1, RG_FLOW_MAX_RANKS, RG_FLOW_AREA);
