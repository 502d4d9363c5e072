/*
 * Reductions by flows: every rank sends its part of a result straight to the
 * rank that makes it, which reduces the parts in rank order.
 *
 * What a reader gets, it gets from all others in step, so the messages of one
 * turn lie at one distance from each other. That holds as long as nothing else
 * uses the area, which is why it is not that of pattern/exchange.h.
 */
#ifndef RG_PATTERN_FOLD_H
#define RG_PATTERN_FOLD_H

#include "algos/pattern/blocks.h"
#include "algos/pattern/flow.h"
#include "runtime/device/reduce.h"

#define RG_FOLD_AREA "fold"

/* Who makes what: dense rank r the block of its slot, or one rank all there
 * is. */
struct rg_fold {
    const uint8_t *send;
    uint64_t step;  /* bytes between two slots' blocks; 0: there is one */
    uint64_t count; /* elements of a block */
    int maker;      /* RG_TO_ALL: each rank its own; else the one */
};

struct rg_fold_channel {
    struct rg_flow flow;
    uint64_t begin, end; /* elements */
    uint64_t most;       /* of a message */
    uint64_t steps;
};

RG_FN struct rg_fold_channel rg_fold_open(const struct rg_call *call,
                                          const struct rg_fold *fold,
                                          int channel)
{
    struct rg_fold_channel s;

    s.flow = rg_flow_open(call, channel);
    s.most = s.flow.chunk / sizeof(rg_elem);
    rg_share_elems(fold->count, channel, (int)call->rule->channels, &s.begin,
                   &s.end);
    s.steps = (s.end - s.begin + s.most - 1) / s.most;
    return s;
}

/* Element `at` of the own part of what a rank makes. */
RG_FN const uint8_t *rg_fold_own(const struct rg_call *call,
                                 const struct rg_fold *fold, int maker,
                                 uint64_t at)
{
    return fold->send + (uint64_t)rg_slot_of(call, maker) * fold->step +
           at * sizeof(rg_elem);
}

RG_FN uint64_t rg_fold_elems(const struct rg_fold_channel *s, uint64_t k)
{
    return rg_min_u64(s->end - s->begin - k * s->most, s->most);
}

/* All below: 0, or 1 for failed. */
RG_FN int rg_fold_write(struct rg_call *call, const struct rg_fold *fold,
                        struct rg_fold_channel *s, uint64_t k)
{
    RG_ROLLED
    for (int i = 1; i < s->flow.nranks; i++) {
        const int p = (s->flow.rank + i) % s->flow.nranks;

        if (rg_blocks_go(fold->maker, p) &&
            rg_flow_put(call, &s->flow, p, k,
                        rg_fold_own(call, fold, p, s->begin + k * s->most),
                        rg_fold_elems(s, k) * sizeof(rg_elem)))
            return 1;
        /* No thread runs ahead of what has landed: beside teams that reduce,
         * more on the way makes both slower, up to twice. */
        rg_team_barrier(&call->team);
    }
    return 0;
}

/* Waits for a turn's messages from all; null for failed. */
RG_FN const uint8_t *rg_fold_take(struct rg_call *call,
                                  const struct rg_fold_channel *s, uint64_t k)
{
    const int first = s->flow.rank == 0;
    const uint64_t turn = s->flow.taken[first] + k;

    if (rg_wait_all(call, s->flow.full, RG_LINE, s->flow.nranks, s->flow.rank,
                    turn + 1))
        return 0;
    return rg_inbox(call, rg_flow_slot(&s->flow, first, s->flow.rank, turn));
}

RG_FN int rg_fold_read(struct rg_call *call, enum rg_op op,
                       const struct rg_fold *fold,
                       const struct rg_fold_channel *s, uint64_t k)
{
    const uint64_t at = s->begin + k * s->most;
    struct rg_sources from;

    from.inbox = rg_fold_take(call, s, k);
    if (!from.inbox)
        return 1;
    from.own = rg_fold_own(call, fold, s->flow.rank, at);
    from.stride = RG_FLOW_DEPTH * s->flow.slot;
    from.rank = s->flow.rank;
    from.count = s->flow.nranks;
    rg_team_reduce(&call->team, op, (rg_elem *)call->recv + at, 0, &from,
                   rg_fold_elems(s, k), s->flow.nranks);
    return rg_signal_all(
        call, s->flow.lane, s->flow.credit + (uint64_t)s->flow.rank * RG_LINE,
        RG_SIGNAL_CREDIT, s->flow.taken[s->flow.rank == 0] + k + 1);
}

RG_FN void rg_fold_close(struct rg_call *call, const struct rg_fold *fold,
                         const struct rg_fold_channel *s, int writes, int reads)
{
    RG_ROLLED
    for (int p = 0; p < s->flow.nranks; p++) {
        if (p == s->flow.rank)
            continue;
        if (writes && rg_blocks_go(fold->maker, p))
            rg_flow_sent(call, &s->flow, p, s->steps);
        if (reads)
            rg_flow_taken(call, &s->flow, p, s->steps);
    }
}

RG_FN int rg_fold_channel(struct rg_call *call, enum rg_op op,
                          const struct rg_fold *fold, int channel, int writes,
                          int reads)
{
    struct rg_fold_channel s = rg_fold_open(call, fold, channel);

    RG_ROLLED
    for (uint64_t k = 0; k < s.steps + 1; k++) {
        call->step = k;
        if (writes && k < s.steps && rg_fold_write(call, fold, &s, k))
            return 1;
        if (reads && k > 0 && rg_fold_read(call, op, fold, &s, k - 1))
            return 1;
    }
    rg_fold_close(call, fold, &s, writes, reads);
    return 0;
}

/* Given two teams a channel, one sends and one reduces. */
RG_FN int rg_fold_run(struct rg_call *call, enum rg_op op,
                      const struct rg_fold *fold)
{
    const int channels = (int)call->rule->channels;
    const struct rg_roles roles = rg_roles_of(&call->team, channels);
    const int makes = rg_blocks_go(fold->maker, (int)call->plan->rank);

    RG_ROLLED
    for (int c = roles.channel; c < channels; c += roles.step)
        if (rg_fold_channel(call, op, fold, c, roles.first,
                            roles.second && makes))
            return 1;
    return 0;
}

/* A group of one rank: the result is the input, whatever the operation. */
RG_FN void rg_fold_alone(struct rg_call *call, const struct rg_fold *fold)
{
    uint64_t begin, end;

    rg_share_elems(fold->count, call->team.index, call->team.count, &begin,
                   &end);
    if (rg_fold_own(call, fold, 0, 0) != call->recv)
        rg_team_copy(&call->team, (rg_elem *)call->recv + begin,
                     rg_fold_own(call, fold, 0, begin),
                     (end - begin) * sizeof(rg_elem));
}

#endif
