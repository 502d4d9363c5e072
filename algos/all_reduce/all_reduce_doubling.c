/*
 * All-reduce by recursive doubling, with plain stores and release flags.
 *
 * Who sends what to whom is said in pattern/doubling.h. Each step of a turn,
 * of a chunk of b bytes, sends b bytes.
 *
 * Best for small buffers of ranks that are reached through a host: log2(n)
 * messages a rank, each with its signal, and as many waits. Where one shot has
 * a message to and from every other rank, here a message is on its way while
 * the other ranks of the host have its core.
 *
 * Slots and flags have one writer each: a step's sender does not change within
 * an epoch. A channel's turns count on from one invocation to the next, and a
 * step has two slots, taken by the turn's parity. That a slot may be written
 * again needs neither credit nor barrier:
 *   who writes a slot of turn i+2 has ended turn i+1. Its result needs the
 *   input of every rank, so every rank, also the slot's owner, has begun turn
 *   i+1 and sent something in it; and that it did behind its turn i, when it
 *   was done with all that it read in it.
 * What a rank sends it does not write before it has left: a put has read its
 * source when it returns.
 *
 *   area: full[channel][step 0 .. k+1], cursor[channel]   one word a line
 *         inbox[channel][step][parity][chunk]
 */
#include "algos/all_reduce/all_reduce.h"
#include "algos/pattern/doubling.h"
#include "runtime/device/reduce.h"
#include "runtime/device/transfer.h"

enum {
    RG_DOUBLING_DEPTH = 2,
    RG_DOUBLING_CHUNK = 64 << 10 /* bytes at most: it is for small buffers */
};

/* One channel of one invocation. */
struct all_reduce_doubling {
    uint64_t begin, end; /* elements */
    uint64_t chunk;      /* elements */
    uint64_t turns;
    uint64_t before; /* turns of earlier invocations */
    uint64_t full;   /* offsets in the region */
    uint64_t inbox;
    uint64_t slot; /* bytes */
    int lane;
    struct rg_doubling who;
};

/* Steps of any group that fits, so that places do not depend on its size. */
RG_FN uint64_t all_reduce_doubling_steps(int capacity)
{
    return (uint64_t)rg_doubling_rounds(capacity) + 2;
}

/* Words and lines of all channels, from the area's start. */
RG_FN uint64_t all_reduce_doubling_head(int capacity, uint64_t channels)
{
    return (all_reduce_doubling_steps(capacity) + 1) * channels * RG_LINE;
}

RG_FN uint64_t *all_reduce_doubling_cursor(const struct rg_call *call,
                                           int channel)
{
    const uint64_t words =
        all_reduce_doubling_steps((int)call->plan->capacity) *
            call->plan->max_channels +
        (uint64_t)channel;

    return (uint64_t *)(void *)rg_inbox(call,
                                        call->workspace + words * RG_LINE);
}

RG_FN struct all_reduce_doubling
all_reduce_doubling_open(const struct rg_call *call, int channel)
{
    const int capacity = (int)call->plan->capacity;
    const uint64_t first =
        all_reduce_doubling_steps(capacity) * (uint64_t)channel;
    struct all_reduce_doubling s;

    s.who = rg_doubling_of((int)call->plan->rank, (int)call->plan->nranks);
    s.lane = channel % RG_LANES;
    s.chunk = call->rule->chunk / sizeof(rg_elem);
    s.slot = call->rule->slot;
    rg_share_elems(call->count, channel, (int)call->rule->channels, &s.begin,
                   &s.end);
    s.turns = (s.end - s.begin + s.chunk - 1) / s.chunk;
    s.before = rg_load_relaxed(all_reduce_doubling_cursor(call, channel));
    s.full = call->workspace + first * RG_LINE;
    s.inbox = call->workspace +
              all_reduce_doubling_head(capacity, call->plan->max_channels) +
              first * RG_DOUBLING_DEPTH * s.slot;
    return s;
}

/* Offset of a step's slot in a turn. */
RG_FN uint64_t all_reduce_doubling_slot(const struct all_reduce_doubling *s,
                                        int step, uint64_t turn)
{
    return s->inbox +
           ((uint64_t)step * RG_DOUBLING_DEPTH + turn % RG_DOUBLING_DEPTH) *
               s->slot;
}

/* What has come, alone or with one's own, goes to recv; lower ranks first. */
RG_FN int all_reduce_doubling_take(struct rg_call *call, enum rg_op op,
                                   const struct all_reduce_doubling *s,
                                   const struct rg_doubling_hop *hop,
                                   uint64_t turn, uint64_t at, uint64_t n)
{
    rg_elem *to = (rg_elem *)call->recv + at;
    struct rg_sources from;

    if (rg_wait(call, hop->from, s->full + (uint64_t)hop->taken * RG_LINE,
                turn + 1))
        return 1;
    from.inbox = rg_inbox(call, all_reduce_doubling_slot(s, hop->taken, turn));
    if (!hop->own) {
        rg_team_copy(&call->team, to, from.inbox, n * sizeof(rg_elem));
        return 0;
    }
    from.own = (const uint8_t *)((const rg_elem *)hop->own + at);
    from.stride = 0;
    from.rank = hop->from < s->who.rank;
    from.count = 2;
    rg_team_reduce(&call->team, op, to, 0, &from, n, hop->divide);
    return 0;
}

/* One step of a turn. 0, or 1 for failed. */
RG_FN int all_reduce_doubling_step(struct rg_call *call, enum rg_op op,
                                   const struct all_reduce_doubling *s,
                                   const struct rg_doubling_hop *hop,
                                   uint64_t k)
{
    const uint64_t turn = s->before + k;
    const uint64_t at = s->begin + k * s->chunk;
    const uint64_t n = rg_min_u64(s->chunk, s->end - at);
    const void *made = hop->from >= 0 ? call->recv : hop->own;

    if (hop->from >= 0 &&
        all_reduce_doubling_take(call, op, s, hop, turn, at, n))
        return 1;
    if (hop->to < 0)
        return 0;
    /* Each thread reads what other threads of the team have made. */
    rg_team_barrier(&call->team);
    return rg_put_signal(
        call, hop->to, s->lane, all_reduce_doubling_slot(s, hop->sent, turn),
        (const rg_elem *)made + at, n * sizeof(rg_elem),
        s->full + (uint64_t)hop->sent * RG_LINE, RG_SIGNAL_SET, turn + 1);
}

/* One turn. 0, or 1 for failed. */
RG_FN int all_reduce_doubling_turn(struct rg_call *call, enum rg_op op,
                                   const struct all_reduce_doubling *s,
                                   uint64_t k)
{
    const int last = rg_doubling_last(&s->who);

    RG_ROLLED
    for (int t = 0; t <= last; t = rg_doubling_next(&s->who, t)) {
        const struct rg_doubling_hop hop =
            rg_doubling_hop_of(&s->who, t, call->send, call->recv);

        call->step = (uint64_t)t;
        if (all_reduce_doubling_step(call, op, s, &hop, k))
            return 1;
    }
    return 0;
}

/* One channel; 0, or 1 for failed. */
RG_FN int all_reduce_doubling_channel(struct rg_call *call, enum rg_op op,
                                      int channel)
{
    const struct all_reduce_doubling s =
        all_reduce_doubling_open(call, channel);

    RG_ROLLED
    for (uint64_t k = 0; k < s.turns; k++)
        if (all_reduce_doubling_turn(call, op, &s, k))
            return 1;
    rg_team_barrier(&call->team);
    if (call->team.thread == 0)
        rg_store_relaxed(all_reduce_doubling_cursor(call, channel),
                         s.before + s.turns);
    return 0;
}

RG_FN int all_reduce_doubling(struct rg_call *call, enum rg_op op)
{
    const int channels = (int)call->rule->channels;

    RG_ROLLED
    for (int c = call->team.index; c < channels; c += call->team.count)
        if (all_reduce_doubling_channel(call, op, c))
            return 1;
    return 0;
}

RG_ALGO_LAYOUT(all_reduce_doubling)
{
    const uint64_t channels = shape->max_channels;
    const uint64_t head = all_reduce_doubling_head(shape->capacity, channels);
    const uint64_t slots = channels * RG_DOUBLING_DEPTH *
                           all_reduce_doubling_steps(shape->capacity);
    const uint64_t room = shape->budget > head ? shape->budget - head : 0;

    limits_out->max_bytes = UINT64_MAX;
    limits_out->head = head;
    limits_out->max_chunk =
        rg_min_u64(rg_chunk_round(room / slots), RG_DOUBLING_CHUNK);
    if (!limits_out->max_chunk)
        return 0;
    return head + slots * limits_out->max_chunk;
}

RG_ALGO(all_reduce_doubling, "doubling", RG_COLL_all_reduce, 0, 1,
        RG_MAX_SLOTS);
