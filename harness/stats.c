#include "harness/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    P99_SAMPLES = 100,    /* fewer say nothing about a 99th percentile */
    INTERVAL_SAMPLES = 6, /* fewer have no 95 % interval */
    GATHER_SAMPLES = 8192 /* doubles in one exchange of 64 KiB */
};

double rg_stats_clock_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

int rg_samples_add(struct rg_samples *samples, double us)
{
    if (samples->n == samples->room) {
        const int room = samples->room ? 2 * samples->room : 256;
        double *grown = realloc(samples->us, (size_t)room * sizeof *grown);

        if (!grown)
            return RG_ENOMEM;
        samples->us = grown;
        samples->room = room;
    }
    samples->us[samples->n++] = us;
    return RG_OK;
}

void rg_samples_fini(struct rg_samples *samples)
{
    free(samples->us);
    memset(samples, 0, sizeof *samples);
}

/* all[rank * n + i]: rank's figure of sample i. */
static double merge_one(const double *all, int n, int i, int nranks,
                        enum rg_merge merge)
{
    double value = all[i];

    if (merge == RG_MERGE_RANK0)
        return value;
    for (int r = 1; r < nranks; r++) {
        const double other = all[(size_t)r * (size_t)n + (size_t)i];

        if (merge == RG_MERGE_AVG)
            value += other;
        else if (merge == RG_MERGE_MIN ? other < value : other > value)
            value = other;
    }
    return merge == RG_MERGE_AVG ? value / nranks : value;
}

int rg_samples_merge(struct rg_samples *samples, int from, enum rg_merge merge,
                     struct rg_comm *comm, int nranks)
{
    double *all;
    int status = RG_OK;

    if (from == samples->n)
        return RG_OK;
    all = malloc((size_t)nranks * GATHER_SAMPLES * sizeof *all);
    if (!all)
        return RG_ENOMEM;
    while (status == RG_OK && from < samples->n) {
        double *mine = samples->us + from;
        const int left = samples->n - from;
        const int n = left < GATHER_SAMPLES ? left : GATHER_SAMPLES;

        status = rg_comm_gather(comm, mine, (size_t)n * sizeof *mine, all);
        for (int i = 0; status == RG_OK && i < n; i++)
            mine[i] = merge_one(all, n, i, nranks, merge);
        from += n;
    }
    free(all);
    return status;
}

/* ---- summary ------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void summarise_sorted(const double *us, int n, struct rg_summary *out)
{
    out->min_us = us[0];
    out->p50_us = n % 2 ? us[n / 2] : (us[n / 2 - 1] + us[n / 2]) / 2;
    if (n >= P99_SAMPLES)
        out->p99_us = us[(int)ceil(0.99 * n) - 1];
    if (n >= INTERVAL_SAMPLES) {
        /* Ranks of the order statistics by the normal approximation of the
         * binomial distribution, rounded outwards. */
        int low = (int)floor((n - 1.96 * sqrt(n)) / 2);

        low = low < 1 ? 1 : low;
        out->ci_lo_us = us[low - 1];
        out->ci_hi_us = us[n - low];
    }
}

int rg_summary_of(const struct rg_samples *samples, struct rg_summary *out)
{
    const size_t bytes = (size_t)samples->n * sizeof *samples->us;
    double *sorted;

    *out = (struct rg_summary){samples->n, NAN, NAN, NAN, NAN, NAN};
    if (samples->n == 0)
        return RG_OK;
    sorted = malloc(bytes);
    if (!sorted)
        return RG_ENOMEM;
    memcpy(sorted, samples->us, bytes);
    qsort(sorted, (size_t)samples->n, sizeof *sorted, compare);
    summarise_sorted(sorted, samples->n, out);
    free(sorted);
    return RG_OK;
}

/* ---- stopping ----------------------------------------------------------- */

const char *rg_stop_name(enum rg_stop stop)
{
    static const char *const names[] = {"-", "width", "iterations", "time"};

    return names[stop];
}

enum rg_stop rg_stop_decide(const struct rg_stop_rule *rule,
                            const struct rg_summary *summary, double elapsed_us)
{
    const double half = (summary->ci_hi_us - summary->ci_lo_us) / 2;

    /* A NaN interval compares false: too few samples never stop by width. */
    if (summary->n >= rule->min_samples &&
        half <= rule->width * summary->p50_us)
        return RG_STOP_WIDTH;
    if (summary->n >= rule->max_samples)
        return RG_STOP_ITERATIONS;
    return elapsed_us >= rule->max_us ? RG_STOP_TIME : RG_STOP_NO;
}
