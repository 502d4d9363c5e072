/*
 * What a program prints: text for people on standard output, JSON lines for
 * machines in a file, progress on a terminal. World rank 0 reports; on other
 * ranks every call does nothing.
 */
#ifndef RG_HARNESS_REPORT_H
#define RG_HARNESS_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "harness/stats.h"
#include "harness/topo.h"
#include "harness/verdict.h"
#include "runtime/regroup.h"

struct rg_report;

/*
 * `json` is a path or null. RG_EINVAL, with one line printed, when it cannot
 * be written: decided here, before anything is measured.
 */
int rg_report_create(const char *program, const char *json, int rank,
                     struct rg_report **report_out);
void rg_report_destroy(struct rg_report *report); /* accepts null */
/* In place of a rank 0 that has died: on standard output alone. */
void rg_report_speak(struct rg_report *report);
int rg_report_speaks(const struct rg_report *report);

/* A "# ..." line on standard output. */
void rg_report_note(struct rg_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The header: text lines, warnings, and the JSON "env" object. */
struct rg_report_env {
    const char *command; /* the command line */
    const char *collective;
    enum rg_device_kind device;
    enum rg_backend backend;
    struct rg_device_info info; /* rank 0's */
    const struct rg_place *places;
    int nranks;
    int hosts;
    uint64_t policy_hash;
};
void rg_report_env(struct rg_report *report, const struct rg_report_env *env);

/* One measured case: a JSON object, and half of a text row. */
struct rg_row {
    enum rg_collective collective;
    size_t bytes; /* of a rank's largest buffer */
    size_t count; /* of a block */
    enum rg_dtype dtype;
    enum rg_op op;
    int root; /* -1: none */
    int inplace;
    int ranks;
    enum rg_device_kind device;
    enum rg_backend backend;
    const char *mode;
    int graph; /* invocations in a replay, 0: no graph */
    struct rg_run_info run;
    uint64_t policy_hash;
    struct rg_summary time;
    enum rg_stop stop;
    int64_t wrong; /* elements over all ranks, -1: not checked */
    const char *cache;
    const char *peer;   /* null: none */
    double peer_p50_us; /* NaN: none */
};

/*
 * GB/s (1e9 bytes): algorithm and bus bandwidth of a row. NaN without time, and
 * of a barrier.
 */
double rg_row_algbw(const struct rg_row *row);
double rg_row_busbw(const struct rg_row *row);
/* peer_p50_us / p50_us; NaN without a peer. */
double rg_row_ratio(const struct rg_row *row);

/* The two "#" lines above the rows. */
void rg_report_columns(struct rg_report *report, int with_peer);
/*
 * One text line from the out-of-place and in-place rows, a JSON line each. `in`
 * null: it is never in place.
 */
void rg_report_rows(struct rg_report *report, const struct rg_row *out,
                    const struct rg_row *in);

/*
 * Progress on a terminal: what is measured now and how far. Overwrites its own
 * line; a null text clears it.
 */
void rg_report_progress(struct rg_report *report, const char *text);

/* "N passed, N failed, N skipped", a closing line, the JSON verdict. */
void rg_report_verdict(struct rg_report *report,
                       const struct rg_verdict *verdict);
/* The code to exit with: a JSON line that could not be written makes it
 * ENVIRONMENT. */
int rg_report_code(const struct rg_report *report, int code);

/* Any further JSON object of the program's own; steals the reference. */
struct json_t;
void rg_report_json(struct rg_report *report, struct json_t *object);

#endif
