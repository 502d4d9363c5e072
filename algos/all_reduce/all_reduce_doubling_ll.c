/*
 * All-reduce by recursive doubling, with low-latency packets.
 *
 * Who sends what to whom is said in pattern/doubling.h; each step sends 2 x
 * bytes.
 *
 * Best for small buffers of many ranks: log2(n) x 2 x bytes sent, where one
 * shot sends n-1 times that. A thread keeps to its units, so what it has
 * between rounds is in recv; no barrier and no flag: pattern/packets.h says
 * why.
 *
 *   slots of a half: [step 0 .. k+1][unit], one writer each
 */
#include "algos/all_reduce/all_reduce.h"
#include "algos/pattern/doubling.h"
#include "algos/pattern/packets.h"

struct all_reduce_doubling_ll {
    struct rg_packets packets;
    uint64_t units;
    uint64_t begin, end, step; /* this thread's units */
    struct rg_doubling who;
};

RG_FN struct all_reduce_doubling_ll
all_reduce_doubling_ll_open(struct rg_call *call)
{
    struct all_reduce_doubling_ll s;

    s.who = rg_doubling_of((int)call->plan->rank, (int)call->plan->nranks);
    s.units = (call->count + RG_UNIT_ELEMS - 1) / RG_UNIT_ELEMS;
    s.packets = rg_packets_begin(call, (uint64_t)(s.who.rounds + 2) * s.units);
    rg_share(s.units, call->team.index, call->team.count, &s.begin, &s.end);
    s.begin += (uint64_t)call->team.thread;
    s.step = (uint64_t)call->team.threads;
    return s;
}

/* The lower ranks' value first. */
RG_FN uint64_t all_reduce_doubling_ll_combine(enum rg_op op, uint64_t lower,
                                              uint64_t upper, int divide)
{
    union rg_unit a, b;

    a.word = lower;
    b.word = upper;
    for (int k = 0; k < RG_UNIT_ELEMS; k++) {
        const rg_accum acc = rg_elem_combine(op, rg_elem_load(a.elem[k]),
                                             rg_elem_load(b.elem[k]));

        a.elem[k] =
            rg_elem_store(divide ? rg_elem_finish(op, acc, divide) : acc);
    }
    return a.word;
}

/* One unit of a step. 0, or 1 for failed. */
RG_FN int all_reduce_doubling_ll_unit(struct rg_call *call, enum rg_op op,
                                      const struct all_reduce_doubling_ll *s,
                                      const struct rg_doubling_hop *hop,
                                      uint64_t i, uint8_t *to)
{
    uint64_t word = 0, taken;

    if (hop->own)
        word = rg_unit_load(hop->own, i, call->count);
    if (hop->from >= 0) {
        if (rg_packets_wait(call, &s->packets,
                            (uint64_t)hop->taken * s->units + i, hop->from,
                            &taken))
            return 1;
        if (!hop->own)
            word = taken;
        else if (hop->from < s->who.rank)
            word = all_reduce_doubling_ll_combine(op, taken, word, hop->divide);
        else
            word = all_reduce_doubling_ll_combine(op, word, taken, hop->divide);
        rg_unit_store(call->recv, i, call->count, word);
    }
    if (to)
        rg_packets_send(to, &s->packets, (uint64_t)hop->sent * s->units + i,
                        word);
    return 0;
}

/* All of this thread's units of a step. 0, or 1 for failed. */
RG_FN int all_reduce_doubling_ll_step(struct rg_call *call, enum rg_op op,
                                      const struct all_reduce_doubling_ll *s,
                                      const struct rg_doubling_hop *hop)
{
    uint8_t *to = 0;

    if (hop->to >= 0) {
        to = rg_packets_of(call, &s->packets, hop->to);
        if (!to)
            return rg_fail(call, RG_EUNAVAILABLE, hop->to);
    }
    RG_ROLLED
    for (uint64_t i = s->begin; i < s->end; i += s->step)
        if (all_reduce_doubling_ll_unit(call, op, s, hop, i, to))
            return 1;
    return 0;
}

/* All teams take part, whatever the rule's channels: slots are per unit. */
RG_FN int all_reduce_doubling_ll(struct rg_call *call, enum rg_op op)
{
    const struct all_reduce_doubling_ll s = all_reduce_doubling_ll_open(call);
    const int last = rg_doubling_last(&s.who);

    RG_ROLLED
    for (int t = 0; t <= last; t = rg_doubling_next(&s.who, t)) {
        const struct rg_doubling_hop hop =
            rg_doubling_hop_of(&s.who, t, call->send, call->recv);

        call->step = (uint64_t)t;
        if (all_reduce_doubling_ll_step(call, op, &s, &hop))
            return 1;
    }
    rg_packets_end(call, &s.packets);
    return 0;
}

/* Half as large as other packets' at most: it is meant for less. */
RG_ALGO_LAYOUT(all_reduce_doubling_ll)
{
    const uint64_t steps = (uint64_t)rg_doubling_rounds(shape->capacity) + 2;
    const uint64_t units =
        rg_min_u64(rg_packets_fit(shape->budget) / steps, RG_PACKET_UNITS / 2);

    limits_out->max_bytes = units * RG_PACKET_PAYLOAD;
    limits_out->max_chunk = 0;
    limits_out->head =
        units ? RG_PACKETS_HEAD + rg_packets_bytes(steps * units) : 0;
    return limits_out->head;
}

RG_ALGO(all_reduce_doubling_ll, "doubling_ll", RG_COLL_all_reduce,
        RG_ALGO_DIRECT, 1, RG_MAX_SLOTS);
