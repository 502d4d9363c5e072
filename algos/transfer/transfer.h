/*
 * What the programs of transfer probes share: a rank's place in the workspace,
 * and the words and payloads of lanes in it.
 *
 *   area: full[lane][from], credit[lane][from]  one word a line
 *         landing[from][lane]                   as the request has it
 *
 * `full` says what has landed from a rank, `credit` what it may send. Words
 * count turns: those of an invocation lie above all of earlier ones, whoever
 * took part in them, so the first signal on a word sets it.
 */
#ifndef RG_TRANSFER_H
#define RG_TRANSFER_H

#include "algos/transfer/request.h"
#include "runtime/algo.h"
#include "runtime/device/transfer.h"

#define RG_ENTRIES rg_transfer_entries
extern const struct rg_entries rg_transfer_entries;

enum {
    TRANSFER_LEAST = 4096,   /* bytes of a rank's landing */
    TRANSFER_STALE = 0xa4,   /* a byte that no payload has */
    TRANSFER_TURN_BITS = 24, /* the invocation counts above them */
};

static_assert((int)RG_TRANSFER_LANES == (int)RG_LANES, "all of them");
static_assert(RG_TRANSFER_TURNS_MAX + 2 < 1 << TRANSFER_TURN_BITS, "they fit");

/* One team's thread in one invocation. */
struct transfer {
    struct rg_transfer_request ask;
    struct rg_transfer_report *report;
    uint64_t full, credit, landing; /* offsets in the region */
    uint64_t place;                 /* bytes of a lane's part of a landing */
    uint64_t base;                  /* what turns are counted from */
    int rank, nranks, capacity, lanes;
};

RG_FN uint64_t transfer_head(uint64_t capacity)
{
    return 2 * RG_LANES * capacity * RG_LINE;
}

RG_ALGO_LAYOUT(transfer)
{
    const uint64_t capacity = (uint64_t)shape->capacity;
    const uint64_t head = transfer_head(capacity);
    const uint64_t room = shape->budget > head ? shape->budget - head : 0;
    const uint64_t landing = room / capacity / 16 * 16;

    if (landing < TRANSFER_LEAST)
        return 0;
    limits_out->max_bytes = landing;
    limits_out->max_chunk = landing;
    limits_out->head = head;
    return head + capacity * landing;
}

/* The word of a lane that rank `from` publishes; the same at every rank. */
RG_FN uint64_t transfer_word(const struct transfer *s, uint64_t words, int lane,
                             int from)
{
    return words +
           ((uint64_t)lane * (uint64_t)s->capacity + (uint64_t)from) * RG_LINE;
}

/* Where a payload of rank `from` lands, with its guard before it. */
RG_FN uint64_t transfer_place(const struct transfer *s, int lane, int from)
{
    return s->landing + (uint64_t)(from * s->lanes + lane) * s->place;
}

/* This rank's payload for a lane. */
RG_FN uint8_t *transfer_source(const struct transfer *s, int lane)
{
    return s->ask.source + (uint64_t)lane * rg_transfer_room(&s->ask) +
           RG_TRANSFER_GUARD + s->ask.offset;
}

RG_FN struct transfer transfer_open(const struct rg_call *call)
{
    const uint64_t capacity = call->plan->capacity;
    struct transfer s;

    s.ask = *(const struct rg_transfer_request *)(const void *)call->send;
    s.report = (struct rg_transfer_report *)(void *)call->recv;
    s.rank = (int)call->plan->rank;
    s.nranks = (int)call->plan->nranks;
    s.capacity = (int)capacity;
    s.lanes = (int)s.ask.lanes;
    s.full = call->workspace;
    s.credit = s.full + RG_LANES * capacity * RG_LINE;
    s.landing = call->workspace + transfer_head(capacity);
    s.place = rg_transfer_place_bytes(&s.ask);
    s.base = (call->seq - call->plan->first_seq + 1) << TRANSFER_TURN_BITS;
    return s;
}

/* Tells a peer that this rank's landing is free for so many turns. */
RG_FN int transfer_allow(struct rg_call *call, const struct transfer *s,
                         int lane, int peer, uint64_t turns)
{
    return rg_signal(call, peer, lane,
                     transfer_word(s, s->credit, lane, s->rank), RG_SIGNAL_SET,
                     s->base + turns);
}

RG_FN int transfer_allowed(struct rg_call *call, const struct transfer *s,
                           int lane, int peer, uint64_t turns)
{
    return rg_wait(call, peer, transfer_word(s, s->credit, lane, peer),
                   s->base + turns);
}

/* Waits until so many turns have landed. */
RG_FN int transfer_landed(struct rg_call *call, const struct transfer *s,
                          int lane, int peer, uint64_t turns)
{
    return rg_wait(call, peer, transfer_word(s, s->full, lane, peer),
                   s->base + turns);
}

/* The lane's payload, `at` bytes into the place, as the turns'th one. */
RG_FN int transfer_send(struct rg_call *call, const struct transfer *s,
                        int lane, int peer, uint64_t at, uint64_t turns)
{
    const int add = s->ask.adds && turns > 1;

    return rg_put_signal(call, peer, lane,
                         transfer_place(s, lane, s->rank) + at +
                             RG_TRANSFER_GUARD + s->ask.offset,
                         transfer_source(s, lane), s->ask.bytes,
                         transfer_word(s, s->full, lane, s->rank),
                         add ? RG_SIGNAL_ADD : RG_SIGNAL_SET,
                         add ? 1 : s->base + turns);
}

#endif
