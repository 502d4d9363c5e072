#include "validate/suite.h"

#include <config.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algos/algos.h"
#include "harness/call.h"
#include "harness/preference.h"
#include "harness/survivors.h"

/* ---- lists of cases ----------------------------------------------------- */

int rg_case_list_add(struct rg_case_list *list, const struct rg_case *test)
{
    if (list->n == list->room) {
        int room = list->room ? 2 * list->room : 64;
        struct rg_case *cases =
            realloc(list->cases, (size_t)room * sizeof(*cases));

        if (cases == NULL)
            return RG_ENOMEM;
        list->cases = cases;
        list->room = room;
    }
    list->cases[list->n++] = *test;
    return RG_OK;
}

void rg_case_list_fini(struct rg_case_list *list)
{
    free(list->cases);
    memset(list, 0, sizeof(*list));
}

const char *rg_suite_algorithm(enum rg_collective collective, int n)
{
    for (int i = 0; rg_algos[i] != NULL; i++) {
        if (rg_algos[i]->collective == collective && n-- == 0)
            return rg_algos[i]->name;
    }
    return NULL;
}

/* ---- what a case notes -------------------------------------------------- */

void rg_case_fail(struct rg_case_result *result, enum rg_exit code,
                  const char *format, ...)
{
    va_list arguments;

    if (result->failed)
        return;
    result->failed = code;
    va_start(arguments, format);
    vsnprintf(result->text, sizeof(result->text), format, arguments);
    va_end(arguments);
}

int rg_case_can_go_on(const struct rg_case_result *result)
{
    return !result->failed || result->failed == RG_EXIT_WRONG;
}

int rg_case_expect_ok(struct rg_case_result *result, int status,
                      const char *what)
{
    int code = rg_exit_of_status(status);

    if (status != RG_OK)
        rg_case_fail(result,
                     code == RG_EXIT_USAGE ? RG_EXIT_WRONG : (enum rg_exit)code,
                     "%s: %s", what, rg_status_string(status));
    return status;
}

/* 64-bit FNV-1a. */
void rg_case_digest(struct rg_case_result *result, const void *data,
                    size_t bytes)
{
    const unsigned char *at = data;
    uint64_t digest = result->digest ^ UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < bytes; i++)
        digest = (digest ^ at[i]) * UINT64_C(0x100000001b3);
    result->digest = digest;
}

int rg_case_synchronize(struct rg_case_result *result, struct rg_stream *stream,
                        struct rg_comm *comm)
{
    int status = rg_case_expect_ok(result, rg_stream_synchronize(stream),
                                   "rg_stream_synchronize");

    if (status != RG_OK)
        return status;
    return rg_case_expect_ok(result, rg_comm_error(comm), "rg_comm_error");
}

int rg_suite_plants(const struct rg_suite *suite, enum rg_plant plant)
{
    return suite->options->plant == (int)plant &&
           suite->job->rank == suite->job->size - 1;
}

/* ---- conditions --------------------------------------------------------- */

int rg_suite_open(struct rg_suite *suite, uint64_t first_seq)
{
    const struct rg_suite_options *options = suite->options;
    struct rg_context_config config;
    struct rg_view_info view;
    int status = rg_job_context_config(
        suite->job, (enum rg_device_kind)options->device, &config);

    if (status != RG_OK)
        return status;
    config.backend = rg_preference((enum rg_backend)options->backend);
    config.algos = suite->algos ? suite->algos : rg_algos;
    config.emu_team_width = options->team_width;
    config.emu_max_teams = options->teams;
    config.first_seq = first_seq;
    status = rg_context_create(&config, &suite->context);
    if (status == RG_OK)
        status = rg_comm_create(suite->context, &suite->comm);
    if (status == RG_OK)
        status = rg_comm_view(suite->comm, &view);
    if (status == RG_OK)
        status = rg_stream_create(suite->context, &suite->stream);
    if (status != RG_OK) {
        rg_suite_close(suite);
        return status;
    }
    suite->first_seq = first_seq;
    suite->backend = view.backend;
    suite->algorithm = NULL;
    rg_watchdog_watch(suite->dog, suite->comm);
    return RG_OK;
}

void rg_suite_close(struct rg_suite *suite)
{
    rg_watchdog_watch(suite->dog, NULL);
    rg_stream_destroy(suite->stream);
    rg_comm_destroy(suite->comm);
    rg_context_destroy(suite->context);
    suite->stream = NULL;
    suite->comm = NULL;
    suite->context = NULL;
}

static int same_name(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

int rg_suite_select(struct rg_suite *suite, enum rg_collective collective,
                    const char *algorithm)
{
    char text[80] = "";
    int status;

    if (same_name(suite->algorithm, algorithm) &&
        (algorithm == NULL || suite->collective == collective))
        return RG_OK;
    if (algorithm != NULL)
        snprintf(text, sizeof(text), "%s=%s", rg_collective_name(collective),
                 algorithm);
    status = rg_comm_set_policy(suite->comm, text);
    if (status == RG_OK) {
        suite->collective = collective;
        suite->algorithm = algorithm;
    }
    return status;
}

int rg_suite_runs(const struct rg_suite *suite, enum rg_collective collective,
                  const char *algorithm)
{
    struct rg_comm_limits limits;

    if (suite->backend == RG_BACKEND_LEGACY)
        return algorithm == NULL &&
               rg_call_is_served(collective, RG_BACKEND_LEGACY);
    for (int i = 0; rg_algos[i] != NULL; i++)
        if (rg_algos[i]->collective == collective &&
            (algorithm == NULL || strcmp(rg_algos[i]->name, algorithm) == 0) &&
            rg_comm_limits(suite->comm, rg_algos[i], &limits) == RG_OK &&
            limits.max_bytes > 0)
            return 1;
    return 0;
}

/* Types whose reductions this build has. */
static unsigned built_types(const struct rg_suite *suite)
{
#define X(name) | RG_TYPE_BIT(RG_##name)
    return suite->options->device == RG_DEVICE_CUDA ? 0 RG_CUDA_DTYPE_LIST(X)
                                                    : 0 RG_EMU_DTYPE_LIST(X);
#undef X
}

/* Why the case says nothing about this build or backend, or null. */
static const char *inapplicable(const struct rg_suite *suite,
                                const struct rg_case *test)
{
    /* A case that is about none of these says so itself. */
    const int any =
        test->collective == RG_COLL_all_reduce && test->algorithm == NULL;

    if (suite->backend != RG_BACKEND_LEGACY &&
        test->reduced & ~built_types(suite))
        return "reductions of its types are not built";
    if (suite->backend != RG_BACKEND_LEGACY)
        return any || rg_suite_runs(suite, test->collective, test->algorithm)
                   ? NULL
                   : "no such algorithm runs by these routes";
    if (test->captures)
        return "the legacy backend cannot be captured";
    if (test->algorithm != NULL)
        return "the legacy backend has one algorithm only";
    if (!rg_suite_runs(suite, test->collective, NULL))
        return "the legacy backend has no such collective";
    return NULL;
}

static int prepare(struct rg_suite *suite, const struct rg_case *test)
{
    int status = RG_OK;

    if (suite->context != NULL &&
        (suite->first_seq != test->first_seq || suite->algos != test->algos))
        rg_suite_close(suite);
    suite->algos = test->algos;
    if (suite->context == NULL)
        status = rg_suite_open(suite, test->first_seq);
    if (status == RG_OK && !inapplicable(suite, test))
        status = rg_suite_select(suite, test->collective, test->algorithm);
    return status;
}

/* ---- supervisors -------------------------------------------------------- */

/* What MPI would wait for in vain: the members that are left hear it here. */
static int allgather(void *arg, const void *in, void *out, size_t bytes)
{
    struct rg_suite *suite = arg;
    struct rg_view_info view;
    int status = rg_comm_gather(suite->comm, in, bytes, out);

    if (status == RG_OK)
        status = rg_comm_view(suite->comm, &view);
    if (status == RG_OK && view.nranks < suite->job->size)
        status = RG_EFAILED;
    return status;
}

int rg_suite_play(struct rg_suite *suite, const struct rg_scenario *scenario,
                  struct rg_supervision *supervision_out)
{
    struct rg_job job = *suite->job;

    /* Where there is no group meanwhile, MPI has to do. */
    if (suite->comm != NULL)
        job.bootstrap =
            (struct rg_bootstrap){.arg = suite, .allgather = allgather};
    return rg_supervisor_play(&job, scenario, supervision_out);
}

/* ---- verdicts ----------------------------------------------------------- */

/*
 * The merged finding: the worst rank's, the first of equals. Returns 1 when
 * no rank failed but their outputs differ, which fails the case too.
 */
static int merge(const struct rg_case_result *all, int nranks,
                 struct rg_case_result *merged_out)
{
    int worst = 0;
    int other = 0;

    for (int rank = 1; rank < nranks; rank++) {
        if (rg_exit_worse(all[worst].failed, all[rank].failed) !=
            all[worst].failed)
            worst = rank;
        if (all[rank].digest != all[0].digest)
            other = rank;
    }
    *merged_out = all[worst];
    if (all[worst].failed) {
        snprintf(merged_out->text, sizeof(merged_out->text), "rank %d: %.200s",
                 worst, all[worst].text);
        return 0;
    }
    if (other)
        rg_case_fail(merged_out, RG_EXIT_WRONG,
                     "rank %d: output differs from rank 0's", other);
    return other != 0;
}

static void print_case(struct rg_suite *suite, const struct rg_case *test,
                       const struct rg_case_result *merged)
{
    const struct rg_verdict *v = &suite->verdict;
    const char *outcome = merged->failed    ? "failed"
                          : merged->skipped ? "skipped"
                                            : "passed";

    rg_report_json(suite->report,
                   json_pack("{s:s, s:s, s:s, s:s}", "kind", "case", "name",
                             test->name, "outcome", outcome, "text",
                             merged->text));
    if (!rg_report_speaks(suite->report))
        return;
    printf("%s %ld - %s%s%s\n", merged->failed ? "not ok" : "ok",
           v->passed + v->failed + v->skipped, test->name,
           merged->skipped ? " # SKIP " : "",
           merged->skipped ? merged->text : "");
    if (merged->failed)
        printf("# %s: %s\n", test->name, merged->text);
    fflush(stdout);
}

static void count(struct rg_suite *suite, const struct rg_case_result *merged)
{
    if (merged->failed)
        rg_verdict_fail(&suite->verdict, (enum rg_exit)merged->failed);
    else if (merged->skipped)
        rg_verdict_skip(&suite->verdict);
    else
        rg_verdict_pass(&suite->verdict);
}

/*
 * Runs the case here and exchanges what the ranks found. *differ_out: they
 * hold different bits and none could say which are wrong.
 */
static int run_once(struct rg_suite *suite, const struct rg_case *test,
                    struct rg_case_result *all,
                    struct rg_case_result *merged_out, int *differ_out)
{
    const char *why = inapplicable(suite, test);
    const size_t bytes = (size_t)suite->job->size * sizeof(*all);
    struct rg_case_result mine = {.number = suite->job->rank + 1};
    int status;

    rg_watchdog_kick(suite->dog);
    memset(all, 0, bytes);
    mine.skipped = why != NULL;
    if (why != NULL)
        snprintf(mine.text, sizeof(mine.text), "%s", why);
    else
        test->run(suite, test, &mine);
    status = rg_comm_gather(suite->comm, &mine, sizeof(mine), all);
    if (status == RG_OK && all[suite->job->size - 1].number != suite->job->size)
        status = RG_EFAILED;
    if (status != RG_OK) {
        rg_case_expect_ok(&mine, status, "the ranks' findings are not known");
        *merged_out = mine;
        *differ_out = 0;
        return status;
    }
    *differ_out = merge(all, suite->job->size, merged_out);
    return RG_OK;
}

/*
 * Ranks that compared only their shares and hold different bits run the case
 * once more and compare everything, to name the element.
 */
static int run_twice(struct rg_suite *suite, const struct rg_case *test,
                     struct rg_case_result *all,
                     struct rg_case_result *merged_out)
{
    struct rg_case_result again;
    int differ;
    int status = run_once(suite, test, all, merged_out, &differ);

    if (!differ)
        return status;
    suite->check_all = 1;
    status = run_once(suite, test, all, &again, &differ);
    suite->check_all = 0;
    if (again.failed)
        *merged_out = again;
    return status;
}

/*
 * A rank of the job, not a worker that was to die, is gone: that is what has
 * failed, whatever the others have seen of it. But whom they waited for until
 * their deadline may live and hang, and that is said already.
 */
static int notice_death(struct rg_suite *suite, int status,
                        struct rg_case_result *merged)
{
    char text[sizeof(merged->text)];

    if (suite->comm == NULL || merged->failed == RG_EXIT_TIMEOUT ||
        !rg_survivors(suite->comm, suite->job->size, status != RG_OK,
                      suite->report, text, sizeof(text)))
        return status;
    *merged = (struct rg_case_result){0};
    rg_case_fail(merged, RG_EXIT_RECOVERY, "%s: the run ends here", text);
    return RG_EFAILED;
}

static int run_case(struct rg_suite *suite, const struct rg_case *test,
                    struct rg_case_result *all)
{
    struct rg_case_result merged = {0};
    int status = prepare(suite, test);

    if (status != RG_OK)
        rg_case_expect_ok(&merged, status, "preparing the case");
    else
        status = run_twice(suite, test, all, &merged);
    status = notice_death(suite, status, &merged);
    count(suite, &merged);
    print_case(suite, test, &merged);
    if (merged.failed && status == RG_OK)
        rg_suite_close(suite);
    return status;
}

int rg_suite_run(struct rg_suite *suite, const struct rg_case_list *list)
{
    struct rg_case_result *all = calloc((size_t)suite->job->size, sizeof(*all));
    int status = all != NULL ? RG_OK : RG_ENOMEM;

    for (int i = 0; i < list->n && status == RG_OK; i++)
        status = run_case(suite, &list->cases[i], all);
    free(all);
    return status;
}
