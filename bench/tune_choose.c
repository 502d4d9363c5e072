#include "bench/tune_choose.h"

#include <math.h>
#include <stdlib.h>

#include "bench/tune_stats.h"
#include "runtime/status.h"

/* A cost that does not count, as a part of one that does. */
#define UNPROVEN 1e-6

/* The width of a crossover at which it is not halved any more. */
#define OCTAVE_PART 0.125

static double time_of(const struct tune_cell *cell)
{
    return cell->n > 0 ? tune_median(cell->us, cell->n) : cell->guess_us;
}

static int least_of(const struct tune_cell *cells, int candidates)
{
    int least = -1;

    /* Measured ones first: a guess is no yardstick where there is another. */
    for (int measured = 1; measured >= 0 && least < 0; measured--)
        for (int c = 0; c < candidates; c++) {
            if ((cells[c].n > 0) != measured || isnan(time_of(&cells[c])))
                continue;
            if (least < 0 || time_of(&cells[c]) < time_of(&cells[least]))
                least = c;
        }
    return least;
}

/* Whether a loss against the best is one; what was not measured has lost. */
static int counts(const struct tune_cell *best, const struct tune_cell *other)
{
    return other->n == 0 || tune_faster(best->us, best->n, other->us, other->n);
}

void tune_costs(const struct tune_cell *cells, int candidates, double *cost_out)
{
    const int least = least_of(cells, candidates);

    for (int c = 0; c < candidates; c++) {
        const double us = time_of(&cells[c]);
        double loss;

        cost_out[c] = INFINITY;
        if (least < 0 || isnan(us))
            continue;
        loss = log(us / time_of(&cells[least]));
        if (cells[c].n == 0 && cells[least].n > 0)
            loss = fmax(loss, TUNE_EFFECT);
        cost_out[c] = counts(&cells[least], &cells[c]) ? loss : UNPROVEN * loss;
    }
}

/* ---- dynamic programming ------------------------------------------------ */

static int least_total(const double *total, int candidates)
{
    int least = 0;

    for (int c = 1; c < candidates; c++)
        if (total[c] < total[least])
            least = c;
    return least;
}

/* One size further: totals so far, and from where each comes. */
static void advance(const double *cost, int candidates, double per_switch,
                    double *total, int *from)
{
    const int best = least_total(total, candidates);
    const double other = total[best] + per_switch;

    for (int c = 0; c < candidates; c++) {
        const int stay = total[c] < other;

        from[c] = stay ? c : best;
        total[c] = (stay ? total[c] : other) + cost[c];
    }
}

int tune_choose(int sizes, int candidates, const double *cost,
                double per_switch, int *choice_out)
{
    double *total = calloc((size_t)candidates, sizeof *total);
    int *from = calloc((size_t)sizes * (size_t)candidates, sizeof *from);
    int status = total && from ? RG_OK : RG_ENOMEM;

    for (int s = 0; status == RG_OK && s < sizes; s++) {
        /* The first size follows a choice of any candidate for nothing. */
        advance(cost + (size_t)s * (size_t)candidates, candidates,
                s ? per_switch : 0, total,
                from + (size_t)s * (size_t)candidates);
        if (isinf(total[least_total(total, candidates)]))
            status = RG_EINVAL;
    }
    if (status == RG_OK && sizes > 0)
        choice_out[sizes - 1] = least_total(total, candidates);
    for (int s = sizes - 1; status == RG_OK && s > 0; s--)
        choice_out[s - 1] =
            from[(size_t)s * (size_t)candidates + (size_t)choice_out[s]];
    free(total);
    free(from);
    return status;
}

/* ---- crossovers --------------------------------------------------------- */

uint64_t tune_bisect_next(const struct tune_bisect *bisect)
{
    const double low = (double)(bisect->low ? bisect->low : 1);
    const double high = (double)bisect->high;
    uint64_t middle;

    if (log2(high / low) <= OCTAVE_PART)
        return 0;
    middle = (uint64_t)sqrt(low * high) / bisect->grain * bisect->grain;
    if (middle <= bisect->low)
        middle = (bisect->low / bisect->grain + 1) * bisect->grain;
    return middle < bisect->high ? middle : 0;
}

void tune_bisect_take(struct tune_bisect *bisect, uint64_t bytes,
                      int latter_is_faster)
{
    if (latter_is_faster)
        bisect->high = bytes;
    else
        bisect->low = bytes;
}
