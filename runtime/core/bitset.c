#include "runtime/core/bitset.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/status.h"

enum { WORD_BITS = 64 };

static size_t word_count(int bits)
{
    return ((size_t)bits + WORD_BITS - 1) / WORD_BITS;
}

static uint64_t mask_of(int bit)
{
    return 1ull << (bit % WORD_BITS);
}

int rg_bitset_init(struct rg_bitset *set, int bits)
{
    size_t words = word_count(bits);

    /* A set of no bits still owns a word: words is null only when finished. */
    set->words = calloc(words ? words : 1, sizeof(*set->words));
    set->bits = set->words ? bits : 0;
    return set->words ? RG_OK : RG_ENOMEM;
}

void rg_bitset_fini(struct rg_bitset *set)
{
    free(set->words);
    set->words = NULL;
    set->bits = 0;
}

void rg_bitset_set(struct rg_bitset *set, int bit)
{
    set->words[bit / WORD_BITS] |= mask_of(bit);
}

void rg_bitset_clear(struct rg_bitset *set, int bit)
{
    set->words[bit / WORD_BITS] &= ~mask_of(bit);
}

void rg_bitset_zero(struct rg_bitset *set)
{
    memset(set->words, 0, word_count(set->bits) * sizeof(*set->words));
}

int rg_bitset_test(const struct rg_bitset *set, int bit)
{
    return (set->words[bit / WORD_BITS] & mask_of(bit)) != 0;
}

int rg_bitset_count(const struct rg_bitset *set)
{
    int count = 0;

    for (size_t i = 0; i < word_count(set->bits); i++)
        count += __builtin_popcountll(set->words[i]);
    return count;
}

int rg_bitset_next(const struct rg_bitset *set, int from)
{
    if (from < 0)
        from = 0;
    while (from < set->bits) {
        uint64_t rest = set->words[from / WORD_BITS] >> (from % WORD_BITS);

        if (rest)
            return from + __builtin_ctzll(rest);
        from += WORD_BITS - from % WORD_BITS;
    }
    return -1;
}

void rg_bitset_copy(struct rg_bitset *to, const struct rg_bitset *from)
{
    memcpy(to->words, from->words, word_count(to->bits) * sizeof(*to->words));
}

int rg_bitset_equal(const struct rg_bitset *a, const struct rg_bitset *b)
{
    size_t bytes = word_count(a->bits) * sizeof(*a->words);

    return a->bits == b->bits && !memcmp(a->words, b->words, bytes);
}
