/*
 * What a rank gives to each other rank and gets from it, for collectives that
 * only move blocks. Blocks are of slots; peers are dense ranks.
 */
#ifndef RG_PATTERN_BLOCKS_H
#define RG_PATTERN_BLOCKS_H

#include "runtime/device/share.h"
#include "runtime/device/transfer.h"

enum { RG_TO_ALL = -1, RG_TO_NOBODY = -2 }; /* else the one dense rank */

struct rg_blocks {
    const uint8_t *out;    /* slot s gets what lies at out + s * out_step */
    uint8_t *in;           /* what comes from slot s goes to in + s * in_step */
    uint64_t out_step;     /* bytes; 0: all get the same */
    uint64_t in_step;      /* 0: there is one writer */
    uint64_t bytes;        /* of a block: the same for all pairs, or the most */
    int to, from;          /* RG_TO_*: whom the own data goes to; from whom */
    const uint64_t *pairs; /* all_to_all_v's layout (regroup.h), or null */
    uint64_t room[2];      /* with it: bytes of the whole buffers */
    uint64_t unit;         /* with it: bytes of what it counts */
    int slots;
};

/* A pair's bytes at this end. */
struct rg_span {
    uint64_t at; /* from the buffer's start */
    uint64_t bytes;
};

RG_FN int rg_slot_of(const struct rg_call *call, int peer)
{
    return (int)call->plan->routes[peer].slot;
}

RG_FN int rg_blocks_go(int whom, int peer)
{
    return whom == RG_TO_ALL || whom == peer;
}

/* Of a layout, what lies within the buffer, and no more than the most. */
RG_FN struct rg_span rg_blocks_pair(const struct rg_blocks *blocks, int way,
                                    int slot)
{
    const uint64_t *counts =
        blocks->pairs + (uint64_t)(2 * way * blocks->slots + slot);
    const uint64_t room = blocks->room[way] / blocks->unit;
    const uint64_t at = rg_min_u64(counts[blocks->slots], room);
    const uint64_t most = rg_min_u64(room - at, blocks->bytes / blocks->unit);
    const struct rg_span span = {at * blocks->unit,
                                 rg_min_u64(counts[0], most) * blocks->unit};

    return span;
}

/* What goes to (way 0), or comes from (way 1), a peer. */
RG_FN struct rg_span rg_blocks_span(const struct rg_call *call,
                                    const struct rg_blocks *blocks, int way,
                                    int peer)
{
    const int slot = rg_slot_of(call, peer);
    const uint64_t step = way ? blocks->in_step : blocks->out_step;
    const struct rg_span span = {(uint64_t)slot * step, blocks->bytes};

    return blocks->pairs ? rg_blocks_pair(blocks, way, slot) : span;
}

/* The part of it in [begin, end) of a pair's bytes. */
RG_FN struct rg_span rg_span_cut(struct rg_span span, uint64_t begin,
                                 uint64_t end)
{
    const uint64_t from = rg_min_u64(begin, span.bytes);
    const struct rg_span cut = {span.at + from,
                                rg_min_u64(end, span.bytes) - from};

    return cut;
}

/* Bytes [begin, end) of what the rank gives to itself. */
RG_FN void rg_blocks_own(struct rg_call *call, const struct rg_blocks *blocks,
                         uint64_t begin, uint64_t end)
{
    const int rank = (int)call->plan->rank;
    struct rg_span out, in;

    if (!rg_blocks_go(blocks->to, rank) || !rg_blocks_go(blocks->from, rank))
        return;
    out = rg_span_cut(rg_blocks_span(call, blocks, 0, rank), begin, end);
    in = rg_span_cut(rg_blocks_span(call, blocks, 1, rank), begin, end);
    if (blocks->out + out.at != blocks->in + in.at)
        rg_team_copy(&call->team, blocks->in + in.at, blocks->out + out.at,
                     rg_min_u64(out.bytes, in.bytes));
}

/* A group of one rank: what it gives to itself. */
RG_FN void rg_blocks_alone(struct rg_call *call, const struct rg_blocks *blocks)
{
    uint64_t begin, end;

    rg_share_elems(blocks->bytes, call->team.index, call->team.count, &begin,
                   &end);
    rg_blocks_own(call, blocks, begin, end);
}

#endif
