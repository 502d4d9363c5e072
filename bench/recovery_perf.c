/* Measures how long a group takes to go on without a failed rank. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/recovery.h"
#include "harness/options.h"
#include "harness/preference.h"
#include "harness/verdict.h"

/* Upper bounds; 0: none. */
struct gates {
    double p50_us;
    double p99_us;
    double ratio; /* of total to deadline + window, in each injection */
};

struct options {
    struct recovery_plan plan;
    struct rg_launch_options launch;
    const char *json;
    const char *gate;
    int verbose;
};

/* What all ranks of the process read. */
struct shared {
    struct options options;
    struct gates gates;
    char command[512]; /* for the header */
};

/* A rank's run: all ranks come to the same. */
struct run {
    const struct shared *shared;
    const struct recovery_plan *plan;
    const struct rg_job *job;
    struct rg_report *report;
    struct recovery_log log;
    struct recovery_figures *figures; /* [plan->injections] */
    struct recovery_summary summary;
    struct rg_verdict verdict;
};

/* ---- flags -------------------------------------------------------------- */

#define AT(field) offsetof(struct options, field)

static const struct rg_option table[] = {
    {RG_OPTION_CHOICE, 0, "device", AT(plan.device), "|emu|cuda", 0, 0,
     "DEVICE", "where ranks run (emu)"},
    {RG_OPTION_CHOICE, 0, "backend", AT(plan.backend), RG_PREFERENCE_VALUES, 0,
     0, "BACKEND",
     "which backend to ask for (what the preference variables say, else new)"},
    {RG_OPTION_CHOICE, 0, "fault", AT(plan.fault), RECOVERY_FAULT_NAMES, 0, 0,
     "FAULT", "SIGKILL, SIGSTOP, or a rank that falls silent (kill)"},
    {RG_OPTION_CHOICE, 0, "role", AT(plan.role), RECOVERY_ROLE_NAMES, 0, 0,
     "ROLE", "whom it hits (any)"},
    {RG_OPTION_INT, 'n', "injections", AT(plan.injections), NULL, 1, 100000,
     "N", "faults, one after the other (20)"},
    {RG_OPTION_CHOICE, 0, "mode", AT(plan.eager), "|replay|eager", 0, 0, "MODE",
     "replay a graph that is captured once, or launch (replay)"},
    {RG_OPTION_SIZE, 'b', "bytes", AT(plan.bytes), NULL, 0, 0, "SIZE",
     "buffer of a rank in bytes (8)"},
    {RG_OPTION_SIZE, 0, "seed", AT(plan.seed), NULL, 0, 0, "S",
     "of victims and moments (1)"},
    {RG_OPTION_INT, 0, "pause", AT(plan.pause_ms), NULL, 0, 10000, "MS",
     "the group is whole for so long before each fault (600)"},
    {RG_OPTION_INT, 0, "deadline", AT(plan.deadline_ms), NULL, 5, 10000, "MS",
     "of a device wait, and of silence (stop: 500; else as it is)"},
    {RG_OPTION_INT, 0, "window", AT(plan.window_ms), NULL, 1, 10000, "MS",
     "for answers to the coordinator (stop: 200; else as it is)"},
    {RG_OPTION_TEXT, 0, "gate", AT(gate), NULL, 0, 0, "LIST",
     "fail (exit 5) above e.g. p50=10ms,p99=50ms; ratio=1.1 for stop"},
    {RG_OPTION_INT, 'T', "timeout", AT(plan.timeout_s), NULL, 1, 86400,
     "SECONDS", "end when it takes longer (300)"},
    {RG_OPTION_FLAG, 'v', "verbose", AT(verbose), NULL, 0, 0, NULL,
     "print a row for each injection"},
    {RG_OPTION_TEXT, 'J', "json", AT(json), NULL, 0, 0, "FILE",
     "write JSON lines"},
    RG_OPTIONS_LAUNCH(struct options),
};

static const struct rg_program program = {
    .name = "recovery_perf",
    .summary = "Measures how long the others need to go on when a rank fails.",
    .options = table,
    .noptions = sizeof table / sizeof *table,
    .notes =
        "Exit codes: 0 pass; 1 wrong data; 2 usage or configuration; 3 no\n"
        "device; 4 timeout or hang; 5 gate missed; 6 recovery failed.\n",
};

/* "10ms" in microseconds; negative: no such text. */
static double duration_us(const char *text, char **end_out)
{
    const double value = strtod(text, end_out);
    static const struct {
        const char *unit;
        double us;
    } units[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const size_t length = strlen(units[i].unit);

        if (*end_out != text && !strncmp(*end_out, units[i].unit, length)) {
            *end_out += length;
            return value * units[i].us;
        }
    }
    return -1;
}

/* One "name=value" of the list; null: it is none, else what follows it. */
static const char *parse_gate(const char *text, struct gates *gates)
{
    double *bound = NULL;
    char *end = NULL;

    if (!strncmp(text, "p50=", 4))
        bound = &gates->p50_us;
    else if (!strncmp(text, "p99=", 4))
        bound = &gates->p99_us;
    if (bound) {
        *bound = duration_us(text + 4, &end);
    } else if (!strncmp(text, "ratio=", 6)) {
        bound = &gates->ratio;
        *bound = strtod(text + 6, &end);
    }
    if (!bound || !(*bound > 0) || (*end && (*end != ',' || !end[1])))
        return NULL;
    return *end ? end + 1 : end;
}

static enum rg_options_result parse_gates(struct shared *shared)
{
    const char *text = shared->options.gate;

    while (text && *text)
        text = parse_gate(text, &shared->gates);
    if (shared->options.gate && !text)
        return rg_options_refuse(&program, "--gate cannot be '%s'",
                                 shared->options.gate);
    if (shared->gates.ratio > 0 && shared->options.plan.fault != RECOVERY_STOP)
        return rg_options_refuse(&program, "a ratio is for --fault stop");
    return RG_OPTIONS_RUN;
}

static enum rg_options_result contradiction(const struct options *options)
{
    const struct recovery_plan *plan = &options->plan;

    if (plan->bytes < sizeof(uint32_t) || plan->bytes > 1ull << 32)
        return rg_options_refuse(&program, "-b is 4 to 4G");
    if (plan->backend == RG_BACKEND_LEGACY && !plan->eager)
        return rg_options_refuse(
            &program, "--backend legacy, which replays no graphs, is for "
                      "--mode eager");
    if (plan->fault == RECOVERY_SOFT && (plan->deadline_ms || plan->window_ms))
        return rg_options_refuse(
            &program, "--deadline and --window are not for --fault soft");
    if (options->launch.ranks && options->launch.kind == RG_LAUNCH_MPI)
        return rg_options_refuse(
            &program, "--ranks is for --launch local; mpirun -n says it else");
    return RG_OPTIONS_RUN;
}

/* A stop is only noticed by a deadline, so that has to be known. */
static void settle(struct recovery_plan *plan)
{
    if (plan->fault != RECOVERY_STOP)
        return;
    if (!plan->deadline_ms)
        plan->deadline_ms = 500;
    if (!plan->window_ms)
        plan->window_ms = 200;
}

/* ---- rows --------------------------------------------------------------- */

static const char *device_name(const struct recovery_plan *plan)
{
    return plan->device == RG_DEVICE_CUDA ? "cuda" : "emu";
}

static const char *name_of(int index, const char *const *names)
{
    return names[index];
}

static const char *fault_name(const struct recovery_plan *plan)
{
    static const char *const names[] = {"kill", "stop", "soft"};

    return name_of(plan->fault, names);
}

static const char *role_name(int role)
{
    static const char *const names[] = {"any", "leaf", "coordinator"};

    return name_of(role, names);
}

static double bound_us(const struct recovery_plan *plan)
{
    return plan->fault == RECOVERY_STOP
               ? (plan->deadline_ms + plan->window_ms) * 1e3
               : NAN;
}

static json_t *real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* What every row says of the run, and its figures. */
static json_t *row_json(const struct run *run, const char *kind,
                        const double *us)
{
    json_t *object =
        json_pack("{s:s,s:s,s:i,s:s,s:s,s:s,s:I}", "kind", kind, "device",
                  device_name(run->plan), "ranks", run->job->size, "fault",
                  fault_name(run->plan), "phase", "any", "mode",
                  run->plan->eager ? "eager" : "replay", "bytes",
                  (json_int_t)run->plan->bytes);

    for (int f = 0; f < RECOVERY_FIGURES; f++) {
        char key[32];

        snprintf(key, sizeof key, "%s_us",
                 recovery_figure_name((enum recovery_figure)f));
        json_object_set_new(object, key, real_json(us[f]));
    }
    json_object_set_new(object, "bound_us", real_json(bound_us(run->plan)));
    json_object_set_new(object, "ratio",
                        real_json(us[RECOVERY_TOTAL] / bound_us(run->plan)));
    return object;
}

static void write_injection(const struct run *run, int i)
{
    const struct recovery_figures *figures = &run->figures[i];
    json_t *object = row_json(run, "recovery", figures->us);
    json_t *more = json_pack(
        "{s:s,s:i,s:i,s:I,s:b,s:b,s:i,s:I}", "role",
        role_name(figures->succeeded ? RECOVERY_COORDINATOR : RECOVERY_LEAF),
        "injection", i + 1, "victim", run->log.hits[i].victim, "epoch",
        (json_int_t)figures->epoch, "agreed", figures->agreed, "injected",
        figures->injected, "captures", figures->captures, "wrong",
        (json_int_t)figures->wrong);

    for (int f = 0; f < RECOVERY_TOTAL; f++) {
        char key[32];

        snprintf(key, sizeof key, "%s_through_us",
                 recovery_figure_name((enum recovery_figure)f));
        json_object_set_new(object, key, real_json(figures->through_us[f]));
    }
    json_object_update(object, more);
    json_decref(more);
    rg_report_json(run->report, object);
}

static void print_figures(const char *first, const double *us)
{
    printf(" %10s", first);
    for (int f = 0; f < RECOVERY_FIGURES; f++) {
        if (isnan(us[f]))
            printf(" %10s", "-");
        else
            printf(" %10.3f", us[f] * 1e-3);
    }
}

static void print_injection(const struct run *run, int i)
{
    const struct recovery_figures *figures = &run->figures[i];
    char first[16];

    snprintf(first, sizeof first, "%d", i + 1);
    print_figures(first, figures->us);
    printf(" %7d %-11s %5llu %8d %s\n", run->log.hits[i].victim,
           figures->succeeded ? "coordinator" : "leaf",
           (unsigned long long)figures->epoch, figures->captures,
           figures->agreed ? "yes" : "no");
}

/* Sums over all injections, for the summary. */
struct totals {
    int injected, agreed, captures;
};

static struct totals totals_of(const struct run *run)
{
    struct totals totals = {0};

    for (int i = 0; i < run->plan->injections; i++) {
        totals.injected += run->figures[i].injected;
        totals.agreed += run->figures[i].agreed;
        if (run->figures[i].captures > totals.captures)
            totals.captures = run->figures[i].captures;
    }
    return totals;
}

static void write_summary(const struct run *run, enum recovery_stat stat)
{
    const struct totals totals = totals_of(run);
    json_t *object = row_json(run, "recovery_summary", run->summary.us[stat]);
    json_t *more =
        json_pack("{s:s,s:s,s:i,s:i,s:i}", "stat", recovery_stat_name(stat),
                  "role", role_name(run->plan->role), "agreed", totals.agreed,
                  "injected", totals.injected, "captures", totals.captures);

    json_object_update(object, more);
    json_decref(more);
    rg_report_json(run->report, object);
}

static void print_columns(const struct run *run)
{
    rg_report_note(run->report,
                   "fault %s, role %s, %d injections, %s of %llu bytes, seed "
                   "%llu, device %s",
                   fault_name(run->plan), role_name(run->plan->role),
                   run->plan->injections,
                   run->plan->eager ? "launches" : "replays",
                   (unsigned long long)run->plan->bytes,
                   (unsigned long long)run->plan->seed, device_name(run->plan));
    rg_report_note(run->report,
                   "times in ms, each the largest of all survivors");
    printf("#%10s", "");
    for (int f = 0; f < RECOVERY_FIGURES; f++)
        printf(" %10s", recovery_figure_name((enum recovery_figure)f));
    if (run->shared->options.verbose)
        printf(" %7s %-11s %5s %8s %s", "victim", "role", "epoch", "captures",
               "agreed");
    putchar('\n');
}

static void print_summary(const struct run *run)
{
    const struct totals totals = totals_of(run);
    const double bound = bound_us(run->plan);

    for (int s = 0; s < RECOVERY_STATS; s++) {
        print_figures(recovery_stat_name((enum recovery_stat)s),
                      run->summary.us[s]);
        putchar('\n');
    }
    rg_report_note(run->report, "%d injected, agreed on %d; captured %d times",
                   totals.injected, totals.agreed, totals.captures);
    if (isfinite(bound))
        rg_report_note(run->report,
                       "deadline + window %.0f ms; total / that: p50 %.3f, max "
                       "%.3f",
                       bound * 1e-3,
                       run->summary.us[RECOVERY_P50][RECOVERY_TOTAL] / bound,
                       run->summary.us[RECOVERY_MAX][RECOVERY_TOTAL] / bound);
}

static void write_env(const struct run *run)
{
    struct rg_place *places = calloc((size_t)run->job->size, sizeof *places);
    const struct recovery_hello *hello = &run->log.hellos[0];
    const struct rg_report_env env = {
        .command = run->shared->command,
        .collective = rg_collective_name(RG_COLL_all_reduce),
        .device = (enum rg_device_kind)run->plan->device,
        .backend = (enum rg_backend)hello->backend,
        .info = hello->info,
        .places = places,
        .nranks = run->job->size,
        .hosts = run->job->hosts,
        .policy_hash = hello->policy_hash,
    };

    for (int r = 0; places && r < run->job->size; r++)
        places[r] = run->log.hellos[r].place;
    if (places)
        rg_report_env(run->report, &env);
    free(places);
}

/* All rows, at world rank 0. */
static void report(const struct run *run)
{
    write_env(run);
    print_columns(run);
    for (int i = 0; i < run->plan->injections; i++) {
        write_injection(run, i);
        if (run->shared->options.verbose)
            print_injection(run, i);
    }
    print_summary(run);
    for (int s = 0; s < RECOVERY_STATS; s++)
        write_summary(run, (enum recovery_stat)s);
}

/* ---- verdict ------------------------------------------------------------ */

/* What is wrong with an injection; null: nothing. */
static const char *complaint_about(const struct recovery_plan *plan,
                                   const struct recovery_figures *figures,
                                   enum rg_exit *code_out)
{
    *code_out = RG_EXIT_RECOVERY;
    if (figures->wrong) {
        *code_out = RG_EXIT_WRONG;
        return "wrong data";
    }
    if (!figures->agreed)
        return figures->cause;
    if (figures->captures != !plan->eager)
        return "graphs were captured anew";
    if (plan->role == RECOVERY_COORDINATOR && !figures->succeeded)
        return "the victim was not the coordinator";
    if (plan->role == RECOVERY_LEAF && figures->succeeded)
        return "the victim was the coordinator";
    return NULL;
}

static void judge_injection(struct run *run, int i)
{
    enum rg_exit code;
    const char *complaint = complaint_about(run->plan, &run->figures[i], &code);

    if (!complaint) {
        rg_verdict_pass(&run->verdict);
        return;
    }
    rg_report_note(run->report, "injection %d: %s", i + 1, complaint);
    rg_verdict_fail(&run->verdict, code);
}

/* What was not measured does not pass either. */
static void judge_gate(struct run *run, const char *name, double value,
                       double bound)
{
    if (!(bound > 0))
        return;
    if (value <= bound) {
        rg_verdict_pass(&run->verdict);
        return;
    }
    rg_report_note(run->report, "gate missed: %s is %.4g, at most %.4g", name,
                   value, bound);
    rg_verdict_fail(&run->verdict, RG_EXIT_GATE);
}

static void judge(struct run *run)
{
    const struct gates *gates = &run->shared->gates;
    const struct recovery_summary *summary = &run->summary;

    for (int i = 0; i < run->plan->injections; i++)
        judge_injection(run, i);
    if (run->log.code != RG_EXIT_PASS)
        rg_verdict_fail(&run->verdict, (enum rg_exit)run->log.code);
    judge_gate(run, "p50 (us)", summary->us[RECOVERY_P50][RECOVERY_TOTAL],
               gates->p50_us);
    judge_gate(run, "p99 (us)", summary->us[RECOVERY_P99][RECOVERY_TOTAL],
               gates->p99_us);
    judge_gate(run, "ratio",
               summary->us[RECOVERY_MAX][RECOVERY_TOTAL] / bound_us(run->plan),
               gates->ratio);
}

/* ---- main --------------------------------------------------------------- */

static int make_figures(struct run *run)
{
    const int n = run->plan->injections;

    run->figures = calloc((size_t)n, sizeof *run->figures);
    if (!run->figures)
        return RG_ENOMEM;
    for (int i = 0; i < n; i++)
        recovery_figures_of(&run->log, i, &run->figures[i]);
    return recovery_summary_of(run->figures, n, &run->summary);
}

/* Workers would find it out too, each for itself. */
static int check_device(const struct rg_job *job,
                        const struct recovery_plan *plan)
{
    const int devices = rg_device_count((enum rg_device_kind)plan->device);
    const int status = devices < 0 ? devices : devices ? RG_OK : RG_ENODEV;

    if (status != RG_OK && job->local_rank == 0)
        fprintf(stderr, "recovery_perf: device %s: %s\n", device_name(plan),
                rg_status_string(status));
    return status;
}

/* Nobody here asks for the change that lets a failed member go. The runtime
 * says what is no mode, and that all ranks must have the same. */
static int needs_caller(void)
{
    const char *mode = getenv("RG_MODE");

    return mode && strtoul(mode, NULL, 10) > 0;
}

/* RG_OK, or a usage error of the job that one rank tells. */
static int check_job(const struct rg_job *job, const struct recovery_plan *plan)
{
    const char *wrong = NULL;

    if (job->rank == 0 && needs_caller())
        wrong = "measures RG_MODE=0 alone: in the others a failed rank stays "
                "until the caller lets it go";
    else if (job->hosts > 1)
        wrong = "all ranks must share one host's clock";
    else if (plan->fault == RECOVERY_STOP && job->size < 3)
        wrong = "--fault stop needs 3 ranks: of 2, one is no majority";
    else if (job->size < 2 || job->size > RECOVERY_RANKS_MAX)
        wrong = "needs 2 to 64 ranks";
    if (wrong && job->rank == 0)
        fprintf(stderr, "recovery_perf: %s\n", wrong);
    return wrong ? RG_EINVAL : RG_OK;
}

static int play(struct run *run)
{
    int status = recovery_play(run->job, run->plan, &run->log);

    if (status == RG_OK)
        status = make_figures(run);
    if (status != RG_OK) {
        fprintf(stderr, "recovery_perf: rank %d: %s\n", run->job->rank,
                rg_status_string(status));
        return rg_exit_of_status(status);
    }
    /* Workers have refused their settings: there is nothing to report. */
    if (run->log.code == RG_EXIT_USAGE)
        return RG_EXIT_USAGE;
    if (run->job->rank == 0)
        report(run);
    judge(run);
    rg_report_verdict(run->report, &run->verdict);
    return rg_report_code(run->report, rg_verdict_exit(&run->verdict));
}

static int rank_main(const struct rg_job *job, void *arg)
{
    const struct shared *shared = arg;
    struct run run = {
        .shared = shared, .plan = &shared->options.plan, .job = job};
    int status = check_job(job, run.plan);
    int code;

    if (status == RG_OK)
        status = rg_report_create(program.name, shared->options.json, job->rank,
                                  &run.report);
    code = status == RG_OK ? 0 : RG_EXIT_USAGE;
    if (status == RG_OK && check_device(job, run.plan) != RG_OK)
        code = RG_EXIT_ENVIRONMENT;
    code = rg_job_agree(job, code);
    if (code == 0)
        code = play(&run);
    free(run.figures);
    recovery_log_fini(&run.log);
    rg_report_destroy(run.report);
    return code < 0 ? rg_exit_of_status(code) : code;
}

static enum rg_options_result parse(struct shared *shared, int argc,
                                    char **argv)
{
    enum rg_options_result result =
        rg_options_parse(&program, argc, argv, &shared->options);

    if (result == RG_OPTIONS_RUN)
        result = contradiction(&shared->options);
    if (result == RG_OPTIONS_RUN)
        result = parse_gates(shared);
    settle(&shared->options.plan);
    return result;
}

int main(int argc, char **argv)
{
    struct shared shared = {.options.plan = {.injections = 20,
                                             .bytes = 8,
                                             .seed = 1,
                                             .pause_ms = 600,
                                             .timeout_s = 300}};
    enum rg_options_result result;

    /* That ranks die is no news here. */
    setenv("RG_LOG", "error", 0);
    if (recovery_worker_present())
        return recovery_worker_main();
    result = parse(&shared, argc, argv);
    if (result != RG_OPTIONS_RUN)
        return rg_options_exit(result);
    rg_options_command(program.name, argc, argv, shared.command,
                       sizeof shared.command);
    return rg_job_run(&shared.options.launch, rank_main, &shared);
}
