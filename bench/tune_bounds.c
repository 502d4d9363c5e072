#include <math.h>

#include "bench/tune_choose.h"
#include "bench/tune_state.h"

/* ---- crossovers --------------------------------------------------------- */

void tune_bounds_list(struct tune_state *s)
{
    struct tune_result *result = s->result;

    for (int i = 1; i < s->nsizes; i++)
        if (s->choice[i] != s->choice[i - 1])
            result->crossovers[result->ncrossovers++] = (struct tune_crossover){
                s->sizes[i - 1],  s->sizes[i],  s->sizes[i],
                s->choice[i - 1], s->choice[i], -1};
}

static struct tune_bisect bisect_of(const struct tune_state *s,
                                    const struct tune_crossover *crossover)
{
    return (struct tune_bisect){crossover->low, crossover->high,
                                s->config->grain};
}

/* Time for both candidates at a size up to the crossover's. */
static double pair_s(const struct tune_state *s,
                     const struct tune_crossover *crossover)
{
    double round = 0;

    for (int i = 0; i < s->nsizes && s->sizes[i] <= crossover->grid; i++)
        round = s->round_s[i];
    return 2 * round;
}

static int measure_pair(struct tune_state *s, const struct tune_launch *launch,
                        const struct tune_crossover *crossover, uint64_t bytes,
                        double part)
{
    struct tune_list list = {0};
    const double own = pair_s(s, crossover);

    /* Against what is still to come with this one. */
    tune_list_add(&list, crossover->former);
    tune_list_add(&list, crossover->latter);
    if (tune_state_clock(s) + own > tune_state_end(s, part))
        return RG_OK;
    return tune_state_measure(s, launch, bytes, &list, 2 * own);
}

static int is_latter(const struct tune_state *s,
                     const struct tune_crossover *crossover, uint64_t bytes)
{
    if (!tune_state_fits(s, crossover->former, bytes))
        return 1;
    return tune_state_fits(s, crossover->latter, bytes) &&
           tune_state_faster(s, TUNE_BISECT, bytes, crossover->latter,
                             crossover->former);
}

/* One halving of every interval; how many were halved. */
static int bisect_step(struct tune_state *s, int step, int *halved_out)
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
            const struct tune_launch launch = {TUNE_BISECT, l,
                                               1000 + 100 * step + l};

            if (middle[k])
                status = measure_pair(s, &launch, &result->crossovers[k],
                                      middle[k], TUNE_BISECT_END);
        }
    *halved_out = 0;
    for (int k = 0; k < result->ncrossovers; k++) {
        struct tune_crossover *crossover = &result->crossovers[k];
        struct tune_bisect bisect = bisect_of(s, crossover);

        /* Without all launches nothing is known. */
        if (!middle[k] ||
            (tune_state_fits(s, crossover->former, middle[k]) &&
             tune_state_medians(s, TUNE_BISECT, middle[k], crossover->former,
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

int tune_bounds_bisect(struct tune_state *s)
{
    int status = RG_OK, halved = 1;

    for (int step = 0; halved && status == RG_OK; step++)
        status = bisect_step(s, step, &halved);
    return status;
}

static void take_confirmation(const struct tune_state *s,
                              struct tune_crossover *crossover)
{
    double us[TUNE_LAUNCHES_MAX];
    const int former = crossover->former, latter = crossover->latter;
    int late;

    if (tune_state_medians(s, TUNE_CONFIRM, crossover->high, latter, us) <
        s->config->launches)
        return;
    late = tune_state_faster(s, TUNE_CONFIRM, crossover->high, former, latter);
    crossover->confirmed = !late;
    if (late)
        crossover->high = crossover->grid;
}

int tune_bounds_confirm(struct tune_state *s)
{
    struct tune_result *result = s->result;
    int status = RG_OK;

    for (int l = 1; l <= s->config->launches; l++)
        for (int k = 0; k < result->ncrossovers && status == RG_OK; k++) {
            const struct tune_launch launch = {TUNE_CONFIRM, l, 100000 + l};
            const struct tune_crossover *crossover = &result->crossovers[k];

            status = measure_pair(s, &launch, crossover, crossover->high,
                                  TUNE_CONFIRM_END);
        }
    for (int k = 0; k < result->ncrossovers; k++)
        take_confirmation(s, &result->crossovers[k]);
    return status;
}
