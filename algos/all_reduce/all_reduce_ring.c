/*
 * All-reduce over a ring: reduce-scatter, then all-gather, pipelined.
 *
 * A round serves n parts of at most a chunk each; pattern/ring.h says which
 * part moves when. Per rank and round, with parts of b bytes:
 *
 *   1. send own part                                             b bytes
 *   2. n-2 times: receive, reduce with the input, send on        b each
 *   3. receive, reduce to the final value, keep it, send it on   b
 *   4. n-2 times: receive a final part, keep it, send it on      b each
 *   5. receive the last final part
 *
 * 2 (n-1) b sent in 2 (n-1) hops: optimal bandwidth for any n >= 2. Each
 * channel is a ring of its own over its share of the data; the inbox is a
 * ring of `depth` chunks written by the previous rank only.
 *
 *   area: full[channel], credit[channel], cursor[channel]  one word a line
 *         inbox[channel][depth][chunk]
 */
#include "algos/all_reduce/all_reduce.h"
#include "algos/pattern/ring.h"
#include "runtime/device/reduce.h"
#include "runtime/device/transfer.h"

enum { RG_RING_DEPTH = 4 };

struct all_reduce_ring {
    uint64_t turn;                /* hops of earlier rounds and invocations */
    uint64_t chunk;               /* bytes */
    uint64_t slot;                /* bytes between two chunks' places */
    uint64_t full, credit, inbox; /* offsets in the region */
    uint64_t base;                /* this round's first element */
    uint64_t part;                /* elements of a part in this round */
    uint64_t end;                 /* this channel's end */
    int rank, nranks, next, prev, lane;
};

/* Part j of the round: its first element, and its length. */
RG_FN uint64_t all_reduce_ring_part(const struct all_reduce_ring *s, int j,
                                    uint64_t *n_out)
{
    const uint64_t at = rg_min_u64(s->base + (uint64_t)j * s->part, s->end);

    *n_out = rg_min_u64(s->part, s->end - at);
    return at;
}

/* Waits for room at the next rank; its slot's offset. 0, or 1 for failed. */
RG_FN int all_reduce_ring_room(struct rg_call *call,
                               const struct all_reduce_ring *s, int hop,
                               uint64_t *slot_out)
{
    const uint64_t turn = s->turn + (uint64_t)hop;

    *slot_out = s->inbox + turn % RG_RING_DEPTH * s->slot;
    return rg_wait(call, s->next, s->credit, turn + 1 - RG_RING_DEPTH);
}

/* Tells the next rank that hop `hop` has landed. */
RG_FN int all_reduce_ring_sent(struct rg_call *call,
                               const struct all_reduce_ring *s, int hop)
{
    return rg_signal(call, s->next, s->lane, s->full, RG_SIGNAL_SET,
                     s->turn + (uint64_t)hop + 1);
}

/* Gives the slot of receive step t back to the previous rank. */
RG_FN int all_reduce_ring_free(struct rg_call *call,
                               const struct all_reduce_ring *s, int t)
{
    return rg_signal(call, s->prev, s->lane, s->credit, RG_SIGNAL_CREDIT,
                     s->turn + (uint64_t)t + 1);
}

/* Step 1. */
RG_FN int all_reduce_ring_start(struct rg_call *call,
                                const struct all_reduce_ring *s)
{
    uint64_t n, at = all_reduce_ring_part(s, s->rank, &n), slot;

    if (all_reduce_ring_room(call, s, 0, &slot))
        return 1;
    if (rg_put(call, s->next, s->lane, slot, (const rg_elem *)call->send + at,
               n * sizeof(rg_elem)))
        return 1;
    return all_reduce_ring_sent(call, s, 0);
}

/*
 * Steps 2 and 3: reduce what arrived with the own input. A middle result goes
 * straight to the next rank where its memory can be stored to, else over recv,
 * whose part is written for good only in step 3 or later.
 */
RG_FN int all_reduce_ring_reduce(struct rg_call *call, enum rg_op op,
                                 const struct all_reduce_ring *s, int t,
                                 uint64_t from_slot, uint64_t slot)
{
    uint64_t n,
        at = all_reduce_ring_part(s, rg_ring_part(s->rank, t, s->nranks), &n);
    const int final = t == s->nranks - 2;
    rg_elem *out = (rg_elem *)call->recv + at;
    uint8_t *direct = rg_direct(call, s->next, slot, n * sizeof(rg_elem));
    struct rg_sources from;

    from.own = (const uint8_t *)((const rg_elem *)call->send + at);
    from.inbox = rg_inbox(call, from_slot);
    from.stride = 0;
    from.rank = 1;
    from.count = 2;
    if (direct && !final)
        rg_team_reduce(&call->team, op, direct, 0, &from, n, 0);
    else
        rg_team_reduce(&call->team, op, out, direct, &from, n,
                       final ? s->nranks : 0);
    if (direct)
        return 0;
    rg_team_barrier(&call->team);
    return rg_put(call, s->next, s->lane, slot, out, n * sizeof(rg_elem));
}

/* Steps 4 and 5: keep what arrived, and send it on unless it is the last. */
RG_FN int all_reduce_ring_gather(struct rg_call *call,
                                 const struct all_reduce_ring *s, int t,
                                 uint64_t from_slot, uint64_t slot, int last)
{
    uint64_t n,
        at = all_reduce_ring_part(s, rg_ring_part(s->rank, t, s->nranks), &n);
    const uint8_t *from = rg_inbox(call, from_slot);

    rg_team_copy(&call->team, (rg_elem *)call->recv + at, from,
                 n * sizeof(rg_elem));
    if (last)
        return 0;
    return rg_put(call, s->next, s->lane, slot, from, n * sizeof(rg_elem));
}

/* Receive step t with what it sends on. */
RG_FN int all_reduce_ring_hop(struct rg_call *call, enum rg_op op,
                              const struct all_reduce_ring *s, int t)
{
    const int last = t == 2 * s->nranks - 3;
    const uint64_t turn = s->turn + (uint64_t)t;
    const uint64_t from_slot = s->inbox + turn % RG_RING_DEPTH * s->slot;
    uint64_t slot = 0;
    int failed;

    if (rg_wait(call, s->prev, s->full, turn + 1))
        return 1;
    if (!last && all_reduce_ring_room(call, s, t + 1, &slot))
        return 1;
    if (t < s->nranks - 1)
        failed = all_reduce_ring_reduce(call, op, s, t, from_slot, slot);
    else
        failed = all_reduce_ring_gather(call, s, t, from_slot, slot, last);
    if (failed || (!last && all_reduce_ring_sent(call, s, t + 1)))
        return 1;
    return all_reduce_ring_free(call, s, t);
}

RG_FN uint64_t *all_reduce_ring_cursor(const struct rg_call *call, int channel)
{
    const uint64_t channels = call->plan->max_channels;

    return (uint64_t *)rg_inbox(
        call, call->workspace + (2 * channels + (uint64_t)channel) * RG_LINE);
}

RG_FN struct all_reduce_ring all_reduce_ring_open(const struct rg_call *call,
                                                  int channel)
{
    const uint64_t channels = call->plan->max_channels;
    const uint64_t c = (uint64_t)channel;
    struct all_reduce_ring s;

    s.turn = rg_load_relaxed(all_reduce_ring_cursor(call, channel));
    s.chunk = call->rule->chunk;
    s.slot = call->rule->slot;
    s.full = call->workspace + c * RG_LINE;
    s.credit = call->workspace + (channels + c) * RG_LINE;
    s.inbox =
        call->workspace + 3 * channels * RG_LINE + c * RG_RING_DEPTH * s.slot;
    s.rank = (int)call->plan->rank;
    s.nranks = (int)call->plan->nranks;
    s.next = rg_ring_next(s.rank, s.nranks);
    s.prev = rg_ring_prev(s.rank, s.nranks);
    s.lane = channel % RG_LANES;
    s.part = 0;
    rg_share_elems(call->count, channel, (int)call->rule->channels, &s.base,
                   &s.end);
    return s;
}

/* All rounds of one channel; 0, or 1 for failed. */
RG_FN int all_reduce_ring_channel(struct rg_call *call, enum rg_op op,
                                  int channel)
{
    struct all_reduce_ring s = all_reduce_ring_open(call, channel);
    const uint64_t most = s.chunk / sizeof(rg_elem);
    const int hops = 2 * s.nranks - 2;

    while (s.base < s.end) {
        s.part =
            rg_min_u64(rg_part_round((s.end - s.base + (uint64_t)s.nranks - 1) /
                                     (uint64_t)s.nranks),
                       most);
        if (all_reduce_ring_start(call, &s))
            return 1;
        for (int t = 0; t < hops; t++) {
            call->step = (uint64_t)t;
            if (all_reduce_ring_hop(call, op, &s, t))
                return 1;
        }
        s.turn += (uint64_t)hops;
        s.base = rg_min_u64(s.base + s.part * (uint64_t)s.nranks, s.end);
    }
    rg_team_barrier(&call->team);
    if (call->team.thread == 0)
        rg_store_relaxed(all_reduce_ring_cursor(call, channel), s.turn);
    return 0;
}

RG_FN int all_reduce_ring(struct rg_call *call, enum rg_op op)
{
    const int channels = (int)call->rule->channels;

    for (int c = call->team.index; c < channels; c += call->team.count)
        if (all_reduce_ring_channel(call, op, c))
            return 1;
    return 0;
}

RG_ALGO_LAYOUT(all_reduce_ring)
{
    const uint64_t channels = shape->max_channels;
    const uint64_t head = 3 * channels * RG_LINE;
    const uint64_t room = shape->budget > head ? shape->budget - head : 0;

    limits_out->max_bytes = UINT64_MAX;
    limits_out->head = head;
    limits_out->max_chunk = rg_chunk_round(room / (channels * RG_RING_DEPTH));
    return head + channels * RG_RING_DEPTH * limits_out->max_chunk;
}

RG_ALGO(all_reduce_ring, "ring", RG_COLL_all_reduce, 0, 1, RG_MAX_SLOTS);
