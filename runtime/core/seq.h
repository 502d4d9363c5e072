/*
 * Sequence numbers wrap; which of two comes first is told by their signed
 * difference, so they must be less than 2^63 apart.
 */
#ifndef RG_CORE_SEQ_H
#define RG_CORE_SEQ_H

#include <stdint.h>

/* 1: a comes before b. */
static inline int rg_seq_precedes(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) < 0;
}

/* *seq becomes the later one of the two. */
static inline void rg_seq_raise(uint64_t *seq, uint64_t to)
{
    if (rg_seq_precedes(*seq, to))
        *seq = to;
}

#endif
