#include "harness/report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "harness/output.h"
#include "runtime/core/escape.h"

struct rg_report {
    const char *program; /* borrowed */
    FILE *json;          /* owned, null: none */
    int speaks;          /* world rank 0 */
    int progress;        /* standard error is a terminal */
    int lost;            /* a JSON line could not be written */
};

enum { NOTE_BYTES = 4096, TYPE_WIDTH = 6 /* f8e4m3 */ };

static int open_json(struct rg_report *report, const char *path)
{
    const char *fault = rg_output_fault(path, RG_OUTPUT_STREAM);

    if (rg_output_is_same(path, getenv("RG_POLICY")))
        fault = "it is the table of RG_POLICY";
    if (!fault) {
        report->json = fopen(path, "w");
        fault = report->json ? NULL : strerror(errno);
    }
    if (!fault)
        return RG_OK;
    rg_say(report->program, "cannot write '%s': %s", path, fault);
    return RG_EINVAL;
}

int rg_report_create(const char *program, const char *json, int rank,
                     struct rg_report **report_out)
{
    struct rg_report *report = calloc(1, sizeof *report);

    if (!report)
        return RG_ENOMEM;
    report->program = program;
    report->speaks = rank == 0;
    report->progress = report->speaks && isatty(STDERR_FILENO);
    if (json && report->speaks && open_json(report, json) != RG_OK) {
        free(report);
        return RG_EINVAL;
    }
    *report_out = report;
    return RG_OK;
}

void rg_report_destroy(struct rg_report *report)
{
    if (!report)
        return;
    rg_report_progress(report, NULL);
    if (report->json && fclose(report->json) != 0 && !report->lost)
        fprintf(stderr, "%s: the JSON lines are incomplete: %s\n",
                report->program, strerror(errno));
    free(report);
}

void rg_report_speak(struct rg_report *report)
{
    report->speaks = 1;
}

int rg_report_speaks(const struct rg_report *report)
{
    return report->speaks;
}

void rg_report_note(struct rg_report *report, const char *format, ...)
{
    char text[NOTE_BYTES], line[NOTE_BYTES];
    va_list list;

    if (!report->speaks)
        return;
    rg_report_progress(report, NULL);
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    rg_escape(text, line, sizeof line);
    printf("# %s\n", line);
    fflush(stdout);
}

/* Says so once; the exit code says it too (rg_report_code). */
static void json_written(struct rg_report *report)
{
    if (fflush(report->json) == 0 && !ferror(report->json))
        return;
    if (!report->lost)
        rg_say(report->program, "the JSON file cannot be written: %s",
               strerror(errno));
    report->lost = 1;
}

void rg_report_json(struct rg_report *report, json_t *object)
{
    if (report->json) {
        json_dumpf(object, report->json, JSON_COMPACT | JSON_REAL_PRECISION(9));
        fputc('\n', report->json);
        json_written(report);
    }
    json_decref(object);
}

int rg_report_code(const struct rg_report *report, int code)
{
    return report->lost ? rg_exit_worse(code, RG_EXIT_ENVIRONMENT) : code;
}

void rg_report_progress(struct rg_report *report, const char *text)
{
    if (!report->progress)
        return;
    fprintf(stderr, "\r\033[K%s", text ? text : "");
    fflush(stderr);
}

/* ---- names -------------------------------------------------------------- */

static const char *device_name(enum rg_device_kind kind)
{
    return kind == RG_DEVICE_CUDA ? "cuda" : "emu";
}

static const char *backend_name(enum rg_backend backend)
{
    return backend == RG_BACKEND_NEW ? "new" : "legacy";
}

static json_t *hash_json(uint64_t hash)
{
    return json_sprintf("%016" PRIx64, hash);
}

static json_t *real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* ---- environment -------------------------------------------------------- */

struct warnings {
    struct rg_report *report;
    json_t *list;
};

static void take_warning(void *arg, const char *line)
{
    struct warnings *warnings = arg;

    rg_report_note(warnings->report, "warning: %s", line);
    json_array_append_new(warnings->list, json_string(line));
}

static json_t *places_json(const struct rg_report_env *env)
{
    json_t *list = json_array();

    for (int i = 0; i < env->nranks; i++) {
        const struct rg_place *place = &env->places[i];

        json_array_append_new(list, json_pack("{s:i,s:s,s:s,s:s,s:i,s:s}",
                                              "rank", i, "host", place->host,
                                              "device", place->device, "uuid",
                                              place->uuid, "numa", place->numa,
                                              "cpuset", place->cpuset));
    }
    return list;
}

static void env_json(struct rg_report *report, const struct rg_report_env *env,
                     const struct utsname *machine, json_t *warnings)
{
    char date[32] = "";
    const time_t now = time(NULL);
    struct tm utc;

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    rg_report_json(
        report,
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:i,s:i,s:o,"
                  "s:o,s:o}",
                  "kind", "env", "program", report->program, "command",
                  env->command, "date", date, "collective", env->collective,
                  "system", machine->sysname, "release", machine->release,
                  "device", device_name(env->device), "backend",
                  backend_name(env->backend), "driver", env->info.driver,
                  "cores", env->info.cores, "ranks", env->nranks, "hosts",
                  env->hosts, "policy_hash", hash_json(env->policy_hash),
                  "places", places_json(env), "warnings", warnings));
}

void rg_report_env(struct rg_report *report, const struct rg_report_env *env)
{
    struct warnings warnings = {report, json_array()};
    struct utsname machine;

    if (!report->speaks) {
        json_decref(warnings.list);
        return;
    }
    uname(&machine);
    rg_report_note(report, "%s: %s, %s backend, %d ranks on %d host%s",
                   report->program, device_name(env->device),
                   backend_name(env->backend), env->nranks, env->hosts,
                   env->hosts == 1 ? "" : "s");
    rg_report_note(report, "command: %s", env->command);
    rg_report_note(report, "machine: %s %s %s; driver %s; policy %016" PRIx64,
                   machine.sysname, machine.release, machine.machine,
                   env->info.driver, env->policy_hash);
    for (int i = 0; i < env->nranks; i++) {
        const struct rg_place *place = &env->places[i];

        rg_report_note(report, "rank %d: host %s device %s %s numa %d cpus %s",
                       i, place->host, place->device, place->uuid, place->numa,
                       place->cpuset);
    }
    rg_topo_warnings(env->places, env->nranks, env->device, take_warning,
                     &warnings);
    env_json(report, env, &machine, warnings.list);
}

/* ---- rows --------------------------------------------------------------- */

/* What crosses a rank's link per byte of the buffer. */
static double bus_factor(enum rg_collective collective, int n)
{
    switch (collective) {
    case RG_COLL_all_reduce:
        return 2.0 * (n - 1) / n;
    case RG_COLL_broadcast:
    case RG_COLL_reduce:
    case RG_COLL_sendrecv:
        return 1;
    case RG_COLL_barrier:
        return NAN;
    default:
        return (double)(n - 1) / n;
    }
}

double rg_row_algbw(const struct rg_row *row)
{
    if (row->collective == RG_COLL_barrier)
        return NAN;
    /* Bytes per microsecond are megabytes per second. */
    return (double)row->bytes / row->time.p50_us * 1e-3;
}

double rg_row_busbw(const struct rg_row *row)
{
    return rg_row_algbw(row) * bus_factor(row->collective, row->ranks);
}

double rg_row_ratio(const struct rg_row *row)
{
    return row->peer ? row->peer_p50_us / row->time.p50_us : NAN;
}

void rg_report_columns(struct rg_report *report, int with_peer)
{
    if (!report->speaks)
        return;
    printf("#%10s %11s %*s %5s %4s  %35s  %35s\n", "", "", TYPE_WIDTH, "", "",
           "", "out of place (us, GB/s)", "in place (us, GB/s)");
    printf("#%10s %11s %*s %5s %4s", "size", "count", TYPE_WIDTH, "type",
           "redop", "root");
    for (int i = 0; i < 2; i++)
        printf("  %10s %8s %8s %6s", "time", "algbw", "busbw", "#wrong");
    printf("  %-14s %-5s %5s %9s %7s %5s %-10s %-4s", "algo", "route", "epoch",
           "p99", "+-ci", "n", "why", "dev");
    if (with_peer)
        printf(" %-9s %10s %6s %10s %6s", "peer", "time", "ratio", "time(in)",
               "ratio");
    putchar('\n');
    fflush(stdout);
}

/* A figure with about four digits, "-" where there is none. */
static void print_real(int width, double value)
{
    const int digits = fabs(value) < 100 ? 2 : fabs(value) < 10000 ? 1 : 0;

    if (isfinite(value))
        printf(" %*.*f", width, digits, value);
    else
        printf(" %*s", width, "-");
}

/* Null: there is no such case. */
static void print_half(const struct rg_row *row)
{
    if (!row) {
        printf("  %10s %8s %8s %6s", "-", "-", "-", "-");
        return;
    }
    putchar(' ');
    print_real(10, row->time.p50_us);
    print_real(8, rg_row_algbw(row));
    print_real(8, rg_row_busbw(row));
    if (row->wrong < 0)
        printf(" %6s", "-");
    else
        printf(" %6" PRId64, row->wrong);
}

static void print_tail(const struct rg_row *row)
{
    const struct rg_summary *time = &row->time;
    const double width = 50 * (time->ci_hi_us - time->ci_lo_us) / time->p50_us;
    char interval[16] = "-";

    if (isfinite(width))
        snprintf(interval, sizeof interval, "%.1f%%", width);
    printf("  %-14s %-5s %5" PRIu64,
           row->run.algorithm ? row->run.algorithm : "-",
           row->run.seq ? rg_route_name(row->run.route) : "-", row->run.epoch);
    print_real(9, time->p99_us);
    printf(" %7s %5d %-10s %-4s", interval, time->n, rg_stop_name(row->stop),
           device_name(row->device));
}

/* What a row of the collective has, or null. */
static const char *type_name(const struct rg_row *row)
{
    return row->collective == RG_COLL_barrier ? NULL
                                              : rg_dtype_name(row->dtype);
}

static const char *redop_name(const struct rg_row *row)
{
    return rg_collective_reduces(row->collective) ? rg_op_name(row->op) : NULL;
}

static const char *or_none(const char *name)
{
    return name ? name : "none";
}

static json_t *row_json(const struct rg_row *row)
{
    const struct rg_summary *time = &row->time;
    json_t *object = json_pack(
        "{s:s,s:s,s:I,s:I,s:s?,s:s?,s:o,s:b,s:i,s:s,s:s,s:s,s:i,s:s?,s:i,s:s?,"
        "s:I,s:o,s:i,s:s}",
        "kind", "row", "collective", rg_collective_name(row->collective),
        "bytes", (json_int_t)row->bytes, "count", (json_int_t)row->count,
        "dtype", type_name(row), "op", redop_name(row), "root",
        row->root < 0 ? json_null() : json_integer(row->root), "inplace",
        row->inplace, "ranks", row->ranks, "device", device_name(row->device),
        "backend", backend_name(row->backend), "mode", row->mode, "graph",
        row->graph, "algorithm", row->run.algorithm, "channels",
        row->run.channels, "route",
        row->run.seq ? rg_route_name(row->run.route) : NULL, "epoch",
        (json_int_t)row->run.epoch, "policy_hash", hash_json(row->policy_hash),
        "samples", time->n, "stop", rg_stop_name(row->stop));

    json_object_set_new(object, "p50_us", real_json(time->p50_us));
    json_object_set_new(object, "p99_us", real_json(time->p99_us));
    json_object_set_new(object, "min_us", real_json(time->min_us));
    json_object_set_new(object, "ci_lo_us", real_json(time->ci_lo_us));
    json_object_set_new(object, "ci_hi_us", real_json(time->ci_hi_us));
    json_object_set_new(object, "algbw_gbps", real_json(rg_row_algbw(row)));
    json_object_set_new(object, "busbw_gbps", real_json(rg_row_busbw(row)));
    json_object_set_new(object, "wrong",
                        row->wrong < 0 ? json_null()
                                       : json_integer(row->wrong));
    json_object_set_new(object, "cache", json_string(row->cache));
    json_object_set_new(object, "peer",
                        row->peer ? json_string(row->peer) : json_null());
    json_object_set_new(object, "peer_p50_us",
                        real_json(row->peer ? row->peer_p50_us : NAN));
    json_object_set_new(object, "ratio", real_json(rg_row_ratio(row)));
    return object;
}

void rg_report_rows(struct rg_report *report, const struct rg_row *out,
                    const struct rg_row *in)
{
    if (!report->speaks)
        return;
    rg_report_progress(report, NULL);
    printf(" %10zu %11zu %*s %5s %4d", out->bytes, out->count, TYPE_WIDTH,
           or_none(type_name(out)), or_none(redop_name(out)), out->root);
    print_half(out);
    print_half(in);
    print_tail(out);
    if (out->peer) {
        printf(" %-9s", out->peer);
        print_real(10, out->peer_p50_us);
        print_real(6, rg_row_ratio(out));
        print_real(10, in ? in->peer_p50_us : NAN);
        print_real(6, in ? rg_row_ratio(in) : NAN);
    }
    putchar('\n');
    fflush(stdout);
    rg_report_json(report, row_json(out));
    if (in)
        rg_report_json(report, row_json(in));
}

/* ---- verdict ------------------------------------------------------------ */

static const char *exit_text(int code)
{
    switch (code) {
    case RG_EXIT_PASS:
        return "pass";
    case RG_EXIT_WRONG:
        return "wrong data";
    case RG_EXIT_USAGE:
        return "usage or configuration";
    case RG_EXIT_ENVIRONMENT:
        return "environment";
    case RG_EXIT_TIMEOUT:
        return "timeout";
    case RG_EXIT_GATE:
        return "gate missed";
    case RG_EXIT_RECOVERY:
        return "recovery failed";
    default:
        return "nothing could run";
    }
}

void rg_report_verdict(struct rg_report *report,
                       const struct rg_verdict *verdict)
{
    const int code = rg_verdict_exit(verdict);

    if (!report->speaks)
        return;
    rg_report_progress(report, NULL);
    printf("%ld passed, %ld failed, %ld skipped\n", verdict->passed,
           verdict->failed, verdict->skipped);
    printf("%s: exit %d\n", exit_text(code), code);
    fflush(stdout); /* rg_output_close() says what is lost */
    rg_report_json(report,
                   json_pack("{s:s,s:I,s:I,s:I,s:i}", "kind", "verdict",
                             "passed", (json_int_t)verdict->passed, "failed",
                             (json_int_t)verdict->failed, "skipped",
                             (json_int_t)verdict->skipped, "exit", code));
}
