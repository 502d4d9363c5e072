/*
 * Drivers in processes of their own, which are killed, and in threads, whose
 * links are cut: the others go on, the cut-off find out, and come back.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/control/driver.h"
#include "runtime/core/clock.h"
#include "runtime/status.h"

enum {
    RANKS = 4,
    GROUP = 7,
    WAIT_MS = 30000,
    FIRST_SEQ = 100,
    BLOCK_MAX = 1024,
    GATHER_MS = 1500,
    DESCRIPTORS_MAX = 256,
    NS_PER_MS = 1000000
};

/* What the ranks share, as processes or as threads. */
struct job {
    pthread_barrier_t barrier;
    unsigned char blocks[RANKS][BLOCK_MAX];
    atomic_ullong epoch[RANKS]; /* in force there; 0: none or isolated */
    atomic_int members[RANKS];  /* in that view */
    atomic_int isolated[RANKS]; /* so often */
    atomic_int in_gather[RANKS];
    atomic_int in_change;     /* and one has not answered */
    atomic_int opened[RANKS]; /* 1: went well; -1: did not */
    atomic_int step;          /* how far the conductor has come */
    int apart;                /* each rank says that it has a host of its own */
    int held;                 /* rank + 1, whose port outlives it; 0: none */
    atomic_int port;          /* that one */
    atomic_int holds;         /* 1: is to answer nobody; 2: does not */
    pid_t holder;             /* the process that has it */
    atomic_int change;        /* all ask for one, once */
    unsigned char ticket[RANKS * BLOCK_MAX]; /* of rank 1 */
    size_t ticket_bytes;
};

struct rank {
    struct job *job;
    int rank;
    struct rg_driver *driver;
    struct rg_view *coming;
};

static int exchange(void *arg, const void *in, void *out, size_t bytes)
{
    struct rank *self = arg;

    memcpy(self->job->blocks[self->rank], in, bytes);
    pthread_barrier_wait(&self->job->barrier);
    for (int rank = 0; rank < RANKS; rank++)
        memcpy((unsigned char *)out + (size_t)rank * bytes,
               self->job->blocks[rank], bytes);
    pthread_barrier_wait(&self->job->barrier);
    return RG_OK;
}

static struct job *job_create(void)
{
    pthread_barrierattr_t shared;
    struct job *job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(job != MAP_FAILED);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&job->barrier, &shared, RANKS);
    pthread_barrierattr_destroy(&shared);
    return job;
}

/* ---- a rank --------------------------------------------------------------
 */

static int rank_open(struct rank *self, uint32_t process)
{
    static const char *const hosts[RANKS] = {"host-0", "host-1", "host-2",
                                             "host-3"};
    struct rg_settings settings;
    struct rg_driver_config config = {.world_rank = self->rank,
                                      .world_size = RANKS,
                                      .process = process,
                                      .allgather = exchange,
                                      .allgather_arg = self,
                                      .host_id =
                                          hosts[self->job->apart * self->rank],
                                      .settings = &settings};

    if (process > 1) {
        config.ticket = self->job->ticket;
        config.ticket_bytes = self->job->ticket_bytes;
    }
    return rg_settings_load(&settings) ||
           rg_driver_create(&config, &self->driver);
}

static int rank_join(struct rank *self, int rejoin)
{
    struct rg_join join = {.group = GROUP,
                           .capacity = RANKS,
                           .first_seq = FIRST_SEQ,
                           .rejoin = rejoin,
                           .policy = ""};

    join.info.capabilities = RG_CAP_NEW_BACKEND | RG_CAP_P2P;
    join.info.preference = RG_BACKEND_NEW;
    return rg_driver_join(self->driver, &join);
}

static void let_joiners_in(struct rank *self)
{
    struct rg_bitset nobody;

    rg_bitset_init(&nobody, RANKS);
    rg_driver_change(self->driver, GROUP, &nobody, 0);
    rg_bitset_fini(&nobody);
}

static void activate(struct rank *self)
{
    atomic_store(&self->job->members[self->rank], self->coming->nactive);
    atomic_store(&self->job->epoch[self->rank], self->coming->epoch);
}

/* Does what the next event calls for, if one comes. 0: the driver is lost. */
static int rank_step(struct rank *self)
{
    struct rg_group_event event;
    int rc = rg_driver_next(self->driver, GROUP, 20, &event);

    if (rc == RG_EPENDING)
        return 1;
    if (rc)
        return 0;
    switch (event.kind) {
    case RG_EVENT_PREPARE:
        return !rg_driver_quiesced(self->driver, GROUP, event.epoch,
                                   FIRST_SEQ - 1, FIRST_SEQ - 1, NULL);
    case RG_EVENT_VIEW:
        rg_view_destroy(self->coming);
        self->coming = event.view;
        return !rg_driver_view_ready(self->driver, GROUP, event.epoch, 7);
    case RG_EVENT_ACTIVATE:
        activate(self);
        return 1;
    case RG_EVENT_ISOLATED:
        atomic_store(&self->job->epoch[self->rank], 0);
        atomic_fetch_add(&self->job->isolated[self->rank], 1);
        return !rg_driver_fenced(self->driver, GROUP);
    case RG_EVENT_NOTICE:
        rg_bitset_fini(&event.slots);
        let_joiners_in(self);
        return 1;
    default:
        return 0;
    }
}

/* Follows until the conductor has come to this step. 0: lost on the way. */
static int rank_follow(struct rank *self, int step)
{
    while (atomic_load(&self->job->step) < step)
        if (!rank_step(self))
            return 0;
    return 1;
}

static void rank_close(struct rank *self)
{
    rg_driver_destroy(self->driver);
    rg_view_destroy(self->coming);
}

/* ---- the conductor --------------------------------------------------------
 */

/* All ranks of the mask are in one view of this many members. */
static int agree(const struct job *job, unsigned int mask, int members,
                 uint64_t after)
{
    uint64_t epoch = 0;

    for (int rank = 0; rank < RANKS; rank++) {
        uint64_t here = atomic_load(&job->epoch[rank]);

        if (!(mask >> rank & 1))
            continue;
        if (here <= after || (epoch && here != epoch) ||
            atomic_load(&job->members[rank]) != members)
            return 0;
        epoch = here;
    }
    return 1;
}

/* The epoch they agree on; fails when they do not in time. */
static uint64_t await(const struct job *job, unsigned int mask, int members,
                      uint64_t after)
{
    uint64_t limit = rg_clock_ns() + (uint64_t)WAIT_MS * NS_PER_MS;
    int rank = 0;

    while (!agree(job, mask, members, after)) {
        assert_true(rg_clock_ns() < limit);
        rg_clock_sleep_ns(NS_PER_MS);
    }
    while (!(mask >> rank & 1))
        rank++;
    return atomic_load(&job->epoch[rank]);
}

/* ---- processes ------------------------------------------------------------
 */

static int publish_ticket(struct rank *self)
{
    unsigned char *ticket;

    if (self->rank != 1)
        return 0;
    if (rg_driver_ticket(self->driver, &ticket, &self->job->ticket_bytes))
        return 1;
    memcpy(self->job->ticket, ticket, self->job->ticket_bytes);
    free(ticket);
    return 0;
}

/* The socket at which this process takes control links; -1: there is none. */
static int find_listener(int *port_out)
{
    struct sockaddr_in name;
    int fd = 3;

    for (; fd < DESCRIPTORS_MAX; fd++) {
        socklen_t length = sizeof(name);
        socklen_t size = sizeof(int);
        int listens = 0;

        if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) &&
            listens && !getsockname(fd, (struct sockaddr *)&name, &length) &&
            name.sin_family == AF_INET)
            break;
    }
    *port_out = ntohs(name.sin_port);
    return fd < DESCRIPTORS_MAX ? fd : -1;
}

/*
 * Has the listener of a process that is stopped, then killed, and so keeps its
 * host from refusing: who knocks hears nothing, for the queue is full.
 */
static void hold(struct job *job, int listener)
{
    const struct sockaddr_in name = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)atomic_load(&job->port)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int filler;

    alarm(4 * WAIT_MS / 1000); /* the test has failed long before */
    for (int fd = 3; fd < DESCRIPTORS_MAX; fd++)
        if (fd != listener)
            close(fd);
    while (!atomic_load(&job->holds))
        rg_clock_sleep_ns(NS_PER_MS);
    filler = socket(AF_INET, SOCK_STREAM, 0);
    if (listen(listener, 0) ||
        connect(filler, (const struct sockaddr *)&name, sizeof(name)))
        _exit(1);
    atomic_store(&job->holds, 2);
    for (;;)
        pause();
}

static int share_listener(struct rank *self)
{
    struct job *job = self->job;
    int port, listener;
    pid_t holder;

    if (!job->held || job->held - 1 != self->rank)
        return 0;
    listener = find_listener(&port);
    if (listener < 0)
        return 1;
    atomic_store(&job->port, port);
    holder = fork();
    if (!holder)
        hold(job, listener);
    job->holder = holder;
    return holder < 0;
}

/* Until step 1. */
static int process_follow(struct rank *self)
{
    int asked = 0;

    while (!atomic_load(&self->job->step)) {
        if (!asked && atomic_load(&self->job->change)) {
            asked = 1;
            let_joiners_in(self);
        }
        if (!rank_step(self))
            return 0;
    }
    return 1;
}

static void process_main(struct job *job, int rank, uint32_t process)
{
    struct rank self = {.job = job, .rank = rank};
    int ok =
        !rank_open(&self, process) &&
        (process > 1 || (!publish_ticket(&self) && !share_listener(&self))) &&
        !rank_join(&self, process > 1) && process_follow(&self);

    rank_close(&self);
    _exit(ok ? 0 : 1);
}

static void start_process(struct job *job, pid_t pids[RANKS], int rank,
                          uint32_t process)
{
    pids[rank] = fork();
    assert_true(pids[rank] >= 0);
    if (!pids[rank]) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* of a test that has failed */
        process_main(job, rank, process);
    }
}

static void start_processes(struct job *job, pid_t pids[RANKS])
{
    for (int rank = 0; rank < RANKS; rank++)
        start_process(job, pids, rank, 1);
}

static void kill_rank(pid_t pids[RANKS], int rank)
{
    assert_int_equal(kill(pids[rank], SIGKILL), 0);
    assert_int_equal(waitpid(pids[rank], NULL, 0), pids[rank]);
    pids[rank] = 0;
}

static void end_processes(struct job *job, const pid_t pids[RANKS])
{
    int status;

    atomic_store(&job->step, 1);
    for (int rank = 0; rank < RANKS; rank++)
        if (pids[rank]) {
            assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
            assert_int_equal(status, 0);
        }
    munmap(job, sizeof(*job));
}

/* One after the other, until one is alone: more views than workspaces. */
static void survivors_go_on_when_processes_are_killed(void **state)
{
    static const int victims[] = {3, 0, 1};
    struct job *job = job_create();
    unsigned int mask = 0xf;
    pid_t pids[RANKS];
    uint64_t epoch;

    (void)state;
    start_processes(job, pids);
    epoch = await(job, mask, RANKS, 0);
    for (int i = 0; i < 3; i++) {
        kill_rank(pids, victims[i]);
        mask &= ~(1u << victims[i]);
        epoch = await(job, mask, RANKS - 1 - i, epoch);
    }
    end_processes(job, pids);
}

static void kill_two_at_once(int apart)
{
    struct job *job = job_create();
    pid_t pids[RANKS];
    uint64_t epoch;

    job->apart = apart;
    start_processes(job, pids);
    epoch = await(job, 0xf, RANKS, 0);
    kill_rank(pids, 0); /* the coordinator */
    kill_rank(pids, 2);
    await(job, 0xa, 2, epoch);
    end_processes(job, pids);
}

static void two_killed_at_once_leave_the_other_two(void **state)
{
    (void)state;
    kill_two_at_once(0);
}

/*
 * Nothing tells of a death on another host but that its port is refused; half
 * of the members without the lowest slot may go on only if they know of it.
 */
static void a_refused_port_is_a_death_on_another_host(void **state)
{
    (void)state;
    kill_two_at_once(1);
}

/* The coordinator too, and it dies once more in its second life. */
static void a_killed_rank_comes_back_as_a_new_process(void **state)
{
    static const int victims[] = {2, 0, 0};
    uint32_t lives[RANKS] = {1, 1, 1, 1};
    struct job *job = job_create();
    pid_t pids[RANKS];
    uint64_t epoch;

    (void)state;
    start_processes(job, pids);
    epoch = await(job, 0xf, RANKS, 0);
    for (int i = 0; i < 3; i++) {
        int rank = victims[i];

        kill_rank(pids, rank);
        atomic_store(&job->epoch[rank], 0);
        epoch = await(job, 0xfu & ~(1u << rank), RANKS - 1, epoch);
        start_process(job, pids, rank, ++lives[rank]);
        epoch = await(job, 0xf, RANKS, epoch);
    }
    end_processes(job, pids);
}

/* Whether somebody waits for an answer of the port that is held. */
static int is_knocked_at(const struct job *job)
{
    FILE *table = fopen("/proc/net/tcp", "r");
    char line[256];
    int found = 0;

    assert_non_null(table);
    while (fgets(line, sizeof(line), table)) {
        unsigned int port, state;

        found |= sscanf(line, " %*d: %*x:%*x %*x:%x %x", &port, &state) == 2 &&
                 state == 2 && (int)port == atomic_load(&job->port);
    }
    fclose(table);
    return found;
}

/* No more is heard of the rank, and its host does not refuse. */
static void kill_and_hold(struct job *job, pid_t pids[RANKS], int rank)
{
    assert_int_equal(kill(pids[rank], SIGSTOP), 0);
    atomic_store(&job->holds, 1);
    while (atomic_load(&job->holds) < 2)
        rg_clock_sleep_ns(NS_PER_MS);
    kill_rank(pids, rank);
    atomic_store(&job->epoch[rank], 0);
}

/* The group, of all ranks again, changes once more and is still whole. */
static void end_held(struct job *job, const pid_t pids[RANKS], uint64_t epoch)
{
    atomic_store(&job->change, 1);
    await(job, 0xf, RANKS, epoch);
    end_processes(job, pids);
}

/* Which is a matter of the process it was meant for, not of the next one. */
static void a_port_refused_late_is_no_second_death(void **state)
{
    struct job *job = job_create();
    pid_t pids[RANKS];
    uint64_t epoch;

    (void)state;
    job->apart = 1;
    job->held = 1 + 3;
    start_processes(job, pids);
    epoch = await(job, 0xf, RANKS, 0);
    kill_and_hold(job, pids, 3);
    while (!is_knocked_at(job))
        rg_clock_sleep_ns(NS_PER_MS);
    start_process(job, pids, 3, 2);
    epoch = await(job, 0xf, RANKS, epoch);
    assert_true(is_knocked_at(job));
    assert_int_equal(kill(job->holder, SIGKILL), 0);
    while (is_knocked_at(job))
        rg_clock_sleep_ns(NS_PER_MS);
    end_held(job, pids, epoch);
}

/* Nothing else tells of it: no port is refused, and silence is no news. */
static void a_new_process_tells_of_the_death_of_the_last(void **state)
{
    struct job *job = job_create();
    pid_t pids[RANKS];
    uint64_t epoch;

    (void)state;
    setenv("RG_HEARTBEAT_MISS_MS", "600000", 1);
    job->apart = 1;
    job->held = 1 + 0;
    start_processes(job, pids);
    epoch = await(job, 0xf, RANKS, 0);
    kill_and_hold(job, pids, 0);
    start_process(job, pids, 0, 2);
    epoch = await(job, 0xf, RANKS, epoch);
    assert_int_equal(kill(job->holder, SIGKILL), 0);
    end_held(job, pids, epoch);
    setenv("RG_HEARTBEAT_MISS_MS", "1000", 1);
}

/* Its memory can be written by it again when it wakes, its views cannot. */
static void a_stopped_process_is_left_behind(void **state)
{
    struct job *job = job_create();
    pid_t pids[RANKS];
    uint64_t epoch;

    (void)state;
    start_processes(job, pids);
    epoch = await(job, 0xf, RANKS, 0);
    assert_int_equal(kill(pids[0], SIGSTOP), 0);
    epoch = await(job, 0xe, RANKS - 1, epoch);
    assert_int_equal(kill(pids[0], SIGCONT), 0);
    while (!atomic_load(&job->isolated[0]))
        rg_clock_sleep_ns(NS_PER_MS);
    assert_true(agree(job, 0xe, RANKS - 1, epoch - 1));
    end_processes(job, pids);
}

/* So that its memory is free without its help. */
static void a_stopped_process_can_be_killed(void **state)
{
    struct job *job = job_create();
    pid_t pids[RANKS];
    uint64_t epoch;
    int status;

    (void)state;
    setenv("RG_FENCE", "kill", 1);
    start_processes(job, pids);
    epoch = await(job, 0xf, RANKS, 0);
    assert_int_equal(kill(pids[3], SIGSTOP), 0);
    await(job, 0x7, RANKS - 1, epoch);
    assert_int_equal(waitpid(pids[3], &status, 0), pids[3]);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    pids[3] = 0;
    unsetenv("RG_FENCE");
    end_processes(job, pids);
}

/* Rank 0 comes to the gather last. */
static void gatherer_main(struct job *job, int rank)
{
    struct rank self = {.job = job, .rank = rank};
    int out[RANKS] = {0};
    int ok = !rank_open(&self, 1) && !rank_join(&self, 0) &&
             rank_follow(&self, rank ? 1 : 2);

    atomic_store(&job->in_gather[rank], 1);
    ok = ok && !rg_driver_gather(self.driver, GROUP, &rank, sizeof(rank), out,
                                 GATHER_MS);
    for (int i = 0; i < RANKS; i++)
        ok = ok && out[i] == i;
    ok = ok && rank_follow(&self, 3) && atomic_load(&job->epoch[rank]) == 1;
    rank_close(&self);
    _exit(ok ? 0 : 1);
}

/* Rank 3 takes its time to answer PREPARE. */
static void changer_main(struct job *job, int rank)
{
    struct rank self = {.job = job, .rank = rank};
    struct rg_group_event event = {0};
    int ok = !rank_open(&self, 1) && !rank_join(&self, 0) &&
             rank_follow(&self, 1) &&
             !rg_driver_propose_policy(self.driver, GROUP, "p");

    if (rank == 3) {
        ok = ok && !rg_driver_next(self.driver, GROUP, WAIT_MS, &event) &&
             event.kind == RG_EVENT_PREPARE;
        atomic_store(&job->in_change, 1);
        while (ok && atomic_load(&job->step) < 2)
            rg_clock_sleep_ns(NS_PER_MS);
        ok = ok && !rg_driver_quiesced(self.driver, GROUP, event.epoch,
                                       FIRST_SEQ - 1, FIRST_SEQ - 1, NULL);
    }
    ok = ok && rank_follow(&self, 3);
    rank_close(&self);
    _exit(ok ? 0 : 1);
}

static void signal_all(const pid_t pids[RANKS], int number)
{
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(kill(pids[rank], number), 0);
}

static void stop_for(const pid_t pids[RANKS], uint64_t ms)
{
    signal_all(pids, SIGSTOP);
    rg_clock_sleep_ns(ms * NS_PER_MS);
    signal_all(pids, SIGCONT);
}

static void fork_all(struct job *job, pid_t pids[RANKS],
                     void (*body)(struct job *job, int rank))
{
    for (int rank = 0; rank < RANKS; rank++) {
        pids[rank] = fork();
        assert_true(pids[rank] >= 0);
        if (!pids[rank])
            body(job, rank);
    }
}

static void wait_all(const pid_t pids[RANKS])
{
    for (int rank = 0; rank < RANKS; rank++) {
        int status;

        assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
        assert_int_equal(status, 0);
    }
}

/* Longer than anybody waits for anything, and yet nobody was late. */
static void a_job_that_was_stopped_goes_on(void **state)
{
    struct job *job = job_create();
    pid_t pids[RANKS];

    (void)state;
    fork_all(job, pids, gatherer_main);
    await(job, 0xf, RANKS, 0);
    atomic_store(&job->step, 1);
    for (int rank = 1; rank < RANKS; rank++)
        while (!atomic_load(&job->in_gather[rank]))
            rg_clock_sleep_ns(NS_PER_MS);
    stop_for(pids, 2 * GATHER_MS);
    atomic_store(&job->step, 2);
    for (int rank = 0; rank < RANKS; rank++)
        while (!atomic_load(&job->in_gather[rank]))
            rg_clock_sleep_ns(NS_PER_MS);
    atomic_store(&job->step, 3);
    wait_all(pids);
    munmap(job, sizeof(*job));
}

static void a_change_that_was_stopped_goes_on(void **state)
{
    struct job *job = job_create();
    pid_t pids[RANKS];

    (void)state;
    setenv("RG_DEADLINE_MS", "1500", 1);
    fork_all(job, pids, changer_main);
    await(job, 0xf, RANKS, 0);
    atomic_store(&job->step, 1);
    while (!atomic_load(&job->in_change))
        rg_clock_sleep_ns(NS_PER_MS);
    stop_for(pids, 3000);
    atomic_store(&job->step, 2);
    await(job, 0xf, RANKS, 1);
    atomic_store(&job->step, 3);
    wait_all(pids);
    munmap(job, sizeof(*job));
    unsetenv("RG_DEADLINE_MS");
}

/* With so many descriptors more than are open now. */
static void opener_main(struct job *job, int rank, int descriptors)
{
    struct rank self = {.job = job, .rank = rank};
    int next = dup(0);
    const struct rlimit limit = {.rlim_cur = (rlim_t)(next + descriptors),
                                 .rlim_max = (rlim_t)(next + descriptors)};
    int ok = next >= 0 && !close(next);

    if (rank == 2)
        ok = ok && !setrlimit(RLIMIT_NOFILE, &limit);
    atomic_store(&job->opened[rank], rank_open(&self, 1) ? -1 : 1);
    rank_close(&self);
    _exit(ok ? 0 : 1);
}

/* The verdict of all ranks on a start in which one has so few descriptors. */
static int open_short_of(int descriptors)
{
    struct job *job = job_create();
    pid_t pids[RANKS];
    int sum = 0;
    int status;

    for (int rank = 0; rank < RANKS; rank++) {
        pids[rank] = fork();
        assert_true(pids[rank] >= 0);
        if (!pids[rank])
            opener_main(job, rank, descriptors);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
        assert_int_equal(status, 0);
        sum += atomic_load(&job->opened[rank]);
    }
    munmap(job, sizeof(*job));
    assert_int_equal(abs(sum), RANKS);
    return sum > 0;
}

/* Wherever it fails: nobody starts, and nobody waits for long. */
static void a_rank_that_cannot_start_stops_all(void **state)
{
    int descriptors = 0;

    (void)state;
    setenv("RG_BOOTSTRAP_MS", "1500", 1);
    while (!open_short_of(descriptors))
        assert_true(++descriptors < 40);
    unsetenv("RG_BOOTSTRAP_MS");
    assert_true(descriptors > 6);
}

static void a_ticket_must_be_whole(void **state)
{
    static const unsigned char broken[] = {40, 0, 0, 0, 1, 0, 1, 0};
    struct job *job = job_create();
    struct rank self = {.job = job, .rank = 2};

    (void)state;
    memcpy(job->ticket, broken, sizeof(broken));
    for (size_t bytes = 1; bytes <= sizeof(broken); bytes++) {
        job->ticket_bytes = bytes;
        assert_int_not_equal(rank_open(&self, 2), 0);
        assert_null(self.driver);
    }
    munmap(job, sizeof(*job));
}

/* ---- threads --------------------------------------------------------------
 */

struct player {
    struct rank self;
    int (*play)(struct rank *self); /* 1: it went as it should */
    pthread_t thread;
    int ok;
};

static void *play(void *arg)
{
    struct player *player = arg;

    player->ok = player->play(&player->self);
    rank_close(&player->self);
    return NULL;
}

static void players_start(struct player *players, struct job *job,
                          int (*their_play)(struct rank *self))
{
    for (int rank = 0; rank < RANKS; rank++) {
        players[rank] = (struct player){.self = {.job = job, .rank = rank},
                                        .play = their_play};
        assert_int_equal(
            pthread_create(&players[rank].thread, NULL, play, &players[rank]),
            0);
    }
}

static void players_join(struct player *players)
{
    for (int rank = 0; rank < RANKS; rank++) {
        pthread_join(players[rank].thread, NULL);
        assert_true(players[rank].ok);
    }
}

/* Steps 1: the last rank is cut off; 2: mended; 3: the end. */
static int come_back(struct rank *self)
{
    int last = self->rank == RANKS - 1;

    if (rank_open(self, 1) || rank_join(self, 0) || !rank_follow(self, 1))
        return 0;
    for (int other = 0; other < RANKS; other++)
        if (other != self->rank && (last || other == RANKS - 1))
            rg_driver_drop_link(self->driver, other, 1);
    if (!rank_follow(self, 2))
        return 0;
    for (int other = 0; other < RANKS; other++)
        if (other != self->rank)
            rg_driver_drop_link(self->driver, other, 0);
    if (last && (rg_driver_leave(self->driver, GROUP) || rank_join(self, 1)))
        return 0;
    return rank_follow(self, 3);
}

static void the_cut_off_find_out_and_come_back(void **state)
{
    struct job *job = job_create();
    struct player players[RANKS];
    uint64_t epoch;

    (void)state;
    players_start(players, job, come_back);
    epoch = await(job, 0xf, RANKS, 0);
    atomic_store(&job->step, 1);
    epoch = await(job, 0x7, RANKS - 1, epoch);
    while (!atomic_load(&job->isolated[RANKS - 1]))
        rg_clock_sleep_ns(NS_PER_MS);
    atomic_store(&job->step, 2);
    await(job, 0xf, RANKS, epoch);
    atomic_store(&job->step, 3);
    players_join(players);
    munmap(job, sizeof(*job));
}

/* ---- commit ---------------------------------------------------------------
 */

static int commit(struct rank *self)
{
    struct rg_bitset slots;
    int rc;

    if (rank_open(self, 1) || rank_join(self, 0) || !rank_follow(self, 1))
        return 0;
    /* Rank 2 never completes 101; the others wait for it in vain. */
    rc = rg_driver_progress(self->driver, GROUP,
                            self->rank == 2 ? FIRST_SEQ : FIRST_SEQ + 1, 0, 1);
    if (rc ||
        rg_driver_wait_committed(self->driver, GROUP, FIRST_SEQ, WAIT_MS) ||
        rg_driver_wait_committed(self->driver, GROUP, FIRST_SEQ + 1, 300) !=
            RG_ETIMEDOUT)
        return 0;
    pthread_barrier_wait(&self->job->barrier);
    rg_bitset_init(&slots, RANKS);
    rg_bitset_set(&slots, 2);
    if (self->rank == 1)
        rc = rg_driver_report_stall(self->driver, GROUP, FIRST_SEQ + 1, &slots);
    rg_bitset_fini(&slots);
    return !rc && rank_follow(self, 2);
}

/* None has begun the seq (see QUIESCED): all but the one that waits go. */
static void the_floor_rises_and_a_stall_begins_a_change(void **state)
{
    struct job *job = job_create();
    struct player players[RANKS];
    uint64_t epoch;

    (void)state;
    players_start(players, job, commit);
    epoch = await(job, 0xf, RANKS, 0);
    atomic_store(&job->step, 1);
    await(job, 0x2, 1, epoch);
    atomic_store(&job->step, 2);
    players_join(players);
    munmap(job, sizeof(*job));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survivors_go_on_when_processes_are_killed),
        cmocka_unit_test(two_killed_at_once_leave_the_other_two),
        cmocka_unit_test(a_refused_port_is_a_death_on_another_host),
        cmocka_unit_test(a_killed_rank_comes_back_as_a_new_process),
        cmocka_unit_test(a_port_refused_late_is_no_second_death),
        cmocka_unit_test(a_new_process_tells_of_the_death_of_the_last),
        cmocka_unit_test(a_stopped_process_can_be_killed),
        cmocka_unit_test(a_job_that_was_stopped_goes_on),
        cmocka_unit_test(a_change_that_was_stopped_goes_on),
        cmocka_unit_test(a_rank_that_cannot_start_stops_all),
        cmocka_unit_test(a_ticket_must_be_whole),
        cmocka_unit_test(a_stopped_process_is_left_behind),
        cmocka_unit_test(the_cut_off_find_out_and_come_back),
        cmocka_unit_test(the_floor_rises_and_a_stall_begins_a_change),
    };

    setenv("RG_CONTROL_HOST", "127.0.0.1", 1);
    setenv("RG_HEARTBEAT_MS", "50", 1);
    setenv("RG_HEARTBEAT_MISS_MS", "1000", 1);
    setenv("RG_WINDOW_MS", "1000", 1);
    setenv("RG_ISOLATE_MS", "1500", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
