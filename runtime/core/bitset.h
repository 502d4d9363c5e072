/*
 * A set of slots, sized at creation (capacity is configuration). Storage is
 * an array of 64-bit words the caller owns; `bits` is the capacity.
 */
#ifndef RG_CORE_BITSET_H
#define RG_CORE_BITSET_H

#include <stddef.h>
#include <stdint.h>

struct rg_bitset {
    uint64_t *words; /* owned */
    int bits;
};

/* All clear. RG_OK or RG_ENOMEM. */
int rg_bitset_init(struct rg_bitset *set, int bits);
/* Frees and zeroes; accepts a zeroed set. */
void rg_bitset_fini(struct rg_bitset *set);
void rg_bitset_set(struct rg_bitset *set, int bit);
void rg_bitset_clear(struct rg_bitset *set, int bit);
void rg_bitset_zero(struct rg_bitset *set);
int rg_bitset_test(const struct rg_bitset *set, int bit);
int rg_bitset_count(const struct rg_bitset *set);
/* The first set bit >= from, or -1. */
int rg_bitset_next(const struct rg_bitset *set, int from);
/* Same capacity: copies; or 1 if equal. */
void rg_bitset_copy(struct rg_bitset *to, const struct rg_bitset *from);
int rg_bitset_equal(const struct rg_bitset *a, const struct rg_bitset *b);

#endif
