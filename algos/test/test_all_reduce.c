/*
 * All-reduce algorithms on ranks whose every thread is a thread here: any
 * number of ranks, teams and threads, any nodes, one invocation after the other
 * with sizes that change. The sums are right everywhere; the hierarchical one
 * lets no more bytes cross between nodes than must.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define RG_ENTRY_DTYPE u16

#include "runtime/device/transfer.h"

static int counted_put(struct rg_call *call, int peer, int lane,
                       uint64_t offset, const void *src, uint64_t bytes);

static int slowed_put_signal(struct rg_call *call, int peer, int lane,
                             uint64_t offset, const void *src, uint64_t bytes,
                             uint64_t signal_offset, enum rg_signal_op op,
                             uint64_t value);

#define rg_put        counted_put
#define rg_put_signal slowed_put_signal
#include "algos/all_reduce/all_reduce_doubling.c"
#include "algos/all_reduce/all_reduce_doubling_ll.c"
#include "algos/all_reduce/all_reduce_hierarchical.c"
#include "algos/all_reduce/all_reduce_twoshot.c"
#include "algos/all_reduce/all_reduce_twoshot_ll.c"
#undef rg_put
#undef rg_put_signal

enum {
    MAX_RANKS = 9,
    MAX_TEAMS = 4, /* of a launch */
    MAX_WIDTH = 3, /* threads of a team */
    CHANNELS = 2,
    CHUNK = 256,
    MAX_COUNT = 4999,
    BUDGET = 1 << 20,
    SLOW_YIELDS = 100
};

/* ---- algorithms --------------------------------------------------------- */

struct algorithm {
    int (*run)(struct rg_call *call, enum rg_op op);
    uint64_t (*layout)(const struct rg_shape *shape,
                       struct rg_limits *limits_out);
};

#define RG_X(name)                                                             \
    static int name##_run(struct rg_call *call, enum rg_op op)                 \
    {                                                                          \
        return all_reduce_##name(call, op);                                    \
    }                                                                          \
    static uint64_t name##_size(const struct rg_shape *shape,                  \
                                struct rg_limits *limits_out)                  \
    {                                                                          \
        return all_reduce_##name##_layout(shape, limits_out);                  \
    }                                                                          \
    static const struct algorithm name = {name##_run, name##_size};
RG_X(doubling)
RG_X(doubling_ll)
RG_X(hierarchical)
RG_X(twoshot)
RG_X(twoshot_ll)
#undef RG_X

/* ---- the world ---------------------------------------------------------- */

/* What is run: invocation k has counts[k % ncounts] elements. */
struct plan {
    const struct algorithm *algorithm;
    const char *nodes; /* rank r is in node nodes[r] - '0' */
    int teams, width;
    int in_place;
    int invocations;
    const int *counts;
    int ncounts;
    uint64_t first_seq;
    /* Of packets: at invocation `stale_at` slots far behind hold the tag that
     * invocation `stale_of` will use; 0: none do. */
    int stale_at, stale_of;
    int slow; /* rank that is left behind by all whom it has sent to; 0: none */
};

struct rank {
    struct rg_comm_dev dev; /* first: a call leads here */
    struct rg_emu_team emu[MAX_TEAMS];
    struct rg_plan *plan; /* owned, as what follows */
    uint8_t *region;
    uint16_t *send, *recv;
    uint64_t abort_epoch;
    uint64_t across; /* bytes put to other nodes, by the teams' first threads */
    uint64_t wrong;  /* elements */
    uint64_t failed;
    int slow;
    pthread_barrier_t barrier; /* between invocations */
};

struct world {
    const struct plan *what;
    struct rank *ranks; /* [n], owned */
    struct rg_rule rule;
    int n;
};

struct thread {
    struct world *world;
    struct rank *self;
    int rank, team, index;
    pthread_t thread;
};

static int counted_put(struct rg_call *call, int peer, int lane,
                       uint64_t offset, const void *src, uint64_t bytes)
{
    const struct rg_place *places = rg_plan_places(call->plan);
    struct rank *self = (struct rank *)(void *)call->dev;

    if (call->team.thread == 0 &&
        places[peer].node != places[call->plan->rank].node)
        rg_add_release(&self->across, bytes);
    return rg_put(call, peer, lane, offset, src, bytes);
}

/* As far as they get, the others run ahead of what this rank has sent. */
static int slowed_put_signal(struct rg_call *call, int peer, int lane,
                             uint64_t offset, const void *src, uint64_t bytes,
                             uint64_t signal_offset, enum rg_signal_op op,
                             uint64_t value)
{
    const struct rank *self = (const struct rank *)(void *)call->dev;
    const int failed = rg_put_signal(call, peer, lane, offset, src, bytes,
                                     signal_offset, op, value);

    for (int i = 0; self->slow && i < SLOW_YIELDS; i++)
        sched_yield();
    return failed;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void relax(uint64_t polls, int crowded)
{
    (void)polls;
    (void)crowded;
    sched_yield();
}

/* Nodes are numbered by their lowest rank. */
static void fill_places(struct rg_plan *plan, const char *nodes)
{
    struct rg_place *places =
        (struct rg_place *)(void *)(plan->routes + plan->capacity);

    for (int r = 0; nodes[r]; r++) {
        struct rg_place *place = &places[r];

        place->node = (uint32_t)(nodes[r] - '0');
        for (int p = 0; nodes[p]; p++) {
            place->size += nodes[p] == nodes[r];
            place->local += p < r && nodes[p] == nodes[r];
        }
        if (place->size > plan->widest)
            plan->widest = place->size;
        if (place->node >= plan->nodes)
            plan->nodes = place->node + 1;
    }
}

static void create_rank(struct world *world, int r, uint64_t bytes)
{
    const struct plan *what = world->what;
    struct rank *self = &world->ranks[r];
    const size_t plan_bytes =
        sizeof *self->plan +
        (size_t)world->n * (sizeof(struct rg_route) + sizeof(struct rg_place));

    self->plan = test_calloc(1, plan_bytes);
    self->plan->rank = (uint32_t)r;
    self->plan->nranks = self->plan->capacity = (uint32_t)world->n;
    self->plan->max_channels = CHANNELS;
    self->plan->first_seq = what->first_seq;
    fill_places(self->plan, what->nodes);
    self->region = aligned_alloc(RG_LINE, bytes);
    assert_non_null(self->region);
    memset(self->region, 0, bytes);
    self->send = test_calloc(MAX_COUNT, sizeof *self->send);
    self->recv = what->in_place ? self->send
                                : test_calloc(MAX_COUNT, sizeof *self->recv);
    for (int t = 0; t < what->teams; t++)
        self->emu[t] = (struct rg_emu_team){.now_ns = now_ns, .relax = relax};
    self->slow = r && r == what->slow;
    self->dev.region = self->plan->landing = self->region;
    self->dev.deadline_ns = 60000000000u;
    self->dev.gate_ns = 20000;
    self->dev.abort_epoch = &self->abort_epoch;
    self->dev.plan[0] = self->plan;
    self->plan->epoch = 1;
    pthread_barrier_init(&self->barrier, NULL,
                         (unsigned)(what->teams * what->width));
}

static void create(struct world *world, const struct plan *what)
{
    const struct rg_shape shape = {.capacity = (int)strlen(what->nodes),
                                   .max_channels = CHANNELS,
                                   .budget = BUDGET};
    struct rg_limits limits;
    const uint64_t used = what->algorithm->layout(&shape, &limits);
    const uint64_t bytes = (used + RG_LINE - 1) / RG_LINE * RG_LINE;
    const size_t size = (size_t)shape.capacity * sizeof *world->ranks;

    assert_in_range(used, 1, BUDGET);
    assert_true(limits.max_bytes >= MAX_COUNT * sizeof(uint16_t));
    assert_true(!limits.max_chunk || limits.max_chunk >= CHUNK);
    world->what = what;
    world->n = shape.capacity;
    world->rule =
        (struct rg_rule){.channels = CHANNELS, .chunk = CHUNK, .slot = CHUNK};
    world->ranks = aligned_alloc(RG_LINE, size);
    assert_non_null(world->ranks);
    memset(world->ranks, 0, size);
    for (int r = 0; r < world->n; r++)
        create_rank(world, r, bytes);
    for (int r = 0; r < world->n; r++)
        for (int p = 0; p < world->n; p++)
            world->ranks[r].plan->routes[p] =
                (struct rg_route){.kind = p == r ? RG_ROUTE_SELF : RG_ROUTE_P2P,
                                  .base = world->ranks[p].region,
                                  .bytes = used};
}

static void destroy(struct world *world)
{
    for (int r = 0; r < world->n; r++) {
        struct rank *self = &world->ranks[r];

        test_free(self->plan);
        test_free(self->send);
        if (self->recv != self->send)
            test_free(self->recv);
        free(self->region);
        pthread_barrier_destroy(&self->barrier);
    }
    free(world->ranks);
}

/* ---- a run -------------------------------------------------------------- */

/* Rank r's input of invocation k. */
static uint16_t input(int r, int k, int i)
{
    return (uint16_t)((r + 1) * (i % 97 + k % 13 + 1));
}

static uint16_t result(int n, int k, int i)
{
    return (uint16_t)(n * (n + 1) / 2 * (i % 97 + k % 13 + 1));
}

/* As a round of tags ago has left it; slots that small sizes do not reach. */
static void make_stale(struct thread *thread)
{
    const struct plan *what = thread->world->what;
    const uint64_t cursor = what->first_seq - 1 + (uint64_t)what->stale_of;
    const struct rg_packets_note *note = (void *)thread->self->region;

    for (uint64_t i = 64; i < note->most; i++)
        rg_packet_store(thread->self->region + RG_PACKETS_HEAD +
                            rg_packets_at(cursor & 1, i),
                        0x5a5a5a5a5a5a5a5aull, rg_packet_tag(cursor));
}

static void load(struct thread *thread, int k, int count)
{
    if (k && k == thread->world->what->stale_at)
        make_stale(thread);
    for (int i = 0; i < count; i++)
        thread->self->send[i] = input(thread->rank, k, i);
}

static void check(struct thread *thread, int k, int count)
{
    for (int i = 0; i < count; i++)
        thread->self->wrong +=
            thread->self->recv[i] != result(thread->world->n, k, i);
}

static void *run_thread(void *arg)
{
    struct thread *thread = arg;
    struct rank *self = thread->self;
    const struct plan *what = thread->world->what;
    const int leads = thread->team == 0 && thread->index == 0;
    struct rg_call call = {.team = {.thread = thread->index,
                                    .threads = what->width,
                                    .index = thread->team,
                                    .count = what->teams,
                                    .emu = &self->emu[thread->team]},
                           .dev = &self->dev,
                           .plan = self->plan,
                           .rule = &thread->world->rule,
                           .send = (const uint8_t *)self->send,
                           .recv = (uint8_t *)self->recv};

    for (int k = 0; k < what->invocations; k++) {
        const int count = what->counts[k % what->ncounts];

        if (leads)
            load(thread, k, count);
        pthread_barrier_wait(&self->barrier);
        call.seq = what->first_seq + (uint64_t)k;
        call.count = (uint64_t)count;
        if (what->algorithm->run(&call, RG_sum))
            rg_add_release(&self->failed, 1);
        pthread_barrier_wait(&self->barrier);
        if (leads)
            check(thread, k, count);
    }
    return NULL;
}

static void run_all(struct world *world)
{
    const struct plan *what = world->what;
    struct thread threads[MAX_RANKS * MAX_TEAMS * MAX_WIDTH];
    int count = 0;

    for (int r = 0; r < world->n; r++)
        for (int i = 0; i < what->teams * what->width; i++) {
            struct thread *thread = &threads[count++];

            *thread = (struct thread){.world = world,
                                      .self = &world->ranks[r],
                                      .rank = r,
                                      .team = i / what->width,
                                      .index = i % what->width};
            assert_int_equal(
                pthread_create(&thread->thread, NULL, run_thread, thread), 0);
        }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i].thread, NULL);
    for (int r = 0; r < world->n; r++) {
        assert_int_equal(world->ranks[r].failed, 0);
        assert_int_equal(world->ranks[r].wrong, 0);
    }
}

static void run(const struct plan *what)
{
    struct world world;

    create(&world, what);
    run_all(&world);
    destroy(&world);
}

/* ---- tests -------------------------------------------------------------- */

/* Fewer elements than ranks, parts that are not whole, many chunks. */
static const int counts[] = {1, 700, 3, 4999, 8, 257, 2, 1024, 33};
enum { NCOUNTS = sizeof counts / sizeof *counts };

static const char *const nodes_of[] = {
    "00",    "01",      "000",     "001",      "010",       "012",
    "0011",  "0101",    "0001",    "0111",     "0123",      "00112",
    "01111", "0000011", "0120120", "01201201", "012345670", "001122334"};

/* All ranks of 2 to 7, narrow and wide teams, one to four. */
static void sums_are_right(const struct algorithm *algorithm)
{
    static const char *const nodes[] = {"00",    "001",    "0000",
                                        "00110", "012345", "0011012"};

    for (int i = 0; i < 6; i++)
        for (int teams = 1; teams <= MAX_TEAMS; teams++) {
            const struct plan what = {.algorithm = algorithm,
                                      .nodes = nodes[i],
                                      .teams = teams,
                                      .width = 1 + (i + teams) % MAX_WIDTH,
                                      .in_place = (i + teams) % 2,
                                      .invocations = 2 * NCOUNTS + 1,
                                      .counts = counts,
                                      .ncounts = NCOUNTS,
                                      .first_seq = 1};

            run(&what);
        }
}

static void doubling_is_right(void **state)
{
    (void)state;
    sums_are_right(&doubling);
}

/* What a rank has not read yet is not written over. */
static void doubling_waits_for_the_slow(void **state)
{
    static const char *const nodes[] = {"00", "000", "0000", "00000"};

    (void)state;
    for (int i = 0; i < 4; i++)
        for (int slow = 1; nodes[i][slow]; slow++) {
            const struct plan what = {.algorithm = &doubling,
                                      .nodes = nodes[i],
                                      .teams = 1,
                                      .width = 1,
                                      .invocations = NCOUNTS,
                                      .counts = counts,
                                      .ncounts = NCOUNTS,
                                      .first_seq = 1,
                                      .slow = slow};

            run(&what);
        }
}

static void doubling_ll_is_right(void **state)
{
    (void)state;
    sums_are_right(&doubling_ll);
}

static void hierarchical_is_right(void **state)
{
    (void)state;
    sums_are_right(&hierarchical);
}

static void twoshot_is_right(void **state)
{
    (void)state;
    sums_are_right(&twoshot);
}

static void twoshot_ll_is_right(void **state)
{
    (void)state;
    sums_are_right(&twoshot_ll);
}

/* 2 (G-1) buffers in all; with two nodes, one out of each. */
static void check_bytes(const struct world *world)
{
    const struct rg_plan *plan = world->ranks[0].plan;
    uint64_t buffers = 0, all = 0, first = 0;

    for (int k = 0; k < world->what->invocations; k++)
        buffers += (uint64_t)counts[k % NCOUNTS] * sizeof(uint16_t);
    for (int r = 0; r < world->n; r++) {
        all += world->ranks[r].across;
        if (rg_plan_places(plan)[r].node == 0)
            first += world->ranks[r].across;
    }
    assert_int_equal(all, 2 * (plan->nodes - 1) * buffers);
    if (plan->nodes == 2)
        assert_int_equal(first, buffers);
}

static void bytes_cross_nodes_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nodes_of / sizeof *nodes_of; i++) {
        const struct plan what = {.algorithm = &hierarchical,
                                  .nodes = nodes_of[i],
                                  .teams = 1,
                                  .width = 1,
                                  .in_place = (int)i % 2,
                                  .invocations = NCOUNTS,
                                  .counts = counts,
                                  .ncounts = NCOUNTS,
                                  .first_seq = 1};
        struct world world;

        create(&world, &what);
        run_all(&world);
        check_bytes(&world);
        destroy(&world);
    }
}

/*
 * Tags start again in mid-run. Invocations 0 and 1 are large; then small ones,
 * while 10's packets of a round ago still lie there; then 10, large.
 */
static void tags_come_round(void **state)
{
    static const int sizes[] = {4999, 4999, 1, 1, 1, 1, 1, 1, 1, 1};
    const struct algorithm *const algorithms[] = {&doubling_ll, &twoshot_ll};

    (void)state;
    for (int i = 0; i < 2; i++)
        for (uint64_t before = 3; before <= 8; before++) {
            const struct plan what = {.algorithm = algorithms[i],
                                      .nodes = "000",
                                      .teams = 2,
                                      .width = 1,
                                      .invocations = 40,
                                      .counts = sizes,
                                      .ncounts = 10,
                                      .first_seq = RG_PACKET_TAGS - before,
                                      .stale_at = 2,
                                      .stale_of = 10};

            run(&what);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doubling_is_right),
        cmocka_unit_test(doubling_waits_for_the_slow),
        cmocka_unit_test(doubling_ll_is_right),
        cmocka_unit_test(hierarchical_is_right),
        cmocka_unit_test(twoshot_is_right),
        cmocka_unit_test(twoshot_ll_is_right),
        cmocka_unit_test(bytes_cross_nodes_once),
        cmocka_unit_test(tags_come_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
