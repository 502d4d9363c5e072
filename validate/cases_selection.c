/*
 * selection.backend.*: what ranks ask for, and what the group then is. Each
 * case is played by workers of its own, as those of recovery.*.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/options.h"
#include "harness/supervisor.h"
#include "validate/selection.h"
#include "validate/suite.h"

enum { DEADLINE_MS = 60000 };

/* Ranks that a row speaks of. */
enum who { NOBODY = 0, FIRST, LAST };

#define ROW(row_name, row_ranks, row_script, row_all, ...)                     \
    {                                                                          \
        .name = row_name, .ranks = row_ranks,                                  \
        .script = RG_SELECTION_##row_script, .all = RG_WISH_##row_all,         \
        __VA_ARGS__                                                            \
    }

static const struct selection {
    const char *name;
    int ranks; /* at least */
    enum rg_selection_script script;
    enum rg_wish all; /* but */
    enum who who;     /* this one, */
    enum rg_wish its; /* who wishes for that */
    enum who victim;
    int warnings; /* in the whole group */
    int queue;    /* launches that wait when the victim dies */
    int no_route; /* devices do not reach each other */
} selections[] = {
    ROW("new", 1, COLLECTIVES, NEW),
    ROW("legacy", 1, COLLECTIVES, LEGACY),
    ROW("unset", 1, COLLECTIVES, NONE),
    ROW("legacy_at_first", 2, COLLECTIVES, NEW, .who = FIRST,
        .its = RG_WISH_LEGACY, .warnings = 1),
    ROW("legacy_at_last", 2, COLLECTIVES, NEW, .who = LAST,
        .its = RG_WISH_LEGACY, .warnings = 1),
    ROW("unset_at_last", 2, COLLECTIVES, NEW, .who = LAST, .its = RG_WISH_NONE,
        .warnings = 1),
    ROW("new_at_last", 2, COLLECTIVES, LEGACY, .who = LAST, .its = RG_WISH_NEW,
        .warnings = 1),
    ROW("death.new", 2, COLLECTIVES, NEW, .victim = LAST),
    ROW("death.legacy", 2, COLLECTIVES, LEGACY, .victim = LAST),
    ROW("death.of_first", 2, COLLECTIVES, LEGACY, .victim = FIRST),
    ROW("death.legacy_at_last", 3, COLLECTIVES, NEW, .who = LAST,
        .its = RG_WISH_LEGACY, .victim = FIRST, .warnings = 1),
    /* Whom the group fell back for is gone. */
    ROW("death.of_legacy", 2, COLLECTIVES, NEW, .who = LAST,
        .its = RG_WISH_LEGACY, .victim = LAST, .warnings = 1),
    /* What is queued for one backend when the group turns to the other. */
    ROW("death.of_legacy.queue", 3, COLLECTIVES, NEW, .who = LAST,
        .its = RG_WISH_LEGACY, .victim = LAST, .warnings = 1, .queue = 8),
    ROW("death.legacy.queue", 3, COLLECTIVES, LEGACY, .victim = LAST,
        .queue = 8),
    ROW("no_route", 2, COLLECTIVES, LEGACY, .victim = LAST, .no_route = 1),
    ROW("no_route.new", 2, COLLECTIVES, NEW, .warnings = 1, .no_route = 1),
    ROW("no_route.of_legacy", 3, COLLECTIVES, NEW, .who = FIRST,
        .its = RG_WISH_LEGACY, .victim = FIRST, .warnings = 1, .no_route = 1),
    ROW("contradiction", 1, REFUSED, BOTH),
    ROW("contradiction_at_last", 2, REFUSED, NEW, .who = LAST,
        .its = RG_WISH_BOTH),
    ROW("wrong_value", 1, REFUSED, WRONG),
    ROW("wrong_value_at_first", 2, REFUSED, NEW, .who = FIRST,
        .its = RG_WISH_WRONG),
    ROW("join_refused", 2, JOIN_REFUSED, NEW, .victim = LAST),
    ROW("join_refused.of_first", 2, JOIN_REFUSED, NEW, .victim = FIRST),
    ROW("join", 3, JOIN, NEW, .victim = LAST, .warnings = 1),
    ROW("join.of_first", 3, JOIN, NEW, .victim = FIRST, .warnings = 1),
};

enum { N_SELECTIONS = sizeof(selections) / sizeof(selections[0]) };

static int rank_of(enum who who, int size)
{
    return who == NOBODY ? -1 : who == FIRST ? 0 : size - 1;
}

/* ---- the judgement ------------------------------------------------------ */

/* Of the life that the record is of; its later reports replace earlier ones. */
static const struct rg_selection_report *
report_of(const struct rg_record *record)
{
    return record->kind == RG_RECORD_REPORT &&
                   record->bytes == sizeof(struct rg_selection_report)
               ? record->data
               : NULL;
}

/* Returns how many warnings the rank's processes have given. */
static int judge_rank(const struct rg_supervision *supervision, int rank,
                      struct rg_case_result *result)
{
    const struct rg_fate *fate = &supervision->ranks[rank].fate;
    struct rg_record record;
    size_t cursor = 0;
    int warnings = 0;
    int reports = 0;

    while (rg_supervision_next(supervision, rank, &cursor, &record)) {
        const struct rg_selection_report *report = report_of(&record);

        if (report == NULL)
            continue;
        reports++;
        warnings += report->warnings;
        if (report->findings.failed)
            rg_case_fail(result, RG_EXIT_WRONG, "rank %d, process %d: %.200s",
                         rank, record.life + 1, report->findings.text);
    }
    rg_findings_judge_fate(fate, rank, result);
    /* One a life: who is killed reports before. */
    if (reports != fate->lives)
        rg_case_fail(result, RG_EXIT_RECOVERY,
                     "rank %d: %d reports of %d processes", rank, reports,
                     fate->lives);
    return warnings;
}

static void judge(const struct selection *selection,
                  const struct rg_supervision *supervision,
                  struct rg_case_result *result)
{
    int warnings = 0;

    for (int rank = 0; rank < supervision->size; rank++)
        warnings += judge_rank(supervision, rank, result);
    if (warnings != selection->warnings)
        rg_case_fail(result, RG_EXIT_WRONG,
                     "%d warnings in the group instead of %d", warnings,
                     selection->warnings);
}

/* ---- playing ------------------------------------------------------------ */

static void fill_scenario(const struct rg_suite *suite,
                          const struct selection *selection,
                          struct rg_selection_scenario *scenario_out)
{
    const struct rg_suite_options *options = suite->options;
    const int size = suite->job->size;

    *scenario_out = (struct rg_selection_scenario){
        .work = {.kind = RG_WORK_SELECTION},
        .device = options->device,
        .team_width = options->team_width,
        .teams = options->teams,
        .script = (int32_t)selection->script,
        .victim = rank_of(selection->victim, size),
        .queue = selection->queue,
        .no_route = selection->no_route,
        .seed = options->seed,
    };
    for (int rank = 0; rank < size; rank++)
        scenario_out->wishes[rank] = (uint8_t)selection->all;
    if (selection->who != NOBODY)
        scenario_out->wishes[rank_of(selection->who, size)] =
            (uint8_t)selection->its;
}

/* What this rank's workers have said, where that may tell why it failed. */
static void drop_log(const struct rg_suite *suite, int show)
{
    char path[256];
    char *text;

    rg_selection_log_path((int)getpid(), suite->job->rank, path, sizeof(path));
    if (show && rg_options_file(path, &text) == RG_OK) {
        fputs(text, stderr);
        free(text);
    }
    unlink(path);
}

static void run_selection(struct rg_suite *suite, const struct rg_case *test,
                          struct rg_case_result *result)
{
    const struct selection *selection = &selections[test->param[0]];
    const int size = suite->job->size;
    struct rg_selection_scenario scenario;
    const struct rg_scenario played = {.payload = &scenario,
                                       .bytes = sizeof(scenario),
                                       .deadline_ms = DEADLINE_MS};
    struct rg_supervision supervision;

    if (size < selection->ranks || size > RG_SELECTION_RANKS_MAX) {
        result->skipped = 1;
        snprintf(result->text, sizeof(result->text), "needs %d to %d ranks",
                 selection->ranks, RG_SELECTION_RANKS_MAX);
        return;
    }
    fill_scenario(suite, selection, &scenario);
    if (rg_case_expect_ok(result, rg_suite_play(suite, &played, &supervision),
                          "supervision") == RG_OK) {
        judge(selection, &supervision, result);
        rg_supervision_fini(&supervision);
    }
    drop_log(suite, result->failed);
}

int rg_cases_selection(struct rg_case_list *list)
{
    int status = RG_OK;

    for (int row = 0; row < N_SELECTIONS && status == RG_OK; row++) {
        struct rg_case test = {.run = run_selection, .param = {row}};

        snprintf(test.name, sizeof(test.name), "selection.backend.%s",
                 selections[row].name);
        status = rg_case_list_add(list, &test);
    }
    return status;
}
