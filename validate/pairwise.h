/*
 * Test arrays over parameters with few values each.
 *
 * A *row* gives every parameter one of its values (0 .. levels-1). The
 * product holds every allowed row; a pairwise array is a small selection of
 * the product's rows in which every pair of values of two parameters that
 * occurs in some allowed row occurs again. Most faults need only two values
 * to meet, so the small array finds nearly what the product finds.
 *
 * Everything here is deterministic: the same arguments, the same rows, on
 * every rank. Arrays are plain values owned by the caller.
 */
#ifndef RG_VALIDATE_PAIRWISE_H
#define RG_VALIDATE_PAIRWISE_H

#include <stdint.h>

struct rg_rows {
    int nparams;
    int nrows;
    int *values; /* [nrows][nparams]; owned */
};

/* Says whether the parameters of a row may meet; borrowed during a call. */
typedef int (*rg_row_allowed)(const int *row, void *arg);

/*
 * Every row of levels[0] x ... x levels[nparams-1] that `allowed` accepts
 * (null: all), the last parameter running fastest. RG_OK, RG_EINVAL for no
 * parameter or a level below 1, RG_ENOMEM.
 */
int rg_rows_product(const int *levels, int nparams, rg_row_allowed allowed,
                    void *arg, struct rg_rows *rows_out);

/*
 * A selection of the product's rows that covers every pair that occurs in
 * it, in the product's order. Greedy: each step takes the row with the most
 * uncovered pairs; `seed` turns the place where ties are looked for, so
 * different seeds give different, equally covering arrays. RG_OK, RG_ENOMEM.
 */
int rg_rows_pairwise(const struct rg_rows *product, uint64_t seed,
                     struct rg_rows *rows_out);

/* Frees and zeroes; accepts a zeroed array. */
void rg_rows_fini(struct rg_rows *rows);

static inline const int *rg_rows_at(const struct rg_rows *rows, int index)
{
    return rows->values + (long)index * rows->nparams;
}

#endif
