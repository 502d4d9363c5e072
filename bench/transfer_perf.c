/*
 * What a route gives: put with signal between ranks 0 and another, in turn
 * (half the round trip) and one way, on one lane and on several at once, with
 * MPI's messages in the same run. Invocations hold many turns, and the device
 * says how long these took.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algos/algos.h"
#include "harness/options.h"
#include "harness/output.h"
#include "harness/peer.h"
#include "harness/probe.h"
#include "harness/report.h"
#include "harness/session.h"
#include "harness/stats.h"
#include "harness/verdict.h"

enum {
    OURS,
    PEERS, /* the peer's */
    SUBJECTS
};

enum {
    BLOCK = 10,       /* samples of a subject before the other's turn */
    SAMPLE_US = 1000, /* turns of a sample take about so long */
    TURNS_MAX = 4096,
    CHECK_TURNS = 4,
    LEAST_SAMPLES = 20
};

static const int lane_counts[] = {1, 2, 4, 8, 16, 32};
enum { N_LANE_COUNTS = sizeof lane_counts / sizeof *lane_counts };
#define LANE_VALUES "|1|2|4|8|16|32"

static const char *const program_names[] = {"pingpong", "stream"};
enum { N_PROGRAMS = sizeof program_names / sizeof *program_names };

struct transfer_options {
    struct rg_launch_options launch;
    int device;
    uint64_t first, last;
    int factor;
    uint32_t lanes;
    uint32_t programs;
    int peer;
    int samples;
    int warmup;
    int check;
    double seconds;
    int timeout_s;
    uint32_t compare;
    double min_ratio;
    const char *json;
    char command[512];
};

#define AT(field) offsetof(struct transfer_options, field)

static const struct rg_option table[] = {
    {RG_OPTION_SIZE, 'b', "begin", AT(first), NULL, 0, 1 << 30, "SIZE",
     "first size of a put (8)"},
    {RG_OPTION_SIZE, 'e', "end", AT(last), NULL, 0, 1 << 30, "SIZE",
     "last size of a put (4M)"},
    {RG_OPTION_INT, 'f', "factor", AT(factor), NULL, 2, 1024, "N",
     "from a size to the next (8)"},
    {RG_OPTION_SET, 'l', "lanes", AT(lanes), LANE_VALUES, 0, 0, "N,...",
     "lanes in use at once (1,4,32)"},
    {RG_OPTION_SET, 'p', "program", AT(programs), "|pingpong|stream", 0, 0,
     "NAME,...", "in turn, or one way (all)"},
    {RG_OPTION_INT, 0, "peer", AT(peer), NULL, 1, 4095, "RANK",
     "the rank at the other end of rank 0 (1)"},
    {RG_OPTION_INT, 'n', "iters", AT(samples), NULL, 6, 1e7, "N",
     "samples at most (1000)"},
    {RG_OPTION_INT, 'w', "warmup", AT(warmup), NULL, 0, 1e6, "N",
     "samples before the first (3)"},
    {RG_OPTION_INT, 'c', "check", AT(check), NULL, 0, 1, "0|1",
     "first let all ranks exchange the size and check every byte (0)"},
    {RG_OPTION_REAL, 0, "max-time", AT(seconds), NULL, 0, 1e6, "SECONDS",
     "for a row (1)"},
    {RG_OPTION_INT, 'T', "timeout", AT(timeout_s), NULL, 0, 1e6, "SECONDS",
     "end when there is no progress for so long (300; 0: never)"},
    {RG_OPTION_SET, 0, "compare", AT(compare), "|mpi", 0, 0, "PEER",
     "measure this peer too, in turn"},
    {RG_OPTION_REAL, 0, "min-ratio", AT(min_ratio), NULL, 0, 1e6, "X",
     "fail (exit 5) where the peer's time is less than X times ours"},
    {RG_OPTION_TEXT, 'J', "json", AT(json), NULL, 0, 0, "FILE",
     "write JSON lines"},
    {RG_OPTION_CHOICE, 0, "device", AT(device), "|emu|cuda", 0, 0, "DEVICE",
     "where ranks run (emu)"},
    RG_OPTIONS_LAUNCH(struct transfer_options),
};

static const struct rg_program program = {
    .name = "transfer_perf",
    .summary = "Measures what a route between two ranks gives.",
    .options = table,
    .noptions = sizeof table / sizeof *table,
    .notes = "A turn is a put with its signal on every lane. Its time is half "
             "the round trip for\npingpong; GB/s (1e9 bytes) counts all lanes. "
             "RG_DISABLE_P2P_ROUTE=1 measures the host\nproxy.\n",
};

/* One rank's sweep. */
struct sweep {
    const struct transfer_options *options;
    struct rg_session *session;
    struct rg_report *report;
    struct rg_probes probes;
    struct rg_peer peer;
    char *messages;   /* the peer's, of the host: both ways */
    uint64_t landing; /* bytes of the workspace for one rank's payloads */
    int no_room;      /* rows left out for want of it */
    struct rg_verdict verdict;
};

/* One row under way. */
struct row {
    struct rg_transfer_request request;
    struct rg_samples samples[SUBJECTS];
    struct rg_summary time[SUBJECTS];
    enum rg_stop stop;
    enum rg_route_kind route;
    int64_t wrong; /* -1: not checked */
    int merged;
};

static int compares(const struct sweep *sweep)
{
    return sweep->options->compare != 0;
}

/* ---- set-up ------------------------------------------------------------- */

static int create_peer(struct sweep *sweep)
{
    const struct rg_session *session = sweep->session;
    const struct rg_peer_config config = {session->job, session->context,
                                          session->comm, "mpi"};

    return compares(sweep)
               ? rg_peer_create(&config,
                                (enum rg_device_kind)sweep->options->device,
                                &sweep->peer)
               : RG_OK;
}

/* Sources for as much as the workspace takes, and the same for messages. */
static int create_buffers(struct sweep *sweep)
{
    const struct rg_session *session = sweep->session;
    struct rg_comm_limits limits;
    int status = rg_comm_limits(session->comm, rg_probes[0], &limits);

    if (status != RG_OK)
        return status;
    sweep->landing = limits.max_bytes;
    status = rg_probes_create(session->context, sweep->landing, &sweep->probes);
    if (status != RG_OK || !compares(sweep))
        return status;
    sweep->messages = calloc(2, sweep->landing);
    return sweep->messages ? RG_OK : RG_ENOMEM;
}

/* A group without routes is one of the legacy backend. */
static int look_at_routes(const struct sweep *sweep)
{
    const struct rg_session *session = sweep->session;
    struct rg_view_info view;
    int status = rg_comm_view(session->comm, &view);

    if (status != RG_OK || view.backend == RG_BACKEND_NEW)
        return status;
    if (session->job->rank == 0)
        rg_say(program.name, "there is no route to measure");
    return RG_ENOTSUP;
}

static int create(struct sweep *sweep, const struct rg_job *job)
{
    const struct rg_session_config config = {
        .program = program.name,
        .job = job,
        .algos = rg_probes,
        .device = (enum rg_device_kind)sweep->options->device,
        .backend = RG_BACKEND_NEW,
        .timeout_s = sweep->options->timeout_s};
    int status = rg_session_create(&config, &sweep->session);

    if (status == RG_OK)
        status = look_at_routes(sweep);
    if (status == RG_OK)
        status = create_peer(sweep);
    if (status == RG_OK)
        status = create_buffers(sweep);
    return status;
}

static void destroy(struct sweep *sweep)
{
    rg_probes_destroy(&sweep->probes);
    rg_peer_destroy(&sweep->peer);
    free(sweep->messages);
    rg_session_destroy(sweep->session);
}

/* ---- samples ------------------------------------------------------------ */

/* One invocation of what is asked for; the report adds up. */
static int launch(struct sweep *sweep, const struct row *row,
                  struct rg_transfer_report *report_out)
{
    const struct rg_session *session = sweep->session;
    int status = rg_probes_launch(&sweep->probes, &row->request, session->comm,
                                  session->stream);

    if (status == RG_OK)
        status = rg_stream_synchronize(session->stream);
    if (status == RG_OK)
        status = rg_comm_error(session->comm);
    return status == RG_OK ? rg_probes_read(&sweep->probes, report_out)
                           : status;
}

/* A turn of a pingpong has two halves. */
static double turn_us(const struct row *row, double us)
{
    const int halves = row->request.program == RG_TRANSFER_PINGPONG ? 2 : 1;

    return us / (double)row->request.turns / halves;
}

/* Microseconds a turn, as rank 0 has it; nothing at ranks without a part. */
static int sample_ours(struct sweep *sweep, struct row *row, double *us_out)
{
    struct rg_transfer_report before, after;
    int status = rg_probes_read(&sweep->probes, &before);

    if (status == RG_OK)
        status = launch(sweep, row, &after);
    if (status != RG_OK)
        return status;
    row->route = (enum rg_route_kind)after.route;
    *us_out =
        turn_us(row, (double)(after.elapsed_ns - before.elapsed_ns) / 1e3);
    return RG_OK;
}

static int sample_peer(struct sweep *sweep, const struct row *row,
                       double *us_out)
{
    const struct rg_peer_messages what = {
        .stream = row->request.program == RG_TRANSFER_STREAM,
        .peer = sweep->options->peer,
        .lanes = (int)row->request.lanes,
        .turns = (int)row->request.turns,
        .bytes = row->request.bytes,
        .send = sweep->messages,
        .recv = sweep->messages + sweep->landing};
    int status = sweep->peer.messages(&what, us_out);

    *us_out = turn_us(row, *us_out);
    return status;
}

static int block(struct sweep *sweep, struct row *row, int subject, int n)
{
    int status = RG_OK;
    double us = 0;

    for (int i = 0; i < n && status == RG_OK; i++) {
        status = subject == OURS ? sample_ours(sweep, row, &us)
                                 : sample_peer(sweep, row, &us);
        if (status == RG_OK)
            status = rg_samples_add(&row->samples[subject], us);
    }
    return status;
}

/* ---- a row -------------------------------------------------------------- */

/* So many turns that a sample takes a while; rank 0's clock decides. */
static int calibrate(struct sweep *sweep, struct row *row)
{
    const int nranks = sweep->session->job->size;
    int status = RG_OK;
    double us = 0;

    row->request.turns = 4;
    while (status == RG_OK && row->request.turns < TURNS_MAX &&
           us < SAMPLE_US) {
        row->request.turns *= 2;
        status = rg_probes_ask(&sweep->probes, &row->request);
        if (status == RG_OK)
            status = block(sweep, row, OURS, 1);
        if (status == RG_OK)
            status = rg_samples_merge(&row->samples[OURS], 0, RG_MERGE_RANK0,
                                      sweep->session->comm, nranks);
        if (status == RG_OK)
            us = row->samples[OURS].us[0] * (double)row->request.turns;
        rg_samples_fini(&row->samples[OURS]);
    }
    return status;
}

static int warm_up(struct sweep *sweep, struct row *row)
{
    int status = RG_OK;

    for (int i = 0; i <= compares(sweep) && status == RG_OK; i++) {
        status = block(sweep, row, i, sweep->options->warmup);
        rg_samples_fini(&row->samples[i]);
    }
    return status;
}

/* Merges what is new, and says when to stop: by rank 0's figures and clock. */
static int settle(struct sweep *sweep, struct row *row, double begin_us)
{
    const struct rg_stop_rule rule = {.width = 0.05,
                                      .min_samples = LEAST_SAMPLES,
                                      .max_samples = sweep->options->samples,
                                      .max_us = sweep->options->seconds * 1e6};
    const int nranks = sweep->session->job->size;
    struct rg_samples clock = {0};
    int status = rg_samples_add(&clock, (rg_stats_clock_us() - begin_us) /
                                            (1 + compares(sweep)));

    if (status == RG_OK)
        status = rg_samples_merge(&clock, 0, RG_MERGE_RANK0,
                                  sweep->session->comm, nranks);
    for (int i = 0; i <= compares(sweep) && status == RG_OK; i++) {
        status = rg_samples_merge(&row->samples[i], row->merged, RG_MERGE_RANK0,
                                  sweep->session->comm, nranks);
        if (status == RG_OK)
            status = rg_summary_of(&row->samples[i], &row->time[i]);
    }
    row->merged = row->samples[OURS].n;
    if (status == RG_OK)
        row->stop = rg_stop_decide(&rule, &row->time[OURS], clock.us[0]);
    rg_samples_fini(&clock);
    return status;
}

static int measure(struct sweep *sweep, struct row *row)
{
    int status = calibrate(sweep, row);
    double begin;

    if (status == RG_OK)
        status = warm_up(sweep, row);
    begin = rg_stats_clock_us();
    row->stop = RG_STOP_NO;
    while (status == RG_OK && row->stop == RG_STOP_NO) {
        for (int i = 0; i <= compares(sweep) && status == RG_OK; i++)
            status = block(sweep, row, i, BLOCK);
        if (status == RG_OK)
            status = settle(sweep, row, begin);
        rg_watchdog_kick(sweep->session->dog);
    }
    return status;
}

/* All ranks exchange the size with each other: bytes and signals wrong. */
static int check(struct sweep *sweep, struct row *row)
{
    const struct rg_session *session = sweep->session;
    struct row copy = *row;
    struct rg_transfer_report report;
    int64_t mine, *all = calloc((size_t)session->job->size, sizeof *all);
    int status = all ? RG_OK : RG_ENOMEM;

    copy.request.program = RG_TRANSFER_EXCHANGE;
    copy.request.turns = CHECK_TURNS;
    copy.request.adds = 1;
    copy.request.offset = 0;
    if (status == RG_OK)
        status = rg_probes_ask(&sweep->probes, &copy.request);
    if (status == RG_OK)
        status = launch(sweep, &copy, &report);
    if (status == RG_OK) {
        mine = (int64_t)(report.wrong + report.spilled + report.signals);
        mine += report.turns == 0;
        status = rg_comm_gather(session->comm, &mine, sizeof mine, all);
    }
    row->wrong = 0;
    for (int r = 0; r < session->job->size && status == RG_OK; r++)
        row->wrong += all[r];
    free(all);
    return status;
}

/* ---- reporting ---------------------------------------------------------- */

static double row_gbps(const struct row *row)
{
    return (double)(row->request.bytes * row->request.lanes) /
           row->time[OURS].p50_us * 1e-3;
}

static double row_ratio(const struct sweep *sweep, const struct row *row)
{
    return compares(sweep) ? row->time[PEERS].p50_us / row->time[OURS].p50_us
                           : NAN;
}

static void print_columns(struct sweep *sweep)
{
    rg_report_note(
        sweep->report, "%11s %5s %8s %7s %10s %10s %8s %6s %5s %-10s %6s%s",
        "bytes", "lanes", "program", "route", "us", "p99", "GB/s", "+-ci", "n",
        "why", "#wrong", compares(sweep) ? "  peer        us  ratio" : "");
}

static void print_row(struct sweep *sweep, const struct row *row)
{
    const struct rg_summary *time = &row->time[OURS];
    char wrong[24] = "-", peer[64] = "";

    if (row->wrong >= 0)
        snprintf(wrong, sizeof wrong, "%lld", (long long)row->wrong);
    if (compares(sweep))
        snprintf(peer, sizeof peer, "  mpi  %10.3f %6.2f",
                 row->time[PEERS].p50_us, row_ratio(sweep, row));
    if (sweep->session->job->rank != 0)
        return;
    printf("%13llu %5llu %8s %7s %10.3f %10.3f %8.3f %5.1f%% %5d %-10s %6s%s\n",
           (unsigned long long)row->request.bytes,
           (unsigned long long)row->request.lanes,
           program_names[row->request.program], rg_route_name(row->route),
           time->p50_us, time->p99_us, row_gbps(row),
           50 * (time->ci_hi_us - time->ci_lo_us) / time->p50_us, time->n,
           rg_stop_name(row->stop), wrong, peer);
    fflush(stdout);
}

/* A number, or null where there is none. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void write_row(struct sweep *sweep, const struct row *row)
{
    const struct rg_summary *time = &row->time[OURS];
    json_t *peer = compares(sweep) ? json_string("mpi") : json_null();

    rg_report_json(
        sweep->report,
        json_pack(
            "{s:s, s:s, s:I, s:I, s:I, s:i, s:s, s:s, s:i, s:s, s:o, s:o, s:o,"
            " s:o, s:o, s:o, s:I, s:o, s:o, s:o}",
            "kind", "transfer", "program", program_names[row->request.program],
            "bytes", (json_int_t)row->request.bytes, "lanes",
            (json_int_t)row->request.lanes, "turns",
            (json_int_t)row->request.turns, "ranks", sweep->session->job->size,
            "device", sweep->options->device ? "cuda" : "emu", "route",
            rg_route_name(row->route), "samples", time->n, "stop",
            rg_stop_name(row->stop), "p50_us", number(time->p50_us), "p99_us",
            number(time->p99_us), "min_us", number(time->min_us), "ci_lo_us",
            number(time->ci_lo_us), "ci_hi_us", number(time->ci_hi_us), "gbps",
            number(row_gbps(row)), "wrong", (json_int_t)row->wrong, "peer",
            peer, "peer_p50_us",
            number(compares(sweep) ? row->time[PEERS].p50_us : NAN), "ratio",
            number(row_ratio(sweep, row))));
}

/* ---- the sweep ---------------------------------------------------------- */

static int has_room(const struct sweep *sweep,
                    const struct rg_transfer_request *request)
{
    return rg_transfer_landing_bytes(request) <= sweep->landing;
}

static int sweep_row(struct sweep *sweep, int kind, int lanes, uint64_t bytes)
{
    struct row row = {.wrong = -1,
                      .request = {.program = (uint64_t)kind,
                                  .lanes = (uint64_t)lanes,
                                  .bytes = bytes,
                                  .peer = (uint64_t)sweep->options->peer}};
    int status = RG_OK;

    if (!has_room(sweep, &row.request)) {
        sweep->no_room++;
        rg_verdict_skip(&sweep->verdict);
        return RG_OK;
    }
    if (sweep->options->check)
        status = check(sweep, &row);
    if (status == RG_OK)
        status = measure(sweep, &row);
    if (status == RG_OK) {
        print_row(sweep, &row);
        write_row(sweep, &row);
        rg_verdict_row(&sweep->verdict, row.wrong, row_ratio(sweep, &row),
                       sweep->options->min_ratio);
    }
    for (int i = 0; i < SUBJECTS; i++)
        rg_samples_fini(&row.samples[i]);
    return status;
}

static int sweep_sizes(struct sweep *sweep, int kind, int lanes)
{
    const struct transfer_options *options = sweep->options;
    uint64_t bytes = options->first;
    int status = RG_OK;

    while (status == RG_OK && bytes <= options->last) {
        status = sweep_row(sweep, kind, lanes, bytes);
        bytes = bytes ? bytes * (uint64_t)options->factor : 1;
    }
    return status;
}

static int sweep_all(struct sweep *sweep)
{
    const struct transfer_options *options = sweep->options;
    int status = RG_OK;

    print_columns(sweep);
    for (int kind = 0; kind < N_PROGRAMS; kind++)
        for (int i = 0; i < N_LANE_COUNTS && status == RG_OK; i++)
            if ((options->programs >> kind & 1) && (options->lanes >> i & 1))
                status = sweep_sizes(sweep, kind, lane_counts[i]);
    if (sweep->no_room)
        rg_report_note(sweep->report,
                       "%d rows are left out: a rank's part of the workspace "
                       "has %llu bytes (RG_REGION_BYTES)",
                       sweep->no_room, (unsigned long long)sweep->landing);
    return status;
}

static void print_header(struct sweep *sweep)
{
    const struct rg_report_env env = rg_session_env(
        sweep->session, sweep->options->command, RG_COLL_transfer);

    rg_report_env(sweep->report, &env);
}

static int run(struct sweep *sweep, const struct rg_job *job)
{
    int status = create(sweep, job);

    if (status == RG_OK) {
        print_header(sweep);
        status = sweep_all(sweep);
    }
    if (status != RG_OK) {
        /* What kept the session from being made has been said, and what is
         * not to be had here. */
        if (sweep->session && !rg_status_is_told(status) &&
            status != RG_ENOTSUP)
            rg_say(program.name, "rank %d: %s", job->rank,
                   rg_status_string(status));
        return rg_exit_of_status(status);
    }
    status = rg_verdict_reduce(&sweep->verdict, sweep->session->comm);
    rg_report_verdict(sweep->report, &sweep->verdict);
    return rg_report_code(sweep->report,
                          status ? rg_exit_of_status(status)
                                 : rg_verdict_exit(&sweep->verdict));
}

/* What can be said once the ranks are known; rank 0 says it. */
static int look_at_ranks(const struct rg_job *job,
                         const struct transfer_options *options)
{
    if (options->peer < job->size)
        return RG_OK;
    if (job->rank == 0)
        rg_say(program.name, "there is no rank %d to put to: %d of %d ranks",
               options->peer, job->size, options->peer + 1);
    return RG_EINVAL;
}

static int rank_main(const struct rg_job *job, void *arg)
{
    struct sweep sweep = {.options = arg};
    int status = look_at_ranks(job, sweep.options);
    int code;

    if (status == RG_OK)
        status = rg_report_create(program.name, sweep.options->json, job->rank,
                                  &sweep.report);
    code = rg_job_agree(job, status == RG_OK ? 0 : RG_EXIT_USAGE);
    if (code == 0)
        code = run(&sweep, job);
    destroy(&sweep);
    rg_report_destroy(sweep.report);
    return code < 0 ? RG_EXIT_ENVIRONMENT : code;
}

static enum rg_options_result
settle_options(const struct transfer_options *options)
{
    if (options->first > options->last)
        return rg_options_refuse(&program, "-b is larger than -e");
    if (options->min_ratio > 0 && !options->compare)
        return rg_options_refuse(&program, "--min-ratio needs --compare");
    if (options->compare && options->device == RG_DEVICE_CUDA)
        return rg_options_refuse(&program,
                                 "--compare mpi does not run on cuda");
    return RG_OPTIONS_RUN;
}

int main(int argc, char **argv)
{
    struct transfer_options options = {.first = 8,
                                       .last = 4 << 20,
                                       .factor = 8,
                                       .lanes = 1 | 1 << 2 | 1 << 5,
                                       .programs = 3,
                                       .peer = 1,
                                       .samples = 1000,
                                       .warmup = 3,
                                       .seconds = 1,
                                       .timeout_s = 300};
    enum rg_options_result result =
        rg_options_parse(&program, argc, argv, &options);

    if (result == RG_OPTIONS_RUN)
        result = settle_options(&options);
    if (result != RG_OPTIONS_RUN)
        return rg_options_exit(result);
    rg_options_command(program.name, argc, argv, options.command,
                       sizeof options.command);
    return rg_job_run(&options.launch, rank_main, &options);
}
