/*
 * recovery.*: ranks are killed, stopped, or leave, at chosen moments; the
 * others must go on and agree. Each case is one fault plan, played to workers
 * of its own. All supervisors judge the same reports, so all say the same.
 *
 * What must hold afterwards: every fault of the plan was injected; all
 * survivors hold the same view without those that failed; every invocation has
 * the same outcome, epoch and participants at every rank that knows it; a
 * committed one has the right sum over its participants and the same bits
 * everywhere; the last one is committed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/supervisor.h"
#include "validate/recovery.h"
#include "validate/suite.h"

enum { INVOCATIONS = 12, COUNT = 50000, DEADLINE_MS = 60000 };

enum { PARAM_PLAN, PARAM_REPLAY };

/*
 * %L: the last rank; %P: the one before it; %N: another one each round; %5: the
 * round's fifth invocation. Rank 0 is the coordinator.
 */
static const struct recovery {
    const char *name;
    int ranks; /* at least */
    int stall_ms;
    const char *plan;
    int rejoins;   /* rounds; the plan is for one, at its seq %5 */
    uint64_t lost; /* ranks that end isolated; only with `ranks` ranks */
} recoveries[] = {
    {"kill.bootstrap.leaf", 2, 0, "at seq 0 phase bootstrap rank %L kill", 0,
     0},
    {"kill.start.leaf", 2, 0, "at seq 5 phase start rank %L kill", 0, 0},
    {"kill.mid.leaf", 2, 0, "at seq 5 phase mid rank %L kill", 0, 0},
    {"kill.complete.leaf", 2, 0, "at seq 5 phase complete rank %L kill", 0, 0},
    {"kill.idle.leaf", 2, 0, "at seq 5 phase idle rank %L kill", 0, 0},
    {"kill.start.coordinator", 2, 0, "at seq 5 phase start rank 0 kill", 0, 0},
    {"kill.mid.coordinator", 2, 0, "at seq 5 phase mid rank 0 kill", 0, 0},
    {"kill.complete.coordinator", 2, 0, "at seq 5 phase complete rank 0 kill",
     0, 0},
    {"kill.idle.coordinator", 2, 0, "at seq 5 phase idle rank 0 kill", 0, 0},
    {"exit.start.leaf", 2, 0, "at seq 5 phase start rank %L exit", 0, 0},
    {"exit.start.coordinator", 2, 0, "at seq 5 phase start rank 0 exit", 0, 0},
    {"stop.start.leaf", 3, 500, "at seq 5 phase start rank %L stop 4s", 0, 0},
    {"stop.start.coordinator", 3, 500, "at seq 5 phase start rank 0 stop 4s", 0,
     0},
    {"kill.start.two", 4, 0,
     "at seq 5 phase start rank %L kill; at seq 5 phase start rank %P kill", 0,
     0},
    {"kill.later.two", 4, 0,
     "at seq 4 phase start rank %L kill; at seq 8 phase mid rank %P kill", 0,
     0},
    {"kill.quiesce.leaf", 4, 0,
     "at seq 5 phase start rank %L kill; at view 2 phase quiesce rank %P kill",
     0, 0},
    {"kill.parked.leaf", 4, 0,
     "at seq 5 phase start rank %L kill; at view 2 phase parked rank %P kill",
     0, 0},
    {"kill.apply.leaf", 4, 0,
     "at seq 5 phase start rank %L kill; at view 2 phase apply rank %P kill", 0,
     0},
    {"kill.quiesce.coordinator", 4, 0,
     "at seq 5 phase start rank %L kill; at view 2 phase quiesce rank 0 kill",
     0, 0},
    {"kill.parked.coordinator", 4, 0,
     "at seq 5 phase start rank %L kill; at view 2 phase parked rank 0 kill", 0,
     0},
    {"kill.apply.coordinator", 4, 0,
     "at seq 5 phase start rank %L kill; at view 2 phase apply rank 0 kill", 0,
     0},
    {"rejoin.leaf", 2, 0, "at seq %5 rank %L rejoin; at seq %5 rank %L kill;",
     1, 0},
    {"rejoin.coordinator", 2, 0,
     "at seq %5 rank 0 rejoin; at seq %5 rank 0 kill;", 1, 0},
    {"rejoin.ten.leaf", 2, 0,
     "at seq %5 rank %L rejoin; at seq %5 rank %L kill;", 10, 0},
    {"rejoin.ten.turns", 2, 0,
     "at seq %5 rank %N rejoin; at seq %5 rank %N kill;", 10, 0},
    {"partition.one", 4, 500,
     "at seq 5 phase start link 0->3 drop;"
     "at seq 5 phase start link 1->3 drop;"
     "at seq 5 phase start link 2->3 drop;"
     "at seq 5 phase start link 3->0 drop;"
     "at seq 5 phase start link 3->1 drop;"
     "at seq 5 phase start link 3->2 drop;",
     0, 0x8},
    {"partition.half", 4, 500,
     "at seq 5 phase start link 0->2 drop;"
     "at seq 5 phase start link 0->3 drop;"
     "at seq 5 phase start link 1->2 drop;"
     "at seq 5 phase start link 1->3 drop;"
     "at seq 5 phase start link 2->0 drop;"
     "at seq 5 phase start link 2->1 drop;"
     "at seq 5 phase start link 3->0 drop;"
     "at seq 5 phase start link 3->1 drop;",
     0, 0xc},
};

enum { N_RECOVERIES = sizeof(recoveries) / sizeof(recoveries[0]) };

/* What a word behind % stands for, in this round. */
static int number_of(char word, int size, int round)
{
    switch (word) {
    case 'L':
        return size - 1;
    case 'P':
        return size - 2;
    case 'N':
        return round % size;
    default:
        return RG_RECOVERY_ROUND * round + 5;
    }
}

/* The plan for so many ranks, once for each round. */
static void write_plan(const struct recovery *recovery, int size, char *text,
                       size_t bytes)
{
    const int rounds = recovery->rejoins ? recovery->rejoins : 1;
    size_t n = 0;

    for (int round = 0; round < rounds; round++) {
        for (const char *at = recovery->plan; *at && n + 12 < bytes; at++) {
            if (*at != '%')
                text[n++] = *at;
            else
                n += (size_t)snprintf(text + n, bytes - n, "%d",
                                      number_of(*++at, size, round));
        }
    }
    text[n] = '\0';
}

/* ---- what the reports say ----------------------------------------------- */

struct played {
    struct rg_supervision supervision;
    struct rg_fault_plan *plan;
    struct rg_recovery_scenario scenario;
    uint64_t hit;     /* ranks that are gone in the end */
    uint64_t lost;    /* of these, what must know that it is isolated */
    uint64_t stopped; /* ranks that may be, if the others were faster */
    const struct rg_recovery_report *reports[RG_RECOVERY_RANKS_MAX];
};

static const struct rg_recovery_line *
lines_of(const struct rg_recovery_report *report)
{
    return (const struct rg_recovery_line *)(report + 1);
}

static int is_hit(const struct played *played, int rank)
{
    return (int)(played->hit >> rank & 1);
}

/* Those that are to come back are members in the end like all others. */
static void find_hit(struct played *played)
{
    uint64_t back = 0;

    for (int i = 0; i < rg_fault_plan_size(played->plan); i++) {
        const struct rg_fault *fault = rg_fault_plan_entry(played->plan, i);
        const uint64_t rank = UINT64_C(1) << fault->rank;

        if (fault->action == RG_FAULT_REJOIN)
            back |= rank;
        else if (fault->action == RG_FAULT_STOP)
            played->stopped |= rank;
        else if (fault->to < 0)
            played->hit |= rank;
    }
    played->hit = (played->hit & ~back) | played->lost;
}

/* Whether one that was stopped is out is for the group to say. */
static void find_stopped(struct played *played)
{
    for (int r = 0; r < played->supervision.size; r++) {
        const struct rg_recovery_report *report = played->reports[r];

        if (!(played->stopped >> r & 1) && report != NULL) {
            played->hit |= played->stopped & ~report->members;
            return;
        }
    }
}

static void find_reports(struct played *played)
{
    for (int r = 0; r < played->supervision.size; r++) {
        size_t cursor = 0;
        struct rg_record record;

        while (rg_supervision_next(&played->supervision, r, &cursor, &record))
            if (record.kind == RG_RECORD_REPORT &&
                record.bytes >= sizeof(struct rg_recovery_report))
                played->reports[r] = record.data;
    }
}

static void judge_plan(struct played *played, struct rg_case_result *result)
{
    char text[120];
    int missed;

    rg_supervision_count(&played->supervision, played->plan);
    missed = rg_fault_plan_missed(played->plan);
    if (missed < 0)
        return;
    rg_fault_print(rg_fault_plan_entry(played->plan, missed), text,
                   sizeof(text));
    rg_case_fail(result, RG_EXIT_RECOVERY, "not injected: %s", text);
}

static void judge_fates(const struct played *played,
                        struct rg_case_result *result)
{
    for (int r = 0; r < played->supervision.size; r++) {
        const struct rg_fate *fate = &played->supervision.ranks[r].fate;

        if (fate->code != RG_EXIT_PASS)
            rg_case_fail(
                result, (enum rg_exit)fate->code,
                "worker %d: worker ended with exit code %d, signal %d%s", r,
                fate->last.exit_code, fate->last.signal,
                fate->last.hang ? ", past the deadline" : "");
    }
}

static uint64_t survivors(const struct played *played)
{
    const int size = played->supervision.size;

    return ((UINT64_C(2) << (size - 1)) - 1) & ~played->hit;
}

static void judge_survivor(const struct played *played, int rank,
                           struct rg_case_result *result)
{
    const struct rg_recovery_report *report = played->reports[rank];
    const int wanted = played->scenario.invocations;

    if (report == NULL)
        rg_case_fail(result, RG_EXIT_RECOVERY, "worker %d: no report", rank);
    else if (report->status != RG_OK)
        rg_case_fail(result, RG_EXIT_RECOVERY,
                     "worker %d: out of the group: %s", rank,
                     rg_status_string(report->status));
    else if (report->members != survivors(played))
        rg_case_fail(result, RG_EXIT_RECOVERY,
                     "worker %d: members %#llx instead of %#llx", rank,
                     (unsigned long long)report->members,
                     (unsigned long long)survivors(played));
    else if (report->lines != wanted)
        rg_case_fail(result, RG_EXIT_RECOVERY,
                     "worker %d: %d invocations instead of %d", rank,
                     report->lines, wanted);
    else if (lines_of(report)[wanted - 1].state != RG_OUTCOME_COMMITTED)
        rg_case_fail(result, RG_EXIT_RECOVERY,
                     "worker %d: the last invocation is not committed", rank);
    else if (report->captures != played->scenario.replay)
        rg_case_fail(result, RG_EXIT_RECOVERY, "worker %d: captured %d times",
                     rank, report->captures);
}

static void judge_line(const struct rg_recovery_line *a, int rank_a,
                       const struct rg_recovery_line *b, int rank_b,
                       struct rg_case_result *result)
{
    const unsigned long long seq = b->seq;

    if (a->seq == 0 || b->seq == 0)
        return;
    if (b->wrong)
        rg_case_fail(result, RG_EXIT_WRONG,
                     "worker %d: seq %llu: %d wrong elements", rank_b, seq,
                     b->wrong);
    if (a->seq != b->seq || a->state != b->state || a->epoch != b->epoch ||
        a->participants != b->participants)
        rg_case_fail(
            result, RG_EXIT_RECOVERY,
            "seq %llu: rank %d says %s, epoch %llu, members %#llx; rank %d "
            "(seq %llu) %s, epoch %llu, members %#llx",
            (unsigned long long)a->seq, rank_a,
            rg_outcome_name((enum rg_outcome_state)a->state),
            (unsigned long long)a->epoch, (unsigned long long)a->participants,
            rank_b, seq, rg_outcome_name((enum rg_outcome_state)b->state),
            (unsigned long long)b->epoch, (unsigned long long)b->participants);
    if (a->digest != b->digest)
        rg_case_fail(result, RG_EXIT_WRONG,
                     "seq %llu: rank %d holds other bits than rank %d", seq,
                     rank_b, rank_a);
}

/* Of all that reported, also those that were excluded meanwhile. */
static void judge_agreement(const struct played *played,
                            struct rg_case_result *result)
{
    const struct rg_recovery_report *first = NULL;
    int first_rank = 0;

    for (int r = 0; r < played->supervision.size; r++) {
        const struct rg_recovery_report *report = played->reports[r];

        if (report == NULL)
            continue;
        if (first == NULL || report->lines > first->lines ||
            lines_of(first)->seq == 0) {
            first = report;
            first_rank = r;
        }
    }
    for (int r = 0; first != NULL && r < played->supervision.size; r++) {
        const struct rg_recovery_report *report = played->reports[r];

        for (int i = 0; report != NULL && i < report->lines; i++)
            judge_line(&lines_of(first)[i], first_rank, &lines_of(report)[i], r,
                       result);
        if (report != NULL && !is_hit(played, r) &&
            report->epoch != first->epoch)
            rg_case_fail(result, RG_EXIT_RECOVERY,
                         "rank %d ends in epoch %llu, rank %d in %llu", r,
                         (unsigned long long)report->epoch, first_rank,
                         (unsigned long long)first->epoch);
    }
}

/* In the bootstrap there is no group yet to survive: all must be told. */
static void judge_bootstrap(const struct played *played,
                            struct rg_case_result *result)
{
    for (int r = 0; r < played->supervision.size; r++) {
        const struct rg_end *end = &played->supervision.ranks[r].fate.last;

        if (!is_hit(played, r) && end->exit_code != RG_EXIT_RECOVERY)
            rg_case_fail(result, RG_EXIT_RECOVERY,
                         "worker %d: exit code %d, signal %d%s", r,
                         end->exit_code, end->signal,
                         end->hang ? ", past the deadline" : "");
    }
}

/* Cut off from the majority, it must say so itself. */
static void judge_lost(const struct played *played, int rank,
                       struct rg_case_result *result)
{
    const struct rg_recovery_report *report = played->reports[rank];

    if (report == NULL || report->status != RG_EISOLATED)
        rg_case_fail(result, RG_EXIT_RECOVERY, "worker %d: not isolated: %s",
                     rank,
                     report ? rg_status_string(report->status) : "no report");
}

static void judge(struct played *played, struct rg_case_result *result)
{
    const struct rg_fault *fault = rg_fault_plan_entry(played->plan, 0);

    judge_plan(played, result);
    if (fault->phase == RG_FAULT_IN_BOOTSTRAP) {
        judge_bootstrap(played, result);
        return;
    }
    judge_fates(played, result);
    for (int r = 0; r < played->supervision.size; r++)
        if (played->lost >> r & 1)
            judge_lost(played, r, result);
        else if (!is_hit(played, r))
            judge_survivor(played, r, result);
    judge_agreement(played, result);
}

/* ---- cases -------------------------------------------------------------- */

static int play(const struct rg_job *job, struct played *played)
{
    const struct rg_scenario scenario = {.payload = &played->scenario,
                                         .bytes = sizeof(played->scenario),
                                         .deadline_ms = DEADLINE_MS};
    struct rg_supervisor *supervisor;
    int status = rg_supervisor_create(job, &supervisor);

    if (status != RG_OK)
        return status;
    status = rg_supervisor_run(supervisor, &scenario, &played->supervision);
    rg_supervisor_destroy(supervisor);
    return status;
}

/* When a worker's event, or a fault that hit it, happened; 0: neither. */
static uint64_t time_of(const struct rg_record *record, const char **name_out,
                        uint64_t *value_out)
{
    const struct rg_event *event = record->data;
    const struct rg_injected *fault = record->data;

    if (record->kind == RG_RECORD_EVENT) {
        *name_out = event->name;
        *value_out = event->value;
        return event->time_ns;
    }
    if (record->kind != RG_RECORD_FAULT)
        return 0;
    *name_out = rg_fault_action_name((enum rg_fault_action)fault->action);
    *value_out = (uint64_t)fault->entry;
    return fault->done_ns;
}

/* What happened when, in milliseconds since the first of all. */
static void show_events(const struct rg_supervision *supervision)
{
    uint64_t start = UINT64_MAX;
    struct rg_record record;
    const char *name;
    uint64_t value;

    for (int show = 0; show < 2; show++) {
        for (int r = 0; r < supervision->size; r++) {
            size_t cursor = 0;

            while (rg_supervision_next(supervision, r, &cursor, &record)) {
                const uint64_t at = time_of(&record, &name, &value);

                if (at != 0 && show)
                    fprintf(stderr, "rank %d life %d %10.3f ms %s %llu\n", r,
                            record.life, (double)(at - start) / 1e6, name,
                            (unsigned long long)value);
                else if (at != 0 && at < start)
                    start = at;
            }
        }
    }
}

static void run_recovery(struct rg_suite *suite, const struct rg_case *test,
                         struct rg_case_result *result)
{
    const struct recovery *recovery = &recoveries[test->param[PARAM_PLAN]];
    const struct rg_suite_options *options = suite->options;
    const int most = recovery->lost ? recovery->ranks : RG_RECOVERY_RANKS_MAX;
    struct played played = {
        .lost = recovery->lost,
        .scenario = {.device = options->device,
                     .team_width = options->team_width,
                     .teams = options->teams,
                     .invocations =
                         INVOCATIONS + recovery->rejoins * RG_RECOVERY_ROUND,
                     .rejoins = recovery->rejoins,
                     .count = COUNT,
                     .replay = test->param[PARAM_REPLAY],
                     .stall_ms = recovery->stall_ms}};
    int status;

    if (suite->job->size < recovery->ranks || suite->job->size > most) {
        result->skipped = 1;
        snprintf(result->text, sizeof(result->text), "needs %d to %d ranks",
                 recovery->ranks, most);
        return;
    }
    write_plan(recovery, suite->job->size, played.scenario.plan,
               sizeof(played.scenario.plan));
    status = rg_fault_plan_create(played.scenario.plan, &played.plan, NULL);
    if (status == RG_OK)
        status = play(suite->job, &played);
    if (rg_case_expect_ok(result, status, "supervision") == RG_OK) {
        find_hit(&played);
        find_reports(&played);
        find_stopped(&played);
        judge(&played, result);
        if (result->failed && suite->job->rank == 0)
            show_events(&played.supervision);
        rg_supervision_fini(&played.supervision);
    }
    rg_fault_plan_destroy(played.plan);
}

int rg_cases_recovery(struct rg_case_list *list,
                      const struct rg_suite_options *options)
{
    (void)options;
    for (int i = 0; i < 2 * N_RECOVERIES; i++) {
        struct rg_case test = {
            .run = run_recovery,
            .param = {[PARAM_PLAN] = i / 2, [PARAM_REPLAY] = i % 2}};

        snprintf(test.name, sizeof(test.name), "recovery.%s.%s",
                 recoveries[i / 2].name, i % 2 ? "replay" : "eager");
        if (rg_case_list_add(list, &test) != RG_OK)
            return RG_ENOMEM;
    }
    return RG_OK;
}
