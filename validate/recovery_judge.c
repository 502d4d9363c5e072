#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/recovery.h"

/* What a process may grow by, over all the failures of a scenario. */
enum { RSS_GROWTH_KB = 8 << 10 };

/* One line of one report, and whose it is. */
struct known {
    const struct rg_recovery_line *line;
    int rank;
};

/* The case being judged, in short. */
struct judge {
    const struct rg_recovery_scenario *scenario;
    const struct rg_supervision *supervision;
    struct rg_case_result *result;
    const struct rg_recovery_report *last[RG_RECOVERY_RANKS_MAX];
};

static int is_member(const struct judge *judge, int rank)
{
    return (int)(judge->scenario->members >> rank & 1);
}

/* ---- faults and fates --------------------------------------------------- */

static void judge_plan(struct judge *judge, struct rg_fault_plan *plan)
{
    char text[120];
    int missed;

    rg_supervision_count(judge->supervision, plan);
    missed = rg_fault_plan_missed(plan);
    if (missed < 0)
        return;
    rg_fault_print(rg_fault_plan_entry(plan, missed), text, sizeof(text));
    rg_case_fail(judge->result, RG_EXIT_RECOVERY, "not injected: %s", text);
}

static void judge_fates(struct judge *judge)
{
    for (int r = 0; r < judge->supervision->size; r++) {
        const struct rg_fate *fate = &judge->supervision->ranks[r].fate;

        if (fate->code != RG_EXIT_PASS)
            rg_case_fail(judge->result, (enum rg_exit)fate->code,
                         "rank %d: its process ended with exit code %d, "
                         "signal %d%s",
                         r, fate->last.exit_code, fate->last.signal,
                         fate->last.hang ? ", past the deadline" : "");
    }
}

/* Before there is a group there is none to survive in: all must be told. */
static void judge_bootstrap(struct judge *judge)
{
    for (int r = 0; r < judge->supervision->size; r++) {
        const struct rg_end *end = &judge->supervision->ranks[r].fate.last;

        if (is_member(judge, r) && end->exit_code != RG_EXIT_RECOVERY)
            rg_case_fail(
                judge->result, end->hang ? RG_EXIT_TIMEOUT : RG_EXIT_RECOVERY,
                "rank %d: exit code %d, signal %d%s", r, end->exit_code,
                end->signal, end->hang ? ", past the deadline" : "");
    }
}

/* ---- members ------------------------------------------------------------ */

/* The members' last lines are one and the same, committed by all of them. */
static void judge_last_line(struct judge *judge, int rank,
                            const struct rg_recovery_report *report)
{
    const struct rg_recovery_line *line =
        report->lines ? &rg_recovery_lines(report)[report->lines - 1] : NULL;

    if (line == NULL || line->state != RG_OUTCOME_COMMITTED)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: its last invocation is not committed", rank);
    else if (line->seq < (uint64_t)judge->scenario->steps ||
             line->participants != judge->scenario->members)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: ended behind seq %llu of members %#llx", rank,
                     (unsigned long long)line->seq,
                     (unsigned long long)line->participants);
}

static void judge_member(struct judge *judge, int rank)
{
    const struct rg_recovery_report *report = judge->last[rank];
    const int captures = judge->scenario->replay ? 1 : 0;

    if (report == NULL)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY, "rank %d: no report",
                     rank);
    else if (report->status != RG_OK)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: out of the group: %s", rank,
                     rg_status_string(report->status));
    else if (report->members != judge->scenario->members)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: members %#llx instead of %#llx", rank,
                     (unsigned long long)report->members,
                     (unsigned long long)judge->scenario->members);
    else if (report->captures != captures)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: captured %d times instead of %d", rank,
                     report->captures, captures);
    else if (judge->scenario->backend != RG_BACKEND_UNSET &&
             report->backend != judge->scenario->backend)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: not the backend that all asked for", rank);
    else
        judge_last_line(judge, rank, report);
}

static void judge_views(struct judge *judge)
{
    const struct rg_recovery_report *first = NULL;

    for (int r = 0; r < judge->supervision->size; r++) {
        const struct rg_recovery_report *report = judge->last[r];

        if (!is_member(judge, r) || report == NULL)
            continue;
        if (first == NULL)
            first = report;
        else if (report->epoch != first->epoch)
            rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                         "rank %d ends in epoch %llu, another in %llu", r,
                         (unsigned long long)report->epoch,
                         (unsigned long long)first->epoch);
    }
}

static int is_of_stage(const struct rg_recovery_line *line, uint64_t members)
{
    return line->state == RG_OUTCOME_COMMITTED && line->digest != 0 &&
           line->participants == members;
}

/* How many lines are of the stage, from *at up to where the next one begins. */
static int count_stage(const struct rg_recovery_report *report,
                       const struct rg_recovery_played *played, int stage,
                       int *at)
{
    int n = 0;

    for (; *at < report->lines; ++*at) {
        const struct rg_recovery_line *line = &rg_recovery_lines(report)[*at];

        if (n > 0 && stage + 1 < played->nstages &&
            is_of_stage(line, played->stages[stage + 1]))
            break;
        n += is_of_stage(line, played->stages[stage]);
    }
    return n;
}

/* One process, one capture: committed invocations of each stage, in order. */
static void judge_stages(struct judge *judge, int rank,
                         const struct rg_recovery_played *played)
{
    const struct rg_recovery_report *report = judge->last[rank];
    int at = 0;

    if (report == NULL || !(played->witnesses >> rank & 1) ||
        played->supervision->ranks[rank].fate.lives > 1)
        return;
    for (int i = 0; i < played->nstages; i++) {
        const int least = played->least[i] ? played->least[i] : 1;
        const int n = count_stage(report, played, i, &at);

        if (n < least)
            rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                         "rank %d: committed %d of members %#llx, not %d", rank,
                         n, (unsigned long long)played->stages[i], least);
    }
}

/* The fault came while invocations were under way. */
static void judge_aborts(struct judge *judge, int rank,
                         const struct rg_recovery_played *played)
{
    const struct rg_recovery_report *report = judge->last[rank];
    int aborted = 0;

    if (report == NULL || !played->aborts || !(played->witnesses >> rank & 1))
        return;
    for (int i = 0; i < report->lines; i++)
        aborted += rg_recovery_lines(report)[i].state == RG_OUTCOME_ABORTED;
    if (aborted == 0)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: nothing was aborted: no collective was hit",
                     rank);
}

static void judge_returns(struct judge *judge, int rank,
                          const struct rg_recovery_played *played)
{
    const struct rg_recovery_report *report = judge->last[rank];

    if (report == NULL)
        return;
    if (played->out >> rank & 1 && report->returns == 0)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: has never been out of the group", rank);
    if (played->stay >> rank & 1 && report->returns > 0)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: was lost %d times", rank, report->returns);
}

/* ---- routes ------------------------------------------------------------- */

static int is_broken(struct rg_fault_plan *plan, int a, int b)
{
    for (int i = 0; i < rg_fault_plan_size(plan); i++) {
        const struct rg_fault *fault = rg_fault_plan_entry(plan, i);

        if (fault->action == RG_FAULT_BREAK &&
            ((fault->rank == a && fault->to == b) ||
             (fault->rank == b && fault->to == a)))
            return 1;
    }
    return 0;
}

/* On CUDA one pair on the proxy takes all others with it. */
static enum rg_route_kind route_behind(const struct judge *judge, int broken,
                                       enum rg_route_kind before)
{
    if (judge->scenario->device == RG_DEVICE_CUDA)
        return RG_ROUTE_PROXY;
    return broken ? RG_ROUTE_PROXY : before;
}

static void judge_route(struct judge *judge, int rank, int to, int broken)
{
    const enum rg_route_kind before = judge->last[rank]->first_routes[to];
    const enum rg_route_kind after = judge->last[rank]->routes[to];

    if (broken && before != RG_ROUTE_P2P)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: %s to rank %d before it broke", rank,
                     rg_route_name(before), to);
    if (after != route_behind(judge, broken, before))
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: %s to rank %d at the end", rank,
                     rg_route_name(after), to);
}

/* Committed before the break and behind it: in more than one epoch. */
static void judge_epochs(struct judge *judge, int rank)
{
    const struct rg_recovery_report *report = judge->last[rank];
    const struct rg_recovery_line *lines = rg_recovery_lines(report);
    uint64_t first = 0, last = 0;

    for (int i = 0; i < report->lines; i++) {
        if (lines[i].state != RG_OUTCOME_COMMITTED || lines[i].digest == 0)
            continue;
        first = first ? first : lines[i].epoch;
        last = lines[i].epoch;
    }
    if (first == last)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: all it committed is of epoch %llu", rank,
                     (unsigned long long)first);
}

static void judge_breaks(struct judge *judge,
                         const struct rg_recovery_played *played)
{
    const int size = judge->supervision->size;

    if (!played->breaks)
        return;
    for (int rank = 0; rank < size; rank++) {
        if (judge->last[rank] == NULL)
            continue;
        judge_epochs(judge, rank);
        for (int to = 0; to < size; to++)
            if (to != rank)
                judge_route(judge, rank, to, is_broken(played->plan, rank, to));
    }
}

/* A rank that is out knows it, and why. */
static void judge_outsider(struct judge *judge, int rank)
{
    const struct rg_recovery_report *report = judge->last[rank];
    const int ended = judge->supervision->ranks[rank].fate.last.planned;

    if (report == NULL && !ended)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY, "rank %d: no report",
                     rank);
    if (report != NULL && report->status != RG_EISOLATED &&
        report->status != RG_ECLOSED)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d should be out of the group: %s", rank,
                     rg_status_string(report->status));
}

/* ---- what leaks --------------------------------------------------------- */

static void judge_growth(struct judge *judge, int rank, const char *what,
                         int before, int after)
{
    if (after > before)
        rg_case_fail(judge->result, RG_EXIT_RECOVERY,
                     "rank %d: %s: %d before, %d after", rank, what, before,
                     after);
}

/* Also of earlier lives, as far as they reported. */
static void judge_leaks(struct judge *judge, int rank,
                        const struct rg_recovery_report *report)
{
    const struct rg_census *warm = &report->warm;
    const struct rg_census *end = &report->end;
    const int peers = judge->supervision->size - 1;

    judge_growth(judge, rank, "threads outside the context",
                 report->before.threads, report->after.threads);
    judge_growth(judge, rank, "descriptors outside the context",
                 report->before.descriptors, report->after.descriptors);
    judge_growth(judge, rank, "shared mappings outside the context",
                 report->before.shared, report->after.shared);
    if (warm->threads == 0 || end->threads == 0)
        return;
    judge_growth(judge, rank, "threads", warm->threads, end->threads);
    /* Who came back has made a connection of its own to each of the others. */
    judge_growth(judge, rank, "descriptors", warm->descriptors + peers,
                 end->descriptors);
    judge_growth(judge, rank, "shared mappings", warm->shared, end->shared);
    judge_growth(judge, rank, "resident kB (some growth is fine)",
                 warm->rss_kb + RSS_GROWTH_KB, end->rss_kb);
}

/* ---- agreement ---------------------------------------------------------- */

static void judge_right(struct judge *judge, const struct known *known)
{
    if (known->line->wrong)
        rg_case_fail(judge->result, RG_EXIT_WRONG,
                     "rank %d: seq %llu: %d wrong elements", known->rank,
                     (unsigned long long)known->line->seq, known->line->wrong);
}

/* Two lines of one seq. */
static void judge_same(struct judge *judge, const struct known *a,
                       const struct known *b)
{
    const struct rg_recovery_line *x = a->line;
    const struct rg_recovery_line *y = b->line;

    if (x->state != y->state || x->epoch != y->epoch ||
        x->participants != y->participants)
        rg_case_fail(
            judge->result, RG_EXIT_RECOVERY,
            "seq %llu: rank %d says %s, epoch %llu, members %#llx; "
            "rank %d %s, epoch %llu, members %#llx",
            (unsigned long long)x->seq, a->rank,
            rg_outcome_name((enum rg_outcome_state)x->state),
            (unsigned long long)x->epoch, (unsigned long long)x->participants,
            b->rank, rg_outcome_name((enum rg_outcome_state)y->state),
            (unsigned long long)y->epoch, (unsigned long long)y->participants);
    else if (x->digest && y->digest && x->digest != y->digest)
        rg_case_fail(judge->result, RG_EXIT_WRONG,
                     "seq %llu: ranks %d and %d hold different bits",
                     (unsigned long long)x->seq, a->rank, b->rank);
}

static int by_seq(const void *a, const void *b)
{
    const uint64_t x = ((const struct known *)a)->line->seq;
    const uint64_t y = ((const struct known *)b)->line->seq;

    return (x > y) - (x < y);
}

static const struct rg_recovery_report *
report_of(const struct rg_record *record)
{
    return record->kind == RG_RECORD_REPORT &&
                   record->bytes >= sizeof(struct rg_recovery_report)
               ? record->data
               : NULL;
}

/* Calls `visit` for every report of every life. */
static void each_report(struct judge *judge, void *arg,
                        void (*visit)(struct judge *, void *, int,
                                      const struct rg_recovery_report *))
{
    for (int r = 0; r < judge->supervision->size; r++) {
        size_t cursor = 0;
        struct rg_record record;

        while (rg_supervision_next(judge->supervision, r, &cursor, &record)) {
            const struct rg_recovery_report *report = report_of(&record);

            if (report != NULL)
                visit(judge, arg, r, report);
        }
    }
}

static void visit_last(struct judge *judge, void *arg, int rank,
                       const struct rg_recovery_report *report)
{
    (void)arg;
    judge->last[rank] = report;
}

static void visit_leaks(struct judge *judge, void *arg, int rank,
                        const struct rg_recovery_report *report)
{
    (void)arg;
    judge_leaks(judge, rank, report);
}

static void visit_count(struct judge *judge, void *arg, int rank,
                        const struct rg_recovery_report *report)
{
    (void)judge;
    (void)rank;
    *(size_t *)arg += (size_t)report->lines;
}

struct ledger {
    struct known *known;
    size_t n;
};

static void visit_lines(struct judge *judge, void *arg, int rank,
                        const struct rg_recovery_report *report)
{
    struct ledger *ledger = arg;

    (void)judge;
    for (int i = 0; i < report->lines; i++)
        ledger->known[ledger->n++] =
            (struct known){&rg_recovery_lines(report)[i], rank};
}

/* All that reported, also who was out at the end. */
static void judge_agreement(struct judge *judge)
{
    struct ledger ledger = {0};
    size_t n = 0;

    each_report(judge, &n, visit_count);
    ledger.known = calloc(n + 1, sizeof(*ledger.known));
    if (ledger.known == NULL) {
        rg_case_fail(judge->result, RG_EXIT_ENVIRONMENT, "no memory");
        return;
    }
    each_report(judge, &ledger, visit_lines);
    qsort(ledger.known, n, sizeof(*ledger.known), by_seq);
    for (size_t i = 0; i < n; i++) {
        judge_right(judge, &ledger.known[i]);
        if (i > 0 && by_seq(&ledger.known[i - 1], &ledger.known[i]) == 0)
            judge_same(judge, &ledger.known[i - 1], &ledger.known[i]);
    }
    free(ledger.known);
}

void rg_recovery_judge(const struct rg_recovery_played *played,
                       struct rg_case_result *result)
{
    struct judge judge = {.scenario = played->scenario,
                          .supervision = played->supervision,
                          .result = result};

    each_report(&judge, NULL, visit_last);
    judge_agreement(&judge);
    if (played->bootstrap) {
        judge_plan(&judge, played->plan);
        judge_bootstrap(&judge);
        return;
    }
    judge_fates(&judge);
    judge_plan(&judge, played->plan);
    for (int r = 0; r < judge.supervision->size; r++) {
        if (is_member(&judge, r)) {
            judge_member(&judge, r);
            judge_stages(&judge, r, played);
            judge_aborts(&judge, r, played);
            judge_returns(&judge, r, played);
        } else {
            judge_outsider(&judge, r);
        }
    }
    judge_views(&judge);
    judge_breaks(&judge, played);
    each_report(&judge, NULL, visit_leaks);
}
