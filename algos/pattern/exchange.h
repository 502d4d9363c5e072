/*
 * Blocks by flows, each straight to where it belongs.
 *
 * A channel's share of every block goes in steps of a chunk: in step k the
 * writing end sends chunk k to each peer, the reading end keeps chunk k of
 * each. Given two teams a channel, each has one end; a single team reads one
 * step behind what it has written, so it waits only for what others have sent
 * in an earlier round of this loop.
 */
#ifndef RG_PATTERN_EXCHANGE_H
#define RG_PATTERN_EXCHANGE_H

#include "algos/pattern/blocks.h"
#include "algos/pattern/flow.h"

/* One channel's share of a block. */
struct rg_exchange {
    struct rg_flow flow;
    uint64_t begin, end; /* bytes */
    uint64_t steps;
};

RG_FN struct rg_exchange rg_exchange_open(const struct rg_call *call,
                                          const struct rg_blocks *blocks,
                                          int channel)
{
    struct rg_exchange s;

    s.flow = rg_flow_open(call, channel);
    rg_share_elems(blocks->bytes, channel, (int)call->rule->channels, &s.begin,
                   &s.end);
    s.steps = (s.end - s.begin + s.flow.chunk - 1) / s.flow.chunk;
    return s;
}

/* A pair's bytes of step k, at this end. */
RG_FN struct rg_span rg_exchange_span(const struct rg_call *call,
                                      const struct rg_exchange *s,
                                      const struct rg_blocks *blocks, int way,
                                      int peer, uint64_t k)
{
    const uint64_t begin = s->begin + k * s->flow.chunk;

    return rg_span_cut(rg_blocks_span(call, blocks, way, peer), begin,
                       rg_min_u64(begin + s->flow.chunk, s->end));
}

/* Both 0, or 1 for failed. */
RG_FN int rg_exchange_write(struct rg_call *call, struct rg_exchange *s,
                            const struct rg_blocks *blocks, uint64_t k)
{
    RG_ROLLED
    for (int i = 1; i < s->flow.nranks; i++) {
        const int p = (s->flow.rank + i) % s->flow.nranks;
        struct rg_span span;

        if (!rg_blocks_go(blocks->to, p))
            continue;
        span = rg_exchange_span(call, s, blocks, 0, p, k);
        if (rg_flow_put(call, &s->flow, p, k, blocks->out + span.at,
                        span.bytes))
            return 1;
    }
    return 0;
}

RG_FN int rg_exchange_read(struct rg_call *call, struct rg_exchange *s,
                           const struct rg_blocks *blocks, uint64_t k)
{
    RG_ROLLED
    for (int i = 1; i < s->flow.nranks; i++) {
        const int p = (s->flow.rank + s->flow.nranks - i) % s->flow.nranks;
        const uint8_t *from;
        struct rg_span span;

        if (!rg_blocks_go(blocks->from, p))
            continue;
        from = rg_flow_take(call, &s->flow, p, k);
        if (!from)
            return 1;
        span = rg_exchange_span(call, s, blocks, 1, p, k);
        rg_team_copy(&call->team, blocks->in + span.at, from, span.bytes);
        if (rg_flow_give(call, &s->flow, p, k))
            return 1;
    }
    return 0;
}

/* The rank's own bytes of step k. */
RG_FN void rg_exchange_own(struct rg_call *call, const struct rg_exchange *s,
                           const struct rg_blocks *blocks, uint64_t k)
{
    const uint64_t begin = s->begin + k * s->flow.chunk;

    rg_blocks_own(call, blocks, begin,
                  rg_min_u64(begin + s->flow.chunk, s->end));
}

/* What the channel's two ends leave behind. */
RG_FN void rg_exchange_close(struct rg_call *call, const struct rg_exchange *s,
                             const struct rg_blocks *blocks, int writes,
                             int reads)
{
    RG_ROLLED
    for (int p = 0; p < s->flow.nranks; p++) {
        if (p == s->flow.rank)
            continue;
        if (writes && rg_blocks_go(blocks->to, p))
            rg_flow_sent(call, &s->flow, p, s->steps);
        if (reads && rg_blocks_go(blocks->from, p))
            rg_flow_taken(call, &s->flow, p, s->steps);
    }
}

/* One channel, or one end of it. 0, or 1 for failed. */
RG_FN int rg_exchange_channel(struct rg_call *call,
                              const struct rg_blocks *blocks, int channel,
                              int writes, int reads)
{
    struct rg_exchange s = rg_exchange_open(call, blocks, channel);

    RG_ROLLED
    for (uint64_t k = 0; k < s.steps + 1; k++) {
        call->step = k;
        if (writes && k < s.steps) {
            if (rg_exchange_write(call, &s, blocks, k))
                return 1;
            /* While the others' are on their way. */
            rg_exchange_own(call, &s, blocks, k);
        }
        if (reads && k > 0 && rg_exchange_read(call, &s, blocks, k - 1))
            return 1;
    }
    rg_exchange_close(call, &s, blocks, writes, reads);
    return 0;
}

RG_FN int rg_exchange_run(struct rg_call *call, const struct rg_blocks *blocks)
{
    const int channels = (int)call->rule->channels;
    const struct rg_roles roles = rg_roles_of(&call->team, channels);

    RG_ROLLED
    for (int c = roles.channel; c < channels; c += roles.step)
        if (rg_exchange_channel(call, blocks, c, roles.first, roles.second))
            return 1;
    return 0;
}

#endif
