/*
 * The tuning itself: what to measure next, within a budget, and what follows.
 * Measuring is the caller's; made-up figures serve as well.
 *
 *   prune     every algorithm, then channels and chunks of the good ones: a
 *             short look at each size
 *   sweep     what is left, interleaved, in several launches: one sample each
 *   choose    dynamic programming over sizes (tune_choose.h)
 *   bisect    where one choice gives way to the next
 *   confirm   each such bound, in new launches
 *   held out  sizes that nothing was chosen by: the regret, chosen / best
 *
 * Clock and budget decide what is measured, and nothing else: what is found
 * follows from the samples alone. So the same samples give the same result
 * again, however they came together.
 */
#ifndef RG_BENCH_TUNE_SEARCH_H
#define RG_BENCH_TUNE_SEARCH_H

#include <stdint.h>

#include "bench/tune_raw.h"
#include "bench/tune_space.h"

enum {
    TUNE_ORDER_MAX = 48, /* candidates of one case */
    TUNE_PEERS_MAX = 3,  /* behind them */
    TUNE_LAUNCHES_MAX = 20,
    TUNE_HELD_MAX = 100
};

struct tune_config {
    uint64_t min_bytes, max_bytes;
    uint64_t grain; /* sizes between powers of two are multiples of it */
    int launches;
    uint64_t seed;
    double budget_s;
    int held_out; /* sizes */
    int max_rows; /* that a table may have */
    int npeers;
    const char *peers[TUNE_PEERS_MAX]; /* names */
};

/* One case: candidates measured in turn at one size. */
struct tune_order {
    uint64_t bytes;
    double max_us; /* for each candidate; one round is always made */
    int fresh;     /* a launch begins: a new communicator, new graphs */
    int peers;     /* 1: the peers too */
    int n;
    int candidates[TUNE_ORDER_MAX]; /* indices in the space */
};

/* NaN: it could not be measured. */
struct tune_figure {
    double p50_us, min_us;
    int n;
};

/* Who measures; a negative status ends the tuning. */
struct tune_meter {
    /* Figures of the candidates, then of the peers. */
    int (*measure)(void *arg, const struct tune_order *order,
                   struct tune_figure *figures_out);
    double (*clock_s)(void *arg); /* since the tuning began */
    void (*progress)(void *arg, const char *text);
    void *arg;
};

/* A size of the grid that was swept. */
struct tune_point {
    uint64_t bytes;
    int chosen;
    int runner_up; /* -1: none */
    int launches;  /* of the chosen one */
    double p50_us; /* NaN: known from the short look only */
    double margin; /* runner-up's / chosen's */
    double noise;  /* the largest tune_noise() of all swept there */
    int counts;    /* the difference between the two does */
};

/* From `former` to `latter`, somewhere in (low, high]; the bound is high. */
struct tune_crossover {
    uint64_t low, high;
    uint64_t grid; /* the size of the grid at which the latter was chosen */
    int former, latter;
    int confirmed; /* 1; 0: new launches say otherwise; -1: not measured */
};

/* Sizes from `from` up to the next segment's. */
struct tune_segment {
    uint64_t from;
    int candidate;
};

struct tune_held {
    uint64_t bytes;
    int chosen, best;
    double regret; /* chosen's median / best's, >= 1 */
    int launches;
};

struct tune_result {
    int npoints, ncrossovers, nsegments, nheld;
    struct tune_point points[TUNE_SIZES_MAX];
    struct tune_crossover crossovers[TUNE_SIZES_MAX];
    struct tune_segment segments[TUNE_SIZES_MAX];
    struct tune_held held[TUNE_HELD_MAX];
    double regret_p50, regret_max; /* NaN: nothing held out was measured */
    int left_out;                  /* sizes of the grid that were not swept */
    int unlaunched; /* sizes swept in fewer launches than asked for */
    double spent_s;
};

/*
 * RG_OK; RG_ENOTSUP: no candidate can run; RG_ETIMEDOUT with a `left_out`: the
 * budget is too short for two sizes; else what the meter or the raw file
 * said. Samples that `raw` has are not measured again; where they are a whole
 * tuning's of this budget or a larger one, nothing is measured.
 */
int tune_search(const struct tune_config *config,
                const struct tune_space *space, const struct tune_meter *meter,
                struct tune_raw *raw, struct tune_result *result_out);

/* Which candidate serves a size. */
int tune_result_candidate(const struct tune_result *result, uint64_t bytes);

#endif
