/* Drivers of four ranks as threads of one process, over real sockets. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/control/driver.h"
#include "runtime/control/driver_socket.h"
#include "runtime/control/message.h"
#include "runtime/control/wire.h"
#include "runtime/core/clock.h"
#include "runtime/status.h"

enum { RANKS = 4, GROUP = 7, WAIT_MS = 20000, REGION_WORD = 0x5247 };

struct rank;

/* The launcher's exchange between threads. */
struct job {
    pthread_barrier_t barrier;
    unsigned char *blocks;
    struct rg_endpoint endpoint; /* of rank 0, overheard by rank 1 */
    const char *hosts[RANKS];
    int (*body)(struct rank *self, struct rg_driver *driver);
    int create_status[RANKS];
    int failed_line[RANKS]; /* 0: the rank's body went well */
};

struct rank {
    struct job *job;
    int rank;
    pthread_t thread;
};

static void overhear(struct job *job, const unsigned char *block)
{
    struct rg_message *message;
    size_t bytes;

    if (rg_wire_length(block, RG_WIRE_MAX, &bytes) == RG_OK &&
        rg_wire_decode(block + RG_WIRE_PREFIX, bytes, &message) == RG_OK) {
        if (message->endpoint.port)
            job->endpoint = message->endpoint;
        rg_message_unref(message);
    }
}

static int exchange(void *arg, const void *in, void *out, size_t bytes)
{
    struct rank *self = arg;
    struct job *job = self->job;

    if (pthread_barrier_wait(&job->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
        job->blocks = malloc(RANKS * bytes);
    pthread_barrier_wait(&job->barrier);
    memcpy(job->blocks + (size_t)self->rank * bytes, in, bytes);
    pthread_barrier_wait(&job->barrier);
    memcpy(out, job->blocks, RANKS * bytes);
    if (self->rank == 1)
        overhear(job, out);
    if (pthread_barrier_wait(&job->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
        free(job->blocks);
    return RG_OK;
}

/* cmocka's assertions may not be used off the main thread: the line of the
 * first check that fails is what a rank returns. */
#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition))                                                      \
            return __LINE__;                                                   \
    } while (0)

static void *rank_main(void *arg)
{
    struct rank *self = arg;
    struct job *job = self->job;
    struct rg_settings settings;
    struct rg_driver_config config = {.world_rank = self->rank,
                                      .world_size = RANKS,
                                      .allgather = exchange,
                                      .allgather_arg = self,
                                      .host_id = job->hosts[self->rank],
                                      .settings = &settings};
    struct rg_driver *driver = NULL;

    job->failed_line[self->rank] = __LINE__;
    if (rg_settings_load(&settings) != RG_OK)
        return NULL;
    job->create_status[self->rank] = rg_driver_create(&config, &driver);
    if (!job->create_status[self->rank])
        job->failed_line[self->rank] = job->body(self, driver);
    rg_driver_destroy(driver);
    return NULL;
}

static void run_ranks(struct job *job, const char *last_host)
{
    struct rank ranks[RANKS];

    pthread_barrier_init(&job->barrier, NULL, RANKS);
    for (int i = 0; i < RANKS; i++) {
        job->hosts[i] = i == RANKS - 1 ? last_host : "host-a";
        ranks[i] = (struct rank){.job = job, .rank = i};
        assert_int_equal(
            pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(ranks[i].thread, NULL);
    pthread_barrier_destroy(&job->barrier);
}

static void run_job(const char *last_host,
                    int (*body)(struct rank *self, struct rg_driver *driver))
{
    struct job job = {.body = body};

    run_ranks(&job, last_host);
    for (int i = 0; i < RANKS; i++)
        if (job.failed_line[i])
            fail_msg("rank %d: check of line %d", i, job.failed_line[i]);
}

/* ---- steps of a rank ------------------------------------------------------
 */

static int join(struct rg_driver *driver, int rank, uint64_t region_bytes)
{
    struct rg_join request = {.group = GROUP,
                              .capacity = RANKS + 1,
                              .first_seq = 100,
                              .policy = rank ? "" : "all_reduce=ring"};

    request.info.capabilities = RG_CAP_NEW_BACKEND | RG_CAP_P2P;
    request.info.preference = RG_BACKEND_NEW;
    request.info.region_bytes = region_bytes;
    return rg_driver_join(driver, &request);
}

static int expect(struct rg_driver *driver, enum rg_event_kind kind,
                  struct rg_group_event *event)
{
    return rg_driver_next(driver, GROUP, WAIT_MS, event) == RG_OK &&
           event->kind == kind;
}

/* Follows one view change; the caller gets the view. */
static int change(struct rg_driver *driver, int rank, uint64_t epoch,
                  struct rg_view **view_out)
{
    /* Each has sent to rank 0, which has had all but that of rank 3. */
    struct rg_pair sent = {.from = rank, .to = 0, .count = 7};
    struct rg_pair come[] = {{.from = 1, .count = 5}, {.from = 2, .count = 9}};
    const struct rg_pairs pairs = {.items = rank ? &sent : come,
                                   .count = rank ? 1 : 2};
    struct rg_group_event event = {0};

    CHECK(expect(driver, RG_EVENT_PREPARE, &event));
    CHECK(event.epoch == epoch && event.workspace == (epoch - 1) % 3);
    CHECK(!rg_driver_quiesced(driver, GROUP, epoch, 100 + (uint64_t)rank,
                              110 + (uint64_t)rank, &pairs));
    CHECK(expect(driver, RG_EVENT_VIEW, &event));
    CHECK(event.view && event.view->epoch == epoch);
    if (epoch > 1)
        CHECK(event.view->pairs.count == 2 &&
              rg_pairs_find(&event.view->pairs, 1, 0) == 5 &&
              rg_pairs_find(&event.view->pairs, 2, 0) == 7);
    *view_out = event.view;
    CHECK(!rg_driver_view_ready(driver, GROUP, epoch, 7));
    CHECK(expect(driver, RG_EVENT_ACTIVATE, &event));
    CHECK(event.epoch == epoch);
    return 0;
}

static int start(struct rg_driver *driver, int rank)
{
    struct rg_view *view;
    int line;

    CHECK(!join(driver, rank, 1 << 20));
    line = change(driver, rank, 1, &view);
    if (line)
        return line;
    CHECK(view->nactive == RANKS && view->capacity == RANKS + 1);
    CHECK(view->first_seq == 100 && view->committed_seq == 99);
    CHECK(view->backend == RG_BACKEND_NEW);
    CHECK(!strcmp(view->policy, "all_reduce=ring"));
    CHECK(view->members[rank].world_rank == rank);
    rg_view_destroy(view);
    return 0;
}

/* ---- bodies ---------------------------------------------------------------
 */

static int body_views(struct rank *self, struct rg_driver *driver)
{
    int rank = self->rank;
    struct rg_group_event event;
    struct rg_view *view;
    char text[128];
    int line = start(driver, rank);

    if (line)
        return line;
    CHECK(rg_driver_next(driver, GROUP, 0, &event) == RG_EPENDING);
    CHECK(!rg_driver_propose_policy(driver, GROUP, "all_reduce=oneshot"));
    line = change(driver, rank, 2, &view);
    if (line)
        return line;
    CHECK(!strcmp(view->policy, "all_reduce=oneshot"));
    CHECK(view->committed_seq == 100 && view->first_seq == 114);
    rg_view_destroy(view);
    CHECK(!rg_driver_propose_policy(driver, GROUP, rank == 2 ? "x" : "y"));
    CHECK(expect(driver, RG_EVENT_ERROR, &event));
    CHECK(event.status == RG_EPOLICY);
    CHECK(!rg_driver_propose_policy(driver, GROUP, "z"));
    line = change(driver, rank, 3, &view);
    if (line)
        return line;
    CHECK(!strcmp(view->policy, "z"));
    rg_view_destroy(view);
    CHECK(!rg_driver_describe(driver, GROUP, text, sizeof(text)));
    CHECK(strstr(text, "term 1 epoch 3: active"));
    CHECK(rg_driver_next(driver, GROUP + 1, 0, &event) == RG_EINVAL);
    return 0;
}

static int body_gather(struct rank *self, struct rg_driver *driver)
{
    int rank = self->rank;
    static const size_t sizes[] = {0, 1, 24, 65536};
    unsigned char *in = malloc(65536);
    unsigned char *out = malloc(RANKS * 65536);
    int line = in && out ? start(driver, rank) : __LINE__;

    for (int round = 0; round < 40 && !line; round++) {
        size_t bytes = sizes[round % 4];

        memset(in, 16 * rank + round % 16, bytes);
        if (rg_driver_gather(driver, GROUP, in, bytes, out, WAIT_MS))
            line = __LINE__;
        for (size_t i = 0; i < RANKS * bytes && !line; i++)
            if (out[i] != 16 * (i / bytes) + (size_t)round % 16)
                line = __LINE__;
    }
    /* Sizes that differ are an error for all, and the next call works. */
    if (!line && rg_driver_gather(driver, GROUP, in, rank == 1 ? 8 : 4, out,
                                  WAIT_MS) != RG_EINVAL)
        line = __LINE__;
    if (!line &&
        rg_driver_gather(driver, GROUP, in, 65537, out, WAIT_MS) != RG_EINVAL)
        line = __LINE__;
    /* Also where one rank's is refused: it has made this call, as all have. */
    if (!line && rg_driver_gather(driver, GROUP, in, rank == 1 ? 65537 : 8, out,
                                  WAIT_MS) != RG_EINVAL)
        line = __LINE__;
    memset(in, 100 + rank, 8);
    if (!line && rg_driver_gather(driver, GROUP, in, 8, out, WAIT_MS))
        line = __LINE__;
    for (size_t i = 0; i < RANKS * 8 && !line; i++)
        if (out[i] != 100 + i / 8)
            line = __LINE__;
    free(in);
    free(out);
    return line;
}

/* Rank 0 comes too late for the others' first call, which nobody gets then. */
static int body_late(struct rank *self, struct rg_driver *driver)
{
    int rank = self->rank;
    int number = rank;
    int out[RANKS];
    int line = start(driver, rank);

    if (line)
        return line;
    if (rank)
        CHECK(rg_driver_gather(driver, GROUP, &number, sizeof(number), out,
                               1) == RG_ETIMEDOUT);
    pthread_barrier_wait(&self->job->barrier);
    number = -1 - rank;
    if (!rank)
        CHECK(rg_driver_gather(driver, GROUP, &number, sizeof(number), out,
                               WAIT_MS) == RG_ETIMEDOUT);
    number = 10 + rank;
    CHECK(!rg_driver_gather(driver, GROUP, &number, sizeof(number), out,
                            WAIT_MS));
    for (int i = 0; i < RANKS; i++)
        CHECK(out[i] == 10 + i);
    return 0;
}

static int body_mismatch(struct rank *self, struct rg_driver *driver)
{
    int rank = self->rank;
    struct rg_group_event event;

    CHECK(!join(driver, rank, rank == 3 ? 1 : 2));
    CHECK(join(driver, rank, 2) == RG_EBUSY);
    CHECK(expect(driver, RG_EVENT_ERROR, &event));
    CHECK(event.status == RG_ECONFIG);
    CHECK(!rg_driver_leave(driver, GROUP));
    CHECK(rg_driver_next(driver, GROUP, 0, &event) == RG_EINVAL);
    return start(driver, rank);
}

/* Every rank on host-a maps the others' memory; the last is elsewhere. */
static int body_descriptors(struct rank *self, struct rg_driver *driver)
{
    int rank = self->rank;
    int own = memfd_create("region", MFD_CLOEXEC);
    int word = REGION_WORD + rank;

    CHECK(own >= 0 && write(own, &word, sizeof(word)) == sizeof(word));
    CHECK(!rg_driver_offer_fd(driver, own));
    for (int round = 0; round < 2; round++)
        for (int peer = 0; peer < RANKS; peer++) {
            int here = (rank == RANKS - 1) == (peer == RANKS - 1);
            int fd = -1;
            int rc = rg_driver_fetch_fd(driver, peer, WAIT_MS, &fd);

            CHECK(rc == (here ? RG_OK : RG_ENOTSUP));
            if (!here)
                continue;
            CHECK(pread(fd, &word, sizeof(word), 0) == sizeof(word));
            CHECK(word == REGION_WORD + peer);
            close(fd);
        }
    close(own);
    CHECK(rg_driver_fetch_fd(driver, RANKS, 0, &own) == RG_EINVAL);
    return start(driver, rank);
}

/* A rank that goes without a word: the others learn of it. */
static int body_leaver(struct rank *self, struct rg_driver *driver)
{
    int rank = self->rank;
    int line = start(driver, rank);
    char out[RANKS];

    if (line || rank == 3)
        return line; /* destroys its driver: LEAVE */
    CHECK(rg_driver_gather(driver, GROUP, out, 1, out, WAIT_MS) == RG_ECLOSED);
    return 0;
}

/* Whether the other side closes a connection on which this is said. */
static int is_refused(int fd, const void *bytes, size_t count)
{
    struct timeval patience = {.tv_sec = WAIT_MS / 1000};
    char byte;
    int refused;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    fcntl(fd, F_SETFL, 0);
    refused = send(fd, bytes, count, MSG_NOSIGNAL) == (ssize_t)count &&
              recv(fd, &byte, 1, 0) <= 0 && errno != EAGAIN;
    close(fd);
    return refused;
}

static int hello_refused(const struct job *job, int over_unix,
                         enum rg_message_kind kind, int world_rank)
{
    static const char secret[RG_SECRET_BYTES] = "not the secret";
    struct rg_message *hello = rg_message_create(kind, 0);
    uint64_t deadline = rg_clock_ns() + WAIT_MS * 1000000ull;
    unsigned char *frame = NULL;
    size_t bytes = 0;
    int fd = -1;
    int refused;

    hello->world_rank = world_rank;
    rg_message_set_data(hello, secret, sizeof(secret));
    rg_wire_encode(hello, &frame, &bytes);
    if (over_unix)
        rg_socket_connect_unix(1, &job->endpoint, deadline, &fd);
    else
        rg_socket_connect_tcp(1, &job->endpoint, deadline, &fd);
    refused = fd >= 0 && is_refused(fd, frame, bytes);
    free(frame);
    rg_message_unref(hello);
    return refused;
}

/* Strangers are turned away, and the job does not notice. */
static int body_strangers(struct rank *self, struct rg_driver *driver)
{
    static const unsigned char huge[] = {0xff, 0xff, 0xff, 0x7f};
    uint64_t deadline = rg_clock_ns() + WAIT_MS * 1000000ull;
    int fd;

    if (self->rank == 1) {
        CHECK(hello_refused(self->job, 0, RG_MSG_HELLO, 3));
        CHECK(hello_refused(self->job, 0, RG_MSG_HELLO, -1));
        CHECK(hello_refused(self->job, 1, RG_MSG_HELLO, 2));
        CHECK(hello_refused(self->job, 0, RG_MSG_LEAVE, 0));
        CHECK(hello_refused(self->job, 1, RG_MSG_OFFER, 0));
        CHECK(!rg_socket_connect_tcp(1, &self->job->endpoint, deadline, &fd));
        CHECK(is_refused(fd, huge, sizeof(huge)));
    }
    return start(driver, self->rank);
}

/* ---- tests ----------------------------------------------------------------
 */

static void views_follow_each_other(void **state)
{
    (void)state;
    run_job("host-a", body_views);
}

static void gather_returns_blocks_in_rank_order(void **state)
{
    (void)state;
    run_job("host-a", body_gather);
}

static void late_answers_go_to_nobody(void **state)
{
    (void)state;
    run_job("host-a", body_late);
}

static void inconsistent_joins_fail_everywhere(void **state)
{
    (void)state;
    run_job("host-a", body_mismatch);
}

static void descriptors_reach_ranks_of_the_same_host(void **state)
{
    (void)state;
    run_job("host-b", body_descriptors);
}

static void a_gather_ends_when_a_member_leaves(void **state)
{
    (void)state;
    run_job("host-a", body_leaver);
}

static void strangers_are_refused(void **state)
{
    (void)state;
    run_job("host-a", body_strangers);
}

/* Nobody is left waiting for a rank that could not listen. */
static void a_bad_address_fails_every_rank(void **state)
{
    struct job job = {0};

    (void)state;
    setenv("RG_CONTROL_HOST", "192.0.2.1", 1);
    run_ranks(&job, "host-a");
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(job.create_status[i], RG_ESYSTEM);
    setenv("RG_CONTROL_HOST", "127.0.0.1", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_follow_each_other),
        cmocka_unit_test(gather_returns_blocks_in_rank_order),
        cmocka_unit_test(late_answers_go_to_nobody),
        cmocka_unit_test(inconsistent_joins_fail_everywhere),
        cmocka_unit_test(descriptors_reach_ranks_of_the_same_host),
        cmocka_unit_test(a_gather_ends_when_a_member_leaves),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(a_bad_address_fails_every_rank),
    };

    /* Ranks of two host ids are still one machine here. */
    setenv("RG_CONTROL_HOST", "127.0.0.1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
