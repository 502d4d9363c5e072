#include "bench/tune_search.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune_choose.h"
#include "bench/tune_stats.h"

/* Parts of the budget, less setting up, by whose end a phase ends. */
#define PRUNE_END   0.20
#define SWEEP_END   0.62
#define BISECT_END  0.74
#define CONFIRM_END 0.82
#define HELD_END    0.93
#define PEER_END    0.99

/* Who is slower than the best by this factor at a size is out there. */
#define KEEP_FACTOR 1.5

/*
 * What it costs at a size to use other channels or chunks than the device's
 * own: of many that are alike, some look better by chance at some size, and
 * that shall not carry them over all sizes.
 */
#define OWN_CHOICE 0.005

enum {
    KEEP_BASES = 3, /* whose channels and chunks are looked at */
    KEEP_MOST = 6,  /* candidates swept at a size */
    KEEP_LEAST = 2,
    MOST_S = 1 /* for one figure */
};

struct search {
    const struct tune_config *config;
    const struct tune_space *space;
    const struct tune_meter *meter;
    struct tune_raw *raw;
    struct tune_result *result;
    uint64_t sizes[TUNE_SIZES_MAX];
    int nsizes;
    double round_s[TUNE_SIZES_MAX]; /* of one candidate's shortest case */
    double *looks;  /* [size][candidate], of the first look once that is over;
                       owned, null before */
    double begin_s; /* when everything was set up */
    int keep;       /* candidates swept at a size, at most */
    int choice[TUNE_SIZES_MAX];
    int launch; /* number of the one begun last, 0: none */
};

/* A list of candidates in the making. */
struct list {
    int n;
    int items[TUNE_ORDER_MAX];
};

static void list_add(struct list *list, int candidate)
{
    for (int i = 0; i < list->n; i++)
        if (list->items[i] == candidate)
            return;
    if (list->n < TUNE_ORDER_MAX)
        list->items[list->n++] = candidate;
}

static const char *name_of(const struct search *s, int candidate)
{
    return s->space->list[candidate].name;
}

static int fits(const struct search *s, int candidate, uint64_t bytes)
{
    return tune_candidate_fits(&s->space->list[candidate], bytes);
}

static double clock_s(const struct search *s)
{
    return s->meter->clock_s(s->meter->arg);
}

static double end_of(const struct search *s, double part)
{
    return s->begin_s + part * (s->config->budget_s - s->begin_s);
}

/* Launch medians; returns how many. */
static int medians(const struct search *s, enum tune_phase phase,
                   uint64_t bytes, int candidate, double *us_out)
{
    return tune_raw_medians(s->raw, phase, bytes, name_of(s, candidate), us_out,
                            TUNE_LAUNCHES_MAX);
}

static double median_of(const struct search *s, enum tune_phase phase,
                        uint64_t bytes, int candidate)
{
    double us[TUNE_LAUNCHES_MAX];

    return tune_median(us, medians(s, phase, bytes, candidate, us));
}

/* Whether a is faster than b at a size, by the samples of a phase. */
static int faster(const struct search *s, enum tune_phase phase, uint64_t bytes,
                  int a, int b)
{
    double of_a[TUNE_LAUNCHES_MAX], of_b[TUNE_LAUNCHES_MAX];
    const int na = medians(s, phase, bytes, a, of_a);
    const int nb = medians(s, phase, bytes, b, of_b);

    return tune_faster(of_a, na, of_b, nb);
}

/* ---- measuring ---------------------------------------------------------- */

/* A launch of the tuning: each has a number of its own. */
struct launch {
    enum tune_phase phase;
    int index;  /* the sample's */
    int number; /* unique */
};

static void say_progress(const struct search *s, const struct launch *launch,
                         const struct tune_order *order)
{
    char text[160];

    if (!s->meter->progress)
        return;
    snprintf(text, sizeof text,
             "%s, launch %d: %" PRIu64 " bytes, %d candidates; %.0f of %.0f s",
             tune_phase_name(launch->phase), launch->index, order->bytes,
             order->n, clock_s(s), s->config->budget_s);
    s->meter->progress(s->meter->arg, text);
}

static int keep_figure(const struct search *s, const struct launch *launch,
                       uint64_t bytes, const char *name,
                       const struct tune_figure *figure)
{
    struct tune_sample sample = {launch->phase,  launch->index,  bytes,    "",
                                 figure->p50_us, figure->min_us, figure->n};

    if (!isfinite(figure->p50_us) || !(figure->p50_us > 0))
        return RG_OK;
    snprintf(sample.candidate, sizeof sample.candidate, "%s", name);
    return tune_raw_add(s->raw, &sample);
}

static int run_order(struct search *s, const struct launch *launch,
                     struct tune_order *order)
{
    struct tune_figure figures[TUNE_ORDER_MAX + TUNE_PEERS_MAX];
    int status;

    order->fresh = s->launch != launch->number;
    s->launch = launch->number;
    say_progress(s, launch, order);
    status = s->meter->measure(s->meter->arg, order, figures);
    for (int i = 0; status == RG_OK && i < order->n; i++)
        status = keep_figure(s, launch, order->bytes,
                             name_of(s, order->candidates[i]), &figures[i]);
    for (int i = 0; status == RG_OK && order->peers && i < s->config->npeers;
         i++)
        status = keep_figure(s, launch, order->bytes, s->config->peers[i],
                             &figures[order->n + i]);
    return status;
}

/* Measures what there are no samples of, in a shuffled order. */
static int measure(struct search *s, const struct launch *launch,
                   uint64_t bytes, const struct list *list, double seconds)
{
    struct tune_order order = {.bytes = bytes,
                               .peers = launch->phase == TUNE_PEER};

    for (int i = 0; i < list->n; i++)
        if (fits(s, list->items[i], bytes) &&
            !tune_raw_find(s->raw, launch->phase, launch->index, bytes,
                           name_of(s, list->items[i])))
            order.candidates[order.n++] = list->items[i];
    if (order.n == 0)
        return RG_OK;
    tune_shuffle(order.candidates, order.n,
                 s->config->seed ^ bytes << 16 ^ (uint64_t)launch->number);
    order.max_us = seconds * 1e6 / order.n;
    return run_order(s, launch, &order);
}

/* ---- prune -------------------------------------------------------------- */

static const struct launch first_look = {TUNE_PRUNE, 0, 1};

static double look(const struct search *s, int i, int candidate)
{
    if (s->looks)
        return s->looks[(size_t)i * (size_t)s->space->n + (size_t)candidate];
    return median_of(s, TUNE_PRUNE, s->sizes[i], candidate);
}

/* Candidates of a list that a short look found good, the best first. */
static struct list good_ones(const struct search *s, int i,
                             const struct list *from, int most)
{
    struct list good = {0};

    while (good.n < most) {
        int best = -1;

        for (int k = 0; k < from->n; k++) {
            const int candidate = from->items[k];
            int taken = isnan(look(s, i, candidate));

            for (int g = 0; g < good.n; g++)
                taken |= good.items[g] == candidate;
            if (!taken &&
                (best < 0 || look(s, i, candidate) < look(s, i, best)))
                best = candidate;
        }
        if (best < 0 ||
            (good.n >= KEEP_LEAST &&
             look(s, i, best) > KEEP_FACTOR * look(s, i, good.items[0])))
            break;
        list_add(&good, best);
    }
    return good;
}

static struct list all_bases(const struct search *s)
{
    struct list list = {0};

    for (int c = 0; c < s->space->nbases; c++)
        list_add(&list, c);
    return list;
}

/* With other channels; or, with the best of these, other chunks. */
static struct list variants(const struct search *s, int i, int base, int chunks)
{
    struct list of_base = {0}, list = {0};
    struct list best;

    for (int c = 0; c < s->space->n; c++)
        if (s->space->list[c].base == base && s->space->list[c].chunk == 0)
            list_add(&of_base, c);
    best = good_ones(s, i, &of_base, 1);
    if (!chunks || best.n == 0)
        return of_base;
    for (int c = 0; c < s->space->n; c++)
        if (s->space->list[c].base == base && s->space->list[c].chunk > 0 &&
            s->space->list[c].channels ==
                s->space->list[best.items[0]].channels)
            list_add(&list, c);
    return list;
}

static int look_at_variants(struct search *s, int i)
{
    const struct list bases = all_bases(s);
    const struct list good = good_ones(s, i, &bases, KEEP_BASES);
    int status = RG_OK;

    for (int chunks = 0; chunks <= 1; chunks++)
        for (int g = 0; g < good.n && status == RG_OK; g++) {
            const struct list list = variants(s, i, good.items[g], chunks);

            if (clock_s(s) + s->round_s[i] * list.n <= end_of(s, PRUNE_END))
                status = measure(s, &first_look, s->sizes[i], &list, 0);
        }
    return status;
}

/* The shortest case of a candidate here; for what was measured before, from
 * its figures. */
static double round_of(const struct search *s, int i, double spent_s, int n)
{
    const struct tune_sample *sample =
        tune_raw_find(s->raw, TUNE_PRUNE, 0, s->sizes[i], name_of(s, 0));
    const double least = sample ? sample->p50_us * (sample->n + 4) * 1e-6 : 0;

    return fmax(spent_s / n, least);
}

static int count_fitting(const struct search *s, uint64_t bytes)
{
    int n = 0;

    for (int c = 0; c < s->space->nbases; c++)
        n += fits(s, c, bytes);
    return n;
}

/* Nothing is added to them any more, and they are asked for often. */
static int keep_looks(struct search *s)
{
    const size_t row = (size_t)s->space->n;
    double *looks = calloc((size_t)s->nsizes * row + 1, sizeof *looks);

    if (!looks)
        return RG_ENOMEM;
    for (int i = 0; i < s->nsizes; i++)
        for (int c = 0; c < s->space->n; c++)
            looks[(size_t)i * row + (size_t)c] = look(s, i, c);
    s->looks = looks;
    return RG_OK;
}

/*
 * Bases at each size first, so that the largest size that can be afforded is
 * known; then their variants as far as time goes.
 */
static int prune(struct search *s)
{
    const struct list bases = all_bases(s), one = {1, {0}};
    /* Beginning the launch is no part of any size's time. */
    int status = measure(s, &first_look, s->sizes[0], &one, 0);
    int n = 0;

    s->begin_s = clock_s(s);
    for (; status == RG_OK && n < s->nsizes; n++) {
        const double begin = clock_s(s);
        const int count = count_fitting(s, s->sizes[n]);
        /* Twice the bytes take twice the time, where that is what matters. */
        const double guess = n ? 2 * s->round_s[n - 1] * count : 0;

        if (count == 0)
            return RG_ENOTSUP;
        if (n && begin + guess > end_of(s, PRUNE_END))
            break;
        status = measure(s, &first_look, s->sizes[n], &bases, 0);
        s->round_s[n] = round_of(s, n, clock_s(s) - begin, count);
    }
    s->result->left_out = s->nsizes - n;
    if (status == RG_OK && n < 2 && s->nsizes > n)
        return RG_ETIMEDOUT;
    s->nsizes = n;
    for (int i = 0; i < n && status == RG_OK; i++)
        status = look_at_variants(s, i);
    return status == RG_OK ? keep_looks(s) : status;
}

/* ---- sweep -------------------------------------------------------------- */

static struct list everybody(const struct search *s, int i)
{
    struct list list = {0};

    for (int c = 0; c < s->space->n; c++)
        if (!isnan(look(s, i, c)))
            list_add(&list, c);
    return list;
}

/* The best candidate of each base. */
static struct list champions(const struct search *s, int i)
{
    int best[TUNE_BASES_MAX];
    struct list list = {0};

    for (int b = 0; b < s->space->nbases; b++)
        best[b] = -1;
    for (int c = 0; c < s->space->n; c++) {
        int *theirs = &best[s->space->list[c].base];

        if (!isnan(look(s, i, c)) &&
            (*theirs < 0 || look(s, i, c) < look(s, i, *theirs)))
            *theirs = c;
    }
    for (int b = 0; b < s->space->nbases; b++)
        if (best[b] >= 0)
            list_add(&list, best[b]);
    return list;
}

/*
 * Whom to sweep: the good ones here, of each base first, so that variants of
 * one do not crowd another out, nor the device's own choice, which they have to
 * beat; and the best of both neighbours.
 */
static struct list survivors(const struct search *s, int i)
{
    const struct list all = everybody(s, i), first = champions(s, i);
    const struct list good = good_ones(s, i, &all, s->keep);
    struct list list = good_ones(s, i, &first, s->keep);
    const int champions_kept = list.n;

    for (int k = 0; k < champions_kept; k++)
        list_add(&list, s->space->list[list.items[k]].base);
    for (int k = 0; k < good.n && list.n < s->keep; k++)
        list_add(&list, good.items[k]);

    for (int next = i - 1; next <= i + 1; next += 2) {
        struct list theirs, best;

        if (next < 0 || next >= s->nsizes)
            continue;
        theirs = everybody(s, next);
        best = good_ones(s, next, &theirs, 1);
        if (best.n && fits(s, best.items[0], s->sizes[i]))
            list_add(&list, best.items[0]);
    }
    return list;
}

/* Seconds of a launch that makes one round of everything. */
static double least_s(const struct search *s)
{
    double sum = 0;

    for (int i = 0; i < s->nsizes; i++)
        sum += survivors(s, i).n * s->round_s[i];
    return sum;
}

/* Every second size goes, the ends stay. */
static void thin_out(struct search *s)
{
    const size_t row = (size_t)s->space->n;
    int n = 0;

    for (int i = 0; i < s->nsizes; i++) {
        if (i % 2 == 1 && i < s->nsizes - 1) {
            s->result->left_out++;
            continue;
        }
        memmove(s->looks + (size_t)n * row, s->looks + (size_t)i * row,
                row * sizeof *s->looks);
        s->sizes[n] = s->sizes[i];
        s->round_s[n++] = s->round_s[i];
    }
    s->nsizes = n;
}

/* As many candidates and sizes as the launches can be made of. */
static void fit_sweep(struct search *s)
{
    const double time = end_of(s, SWEEP_END) - clock_s(s);

    for (s->keep = KEEP_MOST; s->keep > KEEP_LEAST; s->keep--)
        if (s->config->launches * least_s(s) <= time)
            return;
    while (s->nsizes > 3 && s->config->launches * least_s(s) > time)
        thin_out(s);
}

/* A size's share of the time left, by what its shortest case takes. */
static double share_s(const struct search *s, double part, double own,
                      double all, int n)
{
    const double left = end_of(s, part) - clock_s(s);
    const double seconds = all > 0 ? left * own / all : 0;

    /* Setting a case up takes time, too. */
    return fmin(fmax(seconds - own, 0), (double)MOST_S * n);
}

static int sweep_launch(struct search *s, int index, double *all)
{
    const struct launch launch = {TUNE_SWEEP, index, 100 + index};
    int order[TUNE_SIZES_MAX], status = RG_OK;

    for (int i = 0; i < s->nsizes; i++)
        order[i] = i;
    tune_shuffle(order, s->nsizes, s->config->seed + (uint64_t)index);
    for (int k = 0; k < s->nsizes && status == RG_OK; k++) {
        const int i = order[k];
        const struct list list = survivors(s, i);
        const double own = list.n * s->round_s[i];
        const double seconds = share_s(s, SWEEP_END, own, *all, list.n);

        *all -= own;
        /* The phases behind it can do without their time, not the first. */
        if (index == 1 || clock_s(s) + own <= end_of(s, BISECT_END))
            status = measure(s, &launch, s->sizes[i], &list, seconds);
    }
    return status;
}

static int sweep(struct search *s)
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

static void costs_of_size(const struct search *s, int i, double *cost)
{
    const int n = s->space->n;
    double(*us)[TUNE_LAUNCHES_MAX] = calloc((size_t)n, sizeof *us);
    struct tune_cell *cells = calloc((size_t)n, sizeof *cells);

    for (int c = 0; us && cells && c < n; c++) {
        cells[c].us = us[c];
        cells[c].n = medians(s, TUNE_SWEEP, s->sizes[i], c, us[c]);
        cells[c].guess_us = look(s, i, c);
    }
    if (us && cells)
        tune_costs(cells, n, cost);
    for (int c = s->space->nbases; c < n; c++)
        cost[c] += OWN_CHOICE;
    free(us);
    free(cells);
}

static int count_switches(const struct search *s)
{
    int n = 0;

    for (int i = 1; i < s->nsizes; i++)
        n += s->choice[i] != s->choice[i - 1];
    return n;
}

static int choose(struct search *s)
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
static int sweep_chosen(struct search *s, int *swept_out)
{
    double us[TUNE_LAUNCHES_MAX];
    int unswept[TUNE_SIZES_MAX], status = RG_OK;

    for (int i = 0; i < s->nsizes; i++)
        unswept[i] = medians(s, TUNE_SWEEP, s->sizes[i], s->choice[i], us) == 0;
    *swept_out = 0;
    for (int l = 1; l <= s->config->launches; l++)
        for (int i = 0; i < s->nsizes && status == RG_OK; i++) {
            const struct launch launch = {TUNE_SWEEP, l, 500 + l};
            const struct list list = {1, {s->choice[i]}};

            if (!unswept[i] ||
                clock_s(s) + s->round_s[i] > end_of(s, BISECT_END))
                continue;
            status = measure(s, &launch, s->sizes[i], &list, s->round_s[i]);
            ++*swept_out;
        }
    return status;
}

/* Until all that is chosen was swept, or time is over. */
static int choose_swept(struct search *s)
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

static void take_runner_up(const struct search *s, int i,
                           struct tune_point *point)
{
    double least = INFINITY;

    for (int c = 0; c < s->space->n; c++) {
        const double us = median_of(s, TUNE_SWEEP, point->bytes, c);

        if (c == point->chosen || !(us < least))
            continue;
        least = us;
        point->runner_up = c;
    }
    if (point->runner_up < 0)
        return;
    point->margin = least / point->p50_us;
    point->counts =
        faster(s, TUNE_SWEEP, s->sizes[i], point->chosen, point->runner_up) ||
        faster(s, TUNE_SWEEP, s->sizes[i], point->runner_up, point->chosen);
}

/* Of the candidate that has most of it. */
static double noise_at(const struct search *s, uint64_t bytes)
{
    double us[TUNE_LAUNCHES_MAX], most = NAN;

    for (int c = 0; c < s->space->n; c++)
        most = fmax(most, tune_noise(us, medians(s, TUNE_SWEEP, bytes, c, us)));
    return most;
}

static void take_points(struct search *s)
{
    double us[TUNE_LAUNCHES_MAX];

    s->result->npoints = s->nsizes;
    for (int i = 0; i < s->nsizes; i++) {
        struct tune_point *point = &s->result->points[i];

        *point = (struct tune_point){
            .bytes = s->sizes[i],
            .chosen = s->choice[i],
            .runner_up = -1,
            .launches = medians(s, TUNE_SWEEP, s->sizes[i], s->choice[i], us),
            .p50_us = median_of(s, TUNE_SWEEP, s->sizes[i], s->choice[i]),
            .margin = NAN,
        };
        s->result->unlaunched += point->launches < s->config->launches;
        take_runner_up(s, i, point);
        point->noise = noise_at(s, point->bytes);
    }
}

/* ---- crossovers --------------------------------------------------------- */

static void list_crossovers(struct search *s)
{
    struct tune_result *result = s->result;

    for (int i = 1; i < s->nsizes; i++)
        if (s->choice[i] != s->choice[i - 1])
            result->crossovers[result->ncrossovers++] = (struct tune_crossover){
                s->sizes[i - 1],  s->sizes[i],  s->sizes[i],
                s->choice[i - 1], s->choice[i], -1};
}

static struct tune_bisect bisect_of(const struct search *s,
                                    const struct tune_crossover *crossover)
{
    return (struct tune_bisect){crossover->low, crossover->high,
                                s->config->grain};
}

/* Time for both candidates at a size up to the crossover's. */
static double pair_s(const struct search *s,
                     const struct tune_crossover *crossover)
{
    double round = 0;

    for (int i = 0; i < s->nsizes && s->sizes[i] <= crossover->grid; i++)
        round = s->round_s[i];
    return 2 * round;
}

static int measure_pair(struct search *s, const struct launch *launch,
                        const struct tune_crossover *crossover, uint64_t bytes,
                        double part)
{
    struct list list = {0};
    const double own = pair_s(s, crossover);

    /* Against what is still to come with this one. */
    list_add(&list, crossover->former);
    list_add(&list, crossover->latter);
    if (clock_s(s) + own > end_of(s, part))
        return RG_OK;
    return measure(s, launch, bytes, &list, 2 * own);
}

static int is_latter(const struct search *s,
                     const struct tune_crossover *crossover, uint64_t bytes)
{
    if (!fits(s, crossover->former, bytes))
        return 1;
    return fits(s, crossover->latter, bytes) &&
           faster(s, TUNE_BISECT, bytes, crossover->latter, crossover->former);
}

/* One halving of every interval; how many were halved. */
static int bisect_step(struct search *s, int step, int *halved_out)
{
    struct tune_result *result = s->result;
    uint64_t middle[TUNE_SIZES_MAX];
    double us[TUNE_LAUNCHES_MAX];
    int status = RG_OK;

    for (int k = 0; k < result->ncrossovers; k++) {
        const struct tune_bisect bisect = bisect_of(s, &result->crossovers[k]);

        middle[k] = tune_bisect_next(&bisect);
    }
    for (int l = 1; l <= s->config->launches; l++)
        for (int k = 0; k < result->ncrossovers && status == RG_OK; k++) {
            const struct launch launch = {TUNE_BISECT, l,
                                          1000 + 100 * step + l};

            if (middle[k])
                status = measure_pair(s, &launch, &result->crossovers[k],
                                      middle[k], BISECT_END);
        }
    *halved_out = 0;
    for (int k = 0; k < result->ncrossovers; k++) {
        struct tune_crossover *crossover = &result->crossovers[k];
        struct tune_bisect bisect = bisect_of(s, crossover);

        /* Without all launches nothing is known. */
        if (!middle[k] || (fits(s, crossover->former, middle[k]) &&
                           medians(s, TUNE_BISECT, middle[k], crossover->former,
                                   us) < s->config->launches))
            continue;
        tune_bisect_take(&bisect, middle[k],
                         is_latter(s, crossover, middle[k]));
        crossover->low = bisect.low;
        crossover->high = bisect.high;
        ++*halved_out;
    }
    return status;
}

static int bisect(struct search *s)
{
    int status = RG_OK, halved = 1;

    for (int step = 0; halved && status == RG_OK; step++)
        status = bisect_step(s, step, &halved);
    return status;
}

static void take_confirmation(const struct search *s,
                              struct tune_crossover *crossover)
{
    double us[TUNE_LAUNCHES_MAX];
    const int former = crossover->former, latter = crossover->latter;
    int late;

    if (medians(s, TUNE_CONFIRM, crossover->high, latter, us) <
        s->config->launches)
        return;
    late = faster(s, TUNE_CONFIRM, crossover->high, former, latter);
    crossover->confirmed = !late;
    if (late)
        crossover->high = crossover->grid;
}

static int confirm(struct search *s)
{
    struct tune_result *result = s->result;
    int status = RG_OK;

    for (int l = 1; l <= s->config->launches; l++)
        for (int k = 0; k < result->ncrossovers && status == RG_OK; k++) {
            const struct launch launch = {TUNE_CONFIRM, l, 100000 + l};
            const struct tune_crossover *crossover = &result->crossovers[k];

            status = measure_pair(s, &launch, crossover, crossover->high,
                                  CONFIRM_END);
        }
    for (int k = 0; k < result->ncrossovers; k++)
        take_confirmation(s, &result->crossovers[k]);
    return status;
}

/* ---- segments ----------------------------------------------------------- */

/* The fastest at the largest size of those that can serve any; beyond what was
 * measured the device's own choices are the safe ones. */
static int tail_of(const struct search *s)
{
    const int last = s->nsizes - 1;
    int best = -1;

    for (int c = 0; c < s->space->nbases; c++)
        if (s->space->list[c].max_bytes == UINT64_MAX &&
            !isnan(look(s, last, c)) &&
            (best < 0 || look(s, last, c) < look(s, last, best)))
            best = c;
    return best;
}

static int take_segments(struct search *s)
{
    struct tune_result *result = s->result;
    struct tune_segment *segments = result->segments;
    uint64_t most;

    segments[0] = (struct tune_segment){0, s->choice[0]};
    result->nsegments = 1;
    for (int k = 0; k < result->ncrossovers; k++)
        segments[result->nsegments++] = (struct tune_segment){
            result->crossovers[k].high, result->crossovers[k].latter};
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

static int nearest(const struct search *s, uint64_t bytes)
{
    int i = 0;

    while (i < s->nsizes - 1 && s->sizes[i + 1] <= bytes)
        i++;
    return i;
}

static struct list contenders(const struct search *s, uint64_t bytes)
{
    const int i = nearest(s, bytes);
    struct list list = survivors(s, i);

    if (i + 1 < s->nsizes) {
        const struct list above = survivors(s, i + 1);

        for (int k = 0; k < above.n; k++)
            list_add(&list, above.items[k]);
    }
    list_add(&list, tune_result_candidate(s->result, bytes));
    return list;
}

static void take_regret(const struct search *s, uint64_t bytes)
{
    struct tune_result *result = s->result;
    struct tune_held held = {.bytes = bytes, .best = -1, .regret = NAN};
    double us[TUNE_LAUNCHES_MAX], least = INFINITY, chosen;

    held.chosen = tune_result_candidate(result, bytes);
    held.launches = medians(s, TUNE_HELD_OUT, bytes, held.chosen, us);
    if (held.launches == 0)
        return;
    chosen = tune_median(us, held.launches);
    for (int c = 0; c < s->space->n; c++) {
        const double other = median_of(s, TUNE_HELD_OUT, bytes, c);

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

static double held_s(const struct search *s, uint64_t bytes)
{
    const int i = nearest(s, bytes);
    const double above = i + 1 < s->nsizes ? s->round_s[i + 1] : 0;

    return contenders(s, bytes).n * fmax(s->round_s[i], above);
}

static int hold_out(struct search *s)
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
            const struct launch launch = {TUNE_HELD_OUT, l, 200000 + l};
            const struct list list = contenders(s, sizes[i]);
            const double own = held_s(s, sizes[i]);
            const double seconds = share_s(s, HELD_END, own, all, list.n);

            all -= own;
            if (clock_s(s) + own <= end_of(s, HELD_END))
                status = measure(s, &launch, sizes[i], &list, seconds);
        }
    for (int i = 0; i < n; i++)
        take_regret(s, sizes[i]);
    sum_regret_up(s->result);
    return status;
}

/* ---- peers -------------------------------------------------------------- */

static int compare_peers(struct search *s)
{
    int status = RG_OK;

    for (int i = 0; i < s->nsizes && s->config->npeers && status == RG_OK;
         i++) {
        const struct launch launch = {TUNE_PEER, 1, 300000};
        struct list list = {0};
        const double own = (1 + s->config->npeers) * s->round_s[i];

        list_add(&list, s->choice[i]);
        if (clock_s(s) + own <= end_of(s, PEER_END))
            status = measure(s, &launch, s->sizes[i], &list, own);
    }
    return status;
}

/* ---- all of it ---------------------------------------------------------- */

int tune_search(const struct tune_config *config,
                const struct tune_space *space, const struct tune_meter *meter,
                struct tune_raw *raw, struct tune_result *result_out)
{
    struct search s = {.config = config,
                       .space = space,
                       .meter = meter,
                       .raw = raw,
                       .result = result_out,
                       .keep = KEEP_MOST};
    int status = space->nbases > 0 ? RG_OK : RG_ENOTSUP;

    memset(result_out, 0, sizeof *result_out);
    s.nsizes = tune_grid(config->min_bytes, config->max_bytes, s.sizes);
    if (status == RG_OK)
        status = prune(&s);
    if (status == RG_OK)
        status = sweep(&s);
    if (status == RG_OK)
        status = choose_swept(&s);
    if (status == RG_OK) {
        take_points(&s);
        list_crossovers(&s);
        status = bisect(&s);
    }
    if (status == RG_OK)
        status = confirm(&s);
    if (status == RG_OK)
        status = take_segments(&s);
    if (status == RG_OK)
        status = hold_out(&s);
    if (status == RG_OK)
        status = compare_peers(&s);
    result_out->spent_s = clock_s(&s);
    free(s.looks);
    return status;
}
