/*
 * Unit tests of the emulated device: streams, capture, events and gangs.
 *
 * A gate is a kernel that holds its stream until the test opens it: what is
 * queued behind it has then provably not run.
 */
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "runtime/exec/emu/emu.h"

enum { LOG_ROOM = 256, ROUNDS = 50, TEAMS = 3, THREADS = 2 };

/* What kernels did, in the order they did it. */
struct log {
    uint64_t count;
    uint64_t entry[LOG_ROOM];
    pthread_t writer; /* of the last entry */
};

struct world {
    const struct rg_device_ops *ops;
    void *device;
    void *stream[2];
    struct log log;
    uint64_t entered, open; /* the gate: somebody is in it; it is open */
};

static int setup(void **state)
{
    const struct rg_device_config config = {
        .world_size = 1, .team_width = 1, .host_id = "test"};
    struct world *world = test_calloc(1, sizeof *world);

    world->ops = &rg_device_emu;
    assert_int_equal(world->ops->open(&config, &world->device), RG_OK);
    assert_int_equal(
        world->ops->stream_create(world->device, NULL, &world->stream[0]),
        RG_OK);
    *state = world;
    return 0;
}

static int setup_two(void **state)
{
    struct world *world;

    setup(state);
    world = *state;
    assert_int_equal(
        world->ops->stream_create(world->device, NULL, &world->stream[1]),
        RG_OK);
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    for (int i = 0; i < 2; i++)
        if (world->stream[i])
            world->ops->stream_destroy(world->stream[i]);
    world->ops->close(world->device);
    test_free(world);
    return 0;
}

/* ---- kernels ------------------------------------------------------------ */

struct note_args {
    struct log *log;
    uint64_t value;
};

static void note_run(const void *args, int team, int teams)
{
    const struct note_args *note = args;
    const uint64_t at = rg_add_relaxed_dev(&note->log->count, 1);

    (void)team;
    (void)teams;
    note->log->entry[at % LOG_ROOM] = note->value;
    note->log->writer = pthread_self();
}

static void note(struct world *world, int stream, uint64_t value)
{
    static const struct rg_kernel kernel = {.emu = note_run};
    const struct note_args args = {&world->log, value};

    assert_int_equal(world->ops->kernel(world->stream[stream], &kernel, 1,
                                        &args, sizeof args),
                     RG_OK);
}

static void gate_run(const void *args, int team, int teams)
{
    struct world *world = *(struct world *const *)args;

    (void)team;
    (void)teams;
    rg_store_release(&world->entered, 1);
    while (!rg_load_acquire(&world->open))
        sched_yield();
    /* Gives a stream that should wait for this one the time not to. */
    for (int i = 0; i < 100; i++)
        sched_yield();
}

/* Closes a gate in a stream that is not the only one. */
static void gate_close(struct world *world, int stream)
{
    static const struct rg_kernel kernel = {.emu = gate_run};

    world->entered = world->open = 0;
    assert_int_equal(world->ops->kernel(world->stream[stream], &kernel, 1,
                                        &world, sizeof world),
                     RG_OK);
    while (!rg_load_acquire(&world->entered))
        sched_yield();
}

static void gate_open(struct world *world)
{
    rg_store_release(&world->open, 1);
}

static void finish(struct world *world, int stream)
{
    assert_int_equal(world->ops->stream_synchronize(world->stream[stream]),
                     RG_OK);
    assert_int_equal(world->ops->stream_query(world->stream[stream]), RG_OK);
}

static void check_log(struct world *world, uint64_t count)
{
    assert_int_equal(rg_load_relaxed(&world->log.count), count);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(world->log.entry[i], i);
}

/* ---- streams ------------------------------------------------------------ */

static void a_stream_keeps_its_order(void **state)
{
    struct world *world = *state;

    gate_close(world, 0);
    for (uint64_t i = 0; i < 100; i++)
        note(world, 0, i);
    check_log(world, 0);
    assert_int_equal(world->ops->stream_query(world->stream[0]), RG_EPENDING);
    gate_open(world);
    finish(world, 0);
    check_log(world, 100);
}

/* What was posted before the follow ends before what is posted after it. */
static void a_stream_follows_another(void **state)
{
    struct world *world = *state;

    for (int round = 0; round < ROUNDS; round++) {
        world->log.count = 0;
        gate_close(world, 0);
        note(world, 0, 0);
        assert_int_equal(
            world->ops->stream_follow(world->stream[1], world->stream[0]),
            RG_OK);
        note(world, 1, 1);
        gate_open(world);
        finish(world, 1);
        check_log(world, 2);
        finish(world, 0);
    }
}

/* Work behind a gate of one stream does not hold back the other stream. */
static void streams_run_apart(void **state)
{
    struct world *world = *state;

    gate_close(world, 0);
    note(world, 0, 1);
    note(world, 1, 0);
    finish(world, 1);
    check_log(world, 1);
    gate_open(world);
    finish(world, 0);
    check_log(world, 2);
}

static int on_this_thread(const struct world *world)
{
    return pthread_equal(world->log.writer, pthread_self());
}

static void the_only_stream_runs_inline(void **state)
{
    struct world *world = *state;

    note(world, 0, 0);
    check_log(world, 1);
    assert_true(on_this_thread(world));
    assert_int_equal(
        world->ops->stream_create(world->device, NULL, &world->stream[1]),
        RG_OK);
    note(world, 0, 1);
    finish(world, 0);
    check_log(world, 2);
    assert_false(on_this_thread(world));
    world->ops->stream_destroy(world->stream[1]);
    world->stream[1] = NULL;
    note(world, 0, 2);
    check_log(world, 3);
    assert_true(on_this_thread(world));
}

/* A launch of two threads: the first stays in the gate. */
static void gate_part(const struct rg_launch *launch, struct rg_team *team)
{
    if (team->thread == 0)
        gate_run(&launch->recv, team->index, team->count);
}

static void a_busy_stream_runs_nothing_inline(void **state)
{
    static const struct rg_emu_entries by_op = {.op = {[RG_sum] = gate_part}};
    static const struct rg_entries entries = {.emu = {[RG_i8] = &by_op}};
    struct world *world = *state;
    const struct rg_geometry geometry = {.teams = 1, .threads = THREADS};
    const struct rg_launch launch = {.recv = world};

    assert_int_equal(world->ops->launch(world->stream[0], &geometry, &entries,
                                        RG_i8, &launch),
                     RG_OK);
    note(world, 0, 0);
    check_log(world, 0);
    gate_open(world);
    finish(world, 0);
    check_log(world, 1);
    assert_false(on_this_thread(world));
}

static void foreign_streams_are_refused(void **state)
{
    struct world *world = *state;
    void *stream = NULL;

    assert_int_equal(world->ops->stream_create(world->device, world, &stream),
                     RG_ENOTSUP);
    assert_null(stream);
}

/* ---- capture ------------------------------------------------------------ */

/* Notes 0 .. count-1 as a graph. */
static void *capture(struct world *world, uint64_t count)
{
    void *graph = NULL;

    assert_int_equal(world->ops->capture_begin(world->stream[0]), RG_OK);
    for (uint64_t i = 0; i < count; i++)
        note(world, 0, i);
    assert_int_equal(world->ops->capture_end(world->stream[0], &graph), RG_OK);
    assert_non_null(graph);
    return graph;
}

static void capture_records_and_replays(void **state)
{
    struct world *world = *state;
    void *graph = capture(world, 40);

    finish(world, 0);
    check_log(world, 0);
    for (int replay = 0; replay < 3; replay++) {
        world->log.count = 0;
        assert_int_equal(world->ops->graph_launch(graph, world->stream[0]),
                         RG_OK);
        finish(world, 0);
        check_log(world, 40);
    }
    world->ops->graph_destroy(graph);
}

static void capture_begins_and_ends_once(void **state)
{
    struct world *world = *state;
    void *graph = NULL;

    assert_int_equal(world->ops->capture_end(world->stream[0], &graph),
                     RG_EINVAL);
    assert_int_equal(world->ops->capture_begin(world->stream[0]), RG_OK);
    assert_int_equal(world->ops->capture_begin(world->stream[0]), RG_EBUSY);
    assert_null(graph);
}

/* Freed memory is overwritten (see main): a replay of it would not do. */
static void a_queued_graph_may_be_destroyed(void **state)
{
    struct world *world = *state;
    void *graph = capture(world, 40);

    gate_close(world, 0);
    for (int replay = 0; replay < 2; replay++)
        assert_int_equal(world->ops->graph_launch(graph, world->stream[0]),
                         RG_OK);
    world->ops->graph_destroy(graph);
    gate_open(world);
    finish(world, 0);
    assert_int_equal(world->log.count, 80);
    for (uint64_t i = 0; i < 80; i++)
        assert_int_equal(world->log.entry[i], i % 40);
}

/* ---- events ------------------------------------------------------------- */

static void events_take_their_time_in_order(void **state)
{
    struct world *world = *state;
    const struct rg_device_ops *ops = world->ops;
    void *event[3];
    double us = -1, whole = -1;

    for (int i = 0; i < 3; i++)
        assert_int_equal(ops->event_create(world->device, &event[i]), RG_OK);
    assert_int_equal(ops->event_record(event[0], world->stream[0]), RG_OK);
    assert_int_equal(ops->event_synchronize(event[0]), RG_OK);
    /* The other one was never recorded. */
    assert_int_equal(ops->event_elapsed_us(event[0], event[1], &us),
                     RG_EPENDING);
    assert_int_equal(ops->event_elapsed_us(event[1], event[0], &us),
                     RG_EPENDING);
    gate_close(world, 0);
    assert_int_equal(ops->event_record(event[1], world->stream[0]), RG_OK);
    assert_int_equal(ops->event_elapsed_us(event[0], event[1], &us),
                     RG_EPENDING);
    assert_true(us == -1);
    gate_open(world);
    assert_int_equal(ops->event_record(event[2], world->stream[0]), RG_OK);
    assert_int_equal(ops->event_synchronize(event[2]), RG_OK);
    assert_int_equal(ops->event_elapsed_us(event[0], event[1], &us), RG_OK);
    assert_int_equal(ops->event_elapsed_us(event[0], event[2], &whole), RG_OK);
    assert_true(us > 0 && us <= whole);
    /* Recorded again, it is pending again until the stream gets there. */
    gate_close(world, 0);
    assert_int_equal(ops->event_record(event[1], world->stream[0]), RG_OK);
    assert_int_equal(ops->event_elapsed_us(event[0], event[1], &us),
                     RG_EPENDING);
    gate_open(world);
    assert_int_equal(ops->event_synchronize(event[1]), RG_OK);
    assert_int_equal(ops->event_elapsed_us(event[0], event[1], &us), RG_OK);
    assert_true(us >= whole);
    for (int i = 0; i < 3; i++)
        ops->event_destroy(event[i]);
}

/* ---- gangs -------------------------------------------------------------- */

/* What the parts of launches saw; recv of the launch. */
struct roll {
    uint64_t runs[TEAMS][THREADS];
    uint64_t wrong;
};

/*
 * A part of teams x threads (root x slots): in its place, and in step with
 * its team about the launch's number (count).
 */
static void roll_call(const struct rg_launch *launch, struct rg_team *team)
{
    struct roll *roll = launch->recv;
    uint64_t word;
    int vote, all;

    if (team->count != (int)launch->root ||
        team->threads != (int)launch->slots || team->index >= TEAMS ||
        team->thread >= THREADS) {
        rg_add_relaxed_dev(&roll->wrong, 1);
        return;
    }
    rg_add_relaxed_dev(&roll->runs[team->index][team->thread], 1);
    vote = launch->count % 2 && team->thread == team->threads - 1;
    all = rg_team_any(team, vote);
    word = rg_team_share_word(team, launch->count + (uint64_t)team->thread);
    if (all != (int)(launch->count % 2) || word != launch->count)
        rg_add_relaxed_dev(&roll->wrong, 1);
}

/* Launches one after the other with changing shapes, so the gang changes. */
static void every_part_of_a_launch_runs_once(void **state)
{
    static const struct rg_emu_entries by_op = {.op = {[RG_max] = roll_call}};
    static const struct rg_entries entries = {.emu = {[RG_i16] = &by_op}};
    struct world *world = *state;
    uint64_t expected[TEAMS][THREADS] = {0};
    struct roll roll = {0};

    for (int round = 0; round < ROUNDS; round++) {
        const int teams = round % 3 ? round % TEAMS + 1 : TEAMS;
        const int threads = round % 5 ? THREADS : 1;
        const struct rg_geometry geometry = {.teams = teams,
                                             .threads = threads};
        const struct rg_launch launch = {.recv = &roll,
                                         .count = (uint64_t)round,
                                         .op = RG_max,
                                         .root = (uint32_t)teams,
                                         .slots = (uint32_t)threads};

        assert_int_equal(world->ops->launch(world->stream[0], &geometry,
                                            &entries, RG_i16, &launch),
                         RG_OK);
        for (int i = 0; i < teams * threads; i++)
            expected[i / threads][i % threads]++;
    }
    finish(world, 0);
    assert_int_equal(roll.wrong, 0);
    assert_memory_equal(roll.runs, expected, sizeof expected);
}

static void a_launch_gets_teams_by_its_size(void **state)
{
    const struct rg_device_config config = {.world_size = 1,
                                            .team_width = THREADS,
                                            .max_teams = TEAMS,
                                            .host_id = "test"};
    struct world *world = *state;
    struct rg_geometry geometry;
    void *device;

    assert_int_equal(world->ops->open(&config, &device), RG_OK);
    for (int i = 0; i <= 5; i++) {
        world->ops->geometry(device, RG_COLL_all_reduce, (uint64_t)i << 20, 1,
                             &geometry);
        assert_int_equal(geometry.teams, i < TEAMS ? i + 1 : TEAMS);
        assert_int_equal(geometry.threads, THREADS);
    }
    assert_int_equal(world->ops->channels(device), TEAMS);
    assert_true(world->ops->max_channels(device) >= TEAMS);
    world->ops->close(device);
}

/* ---- memory ------------------------------------------------------------- */

/* Threads have one mapping in common; either may be the first to let it go. */
static void a_region_lasts_as_long_as_it_is_used(void **state)
{
    const size_t bytes = 12345;
    struct world *world = *state;
    const struct rg_memory_ops *ops = world->ops->memory;
    unsigned char *base, *mapped;
    unsigned char resident[4];
    int fd;

    for (int owner_first = 0; owner_first < 2; owner_first++) {
        struct rg_region_key key = {.process = ops->process(world->device)};

        assert_int_equal(
            ops->region_create(world->device, bytes, (void **)&base, &fd),
            RG_OK);
        key.base = (uint64_t)(uintptr_t)base;
        assert_int_equal(
            ops->region_map(world->device, &key, -1, bytes, (void **)&mapped),
            RG_OK);
        assert_ptr_equal(mapped, base);
        if (owner_first)
            ops->region_destroy(world->device, base, bytes, fd);
        else
            ops->region_unmap(world->device, &key, mapped, bytes);
        assert_int_equal(mincore(base, bytes, resident), 0);
        memset(base, 1, bytes);
        if (owner_first)
            ops->region_unmap(world->device, &key, mapped, bytes);
        else
            ops->region_destroy(world->device, base, bytes, fd);
        assert_int_equal(mincore(base, bytes, resident), -1);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_TWO(name)                                                         \
    cmocka_unit_test_setup_teardown(name, setup_two, teardown)
    const struct CMUnitTest tests[] = {
        TEST_TWO(a_stream_keeps_its_order),
        TEST_TWO(a_stream_follows_another),
        TEST_TWO(streams_run_apart),
        TEST(the_only_stream_runs_inline),
        TEST(a_busy_stream_runs_nothing_inline),
        TEST(foreign_streams_are_refused),
        TEST(capture_records_and_replays),
        TEST_TWO(capture_records_and_replays),
        TEST(capture_begins_and_ends_once),
        TEST_TWO(a_queued_graph_may_be_destroyed),
        TEST_TWO(events_take_their_time_in_order),
        TEST(every_part_of_a_launch_runs_once),
        TEST(a_launch_gets_teams_by_its_size),
        TEST(a_region_lasts_as_long_as_it_is_used),
    };

    mallopt(M_PERTURB, 0xa5);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
