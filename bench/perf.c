#include "bench/perf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algos/algos.h"
#include "bench/flags.h"
#include "bench/guideline_rows.h"
#include "harness/call.h"
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
    const char *program;
    enum rg_collective collective;
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
    int sweeps; /* of sizes; rows of one are compared with each other */
    int cases;  /* of the whole sweep, for the estimate of the rest */
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
    rg_options_size_text(rg_case_bytes(what, sweep->view.nranks), size,
                         sizeof size);
    snprintf(text, sizeof text, "%d of %d: %s %s %s %s, %d samples%s",
             sweep->done + 1, sweep->cases, size, rg_dtype_name(what->dtype),
             rg_collective_reduces(what->collective)
                 ? rg_op_name(what->op)
                 : rg_collective_name(what->collective),
             what->inplace ? "in place" : "out of place", samples, rest);
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
    struct rg_report_env env = rg_session_env(
        sweep->session, sweep->shared->command, sweep->shared->collective);

    env.backend = sweep->view.backend;
    env.nranks = sweep->view.nranks;
    env.policy_hash = sweep->view.policy_hash;
    rg_report_env(sweep->report, &env);
    rg_report_columns(sweep->report, sweep->npeers > 0);
}

static int run_own(void *arg, const struct rg_call *call)
{
    const struct rg_session *session = arg;

    return rg_call_launch(call, session->comm, session->stream);
}

/* What this group cannot do: one line for all, from rank 0. */
static int check_group(const struct sweep *sweep)
{
    const int root = sweep->options->root;
    const int none =
        !rg_call_is_served(sweep->shared->collective, sweep->view.backend);

    if (root >= sweep->view.capacity && sweep->view.rank == 0)
        rg_say(sweep->shared->program, "-r %d: there are %d ranks", root,
               sweep->view.capacity);
    else if (none && sweep->view.rank == 0)
        rg_say(sweep->shared->program, "the legacy backend has no %s",
               rg_collective_name(sweep->shared->collective));
    if (root >= sweep->view.capacity)
        return RG_EINVAL;
    return none ? RG_ENOTSUP : RG_OK;
}

static int create_sweep(struct sweep *sweep, const struct rg_job *job)
{
    const struct rg_session_config config = {
        .program = sweep->shared->program,
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
    if (status == RG_OK)
        status = check_group(sweep);
    if (status != RG_OK)
        return status;
    sweep->subjects[0] = (struct rg_subject){
        .name = "regroup",
        .stream = sweep->session->stream,
        .run = run_own,
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
        .collective = what->collective,
        .bytes = rg_case_bytes(what, sweep->view.nranks),
        .count = what->count,
        .dtype = what->dtype,
        .op = what->op,
        .root = rg_collective_rooted(what->collective) ? what->root : -1,
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
static int keep_row(struct sweep *sweep, const struct rg_row *row, int peer)
{
    return sweep->options->guidelines && peer <= 1
               ? guideline_rows_add(&sweep->rows, sweep->sweeps, row)
               : RG_OK;
}

/* Out of place and, if there is such a thing, in place. */
static int say_rows(struct sweep *sweep, struct rg_case what,
                    const struct measured *measured, int n, int peer)
{
    struct rg_row rows[2];
    int status = RG_OK;

    for (int i = 0; i < n; i++) {
        what.inplace = i;
        rows[i] = row_of(sweep, &what, &measured[i], peer);
    }
    rg_report_rows(sweep->report, &rows[0], n > 1 ? &rows[1] : NULL);
    for (int i = 0; i < n && status == RG_OK; i++) {
        rg_verdict_row(&sweep->verdict, rows[i].wrong, rg_row_ratio(&rows[i]),
                       sweep->options->min_ratio);
        status = keep_row(sweep, &rows[i], peer);
    }
    return status;
}

static int places(const struct sweep *sweep)
{
    return rg_call_has_inplace(sweep->shared->collective) ? 2 : 1;
}

static int measure_rows(struct sweep *sweep, struct rg_case what)
{
    const int n = places(sweep);
    struct measured measured[2];
    int status = RG_OK;

    for (int i = 0; i < n && status == RG_OK; i++) {
        what.inplace = i;
        status = measure_one(sweep, &what, &measured[i]);
    }
    for (int peer = sweep->npeers > 0; peer <= sweep->npeers && status == RG_OK;
         peer++)
        status = say_rows(sweep, what, measured, n, peer);
    return status;
}

/* ---- the sweep ---------------------------------------------------------- */

/* One size is a barrier's. */
static uint64_t next_size(const struct sweep *sweep, uint64_t bytes)
{
    return sweep->shared->collective == RG_COLL_barrier
               ? UINT64_MAX
               : perf_options_next(sweep->options, bytes);
}

static int sweep_sizes(struct sweep *sweep, struct rg_case what)
{
    const struct perf_options *options = sweep->options;
    int status = RG_OK;

    for (uint64_t bytes = options->min_bytes;
         status == RG_OK && bytes <= options->max_bytes;
         bytes = next_size(sweep, bytes)) {
        what.count = rg_call_count(what.collective, bytes, what.dtype,
                                   sweep->view.capacity);
        status = measure_rows(sweep, what);
    }
    return status;
}

/* How often all that is swept for each root. */
static int roots(const struct sweep *sweep)
{
    return rg_collective_rooted(sweep->shared->collective) &&
                   sweep->options->root < 0
               ? sweep->view.capacity
               : 1;
}

static int sweep_roots(struct sweep *sweep, struct rg_case what)
{
    const int n = roots(sweep);
    int status = RG_OK;

    for (int i = 0; i < n && status == RG_OK; i++) {
        what.root = sweep->options->root < 0 ? i : sweep->options->root;
        status = sweep_sizes(sweep, what);
        sweep->sweeps++;
    }
    return status;
}

/* What only moves has no operation; it is swept once, as with the first. */
static int is_swept(const struct sweep *sweep, int dtype, int op)
{
    if (!(sweep->options->dtypes & 1u << dtype))
        return 0;
    if (!rg_collective_reduces(sweep->shared->collective))
        return op == 0;
    return sweep->options->ops & 1u << op &&
           rg_op_fits((enum rg_op)op, (enum rg_dtype)dtype);
}

static int sweep_types(struct sweep *sweep)
{
    int status = RG_OK;

    for (int d = 0; d < RG_DTYPE_COUNT; d++)
        for (int o = 0; o < RG_OP_COUNT; o++) {
            const struct rg_case what = {.dtype = (enum rg_dtype)d,
                                         .op = (enum rg_op)o,
                                         .collective =
                                             sweep->shared->collective,
                                         .seed = sweep->options->seed};

            if (status == RG_OK && is_swept(sweep, d, o))
                status = sweep_roots(sweep, what);
        }
    return status;
}

static int runs_here(const struct sweep *sweep, const struct rg_algo *algo)
{
    struct rg_comm_limits limits;

    return algo->collective == sweep->shared->collective &&
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
    int algos = 0, kinds = 0;

    for (uint64_t bytes = options->min_bytes; bytes <= options->max_bytes;
         bytes = next_size(sweep, bytes))
        sweep->cases += places(sweep);
    for (int d = 0; d < RG_DTYPE_COUNT; d++)
        for (int o = 0; o < RG_OP_COUNT; o++)
            kinds += is_swept(sweep, d, o);
    sweep->cases *= kinds * roots(sweep);
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

    return status == RG_OK ? rg_comm_view(sweep->session->comm, &sweep->view)
                           : status;
}

static int sweep_algorithm(struct sweep *sweep, const char *name)
{
    char text[128];
    int status;

    snprintf(text, sizeof text, "%s=%s",
             rg_collective_name(sweep->shared->collective), name);
    status = select_policy(sweep, text);
    return status == RG_OK ? sweep_types(sweep) : status;
}

static int sweep_algorithms(struct sweep *sweep)
{
    int status = RG_OK;

    for (int i = 0; status == RG_OK && rg_algos[i]; i++) {
        if (runs_here(sweep, rg_algos[i]))
            status = sweep_algorithm(sweep, rg_algos[i]->name);
        else if (rg_algos[i]->collective == sweep->shared->collective)
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
    int status = rg_report_create(shared->program, shared->options.json,
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
                rg_say(shared->program, "rank %d: %s", job->rank,
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

static void summarise(const struct shared *shared, char *text, size_t room)
{
    snprintf(text, room,
             "Measures and checks %s over the ranks of an MPI job or over "
             "threads.",
             rg_collective_name(shared->collective));
}

static enum rg_options_result parse(struct shared *shared, int argc,
                                    char **argv)
{
    char summary[128];
    const struct rg_program program = {shared->program, summary, NULL, 0, NULL};
    struct perf_options *options = &shared->options;
    enum rg_options_result result;

    summarise(shared, summary, sizeof summary);
    result = perf_options_parse(shared->program, summary, shared->collective,
                                argc, argv, options);
    if (result != RG_OPTIONS_RUN)
        return result;
    if (options->algo && !knows_algorithm(shared->collective, options->algo))
        return rg_options_refuse(&program, "unknown algorithm '%s'",
                                 options->algo);
    if (rg_output_is_same(options->json, options->policy))
        return rg_options_refuse(&program, "-J would overwrite --policy");
    return options->policy
               ? read_policy(&program, options->policy, &shared->policy)
               : RG_OPTIONS_RUN;
}

int perf_main(const char *program, enum rg_collective collective, int argc,
              char **argv)
{
    struct shared shared = {.program = program, .collective = collective};
    const enum rg_options_result result = parse(&shared, argc, argv);
    int code;

    if (result != RG_OPTIONS_RUN)
        return rg_options_exit(result);
    rg_options_command(program, argc, argv, shared.command,
                       sizeof shared.command);
    code = rg_job_run(&shared.options.launch, rank_main, &shared);
    free(shared.policy);
    return code;
}
