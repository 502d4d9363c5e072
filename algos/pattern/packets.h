/*
 * Packet slots of an algorithm whose area nobody else writes to, in which an
 * invocation uses any number of slots, each with one writer.
 *
 *   area: note[2]          a line each: how often the algorithm has run
 *         slots            32 of one half, 32 of the other, and so on
 *
 * Two halves are used in turn, and no barrier is needed behind them. A half is
 * written again two uses on, by a rank that has ended the use between. No rank
 * ends an all-reduce before every rank has begun it, for the result needs all
 * inputs, and who has begun a use has ended the one before. So whoever writes
 * to a half knows that its owner has read all that was in it.
 *
 * Uses are counted here and not taken from seq: between two uses of one half
 * there must be one of the other. Team 0 notes at its end that there was one
 * more. It overwrites the older note, and a team that begins after that knows
 * by the seq that the newer one is of its own invocation. So all teams count
 * the same, whatever their number is and was.
 */
#ifndef RG_PATTERN_PACKETS_H
#define RG_PATTERN_PACKETS_H

#include "runtime/device/packet.h"
#include "runtime/device/share.h"

enum {
    RG_PACKETS_HEAD = 2 * RG_LINE, /* bytes before the slots */
    RG_PACKETS_RUN = 32            /* slots of one half side by side */
};

struct rg_packets_note {
    uint64_t seq;  /* of the invocation it was made by */
    uint64_t uses; /* up to that one, in this epoch; 0: no note */
    uint64_t most; /* slots that any of them used */
};

/* One use. */
struct rg_packets {
    uint64_t area;  /* offset of the slots in every region */
    uint64_t bytes; /* of them, both halves */
    uint64_t slots; /* of this use */
    uint64_t uses;  /* before this one */
    uint64_t tag;
    uint64_t half; /* 0 or 1 */
};

/* Bytes of an area of so many slots a half, without its notes. */
RG_FN uint64_t rg_packets_bytes(uint64_t slots)
{
    const uint64_t run = RG_PACKETS_RUN;

    return (slots + run - 1) / run * run * 2 * RG_PACKET_BYTES;
}

/* The most slots a half for which the area fits. */
RG_FN uint64_t rg_packets_fit(uint64_t bytes)
{
    const uint64_t run = 2 * RG_PACKETS_RUN * RG_PACKET_BYTES;

    return bytes > RG_PACKETS_HEAD
               ? (bytes - RG_PACKETS_HEAD) / run * RG_PACKETS_RUN
               : 0;
}

/* Where slot i of a half lies, from the slots' start. */
RG_FN uint64_t rg_packets_at(uint64_t half, uint64_t i)
{
    const uint64_t run = RG_PACKETS_RUN;

    return ((i / run * 2 + half) * run + i % run) * RG_PACKET_BYTES;
}

RG_FN struct rg_packets_note *rg_packets_note(const struct rg_call *call,
                                              uint64_t uses)
{
    return (struct rg_packets_note *)(void *)rg_inbox(
        call, call->workspace + (uses & 1) * RG_LINE);
}

/* One thread: the uses before this invocation's. */
RG_FN uint64_t rg_packets_uses(const struct rg_call *call)
{
    uint64_t most = 0;

    for (uint64_t i = 0; i < 2; i++) {
        const struct rg_packets_note *note = rg_packets_note(call, i);
        /* Pairs with the release below: a new number comes with its seq. */
        const uint64_t uses = rg_load_acquire(&note->uses);

        if (rg_load_relaxed(&note->seq) != call->seq && uses > most)
            most = uses;
    }
    return most;
}

/*
 * One thread. The half that the next use writes, cleaned before a new round of
 * tags starts in it. Nobody ends this use, and so begins the next, without
 * what team 0 sends for the first unit, which is after this.
 */
RG_FN_COLD void rg_packets_clean(uint8_t *slots, uint64_t half, uint64_t most)
{
    for (uint64_t i = 0; i < most; i++)
        rg_packet_store(slots + rg_packets_at(half, i), 0, 0);
}

/* Every thread. `slots`: how many this use needs, the same at every rank. */
RG_FN struct rg_packets rg_packets_begin(struct rg_call *call, uint64_t slots)
{
    struct rg_packets use;
    uint64_t cursor;

    use.area = call->workspace + RG_PACKETS_HEAD;
    use.bytes = rg_packets_bytes(slots);
    use.slots = slots;
    use.uses = rg_team_share_word(
        &call->team, call->team.thread == 0 ? rg_packets_uses(call) : 0);
    cursor = call->plan->first_seq - 1 + use.uses;
    use.tag = rg_packet_tag(cursor);
    use.half = cursor & 1;
    if (use.uses > 0 && rg_packet_tag_wraps(cursor - 1) &&
        call->team.index == 0) {
        if (call->team.thread == 0)
            rg_packets_clean(
                rg_inbox(call, use.area), !use.half,
                rg_load_relaxed(&rg_packets_note(call, use.uses - 1)->most));
        rg_team_barrier(&call->team);
    }
    return use;
}

/* Every thread, at the end of a use that did not fail. */
RG_FN void rg_packets_end(struct rg_call *call, const struct rg_packets *use)
{
    struct rg_packets_note *note = rg_packets_note(call, use->uses);
    const struct rg_packets_note *last = rg_packets_note(call, use->uses - 1);

    if (call->team.index != 0 || call->team.thread != 0)
        return;
    rg_store_relaxed(&note->seq, call->seq);
    rg_store_relaxed(&note->most,
                     rg_max_u64(rg_load_relaxed(&last->most), use->slots));
    /* Pairs with the acquire above. */
    rg_store_release(&note->uses, use->uses + 1);
}

/* The start of peer's slots, or null if not all of a use are in its reach. */
RG_FN uint8_t *rg_packets_of(const struct rg_call *call,
                             const struct rg_packets *use, int peer)
{
    return rg_direct(call, peer, use->area, use->bytes);
}

/* Waits for slot i here, which `peer` writes: 0, or 1 for failed. */
RG_FN int rg_packets_wait(const struct rg_call *call,
                          const struct rg_packets *use, uint64_t i, int peer,
                          uint64_t *word_out)
{
    return rg_packet_wait(
        call, rg_inbox(call, use->area) + rg_packets_at(use->half, i), use->tag,
        peer, word_out);
}

RG_FN void rg_packets_send(uint8_t *slots, const struct rg_packets *use,
                           uint64_t i, uint64_t word)
{
    rg_packet_store(slots + rg_packets_at(use->half, i), word, use->tag);
}

#endif
