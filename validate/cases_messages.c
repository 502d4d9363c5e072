/*
 * messages.*: send and receive while members die (messages.h). Each case is
 * played by workers of its own, as those of recovery.*.
 */
#include <stdio.h>

#include "harness/supervisor.h"
#include "validate/findings.h"
#include "validate/messages.h"
#include "validate/suite.h"

enum { DEADLINE_MS = 60000 };

enum who { NOBODY = 0, FIRST, LAST };

static const struct row {
    const char *name;
    int ranks; /* at least */
    enum who victim;
    int replay, withheld;
} rows[] = {
    {"peace.eager", 1, NOBODY, 0, 0},
    {"peace.replay", 1, NOBODY, 1, 0},
    {"death.leaf.eager", 2, LAST, 0, 0},
    {"death.leaf.replay", 2, LAST, 1, 0},
    {"death.coordinator.eager", 2, FIRST, 0, 0},
    {"death.coordinator.replay", 2, FIRST, 1, 0},
    {"withheld.eager", 2, NOBODY, 0, 1},
    {"withheld.replay", 2, NOBODY, 1, 1},
};

enum { NROWS = sizeof(rows) / sizeof(rows[0]) };

/* ---- the judgement ------------------------------------------------------ */

static void judge_rank(const struct rg_supervision *supervision, int rank,
                       struct rg_case_result *result)
{
    const struct rg_fate *fate = &supervision->ranks[rank].fate;
    struct rg_record record;
    size_t cursor = 0;
    int reports = 0;

    while (rg_supervision_next(supervision, rank, &cursor, &record)) {
        const struct rg_findings *report = record.data;

        if (record.kind != RG_RECORD_REPORT || record.bytes != sizeof(*report))
            continue;
        reports++;
        if (report->failed)
            rg_case_fail(result, RG_EXIT_WRONG, "rank %d: %.200s", rank,
                         report->text);
    }
    rg_findings_judge_fate(fate, rank, result);
    if (reports == 0)
        rg_case_fail(result, RG_EXIT_RECOVERY, "rank %d: no report", rank);
}

/* ---- playing ------------------------------------------------------------ */

static const char *inapplicable(const struct rg_suite *suite,
                                const struct row *row)
{
    if (suite->job->size < row->ranks ||
        suite->job->size > RG_MESSAGES_RANKS_MAX)
        return "needs 2 to 32 ranks";
    if (!rg_suite_runs(suite, RG_COLL_sendrecv, NULL))
        return "there is no algorithm for it";
    return NULL;
}

static void run_messages(struct rg_suite *suite, const struct rg_case *test,
                         struct rg_case_result *result)
{
    const struct row *row = &rows[test->param[0]];
    const struct rg_suite_options *options = suite->options;
    const char *why = inapplicable(suite, row);
    const struct rg_messages_scenario scenario = {
        .work = {.kind = RG_WORK_MESSAGES},
        .device = options->device,
        .team_width = options->team_width,
        .teams = options->teams,
        .victim = row->victim == FIRST  ? 0
                  : row->victim == LAST ? suite->job->size - 1
                                        : -1,
        .replay = row->replay,
        .withheld = row->withheld};
    const struct rg_scenario played = {.payload = &scenario,
                                       .bytes = sizeof(scenario),
                                       .deadline_ms = DEADLINE_MS};
    struct rg_supervision supervision;

    if (why != NULL) {
        result->skipped = 1;
        snprintf(result->text, sizeof(result->text), "%s", why);
        return;
    }
    if (rg_case_expect_ok(result, rg_suite_play(suite, &played, &supervision),
                          "supervision") != RG_OK)
        return;
    for (int rank = 0; rank < supervision.size; rank++)
        judge_rank(&supervision, rank, result);
    rg_supervision_fini(&supervision);
}

int rg_cases_messages(struct rg_case_list *list)
{
    int status = RG_OK;

    for (int row = 0; row < NROWS && status == RG_OK; row++) {
        struct rg_case test = {.run = run_messages, .param = {row}};

        snprintf(test.name, sizeof(test.name), "messages.%s", rows[row].name);
        status = rg_case_list_add(list, &test);
    }
    return status;
}
