#include "bench/guideline.h"

#include <math.h>
#include <stddef.h>

const char *guideline_name(enum guideline_rule rule)
{
    static const char *const names[GUIDELINE_RULES] = {"next-larger",
                                                       "any-larger", "split"};

    return names[rule];
}

/* Rows of one sweep are neighbours; those of size 0 do nothing. */
static int is_alike(const struct guideline_row *a,
                    const struct guideline_row *b)
{
    return a->sweep == b->sweep && a->collective == b->collective &&
           a->dtype == b->dtype && a->op == b->op && a->inplace == b->inplace;
}

static int is_judged(const struct guideline_row *row)
{
    return row->bytes > 0 && isfinite(row->ci_lo_us) && isfinite(row->ci_hi_us);
}

/* Whether the row is slower than something of these figures, beyond noise. */
static int is_slower(const struct guideline_row *row, double other_us,
                     double other_hi_us)
{
    return row->ci_lo_us > other_hi_us &&
           row->p50_us >= (1 + GUIDELINE_EFFECT) * other_us;
}

static void report(enum guideline_rule rule, const struct guideline_row *row,
                   const struct guideline_row *other, double other_us,
                   void (*violated)(void *arg,
                                    const struct guideline_violation *),
                   void *arg)
{
    const struct guideline_violation violation = {rule, row, other, other_us,
                                                  row->p50_us / other_us};

    violated(arg, &violation);
}

/* The next row of the same sweep, of a larger size; null: none. */
static const struct guideline_row *next_of(const struct guideline_row *row,
                                           const struct guideline_row *end)
{
    for (const struct guideline_row *other = row + 1; other < end; other++)
        if (is_alike(row, other) && is_judged(other) &&
            other->bytes > row->bytes)
            return other;
    return NULL;
}

/* The fastest behind the next one. */
static const struct guideline_row *fastest_of(const struct guideline_row *row,
                                              const struct guideline_row *end)
{
    const struct guideline_row *other = next_of(row, end), *fastest = NULL;

    while (other && (other = next_of(other, end)))
        if (!fastest || other->p50_us < fastest->p50_us)
            fastest = other;
    return fastest;
}

/* A part of what could stand in for an all-reduce row; null: not measured. */
static const struct guideline_row *part_of(const struct guideline_row *rows,
                                           int n,
                                           const struct guideline_row *row,
                                           enum rg_collective collective)
{
    for (int i = 0; i < n; i++)
        if (rows[i].collective == collective && rows[i].dtype == row->dtype &&
            rows[i].inplace == row->inplace && rows[i].bytes == row->bytes &&
            (rows[i].op == row->op || collective == RG_COLL_all_gather) &&
            is_judged(&rows[i]))
            return &rows[i];
    return NULL;
}

int guideline_check(
    const struct guideline_row *rows, int n, enum guideline_rule rule,
    void (*violated)(void *arg, const struct guideline_violation *), void *arg)
{
    int applied = 0;

    for (int i = 0; i < n; i++) {
        const struct guideline_row *row = &rows[i];
        const struct guideline_row *other = NULL, *more = NULL;
        double us, hi_us;

        if (!is_judged(row))
            continue;
        if (rule == GUIDELINE_NEXT_LARGER)
            other = next_of(row, rows + n);
        else if (rule == GUIDELINE_ANY_LARGER)
            other = fastest_of(row, rows + n);
        else if (row->collective == RG_COLL_all_reduce) {
            other = part_of(rows, n, row, RG_COLL_reduce_scatter);
            more = part_of(rows, n, row, RG_COLL_all_gather);
        }
        if (!other || (rule == GUIDELINE_SPLIT && !more))
            continue;
        applied++;
        us = other->p50_us + (more ? more->p50_us : 0);
        hi_us = other->ci_hi_us + (more ? more->ci_hi_us : 0);
        if (is_slower(row, us, hi_us))
            report(rule, row, other, us, violated, arg);
    }
    return applied;
}
