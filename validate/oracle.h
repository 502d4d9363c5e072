/*
 * The reference for what is combined and moved, written from the definitions of
 * the types and of the operations (runtime/regroup.h) and sharing no code with
 * algorithms, device or bench: what these get wrong, this must not get wrong
 * too.
 *
 * A *problem* fixes type, operation, rank count, kind of inputs and a seed;
 * every element of every rank's input then follows from (rank, index), so a
 * rank needs no communication to know what the others sent. An element is
 * handled as its *bits*: the little-endian value, zero-extended to 64.
 *
 * Inputs are one of
 *  EXACT  the result has one right bit pattern whatever the order and however
 *         often it is rounded on the way: integers wrap (for and and or, most
 *         bits are such that one rank more makes a difference); floating sums
 * are of short integers times a common power of two; averages divide evenly;
 *         factors are powers of two; min and max see all finite values,
 *         infinities and subnormals (no NaN, no negative zero).
 *  ROUGH  floating sums, averages and products (these up to 14 ranks) of
 *         full-length random significands: accepted is what lies within
 * rg_oracle_bound() of the result in long double. Integers, min and max are as
 * with EXACT.
 *
 * Pure functions over values; any thread. nranks is 1 .. 64.
 */
#ifndef RG_VALIDATE_ORACLE_H
#define RG_VALIDATE_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/types.h"

enum rg_oracle_inputs { RG_INPUTS_EXACT = 0, RG_INPUTS_ROUGH };

struct rg_oracle {
    enum rg_dtype dtype;
    enum rg_op op;
    int nranks;
    enum rg_oracle_inputs inputs;
    uint64_t seed;
};

enum { RG_ORACLE_MAX_RANKS = 64 };

/* ---- types -------------------------------------------------------------- */

/* As what it is handled where it is only moved: any bits, and no number. */
enum rg_dtype rg_oracle_moved(enum rg_dtype dtype);
/* Bytes of one element. */
size_t rg_oracle_size(enum rg_dtype dtype);
/* The number the bits stand for; integers exactly (64 bits fit). */
long double rg_oracle_decode(enum rg_dtype dtype, uint64_t bits);
/*
 * Floating types only: the nearest value, ties to even, overflow to infinity,
 * gradual underflow; NaN becomes the quiet NaN with a clear sign.
 */
uint64_t rg_oracle_encode(enum rg_dtype dtype, long double value);
/* "0x3c00 (1)"; always terminated. */
void rg_oracle_format(enum rg_dtype dtype, uint64_t bits, char *text,
                      size_t bytes);
/* Element `index` of an array in memory; no alignment needed. */
uint64_t rg_oracle_load(enum rg_dtype dtype, const void *array, size_t index);
void rg_oracle_store(enum rg_dtype dtype, void *array, size_t index,
                     uint64_t bits);

/* ---- the problem -------------------------------------------------------- */

/* What `rank` sends at `index`. */
uint64_t rg_oracle_input(const struct rg_oracle *oracle, int rank,
                         size_t index);
/* `count` elements of a rank's input from `first` on. */
void rg_oracle_fill(const struct rg_oracle *oracle, int rank, size_t first,
                    void *array, size_t count);

/*
 * The reduction of nranks elements, in rank order, rounded once. Signed
 * integers are bits in two's complement.
 */
uint64_t rg_oracle_reduce(enum rg_dtype dtype, enum rg_op op,
                          const uint64_t *inputs, int nranks);

/*
 * The largest distance from the exact result of a computation that adds (or
 * multiplies) in any order and rounds to the type after each step, u being
 * half a unit in the last place of 1 and tiny the least subnormal:
 *     sum   (n + 1) u  sum|x|
 *     avg   ((n + 1) u  sum|x| + n tiny) / n + u |result| + tiny
 *     prod  (n + 1) u  |result| + n tiny
 * n - 1 steps give at most (n - 1) u / (1 - (n - 1) u); the rest of n + 1
 * covers the quotient and the conversion of the result.
 */
long double rg_oracle_bound(enum rg_dtype dtype, enum rg_op op,
                            const uint64_t *inputs, int nranks);

/* Where outputs come from: from one rank, or combined from all. */
enum { RG_ORACLE_ALL = -1 };

struct rg_oracle_mismatch {
    size_t index;      /* in the array */
    uint64_t expected; /* bits; the nearest value where a bound applies */
    uint64_t got;
};

/* Is `got` right at `index`? Sets expected_out in either case. */
int rg_oracle_accepts(const struct rg_oracle *oracle, size_t index,
                      uint64_t got, uint64_t *expected_out);

/*
 * Compares elements [first, end) of an array, which is what `from` has at `at`
 * and behind. Returns how many are wrong and, if any, sets *mismatch_out to the
 * first.
 */
size_t rg_oracle_check(const struct rg_oracle *oracle, int from, size_t at,
                       const void *array, size_t first, size_t end,
                       struct rg_oracle_mismatch *mismatch_out);

#endif
