/*
 * The list of route conformance, on each provider of the host engine. Ends of
 * one thread take turns where order matters; processes are forked where one is
 * to die or to be stopped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/device/word.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/tcp/keyed.h"
#include "runtime/engine/tcp/tcp.h"
#include "runtime/status.h"

enum { REGION = 16 << 20, SIGNAL = REGION - 64, DATA = 64, MAX_ENDS = 4 };

#define SECOND_NS 1000000000ull

static const char *provider_of(void **state)
{
    return *state;
}

static struct rg_engine *make_end(int rank, int size, const char *provider,
                                  uint64_t generation)
{
    struct rg_engine_config config = {.rank = rank,
                                      .size = size,
                                      .host_id = "here",
                                      .bytes = REGION,
                                      .generation = generation};
    struct rg_engine *engine;

    memset(config.secret, 7, sizeof(config.secret));
    setenv("RG_ENGINE", provider, 1);
    assert_int_equal(rg_engine_create(&config, &engine), RG_OK);
    return engine;
}

static void join(struct rg_engine *engine, int peer, struct rg_engine *other)
{
    struct rg_engine_card card;

    rg_engine_get_card(other, &card);
    assert_int_equal(rg_engine_connect(engine, peer, &card), RG_OK);
}

struct pair {
    struct rg_engine *ends[2];
};

static struct pair make_pair(const char *provider)
{
    struct pair pair;

    for (int i = 0; i < 2; i++)
        pair.ends[i] = make_end(i, 2, provider, 1);
    join(pair.ends[0], 1, pair.ends[1]);
    join(pair.ends[1], 0, pair.ends[0]);
    assert_string_equal(rg_engine_provider(pair.ends[0], 1), provider);
    return pair;
}

static void free_pair(struct pair *pair)
{
    rg_engine_destroy(pair->ends[0]);
    rg_engine_destroy(pair->ends[1]);
}

/* Polls both until a completion of the first; its status. */
static int await(struct rg_engine *engine, struct rg_engine *other,
                 uint64_t *cookie_out)
{
    const uint64_t limit = rg_clock_ns() + 20 * SECOND_NS;
    struct rg_engine_completion done;

    while (rg_clock_ns() < limit) {
        if (other)
            assert_int_equal(rg_engine_poll(other, NULL, 0), 0);
        if (rg_engine_poll(engine, &done, 1)) {
            if (cookie_out)
                *cookie_out = done.cookie;
            return done.status;
        }
    }
    fail_msg("no completion in 20 s");
    return 0;
}

static struct rg_engine_command put(int peer, uint64_t offset,
                                    const void *source, uint64_t bytes)
{
    return (struct rg_engine_command){.peer = peer,
                                      .generation = 1,
                                      .offset = offset,
                                      .source = source,
                                      .bytes = bytes,
                                      .signal = SIGNAL,
                                      .op = RG_SIGNAL_ADD,
                                      .value = 1};
}

static uint64_t signal_of(const struct rg_engine *engine)
{
    const unsigned char *base = rg_engine_memory(engine);

    return rg_load_acquire((const uint64_t *)(const void *)(base + SIGNAL));
}

static unsigned char *make_pattern(size_t bytes, unsigned seed)
{
    unsigned char *data = malloc(bytes + 1);

    assert_non_null(data);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 31 + i / 251 + seed);
    return data;
}

/* ---- what a transfer is ------------------------------------------------- */

static void test_sizes(void **state)
{
    static const size_t sizes[] = {0, 1, 3, 4095, (1 << 20) + 1};
    struct pair pair = make_pair(provider_of(state));
    const unsigned char *target = rg_engine_memory(pair.ends[1]);
    uint64_t signals = 0;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint64_t odd = 0; odd < 8; odd++) {
            unsigned char *data = make_pattern(sizes[i], (unsigned)(i + odd));
            struct rg_engine_command command =
                put(1, DATA + odd, data, sizes[i]);
            unsigned char before = target[DATA + odd + sizes[i]];
            uint64_t cookie;

            command.cookie = i << 8 | odd;
            assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
            assert_int_equal(await(pair.ends[0], pair.ends[1], &cookie), RG_OK);
            assert_int_equal(cookie, command.cookie);
            assert_int_equal(signal_of(pair.ends[1]), ++signals);
            assert_memory_equal(target + DATA + odd, data, sizes[i]);
            assert_int_equal(target[DATA + odd + sizes[i]], before);
            free(data);
        }
    }
    free_pair(&pair);
}

/* Both ends have it to the byte, also of what went by a connection before. */
static void test_traffic(void **state)
{
    enum { COUNT = 20, BYTES = 5000, FRAME = 256 };
    struct pair pair = make_pair(provider_of(state));
    unsigned char *data = make_pattern(BYTES, 3);
    const struct rg_engine_command command = put(1, DATA, data, BYTES);
    struct rg_engine_traffic there, back;

    for (int i = 0; i < COUNT; i++) {
        if (i == COUNT / 2) {
            rg_engine_fail(pair.ends[0], 1);
            rg_engine_fail(pair.ends[1], 0);
            join(pair.ends[0], 1, pair.ends[1]);
            join(pair.ends[1], 0, pair.ends[0]);
        }
        assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
        assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_OK);
    }
    rg_engine_get_traffic(pair.ends[0], 1, &there);
    rg_engine_get_traffic(pair.ends[1], 0, &back);
    assert_int_equal(there.payload, COUNT * BYTES);
    assert_in_range(there.sent, COUNT * (BYTES + 8), COUNT * (BYTES + FRAME));
    assert_int_equal(back.payload, 0);
    assert_in_range(back.sent, 0, COUNT * FRAME);
    rg_engine_get_traffic(pair.ends[0], 0, &there);
    assert_int_equal(there.sent, 0);
    free(data);
    free_pair(&pair);
}

static void test_set_and_add(void **state)
{
    struct pair pair = make_pair(provider_of(state));
    struct rg_engine_command command = put(1, 0, NULL, 0);

    command.op = RG_SIGNAL_SET;
    command.value = 40;
    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_OK);
    assert_int_equal(signal_of(pair.ends[1]), 40);
    command.op = RG_SIGNAL_ADD;
    command.value = 2;
    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_OK);
    assert_int_equal(signal_of(pair.ends[1]), 42);
    free_pair(&pair);
}

/* A small source is free at once, another with the end, and told once. */
static void test_source_leaves(void **state)
{
    enum { BYTES = 32 << 10 };
    const int network = !strcmp(provider_of(state), "tcp");
    struct pair pair = make_pair(provider_of(state));
    unsigned char *data = make_pattern(BYTES, 1),
                  *copy = make_pattern(BYTES, 1);
    struct rg_engine_command command = put(1, DATA, data, 8);
    uint64_t left = 0;

    command.left = &left;
    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    assert_int_equal(left, 1);
    assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_OK);
    command.bytes = BYTES;
    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    if (network)
        assert_int_equal(left, 1);
    assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_OK);
    assert_int_equal(left, 2);
    memset(data, 0, BYTES);
    assert_memory_equal((unsigned char *)rg_engine_memory(pair.ends[1]) + DATA,
                        copy, BYTES);
    assert_int_equal(rg_engine_arrivals(pair.ends[1]), network ? 2 : 0);
    rg_engine_fail(pair.ends[0], 1);
    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    assert_int_equal(await(pair.ends[0], NULL, NULL), RG_EFAILED);
    assert_int_equal(left, 2);
    free(data);
    free(copy);
    free_pair(&pair);
}

static void test_bounds(void **state)
{
    struct pair pair = make_pair(provider_of(state));
    struct rg_engine_command bad[5];
    unsigned char data[64] = {0xff};
    unsigned char *copy = malloc(REGION);

    assert_non_null(copy);
    memcpy(copy, rg_engine_memory(pair.ends[1]), REGION);
    for (int i = 0; i < 5; i++)
        bad[i] = put(1, 0, data, sizeof(data));
    bad[0].offset = REGION - sizeof(data) + 1;
    bad[1].offset = UINT64_MAX - 8;
    bad[2].signal = REGION;
    bad[3].signal = 4;
    bad[4].signal = UINT64_MAX - 7;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rg_engine_submit(pair.ends[0], &bad[i]), RG_OK);
        assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_EINVAL);
    }
    /* All at once: each must get its own verdict. */
    for (int i = 0; i < 5; i++)
        assert_int_equal(rg_engine_submit(pair.ends[0], &bad[i]), RG_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_EINVAL);
    assert_memory_equal(copy, rg_engine_memory(pair.ends[1]), REGION);
    bad[0].offset--;
    bad[0].signal = RG_ENGINE_NO_SIGNAL;
    assert_int_equal(rg_engine_submit(pair.ends[0], &bad[0]), RG_OK);
    assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_OK);
    bad[0].peer = 2;
    assert_int_equal(rg_engine_submit(pair.ends[0], &bad[0]), RG_EINVAL);
    free(copy);
    free_pair(&pair);
}

/* An older command is refused, a newer one waits until the target is there. */
static void test_generations(void **state)
{
    struct pair pair = make_pair(provider_of(state));
    struct rg_engine_command old = put(1, DATA, "old", 4);
    struct rg_engine_command new = put(1, DATA, "new", 4);
    unsigned char *target = rg_engine_memory(pair.ends[1]);
    struct rg_engine_completion done;
    uint64_t cookie;

    new.generation = 3;
    new.cookie = 3;
    assert_int_equal(rg_engine_submit(pair.ends[0], &old), RG_OK);
    assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_OK);
    assert_int_equal(rg_engine_submit(pair.ends[0], &new), RG_OK);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(rg_engine_poll(pair.ends[0], &done, 1), 0);
        rg_engine_poll(pair.ends[1], NULL, 0);
    }
    assert_string_equal((char *)target + DATA, "old");
    rg_engine_advance(pair.ends[1], 3);
    assert_int_equal(await(pair.ends[0], pair.ends[1], &cookie), RG_OK);
    assert_int_equal(cookie, 3);
    assert_string_equal((char *)target + DATA, "new");
    assert_int_equal(rg_engine_submit(pair.ends[0], &old), RG_OK);
    assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_EABORTED);
    assert_string_equal((char *)target + DATA, "new");
    assert_int_equal(signal_of(pair.ends[1]), 2);
    free_pair(&pair);
}

/* ---- under load --------------------------------------------------------- */

enum { LOAD_BYTES = 24 * 1024, LOAD_ROUNDS = 2000 };

struct load {
    struct rg_engine *engine;
    int rounds;
    int stop;
    int torn;
};

/* The target's thread: each payload must be whole when its signal is seen. */
static void *watch_load(void *arg)
{
    struct load *load = arg;
    const unsigned char *data =
        (const unsigned char *)rg_engine_memory(load->engine) + DATA;
    uint64_t seen = 0;

    while (!load->torn && seen < LOAD_ROUNDS) {
        uint64_t round;

        rg_engine_poll(load->engine, NULL, 0);
        round = signal_of(load->engine);
        /* The writer goes on only when this thread has looked. */
        if (round == seen || __atomic_load_n(&load->stop, __ATOMIC_ACQUIRE))
            continue;
        for (size_t i = 0; i < LOAD_BYTES; i += 61)
            load->torn |= data[i] != (unsigned char)(round * 7);
        seen = round;
        __atomic_store_n(&load->rounds, (int)seen, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void test_payload_before_signal(void **state)
{
    struct pair pair = make_pair(provider_of(state));
    struct load load = {.engine = pair.ends[1]};
    unsigned char *data = malloc(LOAD_BYTES);
    pthread_t thread;

    assert_non_null(data);
    assert_int_equal(pthread_create(&thread, NULL, watch_load, &load), 0);
    for (int round = 1; round <= LOAD_ROUNDS; round++) {
        const uint64_t limit = rg_clock_ns() + 20 * SECOND_NS;
        struct rg_engine_command command = put(1, DATA, data, LOAD_BYTES);
        struct rg_engine_completion done;

        memset(data, round * 7, LOAD_BYTES);
        assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
        while (!rg_engine_poll(pair.ends[0], &done, 1) ||
               __atomic_load_n(&load.rounds, __ATOMIC_ACQUIRE) < round)
            if (__atomic_load_n(&load.rounds, __ATOMIC_ACQUIRE) >= round ||
                rg_clock_ns() > limit)
                break;
        while (__atomic_load_n(&load.rounds, __ATOMIC_ACQUIRE) < round &&
               rg_clock_ns() < limit)
            rg_engine_poll(pair.ends[0], &done, 1);
        if (rg_clock_ns() > limit)
            fail_msg("round %d does not end", round);
    }
    pthread_join(thread, NULL);
    assert_false(load.torn);
    free(data);
    free_pair(&pair);
}

/* Many commands at once, both ways, larger than any socket's buffer. */
static void test_many(void **state)
{
    enum { COUNT = 300, BYTES = 100001 };
    struct pair pair = make_pair(provider_of(state));
    const uint64_t limit = rg_clock_ns() + 60 * SECOND_NS;
    unsigned char *data = make_pattern(BYTES, 5);
    uint64_t next[2] = {0, 0};

    for (uint64_t i = 0; i < 2 * COUNT; i++) {
        struct rg_engine_command command =
            put((int)(i % 2), DATA + i / 2 * 7, data, BYTES);

        command.cookie = i / 2;
        assert_int_equal(rg_engine_submit(pair.ends[1 - i % 2], &command),
                         RG_OK);
    }
    while (next[0] + next[1] < 2 * COUNT && rg_clock_ns() < limit) {
        struct rg_engine_completion done[8];

        for (int end = 0; end < 2; end++) {
            const int count = rg_engine_poll(pair.ends[end], done, 8);

            for (int i = 0; i < count; i++) {
                assert_int_equal(done[i].status, RG_OK);
                assert_int_equal(done[i].cookie, next[end]++);
            }
        }
    }
    assert_int_equal(next[0] + next[1], 2 * COUNT);
    for (int end = 0; end < 2; end++) {
        const unsigned char *base = rg_engine_memory(pair.ends[end]);

        assert_int_equal(signal_of(pair.ends[end]), COUNT);
        assert_memory_equal(base + DATA + (COUNT - 1) * 7, data, BYTES);
    }
    free(data);
    free_pair(&pair);
}

/* ---- ends of commands --------------------------------------------------- */

/* What is called off half way leaves the stream in order. */
static void test_cancel(void **state)
{
    enum { BYTES = 14 << 20, COUNT = 4 }; /* no socket holds one */
    struct pair pair = make_pair(provider_of(state));
    const unsigned char *target = rg_engine_memory(pair.ends[1]);
    unsigned char *data = make_pattern(BYTES, 1);
    struct rg_engine_command command = put(1, DATA, "first", 6);
    uint64_t cookie;

    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_OK);
    command = put(1, DATA, data, BYTES);
    command.generation = 2; /* the target will not take it all */
    command.cookie = 2;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(rg_engine_poll(pair.ends[0], NULL, 0), 0);
        rg_engine_poll(pair.ends[1], NULL, 0);
    }
    rg_engine_cancel(pair.ends[0]);
    memset(data, 0xaa, BYTES); /* it is the caller's again */
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(await(pair.ends[0], NULL, NULL), RG_EABORTED);
    rg_engine_advance(pair.ends[1], 2);
    command = put(1, DATA, "last", 5);
    command.generation = 2;
    command.cookie = 9;
    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    assert_int_equal(await(pair.ends[0], pair.ends[1], &cookie), RG_OK);
    assert_int_equal(cookie, 9);
    assert_int_equal(signal_of(pair.ends[1]), 2);
    for (int i = 1; i <= 1000; i++)
        assert_int_equal(target[DATA + BYTES - i], 0);
    free(data);
    free_pair(&pair);
}

static void test_fail_and_reconnect(void **state)
{
    struct pair pair = make_pair(provider_of(state));
    struct rg_engine_command command = put(1, DATA, "one", 4);

    command.generation = 2; /* stays open */
    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    rg_engine_fail(pair.ends[0], 1);
    assert_int_equal(await(pair.ends[0], NULL, NULL), RG_EFAILED);
    assert_int_equal(rg_engine_status(pair.ends[0], 1), RG_EFAILED);
    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    assert_int_equal(await(pair.ends[0], NULL, NULL), RG_EFAILED);
    /* The other end has not noticed anything, or has: both work. */
    for (int from = 0; from < 2; from++) {
        rg_engine_fail(pair.ends[from], 1 - from);
        join(pair.ends[from], 1 - from, pair.ends[1 - from]);
        command.generation = 1;
        assert_int_equal(
            rg_engine_submit(pair.ends[from],
                             &(struct rg_engine_command){.peer = 1 - from,
                                                         .generation = 1,
                                                         .offset = DATA,
                                                         .source = "two",
                                                         .bytes = 4,
                                                         .signal = SIGNAL,
                                                         .value = 1}),
            RG_OK);
        assert_int_equal(await(pair.ends[from], pair.ends[1 - from], NULL),
                         RG_OK);
        join(pair.ends[1 - from], from, pair.ends[from]);
    }
    free_pair(&pair);
}

/*
 * Both ends lose the link and come back in any order. One that connects early
 * waits for the other's consent; what it gives up meanwhile must not take the
 * place of what the other makes, now or a little later.
 */
static void test_both_reconnect(void **state)
{
    struct pair pair = make_pair(provider_of(state));

    for (int round = 0; round < 40; round++) {
        const int first = round % 2;
        struct rg_engine_command command = put(1, DATA, "both", 5);
        uint64_t limit;

        rg_engine_fail(pair.ends[0], 1);
        rg_engine_fail(pair.ends[1], 0);
        join(pair.ends[first], 1 - first, pair.ends[1 - first]);
        for (int i = 0; i < round; i++)
            rg_engine_poll(pair.ends[i % 3 ? first : 1 - first], NULL, 0);
        join(pair.ends[1 - first], first, pair.ends[first]);
        limit = rg_clock_ns() + SECOND_NS / 1000;
        for (int end = 0; end < 2 || rg_clock_ns() < limit; end++) {
            command.peer = 1 - end % 2;
            assert_int_equal(rg_engine_submit(pair.ends[end % 2], &command),
                             RG_OK);
            assert_int_equal(
                await(pair.ends[end % 2], pair.ends[1 - end % 2], NULL), RG_OK);
        }
    }
    free_pair(&pair);
}

enum { CROSSINGS = 200 };

struct crossing {
    struct rg_engine *engine;
    struct rg_engine_card peer_card;
    int peer;
    pthread_barrier_t *barrier;
    int errors;
    int *both_open; /* commands without completion, of both ends */
};

/* Loses the link, connects again at the same time as the peer, and sends. */
static void *cross(void *arg)
{
    struct crossing *own = arg;

    for (unsigned round = 0; round < CROSSINGS; round++) {
        const struct rg_engine_command command = put(own->peer, DATA, "x", 2);
        const uint64_t limit = rg_clock_ns() + 5 * SECOND_NS;
        struct rg_engine_completion done = {.status = RG_EPENDING};
        int count = 0;

        rg_engine_fail(own->engine, own->peer);
        __atomic_store_n(own->both_open, 2, __ATOMIC_RELEASE);
        pthread_barrier_wait(own->barrier);
        if (round % 3 == (unsigned)own->peer)
            rg_clock_sleep_ns(round * 1000);
        own->errors |= rg_engine_connect(own->engine, own->peer,
                                         &own->peer_card) != RG_OK ||
                       rg_engine_submit(own->engine, &command) != RG_OK;
        /* The peer's command needs this end's polls too. */
        while (__atomic_load_n(own->both_open, __ATOMIC_ACQUIRE) > 0 &&
               rg_clock_ns() < limit) {
            const int more = count ? rg_engine_poll(own->engine, NULL, 0)
                                   : rg_engine_poll(own->engine, &done, 1);

            count += more;
            if (more)
                __atomic_sub_fetch(own->both_open, 1, __ATOMIC_ACQ_REL);
        }
        own->errors += done.status != RG_OK;
        pthread_barrier_wait(own->barrier);
    }
    return NULL;
}

static void test_crossing_connections(void **state)
{
    struct pair pair = make_pair(provider_of(state));
    struct crossing ends[2];
    pthread_barrier_t barrier;
    pthread_t thread;
    int both_open = 2;

    pthread_barrier_init(&barrier, NULL, 2);
    for (int end = 0; end < 2; end++) {
        ends[end] = (struct crossing){.engine = pair.ends[end],
                                      .peer = 1 - end,
                                      .barrier = &barrier,
                                      .both_open = &both_open};
        rg_engine_get_card(pair.ends[1 - end], &ends[end].peer_card);
    }
    assert_int_equal(pthread_create(&thread, NULL, cross, &ends[1]), 0);
    cross(&ends[0]);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(ends[0].errors + ends[1].errors, 0);
    free_pair(&pair);
}

/* A new life of rank 1 with a new card; commands to the old one have ended. */
static void test_rejoin(void **state)
{
    struct pair pair = make_pair(provider_of(state));
    struct rg_engine_command command = put(1, DATA, "life", 5);

    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_OK);
    rg_engine_destroy(pair.ends[1]);
    pair.ends[1] = make_end(1, 2, provider_of(state), 1);
    join(pair.ends[1], 0, pair.ends[0]);
    join(pair.ends[0], 1, pair.ends[1]);
    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_OK);
    assert_int_equal(signal_of(pair.ends[1]), 1);
    free_pair(&pair);
}

static void test_deadline(void **state)
{
    struct pair pair = make_pair(provider_of(state));
    struct rg_engine_command command = put(1, DATA, "late", 5);
    uint64_t begin = rg_clock_ns();

    command.generation = 2;
    command.deadline_ns = begin + SECOND_NS / 10;
    assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
    assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_ETIMEDOUT);
    assert_true(rg_clock_ns() >= command.deadline_ns);
    free_pair(&pair);
}

/* ---- what is left ------------------------------------------------------- */

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Mappings of regions, own and peers'. */
static int count_regions(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps))
        count += strstr(line, "regroup-engine") != NULL;
    fclose(maps);
    return count;
}

static void test_nothing_is_left(void **state)
{
    const int descriptors = count_descriptors(), regions = count_regions();

    for (int round = 0; round < 10; round++) {
        struct pair pair = make_pair(provider_of(state));
        struct rg_engine_command command = put(1, DATA, "here", 5);

        assert_int_equal(rg_engine_submit(pair.ends[0], &command), RG_OK);
        assert_int_equal(await(pair.ends[0], pair.ends[1], NULL), RG_OK);
        assert_true(count_regions() > regions);
        rg_engine_fail(pair.ends[0], 1);
        rg_engine_fail(pair.ends[1], 0);
        join(pair.ends[1], 0, pair.ends[0]);
        if (round % 2)
            join(pair.ends[0], 1, pair.ends[1]);
        for (int i = 0; i < round; i++)
            rg_engine_poll(pair.ends[i % 2], NULL, 0);
        free_pair(&pair);
        assert_int_equal(count_descriptors(), descriptors);
        assert_int_equal(count_regions(), regions);
    }
}

/* ---- processes ---------------------------------------------------------- */

struct board {
    struct rg_engine_card cards[MAX_ENDS];
    int ready;
};

struct process {
    struct board *board; /* shared by all processes */
    pid_t pids[MAX_ENDS];
    struct rg_engine *engine; /* rank 0's, in the test's process */
};

static void post_card(struct board *board, int rank, struct rg_engine *engine)
{
    rg_engine_get_card(engine, &board->cards[rank]);
    __atomic_add_fetch(&board->ready, 1, __ATOMIC_RELEASE);
}

/* A peer: takes what comes until it is killed. */
static void serve_process(struct board *board, int rank, int size,
                          const char *provider)
{
    struct rg_engine *engine;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test fails */
    engine = make_end(rank, size, provider, 1);
    post_card(board, rank, engine);
    while (__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE) < size)
        rg_clock_sleep_ns(100000);
    rg_engine_connect(engine, 0, &board->cards[0]);
    for (;;) {
        rg_engine_poll(engine, NULL, 0);
        rg_clock_sleep_ns(20000);
    }
}

static struct process start_processes(int size, const char *provider)
{
    struct process all = {0};

    all.board = mmap(NULL, sizeof(*all.board), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all.board != MAP_FAILED);
    for (int rank = 1; rank < size; rank++) {
        all.pids[rank] = fork();
        assert_true(all.pids[rank] >= 0);
        if (!all.pids[rank])
            serve_process(all.board, rank, size, provider);
    }
    all.engine = make_end(0, size, provider, 1);
    post_card(all.board, 0, all.engine);
    while (__atomic_load_n(&all.board->ready, __ATOMIC_ACQUIRE) < size)
        rg_clock_sleep_ns(100000);
    for (int rank = 1; rank < size; rank++)
        assert_int_equal(
            rg_engine_connect(all.engine, rank, &all.board->cards[rank]),
            RG_OK);
    return all;
}

static void stop_processes(struct process *all)
{
    for (int rank = 1; rank < MAX_ENDS; rank++) {
        if (all->pids[rank] <= 0)
            continue;
        kill(all->pids[rank], SIGKILL);
        waitpid(all->pids[rank], NULL, 0);
    }
    rg_engine_destroy(all->engine);
    munmap(all->board, sizeof(*all->board));
}

/* One command's end; others go on meanwhile if they are to. */
static int put_and_await(struct rg_engine *engine, int peer, const void *data,
                         uint64_t bytes, uint64_t deadline_ns)
{
    struct rg_engine_command command = put(peer, DATA, data, bytes);

    command.deadline_ns = deadline_ns;
    assert_int_equal(rg_engine_submit(engine, &command), RG_OK);
    return await(engine, NULL, NULL);
}

static void test_peer_killed(void **state)
{
    enum { BYTES = 2 << 20 };
    struct process all = start_processes(3, provider_of(state));
    unsigned char *data = make_pattern(BYTES, 3);
    const uint64_t limit = rg_clock_ns() + 20 * SECOND_NS;
    int rc = RG_OK;

    assert_int_equal(put_and_await(all.engine, 1, data, BYTES, 0), RG_OK);
    assert_int_equal(put_and_await(all.engine, 2, data, BYTES, 0), RG_OK);
    for (int i = 0; i < 4; i++) {
        struct rg_engine_command command = put(1, DATA, data, BYTES);

        assert_int_equal(rg_engine_submit(all.engine, &command), RG_OK);
    }
    kill(all.pids[1], SIGKILL);
    for (int i = 0; i < 4; i++)
        rc = await(all.engine, NULL, NULL);
    while (!rc && rg_clock_ns() < limit)
        rc = put_and_await(all.engine, 1, data, 8, 0);
    assert_int_equal(rc, RG_EFAILED);
    assert_int_equal(rg_engine_status(all.engine, 1), RG_EFAILED);
    assert_int_equal(rg_engine_status(all.engine, 2), RG_OK);
    assert_int_equal(put_and_await(all.engine, 2, data, BYTES, 0), RG_OK);
    free(data);
    stop_processes(&all);
}

/* A stopped peer takes nothing: only its commands end, by their deadline. */
static void test_peer_stopped(void **state)
{
    enum { BYTES = 2 << 20, COUNT = 8 };
    struct process all = start_processes(3, provider_of(state));
    unsigned char *data = make_pattern(BYTES, 3);
    struct rg_engine_command command = put(1, DATA, data, BYTES);
    int late = 0;

    assert_int_equal(put_and_await(all.engine, 1, data, BYTES, 0), RG_OK);
    kill(all.pids[1], SIGSTOP);
    command.deadline_ns = rg_clock_ns() + SECOND_NS / 2;
    command.cookie = 1;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(rg_engine_submit(all.engine, &command), RG_OK);
    command.peer = 2;
    command.deadline_ns = 0;
    command.cookie = 2;
    assert_int_equal(rg_engine_submit(all.engine, &command), RG_OK);
    for (int i = 0; i < COUNT + 1; i++) {
        uint64_t cookie;
        const int rc = await(all.engine, NULL, &cookie);

        if (cookie == 2)
            assert_int_equal(late, 0);
        assert_int_equal(rc, cookie == 2 ? RG_OK : RG_ETIMEDOUT);
        late += rc == RG_ETIMEDOUT;
    }
    memset(data, 0, BYTES);
    kill(all.pids[1], SIGCONT);
    assert_int_equal(put_and_await(all.engine, 1, "awake", 6, 0), RG_OK);
    free(data);
    stop_processes(&all);
}

/* ---- who may connect ---------------------------------------------------- */

static void test_wrong_secret(void **state)
{
    struct rg_engine *good = make_end(0, 2, "tcp", 1);
    struct rg_engine_config config = {
        .rank = 1, .size = 2, .bytes = REGION, .generation = 1};
    struct rg_engine *bad;
    struct rg_engine_command command = put(0, DATA, "evil", 5);
    struct rg_engine_completion done;

    (void)state;
    assert_int_equal(rg_engine_create(&config, &bad), RG_OK);
    join(bad, 0, good);
    join(good, 1, bad);
    command.deadline_ns = rg_clock_ns() + SECOND_NS;
    assert_int_equal(rg_engine_submit(bad, &command), RG_OK);
    while (!rg_engine_poll(bad, &done, 1))
        rg_engine_poll(good, NULL, 0);
    assert_true(done.status == RG_EFAILED || done.status == RG_ETIMEDOUT);
    assert_int_equal(signal_of(good), 0);
    rg_engine_destroy(bad);
    rg_engine_destroy(good);
}

/* Sends all and waits for `bytes` of answer; how many came before the end. */
static size_t talk(struct rg_engine *engine, int fd, const void *text,
                   size_t length, void *answer, size_t bytes)
{
    const uint64_t limit = rg_clock_ns() + 5 * SECOND_NS;
    size_t got = 0;
    ssize_t n = 1;

    send(fd, text, length, MSG_NOSIGNAL);
    while (got < bytes && n != 0 && rg_clock_ns() < limit) {
        rg_engine_poll(engine, NULL, 0);
        n = recv(fd, (char *)answer + got, bytes - got, MSG_DONTWAIT);
        got += n > 0 ? (size_t)n : 0;
    }
    assert_true(rg_clock_ns() < limit);
    return got;
}

/* One that says all the right things but cannot prove that it may. */
static void test_forged_proof(void **state)
{
    struct rg_engine *good = make_end(1, 2, "tcp", 1);
    struct rg_engine *model = make_end(0, 2, "tcp", 1);
    struct rg_engine_card card;
    struct rg_engine_card_data own, forged;
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rg_tcp_hello hello, challenge;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    rg_engine_get_card(good, &card);
    memcpy(&own, card.bytes, sizeof(own));
    rg_engine_get_card(model, &card);
    memcpy(&forged, card.bytes, sizeof(forged));
    join(good, 0, model);
    name.sin_port = htons((uint16_t)own.port);
    assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    memset(&hello, 0, sizeof(hello));
    hello.magic = RG_ENGINE_MAGIC;
    hello.stage = RG_TCP_WANT_HELLO;
    hello.to = 1;
    hello.token = forged.token;
    assert_int_equal(
        talk(good, fd, &hello, sizeof(hello), &challenge, sizeof(challenge)),
        sizeof(challenge));
    hello.stage = RG_TCP_WANT_PROOF;
    memcpy(hello.hash, challenge.hash, sizeof(hello.hash)); /* reflected */
    assert_int_equal(talk(good, fd, &hello, sizeof(hello), &challenge, 1), 0);
    close(fd);
    rg_engine_destroy(model);
    rg_engine_destroy(good);
}

static void test_unknown_provider(void **state)
{
    struct rg_engine_config config = {.size = 1, .bytes = REGION};
    struct rg_engine *engine = NULL;

    (void)state;
    setenv("RG_ENGINE", "ucx", 1);
    assert_int_equal(rg_engine_create(&config, &engine), RG_ECONFIG);
    assert_null(engine);
}

/* Without RG_ENGINE: memory where it is shared, else the network. */
static void test_choice(void **state)
{
    struct rg_engine *here, *there;
    struct rg_engine_config config = {
        .rank = 1, .size = 2, .host_id = "there", .bytes = REGION};

    (void)state;
    here = make_end(0, 2, "", 0);
    assert_int_equal(rg_engine_create(&config, &there), RG_OK);
    join(here, 1, there);
    assert_string_equal(rg_engine_provider(here, 1), "tcp");
    rg_engine_destroy(there);
    there = make_end(1, 2, "", 0);
    join(here, 1, there);
    assert_string_equal(rg_engine_provider(here, 1), "shm");
    rg_engine_destroy(there);
    rg_engine_destroy(here);
}

/* The authors' vector for SipHash-2-4: key 00..0f, text 00..0e. */
static void test_keyed_hash(void **state)
{
    static const unsigned char expected[8] = {0xe5, 0x45, 0xbe, 0x49,
                                              0x61, 0xca, 0x29, 0xa1};
    unsigned char key[RG_KEYED_KEY_BYTES], text[15], hash[RG_KEYED_BYTES];

    (void)state;
    for (unsigned i = 0; i < sizeof(key); i++)
        key[i] = (unsigned char)(i % 16);
    for (unsigned i = 0; i < sizeof(text); i++)
        text[i] = (unsigned char)i;
    rg_keyed_hash(key, text, sizeof(text), hash);
    assert_memory_equal(hash, expected, sizeof(expected));
    assert_memory_equal(hash + 8, expected, sizeof(expected));
}

#define ON_BOTH(test)                                                          \
    {"tcp: " #test, test, NULL, NULL, "tcp"},                                  \
    {                                                                          \
        "shm: " #test, test, NULL, NULL, "shm"                                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(test_sizes),
        ON_BOTH(test_traffic),
        ON_BOTH(test_set_and_add),
        ON_BOTH(test_source_leaves),
        ON_BOTH(test_bounds),
        ON_BOTH(test_generations),
        ON_BOTH(test_payload_before_signal),
        ON_BOTH(test_many),
        ON_BOTH(test_cancel),
        ON_BOTH(test_fail_and_reconnect),
        ON_BOTH(test_both_reconnect),
        ON_BOTH(test_crossing_connections),
        ON_BOTH(test_rejoin),
        ON_BOTH(test_deadline),
        ON_BOTH(test_nothing_is_left),
        ON_BOTH(test_peer_killed),
        {"tcp: test_peer_stopped", test_peer_stopped, NULL, NULL, "tcp"},
        cmocka_unit_test(test_wrong_secret),
        cmocka_unit_test(test_forged_proof),
        cmocka_unit_test(test_unknown_provider),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_keyed_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
