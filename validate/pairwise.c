#include "validate/pairwise.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/status.h"

/* Which pairs of values are still uncovered: one byte a pair. */
struct pair_set {
    int nparams;
    int nvalues;         /* of all parameters together */
    int *base;           /* [nparams]: id of the parameter's value 0; owned */
    unsigned char *open; /* [nvalues][nvalues], first id the lower; owned */
};

static void pair_set_fini(struct pair_set *set)
{
    free(set->base);
    free(set->open);
}

static unsigned char *pair_at(const struct pair_set *set, const int *row, int a,
                              int b)
{
    size_t low = (size_t)(set->base[a] + row[a]);

    return &set->open[low * (size_t)set->nvalues + (size_t)set->base[b] +
                      (size_t)row[b]];
}

/* How many uncovered pairs the row has; sets them to `mark` if >= 0. */
static int pair_set_visit(const struct pair_set *set, const int *row, int mark)
{
    int count = 0;

    for (int a = 0; a < set->nparams; a++) {
        for (int b = a + 1; b < set->nparams; b++) {
            unsigned char *pair = pair_at(set, row, a, b);

            count += *pair;
            if (mark >= 0)
                *pair = (unsigned char)mark;
        }
    }
    return count;
}

/* Opens every pair that occurs in a row of the product. */
static int pair_set_init(struct pair_set *set, const struct rg_rows *product)
{
    memset(set, 0, sizeof(*set));
    set->nparams = product->nparams;
    set->base = calloc((size_t)product->nparams, sizeof(*set->base));
    if (set->base == NULL)
        return RG_ENOMEM;
    for (int p = 0; p < product->nparams; p++) {
        int last = -1;

        for (int r = 0; r < product->nrows; r++) {
            int value = rg_rows_at(product, r)[p];
            last = value > last ? value : last;
        }
        set->base[p] = set->nvalues;
        set->nvalues += last + 1;
    }
    set->open = calloc((size_t)set->nvalues + 1, (size_t)set->nvalues + 1);
    if (set->open == NULL) {
        pair_set_fini(set);
        return RG_ENOMEM;
    }
    for (int r = 0; r < product->nrows; r++)
        pair_set_visit(set, rg_rows_at(product, r), 1);
    return RG_OK;
}

/*
 * The row with the most uncovered pairs, the first one from `start` on; -1
 * when all is covered. gain[] holds what a row had when it was last counted:
 * it can only shrink, so a row whose old gain does not beat the best is not
 * counted again.
 */
static int best_row(const struct pair_set *set, const struct rg_rows *product,
                    int start, int *gain)
{
    int best = -1;
    int best_gain = 0;

    for (int i = 0; i < product->nrows; i++) {
        int row = (int)(((long)start + i) % product->nrows);

        if (gain[row] <= best_gain)
            continue;
        gain[row] = pair_set_visit(set, rg_rows_at(product, row), -1);
        if (gain[row] > best_gain) {
            best_gain = gain[row];
            best = row;
        }
    }
    return best;
}

static int rows_alloc(struct rg_rows *rows, int nparams, long nrows)
{
    rows->nparams = nparams;
    rows->nrows = 0;
    rows->values =
        calloc((size_t)nrows + 1, (size_t)nparams * sizeof(*rows->values));
    return rows->values != NULL ? RG_OK : RG_ENOMEM;
}

static void rows_append(struct rg_rows *rows, const int *row)
{
    memcpy(rows->values + (long)rows->nrows * rows->nparams, row,
           (size_t)rows->nparams * sizeof(*row));
    rows->nrows++;
}

/* Counts up like an odometer; 0 after the last row. */
static int row_next(int *row, const int *levels, int nparams)
{
    for (int p = nparams - 1; p >= 0; p--) {
        if (++row[p] < levels[p])
            return 1;
        row[p] = 0;
    }
    return 0;
}

int rg_rows_product(const int *levels, int nparams, rg_row_allowed allowed,
                    void *arg, struct rg_rows *rows_out)
{
    struct rg_rows rows;
    long total = 1;
    int *row;
    int status;

    if (nparams < 1)
        return RG_EINVAL;
    for (int p = 0; p < nparams; p++) {
        if (levels[p] < 1 || total > (1L << 24) / levels[p])
            return RG_EINVAL;
        total *= levels[p];
    }
    row = calloc((size_t)nparams, sizeof(*row));
    if (row == NULL)
        return RG_ENOMEM;
    status = rows_alloc(&rows, nparams, total);
    if (status == RG_OK) {
        do {
            if (allowed == NULL || allowed(row, arg))
                rows_append(&rows, row);
        } while (row_next(row, levels, nparams));
        *rows_out = rows;
    }
    free(row);
    return status;
}

/* Marks in chosen[] the rows of a covering selection; returns their number. */
static int choose(struct pair_set *set, const struct rg_rows *product,
                  uint64_t seed, int *gain, unsigned char *chosen)
{
    int start = product->nrows ? (int)(seed % (uint64_t)product->nrows) : 0;
    int count = 0;
    int row;

    for (int r = 0; r < product->nrows; r++)
        gain[r] = set->nparams * set->nparams;
    while ((row = best_row(set, product, start, gain)) >= 0) {
        pair_set_visit(set, rg_rows_at(product, row), 0);
        chosen[row] = 1;
        count++;
    }
    return count;
}

int rg_rows_pairwise(const struct rg_rows *product, uint64_t seed,
                     struct rg_rows *rows_out)
{
    size_t nrows = (size_t)product->nrows + 1;
    int *gain = calloc(nrows, sizeof(*gain));
    unsigned char *chosen = calloc(nrows, 1);
    struct pair_set set = {0};
    struct rg_rows rows;
    int status = RG_ENOMEM;
    int count;

    if (gain == NULL || chosen == NULL)
        goto out;
    status = pair_set_init(&set, product);
    if (status != RG_OK)
        goto out;
    count = choose(&set, product, seed, gain, chosen);
    status = rows_alloc(&rows, product->nparams, count);
    if (status == RG_OK) {
        for (int r = 0; r < product->nrows; r++) {
            if (chosen[r])
                rows_append(&rows, rg_rows_at(product, r));
        }
        *rows_out = rows;
    }
    pair_set_fini(&set);
out:
    free(chosen);
    free(gain);
    return status;
}

void rg_rows_fini(struct rg_rows *rows)
{
    free(rows->values);
    memset(rows, 0, sizeof(*rows));
}
