#include "bench/tune_raw.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tune_raw {
    FILE *file; /* owned; null: memory only */
    struct tune_sample *samples;
    int n, room;
    int resumed;
    double budget_s; /* of the whole tuning gone on from, 0: none */
};

/* Digits of a figure in the file. */
enum { DIGITS = 9 };

static const char *const phases[TUNE_PHASES] = {"prune",   "sweep",    "bisect",
                                                "confirm", "held-out", "peer"};

const char *tune_phase_name(enum tune_phase phase)
{
    return phases[phase];
}

/* ---- lines -------------------------------------------------------------- */

static json_t *sample_json(const struct tune_sample *sample)
{
    return json_pack("{s:s,s:s,s:i,s:I,s:s,s:f,s:f,s:i}", "kind", "sample",
                     "phase", phases[sample->phase], "launch", sample->launch,
                     "bytes", (json_int_t)sample->bytes, "candidate",
                     sample->candidate, "p50_us", sample->p50_us, "min_us",
                     sample->min_us, "samples", sample->n);
}

/* RG_OK, or RG_EINVAL: not the line of a sample. */
static int sample_of(json_t *line, struct tune_sample *sample_out)
{
    const char *kind, *phase, *candidate;
    json_int_t bytes;

    memset(sample_out, 0, sizeof *sample_out);
    if (json_unpack(line, "{s:s,s:s,s:i,s:I,s:s,s:F,s:F,s:i}", "kind", &kind,
                    "phase", &phase, "launch", &sample_out->launch, "bytes",
                    &bytes, "candidate", &candidate, "p50_us",
                    &sample_out->p50_us, "min_us", &sample_out->min_us,
                    "samples", &sample_out->n) != 0 ||
        strcmp(kind, "sample") != 0 || bytes < 0 || !(sample_out->p50_us > 0))
        return RG_EINVAL;
    sample_out->bytes = (uint64_t)bytes;
    snprintf(sample_out->candidate, sizeof sample_out->candidate, "%s",
             candidate);
    for (int p = 0; p < TUNE_PHASES; p++)
        if (strcmp(phase, phases[p]) == 0) {
            sample_out->phase = (enum tune_phase)p;
            return RG_OK;
        }
    return RG_EINVAL;
}

static int write_line(struct tune_raw *raw, json_t *object)
{
    int failed = 0;

    if (raw->file) {
        failed = json_dumpf(object, raw->file,
                            JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) != 0 ||
                 fputc('\n', raw->file) == EOF || fflush(raw->file) != 0;
    }
    json_decref(object);
    return failed ? RG_ESYSTEM : RG_OK;
}

static int keep(struct tune_raw *raw, const struct tune_sample *sample)
{
    if (raw->n == raw->room) {
        const int room = raw->room ? 2 * raw->room : 256;
        struct tune_sample *grown =
            realloc(raw->samples, (size_t)room * sizeof *grown);

        if (!grown)
            return RG_ENOMEM;
        raw->samples = grown;
        raw->room = room;
    }
    raw->samples[raw->n++] = *sample;
    return RG_OK;
}

/* ---- going on ----------------------------------------------------------- */

static const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* What was found in a file. */
struct past {
    int same;        /* a header of the same configuration */
    int results;     /* no sample counts any more */
    int whole;       /* a tuning that came to its end */
    double budget_s; /* its own */
    long end;        /* behind the last sample, or the header */
};

/* RG_OK, or RG_EINVAL: not the last line of a tuning. */
static int end_of(json_t *line, struct past *past)
{
    if (strcmp(text_of(line, "kind"), "tuned") != 0)
        return RG_EINVAL;
    past->whole = 1;
    past->budget_s = json_number_value(json_object_get(line, "budget_s"));
    return RG_OK;
}

/* One line without its end; 0: nothing behind it is read. */
static int take_line(struct tune_raw *raw, json_t *header, json_t *line,
                     struct past *past)
{
    struct tune_sample sample;

    if (!past->same) {
        past->same =
            strcmp(text_of(line, "kind"), "tune") == 0 &&
            strcmp(text_of(line, "config"), text_of(header, "config")) == 0;
        return past->same;
    }
    if (strcmp(text_of(line, "kind"), "sample") != 0) {
        past->results = 1;
        return end_of(line, past) != RG_OK;
    }
    return !past->results && sample_of(line, &sample) == RG_OK &&
           keep(raw, &sample) == RG_OK;
}

/* Leaves the file behind what counts in it. */
static void read_past(struct tune_raw *raw, json_t *header, struct past *past)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t length;

    *past = (struct past){0};
    while ((length = getline(&text, &room, raw->file)) > 0 &&
           text[length - 1] == '\n') {
        json_t *line = json_loadb(text, (size_t)length, 0, NULL);
        const int goes_on = line && take_line(raw, header, line, past);

        json_decref(line);
        if (!goes_on)
            break;
        if (!past->results)
            past->end = ftell(raw->file);
    }
    free(text);
}

static int begin_anew(struct tune_raw *raw, json_t *header)
{
    raw->n = 0;
    rewind(raw->file);
    if (ftruncate(fileno(raw->file), 0) != 0)
        return RG_ESYSTEM;
    return write_line(raw, json_incref(header));
}

static int go_on(struct tune_raw *raw, const struct past *past)
{
    raw->resumed = raw->n;
    raw->budget_s = past->budget_s;
    if (fseek(raw->file, past->end, SEEK_SET) != 0 ||
        ftruncate(fileno(raw->file), past->end) != 0)
        return RG_ESYSTEM;
    return RG_OK;
}

static int open_file(struct tune_raw *raw, const char *path, json_t *header,
                     enum tune_raw_mode mode, char *text_out, size_t room)
{
    struct past past = {0};
    int status;

    raw->file = mode == TUNE_RAW_NEW ? NULL : fopen(path, "r+");
    if (raw->file)
        read_past(raw, header, &past);
    else if (mode != TUNE_RAW_RESUME)
        raw->file = fopen(path, "w");
    if (!raw->file) {
        snprintf(text_out, room, "cannot %s '%s': %s",
                 mode == TUNE_RAW_RESUME ? "go on from" : "write", path,
                 strerror(errno));
        return RG_EINVAL;
    }
    if (mode == TUNE_RAW_RESUME && !past.same) {
        snprintf(text_out, room, "'%s' is of another configuration", path);
        return RG_EINVAL;
    }
    if (past.same && (mode == TUNE_RAW_RESUME || !past.whole))
        status = go_on(raw, &past);
    else
        status = begin_anew(raw, header);
    if (status != RG_OK)
        snprintf(text_out, room, "cannot write '%s': %s", path,
                 strerror(errno));
    return status == RG_OK ? RG_OK : RG_EINVAL;
}

int tune_raw_open(const char *path, json_t *header, enum tune_raw_mode mode,
                  struct tune_raw **raw_out, char *text_out, size_t room)
{
    struct tune_raw *raw = calloc(1, sizeof *raw);
    int status = raw ? RG_OK : RG_ENOMEM;

    text_out[0] = '\0';
    if (status == RG_OK && path)
        status = open_file(raw, path, header, mode, text_out, room);
    json_decref(header);
    if (status != RG_OK) {
        tune_raw_close(raw);
        return status;
    }
    *raw_out = raw;
    return RG_OK;
}

void tune_raw_close(struct tune_raw *raw)
{
    if (!raw)
        return;
    if (raw->file)
        fclose(raw->file);
    free(raw->samples);
    free(raw);
}

int tune_raw_resumed(const struct tune_raw *raw)
{
    return raw->resumed;
}

double tune_raw_budget_s(const struct tune_raw *raw)
{
    return raw->budget_s;
}

/* ---- samples ------------------------------------------------------------ */

/* As the file has it. */
static double as_written(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.*g", DIGITS, value);
    return strtod(text, NULL);
}

int tune_raw_add(struct tune_raw *raw, const struct tune_sample *sample)
{
    struct tune_sample written = *sample;
    int status;

    written.p50_us = as_written(sample->p50_us);
    written.min_us = as_written(sample->min_us);
    status = keep(raw, &written);
    return status == RG_OK ? write_line(raw, sample_json(&written)) : status;
}

int tune_raw_result(struct tune_raw *raw, json_t *object)
{
    return write_line(raw, object);
}

const struct tune_sample *tune_raw_find(const struct tune_raw *raw,
                                        enum tune_phase phase, int launch,
                                        uint64_t bytes, const char *candidate)
{
    for (int i = 0; i < raw->n; i++) {
        const struct tune_sample *sample = &raw->samples[i];

        if (sample->bytes == bytes && sample->phase == phase &&
            sample->launch == launch &&
            strcmp(sample->candidate, candidate) == 0)
            return sample;
    }
    return NULL;
}

int tune_raw_medians(const struct tune_raw *raw, enum tune_phase phase,
                     uint64_t bytes, const char *candidate, double *us_out,
                     int room)
{
    int n = 0;

    for (int i = 0; i < raw->n && n < room; i++) {
        const struct tune_sample *sample = &raw->samples[i];

        if (sample->bytes == bytes && sample->phase == phase &&
            strcmp(sample->candidate, candidate) == 0)
            us_out[n++] = sample->p50_us;
    }
    return n;
}

int tune_raw_count(const struct tune_raw *raw)
{
    return raw->n;
}

uint64_t tune_raw_hash(const struct tune_raw *raw)
{
    uint64_t hash = 0xcbf29ce484222325ull;
    char text[160];

    for (int i = 0; i < raw->n; i++) {
        const struct tune_sample *sample = &raw->samples[i];
        const int length =
            snprintf(text, sizeof text, "%s %d %" PRIu64 " %s %.9g\n",
                     phases[sample->phase], sample->launch, sample->bytes,
                     sample->candidate, sample->p50_us);

        for (int k = 0; k < length && k < (int)sizeof text; k++)
            hash = (hash ^ (unsigned char)text[k]) * 0x100000001b3ull;
    }
    return hash;
}
