/*
 * The raw measurements of a tuning: a file of JSON lines, and the samples in
 * memory. Every line is flushed as it is written, so a tuning that was cut
 * short goes on from its file. Memory holds what the file does, digit for
 * digit, so whoever reads it decides from the same figures.
 *
 *   {"kind":"tune", "config": HASH, ...}     first: what is measured
 *   {"kind":"sample", ...}                   any number
 *   {"kind": ...}                            results, after the last sample
 *   {"kind":"tuned", "budget_s": ...}        last: the tuning is whole
 */
#ifndef RG_BENCH_TUNE_RAW_H
#define RG_BENCH_TUNE_RAW_H

#include <jansson.h>
#include <stdint.h>

#include "bench/tune_space.h"

enum tune_phase {
    TUNE_PRUNE = 0, /* one short look at every candidate */
    TUNE_SWEEP,     /* the grid, in several launches */
    TUNE_BISECT,    /* between two sizes of the grid */
    TUNE_CONFIRM,   /* a bound, in new launches */
    TUNE_HELD_OUT,  /* sizes that nothing was chosen by */
    TUNE_PEER,      /* other libraries */
    TUNE_PHASES
};
const char *tune_phase_name(enum tune_phase phase);

/* One launch of a candidate (or peer) at one size. */
struct tune_sample {
    enum tune_phase phase;
    int launch;
    uint64_t bytes;
    char candidate[TUNE_NAME_BYTES];
    double p50_us; /* the launch's median: the sample */
    double min_us;
    int n; /* repetitions behind them */
};

enum tune_raw_mode {
    TUNE_RAW_NEW = 0, /* begins the file anew */
    TUNE_RAW_GO_ON,   /* goes on from a file of this configuration that was cut
                         short; begins anew else */
    TUNE_RAW_RESUME   /* goes on from it, whole or not, or fails */
};

struct tune_raw;

/*
 * `header` (stolen) is the first line; its "config" decides whether a file is
 * of the same configuration. In a file to go on from, a last line without its
 * end is dropped, and so are results. RG_OK; RG_EINVAL with one line in
 * `text_out`; RG_ENOMEM. A null path keeps samples in memory only.
 */
int tune_raw_open(const char *path, json_t *header, enum tune_raw_mode mode,
                  struct tune_raw **raw_out, char *text_out, size_t room);
void tune_raw_close(struct tune_raw *raw); /* accepts null */
/* Samples that the file already had. */
int tune_raw_resumed(const struct tune_raw *raw);
/* Budget in seconds of the whole tuning that was in the file; 0: there was
 * none, or it was cut short. */
double tune_raw_budget_s(const struct tune_raw *raw);

/* Keeps and writes one. RG_OK, RG_ENOMEM, RG_ESYSTEM: cannot be written. */
int tune_raw_add(struct tune_raw *raw, const struct tune_sample *sample);
/* Writes a result; steals the reference. RG_OK or RG_ESYSTEM. */
int tune_raw_result(struct tune_raw *raw, json_t *object);

/* null: there is none. Borrowed until the next is added. */
const struct tune_sample *tune_raw_find(const struct tune_raw *raw,
                                        enum tune_phase phase, int launch,
                                        uint64_t bytes, const char *candidate);
/* The medians of a candidate's launches; at most `room`; returns how many. */
int tune_raw_medians(const struct tune_raw *raw, enum tune_phase phase,
                     uint64_t bytes, const char *candidate, double *us_out,
                     int room);
int tune_raw_count(const struct tune_raw *raw);
/* FNV-1a of all samples in order. */
uint64_t tune_raw_hash(const struct tune_raw *raw);

#endif
