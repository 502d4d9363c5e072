/*
 * All-reduce, one shot with low-latency packets.
 *
 *   1. each unit of the input goes to every other rank   (n-1) x 2 x bytes
 *   2. each unit of every other rank is polled for and reduced in rank order
 *
 * No barrier, no flag: a unit's arrival is its tag. Best while latency, not
 * bandwidth, counts: a packet is half payload.
 */
#include "algos/all_reduce/all_reduce.h"
#include "runtime/device/packet.h"

/* This thread's units: begin, begin + step, ... below end. */
struct all_reduce_packets {
    uint64_t begin, end, step;
    uint64_t first; /* the input's unit `begin`, loaded ahead of time */
};

/*
 * Needs the launch only, not the plan: so the first load of the input is on
 * its way while the claim is. Not where packets are out of the question: there
 * another team may be writing over the input already.
 */
RG_FN struct all_reduce_packets
all_reduce_packets_ahead(const struct rg_team *team, const void *send,
                         uint64_t count)
{
    const uint64_t units = (count + RG_UNIT_ELEMS - 1) / RG_UNIT_ELEMS;
    struct all_reduce_packets mine;

    rg_share(units, team->index, team->count, &mine.begin, &mine.end);
    mine.begin += (uint64_t)team->thread;
    mine.step = (uint64_t)team->threads;
    mine.first = 0;
    if (mine.begin < mine.end && units <= RG_PACKET_UNITS)
        mine.first = rg_unit_load(send, mine.begin, count);
    return mine;
}

RG_FN uint64_t all_reduce_packets_own(const struct rg_call *call,
                                      const struct all_reduce_packets *mine,
                                      uint64_t i)
{
    return i == mine->begin ? mine->first
                            : rg_unit_load(call->send, i, call->count);
}

/* Step 1. */
RG_FN void all_reduce_packets_push(const struct rg_call *call,
                                   const struct rg_packet_path *path,
                                   const struct all_reduce_packets *mine)
{
    RG_ROLLED
    for (uint64_t i = mine->begin; i < mine->end; i += mine->step) {
        const uint64_t word = all_reduce_packets_own(call, mine, i);

        RG_ROLLED
        for (int p = 0; p < path->nranks; p++)
            if (p != path->rank)
                rg_packet_store(rg_packet_inbox(call, path, p) +
                                    i * RG_PACKET_BYTES,
                                word, path->tag);
    }
}

/* Step 2 for one unit: every rank's word in rank order. 0, or 1 for failed. */
RG_FN int all_reduce_packets_unit(struct rg_call *call, enum rg_op op,
                                  const struct rg_packet_path *path, uint64_t i,
                                  uint64_t own)
{
    const uint8_t *slot = path->packets + i * RG_PACKET_BYTES;
    rg_accum acc[RG_UNIT_ELEMS] = {0};
    uint64_t word;

    RG_ROLLED
    for (int r = 0; r < path->nranks; r++, slot += path->stride) {
        word = own;
        if (r != path->rank && rg_packet_wait(call, slot, path->tag, r, &word))
            return 1;
        rg_unit_combine(op, acc, word, r == 0);
    }
    word = rg_unit_finish(op, acc, path->nranks);
    rg_unit_store(call->recv, i, call->count, word);
    return 0;
}

/* Both steps over a path; the cursor counts it at every team. */
RG_FN int all_reduce_packets(struct rg_call *call, enum rg_op op,
                             const struct rg_packet_path *path,
                             const struct all_reduce_packets *mine)
{
    call->packet_cursor++;
    all_reduce_packets_push(call, path, mine);
    RG_ROLLED
    for (uint64_t i = mine->begin; i < mine->end; i += mine->step)
        if (all_reduce_packets_unit(call, op, path, i,
                                    all_reduce_packets_own(call, mine, i)))
            return 1;
    return 0;
}

/* All teams take part, whatever the rule's channels: slots are per unit. */
RG_FN int all_reduce_oneshot_ll(struct rg_call *call, enum rg_op op)
{
    struct rg_hot hot = rg_hot_read(&call->dev->hot);
    const struct rg_packet_path path =
        rg_packet_path_of(&hot, hot.nranks > RG_HOT_PEERS);
    const struct all_reduce_packets mine =
        all_reduce_packets_ahead(&call->team, call->send, call->count);

    return all_reduce_packets(call, op, &path, &mine);
}

/* The same from the line as it was read: no plan is. */
RG_FN int all_reduce_packets_hot(struct rg_call *call, enum rg_op op,
                                 const struct rg_hot *line,
                                 const struct all_reduce_packets *mine)
{
    struct rg_hot hot = *line;
    const struct rg_packet_path path = rg_packet_path_of(&hot, 0);

    return all_reduce_packets(call, op, &path, mine);
}

/* ---- one unit a thread, by the hot line --------------------------------- */

/* What one of a launch's threads knows. */
struct all_reduce_unit {
    int units;      /* of the buffer: one a thread, from the first on */
    int proven;     /* what was read goes together */
    const int bare; /* a constant: nothing is bounded */
    uint64_t word;  /* own, in the end the result */
};

/* Step 2 for this thread's unit; nothing is written. 0, or 1 for late. */
RG_FN int all_reduce_unit_take(struct all_reduce_unit *unit,
                               const struct rg_team *team, enum rg_op op,
                               const struct rg_packet_path *path)
{
    const uint8_t *slot =
        path->packets + (uint64_t)team->thread * RG_PACKET_BYTES;
    rg_accum acc[RG_UNIT_ELEMS] = {0};
    uint64_t word;

    RG_ROLLED
    for (int r = 0; r < path->nranks; r++, slot += path->stride) {
        word = unit->word;
        if (r == path->rank)
            ;
        else if (unit->bare)
            rg_unit_spin(slot, path->tag, &word);
        else if (rg_unit_poll(team, unit->units, unit->proven, slot, path->tag,
                              &word))
            return 1;
        rg_unit_combine(op, acc, word, r == 0);
    }
    unit->word = rg_unit_finish(op, acc, path->nranks);
    return 0;
}

RG_ALGO_LAYOUT(all_reduce_oneshot_ll)
{
    const uint64_t slots = 2 * (uint64_t)shape->capacity * RG_PACKET_BYTES;
    const uint64_t units = rg_min_u64(shape->budget / slots, RG_PACKET_UNITS);

    limits_out->max_bytes = units * RG_PACKET_PAYLOAD;
    limits_out->max_chunk = 0;
    limits_out->head = 0;
    return units * slots;
}

RG_ALGO(all_reduce_oneshot_ll, "oneshot_ll", RG_COLL_all_reduce,
        RG_ALGO_DIRECT | RG_ALGO_PACKETS, 1, RG_MAX_SLOTS);
