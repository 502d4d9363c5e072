/* From the log of recovery_perf to its figures. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/recovery.h"

const char *recovery_figure_name(enum recovery_figure figure)
{
    static const char *const names[RECOVERY_FIGURES] = {
        "detect",  "safepoint",  "quiesce", "view",
        "rebuild", "first_good", "total"};

    return names[figure];
}

const char *recovery_stat_name(enum recovery_stat stat)
{
    static const char *const names[RECOVERY_STATS] = {"p50", "p99", "min",
                                                      "max"};

    return names[stat];
}

/* ---- one injection ------------------------------------------------------ */

/* Survivors, with whom the figures are about. */
struct injection {
    const struct recovery_log *log;
    const struct recovery_hit *hit;
    const struct recovery_stamp *stamps; /* [log->size] */
};

static void disagree(struct recovery_figures *figures, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The first cause stays. */
static void disagree(struct recovery_figures *figures, const char *format, ...)
{
    va_list list;

    if (!figures->agreed)
        return;
    figures->agreed = 0;
    va_start(list, format);
    vsnprintf(figures->cause, sizeof figures->cause, format, list);
    va_end(list);
}

static void judge_stamp(const struct injection *what, int rank,
                        const struct recovery_stamp *first,
                        struct recovery_figures *figures)
{
    const struct recovery_stamp *stamp = &what->stamps[rank];
    const uint64_t all = (UINT64_C(2) << (what->log->size - 1)) - 1;
    const uint64_t members = all & ~(UINT64_C(1) << what->hit->victim);

    if (stamp->tag != RECOVERY_TAG_STAMP)
        disagree(figures, "rank %d has not gone on", rank);
    else if (stamp->members != members)
        disagree(figures, "rank %d: members %#llx instead of %#llx", rank,
                 (unsigned long long)stamp->members,
                 (unsigned long long)members);
    else if (stamp->epoch != first->epoch ||
             stamp->committed_seq != first->committed_seq)
        disagree(figures,
                 "rank %d: epoch %llu from seq %llu on, not %llu, %llu", rank,
                 (unsigned long long)stamp->epoch,
                 (unsigned long long)stamp->committed_seq,
                 (unsigned long long)first->epoch,
                 (unsigned long long)first->committed_seq);
    else if (!stamp->phase_ns[RG_PHASE_PREPARE])
        disagree(figures, "rank %d: it has not noticed the change", rank);
    else if (stamp->phase_ns[RG_PHASE_PREPARE] < what->hit->time_ns)
        disagree(figures, "rank %d: the group changed before the fault", rank);
}

static double us_between(uint64_t from_ns, uint64_t to_ns)
{
    return ((double)to_ns - (double)from_ns) * 1e-3;
}

/* The moments that figures lie between, in order. */
static void take_figures(const struct recovery_hit *hit,
                         const struct recovery_stamp *stamp,
                         struct recovery_figures *figures)
{
    const uint64_t moment[] = {hit->time_ns,
                               stamp->phase_ns[RG_PHASE_PREPARE],
                               stamp->phase_ns[RG_PHASE_HELD],
                               stamp->phase_ns[RG_PHASE_VIEW],
                               stamp->phase_ns[RG_PHASE_ACTIVATE],
                               stamp->phase_ns[RG_PHASE_OPEN],
                               stamp->good_ns};

    for (int f = 0; f < RECOVERY_TOTAL; f++) {
        if (!moment[f] || !moment[f + 1])
            continue;
        figures->us[f] =
            fmax(figures->us[f], us_between(moment[f], moment[f + 1]));
        figures->through_us[f] =
            fmax(figures->through_us[f], us_between(moment[0], moment[f + 1]));
    }
    figures->us[RECOVERY_TOTAL] = fmax(
        figures->us[RECOVERY_TOTAL], us_between(hit->time_ns, stamp->good_ns));
}

static void take_stamp(const struct injection *what, int rank,
                       struct recovery_figures *figures)
{
    const struct recovery_stamp *stamp = &what->stamps[rank];

    if (stamp->tag != RECOVERY_TAG_STAMP)
        return;
    take_figures(what->hit, stamp, figures);
    if (stamp->captures > figures->captures)
        figures->captures = stamp->captures;
    figures->succeeded |= stamp->succeeded;
    figures->wrong += stamp->wrong;
    figures->epoch = stamp->epoch;
}

void recovery_figures_of(const struct recovery_log *log, int i,
                         struct recovery_figures *figures_out)
{
    const struct injection what = {log, &log->hits[i],
                                   &log->stamps[(size_t)i * (size_t)log->size]};
    struct recovery_figures figures = {.injected = what.hit->victim >= 0};
    const struct recovery_stamp *first = &what.stamps[what.hit->victim == 0];

    for (int f = 0; f < RECOVERY_FIGURES; f++)
        figures.us[f] = NAN;
    for (int f = 0; f < RECOVERY_TOTAL; f++)
        figures.through_us[f] = NAN;
    figures.agreed = 1;
    if (!figures.injected)
        disagree(&figures, "not injected");
    for (int r = 0; figures.injected && r < log->size; r++) {
        if (r == what.hit->victim)
            continue;
        judge_stamp(&what, r, first, &figures);
        take_stamp(&what, r, &figures);
    }
    *figures_out = figures;
}

/* ---- all injections ----------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double stat_of(const double *sorted, int n, enum recovery_stat stat)
{
    if (n == 0)
        return NAN;
    switch (stat) {
    case RECOVERY_P50:
        return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    case RECOVERY_P99:
        return sorted[(int)ceil(0.99 * n) - 1];
    case RECOVERY_MIN:
        return sorted[0];
    default:
        return sorted[n - 1];
    }
}

int recovery_summary_of(const struct recovery_figures *figures, int n,
                        struct recovery_summary *summary_out)
{
    double *sorted = malloc((size_t)n * sizeof *sorted);

    if (!sorted)
        return RG_ENOMEM;
    for (int f = 0; f < RECOVERY_FIGURES; f++) {
        int have = 0;

        for (int i = 0; i < n; i++)
            if (!isnan(figures[i].us[f]))
                sorted[have++] = figures[i].us[f];
        qsort(sorted, (size_t)have, sizeof *sorted, compare);
        for (int s = 0; s < RECOVERY_STATS; s++)
            summary_out->us[s][f] =
                stat_of(sorted, have, (enum recovery_stat)s);
    }
    free(sorted);
    return RG_OK;
}
