/*
 * The host proxy between two ranks of one process: the device side's calls of
 * rank 0, the workers of both, and real sockets.
 */
#include "runtime/core/clock.h"
#include "runtime/device/test/fake.h"
#include "runtime/device/transfer.h"
#include "runtime/transfer/routes/proxy/proxy.h"

enum {
    LANES = 2,
    BYTES = 4 << 20,
    WORD = BYTES - 64, /* offset of a signal */
    EPOCH = FAKE_EPOCH,
    PATIENCE = 100000 /* looks of 100 us */
};

struct end {
    struct rg_proxy_fifo *fifo;
    uint8_t *stages;
    uint64_t *memory;
    struct rg_proxy *proxy;
};

struct world {
    struct fake *fake;
    struct end ends[2];
};

static void open_end(struct end *end, int rank, int drives)
{
    const size_t bytes = sizeof *end->fifo + LANES * sizeof end->fifo->lane[0];
    struct rg_proxy_config config = {
        .engine = {.rank = rank, .size = FAKE_RANKS, .bytes = BYTES},
        .deadline_ms = 20000,
        .drives = drives};

    config.fifo = end->fifo = aligned_alloc(RG_LINE, bytes);
    assert_non_null(end->fifo);
    memset(end->fifo, 0, bytes);
    config.stages = end->stages =
        test_malloc((size_t)LANES * RG_PROXY_STAGES * RG_PROXY_STAGE_BYTES);
    config.engine.memory = end->memory = test_calloc(1, BYTES);
    end->fifo->lanes = LANES;
    end->fifo->stages = end->stages;
    assert_int_equal(rg_proxy_create(&config, &end->proxy), RG_OK);
}

static void close_end(struct end *end)
{
    rg_proxy_destroy(end->proxy);
    free(end->fifo);
    test_free(end->stages);
    test_free(end->memory);
}

static void enter(struct world *world, int rank, uint64_t epoch)
{
    struct rg_bitset members;

    assert_int_equal(rg_bitset_init(&members, FAKE_RANKS), RG_OK);
    rg_bitset_set(&members, 0);
    rg_bitset_set(&members, 1);
    rg_proxy_enter(world->ends[rank].proxy, epoch, &members);
    rg_bitset_fini(&members);
    if (rank == 0)
        memset(world->fake->dev.proxy_heads, 0,
               sizeof world->fake->dev.proxy_heads);
    rg_proxy_force(world->ends[rank].proxy, 1);
}

static void connect_ends(struct world *world)
{
    struct rg_engine_card card;

    for (int rank = 0; rank < 2; rank++) {
        rg_proxy_card(world->ends[!rank].proxy, &card);
        assert_int_equal(
            rg_proxy_connect(world->ends[rank].proxy, !rank, &card), RG_OK);
    }
}

/* A poll: the fake clock goes about as the real one, for there are threads. */
static void nap(struct fake *fake)
{
    (void)fake;
    rg_clock_sleep_ns(50000);
}

static int setup_as(void **state, int drives)
{
    struct world *world = test_calloc(1, sizeof *world);
    struct rg_plan *plan;

    fake_setup((void **)&world->fake);
    for (int rank = 0; rank < 2; rank++)
        open_end(&world->ends[rank], rank, drives);
    plan = world->fake->plan[0];
    plan->proxy = world->ends[0].fifo;
    plan->landing = (uint8_t *)world->ends[0].memory;
    plan->routes[1] =
        (struct rg_route){.kind = RG_ROUTE_PROXY, .bytes = BYTES, .queue = 1};
    world->fake->dev.deadline_ns = 10000000000u;
    world->fake->step = 100000;
    world->fake->hook = nap;
    connect_ends(world);
    enter(world, 0, EPOCH);
    enter(world, 1, EPOCH);
    *state = world;
    return 0;
}

static int setup(void **state)
{
    return setup_as(state, 1);
}

/* As on CUDA: nobody drives. */
static int setup_undriven(void **state)
{
    return setup_as(state, 0);
}

static int teardown(void **state)
{
    struct world *world = *state;

    close_end(&world->ends[0]);
    close_end(&world->ends[1]);
    fake_teardown((void **)&world->fake);
    test_free(world);
    return 0;
}

static uint8_t *at(struct world *world, uint64_t offset)
{
    return (uint8_t *)world->ends[1].memory + offset;
}

/* Waits for rank 1's word; what came before it is there then. */
static void await(struct world *world, uint64_t offset, uint64_t value)
{
    const uint64_t *word = (const uint64_t *)(void *)at(world, offset);

    rg_proxy_drive(world->ends[0].fifo, RG_DRIVE_DONE);
    for (int i = 0; i < PATIENCE && rg_load_acquire(word) != value; i++)
        rg_clock_sleep_ns(100000);
    assert_int_equal(rg_load_acquire(word), value);
}

static void await_failed(struct world *world, uint64_t count)
{
    struct rg_proxy *proxy = world->ends[0].proxy;

    rg_proxy_drive(world->ends[0].fifo, RG_DRIVE_DONE);
    for (int i = 0; i < PATIENCE && rg_proxy_failures(proxy) < count; i++)
        rg_clock_sleep_ns(100000);
    assert_int_equal(rg_proxy_failures(proxy), count);
}

/* ---- transfers ---------------------------------------------------------- */

static void payload_comes_before_its_signal(void **state)
{
    static const uint64_t sizes[] = {
        1,      3, 4095, RG_PROXY_STAGE_BYTES, 3 * RG_PROXY_STAGE_BYTES + 1,
        1 << 20};
    struct world *world = *state;
    uint8_t *source = test_malloc(1 << 20);

    for (uint64_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint64_t bytes = sizes[i];

        memset(source, (int)i + 1, bytes);
        assert_int_equal(rg_put_signal(&world->fake->call, 1, (int)i, 77,
                                       source, bytes, WORD, RG_SIGNAL_SET,
                                       i + 1),
                         0);
        /* It has left its source by now. */
        memset(source, 0xee, bytes);
        await(world, WORD, i + 1);
        for (uint64_t k = 0; k < bytes; k++)
            assert_int_equal(at(world, 77)[k], i + 1);
        assert_int_equal(at(world, 77)[bytes], 0);
        memset(at(world, 0), 0, WORD);
    }
    assert_int_equal(world->fake->dev.latch.reasons, 0);
    test_free(source);
}

static void more_signals_than_a_lane_has_room_for(void **state)
{
    struct world *world = *state;

    for (int i = 0; i < 3 * RG_PROXY_DEPTH; i++)
        rg_signal(&world->fake->call, 1, 0, WORD, RG_SIGNAL_ADD, 2);
    await(world, WORD, 6 * RG_PROXY_DEPTH);
    rg_signal(&world->fake->call, 1, 0, WORD, RG_SIGNAL_SET, 5);
    await(world, WORD, 5);
    assert_int_equal(world->fake->call.refused, 0);
}

/* Each is used again once what was in it has arrived. */
static void more_puts_than_a_lane_has_stages(void **state)
{
    struct world *world = *state;
    uint64_t i;

    for (i = 0; i < 3 * RG_PROXY_STAGES; i++)
        assert_int_equal(rg_put_signal(&world->fake->call, 1, 0, 8 * i, &i,
                                       sizeof i, WORD, RG_SIGNAL_ADD, 1),
                         0);
    await(world, WORD, 3 * RG_PROXY_STAGES);
    for (i = 0; i < 3 * RG_PROXY_STAGES; i++)
        assert_int_equal(world->ends[1].memory[i], i);
}

static void a_put_of_nothing_still_signals(void **state)
{
    struct world *world = *state;

    assert_int_equal(rg_put_signal(&world->fake->call, 1, 1, 0, NULL, 0, WORD,
                                   RG_SIGNAL_SET, 9),
                     0);
    await(world, WORD, 9);
}

static void both_ends_are_signalled(void **state)
{
    const uint64_t data = 17;
    struct world *world = *state;

    assert_int_equal(rg_put_signal_both(&world->fake->call, 1, 0, 8, &data,
                                        sizeof data, WORD, 4),
                     0);
    assert_int_equal(world->ends[0].memory[WORD / 8], 4);
    await(world, WORD, 4);
    assert_int_equal(world->ends[1].memory[1], 17);
}

static void it_gives_no_direct_access(void **state)
{
    struct world *world = *state;

    assert_null(rg_direct(&world->fake->call, 1, 0, 8));
}

/* ---- what does not arrive ----------------------------------------------- */

static void the_device_checks_bounds(void **state)
{
    const uint64_t data = 1;
    struct world *world = *state;

    assert_int_equal(rg_put_signal(&world->fake->call, 1, 0, BYTES - 7, &data,
                                   sizeof data, WORD, RG_SIGNAL_SET, 1),
                     1);
    rg_signal(&world->fake->call, 1, 0, BYTES - 4, RG_SIGNAL_SET, 1);
    assert_int_equal(world->fake->call.refused, 1);
    assert_int_equal(world->fake->dev.latch.reasons, 1ull << -RG_EINVAL);
}

static void the_target_checks_bounds(void **state)
{
    const uint64_t data[2] = {1, 2};
    struct world *world = *state;

    world->fake->plan[0]->routes[1].bytes = 2 * BYTES;
    assert_int_equal(rg_put_signal(&world->fake->call, 1, 0, BYTES - 8, data,
                                   sizeof data, WORD, RG_SIGNAL_SET, 1),
                     0);
    await_failed(world, 1);
    assert_int_equal(world->ends[1].memory[BYTES / 8 - 1], 0);
    assert_int_equal(world->ends[1].memory[WORD / 8], 0);
}

static void an_older_epoch_writes_nowhere(void **state)
{
    const uint64_t data = 1;
    struct world *world = *state;

    enter(world, 1, EPOCH + 1);
    assert_int_equal(rg_put_signal(&world->fake->call, 1, 0, 0, &data,
                                   sizeof data, WORD, RG_SIGNAL_SET, 1),
                     0);
    await_failed(world, 1);
    assert_int_equal(world->ends[1].memory[0], 0);
    assert_int_equal(world->ends[1].memory[WORD / 8], 0);
    enter(world, 0, EPOCH + 1);
    rg_signal(&world->fake->call, 1, 0, WORD, RG_SIGNAL_SET, 2);
    await(world, WORD, 2);
}

static void a_newer_epoch_waits_for_its_target(void **state)
{
    struct world *world = *state;

    enter(world, 0, EPOCH + 1);
    rg_signal(&world->fake->call, 1, 0, WORD, RG_SIGNAL_SET, 3);
    assert_int_equal(world->ends[1].memory[WORD / 8], 0);
    enter(world, 1, EPOCH + 1);
    await(world, WORD, 3);
}

/* Stages that nothing frees: the team gives up, and names who they wait for. */
static void a_peer_that_takes_nothing_is_named(void **state)
{
    const uint8_t data[RG_ENGINE_SMALL_BYTES + 1] = {1};
    struct world *world = *state;
    struct rg_bitset members;
    int failed = 0;

    assert_int_equal(rg_bitset_init(&members, FAKE_RANKS), RG_OK);
    rg_proxy_enter(world->ends[1].proxy, EPOCH, &members);
    rg_bitset_fini(&members);
    world->fake->dev.deadline_ns = 10000000;
    for (int i = 0; i <= RG_PROXY_STAGES; i++) {
        assert_int_equal(failed, 0);
        failed = rg_put(&world->fake->call, 1, 0, 0, data, sizeof data);
    }
    assert_int_equal(failed, 1);
    assert_int_equal(world->fake->dev.latch.reasons, 1ull << -RG_ETIMEDOUT);
    assert_int_equal(world->fake->dev.latch.peers[0], 2);
}

/* ---- driving ------------------------------------------------------------ */

/* A round by rank 0 that is not kept out by its worker's own. */
static int drive(struct world *world, enum rg_drive why)
{
    int gave = 0;

    for (int i = 0; i < 100 && !gave; i++)
        gave = rg_proxy_drive(world->ends[0].fifo, why);
    return gave;
}

/* On the network alone at once, else when it has waited for some time. */
static void who_waits_gives_its_core_away(void **state)
{
    struct world *world = *state;

    for (int alone = 0; alone < 2; alone++) {
        rg_proxy_force(world->ends[0].proxy, alone);
        assert_int_equal(drive(world, RG_DRIVE_DONE), 0);
        assert_int_equal(drive(world, RG_DRIVE_WAITS), 0);
        assert_int_equal(drive(world, RG_DRIVE_CROWDED), alone);
        assert_int_equal(drive(world, RG_DRIVE_TIRED), 1);
    }
}

/* ---- notes -------------------------------------------------------------- */

static void a_note_is_visible_when_it_says_so(void **state)
{
    const uint64_t note[2] = {0x1122, 0x3344};
    struct world *world = *state;
    uint64_t seen[2] = {0, 0};
    int status = RG_EPENDING;

    for (int i = 0; i < PATIENCE && status == RG_EPENDING; i++) {
        status = rg_proxy_note(world->ends[0].proxy, 1, 128, note, sizeof note);
        rg_clock_sleep_ns(100000);
    }
    assert_int_equal(status, RG_OK);
    rg_proxy_read(world->ends[1].proxy, 128, seen, sizeof seen);
    assert_memory_equal(seen, note, sizeof note);
}

#define PROXY_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define PROXY_TEST_UNDRIVEN(test)                                              \
    cmocka_unit_test_setup_teardown(test, setup_undriven, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(payload_comes_before_its_signal),
        PROXY_TEST_UNDRIVEN(payload_comes_before_its_signal),
        PROXY_TEST(more_signals_than_a_lane_has_room_for),
        PROXY_TEST_UNDRIVEN(more_signals_than_a_lane_has_room_for),
        PROXY_TEST(more_puts_than_a_lane_has_stages),
        PROXY_TEST_UNDRIVEN(more_puts_than_a_lane_has_stages),
        PROXY_TEST(a_put_of_nothing_still_signals),
        PROXY_TEST(both_ends_are_signalled),
        PROXY_TEST(it_gives_no_direct_access),
        PROXY_TEST(the_device_checks_bounds),
        PROXY_TEST(the_target_checks_bounds),
        PROXY_TEST(an_older_epoch_writes_nowhere),
        PROXY_TEST(a_newer_epoch_waits_for_its_target),
        PROXY_TEST(a_peer_that_takes_nothing_is_named),
        PROXY_TEST(who_waits_gives_its_core_away),
        PROXY_TEST(a_note_is_visible_when_it_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
