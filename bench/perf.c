#include "bench/perf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algos/algos.h"
#include "bench/flags.h"
#include "bench/guideline_rows.h"
#include "harness/measure.h"
#include "harness/output.h"
#include "harness/peer.h"
#include "harness/preference.h"
#include "harness/report.h"
#include "harness/session.h"
#include "harness/survivors.h"
#include "harness/verdict.h"
#include "runtime/algo.h"
#include "runtime/policy/table.h"

enum {
    SUBJECTS_MAX = 1 + RG_PEERS_MAX,
    /* A cold case on CUDA rotates over more than any L2 cache holds. */
    COLD_BYTES_CUDA = 256 << 20,
    MIN_SAMPLES = 20
};
#define MEMORY_EMU  (1ull << 30)
#define MEMORY_CUDA (24ull << 30)

/* What all ranks of the process read. */
struct shared {
    const struct perf_collective *collective;
    struct perf_options options;
    char *policy;      /* text of --policy, or null */
    char command[512]; /* for the header */
};

/* A rank's sweep. */
struct sweep {
    const struct shared *shared;
    const struct perf_options *options;
    struct rg_session *session;
    struct rg_report *report;
    struct rg_measure *measure;
    struct rg_peer peers[RG_PEERS_MAX];
    int npeers;
    struct rg_subject subjects[SUBJECTS_MAX];
    struct rg_view_info view;
    struct rg_verdict verdict;
    struct guideline_rows rows; /* of --guidelines */
    int selections;             /* rows of one are compared with each other */
    int cases; /* of the whole sweep, for the estimate of the rest */
    int done;
    double begin_us;
};

static void say_progress(void *arg, const struct rg_case *what, int samples)
{
    struct sweep *sweep = arg;
    const double spent = (rg_stats_clock_us() - sweep->begin_us) * 1e-6;
    char text[160], size[32], rest[32] = "";

    if (sweep->done > 0)
        snprintf(rest, sizeof rest, ", about %.0f s left",
                 spent / sweep->done * (sweep->cases - sweep->done));
    rg_options_size_text(what->count * rg_dtype_size(what->dtype), size,
                         sizeof size);
    snprintf(text, sizeof text, "%d of %d: %s %s %s %s, %d samples%s",
             sweep->done + 1, sweep->cases, size, rg_dtype_name(what->dtype),
             rg_op_name(what->op), what->inplace ? "in place" : "out of place",
             samples, rest);
    rg_report_progress(sweep->report, text);
}

/* ---- set-up ------------------------------------------------------------- */

static int create_peers(struct sweep *sweep)
{
    const struct rg_session *session = sweep->session;
    int status = RG_OK;

    for (int i = 0; status == RG_OK && i < RG_PEERS_MAX; i++) {
        const struct rg_peer_config config = {session->job, session->context,
                                              session->comm, rg_peer_name(i)};

        if (!(sweep->options->compare & 1u << i))
            continue;
        status =
            rg_peer_create(&config, (enum rg_device_kind)sweep->options->device,
                           &sweep->peers[sweep->npeers]);
        if (status == RG_OK) {
            sweep->subjects[1 + sweep->npeers] =
                sweep->peers[sweep->npeers].subject;
            sweep->npeers++;
        }
    }
    return status;
}

/* Memory from a peer that wants its own serves everybody. */
static const struct rg_buffer_source *buffer_source(const struct sweep *sweep)
{
    for (int i = 0; i < sweep->npeers; i++)
        if (sweep->peers[i].source.alloc)
            return &sweep->peers[i].source;
    return NULL;
}

static int create_measure(struct sweep *sweep)
{
    const struct perf_options *options = sweep->options;
    const struct rg_session *session = sweep->session;
    const int cuda = options->device == RG_DEVICE_CUDA;
    const struct rg_measure_config config = {
        .context = session->context,
        .comm = session->comm,
        .dog = session->dog,
        .progress = say_progress,
        .progress_arg = sweep,
        .source = buffer_source(sweep),
        .device = (enum rg_device_kind)options->device,
        .rank = sweep->view.rank,
        .nranks = sweep->view.nranks,
        .warmup = options->warmup,
        .graph = options->graph,
        .check_every = options->check,
        .latency = options->mode == PERF_LATENCY,
        .merge = (enum rg_merge)options->merge,
        .cache = (enum rg_cache)options->cache,
        .cache_cutoff = options->cache_cutoff,
        .cold_bytes =
            cuda ? COLD_BYTES_CUDA : rg_topo_cache_bytes(session->topo) / 2 * 3,
        .memory_bytes = cuda ? MEMORY_CUDA : MEMORY_EMU,
        .largest_bytes = options->max_bytes,
        .stop = {.width = 0.05,
                 .min_samples = MIN_SAMPLES,
                 .max_samples = options->iterations,
                 .max_us = options->max_seconds * 1e6},
    };

    return rg_measure_create(&config, &sweep->measure);
}

static void print_header(struct sweep *sweep)
{
    struct rg_report_env env =
        rg_session_env(sweep->session, sweep->shared->command,
                       sweep->shared->collective->collective);

    env.backend = sweep->view.backend;
    env.nranks = sweep->view.nranks;
    env.policy_hash = sweep->view.policy_hash;
    rg_report_env(sweep->report, &env);
    rg_report_columns(sweep->report, sweep->npeers > 0);
}

static int create_sweep(struct sweep *sweep, const struct rg_job *job)
{
    const struct rg_session_config config = {
        .program = sweep->shared->collective->program,
        .job = job,
        .algos = rg_algos,
        .device = (enum rg_device_kind)sweep->options->device,
        .backend = rg_preference((enum rg_backend)sweep->options->backend),
        .timeout_s = sweep->options->timeout_s,
        .policy = sweep->shared->policy,
    };
    int status = rg_session_create(&config, &sweep->session);

    if (status == RG_OK)
        status = rg_comm_view(sweep->session->comm, &sweep->view);
    if (status != RG_OK)
        return status;
    sweep->subjects[0] = (struct rg_subject){
        .name = "regroup",
        .stream = sweep->session->stream,
        .all_reduce = sweep->shared->collective->run,
        .arg = sweep->session,
    };
    status = create_peers(sweep);
    if (status == RG_OK)
        status = create_measure(sweep);
    return status;
}

static void destroy_sweep(struct sweep *sweep)
{
    rg_measure_destroy(sweep->measure);
    for (int i = sweep->npeers - 1; i >= 0; i--)
        rg_peer_destroy(&sweep->peers[i]);
    rg_session_destroy(sweep->session);
    rg_report_destroy(sweep->report);
    guideline_rows_fini(&sweep->rows);
}

/* ---- rows --------------------------------------------------------------- */

/* One measured case: a row for each peer, or one alone. */
struct measured {
    struct rg_result results[SUBJECTS_MAX];
    struct rg_case_report report;
};

static struct rg_row row_of(const struct sweep *sweep,
                            const struct rg_case *what,
                            const struct measured *measured, int peer)
{
    struct rg_row row = {
        .collective = sweep->shared->collective->collective,
        .bytes = what->count * rg_dtype_size(what->dtype),
        .count = what->count,
        .dtype = what->dtype,
        .op = what->op,
        .root = -1,
        .inplace = what->inplace,
        .ranks = sweep->view.nranks,
        .device = (enum rg_device_kind)sweep->options->device,
        .backend = sweep->view.backend,
        .mode = sweep->options->mode == PERF_LATENCY ? "latency" : "throughput",
        .graph = sweep->options->graph,
        .run = measured->report.run,
        .policy_hash = sweep->view.policy_hash,
        .time = measured->results[0].time,
        .stop = measured->results[0].stop,
        .wrong = measured->report.wrong,
        .cache = measured->report.cache,
        .peer_p50_us = NAN,
    };

    if (peer > 0) {
        row.peer = sweep->subjects[peer].name;
        row.peer_p50_us = measured->results[peer].time.p50_us;
    }
    return row;
}

static int has_shrunk(const struct sweep *sweep)
{
    struct rg_view_info view;

    return rg_comm_view(sweep->session->comm, &view) == RG_OK &&
           view.nranks < sweep->view.nranks;
}

static int measure_one(struct sweep *sweep, const struct rg_case *what,
                       struct measured *measured)
{
    const struct rg_finding *finding = &measured->report.finding;
    char text[256];
    int status;

    status = rg_measure_case(sweep->measure, what, sweep->subjects,
                             1 + sweep->npeers, measured->results,
                             &measured->report);
    sweep->done++;
    /* Of fewer ranks every sum is another, and none a figure of this job. */
    if (has_shrunk(sweep))
        return RG_EFAILED;
    if (status == RG_OK && finding->wrong + finding->guards > 0)
        fprintf(stderr, "rank %d: %s\n", sweep->view.rank,
                rg_finding_text(finding, text, sizeof text));
    return status;
}

/* For --guidelines, each measurement once. */
static int keep_rows(struct sweep *sweep, const struct rg_row *rows, int peer)
{
    int status = RG_OK;

    for (int i = 0; sweep->options->guidelines && peer <= 1 && i < 2; i++)
        if (status == RG_OK)
            status =
                guideline_rows_add(&sweep->rows, sweep->selections, &rows[i]);
    return status;
}

static int measure_rows(struct sweep *sweep, struct rg_case what)
{
    struct measured out, in;
    int status;

    what.inplace = 0;
    status = measure_one(sweep, &what, &out);
    what.inplace = 1;
    if (status == RG_OK)
        status = measure_one(sweep, &what, &in);
    if (status != RG_OK)
        return status;
    for (int peer = sweep->npeers > 0; peer <= sweep->npeers; peer++) {
        struct rg_row rows[2];

        what.inplace = 0;
        rows[0] = row_of(sweep, &what, &out, peer);
        what.inplace = 1;
        rows[1] = row_of(sweep, &what, &in, peer);
        rg_report_rows(sweep->report, &rows[0], &rows[1]);
        rg_verdict_row(&sweep->verdict, rows[0].wrong, rg_row_ratio(&rows[0]),
                       sweep->options->min_ratio);
        rg_verdict_row(&sweep->verdict, rows[1].wrong, rg_row_ratio(&rows[1]),
                       sweep->options->min_ratio);
        status = keep_rows(sweep, rows, peer);
        if (status != RG_OK)
            return status;
    }
    return RG_OK;
}

/* ---- the sweep ---------------------------------------------------------- */

static int sweep_sizes(struct sweep *sweep, enum rg_dtype dtype, enum rg_op op)
{
    const struct perf_options *options = sweep->options;
    int status = RG_OK;

    for (uint64_t bytes = options->min_bytes;
         status == RG_OK && bytes <= options->max_bytes;
         bytes = perf_options_next(options, bytes)) {
        const struct rg_case what = {bytes / rg_dtype_size(dtype), dtype, op,
                                     0};

        status = measure_rows(sweep, what);
    }
    return status;
}

static int sweep_types(struct sweep *sweep)
{
    int status = RG_OK;

    for (int d = 0; d < RG_DTYPE_COUNT; d++)
        for (int o = 0; o < RG_OP_COUNT; o++)
            if (status == RG_OK && sweep->options->dtypes & 1u << d &&
                sweep->options->ops & 1u << o &&
                rg_op_fits((enum rg_op)o, (enum rg_dtype)d))
                status = sweep_sizes(sweep, (enum rg_dtype)d, (enum rg_op)o);
    return status;
}

static int runs_here(const struct sweep *sweep, const struct rg_algo *algo)
{
    struct rg_comm_limits limits;

    return algo->collective == sweep->shared->collective->collective &&
           rg_comm_limits(sweep->session->comm, algo, &limits) == RG_OK &&
           limits.max_bytes > 0;
}

static int is_all(const char *algo)
{
    return algo && strcmp(algo, "all") == 0;
}

static void count_cases(struct sweep *sweep)
{
    const struct perf_options *options = sweep->options;
    int algos = 0;

    for (uint64_t bytes = options->min_bytes; bytes <= options->max_bytes;
         bytes = perf_options_next(options, bytes))
        sweep->cases += 2;
    sweep->cases *=
        __builtin_popcount(options->dtypes) * __builtin_popcount(options->ops);
    for (int i = 0; rg_algos[i]; i++)
        algos += runs_here(sweep, rg_algos[i]);
    if (is_all(options->algo))
        sweep->cases *= algos;
    sweep->begin_us = rg_stats_clock_us();
}

/* The selection in force from here on. */
static int select_policy(struct sweep *sweep, const char *text)
{
    const int status = rg_comm_set_policy(sweep->session->comm, text);

    sweep->selections++;
    return status == RG_OK ? rg_comm_view(sweep->session->comm, &sweep->view)
                           : status;
}

static int sweep_algorithm(struct sweep *sweep, const char *name)
{
    char text[128];
    int status;

    snprintf(text, sizeof text, "%s=%s",
             rg_collective_name(sweep->shared->collective->collective), name);
    status = select_policy(sweep, text);
    return status == RG_OK ? sweep_types(sweep) : status;
}

static int sweep_algorithms(struct sweep *sweep)
{
    int status = RG_OK;

    for (int i = 0; status == RG_OK && rg_algos[i]; i++) {
        if (runs_here(sweep, rg_algos[i]))
            status = sweep_algorithm(sweep, rg_algos[i]->name);
        else if (rg_algos[i]->collective ==
                 sweep->shared->collective->collective)
            rg_verdict_skip(&sweep->verdict);
    }
    return status;
}

static int run_sweep(struct sweep *sweep)
{
    const char *algo = sweep->options->algo;

    print_header(sweep);
    count_cases(sweep);
    if (is_all(algo))
        return sweep_algorithms(sweep);
    return algo ? sweep_algorithm(sweep, algo) : sweep_types(sweep);
}

static void judge_guidelines(struct sweep *sweep)
{
    const struct perf_options *options = sweep->options;
    int violations;

    if (!options->guidelines)
        return;
    violations = guideline_rows_report(&sweep->rows, sweep->report);
    if (options->max_violations < 0)
        return;
    if (violations <= options->max_violations) {
        rg_verdict_pass(&sweep->verdict);
        return;
    }
    rg_report_note(sweep->report, "gate missed: %d violations, at most %d",
                   violations, options->max_violations);
    rg_verdict_fail(&sweep->verdict, RG_EXIT_GATE);
}

/* ---- ranks -------------------------------------------------------------- */

/* Why a sweep ended; of a death the lowest rank left speaks for the job. */
static int cause_of(struct sweep *sweep, int status)
{
    char text[80];

    return rg_survivors(sweep->session->comm, sweep->view.nranks, 1,
                        sweep->report, text, sizeof text)
               ? RG_EFAILED
               : status;
}

static int rank_main(const struct rg_job *job, void *arg)
{
    const struct shared *shared = arg;
    struct sweep sweep = {.shared = shared, .options = &shared->options};
    int status =
        rg_report_create(shared->collective->program, shared->options.json,
                         job->rank, &sweep.report);
    int code = rg_job_agree(job, status == RG_OK ? 0 : RG_EXIT_USAGE);

    if (code != 0)
        goto done;
    status = create_sweep(&sweep, job);
    if (status == RG_OK) {
        status = run_sweep(&sweep);
        if (status != RG_OK) {
            if (!rg_status_is_told(status)) {
                status = cause_of(&sweep, status);
                rg_say(shared->collective->program, "rank %d: %s", job->rank,
                       rg_status_string(status));
            }
            rg_verdict_fail(&sweep.verdict, rg_exit_of_status(status));
        } else {
            judge_guidelines(&sweep);
            status = rg_verdict_reduce(&sweep.verdict, sweep.session->comm);
        }
        rg_report_verdict(sweep.report, &sweep.verdict);
    }
    code = status == RG_OK ? rg_verdict_exit(&sweep.verdict)
                           : rg_exit_of_status(status);
    code = rg_report_code(sweep.report, code);
done:
    destroy_sweep(&sweep);
    return code < 0 ? RG_EXIT_ENVIRONMENT : code;
}

/* ---- main --------------------------------------------------------------- */

/* "+1ch" to "+64ch", or nothing. */
static int is_channels(const char *text)
{
    int channels, end = 0;

    return !*text ||
           (text[1] >= '1' && text[1] <= '9' &&
            sscanf(text, "+%2dch%n", &channels, &end) == 1 && end > 0 &&
            !text[end] && channels <= RG_POLICY_MAX_CHANNELS);
}

/* 1 for "all", or a name of the table with an optional "+Nch". */
static int knows_algorithm(enum rg_collective collective, const char *name)
{
    const size_t length = strcspn(name, "+");

    if (is_all(name))
        return 1;
    if (!is_channels(name + length))
        return 0;
    for (int i = 0; rg_algos[i]; i++)
        if (rg_algos[i]->collective == collective &&
            strlen(rg_algos[i]->name) == length &&
            memcmp(rg_algos[i]->name, name, length) == 0)
            return 1;
    return 0;
}

/* Keeps the text of a table that has been found to be sound. */
static enum rg_options_result read_policy(const struct rg_program *program,
                                          const char *path, char **text_out)
{
    struct rg_policy_error error = {0, "out of memory"};
    struct rg_policy_table *table;
    char line[512];
    size_t bytes;
    int status = rg_policy_read(path, text_out, &bytes, &error);

    if (status == RG_OK)
        status = rg_policy_parse(*text_out, bytes, rg_algos, &table, &error);
    if (status == RG_OK) {
        rg_policy_destroy(table);
        return RG_OPTIONS_RUN;
    }
    rg_policy_error_print(&error, path, line, sizeof line);
    return rg_options_refuse(program, "%s", line);
}

static enum rg_options_result parse(struct shared *shared, int argc,
                                    char **argv)
{
    const struct perf_collective *collective = shared->collective;
    const struct rg_program program = {collective->program, collective->summary,
                                       NULL, 0, NULL};
    struct perf_options *options = &shared->options;
    enum rg_options_result result = perf_options_parse(
        collective->program, collective->summary, argc, argv, options);

    if (result != RG_OPTIONS_RUN)
        return result;
    if (options->algo &&
        !knows_algorithm(collective->collective, options->algo))
        return rg_options_refuse(&program, "unknown algorithm '%s'",
                                 options->algo);
    if (rg_output_is_same(options->json, options->policy))
        return rg_options_refuse(&program, "-J would overwrite --policy");
    return options->policy
               ? read_policy(&program, options->policy, &shared->policy)
               : RG_OPTIONS_RUN;
}

int perf_main(const struct perf_collective *collective, int argc, char **argv)
{
    struct shared shared = {.collective = collective};
    const enum rg_options_result result = parse(&shared, argc, argv);
    int code;

    if (result != RG_OPTIONS_RUN)
        return rg_options_exit(result);
    rg_options_command(collective->program, argc, argv, shared.command,
                       sizeof shared.command);
    code = rg_job_run(&shared.options.launch, rank_main, &shared);
    free(shared.policy);
    return code;
}
