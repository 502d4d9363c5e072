#include <math.h>
#include <stdlib.h>

#include "bench/tune_state.h"

/* Who is slower than the best by this factor at a size is out there. */
#define KEEP_FACTOR 1.5

enum { KEEP_BASES = 3 /* whose channels and chunks are looked at */ };

/* ---- prune -------------------------------------------------------------- */

static const struct tune_launch first_look = {TUNE_PRUNE, 0, 1};

double tune_look_at(const struct tune_state *s, int i, int candidate)
{
    if (s->looks)
        return s->looks[(size_t)i * (size_t)s->space->n + (size_t)candidate];
    return tune_state_median(s, TUNE_PRUNE, s->sizes[i], candidate);
}

/* Candidates of a list that a short look found good, the best first. */
static struct tune_list good_ones(const struct tune_state *s, int i,
                                  const struct tune_list *from, int most)
{
    struct tune_list good = {0};

    while (good.n < most) {
        int best = -1;

        for (int k = 0; k < from->n; k++) {
            const int candidate = from->items[k];
            int taken = isnan(tune_look_at(s, i, candidate));

            for (int g = 0; g < good.n; g++)
                taken |= good.items[g] == candidate;
            if (!taken && (best < 0 || tune_look_at(s, i, candidate) <
                                           tune_look_at(s, i, best)))
                best = candidate;
        }
        if (best < 0 || (good.n >= TUNE_KEEP_LEAST &&
                         tune_look_at(s, i, best) >
                             KEEP_FACTOR * tune_look_at(s, i, good.items[0])))
            break;
        tune_list_add(&good, best);
    }
    return good;
}

static struct tune_list all_bases(const struct tune_state *s)
{
    struct tune_list list = {0};

    for (int c = 0; c < s->space->nbases; c++)
        tune_list_add(&list, c);
    return list;
}

/* With other channels; or, with the best of these, other chunks. */
static struct tune_list variants(const struct tune_state *s, int i, int base,
                                 int chunks)
{
    struct tune_list of_base = {0}, list = {0};
    struct tune_list best;

    for (int c = 0; c < s->space->n; c++)
        if (s->space->list[c].base == base && s->space->list[c].chunk == 0)
            tune_list_add(&of_base, c);
    best = good_ones(s, i, &of_base, 1);
    if (!chunks || best.n == 0)
        return of_base;
    for (int c = 0; c < s->space->n; c++)
        if (s->space->list[c].base == base && s->space->list[c].chunk > 0 &&
            s->space->list[c].channels ==
                s->space->list[best.items[0]].channels)
            tune_list_add(&list, c);
    return list;
}

static int look_at_variants(struct tune_state *s, int i)
{
    const struct tune_list bases = all_bases(s);
    const struct tune_list good = good_ones(s, i, &bases, KEEP_BASES);
    int status = RG_OK;

    for (int chunks = 0; chunks <= 1; chunks++)
        for (int g = 0; g < good.n && status == RG_OK; g++) {
            const struct tune_list list = variants(s, i, good.items[g], chunks);

            if (tune_state_clock(s) + s->round_s[i] * list.n <=
                tune_state_end(s, TUNE_PRUNE_END))
                status =
                    tune_state_measure(s, &first_look, s->sizes[i], &list, 0);
        }
    return status;
}

/* The shortest case of a candidate here; for what was measured before, from
 * its figures. */
static double round_of(const struct tune_state *s, int i, double spent_s, int n)
{
    const struct tune_sample *sample = tune_raw_find(
        s->raw, TUNE_PRUNE, 0, s->sizes[i], tune_state_name(s, 0));
    const double least = sample ? sample->p50_us * (sample->n + 4) * 1e-6 : 0;

    return fmax(spent_s / n, least);
}

static int count_fitting(const struct tune_state *s, uint64_t bytes)
{
    int n = 0;

    for (int c = 0; c < s->space->nbases; c++)
        n += tune_state_fits(s, c, bytes);
    return n;
}

/* Nothing is added to them any more, and they are asked for often. */
static int keep_looks(struct tune_state *s)
{
    const size_t row = (size_t)s->space->n;
    double *looks = calloc((size_t)s->nsizes * row + 1, sizeof *looks);

    if (!looks)
        return RG_ENOMEM;
    for (int i = 0; i < s->nsizes; i++)
        for (int c = 0; c < s->space->n; c++)
            looks[(size_t)i * row + (size_t)c] = tune_look_at(s, i, c);
    s->looks = looks;
    return RG_OK;
}

/*
 * Bases at each size first, so that the largest size that can be afforded is
 * known; then their variants as far as time goes.
 */
int tune_look(struct tune_state *s)
{
    const struct tune_list bases = all_bases(s), one = {1, {0}};
    /* Beginning the launch is no part of any size's time. */
    int status = tune_state_measure(s, &first_look, s->sizes[0], &one, 0);
    int n = 0;

    s->begin_s = tune_state_clock(s);
    for (; status == RG_OK && n < s->nsizes; n++) {
        const double begin = tune_state_clock(s);
        const int count = count_fitting(s, s->sizes[n]);
        /* Twice the bytes take twice the time, where that is what matters. */
        const double guess = n ? 2 * s->round_s[n - 1] * count : 0;

        if (count == 0)
            return RG_ENOTSUP;
        if (n && begin + guess > tune_state_end(s, TUNE_PRUNE_END))
            break;
        status = tune_state_measure(s, &first_look, s->sizes[n], &bases, 0);
        s->round_s[n] = round_of(s, n, tune_state_clock(s) - begin, count);
    }
    s->result->left_out = s->nsizes - n;
    if (status == RG_OK && n < 2 && s->nsizes > n)
        return RG_ETIMEDOUT;
    s->nsizes = n;
    for (int i = 0; i < n && status == RG_OK; i++)
        status = look_at_variants(s, i);
    return status == RG_OK ? keep_looks(s) : status;
}

static int was_swept(const struct tune_state *s, uint64_t bytes)
{
    for (int c = 0; c < s->space->n; c++)
        if (!isnan(tune_state_median(s, TUNE_SWEEP, bytes, c)))
            return 1;
    return 0;
}

int tune_look_swept(struct tune_state *s)
{
    const struct tune_config *config = s->config;
    uint64_t grid[TUNE_SIZES_MAX];
    double round_s[TUNE_SIZES_MAX];
    const int n = tune_grid(config->min_bytes, config->max_bytes, grid);
    int kept = 0, old = 0;

    free(s->looks);
    s->looks = NULL;
    for (int i = 0; i < n; i++) {
        const int known = old < s->nsizes && s->sizes[old] == grid[i];

        round_s[i] = known ? s->round_s[old] : 0;
        old += known;
    }
    for (int i = 0; i < n; i++)
        if (was_swept(s, grid[i])) {
            s->sizes[kept] = grid[i];
            s->round_s[kept] = round_of(s, kept, round_s[i], 1);
            kept++;
        }
    s->nsizes = kept;
    s->result->left_out = n - kept;
    return keep_looks(s);
}

static struct tune_list everybody(const struct tune_state *s, int i)
{
    struct tune_list list = {0};

    for (int c = 0; c < s->space->n; c++)
        if (!isnan(tune_look_at(s, i, c)))
            tune_list_add(&list, c);
    return list;
}

/* The best candidate of each base. */
static struct tune_list champions(const struct tune_state *s, int i)
{
    int best[TUNE_BASES_MAX];
    struct tune_list list = {0};

    for (int b = 0; b < s->space->nbases; b++)
        best[b] = -1;
    for (int c = 0; c < s->space->n; c++) {
        int *theirs = &best[s->space->list[c].base];

        if (!isnan(tune_look_at(s, i, c)) &&
            (*theirs < 0 ||
             tune_look_at(s, i, c) < tune_look_at(s, i, *theirs)))
            *theirs = c;
    }
    for (int b = 0; b < s->space->nbases; b++)
        if (best[b] >= 0)
            tune_list_add(&list, best[b]);
    return list;
}

/*
 * Whom to sweep: the good ones here, of each base first, so that variants of
 * one do not crowd another out, nor the device's own choice, which they have to
 * beat; and the best of both neighbours.
 */
struct tune_list tune_look_survivors(const struct tune_state *s, int i)
{
    const struct tune_list all = everybody(s, i), first = champions(s, i);
    const struct tune_list good = good_ones(s, i, &all, s->keep);
    struct tune_list list = good_ones(s, i, &first, s->keep);
    const int champions_kept = list.n;

    for (int k = 0; k < champions_kept; k++)
        tune_list_add(&list, s->space->list[list.items[k]].base);
    for (int k = 0; k < good.n && list.n < s->keep; k++)
        tune_list_add(&list, good.items[k]);

    for (int next = i - 1; next <= i + 1; next += 2) {
        struct tune_list theirs, best;

        if (next < 0 || next >= s->nsizes)
            continue;
        theirs = everybody(s, next);
        best = good_ones(s, next, &theirs, 1);
        if (best.n && tune_state_fits(s, best.items[0], s->sizes[i]))
            tune_list_add(&list, best.items[0]);
    }
    return list;
}
