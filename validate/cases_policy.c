/*
 * policy.*: a selection table put in force at run time is followed to the
 * byte. What ran is read back from the device, eagerly and by graphs that were
 * captured under the built-in table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algos/algos.h"
#include "runtime/policy/table.h"
#include "validate/trial.h"

enum {
    ALGOS_MAX = 12,
    BOUNDS = 5,
    NTRIALS = 2 * 3 * BOUNDS, /* of any type and of f64: around each bound */
    TABLES = 2,
    MIXED = 6, /* trials in one graph */
    MIXED_REPLAYS = 200
};

/* Bytes, and multiples of 8: a row begins at each. */
static const uint64_t bounds[BOUNDS] = {64, 1000, 9000, 40008, 100000};

/* ---- tables ------------------------------------------------------------- */

/* The algorithms that can run here, those for limited sizes first. */
struct candidates {
    const struct rg_algo *algo[ALGOS_MAX];
    uint64_t chunk[ALGOS_MAX]; /* 0: has none */
    int count, limited;
};

static void take_candidates(struct rg_comm *comm, int nranks, int limited,
                            struct candidates *candidates)
{
    struct rg_comm_limits here;
    const struct rg_shape shape = {nranks < 2 ? 2 : nranks, 1, 1ull << 40};

    for (int i = 0; rg_algos[i] && candidates->count < ALGOS_MAX; i++) {
        const struct rg_algo *algo = rg_algos[i];
        struct rg_limits limits = {0};

        if (algo->collective != RG_COLL_all_reduce ||
            rg_comm_limits(comm, algo, &here) != RG_OK || !here.max_bytes ||
            !algo->layout(&shape, &limits) ||
            (limits.max_bytes < UINT64_MAX) != limited)
            continue;
        candidates->chunk[candidates->count] = limits.max_chunk ? 256 : 0;
        candidates->algo[candidates->count++] = algo;
    }
    if (limited)
        candidates->limited = candidates->count;
}

static void find_candidates(struct rg_comm *comm, int nranks,
                            struct candidates *candidates)
{
    *candidates = (struct candidates){.count = 0};
    take_candidates(comm, nranks, 1, candidates);
    take_candidates(comm, nranks, 0, candidates);
}

/*
 * Row `nth` of a group: the algorithms in turn, begun at `turn`; the last one
 * is for any size.
 */
static struct rg_policy_row row_of(const struct candidates *candidates,
                                   int nranks, int dtype, int nth, int turn)
{
    const int unlimited = candidates->count - candidates->limited;
    const int pick = nth < BOUNDS ? (nth + turn) % candidates->count
                                  : candidates->limited + turn % unlimited;
    struct rg_policy_row row = {
        .collective = RG_COLL_all_reduce,
        .dtype = dtype,
        .min_ranks = nranks,
        .max_ranks = nranks,
        .min = nth ? bounds[nth - 1] : 0,
        .max = nth < BOUNDS ? bounds[nth] : UINT64_MAX,
        .channels = 1 + (unsigned)(nth + turn) % 2,
        .chunk = candidates->chunk[pick] * (1 + 16 * (uint64_t)(nth % 2)),
    };

    rg_policy_row_call(&row, candidates->algo[pick]->name);
    return row;
}

static int fill_bounds(struct rg_policy_table *table,
                       const struct candidates *candidates, int nranks,
                       int turn)
{
    int status = RG_OK;

    for (int nth = 0; status == RG_OK && nth <= BOUNDS; nth++) {
        const struct rg_policy_row any =
            row_of(candidates, nranks, RG_POLICY_ANY_DTYPE, nth, turn);
        const struct rg_policy_row own =
            row_of(candidates, nranks, RG_f64, nth, turn + 1);

        status = rg_policy_add_row(table, &any);
        if (status == RG_OK)
            status = rg_policy_add_row(table, &own);
    }
    return status;
}

enum { MIXED_AT = 20000 }; /* between two of the bounds */

/* One algorithm for all sizes: number `turn`, in small and in large chunks. */
static int fill_mixed(struct rg_policy_table *table,
                      const struct candidates *candidates, int nranks, int turn)
{
    struct rg_policy_row row = {.collective = RG_COLL_all_reduce,
                                .dtype = RG_POLICY_ANY_DTYPE,
                                .min_ranks = nranks,
                                .max_ranks = nranks,
                                .max = MIXED_AT,
                                .channels = 1};
    const int unlimited = candidates->count - candidates->limited;
    const int pick = candidates->limited + turn % unlimited;
    int status;

    rg_policy_row_call(&row, candidates->algo[pick]->name);
    row.chunk = candidates->chunk[pick];
    status = rg_policy_add_row(table, &row);
    row.min = MIXED_AT;
    row.max = UINT64_MAX;
    row.chunk = 17 * candidates->chunk[pick];
    return status ? status : rg_policy_add_row(table, &row);
}

typedef int fill_table(struct rg_policy_table *table,
                       const struct candidates *candidates, int nranks,
                       int turn);

/* ---- trials ------------------------------------------------------------- */

struct follow {
    struct rg_suite *suite;        /* borrowed, as the result */
    struct rg_case_result *result; /* a failure there stops the case */
    int nranks;
    struct candidates candidates;
    struct rg_trial trials[NTRIALS];
    uint64_t bytes[NTRIALS];
    enum rg_dtype dtype[NTRIALS];
    struct rg_graph *graphs[NTRIALS];
    uint64_t seed;
};

/* Table `turn` for so many ranks, as it comes back from its own text. */
static int make_table(fill_table *fill, const struct follow *follow, int turn,
                      struct rg_policy_table **table_out, char **text_out)
{
    struct rg_policy_table *made;
    struct rg_policy_error error;
    int status = rg_policy_create("any", &made);

    if (status == RG_OK)
        status = fill(made, &follow->candidates, follow->nranks, turn);
    if (status == RG_OK)
        status = rg_policy_write(made, text_out);
    rg_policy_destroy(made);
    if (status != RG_OK)
        return status;
    status = rg_policy_parse(*text_out, strlen(*text_out), rg_algos, table_out,
                             &error);
    if (status != RG_OK) {
        fprintf(stderr, "policy:%d: %s\n", error.line, error.text);
        free(*text_out);
    }
    return status;
}

static int follow_ok(struct follow *follow, int status, const char *what)
{
    return rg_case_expect_ok(follow->result, status, what) == RG_OK;
}

/* Just below, at and just above a bound, in elements of the type. */
static struct rg_trial_spec spec_of(int nth)
{
    const enum rg_dtype dtype = nth % 2 ? RG_f64 : RG_u8;
    const size_t at = bounds[nth / 6] / rg_dtype_size(dtype);

    return (struct rg_trial_spec){.dtype = dtype,
                                  .op = RG_sum,
                                  .inputs = RG_INPUTS_EXACT,
                                  .layout = RG_LAYOUT_OUT,
                                  .count = at - 1 + (size_t)(nth / 2 % 3)};
}

/* 1 on success; follow_end() in either case. */
static int follow_begin(struct follow *follow, struct rg_suite *suite,
                        struct rg_case_result *result)
{
    struct rg_view_info view;
    int ok;

    memset(follow, 0, sizeof *follow);
    follow->suite = suite;
    follow->result = result;
    follow->seed = suite->options->seed;
    ok = follow_ok(follow, rg_comm_view(suite->comm, &view), "rg_comm_view");
    follow->nranks = view.nranks;
    find_candidates(suite->comm, view.nranks, &follow->candidates);
    for (int i = 0; i < NTRIALS && ok; i++) {
        const struct rg_trial_spec spec = spec_of(i);

        follow->dtype[i] = spec.dtype;
        follow->bytes[i] = spec.count * rg_dtype_size(spec.dtype);
        ok =
            follow_ok(follow, rg_trial_create(suite, &spec, &follow->trials[i]),
                      "memory for the case");
    }
    return ok;
}

/* Leaves the built-in table in force. */
static void follow_end(struct follow *follow)
{
    for (int i = 0; i < NTRIALS; i++) {
        if (follow->graphs[i])
            rg_graph_destroy(follow->graphs[i]);
        rg_trial_destroy(&follow->trials[i]);
    }
    if (rg_case_can_go_on(follow->result))
        follow_ok(follow, rg_comm_set_policy(follow->suite->comm, ""),
                  "rg_comm_set_policy");
}

static int launch(struct follow *follow, int nth)
{
    return follow_ok(follow,
                     rg_trial_launch(&follow->trials[nth], follow->suite->comm,
                                     follow->suite->stream),
                     "rg_all_reduce");
}

/* One graph a trial, under the table in force now. */
static void capture_all(struct follow *follow)
{
    struct rg_stream *stream = follow->suite->stream;

    for (int i = 0; i < NTRIALS && rg_case_can_go_on(follow->result); i++) {
        if (!follow_ok(follow, rg_graph_begin(stream), "rg_graph_begin"))
            return;
        launch(follow, i);
        follow_ok(follow, rg_graph_end(stream, &follow->graphs[i]),
                  "rg_graph_end");
    }
}

/* What ran last is what the table says of this trial. */
static void expect_row(struct follow *follow,
                       const struct rg_policy_table *table, int nth)
{
    const struct rg_policy_row *row =
        rg_policy_find(table, RG_COLL_all_reduce, follow->dtype[nth],
                       follow->nranks, follow->bytes[nth]);
    char name[RG_POLICY_NAME_BYTES];
    struct rg_run_info run;

    if (!follow_ok(follow, rg_comm_last_run(follow->suite->comm, &run),
                   "rg_comm_last_run"))
        return;
    rg_policy_row_name(row, name);
    if (strcmp(run.algorithm, name) || (row->protocol == RG_PROTOCOL_PLAIN &&
                                        run.channels != (int)row->channels))
        rg_case_fail(follow->result, RG_EXIT_WRONG,
                     "%llu bytes of %s ran %s+%dch, line %d says %s+%uch",
                     (unsigned long long)follow->bytes[nth],
                     rg_dtype_name(follow->dtype[nth]), run.algorithm,
                     run.channels, row->line, name, row->channels);
}

static void run_trial(struct follow *follow,
                      const struct rg_policy_table *table, int nth)
{
    struct rg_trial *trial = &follow->trials[nth];

    if (!follow_ok(follow, rg_trial_load(trial, follow->seed++), "rg_memcpy"))
        return;
    if (!follow->graphs[nth])
        launch(follow, nth);
    else if (!follow_ok(
                 follow,
                 rg_graph_launch(follow->graphs[nth], follow->suite->stream),
                 "rg_graph_launch"))
        return;
    if (rg_case_synchronize(follow->result, follow->suite->stream,
                            follow->suite->comm) != RG_OK)
        return;
    rg_trial_check(trial, follow->result);
    expect_row(follow, table, nth);
}

/* Puts table `turn` in force and runs every trial by it. */
static void run_table(struct follow *follow, int turn)
{
    struct rg_policy_table *table;
    char *text;

    if (!follow_ok(follow, make_table(fill_bounds, follow, turn, &table, &text),
                   "a table"))
        return;
    if (follow_ok(follow, rg_comm_set_policy(follow->suite->comm, text),
                  "rg_comm_set_policy"))
        for (int i = 0; i < NTRIALS && rg_case_can_go_on(follow->result); i++)
            run_trial(follow, table, i);
    rg_policy_destroy(table);
    free(text);
}

/* ---- the cases ---------------------------------------------------------- */

/* param 0: by graphs captured before. */
static void run_bounds(struct rg_suite *suite, const struct rg_case *test,
                       struct rg_case_result *result)
{
    struct follow follow;

    if (follow_begin(&follow, suite, result) && test->param[0])
        capture_all(&follow);
    for (int turn = 0; turn < TABLES && rg_case_can_go_on(result); turn++)
        run_table(&follow, turn);
    follow_end(&follow);
}

/* Sizes on both sides of MIXED_AT in turn, all of u8. */
static int mixed_trial(int nth)
{
    return (nth % 2 ? 12 : 24) + nth / 2 * 2;
}

static struct rg_graph *capture_mixed(struct follow *follow)
{
    struct rg_stream *stream = follow->suite->stream;
    struct rg_graph *graph = NULL;

    if (!follow_ok(follow, rg_graph_begin(stream), "rg_graph_begin"))
        return NULL;
    for (int i = 0; i < MIXED; i++)
        launch(follow, mixed_trial(i));
    follow_ok(follow, rg_graph_end(stream, &graph), "rg_graph_end");
    return graph;
}

static int select_mixed(struct follow *follow, int turn)
{
    struct rg_policy_table *table;
    char *text;
    int ok;

    if (!follow_ok(follow, make_table(fill_mixed, follow, turn, &table, &text),
                   "a table"))
        return 0;
    ok = follow_ok(follow, rg_comm_set_policy(follow->suite->comm, text),
                   "rg_comm_set_policy");
    rg_policy_destroy(table);
    free(text);
    return ok;
}

static void replay_mixed(struct follow *follow, struct rg_graph *graph)
{
    struct rg_suite *suite = follow->suite;

    for (int i = 0; i < MIXED; i++)
        follow_ok(
            follow,
            rg_trial_load(&follow->trials[mixed_trial(i)], follow->seed++),
            "rg_memcpy");
    for (int i = 0; i < MIXED_REPLAYS && rg_case_can_go_on(follow->result); i++)
        follow_ok(follow, rg_graph_launch(graph, suite->stream),
                  "rg_graph_launch");
    if (rg_case_synchronize(follow->result, suite->stream, suite->comm) !=
        RG_OK)
        return;
    for (int i = 0; i < MIXED; i++)
        rg_trial_check(&follow->trials[mixed_trial(i)], follow->result);
}

/* How many algorithms are for all sizes. */
static int count_unlimited(const struct follow *follow)
{
    return follow->candidates.count - follow->candidates.limited;
}

/*
 * Invocations of different chunks follow each other at once: what one rank
 * sends next must not reach what another still reads.
 */
static void run_mixed(struct rg_suite *suite, const struct rg_case *test,
                      struct rg_case_result *result)
{
    struct rg_graph *graph = NULL;
    struct follow follow;
    int turns;

    (void)test;
    if (follow_begin(&follow, suite, result))
        graph = capture_mixed(&follow);
    turns = count_unlimited(&follow);
    for (int turn = 0; turn < turns && rg_case_can_go_on(result); turn++)
        if (select_mixed(&follow, turn))
            replay_mixed(&follow, graph);
    if (graph)
        rg_graph_destroy(graph);
    follow_end(&follow);
}

/* Nothing has been published since. */
static void expect_same_view(struct rg_suite *suite,
                             const struct rg_view_info *before,
                             struct rg_case_result *result)
{
    struct rg_view_info after;

    if (rg_case_expect_ok(result, rg_comm_view(suite->comm, &after),
                          "rg_comm_view") == RG_OK &&
        (after.epoch != before->epoch ||
         after.policy_hash != before->policy_hash))
        rg_case_fail(result, RG_EXIT_WRONG, "a text was published");
}

/* The ranks do not ask for the same: all are refused. */
static void run_differing(struct rg_suite *suite, const struct rg_case *test,
                          struct rg_case_result *result)
{
    const int is_last = suite->job->rank == suite->job->size - 1;
    struct rg_view_info before;
    int status;

    (void)test;
    if (rg_case_expect_ok(result, rg_comm_view(suite->comm, &before),
                          "rg_comm_view") != RG_OK)
        return;
    if (before.nranks < 2) {
        result->skipped = 1;
        snprintf(result->text, sizeof result->text, "needs 2 ranks");
        return;
    }
    status = rg_comm_set_policy(suite->comm, is_last ? "all_reduce=ring"
                                                     : "all_reduce=ring+1ch");
    if (status != RG_EPOLICY)
        rg_case_fail(result, RG_EXIT_WRONG, "texts that differ: %s",
                     rg_status_string(status));
    expect_same_view(suite, &before, result);
}

/* Refused, and what was in force goes on. */
static void run_malformed(struct rg_suite *suite, const struct rg_case *test,
                          struct rg_case_result *result)
{
    static const char *const texts[] = {
        "regroup-policy 2\n",
        "regroup-policy 1\nunit bytes-per-rank-buffer\ntopology any\n"
        "all_reduce any 1-64 0 4096 ring - - - - - -\n",
        "regroup-policy 1\nunit bytes-per-rank-buffer\ntopology any\n"
        "all_reduce any 1-64 0 inf nothing - - - - - -\n",
        "all_reduce=ring+",
    };
    struct rg_view_info before;

    (void)test;
    if (rg_case_expect_ok(result, rg_comm_view(suite->comm, &before),
                          "rg_comm_view") != RG_OK)
        return;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const int status = rg_comm_set_policy(suite->comm, texts[i]);

        if (status != RG_EPOLICY)
            rg_case_fail(result, RG_EXIT_WRONG, "malformed text %zu: %s", i,
                         rg_status_string(status));
    }
    expect_same_view(suite, &before, result);
}

/* ---- the list ----------------------------------------------------------- */

int rg_cases_policy(struct rg_case_list *list)
{
    const struct rg_case cases[] = {
        {"policy.bounds.eager", run_bounds, .captures = 1, .param = {0}},
        {"policy.bounds.replay", run_bounds, .captures = 1, .param = {1}},
        {"policy.mixed_chunks", run_mixed, .captures = 1},
        {"policy.differing", run_differing, .captures = 1},
        {"policy.malformed", run_malformed, .captures = 1},
    };
    int status = RG_OK;

    for (size_t i = 0; status == RG_OK && i < sizeof cases / sizeof *cases; i++)
        status = rg_case_list_add(list, &cases[i]);
    return status;
}
