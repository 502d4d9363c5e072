/*
 * Figures from samples: nothing is ever removed from them.
 *
 * A sample is the time of one repetition in microseconds per invocation,
 * merged over ranks. The confidence interval of the median comes from order
 * statistics, so it assumes no distribution.
 */
#ifndef RG_HARNESS_STATS_H
#define RG_HARNESS_STATS_H

#include <stdint.h>

#include "runtime/regroup.h"

/* Monotonic clock in microseconds. */
double rg_stats_clock_us(void);

enum rg_merge { RG_MERGE_RANK0 = 0, RG_MERGE_AVG, RG_MERGE_MIN, RG_MERGE_MAX };

/* A growing array of samples. Zero-initialise; fini frees and zeroes. */
struct rg_samples {
    double *us;
    int n;
    int room;
};
int rg_samples_add(struct rg_samples *samples, double us);
void rg_samples_fini(struct rg_samples *samples);
/*
 * Merges samples [from, n) over ranks, each with its counterparts. Collective;
 * ranks hold the same number. RG_OK or the exchange's status.
 */
int rg_samples_merge(struct rg_samples *samples, int from, enum rg_merge merge,
                     struct rg_comm *comm, int nranks);

/* NaN where there are too few samples: p99 below 100, interval below 6. */
struct rg_summary {
    int n;
    double min_us;
    double p50_us;
    double p99_us;
    double ci_lo_us; /* 95 % interval of the median */
    double ci_hi_us;
};
/* n 0: all NaN. RG_OK or RG_ENOMEM. */
int rg_summary_of(const struct rg_samples *samples, struct rg_summary *out);

enum rg_stop {
    RG_STOP_NO = 0,
    RG_STOP_WIDTH,      /* the interval is narrow enough */
    RG_STOP_ITERATIONS, /* the sample cap */
    RG_STOP_TIME        /* the time cap */
};
const char *rg_stop_name(enum rg_stop stop); /* "width", "iterations", "time" */

struct rg_stop_rule {
    double width;    /* relative half width of the interval, e.g. 0.05 */
    int min_samples; /* before width may stop */
    int max_samples;
    double max_us; /* wall time */
};
enum rg_stop rg_stop_decide(const struct rg_stop_rule *rule,
                            const struct rg_summary *summary,
                            double elapsed_us);

#endif
