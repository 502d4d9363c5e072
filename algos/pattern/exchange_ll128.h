/*
 * Blocks by LL128, each straight to where it belongs.
 *
 * In round i a rank writes to the i-th rank above it and reads what the i-th
 * rank below it writes in that round. A worker is one batch behind with its
 * reading: what it writes is on the way while it reads what has come. Nobody
 * waits in a circle, for a batch is awaited by whoever has written all batches
 * below it, and its own, in that round and all before.
 *
 * There are two halves, used in turn: the hot line's cursor counts these uses
 * and those of packets, and says which. A half is written again two of them on.
 * A rank that has nothing for another sends it an empty batch, so that in each
 * of them every rank hears from every other one: no rank ends it before all
 * have begun it, and so have ended the one before. That makes it sound.
 */
#ifndef RG_PATTERN_EXCHANGE_LL128_H
#define RG_PATTERN_EXCHANGE_LL128_H

#include "algos/pattern/blocks.h"
#include "runtime/algo.h"
#include "runtime/device/ll128.h"

#define RG_LL128_AREA "ll128"

enum { RG_LL128_MOST = 16 << 20 }; /* bytes of payload of all writers */

/* One use, as a worker sees it: in registers. */
struct rg_exchange_ll128 {
    struct rg_ll128_worker worker;
    uint64_t area,
        bytes; /* offset in every region; both halves of all places */
    const uint8_t *inbox; /* the own places */
    uint64_t tag;
    uint64_t half;        /* 0 or 1 */
    uint64_t batches;     /* of a block, at least one */
    uint64_t begin, step; /* this worker's */
    int rank, nranks;
};

/* Every thread. A block is so many bytes at most, the same at every rank. */
RG_FN struct rg_exchange_ll128 rg_exchange_ll128_open(struct rg_call *call,
                                                      uint64_t bytes)
{
    struct rg_exchange_ll128 s;

    s.worker = rg_ll128_worker_of(call);
    s.batches = rg_max_u64(rg_ll128_batches(bytes), 1);
    s.rank = (int)call->plan->rank;
    s.nranks = (int)call->plan->nranks;
    s.area = call->workspace;
    s.bytes = s.batches * (uint64_t)s.nranks * 2 * RG_LL128_BYTES;
    s.inbox = rg_inbox(call, s.area);
    s.tag = rg_ll128_tag(call->packet_cursor);
    s.half = call->packet_cursor++ & 1;
    s.begin = (uint64_t)rg_ll128_first(&call->team);
    s.step = (uint64_t)rg_ll128_step(&call->team);
    return s;
}

/* Where a writer's batch lies, from the start of the places. */
RG_FN uint64_t rg_exchange_ll128_at(const struct rg_exchange_ll128 *s,
                                    int writer, uint64_t b)
{
    return (((uint64_t)writer * s->batches + b) * 2 + s->half) * RG_LL128_BYTES;
}

/* Batches to or from a peer: a block's, or the empty one. */
RG_FN uint64_t rg_exchange_ll128_batches(const struct rg_exchange_ll128 *s,
                                         int whole)
{
    return whole ? s->batches : 1;
}

/* One direction of a round: a stream of batches to or from a peer. */
struct rg_ll128_stream {
    uint8_t *places;     /* the peer's, or the own ones */
    const uint8_t *from; /* the user's, to be written */
    uint8_t *to;         /* the user's, to be read into */
    uint64_t bytes;      /* of the user's */
    uint64_t batches;
    int peer;
};

/* 0, or 1 for failed. */
RG_FN int rg_exchange_ll128_to(struct rg_call *call,
                               const struct rg_exchange_ll128 *s, int peer,
                               const uint8_t *from, uint64_t bytes, int goes,
                               struct rg_ll128_stream *stream_out)
{
    stream_out->places = rg_direct(call, peer, s->area, s->bytes);
    stream_out->from = from;
    stream_out->bytes = goes ? bytes : 0;
    stream_out->batches = rg_exchange_ll128_batches(s, goes);
    stream_out->peer = peer;
    return stream_out->places ? 0 : rg_fail(call, RG_EUNAVAILABLE, peer);
}

/* What is left of the user's bytes from batch b on. */
RG_FN uint64_t rg_ll128_left(const struct rg_ll128_stream *stream, uint64_t b)
{
    const uint64_t at = b * RG_LL128_PAYLOAD;

    return stream->bytes > at ? stream->bytes - at : 0;
}

RG_FN void rg_exchange_ll128_write(const struct rg_exchange_ll128 *s,
                                   const struct rg_ll128_stream *stream,
                                   uint64_t b)
{
    struct rg_ll128 batch;

    if (b >= stream->batches)
        return;
    rg_ll128_load(&s->worker.team, &batch, stream->from + b * RG_LL128_PAYLOAD,
                  rg_ll128_left(stream, b));
    rg_ll128_send(&s->worker.team,
                  stream->places + rg_exchange_ll128_at(s, s->rank, b), &batch,
                  s->tag);
}

/* A peer's batch. 0, or 1 for failed. */
RG_FN int rg_exchange_ll128_take(const struct rg_exchange_ll128 *s, int peer,
                                 uint64_t b, struct rg_ll128 *batch)
{
    return rg_ll128_wait(&s->worker,
                         s->inbox + rg_exchange_ll128_at(s, peer, b), s->tag,
                         peer, batch);
}

RG_FN int rg_exchange_ll128_read(const struct rg_exchange_ll128 *s,
                                 const struct rg_ll128_stream *stream,
                                 uint64_t b)
{
    struct rg_ll128 batch;

    if (b >= stream->batches)
        return 0;
    if (rg_exchange_ll128_take(s, stream->peer, b, &batch))
        return 1;
    rg_ll128_store(&s->worker.team, &batch, stream->to + b * RG_LL128_PAYLOAD,
                   rg_ll128_left(stream, b));
    return 0;
}

/* What the rank gives to itself: written by the worker that would send it. */
RG_FN struct rg_ll128_stream
rg_exchange_ll128_own(struct rg_call *call, const struct rg_blocks *blocks)
{
    const int rank = (int)call->plan->rank;
    struct rg_ll128_stream own = {0, 0, 0, 0, 0, rank};
    struct rg_span out, in;

    if (!rg_blocks_go(blocks->to, rank) || !rg_blocks_go(blocks->from, rank))
        return own;
    out = rg_blocks_span(call, blocks, 0, rank);
    in = rg_blocks_span(call, blocks, 1, rank);
    own.from = blocks->out + out.at;
    own.to = blocks->in + in.at;
    if (own.from != own.to)
        own.bytes = rg_min_u64(out.bytes, in.bytes);
    return own;
}

RG_FN void rg_exchange_ll128_keep(const struct rg_exchange_ll128 *s,
                                  const struct rg_ll128_stream *own, uint64_t b)
{
    const uint64_t left = rg_ll128_left(own, b);
    struct rg_ll128 batch;

    if (!left)
        return;
    rg_ll128_load(&s->worker.team, &batch, own->from + b * RG_LL128_PAYLOAD,
                  left);
    rg_ll128_store(&s->worker.team, &batch, own->to + b * RG_LL128_PAYLOAD,
                   left);
}

/* 0, or 1 for failed. */
RG_FN int rg_exchange_ll128_round(struct rg_call *call,
                                  const struct rg_exchange_ll128 *s,
                                  const struct rg_blocks *blocks,
                                  const struct rg_ll128_stream *own, int i)
{
    const int p = (s->rank + i) % s->nranks;
    const int q = (s->rank + s->nranks - i) % s->nranks;
    const int goes = rg_blocks_go(blocks->to, p);
    const int comes = rg_blocks_go(blocks->from, q);
    const struct rg_span out = rg_blocks_span(call, blocks, 0, p);
    const struct rg_span in = rg_blocks_span(call, blocks, 1, q);
    struct rg_ll128_stream writes, reads;

    if (rg_exchange_ll128_to(call, s, p, blocks->out + out.at, out.bytes, goes,
                             &writes))
        return 1;
    reads.to = blocks->in + in.at;
    reads.bytes = comes ? in.bytes : 0;
    reads.batches = rg_exchange_ll128_batches(s, comes);
    reads.peer = q;
    RG_ROLLED
    for (uint64_t b = s->begin; b < s->batches + s->step; b += s->step) {
        rg_exchange_ll128_write(s, &writes, b);
        if (i == 1)
            rg_exchange_ll128_keep(s, own, b);
        if (b >= s->step && rg_exchange_ll128_read(s, &reads, b - s->step))
            return 1;
    }
    return 0;
}

/* All of it, of bytes. 0, or 1 for failed. */
RG_FN int rg_exchange_ll128_run(struct rg_call *call,
                                const struct rg_blocks *blocks)
{
    const struct rg_exchange_ll128 s =
        rg_exchange_ll128_open(call, blocks->bytes);
    const struct rg_ll128_stream own = rg_exchange_ll128_own(call, blocks);

    RG_ROLLED
    for (int i = 1; i < s.nranks; i++)
        if (rg_exchange_ll128_round(call, &s, blocks, &own, i))
            return 1;
    return 0;
}

/* `blocks`: of how many a rank's largest buffer is made, for the limit. */
RG_FN uint64_t rg_exchange_ll128_layout(const struct rg_shape *shape,
                                        uint64_t blocks,
                                        struct rg_limits *limits_out)
{
    const uint64_t capacity = (uint64_t)shape->capacity;
    const uint64_t place = 2 * RG_LL128_BYTES * capacity;
    const uint64_t batches = rg_min_u64(
        shape->budget / place, RG_LL128_MOST / RG_LL128_PAYLOAD / capacity);

    limits_out->max_bytes = batches * RG_LL128_PAYLOAD * blocks;
    limits_out->max_chunk = 0;
    /* Two halves of a batch for each of the ranks. */
    limits_out->head = batches * place;
    limits_out->head_rate = place / (RG_LL128_PAYLOAD * blocks);
    return limits_out->head;
}

#endif
