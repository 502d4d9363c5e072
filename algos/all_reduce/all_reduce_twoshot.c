/*
 * All-reduce, two shots with plain stores and release flags.
 *
 * A step serves n parts of at most a chunk each, part p reduced by rank p. Per
 * rank and step, with parts of b bytes:
 *
 *   1. scatter: part p of the input goes to rank p             (n-1) x b bytes
 *   2. reduce: once the own part of every rank is here, it is reduced in rank
 *      order, kept, and sent to every other rank               (n-1) x b bytes
 *   3. gather: each part that has come back is kept
 *
 * Optimal bandwidth, as a ring, in two hops instead of 2 (n-1): a rank sends
 * 2 (n-1)/n times its bytes, where one shot sends n-1 times them.
 *
 * Given two teams a channel, one scatters and gathers while the other reduces;
 * a single team does all three, for steps k, k-1 and k-2. So what a rank waits
 * for others have sent in an earlier round of this loop, and nobody waits in a
 * circle. In place, a part is written over by the team that has sent it, or by
 * the reduction that reads it.
 *
 * Slots are rings of `depth` = 3 chunks, one a writer and shot. A flag says
 * what has arrived; that a slot may be written again follows from the order of
 * the loop, also from one invocation to the next, and needs neither barrier
 * nor credit:
 *   scatter k comes behind the own gather k-3, which has waited for reduce k-3
 *     of every rank, and that was done with its slots of scatter k-3;
 *   reduce k has waited for scatter k of every rank, which came behind its
 *     gather k-3, and that was done with its slots of reduce k-3.
 *
 *   area: full[shot][channel][rank], cursor[channel]{scattered, reduced}
 *                                                  all of them one word a line
 *         inbox[channel][shot][writer][depth][chunk]
 */
#include "algos/all_reduce/all_reduce.h"
#include "runtime/device/reduce.h"
#include "runtime/device/transfer.h"

enum {
    RG_TWOSHOT_DEPTH = 3, /* one more than a gather is behind its scatter */
    RG_TWOSHOT_MAX_RANKS = 64,
    RG_TWOSHOT_SHOTS = 2 /* 0: to the part's owner; 1: from it */
};

/* Words and lines of all channels, from the area's start. */
RG_FN uint64_t all_reduce_twoshot_head(uint64_t capacity, uint64_t channels)
{
    return (RG_TWOSHOT_SHOTS * capacity + 2) * channels * RG_LINE;
}

/* One channel of one invocation. */
struct all_reduce_twoshot {
    uint64_t begin, end; /* elements */
    uint64_t most;       /* elements of a part */
    uint64_t steps;
    uint64_t scattered; /* steps of earlier invocations, at this role's team */
    uint64_t reduced;
    uint64_t full[RG_TWOSHOT_SHOTS]; /* offsets in the region */
    uint64_t inbox[RG_TWOSHOT_SHOTS];
    uint64_t stride; /* bytes between two writers' rings */
    int lane;
    int rank, nranks;
};

/* The parts of one step. */
struct all_reduce_twoshot_step {
    uint64_t base; /* the first element */
    uint64_t part; /* elements of a part; the last ones may be short */
    uint64_t turn; /* of the channel's rings and words */
};

RG_FN uint64_t *all_reduce_twoshot_cursor(const struct rg_call *call,
                                          int channel, int role)
{
    const uint64_t words = (uint64_t)RG_TWOSHOT_SHOTS * call->plan->capacity *
                               call->plan->max_channels +
                           2 * (uint64_t)channel + (uint64_t)role;

    return (uint64_t *)(void *)rg_inbox(call,
                                        call->workspace + words * RG_LINE);
}

/* Where a shot's words and rings are. */
RG_FN void all_reduce_twoshot_place(const struct rg_call *call,
                                    struct all_reduce_twoshot *s, int channel,
                                    int shot)
{
    const uint64_t capacity = call->plan->capacity;
    const uint64_t channels = call->plan->max_channels;
    const uint64_t words = ((uint64_t)shot * channels + (uint64_t)channel);
    const uint64_t rings =
        ((uint64_t)channel * RG_TWOSHOT_SHOTS + (uint64_t)shot) *
        (capacity - 1);

    s->full[shot] = call->workspace + words * capacity * RG_LINE;
    s->inbox[shot] = call->workspace +
                     all_reduce_twoshot_head(capacity, channels) +
                     rings * s->stride;
}

RG_FN struct all_reduce_twoshot
all_reduce_twoshot_open(const struct rg_call *call, int channel)
{
    struct all_reduce_twoshot s;
    uint64_t whole;

    s.rank = (int)call->plan->rank;
    s.nranks = (int)call->plan->nranks;
    s.lane = channel % RG_LANES;
    s.most = call->rule->chunk / sizeof(rg_elem);
    s.stride = (uint64_t)RG_TWOSHOT_DEPTH * call->rule->slot;
    rg_share_elems(call->count, channel, (int)call->rule->channels, &s.begin,
                   &s.end);
    whole = s.most * (uint64_t)s.nranks;
    s.steps = (s.end - s.begin + whole - 1) / whole;
    s.scattered = rg_load_relaxed(all_reduce_twoshot_cursor(call, channel, 0));
    s.reduced = rg_load_relaxed(all_reduce_twoshot_cursor(call, channel, 1));
    RG_ROLLED
    for (int shot = 0; shot < RG_TWOSHOT_SHOTS; shot++)
        all_reduce_twoshot_place(call, &s, channel, shot);
    return s;
}

RG_FN struct all_reduce_twoshot_step
all_reduce_twoshot_step_of(const struct all_reduce_twoshot *s, uint64_t k,
                           uint64_t before)
{
    const uint64_t n = (uint64_t)s->nranks;
    struct all_reduce_twoshot_step step;

    step.base = s->begin + k * s->most * n;
    step.part =
        rg_min_u64(rg_part_round((s->end - step.base + n - 1) / n), s->most);
    step.turn = before + k;
    return step;
}

/* Part p of a step: its first element, and its length. */
RG_FN uint64_t all_reduce_twoshot_part(const struct all_reduce_twoshot *s,
                                       const struct all_reduce_twoshot_step *t,
                                       int p, uint64_t *n_out)
{
    const uint64_t at = rg_min_u64(t->base + (uint64_t)p * t->part, s->end);

    *n_out = rg_min_u64(t->part, s->end - at);
    return at;
}

/* The slot of `writer` at `reader`, an offset. */
RG_FN uint64_t all_reduce_twoshot_slot(const struct all_reduce_twoshot *s,
                                       const struct all_reduce_twoshot_step *t,
                                       int shot, int writer, int reader)
{
    return s->inbox[shot] +
           (uint64_t)rg_peer_index(writer, reader) * s->stride +
           t->turn % RG_TWOSHOT_DEPTH * (s->stride / RG_TWOSHOT_DEPTH);
}

/* A shot's chunk for rank p, with the word of its landing where it costs
 * nothing. */
RG_FN int all_reduce_twoshot_put(struct rg_call *call,
                                 const struct all_reduce_twoshot *s,
                                 const struct all_reduce_twoshot_step *t,
                                 int shot, int p, const rg_elem *src,
                                 uint64_t n)
{
    const uint64_t slot = all_reduce_twoshot_slot(s, t, shot, s->rank, p);

    if (rg_carries_signal(call, p))
        return rg_put_signal(call, p, s->lane, slot, src, n * sizeof(rg_elem),
                             s->full[shot] + (uint64_t)s->rank * RG_LINE,
                             RG_SIGNAL_SET, t->turn + 1);
    return rg_put(call, p, s->lane, slot, src, n * sizeof(rg_elem));
}

/* Tells the other ranks that this one's chunks of a shot have landed. */
RG_FN int all_reduce_twoshot_tell(struct rg_call *call,
                                  const struct all_reduce_twoshot *s,
                                  const struct all_reduce_twoshot_step *t,
                                  int shot)
{
    return rg_signal_rest(call, s->lane,
                          s->full[shot] + (uint64_t)s->rank * RG_LINE,
                          RG_SIGNAL_SET, t->turn + 1);
}

/* Step 1. 0, or 1 for failed. */
RG_FN int all_reduce_twoshot_scatter(struct rg_call *call,
                                     const struct all_reduce_twoshot *s,
                                     const struct all_reduce_twoshot_step *t)
{
    RG_ROLLED
    for (int i = 1; i < s->nranks; i++) {
        const int p = (s->rank + i) % s->nranks;
        uint64_t n, at = all_reduce_twoshot_part(s, t, p, &n);

        if (all_reduce_twoshot_put(call, s, t, 0, p,
                                   (const rg_elem *)call->send + at, n))
            return 1;
    }
    return all_reduce_twoshot_tell(call, s, t, 0);
}

/* Step 2's second half: the own part, in recv, to all but one other rank. */
RG_FN int all_reduce_twoshot_spread(struct rg_call *call,
                                    const struct all_reduce_twoshot *s,
                                    const struct all_reduce_twoshot_step *t,
                                    int but)
{
    uint64_t n, at = all_reduce_twoshot_part(s, t, s->rank, &n);

    RG_ROLLED
    for (int i = 1; i < s->nranks; i++) {
        const int p = (s->rank + i) % s->nranks;

        if (p != but &&
            all_reduce_twoshot_put(call, s, t, 1, p,
                                   (const rg_elem *)call->recv + at, n))
            return 1;
    }
    return all_reduce_twoshot_tell(call, s, t, 1);
}

/*
 * Step 2. The result goes to the next rank as it is made, where that rank's
 * memory can be stored to. 0, or 1 for failed.
 */
RG_FN int all_reduce_twoshot_reduce(struct rg_call *call, enum rg_op op,
                                    const struct all_reduce_twoshot *s,
                                    const struct all_reduce_twoshot_step *t)
{
    const int next = (s->rank + 1) % s->nranks;
    uint64_t n, at = all_reduce_twoshot_part(s, t, s->rank, &n);
    struct rg_sources from;
    uint8_t *direct;

    if (rg_wait_all(call, s->full[0], RG_LINE, s->nranks, s->rank, t->turn + 1))
        return 1;
    from.own = (const uint8_t *)((const rg_elem *)call->send + at);
    from.inbox =
        rg_inbox(call, s->inbox[0] + t->turn % RG_TWOSHOT_DEPTH *
                                         (s->stride / RG_TWOSHOT_DEPTH));
    from.stride = s->stride;
    from.rank = s->rank;
    from.count = s->nranks;
    direct =
        rg_direct(call, next, all_reduce_twoshot_slot(s, t, 1, s->rank, next),
                  n * sizeof(rg_elem));
    rg_team_reduce(&call->team, op, (rg_elem *)call->recv + at, direct, &from,
                   n, s->nranks);
    rg_team_barrier(&call->team); /* all of the part is there, to be put */
    return all_reduce_twoshot_spread(call, s, t, direct ? next : -1);
}

/* Step 3. 0, or 1 for failed. */
RG_FN int all_reduce_twoshot_gather(struct rg_call *call,
                                    const struct all_reduce_twoshot *s,
                                    const struct all_reduce_twoshot_step *t)
{
    if (rg_wait_all(call, s->full[1], RG_LINE, s->nranks, s->rank, t->turn + 1))
        return 1;
    RG_ROLLED
    for (int i = 1; i < s->nranks; i++) {
        const int p = (s->rank + i) % s->nranks;
        uint64_t n, at = all_reduce_twoshot_part(s, t, p, &n);

        rg_team_copy(
            &call->team, (rg_elem *)call->recv + at,
            rg_inbox(call, all_reduce_twoshot_slot(s, t, 1, p, s->rank)),
            n * sizeof(rg_elem));
    }
    return 0;
}

/* One role, or both, in round k of the loop. 0, or 1 for failed. */
RG_FN int all_reduce_twoshot_round(struct rg_call *call, enum rg_op op,
                                   const struct all_reduce_twoshot *s,
                                   uint64_t k, int scatter, int reduce)
{
    struct all_reduce_twoshot_step t;

    if (scatter && k < s->steps) {
        t = all_reduce_twoshot_step_of(s, k, s->scattered);
        if (all_reduce_twoshot_scatter(call, s, &t))
            return 1;
    }
    if (reduce && k >= 1 && k - 1 < s->steps) {
        t = all_reduce_twoshot_step_of(s, k - 1, s->reduced);
        if (all_reduce_twoshot_reduce(call, op, s, &t))
            return 1;
    }
    if (scatter && k >= 2) {
        t = all_reduce_twoshot_step_of(s, k - 2, s->scattered);
        return all_reduce_twoshot_gather(call, s, &t);
    }
    return 0;
}

/* One channel; 0, or 1 for failed. */
RG_FN int all_reduce_twoshot_channel(struct rg_call *call, enum rg_op op,
                                     int channel, int scatter, int reduce)
{
    const struct all_reduce_twoshot s = all_reduce_twoshot_open(call, channel);

    RG_ROLLED
    for (uint64_t k = 0; s.steps && k < s.steps + 2; k++) {
        call->step = k;
        if (all_reduce_twoshot_round(call, op, &s, k, scatter, reduce))
            return 1;
    }
    rg_team_barrier(&call->team);
    if (call->team.thread == 0 && scatter)
        rg_store_relaxed(all_reduce_twoshot_cursor(call, channel, 0),
                         s.scattered + s.steps);
    if (call->team.thread == 0 && reduce)
        rg_store_relaxed(all_reduce_twoshot_cursor(call, channel, 1),
                         s.reduced + s.steps);
    return 0;
}

RG_FN int all_reduce_twoshot(struct rg_call *call, enum rg_op op)
{
    const int channels = (int)call->rule->channels;
    const struct rg_roles roles = rg_roles_of(&call->team, channels);

    RG_ROLLED
    for (int c = roles.channel; c < channels; c += roles.step)
        if (all_reduce_twoshot_channel(call, op, c, roles.first, roles.second))
            return 1;
    return 0;
}

RG_ALGO_LAYOUT(all_reduce_twoshot)
{
    const uint64_t channels = shape->max_channels;
    const uint64_t head = all_reduce_twoshot_head(shape->capacity, channels);
    const uint64_t slots = channels * RG_TWOSHOT_SHOTS * RG_TWOSHOT_DEPTH *
                           rg_max_u64((uint64_t)shape->capacity - 1, 1);
    const uint64_t room = shape->budget > head ? shape->budget - head : 0;

    if (shape->capacity > RG_TWOSHOT_MAX_RANKS)
        return 0;
    limits_out->max_bytes = UINT64_MAX;
    limits_out->head = head;
    limits_out->max_chunk = rg_chunk_round(room / slots);
    if (!limits_out->max_chunk)
        return 0;
    return head + slots * limits_out->max_chunk;
}

RG_ALGO(all_reduce_twoshot, "twoshot", RG_COLL_all_reduce, 0, 1,
        RG_TWOSHOT_MAX_RANKS);
