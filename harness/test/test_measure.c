/* Measuring, over ranks that are threads and a stand-in for the runtime. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/launch.h"
#include "harness/measure.h"
#include "harness/test/fake_runtime.h"

/* What a rank is to do, and what it found. */
struct trial {
    struct rg_case what;
    int graph;
    int check_every;
    enum rg_cache cache;
    int latency;
    int spoiled_rank; /* -1: none */
    long spoiled_index;
    struct rg_result results[4];
    struct rg_case_report reports[4];
    int fouls[4]; /* calls of a subject that was not entered last; those that
                   * are captured count too, though they need no entering */
    int status[4];
};

struct rank {
    struct rg_context *context;
    struct rg_comm *comm;
    struct rg_stream *stream;
    const struct turn *entered;
    int fouls;
};

/* A subject of a rank. */
struct turn {
    struct rank *rank;
};

static int run_call(void *arg, const struct rg_call *call)
{
    const struct turn *turn = arg;
    struct rank *rank = turn->rank;

    rank->fouls += rank->entered != turn;
    return rg_call_launch(call, rank->comm, rank->stream);
}

static int enter(void *arg)
{
    const struct turn *turn = arg;

    turn->rank->entered = turn;
    return RG_OK;
}

static int no_i8(void *arg, enum rg_collective collective, enum rg_dtype dtype,
                 enum rg_op op)
{
    (void)arg;
    (void)collective;
    (void)op;
    return dtype != RG_i8;
}

static struct rg_measure_config config_of(const struct trial *trial,
                                          const struct rg_job *job,
                                          const struct rank *rank)
{
    return (struct rg_measure_config){
        .context = rank->context,
        .comm = rank->comm,
        .device = RG_DEVICE_EMU,
        .rank = job->rank,
        .nranks = job->size,
        .warmup = 1,
        .graph = trial->graph,
        .check_every = trial->check_every,
        .latency = trial->latency,
        .merge = RG_MERGE_MAX,
        .cache = trial->cache,
        .cold_bytes = 64 << 10,
        .memory_bytes = 256 << 10,
        .largest_bytes = 64 << 10,
        .stop = {0, 1, 30, 1e9},
    };
}

static int run_case(struct trial *trial, const struct rg_job *job,
                    struct rank *rank)
{
    const struct rg_measure_config config = config_of(trial, job, rank);
    struct turn turns[2] = {{rank}, {rank}};
    const struct rg_subject subjects[2] = {
        {"own", rank->stream, NULL, run_call, enter, &turns[0]},
        {"peer", rank->stream, no_i8, run_call, enter, &turns[1]}};
    struct rg_result results[2];
    struct rg_measure *measure;
    int status = rg_measure_create(&config, &measure);

    if (status != RG_OK)
        return status;
    if (job->rank == trial->spoiled_rank)
        fake_spoil(rank->context, trial->spoiled_index);
    status = rg_measure_case(measure, &trial->what, subjects, 2, results,
                             &trial->reports[job->rank]);
    trial->results[job->rank] = results[1];
    trial->fouls[job->rank] = rank->fouls;
    rg_measure_destroy(measure);
    return status;
}

static int rank_main(const struct rg_job *job, void *arg)
{
    struct trial *trial = arg;
    struct rg_context_config config;
    struct rank rank = {.fouls = 0};

    if (rg_job_context_config(job, RG_DEVICE_EMU, &config) != RG_OK ||
        rg_context_create(&config, &rank.context) != RG_OK)
        return 1;
    rg_comm_create(rank.context, &rank.comm);
    rg_stream_create(rank.context, &rank.stream);
    trial->status[job->rank] = run_case(trial, job, &rank);
    rg_stream_destroy(rank.stream);
    rg_context_destroy(rank.context);
    return rg_job_agree(job, job->rank) == job->size - 1 ? 0 : 1;
}

static void run_trial(struct trial *trial)
{
    const struct rg_launch_options launch = {RG_LAUNCH_LOCAL, 3};

    assert_int_equal(rg_job_run(&launch, rank_main, trial), 0);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(trial->status[r], RG_OK);
        assert_true(trial->graph || trial->fouls[r] == 0);
    }
}

static void right_results_pass(void **state)
{
    (void)state;
    for (int graph = 0; graph <= 3; graph += 3)
        for (int inplace = 0; inplace <= 1; inplace++)
            for (int cache = RG_CACHE_COLD; cache <= RG_CACHE_HOT; cache++) {
                struct trial trial = {.what = {.count = 1001,
                                               .dtype = RG_f16,
                                               .op = RG_sum,
                                               .inplace = inplace},
                                      .graph = graph,
                                      .check_every = 1,
                                      .cache = (enum rg_cache)cache,
                                      .latency = inplace,
                                      .spoiled_rank = -1};

                run_trial(&trial);
                assert_int_equal(trial.reports[1].wrong, 0);
                assert_true(trial.results[2].time.n >= 30);
                assert_string_equal(trial.reports[0].run.algorithm, "fake");
            }
}

/* More invocations in a graph than memory keeps outputs of. */
static void memory_is_bounded(void **state)
{
    struct trial trial = {
        .what = {.count = 1 << 14, .dtype = RG_f32, .op = RG_sum, .inplace = 1},
        .graph = 8,
        .check_every = 1,
        .cache = RG_CACHE_COLD,
        .spoiled_rank = -1};

    (void)state;
    run_trial(&trial);
    assert_int_equal(trial.reports[0].wrong, -1);
    trial.what.inplace = 0;
    run_trial(&trial);
    assert_int_equal(trial.reports[0].wrong, 0);
}

/* Sizes between powers of two, below the largest. */
static void memory_is_enough_for_any_size(void **state)
{
    (void)state;
    for (size_t count = 1; count <= 1 << 14; count += 1 + count / 7)
        for (int graph = 0; graph <= 3; graph += 3) {
            struct trial trial = {.what = {.count = count,
                                           .dtype = RG_f32,
                                           .op = RG_sum,
                                           .inplace = 0},
                                  .graph = graph,
                                  .check_every = count % 2,
                                  .cache = RG_CACHE_COLD,
                                  .spoiled_rank = -1};

            run_trial(&trial);
        }
}

static void wrong_results_are_seen_by_all(void **state)
{
    struct trial trial = {
        .what = {.count = 77, .dtype = RG_i32, .op = RG_max, .inplace = 0},
        .check_every = 1,
        .spoiled_rank = 2,
        .spoiled_index = 13};

    (void)state;
    run_trial(&trial);
    assert_true(trial.reports[0].wrong > 0);
    assert_int_equal(trial.reports[0].wrong, trial.reports[2].wrong);
    assert_int_equal(trial.reports[0].finding.wrong, 0);
    assert_int_equal(trial.reports[2].finding.index, 13);
    assert_int_equal(trial.reports[2].finding.expected,
                     trial.reports[2].finding.got ^ 1);
}

static void what_a_peer_lacks_is_left_out(void **state)
{
    struct trial trial = {
        .what = {.count = 5, .dtype = RG_i8, .op = RG_sum, .inplace = 0},
        .spoiled_rank = -1};

    (void)state;
    run_trial(&trial);
    assert_int_equal(trial.results[0].time.n, 0);
    assert_int_equal(trial.reports[0].wrong, -1);
    trial.what.count = 0;
    trial.what.dtype = RG_i16;
    run_trial(&trial);
    assert_true(trial.results[0].time.n >= 30);
}

/* Of every collective, in and out of place, for every root, eager and replayed;
 * and one spoiled result of each is seen. */
static void every_collective_is_checked(void **state)
{
    (void)state;
    for (int c = 0; c < RG_COLL_COUNT; c++)
        for (int i = 0; i < 12; i++) {
            const int rooted = rg_collective_rooted((enum rg_collective)c);
            struct trial trial = {
                .what = {.count = i % 2 ? 33 : 1200,
                         .dtype = i % 4 < 2 ? RG_bf16 : RG_i64,
                         .op = i % 4 < 2 ? RG_avg : RG_bxor,
                         .inplace = i / 6,
                         .collective = (enum rg_collective)c,
                         .root = rooted ? i % 3 : 0,
                         .seed = (uint64_t)i},
                .graph = i % 3,
                .check_every = 1,
                .spoiled_rank = -1};

            if (trial.what.inplace &&
                !rg_call_has_inplace((enum rg_collective)c))
                continue;
            run_trial(&trial);
            assert_int_equal(trial.reports[0].wrong, 0);
            if (c == RG_COLL_barrier)
                continue;
            trial.spoiled_rank = 1;
            trial.spoiled_index = i % 2 ? 0 : 17;
            run_trial(&trial);
            assert_true(trial.reports[2].wrong > 0);
            assert_int_equal(trial.reports[2].finding.wrong, 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_results_pass),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(memory_is_enough_for_any_size),
        cmocka_unit_test(wrong_results_are_seen_by_all),
        cmocka_unit_test(every_collective_is_checked),
        cmocka_unit_test(what_a_peer_lacks_is_left_out)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
