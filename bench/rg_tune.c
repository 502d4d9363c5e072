/*
 * Measures which algorithm serves which sizes best, and writes the selection
 * table. Rank 0 decides; tune_measure.h makes all ranks measure.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/tune_measure.h"
#include "bench/tune_policy.h"
#include "bench/tune_report.h"
#include "bench/tune_tools.h"
#include "harness/call.h"
#include "harness/options.h"
#include "harness/output.h"
#include "harness/peer.h"
#include "harness/stats.h"
#include "harness/verdict.h"

struct tune_options {
    const char *output;
    const char *raw;
    const char *resume;
    const char *budget;
    uint32_t collectives;
    int dtype;
    int graph;
    int warmup;
    int timeout_s;
    int device;
    uint32_t compare;
    const char *topology;
    struct rg_launch_options launch;
    uint64_t min_bytes, max_bytes;
    int launches;
    int seed;
    int held_out;
    double budget_s;
    char command[512];
};

#define AT(field)     offsetof(struct tune_options, field)
#define NAME_OF(name) "|" #name
#define COLLECTIVES   RG_COLLECTIVE_LIST(NAME_OF)

static const struct rg_option table[] = {
    {RG_OPTION_TEXT, 'o', "output", AT(output), NULL, 0, 0, "FILE",
     "the selection table"},
    {RG_OPTION_SIZE, 'b', "min", AT(min_bytes), NULL, 0, 0, "SIZE",
     "smallest buffer of a rank in bytes (8)"},
    {RG_OPTION_SIZE, 'e', "max", AT(max_bytes), NULL, 0, 0, "SIZE",
     "largest buffer (64M)"},
    {RG_OPTION_SET, 0, "collectives", AT(collectives), COLLECTIVES, 0, 0,
     "NAME", "what to tune, one after the other (all_reduce)"},
    {RG_OPTION_TEXT, 0, "budget", AT(budget), NULL, 0, 0, "TIME",
     "how long it may take, in equal parts: 90, 90s, 2m (120s)"},
    {RG_OPTION_INT, 0, "launches", AT(launches), NULL, 1, TUNE_LAUNCHES_MAX,
     "N", "samples of each figure, a communicator each (3)"},
    {RG_OPTION_INT, 0, "held-out", AT(held_out), NULL, 0, TUNE_HELD_MAX, "N",
     "sizes off the grid that say how good the table is (24)"},
    {RG_OPTION_INT, 0, "seed", AT(seed), NULL, 0, 1e9, "N",
     "of the order and the sizes held out (1)"},
    {RG_OPTION_CHOICE, 'd', "dtype", AT(dtype), RG_OPTION_DTYPES, 0, 0, "TYPE",
     "data type that is measured (f32)"},
    {RG_OPTION_INT, 'G', "graph", AT(graph), NULL, 0, 1000, "N",
     "capture N invocations in a graph and replay it (cuda 20, emu 0)"},
    {RG_OPTION_INT, 'w', "warmup", AT(warmup), NULL, 0, 1e6, "N",
     "invocations before each case (1)"},
    {RG_OPTION_INT, 'T', "timeout", AT(timeout_s), NULL, 0, 1e6, "SECONDS",
     "end when there is no progress for so long (300; 0: never)"},
    {RG_OPTION_TEXT, 'J', "json", AT(raw), NULL, 0, 0, "FILE",
     "raw measurements as JSON lines (OUTPUT.jsonl); of several collectives "
     "FILE.NAME"},
    {RG_OPTION_TEXT, 0, "resume", AT(resume), NULL, 0, 0, "FILE",
     "go on from the raw measurements in FILE, and add to them"},
    {RG_OPTION_CHOICE, 0, "device", AT(device), "|emu|cuda", 0, 0, "DEVICE",
     "where ranks run (emu)"},
    {RG_OPTION_SET, 0, "compare", AT(compare), RG_PEER_NAMES, 0, 0, "PEER",
     "measure peers beside what is chosen"},
    {RG_OPTION_TEXT, 0, "topology", AT(topology), NULL, 0, 0, "NAME",
     "what the table calls this machine (DEVICE:RANKS)"},
    RG_OPTIONS_LAUNCH(struct tune_options),
};

static const struct rg_program program = {
    .name = "rg_tune",
    .summary =
        "Measures which algorithm serves which sizes best, and writes the "
        "selection\ntable. Under mpirun, or with --launch local --ranks N.",
    .options = table,
    .noptions = sizeof table / sizeof *table,
    .notes =
        "Without ranks:\n"
        "  rg_tune lint FILE          is it a table that can be used?\n"
        "  rg_tune explain FILE ...   which row serves a size, and why\n"
        "  rg_tune diff A B           exit 1 when they choose differently\n"
        "  rg_tune merge A B... -o T  one table of those of several rank "
        "counts\n"
        "  rg_tune export FILE ...    for Open MPI or NCCL\n"
        "  rg_tune plot RAW ...       draws the raw measurements\n"
        "each with --help of its own.\n"
        "\n"
        "A tuning that was cut short goes on from its raw measurements when "
        "the same\ncommand is given again.\n"
        "\n"
        "Exit codes: 0 pass; 1 tables differ; 2 usage or configuration; 3 no "
        "device,\npeer or output; 4 timeout or hang; 77 nothing could run.\n",
};

/* What all ranks of the process read. */
struct shared {
    struct tune_options options;
    double begin_us;
};

/* A rank's tuning, of one collective after the other. */
struct tuning {
    const struct shared *shared;
    const struct tune_options *options;
    const struct rg_job *job;
    struct rg_report *report;
    /* Rank 0's, of all collectives. */
    struct rg_policy_table *table;
    struct rg_verdict verdict;
    /* Of the collective that is being tuned. */
    enum rg_collective collective;
    double begin_us;
    struct tune_ranks *ranks;
    struct tune_raw *raw;
    struct tune_config config;
    struct tune_result result;
    struct rg_policy_table *own; /* its rows */
};

/* ---- the raw file's header ---------------------------------------------- */

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3ull;
    return hash;
}

static const char *device_name(const struct tune_options *options)
{
    return options->device == RG_DEVICE_CUDA ? "cuda" : "emu";
}

static int ncollectives(const struct tune_options *options)
{
    return __builtin_popcount(options->collectives);
}

static int is_last(const struct tuning *tuning)
{
    return tuning->options->collectives >> tuning->collective == 1;
}

/* What must be the same for two measurements to belong together. */
static void write_configuration(const struct tuning *tuning, char *text,
                                size_t room)
{
    const struct tune_options *options = tuning->options;
    const struct tune_config *config = &tuning->config;
    const struct tune_space *space = tune_ranks_space(tuning->ranks);
    const struct rg_session *session = tune_ranks_session(tuning->ranks);
    uint64_t names = 0;

    for (int c = 0; c < space->n; c++)
        names = names * 31 + hash_text(space->list[c].name);
    snprintf(text, room,
             "%s %s ranks %d hosts %d (%s) %s %s %s graph %d warmup %d sizes "
             "%" PRIu64 "-%" PRIu64
             " launches %d held-out %d seed %d compare %x candidates "
             "%016" PRIx64 " commit " TUNE_COMMIT,
             rg_collective_name(tuning->collective),
             rg_dtype_name((enum rg_dtype)options->dtype), tuning->job->size,
             tuning->job->hosts, tuning->job->host, device_name(options),
             session->info.name, session->info.driver, options->graph,
             options->warmup, config->min_bytes, config->max_bytes,
             options->launches, config->held_out, options->seed,
             (unsigned)options->compare, names);
}

static const char *date_text(char *text, size_t room)
{
    const time_t now = time(NULL);
    struct tm utc;

    text[0] = '\0';
    strftime(text, room, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return text;
}

static json_t *header_of(const struct tuning *tuning)
{
    const struct tune_options *options = tuning->options;
    const struct rg_session *session = tune_ranks_session(tuning->ranks);
    char configuration[1024], date[32];

    write_configuration(tuning, configuration, sizeof configuration);
    return json_pack(
        "{s:s,s:o,s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:i,s:s,s:s,s:s,s:i,s:i,s:i}",
        "kind", "tune", "config",
        json_sprintf("%016" PRIx64, hash_text(configuration)), "configuration",
        configuration, "command", options->command, "date",
        date_text(date, sizeof date), "commit", TUNE_COMMIT, "collective",
        rg_collective_name(tuning->collective), "dtype",
        rg_dtype_name((enum rg_dtype)options->dtype), "ranks",
        tuning->job->size, "hosts", tuning->job->hosts, "device",
        device_name(options), "name", session->info.name, "driver",
        session->info.driver, "graph", options->graph, "launches",
        options->launches, "seed", options->seed);
}

/* -J, --resume, or what -o makes of it; of several collectives one each. */
static const char *raw_path(const struct tune_options *options,
                            enum rg_collective collective, char *text,
                            size_t room)
{
    const char *name = rg_collective_name(collective);

    if (ncollectives(options) == 1 && options->resume)
        snprintf(text, room, "%s", options->resume);
    else if (ncollectives(options) == 1 && options->raw)
        snprintf(text, room, "%s", options->raw);
    else if (ncollectives(options) == 1)
        snprintf(text, room, "%s.jsonl", options->output);
    else if (options->raw)
        snprintf(text, room, "%s.%s", options->raw, name);
    else
        snprintf(text, room, "%s.%s.jsonl", options->output, name);
    return text;
}

static int open_raw(struct tuning *tuning)
{
    const struct tune_options *options = tuning->options;
    char path[4096], text[512];
    const int status = tune_raw_open(
        raw_path(options, tuning->collective, path, sizeof path),
        header_of(tuning), options->resume ? TUNE_RAW_RESUME : TUNE_RAW_GO_ON,
        &tuning->raw, text, sizeof text);

    if (text[0])
        rg_say(program.name, "%s", text);
    return status;
}

/* ---- the table ---------------------------------------------------------- */

static int add_note(struct rg_policy_table *policy, const char *what,
                    const char *text)
{
    char line[400];

    snprintf(line, sizeof line, "%.20s: %.370s", what, text);
    for (char *c = line; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?'; /* the table is printable ASCII */
    return rg_policy_add_note(policy, line);
}

/* Where the table is from: once. */
static int add_provenance(struct tuning *tuning)
{
    const struct rg_session *session = tune_ranks_session(tuning->ranks);
    struct rg_policy_table *policy = tuning->table;
    char text[256], date[32];
    int status;

    snprintf(text, sizeof text, "%s, %d ranks on %d host%s, %s (%s), driver %s",
             tuning->job->host, tuning->job->size, tuning->job->hosts,
             tuning->job->hosts == 1 ? "" : "s", device_name(tuning->options),
             session->info.name, session->info.driver);
    status = add_note(policy, "machine", text);
    snprintf(text, sizeof text, "%s, commit %s", date_text(date, sizeof date),
             TUNE_COMMIT);
    if (status == RG_OK)
        status = add_note(policy, "date", text);
    return status == RG_OK
               ? add_note(policy, "command", tuning->options->command)
               : status;
}

static int add_measured(struct tuning *tuning)
{
    const int reduces = rg_collective_reduces(tuning->collective);
    char text[256], name[32] = "";

    if (ncollectives(tuning->options) > 1)
        snprintf(name, sizeof name, "%s ",
                 rg_collective_name(tuning->collective));
    snprintf(text, sizeof text,
             "%s%s%s, graph %d, seed %d, %d launches, %d samples, raw "
             "measurements %016" PRIx64,
             name, rg_dtype_name((enum rg_dtype)tuning->options->dtype),
             reduces ? " sum" : "", tuning->options->graph,
             tuning->options->seed, tuning->options->launches,
             tune_raw_count(tuning->raw), tune_raw_hash(tuning->raw));
    return add_note(tuning->table, "measured", text);
}

static int new_table(const struct tuning *tuning,
                     struct rg_policy_table **table_out)
{
    char topology[RG_POLICY_TOPOLOGY_BYTES];

    snprintf(topology, sizeof topology, "%s:%d", device_name(tuning->options),
             tuning->job->size);
    return rg_policy_create(
        tuning->options->topology ? tuning->options->topology : topology,
        table_out);
}

/* The collective's rows, also in a table of their own for the raw file. */
static int add_rows(struct tuning *tuning)
{
    const struct tune_space *space = tune_ranks_space(tuning->ranks);
    int status = new_table(tuning, &tuning->own);

    if (status == RG_OK)
        status = tune_policy_rows(tuning->own, space, &tuning->result,
                                  tuning->collective, tuning->job->size);
    return status == RG_OK
               ? tune_policy_rows(tuning->table, space, &tuning->result,
                                  tuning->collective, tuning->job->size)
               : status;
}

static int extend_table(struct tuning *tuning)
{
    int status = RG_OK;

    if (!tuning->table) {
        status = new_table(tuning, &tuning->table);
        if (status == RG_OK)
            status = add_provenance(tuning);
    }
    if (status == RG_OK)
        status = add_measured(tuning);
    if (status == RG_OK)
        status = tune_report_notes(
            tuning->table, tune_ranks_space(tuning->ranks), &tuning->result);
    return status == RG_OK ? add_rows(tuning) : status;
}

static int save_table(struct tuning *tuning)
{
    const int status =
        tune_policy_save(tuning->table, program.name, tuning->options->output);

    if (status == RG_OK)
        rg_report_note(tuning->report, "'%s': %d rows, hash %016" PRIx64,
                       tuning->options->output, tuning->table->row_count,
                       rg_policy_hash(tuning->table));
    return status;
}

/* ---- tuning ------------------------------------------------------------- */

static double clock_s(void *arg)
{
    const struct tuning *tuning = arg;

    return (rg_stats_clock_us() - tuning->begin_us) * 1e-6;
}

static void progress(void *arg, const char *text)
{
    struct tuning *tuning = arg;

    rg_report_progress(tuning->report, text);
}

static int measure(void *arg, const struct tune_order *order,
                   struct tune_figure *figures_out)
{
    struct tuning *tuning = arg;

    return tune_ranks_measure(tuning->ranks, order, figures_out);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Sizes are those of a rank's largest buffer: multiples of an element a block.
 * A barrier has none, and two stand for all. */
static void configure(struct tuning *tuning)
{
    const struct tune_options *options = tuning->options;
    const int barrier = tuning->collective == RG_COLL_barrier;
    const int blocks = rg_call_blocks(tuning->collective, tuning->job->size);
    const uint64_t grain = rg_dtype_size((enum rg_dtype)options->dtype) *
                           (uint64_t)(blocks ? blocks : 1);
    const uint64_t min = barrier ? 8 : larger(options->min_bytes, grain);

    tuning->config = (struct tune_config){
        .min_bytes = min,
        .max_bytes = barrier ? 16 : larger(options->max_bytes, min),
        .grain = barrier ? 1 : grain,
        .launches = options->launches,
        .seed = (uint64_t)options->seed,
        .budget_s = options->budget_s / ncollectives(options),
        .held_out = barrier ? 0 : options->held_out,
        .max_rows = RG_POLICY_MAX_RULES,
    };
    for (int i = 0; i < RG_PEERS_MAX; i++)
        if (options->compare & 1u << i)
            tuning->config.peers[tuning->config.npeers++] = rg_peer_name(i);
}

static void print_header(struct tuning *tuning)
{
    const struct rg_session *session = tune_ranks_session(tuning->ranks);
    struct rg_view_info view = {.policy_hash = 0};
    struct rg_report_env env = {
        .command = tuning->options->command,
        .collective = rg_collective_name(tuning->collective),
        .device = (enum rg_device_kind)tuning->options->device,
        .backend = RG_BACKEND_NEW,
        .info = session->info,
        .places = session->places,
        .nranks = tuning->job->size,
        .hosts = tuning->job->hosts,
    };

    if (rg_comm_view(session->comm, &view) == RG_OK)
        env.policy_hash = view.policy_hash;
    rg_report_env(tuning->report, &env);
    rg_report_note(tuning->report, "commit " TUNE_COMMIT "; %d candidates",
                   tune_ranks_space(tuning->ranks)->n);
    if (tune_raw_budget_s(tuning->raw) >= tuning->config.budget_s)
        rg_report_note(
            tuning->report, "decides by %d samples of a whole tuning of %.4g s",
            tune_raw_resumed(tuning->raw), tune_raw_budget_s(tuning->raw));
    else if (tune_raw_resumed(tuning->raw))
        rg_report_note(tuning->report,
                       "goes on from %d samples measured before",
                       tune_raw_resumed(tuning->raw));
}

static int search(struct tuning *tuning)
{
    const struct tune_meter meter = {measure, clock_s, progress, tuning};
    const struct tune_space *space = tune_ranks_space(tuning->ranks);
    int status = tune_search(&tuning->config, space, &meter, tuning->raw,
                             &tuning->result);

    rg_report_progress(tuning->report, NULL);
    if (status == RG_OK)
        status = extend_table(tuning);
    if (status == RG_OK) {
        tune_report_print(tuning->report, &tuning->config, space,
                          &tuning->result);
        tuning->verdict.passed += tuning->result.npoints;
        status = tune_report_raw(tuning->raw, &tuning->config, space,
                                 &tuning->result, rg_policy_hash(tuning->own));
    }
    tuning->verdict.skipped += tuning->result.left_out;
    return status;
}

/* The code of a tuning that ended so. */
static int code_of(const struct tuning *tuning, int status)
{
    const int too_short = status == RG_ETIMEDOUT && tuning->result.left_out > 0;

    if (status == RG_OK)
        return RG_EXIT_PASS;
    if (status == RG_ENOTSUP)
        rg_say(program.name, "no algorithm can run here");
    else if (too_short)
        rg_say(program.name, "the budget is too short for two sizes");
    else
        rg_say(program.name,
               "%s; the same command goes on from the %d samples kept",
               rg_status_string(status), tune_raw_count(tuning->raw));
    if (status == RG_ENOTSUP)
        return RG_EXIT_SKIP;
    return too_short ? RG_EXIT_USAGE : rg_exit_of_status(status);
}

/*
 * Behind a collective's tuning: one of several that nothing here can run is
 * left out. With the last one the table is whole.
 */
static int go_on(struct tuning *tuning, int status)
{
    if (status == RG_ENOTSUP && ncollectives(tuning->options) > 1 &&
        tune_ranks_space(tuning->ranks)->n == 0) {
        rg_report_note(tuning->report, "%s: no algorithm can run here",
                       rg_collective_name(tuning->collective));
        rg_verdict_skip(&tuning->verdict);
        status = is_last(tuning) && !tuning->table ? RG_ENOTSUP : RG_OK;
    }
    return status == RG_OK && is_last(tuning) ? save_table(tuning) : status;
}

/* Sizes that have their choice pass; those left out are skipped. */
static int conclude(struct tuning *tuning, int code)
{
    if (code == RG_EXIT_PASS && !is_last(tuning))
        return code;
    if (code != RG_EXIT_PASS)
        rg_verdict_fail(&tuning->verdict, (enum rg_exit)code);
    rg_report_verdict(tuning->report, &tuning->verdict);
    return rg_report_code(tuning->report, rg_verdict_exit(&tuning->verdict));
}

static int lead(struct tuning *tuning)
{
    int status, code, told;

    configure(tuning);
    status = open_raw(tuning);
    if (status == RG_OK) {
        print_header(tuning);
        status = go_on(tuning, search(tuning));
        code = conclude(tuning, code_of(tuning, status));
    } else {
        code = RG_EXIT_USAGE;
    }
    told = tune_ranks_end(tuning->ranks, code);
    return told == RG_OK ? code : rg_exit_of_status(told);
}

static int follow(struct tuning *tuning)
{
    int code;
    const int status = tune_ranks_follow(tuning->ranks, &code);

    if (status == RG_OK)
        return code;
    if (!rg_status_is_told(status))
        rg_say(program.name, "rank %d: %s", tuning->job->rank,
               rg_status_string(status));
    return rg_exit_of_status(status);
}

/* ---- ranks -------------------------------------------------------------- */

static struct tune_subject subject_of(const struct tune_options *options,
                                      enum rg_collective collective)
{
    return (struct tune_subject){
        .program = program.name,
        .device = (enum rg_device_kind)options->device,
        .collective = collective,
        .dtype = (enum rg_dtype)options->dtype,
        .op = RG_sum,
        .graph = options->graph,
        .warmup = options->warmup,
        .timeout_s = options->timeout_s,
        .max_bytes = options->max_bytes,
        .compare = options->compare,
    };
}

static int is_tuned(const struct tune_options *options, int collective)
{
    return (int)(options->collectives >> collective & 1);
}

/* Decided before anything is measured. */
static int check_outputs(const struct tune_options *options)
{
    const char *named = options->output;
    const char *fault = rg_output_fault(named, RG_OUTPUT_NEW);
    char path[4096];

    for (int c = 0; c < RG_COLL_COUNT && !fault; c++) {
        if (!is_tuned(options, c))
            continue;
        named = raw_path(options, (enum rg_collective)c, path, sizeof path);
        fault = rg_output_fault(named, RG_OUTPUT_FILE);
    }
    if (!fault)
        return 0;
    rg_say(program.name, "cannot write '%s': %s", named, fault);
    return RG_EXIT_USAGE;
}

static int tune_one(struct tuning *tuning, enum rg_collective collective)
{
    const struct tune_subject subject = subject_of(tuning->options, collective);
    int status, code;

    tuning->collective = collective;
    tuning->begin_us =
        tuning->table ? rg_stats_clock_us() : tuning->shared->begin_us;
    status = tune_ranks_create(&subject, tuning->job, &tuning->ranks);
    if (status != RG_OK)
        code = rg_exit_of_status(status);
    else
        code = tuning->job->rank == 0 ? lead(tuning) : follow(tuning);
    rg_policy_destroy(tuning->own);
    tune_raw_close(tuning->raw);
    tune_ranks_destroy(tuning->ranks);
    tuning->own = NULL;
    tuning->raw = NULL;
    tuning->ranks = NULL;
    return code;
}

static int rank_main(const struct rg_job *job, void *arg)
{
    const struct shared *shared = arg;
    const struct tune_options *options = &shared->options;
    struct tuning tuning = {.shared = shared, .options = options, .job = job};
    int code = rg_job_agree(job, job->rank == 0 ? check_outputs(options) : 0);

    if (code != 0)
        return code < 0 ? RG_EXIT_ENVIRONMENT : code;
    code = rg_exit_of_status(
        rg_report_create(program.name, NULL, job->rank, &tuning.report));
    for (int c = 0; c < RG_COLL_COUNT && code == RG_EXIT_PASS; c++)
        if (is_tuned(options, c))
            code = tune_one(&tuning, (enum rg_collective)c);
    rg_policy_destroy(tuning.table);
    rg_report_destroy(tuning.report);
    return code;
}

/* ---- main --------------------------------------------------------------- */

/* Seconds of "90", "90s" or "2m"; 0: not such a text. */
static double seconds_of(const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    const double unit = strcmp(end, "m") == 0               ? 60
                        : *end == '\0' || !strcmp(end, "s") ? 1
                                                            : 0;

    return end != text && value > 0 && value <= 1e6 ? value * unit : 0;
}

/* A table must be able to hold it. */
static int is_topology(const char *name)
{
    struct rg_policy_table *policy;

    if (!name)
        return 1;
    if (rg_policy_create(name, &policy) != RG_OK)
        return 0;
    rg_policy_destroy(policy);
    return 1;
}

/* The table is written to OUTPUT.new, which then takes the name. */
static int overwrites(const struct tune_options *options)
{
    char path[4096], fresh[4096];
    int any = 0;

    snprintf(fresh, sizeof fresh, "%s.new", options->output);
    for (int c = 0; c < RG_COLL_COUNT; c++) {
        if (!is_tuned(options, c))
            continue;
        raw_path(options, (enum rg_collective)c, path, sizeof path);
        any |= rg_output_is_same(options->output, path) ||
               rg_output_is_same(fresh, path);
    }
    return any;
}

/* The sum is what is measured of those that have operations. */
static int fits(const struct tune_options *options)
{
    int ok = 1;

    for (int c = 0; c < RG_COLL_COUNT; c++)
        ok &= !is_tuned(options, c) ||
              !rg_collective_reduces((enum rg_collective)c) ||
              rg_op_fits(RG_sum, (enum rg_dtype)options->dtype);
    return ok;
}

static enum rg_options_result settle(struct tune_options *options)
{
    if (!is_topology(options->topology))
        return rg_options_refuse(&program,
                                 "bad value '%s' for flag '--topology'",
                                 options->topology);
    if (!options->output)
        return rg_options_refuse(&program, "-o FILE is missing");
    if (strlen(options->output) > 3900)
        return rg_options_refuse(&program, "the name of -o is too long");
    if (options->min_bytes > options->max_bytes)
        return rg_options_refuse(&program, "-b is larger than -e");
    if (options->min_bytes < rg_dtype_size((enum rg_dtype)options->dtype))
        return rg_options_refuse(&program, "-b holds no element of -d");
    if (options->max_bytes > 1ull << 40)
        return rg_options_refuse(&program, "no buffer is as large as -e");
    if (options->resume && ncollectives(options) > 1)
        return rg_options_refuse(&program, "--resume is of one collective");
    if (!fits(options))
        return rg_options_refuse(&program, "-d %s has no sum",
                                 rg_dtype_name((enum rg_dtype)options->dtype));
    if (options->raw && options->resume)
        return rg_options_refuse(&program,
                                 "-J and --resume contradict each other");
    if (overwrites(options))
        return rg_options_refuse(&program,
                                 "the raw measurements and the table of -o "
                                 "would overwrite each other");
    if (options->launch.ranks && options->launch.kind == RG_LAUNCH_MPI)
        return rg_options_refuse(
            &program, "--ranks is for --launch local; mpirun -n says it else");
    options->budget_s = seconds_of(options->budget);
    if (!(options->budget_s > 0))
        return rg_options_refuse(&program, "bad value '%s' for flag '--budget'",
                                 options->budget);
    if (options->graph < 0)
        options->graph = options->device == RG_DEVICE_CUDA ? 20 : 0;
    return RG_OPTIONS_RUN;
}

int main(int argc, char **argv)
{
    struct shared shared = {.options = {.budget = "120s",
                                        .collectives = 1,
                                        .dtype = RG_f32,
                                        .graph = -1,
                                        .warmup = 1,
                                        .timeout_s = 300,
                                        .min_bytes = 8,
                                        .max_bytes = 64 << 20,
                                        .launches = 3,
                                        .seed = 1,
                                        .held_out = 24},
                            .begin_us = rg_stats_clock_us()};
    enum rg_options_result result;

    if (argc > 1 && tune_tool_known(argv[1]))
        return tune_tool_main(argc, argv);
    result = rg_options_parse(&program, argc, argv, &shared.options);
    if (result == RG_OPTIONS_RUN)
        result = settle(&shared.options);
    if (result != RG_OPTIONS_RUN)
        return rg_options_exit(result);
    rg_options_command(program.name, argc, argv, shared.options.command,
                       sizeof shared.options.command);
    return rg_job_run(&shared.options.launch, rank_main, &shared);
}
