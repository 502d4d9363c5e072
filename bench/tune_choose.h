/*
 * Which candidate to use at each of a row of sizes, and where exactly one
 * gives way to the next. Pure functions of figures.
 */
#ifndef RG_BENCH_TUNE_CHOOSE_H
#define RG_BENCH_TUNE_CHOOSE_H

#include <stdint.h>

/* A change of candidate must gain as much as this over the sizes it serves. */
#define TUNE_SWITCH 0.02

/*
 * Launch medians of one candidate at one size; n 0: not measured, and then
 * `guess_us` is a time known from elsewhere, or NaN: it cannot run.
 */
struct tune_cell {
    const double *us;
    int n;
    double guess_us;
};

/*
 * What each candidate loses at one size against the fastest: ln(its median /
 * the least). A loss that does not count (tune_faster) is made so small that
 * it decides only between candidates that are equal else. Infinity: it cannot
 * run. cost_out has `candidates` entries.
 */
void tune_costs(const struct tune_cell *cells, int candidates,
                double *cost_out);

/*
 * The sequence of candidates, one for each size in ascending order, with the
 * least sum of costs, each change of candidate costing `per_switch` more:
 * Bellman's dynamic programming over sizes (on a chain, the algorithm of
 * Viterbi, 1967). As every switch costs the same, the best predecessor is
 * either oneself or the best of all, so it takes sizes * candidates steps and
 * as many words. Ties stay with the smaller size's choice, then the lower
 * index. cost is [sizes][candidates]; each size needs one that is finite.
 * RG_OK, RG_EINVAL when a size has none, RG_ENOMEM.
 */
int tune_choose(int sizes, int candidates, const double *cost,
                double per_switch, int *choice_out);

/*
 * A crossover: `low` is where the former choice is used, `high` the least size
 * known to be the latter's. Halves the interval on a logarithmic scale, at
 * multiples of `grain`, until it is an eighth of an octave or one grain wide.
 * Whoever is to take over must prove itself: a tie raises `low`.
 */
struct tune_bisect {
    uint64_t low, high; /* bytes, low < high */
    uint64_t grain;
};
/* The size to measure next, or 0: `high` is the bound. */
uint64_t tune_bisect_next(const struct tune_bisect *bisect);
/* What was found there: was the latter faster (tune_faster)? */
void tune_bisect_take(struct tune_bisect *bisect, uint64_t bytes,
                      int latter_is_faster);

#endif
