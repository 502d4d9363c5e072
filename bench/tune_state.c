#include "bench/tune_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bench/tune_stats.h"

void tune_list_add(struct tune_list *list, int candidate)
{
    for (int i = 0; i < list->n; i++)
        if (list->items[i] == candidate)
            return;
    if (list->n < TUNE_ORDER_MAX)
        list->items[list->n++] = candidate;
}

const char *tune_state_name(const struct tune_state *s, int candidate)
{
    return s->space->list[candidate].name;
}

int tune_state_fits(const struct tune_state *s, int candidate, uint64_t bytes)
{
    return tune_candidate_fits(&s->space->list[candidate], bytes);
}

double tune_state_clock(const struct tune_state *s)
{
    return s->meter ? s->meter->clock_s(s->meter->arg) : INFINITY;
}

double tune_state_end(const struct tune_state *s, double part)
{
    return s->begin_s + part * (s->config->budget_s - s->begin_s);
}

/* Launch medians; returns how many. */
int tune_state_medians(const struct tune_state *s, enum tune_phase phase,
                       uint64_t bytes, int candidate, double *us_out)
{
    return tune_raw_medians(s->raw, phase, bytes, tune_state_name(s, candidate),
                            us_out, TUNE_LAUNCHES_MAX);
}

double tune_state_median(const struct tune_state *s, enum tune_phase phase,
                         uint64_t bytes, int candidate)
{
    double us[TUNE_LAUNCHES_MAX];

    return tune_median(us, tune_state_medians(s, phase, bytes, candidate, us));
}

/* Whether a is faster than b at a size, by the samples of a phase. */
int tune_state_faster(const struct tune_state *s, enum tune_phase phase,
                      uint64_t bytes, int a, int b)
{
    double of_a[TUNE_LAUNCHES_MAX], of_b[TUNE_LAUNCHES_MAX];
    const int na = tune_state_medians(s, phase, bytes, a, of_a);
    const int nb = tune_state_medians(s, phase, bytes, b, of_b);

    return tune_faster(of_a, na, of_b, nb);
}

/* ---- measuring ---------------------------------------------------------- */

static void say_progress(const struct tune_state *s,
                         const struct tune_launch *launch,
                         const struct tune_order *order)
{
    char text[160];

    if (!s->meter->progress)
        return;
    snprintf(text, sizeof text,
             "%s, launch %d: %" PRIu64 " bytes, %d candidates; %.0f of %.0f s",
             tune_phase_name(launch->phase), launch->index, order->bytes,
             order->n, tune_state_clock(s), s->config->budget_s);
    s->meter->progress(s->meter->arg, text);
}

static int keep_figure(const struct tune_state *s,
                       const struct tune_launch *launch, uint64_t bytes,
                       const char *name, const struct tune_figure *figure)
{
    struct tune_sample sample = {launch->phase,  launch->index,  bytes,    "",
                                 figure->p50_us, figure->min_us, figure->n};

    if (!isfinite(figure->p50_us) || !(figure->p50_us > 0))
        return RG_OK;
    snprintf(sample.candidate, sizeof sample.candidate, "%s", name);
    return tune_raw_add(s->raw, &sample);
}

static int run_order(struct tune_state *s, const struct tune_launch *launch,
                     struct tune_order *order)
{
    struct tune_figure figures[TUNE_ORDER_MAX + TUNE_PEERS_MAX];
    int status;

    order->fresh = s->launch != launch->number;
    s->launch = launch->number;
    say_progress(s, launch, order);
    status = s->meter->measure(s->meter->arg, order, figures);
    for (int i = 0; status == RG_OK && i < order->n; i++)
        status =
            keep_figure(s, launch, order->bytes,
                        tune_state_name(s, order->candidates[i]), &figures[i]);
    for (int i = 0; status == RG_OK && order->peers && i < s->config->npeers;
         i++)
        status = keep_figure(s, launch, order->bytes, s->config->peers[i],
                             &figures[order->n + i]);
    return status;
}

/* Measures what there are no samples of, in a shuffled order. */
int tune_state_measure(struct tune_state *s, const struct tune_launch *launch,
                       uint64_t bytes, const struct tune_list *list,
                       double seconds)
{
    struct tune_order order = {.bytes = bytes,
                               .peers = launch->phase == TUNE_PEER};

    for (int i = 0; i < list->n; i++)
        if (tune_state_fits(s, list->items[i], bytes) &&
            !tune_raw_find(s->raw, launch->phase, launch->index, bytes,
                           tune_state_name(s, list->items[i])))
            order.candidates[order.n++] = list->items[i];
    if (order.n == 0)
        return RG_OK;
    tune_shuffle(order.candidates, order.n,
                 s->config->seed ^ bytes << 16 ^ (uint64_t)launch->number);
    order.max_us = seconds * 1e6 / order.n;
    return run_order(s, launch, &order);
}
