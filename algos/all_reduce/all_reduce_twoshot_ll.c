/*
 * All-reduce, two shots with low-latency packets.
 *
 *   part p of n: the units [p x part, (p + 1) x part), reduced by rank p
 *
 *   1. each unit of another rank's part goes to that rank  (n-1)/n x 2 x bytes
 *   2. each unit of the own part is polled for at every rank's slots, reduced
 *      in rank order, kept, and sent to every other rank  (n-1)/n x 2 x bytes
 *   3. each unit of the other parts is polled for and kept
 *
 * No barrier, no flag: a unit's arrival is its tag, in both shots. A slot has
 * one writer, the two shots use different slots, and two halves are used in
 * turn; pattern/packets.h says why that is enough. A thread has the same
 * places of every part, so in place it has sent a unit of its own before it
 * writes over it. One rank makes each result: all have the same bits.
 *
 *   slots of a half: shot 1 [writer][place], shot 2 [owner][place]
 */
#include "algos/all_reduce/all_reduce.h"
#include "algos/pattern/packets.h"

struct all_reduce_twoshot_ll {
    struct rg_packets packets;
    uint64_t units;
    uint64_t part;             /* units of a part; the last ones may be short */
    uint64_t begin, end, step; /* this thread's places in a part */
    int rank, nranks;
};

RG_FN struct all_reduce_twoshot_ll
all_reduce_twoshot_ll_open(struct rg_call *call)
{
    const uint64_t n = call->plan->nranks;
    struct all_reduce_twoshot_ll s;

    s.units = (call->count + RG_UNIT_ELEMS - 1) / RG_UNIT_ELEMS;
    s.part = (s.units + n - 1) / n;
    s.packets = rg_packets_begin(call, 2 * n * s.part);
    rg_share(s.part, call->team.index, call->team.count, &s.begin, &s.end);
    s.begin += (uint64_t)call->team.thread;
    s.step = (uint64_t)call->team.threads;
    s.rank = (int)call->plan->rank;
    s.nranks = (int)n;
    return s;
}

/* The slot of a place: `whose` is the writer in shot 1, the owner in shot 2. */
RG_FN uint64_t all_reduce_twoshot_ll_slot(const struct all_reduce_twoshot_ll *s,
                                          int shot, int whose, uint64_t place)
{
    const uint64_t block = (uint64_t)((shot - 1) * s->nranks + whose);

    return block * s->part + place;
}

/* Where this thread's places of part p end: not beyond the last unit. */
RG_FN uint64_t all_reduce_twoshot_ll_end(const struct all_reduce_twoshot_ll *s,
                                         int p)
{
    const uint64_t first = (uint64_t)p * s->part;

    return rg_min_u64(s->end, s->units - rg_min_u64(first, s->units));
}

/* Step 1. 0, or 1 for failed: every peer's slots are checked here. */
RG_FN int all_reduce_twoshot_ll_scatter(struct rg_call *call,
                                        const struct all_reduce_twoshot_ll *s)
{
    RG_ROLLED
    for (int k = 1; k < s->nranks; k++) {
        const int p = (s->rank + k) % s->nranks;
        const uint64_t end = all_reduce_twoshot_ll_end(s, p);
        uint8_t *slots = rg_packets_of(call, &s->packets, p);

        if (!slots)
            return rg_fail(call, RG_EUNAVAILABLE, p);
        RG_ROLLED
        for (uint64_t i = s->begin; i < end; i += s->step)
            rg_packets_send(slots, &s->packets,
                            all_reduce_twoshot_ll_slot(s, 1, s->rank, i),
                            rg_unit_load(call->send, (uint64_t)p * s->part + i,
                                         call->count));
    }
    return 0;
}

/* Place i of the own part, of every rank in rank order. 0, or 1 for failed. */
RG_FN int all_reduce_twoshot_ll_unit(struct rg_call *call, enum rg_op op,
                                     const struct all_reduce_twoshot_ll *s,
                                     uint64_t i, uint64_t *word_out)
{
    const uint64_t at = (uint64_t)s->rank * s->part + i;
    rg_accum acc[RG_UNIT_ELEMS] = {0};
    uint64_t word;

    RG_ROLLED
    for (int r = 0; r < s->nranks; r++) {
        if (r == s->rank)
            word = rg_unit_load(call->send, at, call->count);
        else if (rg_packets_wait(call, &s->packets,
                                 all_reduce_twoshot_ll_slot(s, 1, r, i), r,
                                 &word))
            return 1;
        rg_unit_combine(op, acc, word, r == 0);
    }
    word = rg_unit_finish(op, acc, s->nranks);
    rg_unit_store(call->recv, at, call->count, word);
    *word_out = word;
    return 0;
}

/* Step 2. 0, or 1 for failed. */
RG_FN int all_reduce_twoshot_ll_reduce(struct rg_call *call, enum rg_op op,
                                       const struct all_reduce_twoshot_ll *s)
{
    const uint64_t end = all_reduce_twoshot_ll_end(s, s->rank);

    RG_ROLLED
    for (uint64_t i = s->begin; i < end; i += s->step) {
        const uint64_t slot = all_reduce_twoshot_ll_slot(s, 2, s->rank, i);
        uint64_t word = 0;

        if (all_reduce_twoshot_ll_unit(call, op, s, i, &word))
            return 1;
        RG_ROLLED
        for (int p = 0; p < s->nranks; p++)
            if (p != s->rank)
                rg_packets_send(call->plan->routes[p].base + s->packets.area,
                                &s->packets, slot, word);
    }
    return 0;
}

/* Step 3. 0, or 1 for failed. */
RG_FN int all_reduce_twoshot_ll_gather(struct rg_call *call,
                                       const struct all_reduce_twoshot_ll *s)
{
    RG_ROLLED
    for (int k = 1; k < s->nranks; k++) {
        const int p = (s->rank + k) % s->nranks;
        const uint64_t end = all_reduce_twoshot_ll_end(s, p);

        RG_ROLLED
        for (uint64_t i = s->begin; i < end; i += s->step) {
            uint64_t word;

            if (rg_packets_wait(call, &s->packets,
                                all_reduce_twoshot_ll_slot(s, 2, p, i), p,
                                &word))
                return 1;
            rg_unit_store(call->recv, (uint64_t)p * s->part + i, call->count,
                          word);
        }
    }
    return 0;
}

/* All teams take part, whatever the rule's channels: slots are per unit. */
RG_FN int all_reduce_twoshot_ll(struct rg_call *call, enum rg_op op)
{
    const struct all_reduce_twoshot_ll s = all_reduce_twoshot_ll_open(call);

    if (all_reduce_twoshot_ll_scatter(call, &s) ||
        all_reduce_twoshot_ll_reduce(call, op, &s) ||
        all_reduce_twoshot_ll_gather(call, &s))
        return 1;
    rg_packets_end(call, &s.packets);
    return 0;
}

/* Two shots of the units, and up to a place more for each rank. */
RG_ALGO_LAYOUT(all_reduce_twoshot_ll)
{
    const uint64_t capacity = (uint64_t)shape->capacity;
    const uint64_t slots = rg_packets_fit(shape->budget) / 2;
    const uint64_t units =
        rg_min_u64(slots > capacity ? slots - capacity : 0, RG_PACKET_UNITS);

    limits_out->max_bytes = units * RG_PACKET_PAYLOAD;
    limits_out->max_chunk = 0;
    limits_out->head =
        units ? RG_PACKETS_HEAD + rg_packets_bytes(2 * (units + capacity)) : 0;
    return limits_out->head;
}

RG_ALGO(all_reduce_twoshot_ll, "twoshot_ll", RG_COLL_all_reduce, RG_ALGO_DIRECT,
        1, RG_MAX_SLOTS);
