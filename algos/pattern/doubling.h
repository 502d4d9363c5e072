/*
 * Who exchanges with whom in a recursive doubling of n ranks, m = 2^k the
 * largest power of two among them. The first 2 (n - m) ranks stand in pairs:
 * the odd rank of a pair hands its input to the even one and is handed the
 * result. So m ranks are left, v = 0 .. m-1 in rank order, each for one rank
 * or for two neighbours.
 *
 *   step 0         a pair's odd rank sends its input to the even one
 *   step j = 1..k  v exchanges what it has with v ^ 2^(j-1), and both combine
 *   step k+1       a pair's even rank sends the result to the odd one
 *
 * Before step j the 2^(j-1) ranks of an aligned block hold the same bits: of
 * the combination, as a balanced tree, of the block's inputs in rank order.
 * Both partners combine the lower block's value with the upper block's, in
 * this order, each as it was stored and sent; so after the step they hold the
 * same bits too, and the result is the same everywhere, also of floats.
 * Source: Thakur, Rabenseifner and Gropp, "Optimization of collective
 * communication operations in MPICH", IJHPCA 19(1), 2005.
 */
#ifndef RG_PATTERN_DOUBLING_H
#define RG_PATTERN_DOUBLING_H

#include "runtime/device/dev.h"

struct rg_doubling {
    int rank, nranks;
    int pairs;  /* n - m */
    int rounds; /* k */
};

/* What a rank does in one step: take, combine, send on. Rank -1: nobody. */
struct rg_doubling_hop {
    int from, to;
    int taken, sent; /* the steps whose slots are read and written */
    const void *own; /* combined with what is taken; null: replaced by it */
    int divide;      /* ranks by which an average is divided; 0: not yet */
};

RG_FN int rg_doubling_rounds(int n)
{
    int rounds = 0;

    while (2 << rounds <= n)
        rounds++;
    return rounds;
}

RG_FN struct rg_doubling rg_doubling_of(int rank, int nranks)
{
    struct rg_doubling s;

    s.rank = rank;
    s.nranks = nranks;
    s.rounds = rg_doubling_rounds(nranks);
    s.pairs = nranks - (1 << s.rounds);
    return s;
}

/* Who this rank exchanges with in step j. */
RG_FN int rg_doubling_partner(const struct rg_doubling *s, int j)
{
    const int v = s->rank < 2 * s->pairs ? s->rank / 2 : s->rank - s->pairs;
    const int other = v ^ 1 << (j - 1);

    return other < s->pairs ? 2 * other : other + s->pairs;
}

/* 1: the odd rank of a pair, which takes part in steps 0 and k+1 only. */
RG_FN int rg_doubling_is_odd(const struct rg_doubling *s)
{
    return s->rank < 2 * s->pairs && s->rank % 2;
}

/* The step behind step t, from 0 on until rg_doubling_last(). */
RG_FN int rg_doubling_next(const struct rg_doubling *s, int t)
{
    return t + (rg_doubling_is_odd(s) ? s->rounds + 1 : 1);
}

RG_FN int rg_doubling_last(const struct rg_doubling *s)
{
    return s->rounds + rg_doubling_is_odd(s);
}

RG_FN struct rg_doubling_hop rg_doubling_odd(const struct rg_doubling *s, int t,
                                             const void *send)
{
    struct rg_doubling_hop hop;

    hop.from = t == s->rounds + 1 ? s->rank - 1 : -1;
    hop.to = t == 0 ? s->rank - 1 : -1;
    hop.taken = t;
    hop.sent = 0;
    hop.own = t == 0 ? send : 0;
    hop.divide = 0;
    return hop;
}

/* Step t of a rank: it sends what the step after takes. */
RG_FN struct rg_doubling_hop rg_doubling_hop_of(const struct rg_doubling *s,
                                                int t, const void *send,
                                                const void *recv)
{
    const int odd = s->rank < 2 * s->pairs ? s->rank + 1 : -1;
    struct rg_doubling_hop hop;

    if (rg_doubling_is_odd(s))
        return rg_doubling_odd(s, t, send);
    hop.from = t == 0 ? odd : rg_doubling_partner(s, t);
    hop.to = t == s->rounds ? odd : rg_doubling_partner(s, t + 1);
    hop.taken = t;
    hop.sent = t + 1;
    /* What a step has combined is in recv; the first found nothing there. */
    hop.own = t == 0 || (t == 1 && odd < 0) ? send : recv;
    hop.divide = t == s->rounds ? s->nranks : 0;
    return hop;
}

#endif
