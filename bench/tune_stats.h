/*
 * When one time counts as smaller than another, and how noisy times are. A
 * sample here is a launch's median in microseconds.
 */
#ifndef RG_BENCH_TUNE_STATS_H
#define RG_BENCH_TUNE_STATS_H

/* A difference counts if it is as large as this and this unlikely by chance. */
#define TUNE_EFFECT 0.02
#define TUNE_ALPHA  0.05

enum { TUNE_EXACT_MAX = 40 }; /* samples of both sides, for exact ranks */

/* NaN for n 0. */
double tune_median(const double *us, int n);

/*
 * The rank-sum test of Mann and Whitney (1947), one-sided: how likely x would
 * rank as low among both by chance, if both were alike. Ties share their mean
 * rank. Exact, also with ties, up to TUNE_EXACT_MAX samples, by counting all
 * ways to split them; above, by the normal approximation with corrections for
 * ties and continuity. 1 where a side has no samples. Three launches a side
 * reach TUNE_ALPHA just when all of x are below all of y.
 */
double tune_rank_p(const double *x, int nx, const double *y, int ny);

/* 1: x is faster than y, by TUNE_EFFECT at least and no worse than TUNE_ALPHA
 * by chance. */
int tune_faster(const double *x, int nx, const double *y, int ny);

/* (largest - least) / median of n samples; NaN for n below 2. */
double tune_noise(const double *us, int n);

#endif
