/*
 * rg_validate: does every collective give the right bits, on every rank,
 * again and again? Cases have names; a pattern chooses. See --help.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/options.h"
#include "harness/output.h"
#include "harness/preference.h"
#include "harness/worker.h"
#include "validate/messages.h"
#include "validate/recovery.h"
#include "validate/selection.h"
#include "validate/suite.h"

static const struct rg_suite_options defaults = {
    .pattern = "*",
    .seed = 1,
    .replays = 1000,
    .timeout_s = 120,
};

#define AT(field) offsetof(struct rg_suite_options, field)

static const struct rg_option options_table[] = {
    {RG_OPTION_CHOICE, 0, "device", AT(device), "|emu|cuda", 0, 0, "NAME",
     "where the collectives run"},
    {RG_OPTION_CHOICE, 0, "backend", AT(backend), RG_PREFERENCE_VALUES, 0, 0,
     "NAME",
     "which backend to ask for (what the preference variables say, else new)"},
    {RG_OPTION_TEXT, 0, "case", AT(pattern), NULL, 0, 0, "GLOB,...",
     "run the cases whose names match one of these (default '*')"},
    {RG_OPTION_SIZE, 0, "seed", AT(seed), NULL, 0, 0, "S",
     "of inputs and of the pairwise array (default 1)"},
    {RG_OPTION_FLAG, 0, "list", AT(list), NULL, 0, 0, NULL,
     "print the names of the cases and stop"},
    {RG_OPTION_FLAG, 0, "full", AT(full), NULL, 0, 0, NULL,
     "the full product instead of the pairwise array"},
    {RG_OPTION_INT, 0, "replays", AT(replays), NULL, 1, 1000000000, "N",
     "at most of a graph in a case (default 1000)"},
    RG_OPTIONS_LAUNCH(struct rg_suite_options),
    {RG_OPTION_INT, 'T', "timeout", AT(timeout_s), NULL, 1, 86400, "S",
     "seconds without progress before the run is ended (default 120)"},
    {RG_OPTION_INT, 0, "team-width", AT(team_width), NULL, 1, 16, "N",
     "threads of a team on the emulated device (default 1)"},
    {RG_OPTION_INT, 0, "teams", AT(teams), NULL, 1, 64, "N",
     "teams of a launch on the emulated device (default: by cores)"},
    {RG_OPTION_TEXT, 'J', "json", AT(json), NULL, 0, 0, "FILE",
     "write JSON lines: a line a case, and the verdict"},
    {RG_OPTION_CHOICE, 0, "plant", AT(plant), "|none|flip|hang|stall", 0, 0,
     "FAULT", "for the plant cases: let the last rank go wrong"},
    {RG_OPTION_TEXT, 0, "fault", AT(fault), NULL, 0, 0, "FILE|TEXT",
     "run the recovery.plan cases, with this fault plan"},
};

static const struct rg_program program = {
    .name = "rg_validate",
    .summary = "Checks collectives against an independent oracle.",
    .options = options_table,
    .noptions = sizeof(options_table) / sizeof(options_table[0]),
    .notes =
        "Exit codes: 0 all passed, 1 wrong data, 2 usage, 3 no device or "
        "runtime,\n4 timeout or hang, 6 recovery failed, 77 everything was "
        "skipped.\n",
};

static int add_cases(const struct rg_suite_options *options,
                     struct rg_case_list *list)
{
    if (options->fault != NULL)
        return rg_cases_recovery(list, options);
    if (rg_cases_results(list, options) != RG_OK ||
        rg_cases_replay(list, options) != RG_OK ||
        rg_cases_selection(list) != RG_OK || rg_cases_policy(list) != RG_OK ||
        rg_cases_route(list) != RG_OK || rg_cases_traffic(list) != RG_OK ||
        rg_cases_recovery(list, options) != RG_OK ||
        rg_cases_messages(list) != RG_OK ||
        rg_cases_plant(list, options) != RG_OK)
        return RG_ENOMEM;
    return RG_OK;
}

/* One of the patterns, between commas, matches. */
static int is_chosen(const char *patterns, const char *name)
{
    char pattern[160];

    for (;;) {
        const size_t length = strcspn(patterns, ",");

        snprintf(pattern, sizeof(pattern), "%.*s", (int)length, patterns);
        if (fnmatch(pattern, name, 0) == 0)
            return 1;
        if (patterns[length] == '\0')
            return 0;
        patterns += length + 1;
    }
}

/* The chosen ones, in order. */
static int build_list(const struct rg_suite_options *options,
                      struct rg_case_list *list)
{
    int kept = 0;

    if (add_cases(options, list) != RG_OK)
        return RG_ENOMEM;
    for (int i = 0; i < list->n; i++) {
        if (is_chosen(options->pattern, list->cases[i].name))
            list->cases[kept++] = list->cases[i];
    }
    list->n = kept;
    return RG_OK;
}

/* The header: where the ranks run. Collective; RG_OK or the failed call's. */
static int print_header(struct rg_suite *suite)
{
    const struct rg_job *job = suite->job;
    struct rg_report_env env = {
        .command = suite->options->command,
        .collective = rg_collective_name(RG_COLL_all_reduce),
        .device = (enum rg_device_kind)suite->options->device,
        .nranks = job->size,
        .hosts = job->hosts,
    };
    struct rg_place *places = calloc((size_t)job->size, sizeof *places);
    struct rg_topo *topo = NULL;
    struct rg_view_info view;
    struct rg_place mine;
    int status = places != NULL ? RG_OK : RG_ENOMEM;

    if (status == RG_OK)
        status = rg_topo_create(env.device == RG_DEVICE_CUDA, &topo);
    if (status == RG_OK)
        status = rg_context_device_info(suite->context, &env.info);
    if (status == RG_OK)
        status = rg_comm_view(suite->comm, &view);
    if (status == RG_OK) {
        rg_topo_place(topo, job, &env.info, &mine);
        status = rg_comm_gather(suite->comm, &mine, sizeof mine, places);
    }
    if (status == RG_OK) {
        env.backend = view.backend;
        env.policy_hash = view.policy_hash;
        env.places = places;
        rg_report_env(suite->report, &env);
    }
    rg_topo_destroy(topo);
    free(places);
    return status;
}

/* Everything between the first context and the verdict. */
static int run_suite(struct rg_suite *suite, const struct rg_case_list *list)
{
    int status = rg_suite_open(suite, 0);

    if (status == RG_OK)
        status = print_header(suite);
    if (status != RG_OK) {
        rg_suite_close(suite);
        if (suite->job->rank == 0 && !rg_status_is_told(status))
            rg_say(program.name, "cannot start: %s", rg_status_string(status));
        return rg_exit_of_status(status);
    }
    rg_report_note(suite->report, "%d cases, seed %llu", list->n,
                   (unsigned long long)suite->options->seed);
    rg_suite_run(suite, list);
    rg_report_verdict(suite->report, &suite->verdict);
    rg_suite_close(suite);
    return rg_report_code(suite->report, rg_verdict_exit(&suite->verdict));
}

/* Whether the ranks that --fault names are there; rank 0 says it. */
static int check_plan(const struct rg_job *job,
                      const struct rg_suite_options *options)
{
    char cause[200];

    if (options->fault == NULL ||
        rg_recovery_check_plan(options->fault, job->size, cause,
                               sizeof(cause)) == RG_OK)
        return RG_OK;
    if (job->rank == 0)
        rg_say(program.name, "--fault: %s", cause);
    return RG_EINVAL;
}

static int rank_main(const struct rg_job *job, void *arg)
{
    struct rg_suite suite = {.options = arg, .job = job};
    struct rg_case_list list = {0};
    int status = check_plan(job, suite.options);
    int code;

    if (status == RG_OK)
        status = rg_report_create(program.name, suite.options->json, job->rank,
                                  &suite.report);
    code = rg_job_agree(job, status == RG_OK ? 0 : RG_EXIT_USAGE);

    if (code != 0)
        goto error;
    code = RG_EXIT_ENVIRONMENT;
    if (build_list(suite.options, &list) == RG_OK &&
        rg_watchdog_create(job->rank, suite.options->timeout_s, &suite.dog) ==
            RG_OK)
        code = run_suite(&suite, &list);
error:
    rg_watchdog_destroy(suite.dog);
    rg_case_list_fini(&list);
    rg_report_destroy(suite.report);
    return code < 0 ? rg_exit_of_status(code) : code;
}

static enum rg_options_result
look_at_plan(const struct rg_suite_options *options)
{
    char cause[200];

    if (rg_output_is_same(options->json, options->fault))
        return rg_options_refuse(&program, "-J would overwrite --fault");
    if (rg_recovery_check_plan(options->fault, 0, cause, sizeof(cause)) ==
        RG_OK)
        return RG_OPTIONS_RUN;
    return rg_options_refuse(&program, "--fault: %s", cause);
}

/* --list, and a pattern that matches nothing, need no ranks. */
static enum rg_options_result
look_at_list(const struct rg_suite_options *options)
{
    struct rg_case_list list = {0};
    enum rg_options_result result = RG_OPTIONS_RUN;

    if (build_list(options, &list) == RG_OK && list.n == 0)
        result = rg_options_refuse(&program, "no case matches '%s'",
                                   options->pattern);
    if (options->list && result == RG_OPTIONS_RUN) {
        for (int i = 0; i < list.n && rg_launch_env_rank() == 0; i++)
            puts(list.cases[i].name);
        result = RG_OPTIONS_HELP;
    }
    rg_case_list_fini(&list);
    return result;
}

/* A process that a rank's supervisor has started. */
static int be_worker(void)
{
    const struct rg_work *work;
    struct rg_worker *worker;
    size_t bytes;
    int status = rg_worker_open(&worker);
    int code;

    if (status != RG_OK)
        return rg_exit_of_status(status);
    work = rg_worker_scenario(worker, &bytes);
    code = work->kind == RG_WORK_SELECTION  ? rg_selection_worker(worker)
           : work->kind == RG_WORK_MESSAGES ? rg_messages_worker(worker)
                                            : rg_recovery_worker(worker);
    rg_worker_close(worker);
    return code;
}

int main(int argc, char **argv)
{
    struct rg_suite_options options = defaults;
    enum rg_options_result result =
        rg_options_parse(&program, argc, argv, &options);

    if (rg_worker_present())
        return be_worker();
    if (result == RG_OPTIONS_RUN && options.fault != NULL)
        result = look_at_plan(&options);
    if (result == RG_OPTIONS_RUN)
        result = look_at_list(&options);
    if (result != RG_OPTIONS_RUN)
        return rg_options_exit(result);
    rg_options_command(program.name, argc, argv, options.command,
                       sizeof options.command);
    return rg_job_run(&options.launch, rank_main, &options);
}
