/*
 * route_conformance.*: the transfer service's contract, held to by the routes
 * that the job has. The same list on every route and device: run it as it is,
 * and with routes switched off. What needs ranks that die is in
 * cases_recovery.c, with the same name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algos/algos.h"
#include "harness/probe.h"
#include "validate/suite.h"

enum {
    MIB = 1 << 20,
    REPLAYS = 25,   /* of the graph, with another salt each */
    BUDGET_MS = 100 /* of the wait that is measured */
};

/*
 * What is exchanged, all ranks with all. Sizes around what routes do at once:
 * a byte, a word, a page, and more than the proxy's stages.
 */
static const struct exchange {
    const char *name;
    uint64_t bytes, offset, lanes, turns;
} exchanges[] = {
    {"put.0", 0, 1, 1, 8},
    {"put.1", 1, 3, 1, 8},
    {"put.3", 3, 5, 1, 8},
    {"put.4095", 4095, 7, 1, 8},
    {"put.1M+1", MIB + 1, 9, 1, 3},
    {"order.64", 64, 0, 1, 300},
    {"order.64K", 64 << 10, 0, 1, 60},
    {"order.odd", (64 << 10) - 3, 1, 2, 20},
    {"order.1M", MIB, 0, 1, 6},
    {"lanes.small", 17, 1, RG_TRANSFER_LANES, 12},
    {"lanes.large", 8191, 3, RG_TRANSFER_LANES, 6},
    {"reuse", 300 << 10, 11, 2, 8},
};

enum { N_EXCHANGES = sizeof(exchanges) / sizeof(exchanges[0]) };

enum { PARAM_EXCHANGE, PARAM_ADDS };

/* A case under way on this rank. */
struct conformance {
    struct rg_suite *suite; /* borrowed, as the result */
    struct rg_case_result *result;
    struct rg_transfer_request request;
    struct rg_probes probes;
};

static int ok(struct conformance *c, int status, const char *what)
{
    return rg_case_expect_ok(c->result, status, what) == RG_OK;
}

static void skip(struct rg_case_result *result, const char *why)
{
    result->skipped = 1;
    snprintf(result->text, sizeof(result->text), "%s", why);
}

/* ---- set-up ------------------------------------------------------------- */

/* Whether the workspace has room for the request. */
static int fits(struct conformance *c)
{
    struct rg_comm_limits limits;

    if (!ok(c, rg_comm_limits(c->suite->comm, rg_probes[0], &limits),
            "rg_comm_limits"))
        return 0;
    if (rg_transfer_landing_bytes(&c->request) <= limits.max_bytes)
        return 1;
    skip(c->result, "the workspace is too small for so many ranks");
    return 0;
}

/* 1 when the case can run; end() in either case. */
static int begin(struct conformance *c, struct rg_suite *suite,
                 const struct rg_transfer_request *request,
                 struct rg_case_result *result)
{
    *c = (struct conformance){
        .suite = suite, .result = result, .request = *request};
    c->request.salt = suite->options->seed;
    if (suite->backend == RG_BACKEND_LEGACY) {
        skip(result, "the legacy backend has no routes");
        return 0;
    }
    return fits(c) &&
           ok(c,
              rg_probes_create(suite->context,
                               rg_transfer_source_bytes(&c->request),
                               &c->probes),
              "memory for the case") &&
           ok(c, rg_probes_ask(&c->probes, &c->request), "rg_probes_ask");
}

static void end(struct conformance *c)
{
    rg_probes_destroy(&c->probes);
}

/* ---- what was found ----------------------------------------------------- */

static void judge(struct conformance *c, uint64_t turns)
{
    struct rg_transfer_report report;

    if (!ok(c, rg_probes_read(&c->probes, &report), "rg_probes_read"))
        return;
    if (report.wrong + report.spilled + report.signals)
        rg_case_fail(c->result, RG_EXIT_WRONG,
                     "from rank %d, lane %d, turn %d: %llu bytes wrong, %llu "
                     "beside them, %llu signals wrong",
                     (int)(report.where >> 32), (int)(report.where >> 24 & 255),
                     (int)(report.where & 0xffffff),
                     (unsigned long long)report.wrong,
                     (unsigned long long)report.spilled,
                     (unsigned long long)report.signals);
    else if (report.bounds)
        rg_case_fail(c->result, RG_EXIT_WRONG, "%llu bounds are wrong",
                     (unsigned long long)report.bounds);
    else if (report.turns != turns)
        rg_case_fail(c->result, RG_EXIT_WRONG, "%llu turns instead of %llu",
                     (unsigned long long)report.turns,
                     (unsigned long long)turns);
}

/* Launches once and waits. */
static int run_once(struct conformance *c)
{
    struct rg_suite *suite = c->suite;

    return ok(c,
              rg_probes_launch(&c->probes, &c->request, suite->comm,
                               suite->stream),
              "rg_transfer_probe") &&
           rg_case_synchronize(c->result, suite->stream, suite->comm) == RG_OK;
}

/* Turns that a rank counts in an exchange: a turn of a lane from a peer. */
static uint64_t turns_of(const struct conformance *c)
{
    return c->request.turns * c->request.lanes * (uint64_t)c->suite->job->size;
}

/* ---- exchanges ---------------------------------------------------------- */

static struct rg_transfer_request exchange_of(const struct rg_case *test)
{
    const struct exchange *what = &exchanges[test->param[PARAM_EXCHANGE]];

    return (struct rg_transfer_request){.program = RG_TRANSFER_EXCHANGE,
                                        .lanes = what->lanes,
                                        .turns = what->turns,
                                        .bytes = what->bytes,
                                        .offset = what->offset,
                                        .adds =
                                            (uint64_t)test->param[PARAM_ADDS]};
}

static void run_exchange(struct rg_suite *suite, const struct rg_case *test,
                         struct rg_case_result *result)
{
    const struct rg_transfer_request request = exchange_of(test);
    struct conformance c;

    if (begin(&c, suite, &request, result) && run_once(&c))
        judge(&c, turns_of(&c));
    end(&c);
}

/* One capture; every replay finds another request where that one was. */
static void replay_all(struct conformance *c)
{
    struct rg_suite *suite = c->suite;
    struct rg_graph *graph = NULL;

    if (ok(c, rg_graph_begin(suite->stream), "rg_graph_begin") &&
        ok(c,
           rg_probes_launch(&c->probes, &c->request, suite->comm,
                            suite->stream),
           "rg_transfer_probe"))
        ok(c, rg_graph_end(suite->stream, &graph), "rg_graph_end");
    for (int i = 0; i < REPLAYS && rg_case_can_go_on(c->result); i++) {
        c->request.salt++;
        c->request.adds = i % 2;
        if (ok(c, rg_probes_ask(&c->probes, &c->request), "rg_probes_ask") &&
            ok(c, rg_graph_launch(graph, suite->stream), "rg_graph_launch") &&
            rg_case_synchronize(c->result, suite->stream, suite->comm) == RG_OK)
            judge(c, turns_of(c));
    }
    rg_graph_destroy(graph);
}

static void run_replay(struct rg_suite *suite, const struct rg_case *test,
                       struct rg_case_result *result)
{
    const struct rg_transfer_request request = exchange_of(test);
    struct conformance c;

    if (begin(&c, suite, &request, result))
        replay_all(&c);
    end(&c);
}

/* ---- where the service says no ------------------------------------------ */

static void run_bounds(struct rg_suite *suite, const struct rg_case *test,
                       struct rg_case_result *result)
{
    const struct rg_transfer_request request = {.program = RG_TRANSFER_BOUNDS};
    struct conformance c;

    (void)test;
    if (begin(&c, suite, &request, result) && run_once(&c))
        judge(&c, 1);
    end(&c);
}

enum { ROUTE_RANKS_MAX = 64 };

static void read_routes(struct conformance *c, enum rg_route_kind *kinds_out)
{
    const int size = c->suite->job->size;

    for (int rank = 0; rank < size && rank < ROUTE_RANKS_MAX; rank++)
        ok(c, rg_comm_route(c->suite->comm, rank, &kinds_out[rank]),
           "rg_comm_route");
}

/* All have entered the first view, and nobody begins at a later seq. */
static int meet(struct conformance *c)
{
    char none[1];

    return ok(c, rg_comm_gather(c->suite->comm, none, 0, none), "barrier");
}

/* The put, and how its invocation ended: aborted, and one rank knows why. */
static void go_beyond(struct conformance *c)
{
    struct rg_suite *suite = c->suite;
    struct rg_outcome outcome = {.state = RG_OUTCOME_PENDING};
    uint64_t seq = 0;
    int error;

    if (!ok(c,
            rg_probes_launch(&c->probes, &c->request, suite->comm,
                             suite->stream),
            "rg_transfer_probe") ||
        !ok(c, rg_comm_seq(suite->comm, &seq), "rg_comm_seq") ||
        !ok(c, rg_comm_wait(suite->comm, seq, &outcome), "rg_comm_wait"))
        return;
    error = rg_comm_error(suite->comm);
    if (outcome.state != RG_OUTCOME_ABORTED)
        rg_case_fail(c->result, RG_EXIT_WRONG, "the put is %s",
                     rg_outcome_name(outcome.state));
    else if (suite->job->rank == 0 && error != RG_EINVAL)
        rg_case_fail(c->result, RG_EXIT_WRONG, "refused with: %s",
                     rg_status_string(error));
    rg_comm_clear_error(suite->comm);
}

/* What is exchanged next goes by the routes that were there before. */
static void expect_routes(struct conformance *c,
                          const enum rg_route_kind *before)
{
    enum rg_route_kind after[ROUTE_RANKS_MAX] = {RG_ROUTE_NULL};
    const int size = c->suite->job->size;

    c->request.program = RG_TRANSFER_EXCHANGE;
    c->request.turns = 1;
    if (!ok(c, rg_probes_ask(&c->probes, &c->request), "rg_probes_ask") ||
        !run_once(c))
        return;
    judge(c, turns_of(c));
    read_routes(c, after);
    for (int rank = 0; rank < size && rank < ROUTE_RANKS_MAX; rank++)
        if (after[rank] != before[rank])
            rg_case_fail(c->result, RG_EXIT_WRONG,
                         "the route to rank %d was %s and is %s", rank,
                         rg_route_name(before[rank]),
                         rg_route_name(after[rank]));
}

/*
 * The refused put ends its invocation, aborted everywhere, with the reason at
 * the rank that made it. Nothing else changes: the route has not failed.
 */
static void run_beyond(struct rg_suite *suite, const struct rg_case *test,
                       struct rg_case_result *result)
{
    const struct rg_transfer_request request = {
        .program = RG_TRANSFER_BEYOND,
        .lanes = 1,
        .bytes = 4096,
        .offset = (uint64_t)test->param[0],
        .peer = (uint64_t)suite->job->size - 1};
    enum rg_route_kind routes[ROUTE_RANKS_MAX] = {RG_ROUTE_NULL};
    struct conformance c;

    if (begin(&c, suite, &request, result) && meet(&c)) {
        read_routes(&c, routes);
        go_beyond(&c);
        if (rg_case_can_go_on(result))
            expect_routes(&c, routes);
    }
    end(&c);
}

static void run_unavailable(struct rg_suite *suite, const struct rg_case *test,
                            struct rg_case_result *result)
{
    uint64_t block[1] = {0};
    int status;

    (void)test;
    if (suite->backend != RG_BACKEND_LEGACY) {
        skip(result, "there are routes");
        return;
    }
    status = rg_transfer_probe(block, block, 1, suite->comm, suite->stream);
    if (status != RG_EUNAVAILABLE)
        rg_case_fail(result, RG_EXIT_WRONG, "without a route: %s",
                     rg_status_string(status));
}

/* ---- deadlines ---------------------------------------------------------- */

/* How late a wait ends is told; that it never ends early must hold. */
static void run_deadline(struct rg_suite *suite, const struct rg_case *test,
                         struct rg_case_result *result)
{
    const struct rg_transfer_request request = {.program = RG_TRANSFER_DEADLINE,
                                                .budget_ns = BUDGET_MS *
                                                             UINT64_C(1000000)};
    struct rg_transfer_report report;
    struct conformance c;

    (void)test;
    if (begin(&c, suite, &request, result) && run_once(&c) &&
        ok(&c, rg_probes_read(&c.probes, &report), "rg_probes_read")) {
        if (report.turns != 1 || report.elapsed_ns < request.budget_ns)
            rg_case_fail(result, RG_EXIT_WRONG,
                         "a wait of %d ms ended after %.3f ms", BUDGET_MS,
                         (double)report.elapsed_ns / 1e6);
        else
            snprintf(result->text, sizeof(result->text),
                     "a wait of %d ms ended after %.3f ms", BUDGET_MS,
                     (double)report.elapsed_ns / 1e6);
        rg_report_note(suite->report, "%s", result->text);
    }
    end(&c);
}

/* ---- the list ----------------------------------------------------------- */

static int add(struct rg_case_list *list, const char *name, const char *tail,
               const struct rg_case *test)
{
    struct rg_case copy = *test;

    copy.algos = rg_probes;
    snprintf(copy.name, sizeof(copy.name), "route_conformance.%.40s%.32s", name,
             tail);
    return rg_case_list_add(list, &copy);
}

static int add_exchanges(struct rg_case_list *list)
{
    int status = RG_OK;

    for (int i = 0; i < N_EXCHANGES; i++)
        for (int adds = 0; adds < 2 && status == RG_OK; adds++)
            status =
                add(list, exchanges[i].name, adds ? ".add" : ".set",
                    &(struct rg_case){
                        .run = run_exchange,
                        .param = {[PARAM_EXCHANGE] = i, [PARAM_ADDS] = adds}});
    return status;
}

int rg_cases_route(struct rg_case_list *list)
{
    static const struct rg_case others[] = {
        {.name = "bounds", .run = run_bounds},
        /* In contexts of their own: others want no view to change. */
        {.name = "beyond.by_one",
         .run = run_beyond,
         .first_seq = 2,
         .param = {1}},
        {.name = "beyond.all",
         .run = run_beyond,
         .first_seq = 3,
         .param = {4096}},
        {.name = "deadline", .run = run_deadline},
        {.name = "replay", .run = run_replay, .captures = 1, .param = {3}},
        {.name = "unavailable", .run = run_unavailable},
    };
    int status = add_exchanges(list);

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (status == RG_OK)
            status = add(list, others[i].name, "", &others[i]);
    return status;
}
