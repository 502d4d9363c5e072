#include "bench/tune_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune_choose.h"
#include "bench/tune_state.h"
#include "bench/tune_stats.h"

/*
 * What it costs at a size to use other channels or chunks than the device's
 * own: of many that are alike, some look better by chance at some size, and
 * that shall not carry them over all sizes.
 */
#define OWN_CHOICE 0.005

enum { MOST_S = 1 /* for one figure */ };

/* ---- sweep -------------------------------------------------------------- */

/* Seconds of a launch that makes one round of everything. */
static double least_s(const struct tune_state *s)
{
    double sum = 0;

    for (int i = 0; i < s->nsizes; i++)
        sum += tune_look_survivors(s, i).n * s->round_s[i];
    return sum;
}

/* Every second size goes, the ends stay. */
static void thin_out(struct tune_state *s)
{
    const size_t row = (size_t)s->space->n;
    int n = 0;

    for (int i = 0; i < s->nsizes; i++) {
        if (i % 2 == 1 && i < s->nsizes - 1)
            continue;
        memmove(s->looks + (size_t)n * row, s->looks + (size_t)i * row,
                row * sizeof *s->looks);
        s->sizes[n] = s->sizes[i];
        s->round_s[n++] = s->round_s[i];
    }
    s->nsizes = n;
}

/* As many candidates and sizes as the launches can be made of. */
static void fit_sweep(struct tune_state *s)
{
    const double time = tune_state_end(s, TUNE_SWEEP_END) - tune_state_clock(s);

    for (s->keep = TUNE_KEEP_MOST; s->keep > TUNE_KEEP_LEAST; s->keep--)
        if (s->config->launches * least_s(s) <= time)
            return;
    while (s->nsizes > 3 && s->config->launches * least_s(s) > time)
        thin_out(s);
}

/* A size's share of the time left, by what its shortest case takes. */
static double share_s(const struct tune_state *s, double part, double own,
                      double all, int n)
{
    const double left = tune_state_end(s, part) - tune_state_clock(s);
    const double seconds = all > 0 ? left * own / all : 0;

    /* Setting a case up takes time, too. */
    return fmin(fmax(seconds - own, 0), (double)MOST_S * n);
}

static int sweep_launch(struct tune_state *s, int index, double *all)
{
    const struct tune_launch launch = {TUNE_SWEEP, index, 100 + index};
    int order[TUNE_SIZES_MAX], status = RG_OK;

    for (int i = 0; i < s->nsizes; i++)
        order[i] = i;
    tune_shuffle(order, s->nsizes, s->config->seed + (uint64_t)index);
    for (int k = 0; k < s->nsizes && status == RG_OK; k++) {
        const int i = order[k];
        const struct tune_list list = tune_look_survivors(s, i);
        const double own = list.n * s->round_s[i];
        const double seconds = share_s(s, TUNE_SWEEP_END, own, *all, list.n);

        *all -= own;
        /* The phases behind it can do without their time, not the first. */
        if (index == 1 ||
            tune_state_clock(s) + own <= tune_state_end(s, TUNE_BISECT_END))
            status =
                tune_state_measure(s, &launch, s->sizes[i], &list, seconds);
    }
    return status;
}

static int sweep(struct tune_state *s)
{
    double all;
    int status = RG_OK;

    fit_sweep(s);
    all = s->config->launches * least_s(s);
    for (int l = 1; l <= s->config->launches && status == RG_OK; l++)
        status = sweep_launch(s, l, &all);
    return status;
}
/* ---- choose ------------------------------------------------------------- */

static void costs_of_size(const struct tune_state *s, int i, double *cost)
{
    const int n = s->space->n;
    double(*us)[TUNE_LAUNCHES_MAX] = calloc((size_t)n, sizeof *us);
    struct tune_cell *cells = calloc((size_t)n, sizeof *cells);

    for (int c = 0; us && cells && c < n; c++) {
        cells[c].us = us[c];
        cells[c].n = tune_state_medians(s, TUNE_SWEEP, s->sizes[i], c, us[c]);
        cells[c].guess_us = tune_look_at(s, i, c);
    }
    if (us && cells)
        tune_costs(cells, n, cost);
    for (int c = s->space->nbases; c < n; c++)
        cost[c] += OWN_CHOICE;
    free(us);
    free(cells);
}

static int count_switches(const struct tune_state *s)
{
    int n = 0;

    for (int i = 1; i < s->nsizes; i++)
        n += s->choice[i] != s->choice[i - 1];
    return n;
}

static int choose(struct tune_state *s)
{
    const int n = s->space->n;
    double *cost = calloc((size_t)s->nsizes * (size_t)n, sizeof *cost);
    double per_switch = TUNE_SWITCH;
    int status = cost ? RG_OK : RG_ENOMEM;

    for (int i = 0; i < s->nsizes && status == RG_OK; i++)
        costs_of_size(s, i, cost + (size_t)i * (size_t)n);
    /* A table has room for so many rows; the tail may need one more. */
    while (status == RG_OK) {
        status = tune_choose(s->nsizes, n, cost, per_switch, s->choice);
        if (status != RG_OK || count_switches(s) + 2 <= s->config->max_rows)
            break;
        per_switch *= 2;
    }
    free(cost);
    return status == RG_EINVAL ? RG_ETIMEDOUT : status;
}

/* Choices known from the first look only; how many were swept now. */
static int sweep_chosen(struct tune_state *s, int *swept_out)
{
    double us[TUNE_LAUNCHES_MAX];
    int unswept[TUNE_SIZES_MAX], status = RG_OK;

    for (int i = 0; i < s->nsizes; i++)
        unswept[i] = tune_state_medians(s, TUNE_SWEEP, s->sizes[i],
                                        s->choice[i], us) == 0;
    *swept_out = 0;
    for (int l = 1; l <= s->config->launches; l++)
        for (int i = 0; i < s->nsizes && status == RG_OK; i++) {
            const struct tune_launch launch = {TUNE_SWEEP, l, 500 + l};
            const struct tune_list list = {1, {s->choice[i]}};

            if (!unswept[i] || tune_state_clock(s) + s->round_s[i] >
                                   tune_state_end(s, TUNE_BISECT_END))
                continue;
            status = tune_state_measure(s, &launch, s->sizes[i], &list,
                                        s->round_s[i]);
            ++*swept_out;
        }
    return status;
}

/* Until all that is chosen was swept, or time is over. */
static int choose_swept(struct tune_state *s)
{
    enum { ROUNDS = 4 };
    int status = choose(s), swept = 1;

    for (int round = 0; status == RG_OK && swept && round < ROUNDS; round++) {
        status = sweep_chosen(s, &swept);
        if (status == RG_OK && swept)
            status = choose(s);
    }
    return status;
}

static void take_runner_up(const struct tune_state *s, int i,
                           struct tune_point *point)
{
    double least = INFINITY;

    for (int c = 0; c < s->space->n; c++) {
        const double us = tune_state_median(s, TUNE_SWEEP, point->bytes, c);

        if (c == point->chosen || !(us < least))
            continue;
        least = us;
        point->runner_up = c;
    }
    if (point->runner_up < 0)
        return;
    point->margin = least / point->p50_us;
    point->counts = tune_state_faster(s, TUNE_SWEEP, s->sizes[i], point->chosen,
                                      point->runner_up) ||
                    tune_state_faster(s, TUNE_SWEEP, s->sizes[i],
                                      point->runner_up, point->chosen);
}

/* Of the candidate that has most of it. */
static double noise_at(const struct tune_state *s, uint64_t bytes)
{
    double us[TUNE_LAUNCHES_MAX], most = NAN;

    for (int c = 0; c < s->space->n; c++)
        most = fmax(most, tune_noise(us, tune_state_medians(s, TUNE_SWEEP,
                                                            bytes, c, us)));
    return most;
}

static void take_points(struct tune_state *s)
{
    double us[TUNE_LAUNCHES_MAX];

    s->result->npoints = s->nsizes;
    for (int i = 0; i < s->nsizes; i++) {
        struct tune_point *point = &s->result->points[i];

        *point = (struct tune_point){
            .bytes = s->sizes[i],
            .chosen = s->choice[i],
            .runner_up = -1,
            .launches = tune_state_medians(s, TUNE_SWEEP, s->sizes[i],
                                           s->choice[i], us),
            .p50_us =
                tune_state_median(s, TUNE_SWEEP, s->sizes[i], s->choice[i]),
            .margin = NAN,
        };
        s->result->unlaunched += point->launches < s->config->launches;
        take_runner_up(s, i, point);
        point->noise = noise_at(s, point->bytes);
    }
}

/* ---- segments ----------------------------------------------------------- */

/* The fastest at the largest size of those that can serve any; beyond what was
 * measured the device's own choices are the safe ones. */
static int tail_of(const struct tune_state *s)
{
    const int last = s->nsizes - 1;
    int best = -1;

    for (int c = 0; c < s->space->nbases; c++)
        if (s->space->list[c].max_bytes == UINT64_MAX &&
            !isnan(tune_look_at(s, last, c)) &&
            (best < 0 ||
             tune_look_at(s, last, c) < tune_look_at(s, last, best)))
            best = c;
    return best;
}

/* Where the latter takes over: at the latest where the former cannot serve. */
static uint64_t bound_of(const struct tune_state *s,
                         const struct tune_crossover *crossover)
{
    const uint64_t most = s->space->list[crossover->former].max_bytes;

    return most < crossover->high ? most + 1 : crossover->high;
}

static int take_segments(struct tune_state *s)
{
    struct tune_result *result = s->result;
    struct tune_segment *segments = result->segments;
    uint64_t most;

    segments[0] = (struct tune_segment){0, s->choice[0]};
    result->nsegments = 1;
    for (int k = 0; k < result->ncrossovers; k++)
        segments[result->nsegments++] = (struct tune_segment){
            bound_of(s, &result->crossovers[k]), result->crossovers[k].latter};
    most = s->space->list[segments[result->nsegments - 1].candidate].max_bytes;
    if (most < UINT64_MAX) {
        const int tail = tail_of(s);

        if (tail < 0)
            return RG_ENOTSUP;
        segments[result->nsegments++] = (struct tune_segment){most + 1, tail};
    }
    return RG_OK;
}

int tune_result_candidate(const struct tune_result *result, uint64_t bytes)
{
    int k = result->nsegments - 1;

    while (k > 0 && bytes < result->segments[k].from)
        k--;
    return result->segments[k].candidate;
}

/* ---- held out ----------------------------------------------------------- */

static int nearest(const struct tune_state *s, uint64_t bytes)
{
    int i = 0;

    while (i < s->nsizes - 1 && s->sizes[i + 1] <= bytes)
        i++;
    return i;
}

static struct tune_list contenders(const struct tune_state *s, uint64_t bytes)
{
    const int i = nearest(s, bytes);
    struct tune_list list = tune_look_survivors(s, i);

    if (i + 1 < s->nsizes) {
        const struct tune_list above = tune_look_survivors(s, i + 1);

        for (int k = 0; k < above.n; k++)
            tune_list_add(&list, above.items[k]);
    }
    tune_list_add(&list, tune_result_candidate(s->result, bytes));
    return list;
}

static void take_regret(const struct tune_state *s, uint64_t bytes)
{
    struct tune_result *result = s->result;
    struct tune_held held = {.bytes = bytes, .best = -1, .regret = NAN};
    double us[TUNE_LAUNCHES_MAX], least = INFINITY, chosen;

    held.chosen = tune_result_candidate(result, bytes);
    held.launches =
        tune_state_medians(s, TUNE_HELD_OUT, bytes, held.chosen, us);
    if (held.launches == 0)
        return;
    chosen = tune_median(us, held.launches);
    for (int c = 0; c < s->space->n; c++) {
        const double other = tune_state_median(s, TUNE_HELD_OUT, bytes, c);

        if (other < least) {
            least = other;
            held.best = c;
        }
    }
    held.regret = chosen / least;
    result->held[result->nheld++] = held;
}

static void sum_regret_up(struct tune_result *result)
{
    double regrets[TUNE_HELD_MAX];

    result->regret_max = result->regret_p50 = NAN;
    for (int i = 0; i < result->nheld; i++) {
        regrets[i] = result->held[i].regret;
        result->regret_max = fmax(result->regret_max, regrets[i]);
    }
    result->regret_p50 = tune_median(regrets, result->nheld);
}

static double held_s(const struct tune_state *s, uint64_t bytes)
{
    const int i = nearest(s, bytes);
    const double above = i + 1 < s->nsizes ? s->round_s[i + 1] : 0;

    return contenders(s, bytes).n * fmax(s->round_s[i], above);
}

static int hold_out(struct tune_state *s)
{
    const struct tune_config *config = s->config;
    uint64_t sizes[TUNE_HELD_MAX];
    const int n =
        s->nsizes < 2
            ? 0
            : tune_held_out(s->sizes[0], s->sizes[s->nsizes - 1], config->grain,
                            config->seed, config->held_out, sizes);
    double all = 0;
    int status = RG_OK;

    for (int i = 0; i < n; i++)
        all += config->launches * held_s(s, sizes[i]);
    for (int l = 1; l <= config->launches; l++)
        for (int i = 0; i < n && status == RG_OK; i++) {
            const struct tune_launch launch = {TUNE_HELD_OUT, l, 200000 + l};
            const struct tune_list list = contenders(s, sizes[i]);
            const double own = held_s(s, sizes[i]);
            const double seconds = share_s(s, TUNE_HELD_END, own, all, list.n);

            all -= own;
            if (tune_state_clock(s) + own <= tune_state_end(s, TUNE_HELD_END))
                status =
                    tune_state_measure(s, &launch, sizes[i], &list, seconds);
        }
    for (int i = 0; i < n; i++)
        take_regret(s, sizes[i]);
    sum_regret_up(s->result);
    return status;
}

/* ---- peers -------------------------------------------------------------- */

static int compare_peers(struct tune_state *s)
{
    int status = RG_OK;

    for (int i = 0; i < s->nsizes && s->config->npeers && status == RG_OK;
         i++) {
        const struct tune_launch launch = {TUNE_PEER, 1, 300000};
        struct tune_list list = {0};
        const double own = (1 + s->config->npeers) * s->round_s[i];

        tune_list_add(&list, s->choice[i]);
        if (tune_state_clock(s) + own <= tune_state_end(s, TUNE_PEER_END))
            status = tune_state_measure(s, &launch, s->sizes[i], &list, own);
    }
    return status;
}

/* ---- all of it ---------------------------------------------------------- */

/* A look and a sweep, as far as time goes. */
static int measure_sizes(struct tune_state *s)
{
    int status;

    s->nsizes = tune_grid(s->config->min_bytes, s->config->max_bytes, s->sizes);
    status = tune_look(s);
    return status == RG_OK ? sweep(s) : status;
}

/* What follows from it; with a meter, the samples that this takes. */
static int decide(struct tune_state *s)
{
    int status = tune_look_swept(s);

    if (status == RG_OK && s->nsizes == 0)
        return RG_ETIMEDOUT;
    if (status == RG_OK)
        status = choose_swept(s);
    if (status == RG_OK) {
        take_points(s);
        tune_bounds_list(s);
        status = tune_bounds_bisect(s);
    }
    if (status == RG_OK)
        status = tune_bounds_confirm(s);
    if (status == RG_OK)
        status = take_segments(s);
    if (status == RG_OK)
        status = hold_out(s);
    return status == RG_OK ? compare_peers(s) : status;
}

/*
 * In two passes: one measures, and decides as it must to know what to measure;
 * one decides without a meter, so without a clock, from all samples.
 */
int tune_search(const struct tune_config *config,
                const struct tune_space *space, const struct tune_meter *meter,
                struct tune_raw *raw, struct tune_result *result_out)
{
    struct tune_state s = {.config = config,
                           .space = space,
                           .meter = meter,
                           .raw = raw,
                           .result = result_out,
                           .keep = TUNE_KEEP_MOST};
    int status = space->nbases > 0 ? RG_OK : RG_ENOTSUP;

    memset(result_out, 0, sizeof *result_out);
    if (status == RG_OK && tune_raw_budget_s(raw) < config->budget_s) {
        status = measure_sizes(&s);
        if (status == RG_OK)
            status = decide(&s);
    }
    if (status == RG_OK) {
        memset(result_out, 0, sizeof *result_out);
        s.meter = NULL;
        status = decide(&s);
    }
    result_out->spent_s = meter->clock_s(meter->arg);
    free(s.looks);
    return status;
}
