/* The legacy backend with ranks as threads, over each provider. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>

#include "runtime/core/clock.h"
#include "runtime/legacy/legacy.h"
#include "runtime/regroup.h"
#include "runtime/status.h"

enum { MAX_RANKS = 5, CHUNK = 4096, GUARD = 32, DEADLINE_MS = 20000 };

struct world {
    int size;
    uint64_t chunk_bytes;
    struct rg_legacy *ranks[MAX_RANKS]; /* by world rank; null: dead */
    struct rg_engine_card cards[MAX_RANKS];
    uint64_t epoch;
};

/* One rank's thread: what it is to do, and what came of it. */
struct job {
    struct world *world;
    int world_rank;
    int rank, nranks; /* in the view */
    void (*work)(struct job *job);
    int rc;
    int errors;
    uint64_t blamed; /* world ranks as bits */
    const struct rg_legacy_op *op;
    uint64_t seq;
};

static void start_rank(struct world *world, int rank, uint64_t deadline_ms)
{
    struct rg_legacy_config config = {
        .engine = {.rank = rank, .size = world->size, .host_id = "here"},
        .chunk_bytes = world->chunk_bytes,
        .deadline_ms = deadline_ms};

    assert_int_equal(rg_legacy_create(&config, &world->ranks[rank]), RG_OK);
    rg_legacy_get_card(world->ranks[rank], &world->cards[rank]);
}

static void start_world(struct world *world, int size, const char *provider,
                        uint64_t deadline_ms)
{
    memset(world, 0, sizeof(*world));
    setenv("RG_ENGINE", provider, 1);
    world->size = size;
    world->chunk_bytes = CHUNK;
    for (int rank = 0; rank < size; rank++)
        start_rank(world, rank, deadline_ms);
}

static void stop_rank(struct world *world, int rank)
{
    rg_legacy_destroy(world->ranks[rank]);
    world->ranks[rank] = NULL;
}

static void stop_world(struct world *world)
{
    for (int rank = 0; rank < world->size; rank++)
        stop_rank(world, rank);
}

/* The next view, of those alive, as seen by one of them. */
static int apply_at(struct world *world, int world_rank, uint64_t epoch)
{
    struct rg_engine_card cards[MAX_RANKS];
    int order[MAX_RANKS];
    struct rg_legacy_view view = {.epoch = epoch,
                                  .first_seq = 10 * epoch,
                                  .workspace = (int)(epoch % 3),
                                  .world_rank = order,
                                  .cards = cards};

    for (int rank = 0; rank < world->size; rank++) {
        if (!world->ranks[rank])
            continue;
        if (rank == world_rank)
            view.rank = view.nranks;
        order[view.nranks] = rank;
        cards[view.nranks++] = world->cards[rank];
    }
    return rg_legacy_apply(world->ranks[world_rank], &view);
}

static void apply_all(struct world *world)
{
    world->epoch++;
    for (int rank = 0; rank < world->size; rank++)
        if (world->ranks[rank])
            assert_int_equal(apply_at(world, rank, world->epoch), RG_OK);
}

static void *run_job(void *arg)
{
    struct job *job = arg;

    job->work(job);
    return NULL;
}

/* Starts a thread per live rank (unless it is `absent`) and joins them. */
static void run_all(struct world *world, struct job *jobs, int absent,
                    const struct rg_legacy_op *op, void (*work)(struct job *))
{
    pthread_t threads[MAX_RANKS];
    int nranks = 0;

    memset(jobs, 0, MAX_RANKS * sizeof(*jobs));
    for (int i = 0; i < world->size; i++) {
        if (!world->ranks[i])
            continue;
        jobs[i] = (struct job){.world = world,
                               .world_rank = i,
                               .rank = nranks++,
                               .work = work,
                               .op = op,
                               .seq = 10 * world->epoch};
    }
    for (int i = 0; i < world->size; i++) {
        jobs[i].nranks = nranks;
        if (world->ranks[i] && i != absent)
            assert_int_equal(
                pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < world->size; i++)
        if (world->ranks[i] && i != absent)
            pthread_join(threads[i], NULL);
}

/* ---- values: small integers, exact in every type ------------------------ */

static uint16_t half_of(unsigned value)
{
    int exponent = 0;

    if (!value)
        return 0;
    while (value >> (exponent + 1))
        exponent++;
    return (uint16_t)((exponent + 15) << 10 |
                      (value << (10 - exponent) & 0x3ff));
}

static void store(enum rg_dtype dtype, void *to, unsigned value)
{
    const float single = (float)value;
    const double twice = value;
    const uint64_t whole = value; /* little-endian, as all that run this */
    uint32_t bits;
    uint16_t half = half_of(value);

    memcpy(&bits, &single, sizeof(bits));
    if (dtype == RG_bf16)
        half = (uint16_t)(bits >> 16);
    if (dtype == RG_f16 || dtype == RG_bf16)
        memcpy(to, &half, sizeof(half));
    else if (dtype == RG_f32)
        memcpy(to, &single, sizeof(single));
    else if (dtype == RG_f64)
        memcpy(to, &twice, sizeof(twice));
    else
        memcpy(to, &whole, rg_dtype_size(dtype));
}

/* What rank r gives as element i of a vector under an operation. */
static unsigned input(enum rg_op op, int r, int n, size_t i)
{
    const unsigned step = (unsigned)(i % 5 + i / 1000 % 3);

    switch (op) {
    case RG_prod:
        return 1 + (unsigned)(r + (int)i) % 2;
    case RG_avg:
        return step + 10 + (unsigned)(2 * r) - (unsigned)(n - 1);
    default:
        return step + (unsigned)((r * 3 + (int)i) % 7);
    }
}

static unsigned expected(enum rg_op op, int n, size_t i)
{
    unsigned result = input(op, 0, n, i);

    for (int r = 1; r < n; r++) {
        const unsigned next = input(op, r, n, i);

        if (op == RG_prod)
            result *= next;
        else if (op == RG_min)
            result = next < result ? next : result;
        else if (op == RG_max)
            result = next > result ? next : result;
        else
            result += next;
    }
    return op == RG_avg ? result / (unsigned)n : result;
}

/* ---- every collective against what it should give ----------------------- */

struct sizes {
    size_t send, recv; /* elements */
};

static struct sizes sizes_of(const struct rg_legacy_op *op, int n)
{
    const size_t c = op->count, all = c * (size_t)n;

    switch (op->collective) {
    case RG_COLL_all_gather:
    case RG_COLL_gather:
        return (struct sizes){c, all};
    case RG_COLL_reduce_scatter:
    case RG_COLL_scatter:
        return (struct sizes){all, c};
    case RG_COLL_all_to_all:
        return (struct sizes){all, all};
    default:
        return (struct sizes){c, c};
    }
}

/* Element i of what `rank` receives; -1: it receives nothing there. */
static int result_of(const struct rg_legacy_op *op, int rank, int n, size_t i)
{
    const size_t block = i / op->count, at = i % op->count;
    const size_t own = (size_t)rank * op->count;

    switch (op->collective) {
    case RG_COLL_all_reduce:
        return (int)expected(op->op, n, i);
    case RG_COLL_all_gather:
        return (int)input(op->op, (int)block, n, at);
    case RG_COLL_reduce_scatter:
        return (int)expected(op->op, n, own + i);
    case RG_COLL_broadcast:
        return (int)input(op->op, op->root, n, i);
    case RG_COLL_reduce:
        return rank == op->root ? (int)expected(op->op, n, i) : -1;
    case RG_COLL_all_to_all:
        return (int)input(op->op, (int)block, n, own + at);
    case RG_COLL_gather:
        return rank == op->root ? (int)input(op->op, (int)block, n, at) : -1;
    case RG_COLL_scatter:
        return (int)input(op->op, op->root, n, own + i);
    default:
        return -1;
    }
}

/* Offset of the smaller buffer in the larger where that is allowed. */
static int in_place_at(const struct rg_legacy_op *op, int rank, size_t *at_out)
{
    *at_out = 0;
    if (op->collective == RG_COLL_all_to_all)
        return 0;
    if (op->collective == RG_COLL_all_gather ||
        op->collective == RG_COLL_gather ||
        op->collective == RG_COLL_reduce_scatter ||
        op->collective == RG_COLL_scatter)
        *at_out = (size_t)rank * op->count;
    return 1;
}

static int run_one(struct job *job, struct rg_legacy_op op)
{
    struct rg_bitset failed;
    int rc;

    op.seq = job->seq++;
    if (rg_bitset_init(&failed, job->world->size))
        return RG_ENOMEM;
    rc = rg_legacy_run(job->world->ranks[job->world_rank], &op, &failed);
    job->blamed = failed.words[0];
    rg_bitset_fini(&failed);
    return rc;
}

/* Runs it with buffers apart or in place; counts what is wrong. */
static void check_one(struct job *job, struct rg_legacy_op op, int in_place)
{
    const struct sizes sizes = sizes_of(&op, job->nranks);
    const size_t element = rg_dtype_size(op.dtype);
    const size_t larger = sizes.send > sizes.recv ? sizes.send : sizes.recv;
    unsigned char *a = malloc(larger * element + GUARD);
    unsigned char *b = malloc(larger * element + GUARD);
    unsigned char *send = a, *recv = b, value[8];
    size_t at;

    if (in_place && in_place_at(&op, job->rank, &at)) {
        recv = a + (sizes.recv < sizes.send ? at * element : 0);
        send = a + (sizes.send < sizes.recv ? at * element : 0);
    }
    memset(a, 0xee, larger * element + GUARD);
    memset(b, 0xee, larger * element + GUARD);
    for (size_t i = 0; i < sizes.send; i++)
        store(op.dtype, send + i * element,
              input(op.op, job->rank, job->nranks, i));
    op.send = send;
    op.recv = recv;
    job->rc = run_one(job, op);
    job->errors += job->rc != RG_OK;
    if (!in_place)
        memset(send, 0x55, sizes.send * element); /* its owner's again */
    for (size_t i = 0; i < sizes.recv && !job->rc; i++) {
        const int want = result_of(&op, job->rank, job->nranks, i);

        if (want < 0)
            continue;
        store(op.dtype, value, (unsigned)want);
        job->errors += memcmp(recv + i * element, value, element) != 0;
    }
    for (size_t i = 0; i < GUARD; i++)
        job->errors +=
            a[larger * element + i] != 0xee || b[larger * element + i] != 0xee;
    free(a);
    free(b);
}

static void work_all(struct job *job)
{
    static const size_t counts[] = {0, 1, 3, 2049, 20011};

    for (int collective = 0; collective <= RG_COLL_barrier; collective++)
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
            for (int in_place = 0; in_place < 2; in_place++)
                for (int root = 0; root < job->nranks; root++)
                    check_one(job,
                              (struct rg_legacy_op){
                                  .collective = (enum rg_collective)collective,
                                  .count = counts[c],
                                  .dtype = RG_f32,
                                  .op = RG_sum,
                                  .root = root},
                              in_place);
}

static void test_collectives(void **state)
{
    struct job jobs[MAX_RANKS];
    struct world world;

    for (int size = 1; size <= MAX_RANKS; size++) {
        start_world(&world, size, *state, DEADLINE_MS);
        apply_all(&world);
        run_all(&world, jobs, -1, NULL, work_all);
        for (int i = 0; i < size; i++)
            if (jobs[i].errors)
                fail_msg("%d ranks, rank %d: %d errors, status %d", size, i,
                         jobs[i].errors, jobs[i].rc);
        stop_world(&world);
    }
}

static void work_types(struct job *job)
{
    for (int dtype = 0; dtype < RG_f8e4m3; dtype++)
        for (int op = 0; op <= RG_avg; op++)
            for (size_t count = 7; count < 30000; count *= 61)
                check_one(job,
                          (struct rg_legacy_op){
                              .collective = op % 2 ? RG_COLL_all_reduce
                                                   : RG_COLL_reduce_scatter,
                              .count = count,
                              .dtype = (enum rg_dtype)dtype,
                              .op = (enum rg_op)op},
                          0);
    for (int dtype = 0; dtype < RG_f8e4m3; dtype++)
        for (int op = 0; op <= RG_avg; op++)
            check_one(job,
                      (struct rg_legacy_op){.collective = RG_COLL_all_reduce,
                                            .count = 20011,
                                            .dtype = (enum rg_dtype)dtype,
                                            .op = (enum rg_op)op},
                      1);
}

static void test_types(void **state)
{
    struct job jobs[MAX_RANKS];
    struct world world;

    start_world(&world, 3, *state, DEADLINE_MS);
    apply_all(&world);
    run_all(&world, jobs, -1, NULL, work_types);
    for (int i = 0; i < 3; i++)
        assert_int_equal(jobs[i].errors, 0);
    stop_world(&world);
}

/* ---- the ends of runs --------------------------------------------------- */

static void work_check(struct job *job)
{
    check_one(job, *job->op, 0);
}

static const struct rg_legacy_op reduce_op = {.collective = RG_COLL_all_reduce,
                                              .count = 5000,
                                              .dtype = RG_f32,
                                              .op = RG_sum};

static void expect_good(struct world *world)
{
    struct job jobs[MAX_RANKS];

    run_all(world, jobs, -1, &reduce_op, work_check);
    for (int i = 0; i < world->size; i++)
        assert_int_equal(jobs[i].errors, 0);
}

/* Who does not come is named by all who need it, within the deadline. */
static void test_absent_rank(void **state)
{
    struct job jobs[MAX_RANKS];
    struct world world;
    const uint64_t begin = rg_clock_ns();

    start_world(&world, 3, *state, 200);
    apply_all(&world);
    run_all(&world, jobs, 1, &reduce_op, work_check);
    assert_int_equal(jobs[0].rc, RG_ETIMEDOUT);
    assert_int_equal(jobs[2].rc, RG_ETIMEDOUT);
    assert_true(jobs[0].blamed & 1 << 1);
    assert_true(jobs[2].blamed & 1 << 1);
    assert_false(jobs[0].blamed & 1 << 0);
    assert_true(rg_clock_ns() - begin < 10000000000ull);
    /* The view is spent, also for the one that comes late. */
    run_all(&world, jobs, 1, &reduce_op, work_check);
    assert_int_equal(jobs[0].rc, RG_ETIMEDOUT);
    stop_world(&world);
}

static void *abort_later(void *arg)
{
    struct world *world = arg;

    rg_clock_sleep_ns(50000000);
    for (int i = 0; i < 2; i++)
        rg_legacy_abort(world->ranks[i], world->epoch);
    return NULL;
}

static void test_abort(void **state)
{
    struct job jobs[MAX_RANKS];
    struct world world;
    pthread_t thread;
    const uint64_t begin = rg_clock_ns();

    start_world(&world, 3, *state, DEADLINE_MS);
    apply_all(&world);
    expect_good(&world);
    assert_int_equal(pthread_create(&thread, NULL, abort_later, &world), 0);
    run_all(&world, jobs, 2, &reduce_op, work_check);
    pthread_join(thread, NULL);
    assert_int_equal(jobs[0].rc, RG_EABORTED);
    assert_int_equal(jobs[1].rc, RG_EABORTED);
    assert_true(rg_clock_ns() - begin < DEADLINE_MS * 1000000ull / 2);
    /* The next epoch is not concerned, and starts from zero. */
    apply_all(&world);
    expect_good(&world);
    stop_world(&world);
}

/* A rank dies in the middle of a view; the others go on; it comes back. */
static void test_death_and_return(void **state)
{
    struct job jobs[MAX_RANKS];
    struct world world;

    start_world(&world, 4, *state, 500);
    apply_all(&world);
    for (int round = 0; round < 3; round++) {
        expect_good(&world);
        run_all(&world, jobs, 1, &reduce_op, work_check);
        for (int i = 0; i < 4; i++)
            if (i != 1)
                assert_true(jobs[i].rc == RG_ETIMEDOUT ||
                            jobs[i].rc == RG_EABORTED);
        stop_rank(&world, 1);
        apply_all(&world);
        expect_good(&world);
        start_rank(&world, 1, 500);
        apply_all(&world);
        expect_good(&world);
    }
    stop_world(&world);
}

/* A lost connection ends the wait at once, also of one that only receives. */
static void test_lost_connection(void **state)
{
    static const struct rg_legacy_op broadcast = {.collective =
                                                      RG_COLL_broadcast,
                                                  .count = 100,
                                                  .dtype = RG_f32,
                                                  .root = 2};
    const struct rg_legacy_op *const ops[] = {&reduce_op, &broadcast};
    struct job jobs[MAX_RANKS];
    struct world world;
    uint64_t begin;

    (void)state;
    for (int op = 0; op < 2; op++) {
        start_world(&world, 3, "tcp", DEADLINE_MS);
        apply_all(&world);
        expect_good(&world);
        stop_rank(&world, 2);
        begin = rg_clock_ns();
        run_all(&world, jobs, -1, ops[op], work_check);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(jobs[i].rc, RG_EFAILED);
            assert_int_equal(jobs[i].blamed, 1 << 2);
        }
        assert_true(rg_clock_ns() - begin < DEADLINE_MS * 1000000ull / 2);
        apply_all(&world);
        expect_good(&world);
        stop_world(&world);
    }
}

/* A run ends when its source may be changed, also if no socket could hold it
 * (see check_one). */
static void test_source_is_free(void **state)
{
    static const struct rg_legacy_op op = {
        .collective = RG_COLL_broadcast, .count = 5 << 20, .dtype = RG_f32};
    struct job jobs[MAX_RANKS];
    struct world world;

    setenv("RG_ENGINE", *state, 1);
    memset(&world, 0, sizeof(world));
    world.size = 2;
    world.chunk_bytes = 8 << 20;
    for (int rank = 0; rank < 2; rank++)
        start_rank(&world, rank, DEADLINE_MS);
    apply_all(&world);
    run_all(&world, jobs, -1, &op, work_check);
    for (int i = 0; i < 2; i++)
        assert_int_equal(jobs[i].errors, 0);
    stop_world(&world);
}

/* A rank may be a whole view behind when the others begin to send. */
static void apply_and_check(struct job *job)
{
    if (job->world_rank == 1)
        rg_clock_sleep_ns(30000000);
    job->rc = apply_at(job->world, job->world_rank, job->world->epoch);
    if (!job->rc)
        check_one(job, *job->op, 0);
}

static void test_late_apply(void **state)
{
    struct job jobs[MAX_RANKS];
    struct world world;

    start_world(&world, 3, *state, DEADLINE_MS);
    apply_all(&world);
    for (int round = 0; round < 4; round++) {
        world.epoch++;
        run_all(&world, jobs, -1, &reduce_op, apply_and_check);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(jobs[i].rc, RG_OK);
            assert_int_equal(jobs[i].errors, 0);
        }
    }
    stop_world(&world);
}

/* ---- what is refused ---------------------------------------------------- */

static void test_arguments(void **state)
{
    float data[8] = {0};
    struct rg_legacy_op op = {.collective = RG_COLL_all_to_all,
                              .seq = 10,
                              .send = data,
                              .recv = data + 1,
                              .count = 2,
                              .dtype = RG_f32};
    struct world world;
    struct rg_legacy_view view = {.epoch = 1};

    start_world(&world, 2, *state, DEADLINE_MS);
    assert_int_equal(rg_legacy_run(world.ranks[0], &op, NULL), RG_EUNAVAILABLE);
    assert_int_equal(rg_legacy_apply(world.ranks[0], &view), RG_EINVAL);
    apply_all(&world);
    assert_int_equal(rg_legacy_run(world.ranks[0], &op, NULL), RG_EINVAL);
    op.recv = NULL;
    assert_int_equal(rg_legacy_run(world.ranks[0], &op, NULL), RG_EINVAL);
    op.recv = data + 4;
    op.root = 2;
    assert_int_equal(rg_legacy_run(world.ranks[0], &op, NULL), RG_EINVAL);
    op.root = 0;
    op.count = SIZE_MAX / 2;
    assert_int_equal(rg_legacy_run(world.ranks[0], &op, NULL), RG_EINVAL);
    op.seq = 9; /* of the time before this view */
    assert_int_equal(rg_legacy_run(world.ranks[0], &op, NULL), RG_EABORTED);
    op.seq = UINT64_MAX; /* eleven earlier: seqs wrap */
    assert_int_equal(rg_legacy_run(world.ranks[0], &op, NULL), RG_EABORTED);
    expect_good(&world);
    stop_world(&world);
}

#define ON_BOTH(test)                                                          \
    {"tcp: " #test, test, NULL, NULL, "tcp"},                                  \
    {                                                                          \
        "shm: " #test, test, NULL, NULL, "shm"                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(test_collectives),      ON_BOTH(test_types),
        ON_BOTH(test_absent_rank),      ON_BOTH(test_abort),
        ON_BOTH(test_death_and_return), cmocka_unit_test(test_lost_connection),
        ON_BOTH(test_source_is_free),   ON_BOTH(test_late_apply),
        ON_BOTH(test_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
