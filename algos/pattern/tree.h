/*
 * A block from a root to all, by flows along a tree. Each rank keeps a chunk
 * as it arrives and hands it on from where it landed, so a message is never
 * more than a chunk behind at each level.
 *
 *   star    the root sends to all
 *   chain   each sends to the next, as a pipeline: the root sends once
 *   nodes   the root sends to its node, and to one rank of each other node that
 *           sends to the rest: each byte enters a node once
 */
#ifndef RG_PATTERN_TREE_H
#define RG_PATTERN_TREE_H

#include "algos/pattern/flow.h"
#include "algos/pattern/ring.h"

enum rg_tree_kind { RG_TREE_STAR = 0, RG_TREE_CHAIN, RG_TREE_NODES };

/* The rank that hands on what its node gets: by its place, as the root has. */
RG_FN int rg_tree_leads(const struct rg_place *root, const struct rg_place *p)
{
    return p->local == root->local % p->size;
}

RG_FN int rg_tree_node_parent(const struct rg_plan *plan, int root, int rank)
{
    const struct rg_place *places = rg_plan_places(plan);
    const struct rg_place *own = &places[rank];
    int p = 0;

    if (own->node == places[root].node || rg_tree_leads(&places[root], own))
        return root;
    while (places[p].node != own->node ||
           !rg_tree_leads(&places[root], &places[p]))
        p++;
    return p;
}

/* Who sends to a rank; the root has nobody: -1. */
RG_FN int rg_tree_parent(const struct rg_plan *plan,
                         const enum rg_tree_kind kind, int root, int rank)
{
    if (rank == root)
        return -1;
    if (kind == RG_TREE_CHAIN)
        return rg_ring_prev(rank, (int)plan->nranks);
    return kind == RG_TREE_NODES ? rg_tree_node_parent(plan, root, rank) : root;
}

struct rg_tree {
    struct rg_flow flow;
    uint64_t begin, end; /* bytes */
    uint64_t steps;
    int parent;
};

/* The first rank >= p that this one sends to; nranks: none. */
RG_FN int rg_tree_child(const struct rg_call *call, const struct rg_tree *t,
                        const enum rg_tree_kind kind, int p)
{
    while (p < t->flow.nranks &&
           rg_tree_parent(call->plan, kind, call->root, p) != t->flow.rank)
        p++;
    return p;
}

RG_FN int rg_tree_send(struct rg_call *call, struct rg_tree *t,
                       const enum rg_tree_kind kind, uint64_t k,
                       const uint8_t *src, uint64_t bytes)
{
    RG_ROLLED
    for (int p = rg_tree_child(call, t, kind, 0); p < t->flow.nranks;
         p = rg_tree_child(call, t, kind, p + 1))
        if (rg_flow_put(call, &t->flow, p, k, src, bytes))
            return 1;
    return 0;
}

/* Chunk k. 0, or 1 for failed. */
RG_FN int rg_tree_step(struct rg_call *call, struct rg_tree *t,
                       const enum rg_tree_kind kind, uint64_t k)
{
    const uint64_t at = t->begin + k * t->flow.chunk;
    const uint64_t bytes = rg_min_u64(t->end - at, t->flow.chunk);
    const uint8_t *src = call->send + at;

    if (t->parent >= 0)
        src = rg_flow_take(call, &t->flow, t->parent, k);
    if (!src || rg_tree_send(call, t, kind, k, src, bytes))
        return 1;
    if (t->parent < 0)
        return 0;
    rg_team_copy(&call->team, call->recv + at, src, bytes);
    return rg_flow_give(call, &t->flow, t->parent, k);
}

/* The root's own copy of a channel's share. */
RG_FN void rg_tree_own(struct rg_call *call, int channel)
{
    uint64_t begin, end;

    rg_share_elems(call->count, channel, (int)call->rule->channels, &begin,
                   &end);
    if (call->root == (int)call->plan->rank && call->send != call->recv)
        rg_team_copy(&call->team, call->recv + begin, call->send + begin,
                     end - begin);
}

RG_FN int rg_tree_channel(struct rg_call *call, const enum rg_tree_kind kind,
                          int channel)
{
    struct rg_tree t;

    t.flow = rg_flow_open(call, channel);
    t.parent = rg_tree_parent(call->plan, kind, call->root, t.flow.rank);
    rg_share_elems(call->count, channel, (int)call->rule->channels, &t.begin,
                   &t.end);
    t.steps = (t.end - t.begin + t.flow.chunk - 1) / t.flow.chunk;
    RG_ROLLED
    for (uint64_t k = 0; k < t.steps; k++) {
        call->step = k;
        if (rg_tree_step(call, &t, kind, k))
            return 1;
    }
    RG_ROLLED
    for (int p = rg_tree_child(call, &t, kind, 0); p < t.flow.nranks;
         p = rg_tree_child(call, &t, kind, p + 1))
        rg_flow_sent(call, &t.flow, p, t.steps);
    if (t.parent >= 0)
        rg_flow_taken(call, &t.flow, t.parent, t.steps);
    return 0;
}

/* Of bytes. Given two teams a channel, one of them makes the root's own copy.
 * 0, or 1 for failed. */
RG_FN int rg_tree_run(struct rg_call *call, const enum rg_tree_kind kind)
{
    const int channels = (int)call->rule->channels;
    const struct rg_roles roles = rg_roles_of(&call->team, channels);

    RG_ROLLED
    for (int c = roles.channel; c < channels; c += roles.step) {
        if (roles.first && rg_tree_channel(call, kind, c))
            return 1;
        if (roles.second)
            rg_tree_own(call, c);
    }
    return 0;
}

#endif
