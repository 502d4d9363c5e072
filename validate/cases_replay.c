/*
 * replay.*: captured once, replayed many times, and right every time.
 *
 * Each case captures its graphs at the start and never again (asserted by
 * count); before a replay it renews inputs and poisons outputs from the host,
 * so that a result of the replay before is a wrong result.
 */
#include <stdio.h>
#include <string.h>

#include "validate/trial.h"

enum {
    NTRIALS = 5, /* all-reduces */
    NALL = NTRIALS + RG_COLL_COUNT - 1,
    SHORT_RUN = 40, /* rounds of the cases that are not about endurance */
    QUEUED = 50     /* replays queued before the host waits */
};

/*
 * What is captured. Every trial gives the same output when it runs again on
 * the output it has left, also in place.
 */
static const struct rg_trial_spec captured[NALL] = {
    {RG_f32, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 33, RG_COLL_all_reduce, 0},
    {RG_u8, RG_max, RG_INPUTS_EXACT, RG_LAYOUT_IN, 601, RG_COLL_all_reduce, 0},
    {RG_bf16, RG_avg, RG_INPUTS_EXACT, RG_LAYOUT_OUT_ODD, 117,
     RG_COLL_all_reduce, 0},
    {RG_i64, RG_prod, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 10007, RG_COLL_all_reduce,
     0},
    {RG_f64, RG_sum, RG_INPUTS_ROUGH, RG_LAYOUT_SKEW, 1001, RG_COLL_all_reduce,
     0},
    /* The others, for who renews their inputs before each replay. */
    {RG_i32, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_IN, 333, RG_COLL_all_gather, 0},
    {RG_f32, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 7001,
     RG_COLL_reduce_scatter, 0},
    {RG_f8e4m3, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT_ODD, 60001,
     RG_COLL_broadcast, 0},
    {RG_u16, RG_bor, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 12, RG_COLL_reduce, 0},
    {RG_i64, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_SKEW, 901, RG_COLL_all_to_all,
     0},
    {RG_bf16, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 5003, RG_COLL_gather, 0},
    {RG_u8, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_IN_ODD, 77, RG_COLL_scatter, 0},
    {RG_u8, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 0, RG_COLL_barrier, 0},
    {RG_f64, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 1201, RG_COLL_all_to_all_v,
     0},
    {RG_f16, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 40009, RG_COLL_sendrecv,
     0},
};

struct replay {
    struct rg_suite *suite;        /* borrowed, as the result */
    struct rg_case_result *result; /* a failure there stops the case */
    struct rg_trial trials[NALL];  /* zeroed where there is no algorithm */
    struct rg_graph *graphs[2];
    int captures;
    uint64_t seed; /* of the next round's inputs */
};

static int replay_ok(struct replay *replay, int status, const char *what)
{
    return rg_case_expect_ok(replay->result, status, what) == RG_OK;
}

static void replay_end(struct replay *replay)
{
    for (int i = 0; i < 2; i++) {
        if (replay->graphs[i] != NULL)
            rg_graph_destroy(replay->graphs[i]);
    }
    for (int i = 0; i < NALL; i++)
        rg_trial_destroy(&replay->trials[i]);
}

/* 1 on success; replay_end() in either case. */
static int replay_begin(struct replay *replay, struct rg_suite *suite,
                        struct rg_case_result *result)
{
    int ok = 1;

    memset(replay, 0, sizeof(*replay));
    replay->suite = suite;
    replay->result = result;
    replay->seed = suite->options->seed;
    for (int i = 0; i < NALL && ok; i++)
        if (rg_suite_runs(suite, captured[i].collective, NULL))
            ok = replay_ok(
                replay,
                rg_trial_create(suite, &captured[i], &replay->trials[i]),
                "memory for the case");
    return ok;
}

static int is_there(const struct replay *replay, int trial)
{
    return replay->trials[trial].device != NULL;
}

static void launch_trials(struct replay *replay, int first, int n)
{
    for (int i = first; i < first + n; i++)
        if (is_there(replay, i))
            replay_ok(replay,
                      rg_trial_launch(&replay->trials[i], replay->suite->comm,
                                      replay->suite->stream),
                      rg_collective_name(captured[i].collective));
}

/* Graph `which` is trials [first, first + n). */
static void capture(struct replay *replay, int which, int first, int n)
{
    struct rg_stream *stream = replay->suite->stream;

    if (!replay_ok(replay, rg_graph_begin(stream), "rg_graph_begin"))
        return;
    launch_trials(replay, first, n);
    replay->captures++;
    replay_ok(replay, rg_graph_end(stream, &replay->graphs[which]),
              "rg_graph_end");
}

static void launch_graph(struct replay *replay, int which)
{
    if (replay->graphs[which] != NULL && rg_case_can_go_on(replay->result))
        replay_ok(replay,
                  rg_graph_launch(replay->graphs[which], replay->suite->stream),
                  "rg_graph_launch");
}

static void renew(struct replay *replay, int n)
{
    for (int i = 0; i < n; i++)
        if (is_there(replay, i))
            replay_ok(replay, rg_trial_load(&replay->trials[i], replay->seed++),
                      "rg_memcpy");
}

/* Waits and compares the first n trials. */
static void check(struct replay *replay, int n)
{
    struct rg_suite *suite = replay->suite;

    if (rg_case_synchronize(replay->result, suite->stream, suite->comm) !=
        RG_OK)
        return;
    for (int i = 0; i < n; i++)
        if (is_there(replay, i))
            rg_trial_check(&replay->trials[i], replay->result);
}

static void check_captures(struct replay *replay, int expected)
{
    if (replay->captures != expected)
        rg_case_fail(replay->result, RG_EXIT_WRONG, "%d captures instead of %d",
                     replay->captures, expected);
}

/* ---- the cases: how a round launches ------------------------------------ */

/* Inputs renewed before every replay; param 0: invocations in the graph. */
static void run_many(struct rg_suite *suite, const struct rg_case *test,
                     struct rg_case_result *result)
{
    int n = test->param[0];
    struct replay replay;

    if (replay_begin(&replay, suite, result))
        capture(&replay, 0, 0, n);
    for (int i = 0; i < suite->options->replays && rg_case_can_go_on(result);
         i++) {
        renew(&replay, n);
        launch_graph(&replay, 0);
        check(&replay, n);
    }
    check_captures(&replay, 1);
    replay_end(&replay);
}

/* The host waits only now and then, and looks at the end. */
static void run_back_to_back(struct rg_suite *suite, const struct rg_case *test,
                             struct rg_case_result *result)
{
    struct replay replay;

    (void)test;
    if (replay_begin(&replay, suite, result))
        capture(&replay, 0, 0, NTRIALS);
    renew(&replay, NTRIALS);
    for (int i = 1; i <= suite->options->replays && rg_case_can_go_on(result);
         i++) {
        launch_graph(&replay, 0);
        if (i % QUEUED == 0)
            rg_case_synchronize(result, suite->stream, suite->comm);
    }
    check(&replay, NTRIALS);
    check_captures(&replay, 1);
    replay_end(&replay);
}

static int short_run(const struct rg_suite *suite)
{
    return suite->options->replays < SHORT_RUN ? suite->options->replays
                                               : SHORT_RUN;
}

/* A of three and B of one invocation, replayed as A B A A B. */
static void run_interleaved(struct rg_suite *suite, const struct rg_case *test,
                            struct rg_case_result *result)
{
    static const int order[] = {0, 1, 0, 0, 1};
    struct replay replay;

    (void)test;
    if (replay_begin(&replay, suite, result)) {
        capture(&replay, 0, 0, 3);
        capture(&replay, 1, 3, 1);
    }
    for (int i = 0; i < short_run(suite) && rg_case_can_go_on(result); i++) {
        renew(&replay, 4);
        for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
            launch_graph(&replay, order[k]);
        check(&replay, 4);
    }
    check_captures(&replay, 2);
    replay_end(&replay);
}

/* Uncaptured invocations before, between and behind replays. */
static void run_eager(struct rg_suite *suite, const struct rg_case *test,
                      struct rg_case_result *result)
{
    struct replay replay;

    (void)test;
    if (replay_begin(&replay, suite, result))
        capture(&replay, 0, 0, 3);
    for (int i = 0; i < short_run(suite) && rg_case_can_go_on(result); i++) {
        renew(&replay, NTRIALS);
        launch_trials(&replay, 3, 1);
        launch_graph(&replay, 0);
        launch_trials(&replay, 4, 1);
        launch_graph(&replay, 0);
        check(&replay, NTRIALS);
    }
    check_captures(&replay, 1);
    replay_end(&replay);
}

/* Every collective in one graph; eagerly between replays, too. */
static void run_all_collectives(struct rg_suite *suite,
                                const struct rg_case *test,
                                struct rg_case_result *result)
{
    struct replay replay;

    (void)test;
    if (replay_begin(&replay, suite, result))
        capture(&replay, 0, 0, NALL);
    for (int i = 0; i < short_run(suite) && rg_case_can_go_on(result); i++) {
        renew(&replay, NALL);
        if (i % 4 == 3)
            launch_trials(&replay, 0, NALL);
        else
            launch_graph(&replay, 0);
        check(&replay, NALL);
    }
    check_captures(&replay, 1);
    replay_end(&replay);
}

static void expect_algorithm(struct replay *replay, const char *algorithm)
{
    struct rg_run_info run;

    if (replay_ok(replay, rg_comm_last_run(replay->suite->comm, &run),
                  "rg_comm_last_run") &&
        strcmp(run.algorithm, algorithm) != 0)
        rg_case_fail(replay->result, RG_EXIT_WRONG,
                     "replay ran %s after the policy said %s", run.algorithm,
                     algorithm);
}

/* The same graph under each algorithm, twice around. */
static void run_policy(struct rg_suite *suite, const struct rg_case *test,
                       struct rg_case_result *result)
{
    const char *algorithm;
    struct replay replay;

    (void)test;
    if (replay_begin(&replay, suite, result))
        capture(&replay, 0, 0, 3);
    for (int around = 0; around < 2; around++) {
        for (int k = 0;
             (algorithm = rg_suite_algorithm(RG_COLL_all_reduce, k)) != NULL;
             k++) {
            if (!rg_suite_runs(suite, RG_COLL_all_reduce, algorithm))
                continue;
            if (!rg_case_can_go_on(result) ||
                !replay_ok(
                    &replay,
                    rg_suite_select(suite, RG_COLL_all_reduce, algorithm),
                    "rg_comm_set_policy"))
                break;
            renew(&replay, 3);
            launch_graph(&replay, 0);
            check(&replay, 3);
            expect_algorithm(&replay, algorithm);
        }
    }
    check_captures(&replay, 1);
    replay_end(&replay);
}

/* The communicator is in use as long as a graph captured from it lives. */
static void run_busy(struct rg_suite *suite, const struct rg_case *test,
                     struct rg_case_result *result)
{
    struct replay replay;
    int status;

    (void)test;
    if (replay_begin(&replay, suite, result)) {
        capture(&replay, 0, 0, 1);
        status = result->failed ? RG_EBUSY : rg_comm_destroy(suite->comm);
        if (status != RG_EBUSY)
            rg_case_fail(result, RG_EXIT_WRONG, "rg_comm_destroy: %s",
                         rg_status_string(status));
        renew(&replay, 1);
        launch_graph(&replay, 0);
        check(&replay, 1);
    }
    replay_end(&replay);
}

/* ---- the list ----------------------------------------------------------- */

struct list_builder {
    struct rg_case_list *list;
    int status;
};

/* Of the first so many trials. */
static unsigned reduced_types(int n)
{
    unsigned types = 0;

    for (int i = 0; i < n; i++)
        if (rg_collective_reduces(captured[i].collective))
            types |= RG_TYPE_BIT(captured[i].dtype);
    return types;
}

static void add(struct list_builder *builder, const char *scenario,
                const char *algorithm, rg_case_run *run, int trials,
                uint64_t first_seq)
{
    struct rg_case test = {.run = run,
                           .algorithm = algorithm,
                           .first_seq = first_seq,
                           .captures = 1,
                           .reduced = reduced_types(trials),
                           .param = {trials}};

    snprintf(test.name, sizeof(test.name), "replay.%s.%s", scenario,
             algorithm ? algorithm : "auto");
    if (builder->status == RG_OK)
        builder->status = rg_case_list_add(builder->list, &test);
}

/* One graph length an algorithm, or all with --full. */
static void add_many(struct list_builder *builder, int full,
                     const char *algorithm, int nth)
{
    static const int lengths[] = {3, 1, 5};
    char scenario[32];

    for (int i = 0; i < 3; i++) {
        if (!full && i != nth % 3)
            continue;
        snprintf(scenario, sizeof(scenario), "many_of_%d", lengths[i]);
        add(builder, scenario, algorithm, run_many, lengths[i], 0);
    }
}

/*
 * Sequence numbers that cross a power of two within the first rounds: where
 * a packet's short tag, the claimed count, and the whole word wrap.
 */
static void add_counters(struct list_builder *builder, const char *algorithm)
{
    add(builder, "seq_2e32", algorithm, run_eager, NTRIALS,
        (UINT64_C(1) << 32) - 9);
    add(builder, "seq_2e51", algorithm, run_eager, NTRIALS,
        (UINT64_C(1) << 51) - 9);
    add(builder, "seq_2e64", algorithm, run_eager, NTRIALS, UINT64_MAX - 8);
}

int rg_cases_replay(struct rg_case_list *list,
                    const struct rg_suite_options *options)
{
    struct list_builder builder = {list, RG_OK};
    const char *algorithm = NULL;
    int n = 0;

    do {
        add_many(&builder, options->full, algorithm, n);
        add(&builder, "back_to_back", algorithm, run_back_to_back, NTRIALS, 0);
        add(&builder, "interleaved", algorithm, run_interleaved, NTRIALS, 0);
        add(&builder, "eager_between", algorithm, run_eager, NTRIALS, 0);
        add_counters(&builder, algorithm);
        algorithm = rg_suite_algorithm(RG_COLL_all_reduce, n++);
    } while (algorithm != NULL);
    add(&builder, "all_collectives", NULL, run_all_collectives, NALL, 0);
    add(&builder, "policy_change", NULL, run_policy, NTRIALS, 0);
    add(&builder, "live_graph_is_busy", NULL, run_busy, NTRIALS, 0);
    return builder.status;
}
