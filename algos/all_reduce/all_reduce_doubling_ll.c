/*
 * All-reduce by recursive doubling, with low-latency packets.
 *
 * Of n ranks, m = 2^k are the largest power of two, and the first 2 (n - m)
 * stand in pairs: the odd rank of a pair hands its input to the even one and
 * is handed the result. So m ranks are left, v = 0 .. m-1 in rank order, each
 * for one rank or for two neighbours.
 *
 *   0. a pair's odd rank sends its input to the even one      2 x bytes
 *   1. .. k. in round j, v exchanges what it has with v ^ 2^(j-1), and both
 *      combine the two                                        2 x bytes each
 *   k+1. a pair's even rank sends the result to the odd one   2 x bytes
 *
 * Before round j the 2^(j-1) ranks of an aligned block hold the same bits: of
 * the combination, as a balanced tree, of the block's inputs in rank order.
 * Both partners combine the lower block's value with the upper block's, in
 * this order, each as it was stored and sent; so after the round they hold the
 * same bits too, and the result is the same everywhere, also of floats.
 *
 * Best for small buffers of many ranks: log2(n) x 2 x bytes sent, where one
 * shot sends n-1 times that. A thread keeps to its units, so what it has
 * between rounds is in recv; no barrier and no flag: pattern/packets.h says
 * why.
 *
 *   slots of a half: [step 0 .. k+1][unit], one writer each
 */
#include "algos/all_reduce/all_reduce.h"
#include "algos/pattern/packets.h"

struct all_reduce_doubling_ll {
    struct rg_packets packets;
    uint64_t units;
    uint64_t begin, end, step; /* this thread's units */
    int rank, nranks;
    int pairs;  /* n - m */
    int rounds; /* k */
};

/* What a rank does in one step: take, combine, send on. Rank -1: nobody. */
struct all_reduce_doubling_ll_hop {
    int from, to;
    int taken, sent; /* the slots' steps */
    const void *own; /* combined with what is taken; null: replaced by it */
    int divide;      /* ranks by which an average is divided; 0: not yet */
};

RG_FN int all_reduce_doubling_ll_rounds(int n)
{
    int rounds = 0;

    while (2 << rounds <= n)
        rounds++;
    return rounds;
}

RG_FN struct all_reduce_doubling_ll
all_reduce_doubling_ll_open(struct rg_call *call)
{
    struct all_reduce_doubling_ll s;

    s.rank = (int)call->plan->rank;
    s.nranks = (int)call->plan->nranks;
    s.rounds = all_reduce_doubling_ll_rounds(s.nranks);
    s.pairs = s.nranks - (1 << s.rounds);
    s.units = (call->count + RG_UNIT_ELEMS - 1) / RG_UNIT_ELEMS;
    s.packets = rg_packets_begin(call, (uint64_t)(s.rounds + 2) * s.units);
    rg_share(s.units, call->team.index, call->team.count, &s.begin, &s.end);
    s.begin += (uint64_t)call->team.thread;
    s.step = (uint64_t)call->team.threads;
    return s;
}

/* Who this rank exchanges with in round j. */
RG_FN int all_reduce_doubling_ll_partner(const struct all_reduce_doubling_ll *s,
                                         int j)
{
    const int v = s->rank < 2 * s->pairs ? s->rank / 2 : s->rank - s->pairs;
    const int other = v ^ 1 << (j - 1);

    return other < s->pairs ? 2 * other : other + s->pairs;
}

/* Step t of an odd rank of a pair, which takes part in 0 and k+1 only. */
RG_FN struct all_reduce_doubling_ll_hop
all_reduce_doubling_ll_odd(const struct rg_call *call,
                           const struct all_reduce_doubling_ll *s, int t)
{
    struct all_reduce_doubling_ll_hop hop;

    hop.from = t == s->rounds + 1 ? s->rank - 1 : -1;
    hop.to = t == 0 ? s->rank - 1 : -1;
    hop.taken = t;
    hop.sent = 0;
    hop.own = t == 0 ? call->send : 0;
    hop.divide = 0;
    return hop;
}

/* Step t of any other rank: it sends what the step after takes. */
RG_FN struct all_reduce_doubling_ll_hop
all_reduce_doubling_ll_hop_of(const struct rg_call *call,
                              const struct all_reduce_doubling_ll *s, int t)
{
    const int odd = s->rank < 2 * s->pairs ? s->rank + 1 : -1;
    struct all_reduce_doubling_ll_hop hop;

    hop.from = t == 0 ? odd : all_reduce_doubling_ll_partner(s, t);
    hop.to = t == s->rounds ? odd : all_reduce_doubling_ll_partner(s, t + 1);
    hop.taken = t;
    hop.sent = t + 1;
    /* What a step has combined is in recv; the first found nothing there. */
    hop.own = t == 0 || (t == 1 && odd < 0) ? call->send : call->recv;
    hop.divide = t == s->rounds ? s->nranks : 0;
    return hop;
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
RG_FN int all_reduce_doubling_ll_unit(
    struct rg_call *call, enum rg_op op, const struct all_reduce_doubling_ll *s,
    const struct all_reduce_doubling_ll_hop *hop, uint64_t i, uint8_t *to)
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
        else if (hop->from < s->rank)
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
RG_FN int
all_reduce_doubling_ll_step(struct rg_call *call, enum rg_op op,
                            const struct all_reduce_doubling_ll *s,
                            const struct all_reduce_doubling_ll_hop *hop)
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
    const int odd = s.rank < 2 * s.pairs && s.rank % 2;
    const int last = s.rounds + odd;

    RG_ROLLED
    for (int t = 0; t <= last; t += odd ? last : 1) {
        const struct all_reduce_doubling_ll_hop hop =
            odd ? all_reduce_doubling_ll_odd(call, &s, t)
                : all_reduce_doubling_ll_hop_of(call, &s, t);

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
    const uint64_t steps =
        (uint64_t)all_reduce_doubling_ll_rounds(shape->capacity) + 2;
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
