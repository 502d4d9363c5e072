/*
 * Small blocks by the hot line (device/hot.h), in all_reduce's packet slots.
 * Every rank sends to every other one each time, an empty unit where it has
 * nothing, so invocations of all of RG_HOT_LIST and of all_reduce may follow
 * each other in the same slots: the cursor counts them all.
 *
 * The includer's <frame>_small() says what it is by a constant kind.
 */
#ifndef RG_PATTERN_SMALL_H
#define RG_PATTERN_SMALL_H

#include "runtime/device/entry.h"
#include "runtime/device/packet.h"
#include "runtime/device/share.h"

enum rg_small_kind {
    RG_SMALL_GATHER = 0, /* all get the input, and keep a block of each */
    RG_SMALL_EXCHANGE,   /* each gets a block, and keeps one of each */
    RG_SMALL_FOLD,       /* each gets a block, and reduces those of all */
    RG_SMALL_SPREAD      /* all keep what the root sends */
};

/* What an invocation by the line knows. */
struct rg_small {
    struct rg_packet_path path;
    const struct rg_launch *launch;
    uint64_t units; /* of a block, at least one */
};

RG_FN uint64_t rg_small_units(uint64_t count)
{
    return rg_max_u64((count + RG_UNIT_ELEMS - 1) / RG_UNIT_ELEMS, 1);
}

/* 1: the line serves a block of that size, which is not empty. The same for
 * every thread. */
RG_FN int rg_small_is_hot(const struct rg_launch *launch,
                          const struct rg_hot *hot, enum rg_hot_coll coll)
{
    return launch->count * sizeof(rg_elem) <=
               rg_hot_units(hot, coll) * RG_PACKET_PAYLOAD &&
           !rg_packet_tag_wraps(hot->cursor);
}

RG_FN const rg_elem *rg_small_out(const struct rg_small *s,
                                  const enum rg_small_kind kind, int rank)
{
    const rg_elem *send = (const rg_elem *)s->launch->send;

    return kind == RG_SMALL_EXCHANGE || kind == RG_SMALL_FOLD
               ? send +
                     (uint64_t)rg_hot_slot(s->path.hot, rank) * s->launch->count
               : send;
}

RG_FN rg_elem *rg_small_in(const struct rg_small *s,
                           const enum rg_small_kind kind, int rank)
{
    rg_elem *recv = (rg_elem *)s->launch->recv;

    return kind == RG_SMALL_GATHER || kind == RG_SMALL_EXCHANGE
               ? recv +
                     (uint64_t)rg_hot_slot(s->path.hot, rank) * s->launch->count
               : recv;
}

/* 1: a rank has a block for this one, or for all. */
RG_FN int rg_small_gives(const struct rg_small *s,
                         const enum rg_small_kind kind, int rank)
{
    return kind != RG_SMALL_SPREAD ||
           (uint32_t)rg_hot_slot(s->path.hot, rank) == s->launch->root;
}

/* Unit i to every other rank; an empty one is unit 0. */
RG_FN void rg_small_push(const struct rg_small *s,
                         const enum rg_small_kind kind, uint64_t i, int mine)
{
    const int gives = rg_small_gives(s, kind, s->path.rank);
    const uint64_t offset = s->path.half + i * RG_PACKET_BYTES;

    RG_ROLLED
    for (int p = 0; p < s->path.nranks; p++) {
        uint8_t *inbox = rg_hot_inbox(s->path.hot, p);
        uint64_t word = 0;

        if (!mine || p == s->path.rank || (!gives && i > 0))
            continue;
        if (gives)
            word = rg_unit_load(rg_small_out(s, kind, p), i, s->launch->count);
        if (s->path.hot->whole)
            rg_packet_store(inbox + offset, word, s->path.tag);
    }
}

/* Of a rank's units, those that are waited for. */
RG_FN int rg_small_comes(const struct rg_small *s,
                         const enum rg_small_kind kind, int rank, uint64_t i)
{
    return rank != s->path.rank && (i == 0 || rg_small_gives(s, kind, rank));
}

/* Unit i of every rank, into the output. */
RG_FN void rg_small_keep(const struct rg_small *s,
                         const enum rg_small_kind kind, enum rg_op op,
                         uint64_t i, const uint64_t *word)
{
    const uint64_t count = s->launch->count;
    rg_accum acc[RG_UNIT_ELEMS] = {0};

    RG_ROLLED
    for (int r = 0; r < s->path.nranks; r++) {
        if (kind == RG_SMALL_FOLD)
            rg_unit_combine(op, acc, word[r], r == 0);
        else if (rg_small_gives(s, kind, r))
            rg_unit_store(rg_small_in(s, kind, r), i, count, word[r]);
    }
    if (kind == RG_SMALL_FOLD)
        rg_unit_store(s->launch->recv, i, count,
                      rg_unit_finish(op, acc, s->path.nranks));
}

/* The own unit i, as if it had come. */
RG_FN uint64_t rg_small_own(const struct rg_small *s,
                            const enum rg_small_kind kind, uint64_t i)
{
    return rg_small_gives(s, kind, s->path.rank)
               ? rg_unit_load(rg_small_out(s, kind, s->path.rank), i,
                              s->launch->count)
               : 0;
}

/* ---- any number of units, once it is known that the line holds ----------- */

RG_FN int rg_small_wait(struct rg_call *call, const struct rg_small *s,
                        const enum rg_small_kind kind, enum rg_op op,
                        uint64_t i)
{
    const uint8_t *slot = s->path.packets + i * RG_PACKET_BYTES;
    uint64_t word[RG_HOT_PEERS];

    RG_ROLLED
    for (int r = 0; r < s->path.nranks; r++, slot += s->path.stride) {
        if (r == s->path.rank)
            word[r] = rg_small_own(s, kind, i);
        else if (rg_small_comes(s, kind, r, i) &&
                 rg_packet_wait(call, slot, s->path.tag, r, &word[r]))
            return 1;
    }
    rg_small_keep(s, kind, op, i, word);
    return 0;
}

/* All teams take part; the cursor counts it at each. 0, or 1 for failed. */
RG_FN int rg_small_run(struct rg_call *call, const enum rg_small_kind kind,
                       enum rg_op op, const struct rg_hot *line)
{
    struct rg_hot hot = *line;
    struct rg_small s;
    uint64_t begin, end;

    call->packet_cursor++;
    s.path = rg_packet_path_of(&hot, 0);
    s.launch = call->launch;
    s.units = rg_small_units(call->count);
    rg_share(s.units, call->team.index, call->team.count, &begin, &end);
    begin += (uint64_t)call->team.thread;
    RG_ROLLED
    for (uint64_t i = begin; i < end; i += (uint64_t)call->team.threads)
        rg_small_push(&s, kind, i, 1);
    RG_ROLLED
    for (uint64_t i = begin; i < end; i += (uint64_t)call->team.threads)
        if (rg_small_wait(call, &s, kind, op, i))
            return 1;
    return 0;
}

/* ---- a unit a thread, before that is known ------------------------------- */

/* Polls for unit i of every rank: 0, or 1 if one does not come soon. */
RG_FN int rg_small_poll(const struct rg_small *s, const struct rg_team *team,
                        const enum rg_small_kind kind, uint64_t i,
                        uint64_t *word)
{
    const uint8_t *slot = s->path.packets + i * RG_PACKET_BYTES;

    RG_ROLLED
    for (int r = 0; r < s->path.nranks; r++, slot += s->path.stride) {
        if (r == s->path.rank)
            word[r] = rg_small_own(s, kind, i);
        else if (rg_small_comes(s, kind, r, i) &&
                 rg_unit_poll(team, (int)s->units, 1, slot, s->path.tag,
                              &word[r]))
            return 1;
    }
    return 0;
}

/*
 * Every thread of a launch of one team with a unit for each. Returns 0 if the
 * invocation is over; 1 if it is to be run by the claim it has made, `claim`,
 * out of line.
 */
RG_FN int rg_small_try(const struct rg_launch *launch, struct rg_team *team,
                       const enum rg_small_kind kind, enum rg_op op,
                       enum rg_hot_coll coll, uint64_t run, uint64_t *claim_out)
{
    struct rg_comm_dev *dev = launch->comm;
    uint64_t claim = rg_claim_first(dev, team);
    struct rg_hot hot = rg_hot_take(dev, team);
    const int is_hot = rg_small_is_hot(launch, &hot, coll);
    const uint64_t i = (uint64_t)team->thread;
    uint64_t word[RG_HOT_PEERS];
    struct rg_small s;
    int mine, late;

    s.path = rg_packet_path_of(&hot, 0);
    s.launch = launch;
    s.units = rg_small_units(launch->count);
    mine = is_hot && i < s.units;
    if (is_hot)
        rg_small_push(&s, kind, i, mine);
    claim = rg_claim_behind(dev, team, claim);
    late = !is_hot || (mine && rg_small_poll(&s, team, kind, i, word));
    *claim_out = claim;
    if (rg_team_any(team, late | !rg_claim_proves_here(claim, &hot, team)))
        return 1;
    if (mine)
        rg_small_keep(&s, kind, op, i, word);
    if (team->thread == 0)
        rg_hot_done(dev, &hot, run | (uint32_t)hot.run);
    return 0;
}

#endif
