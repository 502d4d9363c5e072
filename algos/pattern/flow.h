/*
 * Flows: for each ordered pair of ranks and each channel a stream of messages,
 * of at most a chunk each, with credits. The writer waits until the reader has
 * given back the slot that it is to write, so nothing depends on who else takes
 * part: an invocation may use any of the pairs, in any number, as long as both
 * ends of each agree on it.
 *
 *   area: full[channel][writer], credit[channel][reader]   one word a line
 *         sent[channel][reader], taken[channel][writer]    side by side
 *         inbox[channel][writer][depth][slot]
 *
 * full counts the messages that have landed from a writer, credit those that a
 * reader has done with; sent and taken are how many there were in earlier
 * invocations, kept by the own teams alone. All of them count from the epoch's
 * start, so every algorithm may use the same area: what the last invocation
 * has left at one end, it has left at the other.
 *
 * A channel's writing end is one team's at a time, and so is its reading end.
 */
#ifndef RG_PATTERN_FLOW_H
#define RG_PATTERN_FLOW_H

#include "runtime/algo.h"
#include "runtime/device/share.h"
#include "runtime/device/transfer.h"

#define RG_FLOW_AREA "flow"

enum {
    RG_FLOW_DEPTH = 4,
    RG_FLOW_MAX_RANKS = 256,
    RG_FLOW_MAX_CHUNK = 1 << 18 /* bytes */
};

/* One channel of one invocation. */
struct rg_flow {
    uint64_t full, credit; /* offsets in every region */
    uint64_t inbox;
    uint64_t slot;          /* bytes of a message's place */
    uint64_t chunk;         /* bytes of a message, at most */
    uint64_t *sent, *taken; /* by dense rank */
    int channel, lane;
    int rank, nranks;
    /* What is known already: messages to `reader` below turn `room` have a free
     * slot; those from `writer` below `landed` are here. */
    int reader, writer;
    uint64_t room, landed;
};

/* Bytes of a channel's words, and of those counters. */
RG_FN uint64_t rg_flow_words(uint64_t capacity)
{
    const uint64_t counters = 2 * capacity * sizeof(uint64_t);

    return 2 * capacity * RG_LINE +
           (counters + RG_LINE - 1) / RG_LINE * RG_LINE;
}

RG_FN uint64_t rg_flow_head(uint64_t capacity, uint64_t channels)
{
    return channels * rg_flow_words(capacity);
}

RG_FN struct rg_flow rg_flow_open(const struct rg_call *call, int channel)
{
    const uint64_t capacity = call->plan->capacity;
    const uint64_t c = (uint64_t)channel;
    struct rg_flow flow;

    flow.full = call->workspace + c * rg_flow_words(capacity);
    flow.credit = flow.full + capacity * RG_LINE;
    flow.sent =
        (uint64_t *)(void *)rg_inbox(call, flow.credit + capacity * RG_LINE);
    flow.taken = flow.sent + capacity;
    flow.slot = call->rule->slot;
    flow.chunk = call->rule->chunk;
    flow.inbox = call->workspace +
                 rg_flow_head(capacity, call->plan->max_channels) +
                 c * (capacity - 1) * RG_FLOW_DEPTH * flow.slot;
    flow.channel = channel;
    flow.lane = channel % RG_LANES;
    flow.rank = (int)call->plan->rank;
    flow.nranks = (int)call->plan->nranks;
    flow.reader = flow.writer = -1;
    flow.room = flow.landed = 0;
    return flow;
}

/* Where `writer` puts a turn's message at `reader`. */
RG_FN uint64_t rg_flow_slot(const struct rg_flow *flow, int writer, int reader,
                            uint64_t turn)
{
    const uint64_t index = (uint64_t)(writer < reader ? writer : writer - 1);

    return flow->inbox +
           (index * RG_FLOW_DEPTH + turn % RG_FLOW_DEPTH) * flow->slot;
}

/*
 * Waits until the word that a peer publishes has reached a value: what it says
 * by then, below the value for failed. So a team need not meet before each
 * message: while its first thread still waits for the last signal's payload to
 * land, the others copy the next.
 */
RG_FN uint64_t rg_flow_wait(struct rg_call *call, int peer, uint64_t word,
                            uint64_t value)
{
    uint64_t says = 0;

    if (call->team.thread == 0 &&
        rg_wait_says(call, (const uint64_t *)(const void *)rg_inbox(call, word),
                     value, peer, &says))
        says = value - 1;
    return rg_team_share_word(&call->team, says);
}

/* ---- the writing end, team calls: 0, or 1 for failed --------------------- */

/* Waits until a turn's slot at the peer is free. */
RG_FN int rg_flow_room(struct rg_call *call, struct rg_flow *flow, int peer,
                       uint64_t turn)
{
    if (peer == flow->reader && (int64_t)(flow->room - turn) > 0)
        return 0;
    flow->room =
        RG_FLOW_DEPTH + rg_flow_wait(call, peer,
                                     flow->credit + (uint64_t)peer * RG_LINE,
                                     turn + 1 - RG_FLOW_DEPTH);
    flow->reader = peer;
    return (int64_t)(flow->room - turn) <= 0;
}

/* Message k of this invocation to a peer; it may be empty. */
RG_FN int rg_flow_put(struct rg_call *call, struct rg_flow *flow, int peer,
                      uint64_t k, const void *src, uint64_t bytes)
{
    const uint64_t turn = flow->sent[peer] + k;
    const uint64_t word = flow->full + (uint64_t)flow->rank * RG_LINE;

    if (rg_flow_room(call, flow, peer, turn))
        return 1;
    return rg_put_signal(call, peer, flow->lane,
                         rg_flow_slot(flow, flow->rank, peer, turn), src, bytes,
                         word, RG_SIGNAL_SET, turn + 1);
}

/* Behind the last of so many messages to the peer. */
RG_FN void rg_flow_sent(struct rg_call *call, const struct rg_flow *flow,
                        int peer, uint64_t messages)
{
    rg_team_barrier(&call->team);
    if (call->team.thread == 0)
        flow->sent[peer] += messages;
}

/* ---- the reading end ----------------------------------------------------- */

/* Waits for message k from a peer: where it lies, or null for failed. */
RG_FN uint8_t *rg_flow_take(struct rg_call *call, struct rg_flow *flow,
                            int peer, uint64_t k)
{
    const uint64_t turn = flow->taken[peer] + k;

    if (peer != flow->writer || (int64_t)(flow->landed - turn) <= 0) {
        flow->landed = rg_flow_wait(
            call, peer, flow->full + (uint64_t)peer * RG_LINE, turn + 1);
        flow->writer = peer;
        if ((int64_t)(flow->landed - turn) <= 0)
            return 0;
    }
    return rg_inbox(call, rg_flow_slot(flow, peer, flow->rank, turn));
}

/* The team is done with message k: its slot may be written again. */
RG_FN int rg_flow_give(struct rg_call *call, const struct rg_flow *flow,
                       int peer, uint64_t k)
{
    const uint64_t turn = flow->taken[peer] + k;

    return rg_signal(call, peer, flow->lane,
                     flow->credit + (uint64_t)flow->rank * RG_LINE,
                     RG_SIGNAL_CREDIT, turn + 1);
}

RG_FN void rg_flow_taken(struct rg_call *call, const struct rg_flow *flow,
                         int peer, uint64_t messages)
{
    rg_team_barrier(&call->team);
    if (call->team.thread == 0)
        flow->taken[peer] += messages;
}

/* ---- layout -------------------------------------------------------------- */

RG_FN uint64_t rg_flow_layout(const struct rg_shape *shape,
                              struct rg_limits *limits_out)
{
    const uint64_t channels = (uint64_t)shape->max_channels;
    const uint64_t peers = rg_max_u64((uint64_t)shape->capacity - 1, 1);
    const uint64_t head = rg_flow_head((uint64_t)shape->capacity, channels);
    const uint64_t slots = channels * peers * RG_FLOW_DEPTH;
    const uint64_t room = shape->budget > head ? shape->budget - head : 0;

    if (shape->capacity > RG_FLOW_MAX_RANKS)
        return 0;
    limits_out->max_bytes = UINT64_MAX;
    limits_out->head = head;
    limits_out->max_chunk =
        rg_chunk_round(rg_min_u64(room / slots, RG_FLOW_MAX_CHUNK));
    if (!limits_out->max_chunk)
        return 0;
    return head + slots * limits_out->max_chunk;
}

#endif
