/*
 * All-reduce, one shot with plain stores and one release flag a chunk.
 *
 *   1. chunk k of the input goes to every other rank     (n-1) x chunk bytes
 *   2. once chunk k of every rank is here, it is reduced in rank order
 *   3. the slot is given back to its writer: one credit
 *
 * Given two teams a channel, one pushes (1) while the other reduces (2, 3);
 * a single team takes turns. Slots are a ring of `depth` chunks per writer,
 * so a writer is at most depth chunks ahead. In place, the signal behind a
 * chunk's last push is set here too: it may be overwritten only after that.
 * At two ranks this moves the fewest possible bytes at every size.
 *
 *   area: full[channel][rank], credit[channel][rank]  one word a line
 *         cursor[channel]{pushed, reduced}            one word a line
 *         inbox[channel][writer][depth][chunk]
 */
#include "algos/all_reduce/all_reduce.h"
#include "runtime/device/reduce.h"
#include "runtime/device/transfer.h"

enum { RG_ONESHOT_DEPTH = 4, RG_ONESHOT_MAX_RANKS = 64 };

/* Offsets from the area's start, for a capacity and a channel count. */
RG_FN uint64_t all_reduce_oneshot_full(uint64_t capacity, uint64_t channel)
{
    return channel * capacity * RG_LINE;
}

RG_FN uint64_t all_reduce_oneshot_credit(uint64_t capacity, uint64_t channels,
                                         uint64_t channel)
{
    return (channels + channel) * capacity * RG_LINE;
}

RG_FN uint64_t all_reduce_oneshot_cursor(uint64_t capacity, uint64_t channels,
                                         uint64_t channel)
{
    return (2 * channels * capacity + 2 * channel) * RG_LINE;
}

RG_FN uint64_t all_reduce_oneshot_inbox(uint64_t capacity, uint64_t channels)
{
    return 2 * channels * (capacity + 1) * RG_LINE;
}

/* One channel of one invocation. */
struct all_reduce_oneshot {
    uint64_t begin, end; /* elements */
    uint64_t chunk;      /* elements */
    uint64_t steps;
    uint64_t pushed;  /* steps of earlier invocations */
    uint64_t reduced; /* the same, at the reducing team */
    uint64_t full;    /* offsets in the region */
    uint64_t credit;
    uint64_t inbox;
    uint64_t stride; /* bytes between two writers' rings */
    int channel;
    int rank, nranks;
    int in_place;
};

RG_FN uint64_t *all_reduce_oneshot_cursors(const struct rg_call *call,
                                           int channel)
{
    return (uint64_t *)rg_inbox(
        call,
        call->workspace + all_reduce_oneshot_cursor(call->plan->capacity,
                                                    call->plan->max_channels,
                                                    (uint64_t)channel));
}

RG_FN struct all_reduce_oneshot
all_reduce_oneshot_open(const struct rg_call *call, int channel)
{
    const uint64_t capacity = call->plan->capacity;
    const uint64_t channels = call->plan->max_channels;
    const uint64_t *cursor = all_reduce_oneshot_cursors(call, channel);
    struct all_reduce_oneshot s;

    s.channel = channel;
    s.rank = (int)call->plan->rank;
    s.nranks = (int)call->plan->nranks;
    s.chunk = call->rule->chunk / sizeof(rg_elem);
    rg_share_elems(call->count, channel, (int)call->rule->channels, &s.begin,
                   &s.end);
    s.steps = (s.end - s.begin + s.chunk - 1) / s.chunk;
    s.pushed = rg_load_relaxed(&cursor[0]);
    s.reduced = rg_load_relaxed(&cursor[RG_LINE / sizeof *cursor]);
    s.in_place = call->send == call->recv;
    s.full =
        call->workspace + all_reduce_oneshot_full(capacity, (uint64_t)channel);
    s.credit = call->workspace +
               all_reduce_oneshot_credit(capacity, channels, (uint64_t)channel);
    s.stride = (uint64_t)RG_ONESHOT_DEPTH * call->rule->slot;
    s.inbox = call->workspace + all_reduce_oneshot_inbox(capacity, channels) +
              (uint64_t)channel * (capacity - 1) * s.stride;
    return s;
}

RG_FN uint64_t all_reduce_oneshot_at(const struct all_reduce_oneshot *s,
                                     uint64_t k, uint64_t *n_out)
{
    const uint64_t at = s->begin + k * s->chunk;

    *n_out = rg_min_u64(s->chunk, s->end - at);
    return at;
}

/* Step 1 for chunk k. 0, or 1 for failed. */
RG_FN int all_reduce_oneshot_push(struct rg_call *call,
                                  const struct all_reduce_oneshot *s,
                                  uint64_t k)
{
    const uint64_t turn = s->pushed + k;
    const uint64_t flag = s->full + (uint64_t)s->rank * RG_LINE;
    const int lane = s->channel % RG_LANES;
    uint64_t n, at = all_reduce_oneshot_at(s, k, &n);

    if (rg_wait_all(call, s->credit, RG_LINE, s->nranks, s->rank,
                    turn + 1 - RG_ONESHOT_DEPTH))
        return 1;
    for (int i = 1; i < s->nranks; i++) {
        const int peer = (s->rank + i) % s->nranks;
        const uint64_t slot =
            s->inbox + (uint64_t)rg_peer_index(s->rank, peer) * s->stride +
            turn % RG_ONESHOT_DEPTH * call->rule->slot;

        const rg_elem *src = (const rg_elem *)call->send + at;
        const uint64_t bytes = n * sizeof(rg_elem);
        int failed;

        if (s->in_place && i == s->nranks - 1)
            failed = rg_put_signal_both(call, peer, lane, slot, src, bytes,
                                        flag, turn + 1);
        else
            failed = rg_put_signal(call, peer, lane, slot, src, bytes, flag,
                                   RG_SIGNAL_SET, turn + 1);
        if (failed)
            return 1;
    }
    return 0;
}

/* Steps 2 and 3 for chunk k. 0, or 1 for failed. */
RG_FN int all_reduce_oneshot_reduce(struct rg_call *call, enum rg_op op,
                                    const struct all_reduce_oneshot *s,
                                    uint64_t k)
{
    const uint64_t turn = s->reduced + k;
    uint64_t n, at = all_reduce_oneshot_at(s, k, &n);
    struct rg_sources from;

    if (rg_wait_all(call, s->full, RG_LINE, s->nranks,
                    s->in_place ? -1 : s->rank, turn + 1))
        return 1;
    from.own = (const uint8_t *)((const rg_elem *)call->send + at);
    from.inbox =
        rg_inbox(call, s->inbox + turn % RG_ONESHOT_DEPTH * call->rule->slot);
    from.stride = s->stride;
    from.rank = s->rank;
    from.count = s->nranks;
    rg_team_reduce(&call->team, op, (rg_elem *)call->recv + at, 0, &from, n,
                   s->nranks);
    return rg_signal_all(call, s->channel % RG_LANES,
                         s->credit + (uint64_t)s->rank * RG_LINE,
                         RG_SIGNAL_CREDIT, turn + 1);
}

/* One channel; 0, or 1 for failed. */
RG_FN int all_reduce_oneshot_channel(struct rg_call *call, enum rg_op op,
                                     int channel, int push, int reduce)
{
    const struct all_reduce_oneshot s = all_reduce_oneshot_open(call, channel);
    uint64_t *cursor = all_reduce_oneshot_cursors(call, channel);

    for (uint64_t k = 0; k < s.steps; k++) {
        call->step = k;
        if (push && all_reduce_oneshot_push(call, &s, k))
            return 1;
        if (reduce && all_reduce_oneshot_reduce(call, op, &s, k))
            return 1;
    }
    rg_team_barrier(&call->team);
    if (call->team.thread == 0 && push)
        rg_store_relaxed(&cursor[0], s.pushed + s.steps);
    if (call->team.thread == 0 && reduce)
        rg_store_relaxed(&cursor[RG_LINE / sizeof *cursor],
                         s.reduced + s.steps);
    return 0;
}

RG_FN int all_reduce_oneshot(struct rg_call *call, enum rg_op op)
{
    const int channels = (int)call->rule->channels;
    const struct rg_roles roles = rg_roles_of(&call->team, channels);

    for (int c = roles.channel; c < channels; c += roles.step)
        if (all_reduce_oneshot_channel(call, op, c, roles.first, roles.second))
            return 1;
    return 0;
}

RG_ALGO_LAYOUT(all_reduce_oneshot)
{
    const uint64_t channels = shape->max_channels;
    const uint64_t head = all_reduce_oneshot_inbox(shape->capacity, channels);
    const uint64_t slots = channels * RG_ONESHOT_DEPTH *
                           rg_max_u64((uint64_t)shape->capacity - 1, 1);
    const uint64_t room = shape->budget > head ? shape->budget - head : 0;

    if (shape->capacity > RG_ONESHOT_MAX_RANKS)
        return 0;
    limits_out->max_bytes = UINT64_MAX;
    limits_out->head = head;
    limits_out->max_chunk = rg_chunk_round(room / slots);
    return head + slots * limits_out->max_chunk;
}

RG_ALGO(all_reduce_oneshot, "oneshot", RG_COLL_all_reduce, 0, 1,
        RG_ONESHOT_MAX_RANKS);
