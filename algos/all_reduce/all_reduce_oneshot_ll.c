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

/* Units [begin, end) of this team, one thread every `threads` units. */
RG_FN void all_reduce_packets_push(const struct rg_call *call,
                                   const struct rg_packet_path *path,
                                   uint64_t begin, uint64_t end)
{
    const uint64_t step = (uint64_t)call->team.threads;

    for (uint64_t i = begin + (uint64_t)call->team.thread; i < end; i += step) {
        const uint64_t word = rg_unit_load(call->send, i, call->count);

        for (int p = 0; p < path->nranks; p++)
            if (p != path->rank)
                rg_packet_store(rg_packet_inbox(call, path, p) +
                                    i * RG_PACKET_BYTES,
                                word, path->tag);
    }
}

/* One unit: every rank's word in rank order. 0, or 1 for failed. */
RG_FN int all_reduce_packets_unit(struct rg_call *call, enum rg_op op,
                                  const struct rg_packet_path *path, uint64_t i)
{
    const uint8_t *slot = path->packets + i * RG_PACKET_BYTES;
    rg_accum acc[RG_UNIT_ELEMS] = {0};
    union rg_unit unit;

    for (int r = 0; r < path->nranks; r++, slot += path->stride) {
        if (r == path->rank)
            unit.word = rg_unit_load(call->send, i, call->count);
        else if (rg_packet_wait(call, slot, path->tag, r, &unit.word))
            return 1;
        for (int k = 0; k < RG_UNIT_ELEMS; k++) {
            const rg_accum value = rg_elem_load(unit.elem[k]);

            acc[k] = r == 0 ? value : rg_elem_combine(op, acc[k], value);
        }
    }
    for (int k = 0; k < RG_UNIT_ELEMS; k++)
        unit.elem[k] = rg_elem_store(rg_elem_finish(op, acc[k], path->nranks));
    rg_unit_store(call->recv, i, call->count, unit.word);
    return 0;
}

/* Steps 1 and 2 over a path; the cursor counts it at every team. */
RG_FN int all_reduce_packets(struct rg_call *call, enum rg_op op,
                             const struct rg_packet_path *path, int channels)
{
    const uint64_t units = (call->count + RG_UNIT_ELEMS - 1) / RG_UNIT_ELEMS;
    const uint64_t step = (uint64_t)call->team.threads;
    uint64_t begin, end;

    call->packet_cursor++;
    for (int c = call->team.index; c < channels; c += call->team.count) {
        rg_share(units, c, channels, &begin, &end);
        all_reduce_packets_push(call, path, begin, end);
        for (uint64_t i = begin + (uint64_t)call->team.thread; i < end;
             i += step)
            if (all_reduce_packets_unit(call, op, path, i))
                return 1;
    }
    return 0;
}

RG_FN int all_reduce_oneshot_ll(struct rg_call *call, enum rg_op op)
{
    const struct rg_packet_path path = rg_packet_path_of(call);

    return all_reduce_packets(call, op, &path, (int)call->rule->channels);
}

RG_ALGO_LAYOUT(all_reduce_oneshot_ll)
{
    const uint64_t slots = 2 * (uint64_t)shape->capacity * RG_PACKET_BYTES;
    const uint64_t units = rg_min_u64(shape->budget / slots, RG_PACKET_UNITS);

    limits_out->max_bytes = units * RG_PACKET_PAYLOAD;
    limits_out->max_chunk = 0;
    return units * slots;
}

RG_ALGO(all_reduce_oneshot_ll, "oneshot_ll", RG_COLL_all_reduce,
        RG_ALGO_DIRECT | RG_ALGO_PACKETS, 1, RG_MAX_SLOTS);
