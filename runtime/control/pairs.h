/*
 * Messages between pairs of slots, counted: what send and receive have done in
 * an epoch. A sender counts those that have gone, a receiver those that have
 * come; what both count is done at both ends.
 */
#ifndef RG_CONTROL_PAIRS_H
#define RG_CONTROL_PAIRS_H

#include <stdint.h>

struct rg_pair {
    int from; /* slots */
    int to;
    uint64_t count; /* not 0: such pairs are left out */
};

/* Ascending by from, then to; each pair once. Zero-initialise. */
struct rg_pairs {
    struct rg_pair *items; /* [count], owned */
    int count;
};

/* RG_OK or RG_ENOMEM; what *pairs_out held before is not freed. */
int rg_pairs_copy(const struct rg_pairs *pairs, struct rg_pairs *pairs_out);
void rg_pairs_fini(struct rg_pairs *pairs);
/* 0: the pair is not in there. */
uint64_t rg_pairs_find(const struct rg_pairs *pairs, int from, int to);
/* Whether they are in order. */
int rg_pairs_are_sorted(const struct rg_pairs *pairs);

#endif
