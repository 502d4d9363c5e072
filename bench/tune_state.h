/*
 * What the files of a tuning share: tune_search.c with the first look at all
 * candidates (tune_look.c) and the bounds between choices (tune_bounds.c).
 */
#ifndef RG_BENCH_TUNE_STATE_H
#define RG_BENCH_TUNE_STATE_H

#include "bench/tune_search.h"

/* Parts of the budget, less setting up, by whose end a phase ends. */
#define TUNE_PRUNE_END   0.20
#define TUNE_SWEEP_END   0.62
#define TUNE_BISECT_END  0.74
#define TUNE_CONFIRM_END 0.82
#define TUNE_HELD_END    0.93
#define TUNE_PEER_END    0.99

enum { TUNE_KEEP_MOST = 6, TUNE_KEEP_LEAST = 2 }; /* swept at a size */

struct tune_state {
    const struct tune_config *config;
    const struct tune_space *space;
    const struct tune_meter *meter; /* null: nothing is measured any more */
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

/* A list of candidates; what is on it already is not added again. */
struct tune_list {
    int n;
    int items[TUNE_ORDER_MAX];
};
void tune_list_add(struct tune_list *list, int candidate);

/* A launch of the tuning: each has a number of its own. */
struct tune_launch {
    enum tune_phase phase;
    int index;  /* the sample's */
    int number; /* unique */
};

const char *tune_state_name(const struct tune_state *s, int candidate);
int tune_state_fits(const struct tune_state *s, int candidate, uint64_t bytes);
/* Infinite when nothing is measured any more. */
double tune_state_clock(const struct tune_state *s);
/* Seconds on that clock at which a part of the budget is used up. */
double tune_state_end(const struct tune_state *s, double part);

/* Launch medians, TUNE_LAUNCHES_MAX at most; returns how many. */
int tune_state_medians(const struct tune_state *s, enum tune_phase phase,
                       uint64_t bytes, int candidate, double *us_out);
/* Their median; NaN: none. */
double tune_state_median(const struct tune_state *s, enum tune_phase phase,
                         uint64_t bytes, int candidate);
/* Whether a is faster than b at a size, by the samples of a phase. */
int tune_state_faster(const struct tune_state *s, enum tune_phase phase,
                      uint64_t bytes, int a, int b);
/*
 * Measures, in a shuffled order, those of the list that fit the size and of
 * which the launch has no sample. RG_OK, or what the meter or the raw file
 * said.
 */
int tune_state_measure(struct tune_state *s, const struct tune_launch *launch,
                       uint64_t bytes, const struct tune_list *list,
                       double seconds);

/* ---- tune_look.c -------------------------------------------------------- */

/* A short look at all candidates; leaves the sizes that can be afforded. */
int tune_look(struct tune_state *s);
/*
 * The sizes to choose for: all of the grid of which there are samples of the
 * sweep, in whichever run they were taken. RG_OK, RG_ENOMEM.
 */
int tune_look_swept(struct tune_state *s);
/* What it found, in microseconds; NaN: nothing. */
double tune_look_at(const struct tune_state *s, int i, int candidate);
/* Whom to sweep at the i-th size. */
struct tune_list tune_look_survivors(const struct tune_state *s, int i);

/* ---- tune_bounds.c ------------------------------------------------------ */

/* Where choices of neighbouring sizes differ; then, in turn: */
void tune_bounds_list(struct tune_state *s);
int tune_bounds_bisect(struct tune_state *s);
int tune_bounds_confirm(struct tune_state *s);

#endif
