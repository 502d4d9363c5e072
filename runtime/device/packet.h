/*
 * Packet slots: small payloads that carry their own arrival flag.
 *
 *   area of one rank:  [cursor parity 2][writer rank][units] x 16 bytes
 *
 * A unit is 8 payload bytes. Every rank writes a unit to every other rank and
 * then needs the unit of every other rank, so nobody can be two invocations
 * ahead: two halves, taken in turn by the cursor that counts such
 * invocations, need no barrier behind them. The tag is made from the cursor.
 */
#ifndef RG_DEVICE_PACKET_H
#define RG_DEVICE_PACKET_H

#include "runtime/device/elem.h"
#include "runtime/device/hot.h"
#include "runtime/device/transfer.h"

enum { RG_UNIT_ELEMS = RG_PACKET_PAYLOAD / sizeof(rg_elem) };

/* Where one invocation's packets go. */
struct rg_packet_path {
    const uint8_t *packets; /* own slots, this invocation's half */
    struct rg_hot *hot;     /* whose inboxes are used; null: the routes */
    uint64_t half;          /* offset of this invocation's half */
    uint64_t stride;        /* bytes between two writers' slots */
    uint64_t tag;
    int rank;
    int nranks;
};

union rg_unit {
    uint64_t word;
    rg_elem elem[RG_PACKET_PAYLOAD / sizeof(rg_elem)];
};

/* A rank's unit into `acc`, in rank order; the first one sets it. */
RG_FN void rg_unit_combine(enum rg_op op, rg_accum *acc, uint64_t word,
                           int first)
{
    union rg_unit unit;

    unit.word = word;
    for (int k = 0; k < RG_UNIT_ELEMS; k++) {
        const rg_accum value = rg_elem_load(unit.elem[k]);

        acc[k] = first ? value : rg_elem_combine(op, acc[k], value);
    }
}

/* The unit that `count` ranks have made. */
RG_FN uint64_t rg_unit_finish(enum rg_op op, const rg_accum *acc, int count)
{
    union rg_unit unit;

    for (int k = 0; k < RG_UNIT_ELEMS; k++)
        unit.elem[k] = rg_elem_store(rg_elem_finish(op, acc[k], count));
    return unit.word;
}

/*
 * A unit that is not whole, or not aligned to its size: out of line, so that
 * the way of all others is short. Rolled, and by shifts: unrolled, ptxas 13.0
 * reads a register too early behind a predicated load that does not take
 * place, and a unit of one or two bytes gets bits of its own address.
 */
RG_FN_COLD uint64_t rg_unit_load_part(const rg_elem *elem, uint64_t left)
{
    const int half = (int)sizeof(rg_elem) * 4; /* bits; a whole may be 64 */
    union rg_unit unit = {0};
    uint64_t word = 0;

    RG_ROLLED
    for (int k = left < RG_UNIT_ELEMS ? (int)left : RG_UNIT_ELEMS; k-- > 0;) {
        unit.elem[0] = elem[k];
        word = word << half << half | unit.word;
    }
    return word;
}

RG_FN_COLD void rg_unit_store_part(rg_elem *elem, uint64_t left, uint64_t word)
{
    const int half = (int)sizeof(rg_elem) * 4;
    union rg_unit unit;

    unit.word = word;
    RG_ROLLED
    for (uint64_t k = 0; k < RG_UNIT_ELEMS && k < left; k++) {
        elem[k] = unit.elem[0];
        unit.word = unit.word >> half >> half;
    }
}

/* Unit i of `count` elements; a last partial unit is filled with zeroes. */
RG_FN uint64_t rg_unit_load(const void *from, uint64_t i, uint64_t count)
{
    const rg_elem *elem = (const rg_elem *)from + i * RG_UNIT_ELEMS;
    const uint64_t left = count - i * RG_UNIT_ELEMS;

    if ((uint64_t)elem % RG_PACKET_PAYLOAD == 0 && left >= RG_UNIT_ELEMS)
        return *(const uint64_t *)(const void *)elem;
    return rg_unit_load_part(elem, left);
}

RG_FN void rg_unit_store(void *to, uint64_t i, uint64_t count, uint64_t word)
{
    rg_elem *elem = (rg_elem *)to + i * RG_UNIT_ELEMS;
    const uint64_t left = count - i * RG_UNIT_ELEMS;

    if ((uint64_t)elem % RG_PACKET_PAYLOAD == 0 && left >= RG_UNIT_ELEMS)
        *(uint64_t *)(void *)elem = word;
    else
        rg_unit_store_part(elem, left, word);
}

/* How the wait for a packet ended. */
struct rg_packet_waited {
    uint64_t payload;
    int failed;
};

/*
 * The part of a wait that is not over at once. Out of line and by value, so
 * that a kernel's hot path is short and its call lives in registers.
 */
RG_FN_COLD struct rg_packet_waited
rg_packet_wait_long(struct rg_team team, struct rg_comm_dev *dev, int index,
                    const void *packet, uint64_t tag, int peer)
{
    struct rg_waiter waiter = RG_WAITER_INIT;
    struct rg_packet_waited waited = {0, 0};
    const struct rg_call call = rg_call_waiting(&team, dev, index);
    int status = RG_OK;

    while (status == RG_OK) {
        if (rg_packet_load(packet, tag, &waited.payload))
            return waited;
        status = rg_wait_more(&call, &waiter);
    }
    if (!rg_packet_load(packet, tag, &waited.payload))
        waited.failed = rg_wait_failed(&call, status, peer);
    return waited;
}

enum { RG_PACKET_POLLS = 16 }; /* before a wait counts as long */

/* One thread polls one packet until it carries the tag: 0, or 1 for failed. */
RG_FN int rg_packet_wait(const struct rg_call *call, const void *packet,
                         uint64_t tag, int peer, uint64_t *payload_out)
{
    struct rg_packet_waited waited;

    RG_ROLLED
    for (int polls = 0; polls < RG_PACKET_POLLS; polls++)
        if (rg_packet_load(packet, tag, payload_out))
            return 0;
    waited = rg_packet_wait_long(call->team, call->dev, call->index, packet,
                                 tag, peer);
    *payload_out = waited.payload;
    return waited.failed;
}

/* An invocation's path by the hot line, or, with `routed`, by the routes. */
RG_FN struct rg_packet_path rg_packet_path_of(struct rg_hot *hot, int routed)
{
    struct rg_packet_path path;

    path.half = (hot->cursor & 1) * hot->half;
    path.packets = hot->packets + path.half;
    path.hot = routed ? 0 : hot;
    path.stride = hot->stride;
    path.tag = rg_packet_tag(hot->cursor);
    path.rank = hot->rank;
    path.nranks = hot->nranks;
    return path;
}

/* Where this rank's units go at `peer`, this invocation's half. */
RG_FN uint8_t *rg_packet_inbox(const struct rg_call *call,
                               const struct rg_packet_path *path, int peer)
{
    if (path->hot)
        return rg_hot_inbox(path->hot, peer) + path->half;
    return call->plan->routes[peer].base + call->workspace + path->half +
           path->stride * (uint64_t)path->rank;
}

/*
 * The exchange of one unit a thread, of a launch of one team that goes by the
 * hot line: bounded by a number of polls, for what takes longer is done over
 * by the ways above.
 */
enum { RG_UNIT_POLLS = 64 };

/*
 * Every thread; `mine`: it has a unit, the one with its number. `sure`, a
 * constant: the line cannot be torn.
 */
RG_FN void rg_unit_push(const struct rg_packet_path *path,
                        const struct rg_team *team, int mine, uint64_t word,
                        const int sure)
{
    const uint64_t offset =
        path->half + (uint64_t)team->thread * RG_PACKET_BYTES;

    RG_ROLLED
    for (int p = 0; p < path->nranks; p++) {
        uint8_t *inbox = rg_hot_inbox(path->hot, p);

        if (mine && p != path->rank && (sure || path->hot->whole))
            rg_packet_store(inbox + offset, word, path->tag);
    }
}

/*
 * Polls a rank's unit: 0, or 1 if it does not come. In a team of one warp its
 * `units` threads go on together, once it has come to all and all are
 * `proven`; elsewhere each goes on alone, and one vote at the end finds out
 * (rg_team_votes_late).
 */
RG_FN int rg_unit_poll(const struct rg_team *team, int units, int proven,
                       const uint8_t *slot, uint64_t tag, uint64_t *word_out)
{
    int came;

    RG_ROLLED
    for (int polls = 0; polls < RG_UNIT_POLLS; polls++) {
        came = rg_packet_load(slot, tag, word_out);
        if (rg_team_all_below(team, units, came & proven))
            return 0;
#if !RG_ON_CUDA
        team->emu->relax((uint64_t)polls, team->emu->crowded);
#endif
    }
    return 1;
}

/* The same, as long as it takes. */
RG_FN void rg_unit_spin(const uint8_t *slot, uint64_t tag, uint64_t *word_out)
{
    while (!rg_packet_load(slot, tag, word_out))
        ;
}

#endif
