/*
 * Blocks by packets, each straight to where it belongs.
 *
 *   1. each unit of a block goes to the slot that is its writer's
 *   2. each unit of every other rank is polled for, and kept
 *
 * A rank that has nothing for another sends it an empty unit. So every rank
 * sends to every other one each time, which is what makes it sound to use the
 * halves in turn (pattern/packets.h), also where there is a root: no rank ends
 * before all have begun.
 */
#ifndef RG_PATTERN_EXCHANGE_LL_H
#define RG_PATTERN_EXCHANGE_LL_H

#include "algos/pattern/blocks.h"
#include "algos/pattern/packets.h"
#include "runtime/algo.h"

#define RG_EXCHANGE_LL_AREA "exchange_ll"

/* Of all writers, in one half. */
enum { RG_EXCHANGE_LL_UNITS = 2 * RG_PACKET_UNITS };

struct rg_exchange_ll {
    struct rg_packets packets;
    uint64_t units;            /* of a block, at least one */
    uint64_t begin, end, step; /* this thread's units */
    int rank, nranks;
};

/* Every thread. A block is `elems` elements at most, the same at every rank. */
RG_FN struct rg_exchange_ll rg_exchange_ll_open(struct rg_call *call,
                                                uint64_t elems)
{
    struct rg_exchange_ll s;

    s.units = rg_max_u64((elems + RG_UNIT_ELEMS - 1) / RG_UNIT_ELEMS, 1);
    s.rank = (int)call->plan->rank;
    s.nranks = (int)call->plan->nranks;
    s.packets = rg_packets_begin(call, s.units * (uint64_t)s.nranks);
    rg_share(s.units, call->team.index, call->team.count, &s.begin, &s.end);
    s.begin += (uint64_t)call->team.thread;
    s.step = (uint64_t)call->team.threads;
    return s;
}

/* The slot of a writer's unit. */
RG_FN uint64_t rg_exchange_ll_slot(const struct rg_exchange_ll *s, int writer,
                                   uint64_t i)
{
    return (uint64_t)writer * s->units + i;
}

/* Units to or from a peer: a block's, or the empty one. */
RG_FN uint64_t rg_exchange_ll_units(const struct rg_exchange_ll *s, int whole)
{
    return whole ? s->units : 1;
}

/* Step 1 for one peer: so many units, of them `count` elements from src on. */
RG_FN int rg_exchange_ll_send(struct rg_call *call,
                              const struct rg_exchange_ll *s, int peer,
                              uint64_t units, const void *src, uint64_t count)
{
    uint8_t *slots = rg_packets_of(call, &s->packets, peer);

    if (!slots)
        return rg_fail(call, RG_EUNAVAILABLE, peer);
    RG_ROLLED
    for (uint64_t i = s->begin; i < s->end && i < units; i += s->step)
        rg_packets_send(slots, &s->packets, rg_exchange_ll_slot(s, s->rank, i),
                        i * RG_UNIT_ELEMS < count ? rg_unit_load(src, i, count)
                                                  : 0);
    return 0;
}

/* Step 2 for one peer: of so many units, `count` elements into dst. */
RG_FN int rg_exchange_ll_keep(struct rg_call *call,
                              const struct rg_exchange_ll *s, int peer,
                              uint64_t units, void *dst, uint64_t count)
{
    RG_ROLLED
    for (uint64_t i = s->begin; i < s->end && i < units; i += s->step) {
        uint64_t word;

        if (rg_packets_wait(call, &s->packets, rg_exchange_ll_slot(s, peer, i),
                            peer, &word))
            return 1;
        if (i * RG_UNIT_ELEMS < count)
            rg_unit_store(dst, i, count, word);
    }
    return 0;
}

/* All of it, of bytes. 0, or 1 for failed. */
RG_FN int rg_exchange_ll_run(struct rg_call *call,
                             const struct rg_blocks *blocks)
{
    const struct rg_exchange_ll s = rg_exchange_ll_open(call, blocks->bytes);

    RG_ROLLED
    for (int i = 1; i < s.nranks; i++) {
        const int p = (s.rank + i) % s.nranks;
        const int goes = rg_blocks_go(blocks->to, p);
        const struct rg_span out = rg_blocks_span(call, blocks, 0, p);

        if (rg_exchange_ll_send(call, &s, p, rg_exchange_ll_units(&s, goes),
                                blocks->out + out.at, goes ? out.bytes : 0))
            return 1;
    }
    rg_blocks_alone(call, blocks);
    RG_ROLLED
    for (int i = 1; i < s.nranks; i++) {
        const int p = (s.rank + s.nranks - i) % s.nranks;
        const int comes = rg_blocks_go(blocks->from, p);
        const struct rg_span in = rg_blocks_span(call, blocks, 1, p);

        if (rg_exchange_ll_keep(call, &s, p, rg_exchange_ll_units(&s, comes),
                                blocks->in + in.at, comes ? in.bytes : 0))
            return 1;
    }
    rg_packets_end(call, &s.packets);
    return 0;
}

/* `blocks`: of how many a rank's largest buffer is made, for the limit. */
RG_FN uint64_t rg_exchange_ll_layout(const struct rg_shape *shape,
                                     uint64_t blocks,
                                     struct rg_limits *limits_out)
{
    const uint64_t capacity = (uint64_t)shape->capacity;
    const uint64_t slots =
        rg_min_u64(rg_packets_fit(shape->budget), RG_EXCHANGE_LL_UNITS);
    const uint64_t units = slots / capacity;

    limits_out->max_bytes = units * RG_PACKET_PAYLOAD * blocks;
    limits_out->max_chunk = 0;
    limits_out->head =
        units ? RG_PACKETS_HEAD + rg_packets_bytes(units * capacity) : 0;
    /* Two halves of a packet for each unit of each of the blocks. */
    limits_out->head_rate =
        2 * RG_PACKET_BYTES / RG_PACKET_PAYLOAD * capacity / blocks;
    return limits_out->head;
}

#endif
