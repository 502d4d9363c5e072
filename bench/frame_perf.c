/*
 * What being recoverable costs an invocation: all-reduce as it is, and bare
 * (rg_all_reduce_bare), captured in two graphs that are replayed in turn. The
 * figure is the difference of neighbours, so what drifts between them cancels.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algos/algos.h"
#include "harness/options.h"
#include "harness/output.h"
#include "harness/report.h"
#include "harness/session.h"
#include "harness/stats.h"
#include "harness/verdict.h"

enum { FULL, BARE, KINDS };

/* Largest buffers that rg_all_reduce_bare() serves. */
enum { MOST_EMU = 8, MOST_CUDA = 8192 };

struct frame_options {
    struct rg_launch_options launch;
    int device;
    uint64_t bytes;
    int graph;
    int pairs;
    int warmup;
    int timeout_s;
    double gate_ns;
    const char *json;
    char command[512];
};

#define AT(field) offsetof(struct frame_options, field)

static const struct rg_option table[] = {
    {RG_OPTION_SIZE, 'b', "bytes", AT(bytes), NULL, 0, 0, "SIZE",
     "buffer of a rank, at most 8 on emu, 8K on cuda (8)"},
    {RG_OPTION_INT, 'G', "graph", AT(graph), NULL, 1, 1000, "N",
     "invocations in a graph (20)"},
    {RG_OPTION_INT, 'n', "iters", AT(pairs), NULL, 6, 1e7, "N",
     "pairs of replays (2000)"},
    {RG_OPTION_INT, 'w', "warmup", AT(warmup), NULL, 0, 1e6, "N",
     "pairs before the first (50)"},
    {RG_OPTION_INT, 'T', "timeout", AT(timeout_s), NULL, 0, 1e6, "SECONDS",
     "end when there is no progress for so long (300; 0: never)"},
    {RG_OPTION_TEXT, 'J', "json", AT(json), NULL, 0, 0, "FILE",
     "write JSON lines"},
    {RG_OPTION_CHOICE, 0, "device", AT(device), "|emu|cuda", 0, 0, "DEVICE",
     "where ranks run (emu)"},
    {RG_OPTION_REAL, 0, "gate", AT(gate_ns), NULL, 0, 1e9, "NS",
     "fail (exit 5) when the difference is larger"},
    RG_OPTIONS_LAUNCH(struct frame_options),
};

static const struct rg_program program = {
    .name = "frame_perf",
    .summary = "Measures what being recoverable costs an invocation.",
    .options = table,
    .noptions = sizeof table / sizeof *table,
    .notes = "The difference is the median over pairs of replays, with its 95 "
             "% interval.\n",
};

/* One rank's measurement. */
struct frame {
    const struct frame_options *options;
    struct rg_session *session;
    struct rg_report *report;
    size_t count;
    void *send, *recv;
    float *values; /* of the host */
    struct rg_graph *graphs[KINDS];
    struct rg_event *begin, *end;
    struct rg_samples times[KINDS];
    struct rg_samples difference;
};

/* ---- set-up ------------------------------------------------------------- */

static int launch(struct frame *frame, int kind)
{
    const struct rg_session *session = frame->session;

    return kind == BARE
               ? rg_all_reduce_bare(frame->send, frame->recv, frame->count,
                                    RG_f32, session->comm, session->stream)
               : rg_all_reduce(frame->send, frame->recv, frame->count, RG_f32,
                               RG_sum, session->comm, session->stream);
}

static int capture(struct frame *frame, int kind)
{
    struct rg_stream *stream = frame->session->stream;
    int status = rg_graph_begin(stream);

    for (int i = 0; i < frame->options->graph && status == RG_OK; i++)
        status = launch(frame, kind);
    return status ? status : rg_graph_end(stream, &frame->graphs[kind]);
}

static int fill(struct frame *frame)
{
    const size_t bytes = frame->count * sizeof *frame->values;

    for (size_t i = 0; i < frame->count; i++)
        frame->values[i] = (float)(frame->session->job->rank + 1);
    return rg_memcpy(frame->session->context, frame->send, frame->values,
                     bytes);
}

static int create(struct frame *frame, const struct rg_job *job)
{
    const struct frame_options *options = frame->options;
    const struct rg_session_config config = {
        .program = program.name,
        .job = job,
        .algos = rg_algos,
        .device = (enum rg_device_kind)options->device,
        .backend = RG_BACKEND_NEW,
        .timeout_s = options->timeout_s};
    struct rg_context *context;
    int status = rg_session_create(&config, &frame->session);

    if (status)
        return status;
    context = frame->session->context;
    frame->count = options->bytes / sizeof *frame->values;
    frame->values = calloc(frame->count, sizeof *frame->values);
    if (!frame->values)
        return RG_ENOMEM;
    status = rg_malloc(context, options->bytes, &frame->send);
    if (status == RG_OK)
        status = rg_malloc(context, options->bytes, &frame->recv);
    if (status == RG_OK)
        status = rg_event_create(context, &frame->begin);
    if (status == RG_OK)
        status = rg_event_create(context, &frame->end);
    if (status == RG_OK)
        status = fill(frame);
    for (int kind = 0; kind < KINDS && status == RG_OK; kind++)
        status = capture(frame, kind);
    return status;
}

static void destroy(struct frame *frame)
{
    struct rg_session *session = frame->session;

    for (int kind = 0; kind < KINDS; kind++) {
        rg_graph_destroy(frame->graphs[kind]);
        rg_samples_fini(&frame->times[kind]);
    }
    rg_samples_fini(&frame->difference);
    if (frame->begin)
        rg_event_destroy(frame->begin);
    if (frame->end)
        rg_event_destroy(frame->end);
    if (session) {
        rg_free(session->context, frame->send);
        rg_free(session->context, frame->recv);
    }
    free(frame->values);
    rg_session_destroy(session);
}

/* ---- measuring ---------------------------------------------------------- */

/* Microseconds an invocation of one replay. */
static int replay(struct frame *frame, int kind, double *us_out)
{
    struct rg_stream *stream = frame->session->stream;
    int status = rg_event_record(frame->begin, stream);

    if (status == RG_OK)
        status = rg_graph_launch(frame->graphs[kind], stream);
    if (status == RG_OK)
        status = rg_event_record(frame->end, stream);
    if (status == RG_OK)
        status = rg_event_synchronize(frame->end);
    if (status == RG_OK)
        status = rg_event_elapsed_us(frame->begin, frame->end, us_out);
    *us_out /= frame->options->graph;
    return status;
}

/* Both, each first in every other pair. */
static int pair(struct frame *frame, int turn)
{
    const int first = turn & 1;
    double us[KINDS] = {0};
    int status = replay(frame, first, &us[first]);

    if (status == RG_OK)
        status = replay(frame, !first, &us[!first]);
    for (int kind = 0; kind < KINDS && status == RG_OK; kind++)
        status = rg_samples_add(&frame->times[kind], us[kind]);
    if (status == RG_OK)
        status = rg_samples_add(&frame->difference, us[FULL] - us[BARE]);
    return status;
}

/* Inputs are 1, 2, .., n: the sum is what both must have left. */
static int check(struct frame *frame)
{
    const int n = frame->session->job->size;

    if (rg_memcpy(frame->session->context, frame->values, frame->recv,
                  frame->count * sizeof *frame->values))
        return RG_ESYSTEM;
    for (size_t i = 0; i < frame->count; i++)
        if (frame->values[i] != (float)(n * (n + 1)) / 2)
            return RG_EXIT_WRONG;
    return RG_OK;
}

static void restart(struct frame *frame)
{
    for (int kind = 0; kind < KINDS; kind++)
        rg_samples_fini(&frame->times[kind]);
    rg_samples_fini(&frame->difference);
}

static int measure(struct frame *frame)
{
    struct rg_session *session = frame->session;
    const struct frame_options *options = frame->options;
    int status = rg_comm_gather(session->comm, NULL, 0, NULL);

    for (int i = 0; i < options->warmup && status == RG_OK; i++)
        status = pair(frame, i);
    restart(frame);
    for (int i = 0; i < options->pairs && status == RG_OK; i++) {
        status = pair(frame, i);
        rg_watchdog_kick(session->dog);
    }
    for (int kind = 0; kind < KINDS && status == RG_OK; kind++)
        status = rg_samples_merge(&frame->times[kind], 0, RG_MERGE_AVG,
                                  session->comm, session->job->size);
    if (status == RG_OK)
        status = rg_samples_merge(&frame->difference, 0, RG_MERGE_AVG,
                                  session->comm, session->job->size);
    return status ? status : check(frame);
}

/* ---- the figure --------------------------------------------------------- */

static int report(struct frame *frame, struct rg_verdict *verdict)
{
    const struct frame_options *options = frame->options;
    struct rg_summary full, bare, difference;
    double ns, lo, hi;

    if (rg_summary_of(&frame->times[FULL], &full) ||
        rg_summary_of(&frame->times[BARE], &bare) ||
        rg_summary_of(&frame->difference, &difference))
        return RG_ENOMEM;
    ns = difference.p50_us * 1e3;
    lo = difference.ci_lo_us * 1e3;
    hi = difference.ci_hi_us * 1e3;
    rg_report_note(frame->report,
                   "%s, %d ranks, %llu bytes: %.3f us, bare %.3f us, "
                   "difference %.1f ns [%.1f, %.1f]",
                   options->device ? "cuda" : "emu", frame->session->job->size,
                   (unsigned long long)options->bytes, full.p50_us, bare.p50_us,
                   ns, lo, hi);
    rg_report_json(
        frame->report,
        json_pack("{s:s, s:s, s:i, s:I, s:i, s:i, s:f, s:f, s:f, s:f, s:f}",
                  "kind", "frame", "device", options->device ? "cuda" : "emu",
                  "ranks", frame->session->job->size, "bytes",
                  (json_int_t)options->bytes, "graph", options->graph,
                  "samples", difference.n, "p50_us", full.p50_us, "bare_p50_us",
                  bare.p50_us, "difference_ns", ns, "ci_lo_ns", lo, "ci_hi_ns",
                  hi));
    if (options->gate_ns > 0 && ns > options->gate_ns)
        rg_verdict_fail(verdict, RG_EXIT_GATE);
    else
        rg_verdict_pass(verdict);
    return RG_OK;
}

static void print_header(struct frame *frame)
{
    const struct rg_report_env env = rg_session_env(
        frame->session, frame->options->command, RG_COLL_all_reduce);

    rg_report_env(frame->report, &env);
}

static int run(struct frame *frame, const struct rg_job *job)
{
    struct rg_verdict verdict = {0};
    int status = create(frame, job);

    if (status == RG_OK) {
        print_header(frame);
        status = measure(frame);
    }
    if (status == RG_EXIT_WRONG)
        rg_verdict_fail(&verdict, RG_EXIT_WRONG);
    else if (status == RG_OK)
        status = report(frame, &verdict);
    if (status < 0) {
        /* What kept the session from being made has been said. */
        if (frame->session && !rg_status_is_told(status))
            rg_say(program.name, "rank %d: %s", job->rank,
                   rg_status_string(status));
        return rg_exit_of_status(status);
    }
    status = rg_verdict_reduce(&verdict, frame->session->comm);
    rg_report_verdict(frame->report, &verdict);
    return rg_report_code(frame->report, status ? rg_exit_of_status(status)
                                                : rg_verdict_exit(&verdict));
}

static int rank_main(const struct rg_job *job, void *arg)
{
    struct frame frame = {.options = arg};
    int status = rg_report_create(program.name, frame.options->json, job->rank,
                                  &frame.report);
    int code = rg_job_agree(job, status == RG_OK ? 0 : RG_EXIT_USAGE);

    if (code == 0)
        code = run(&frame, job);
    destroy(&frame);
    rg_report_destroy(frame.report);
    return code < 0 ? RG_EXIT_ENVIRONMENT : code;
}

static enum rg_options_result settle(const struct frame_options *options)
{
    const uint64_t most =
        options->device == RG_DEVICE_CUDA ? MOST_CUDA : MOST_EMU;

    if (options->bytes >= sizeof(float) && options->bytes <= most &&
        options->bytes % sizeof(float) == 0)
        return RG_OPTIONS_RUN;
    return rg_options_refuse(
        &program, "-b wants 4 to %d bytes on %s, a multiple of 4", (int)most,
        options->device == RG_DEVICE_CUDA ? "cuda" : "emu");
}

int main(int argc, char **argv)
{
    struct frame_options options = {
        .bytes = 8, .graph = 20, .pairs = 2000, .warmup = 50, .timeout_s = 300};
    enum rg_options_result result =
        rg_options_parse(&program, argc, argv, &options);

    if (result == RG_OPTIONS_RUN)
        result = settle(&options);
    if (result != RG_OPTIONS_RUN)
        return rg_options_exit(result);
    rg_options_command(program.name, argc, argv, options.command,
                       sizeof options.command);
    return rg_job_run(&options.launch, rank_main, &options);
}
