#include "runtime/transfer/routes/proxy/proxy.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/device/word.h"
#include "runtime/status.h"

enum {
    COMPLETIONS = 64,
    NS_PER_MS = 1000000,
    LOOK_MS = 2,         /* so long a team that drives is trusted */
    SPIN_NS = 200000000, /* of a thread that nobody can wake */
    NAP_NS = 20000,      /* after that */
    MOMENT_NS = 100000,  /* a team's, between two looks at the rest */
    WINK_NS = 10000      /* where what it waits for may be no network's */
};

#define COOKIE_NONE UINT64_MAX /* else the rank of a note */

struct note {
    uint64_t data[RG_PROXY_NOTE_BYTES / 8];
    int under_way;
    int status; /* RG_EPENDING: nothing to tell */
};

struct rg_proxy {
    struct rg_proxy_config config;
    struct rg_engine *engine;
    pthread_mutex_t lock;
    pthread_t thread;
    int thread_made, lock_made;
    int wake_fd;
    uint64_t driven_ns; /* when a team did a round last */
    uint64_t alone;     /* 1: what a team waits for comes by the network */
    /* Under the lock. */
    int stop;
    int force;
    uint64_t epoch;
    uint64_t open;      /* commands at the engine */
    uint64_t *next;     /* [lanes] index of the command to be taken */
    struct note *notes; /* [size] */
    uint64_t failed;    /* commands that did not end well */
};

/* ---- a round ------------------------------------------------------------ */

static void submit(struct rg_proxy *proxy,
                   const struct rg_engine_command *command)
{
    const int status = rg_engine_submit(proxy->engine, command);

    if (status == RG_OK) {
        proxy->open++;
        return;
    }
    proxy->failed++;
    rg_log(RG_LOG_WARN, proxy->config.engine.rank,
           "a command to rank %d was not taken: %d", command->peer, status);
}

static void take_one(struct rg_proxy *proxy, uint64_t lane,
                     const struct rg_proxy_command *from)
{
    const uint64_t stage = from->stage;
    const struct rg_engine_command command = {
        .peer = (int)from->peer,
        .generation = proxy->epoch,
        .offset = from->offset,
        .source =
            stage == RG_PROXY_NONE
                ? NULL
                : proxy->config.stages +
                      (lane * RG_PROXY_STAGES + stage) * RG_PROXY_STAGE_BYTES,
        .left = stage == RG_PROXY_NONE
                    ? NULL
                    : &proxy->config.fifo->lane[lane].given[stage],
        .bytes = from->bytes,
        .signal =
            from->signal == RG_PROXY_NONE ? RG_ENGINE_NO_SIGNAL : from->signal,
        .op = (enum rg_signal_op)from->op,
        .value = from->value,
        .deadline_ns = rg_clock_after_ms(proxy->config.deadline_ms),
        .cookie = COOKIE_NONE};

    submit(proxy, &command);
}

/* Takes what teams have left in a lane; how many commands. */
static int take_lane(struct rg_proxy *proxy, uint64_t index)
{
    struct rg_proxy_lane *lane = &proxy->config.fifo->lane[index];
    int count = 0;

    for (;; count++) {
        const uint64_t next = proxy->next[index];
        const struct rg_proxy_command *command =
            &lane->command[next % RG_PROXY_DEPTH];

        /* Pairs with the team's release of the turn. */
        if (rg_load_acquire(&command->turn) != next + 1)
            return count;
        take_one(proxy, index, command);
        proxy->next[index]++;
        rg_store_release(&lane->taken, next + 1);
    }
}

static void end_note(struct rg_proxy *proxy, uint64_t rank, int status)
{
    proxy->notes[rank].under_way = 0;
    proxy->notes[rank].status = status;
}

static void end_command(struct rg_proxy *proxy,
                        const struct rg_engine_completion *completion)
{
    proxy->open--;
    proxy->failed += completion->status != RG_OK;
    if (completion->cookie != COOKIE_NONE)
        end_note(proxy, completion->cookie, completion->status);
}

/* How many commands have ended, of this end's or of peers. */
static uint64_t poll_engine(struct rg_proxy *proxy)
{
    const uint64_t arrivals = rg_engine_arrivals(proxy->engine);
    struct rg_engine_completion completions[COMPLETIONS];
    const int count = rg_engine_poll(proxy->engine, completions, COMPLETIONS);

    for (int i = 0; i < count; i++)
        end_command(proxy, &completions[i]);
    return (uint64_t)count + rg_engine_arrivals(proxy->engine) - arrivals;
}

/* What a round has done. */
enum { IDLE = 0, WORKED, SENT };

/* Under the lock. `sends`: the next round looks for what comes in, if there is
 * something to send. */
static int work(struct rg_proxy *proxy, int sends)
{
    uint64_t count = 0;

    /* Before the looking: what comes later is urgent again. */
    rg_store_relaxed(&proxy->config.fifo->urgent, 0);
    if (proxy->force)
        for (uint64_t i = 0; i < proxy->config.fifo->lanes; i++)
            count += (uint64_t)take_lane(proxy, i);
    if (!sends || !count)
        return count + poll_engine(proxy) > 0 ? WORKED : IDLE;
    rg_engine_flush(proxy->engine);
    return SENT;
}

/* A core is given away until the network has something, which is 1, or for a
 * moment. */
static int let_others(const struct rg_proxy *proxy, uint64_t alone)
{
    const struct timespec moment =
        rg_clock_timespec(alone ? MOMENT_NS : WINK_NS);
    struct pollfd network = {.fd = rg_engine_fd(proxy->engine),
                             .events = POLLIN};

    return ppoll(&network, 1, &moment, NULL) > 0;
}

/* A round of a team's; -1: not its turn. */
static int drive_once(struct rg_proxy *proxy, int waits, int sends)
{
    int worked;

    if (!waits)
        pthread_mutex_lock(&proxy->lock);
    else if (pthread_mutex_trylock(&proxy->lock))
        return -1;
    worked = work(proxy, sends);
    pthread_mutex_unlock(&proxy->lock);
    rg_store_relaxed(&proxy->driven_ns, rg_clock_ns());
    return worked;
}

static int drive(void *arg, enum rg_drive why)
{
    struct rg_proxy *proxy = arg;
    const int waits = why != RG_DRIVE_DONE;
    const uint64_t alone = rg_load_relaxed(&proxy->alone);
    const int gives =
        why == RG_DRIVE_TIRED || (why == RG_DRIVE_CROWDED && alone);
    const int worked = drive_once(proxy, waits, gives);

    if (worked < 0 || !gives)
        return 0;
    if (worked == WORKED)
        return 1;
    /* To wake up takes longer than others' turns do; and the answer to what has
     * just been sent takes a turn of theirs. */
    if (why == RG_DRIVE_CROWDED)
        sched_yield();
    else if (worked == IDLE && let_others(proxy, alone))
        drive_once(proxy, waits, 0);
    return 1;
}

/* ---- the thread --------------------------------------------------------- */

static int is_driven(const struct rg_proxy *proxy)
{
    return rg_clock_ns() - rg_load_relaxed(&proxy->driven_ns) <
           (uint64_t)LOOK_MS * NS_PER_MS;
}

static void drain(int fd)
{
    uint64_t count;

    /* Non-blocking: there may be nothing in it. */
    if (read(fd, &count, sizeof count) < 0)
        return;
}

/* Sleeps until it is woken, for a time, or until the network has something. */
static void sleep_on(struct rg_proxy *proxy, int network, int timeout_ms)
{
    struct pollfd fds[2] = {
        {.fd = proxy->wake_fd, .events = POLLIN},
        {.fd = network ? rg_engine_fd(proxy->engine) : -1, .events = POLLIN}};

    if (poll(fds, 2, timeout_ms) > 0 && fds[0].revents)
        drain(proxy->wake_fd);
}

/* After a round without work; `since` is when there was some. */
static void pause_thread(struct rg_proxy *proxy, int force, uint64_t open,
                         uint64_t since)
{
    if (!force)
        sleep_on(proxy, 1, open ? LOOK_MS : -1);
    else if (proxy->config.drives)
        sleep_on(proxy, !is_driven(proxy), LOOK_MS);
    else if (rg_clock_ns() - since < SPIN_NS)
        sched_yield();
    else
        rg_clock_sleep_ns(NAP_NS);
}

static void *worker_main(void *arg)
{
    struct rg_proxy *proxy = arg;
    uint64_t since = rg_clock_ns(), open;
    int force, busy;

    rg_thread_name("proxy");
    pthread_mutex_lock(&proxy->lock);
    while (!proxy->stop) {
        busy = !is_driven(proxy) && work(proxy, 0) != IDLE;
        force = proxy->force;
        open = proxy->open;
        pthread_mutex_unlock(&proxy->lock);
        if (busy)
            since = rg_clock_ns();
        else
            pause_thread(proxy, force, open, since);
        pthread_mutex_lock(&proxy->lock);
    }
    pthread_mutex_unlock(&proxy->lock);
    return NULL;
}

static void wake(struct rg_proxy *proxy)
{
    const uint64_t one = 1;

    if (write(proxy->wake_fd, &one, sizeof one) < 0)
        rg_log(RG_LOG_ERROR, proxy->config.engine.rank,
               "cannot wake the proxy's thread: %m");
}

/* ---- life --------------------------------------------------------------- */

static int start_thread(struct rg_proxy *proxy)
{
    if (pthread_create(&proxy->thread, NULL, worker_main, proxy)) {
        rg_log(RG_LOG_ERROR, proxy->config.engine.rank,
               "no thread for the host proxy");
        return RG_ESYSTEM;
    }
    proxy->thread_made = 1;
    /* Only for speed: it works wherever it runs. */
    if (proxy->config.cpus &&
        pthread_setaffinity_np(proxy->thread, sizeof *proxy->config.cpus,
                               proxy->config.cpus))
        rg_log(RG_LOG_INFO, proxy->config.engine.rank,
               "the host proxy's thread is not bound near the device");
    return RG_OK;
}

static int make_parts(struct rg_proxy *proxy)
{
    const struct rg_engine_config *config = &proxy->config.engine;

    proxy->next = calloc(proxy->config.fifo->lanes, sizeof *proxy->next);
    proxy->notes = calloc((size_t)config->size, sizeof *proxy->notes);
    if (!proxy->next || !proxy->notes || pthread_mutex_init(&proxy->lock, NULL))
        return RG_ENOMEM;
    proxy->lock_made = 1;
    for (int i = 0; i < config->size; i++)
        proxy->notes[i].status = RG_EPENDING;
    proxy->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (proxy->wake_fd >= 0)
        return rg_engine_create(config, &proxy->engine);
    rg_log(RG_LOG_ERROR, config->rank, "no descriptor for the host proxy: %m");
    return RG_ESYSTEM;
}

int rg_proxy_create(const struct rg_proxy_config *config,
                    struct rg_proxy **proxy_out)
{
    struct rg_proxy *proxy = calloc(1, sizeof *proxy);
    int status;

    if (!proxy)
        return RG_ENOMEM;
    proxy->config = *config;
    proxy->config.engine.lazy = 1;
    proxy->wake_fd = -1;
    status = make_parts(proxy);
    if (status == RG_OK)
        status = start_thread(proxy);
    if (status) {
        rg_proxy_destroy(proxy);
        return status;
    }
    /* These belonged to the caller. */
    proxy->config.cpus = NULL;
    proxy->config.engine.host_id = proxy->config.engine.address = NULL;
    config->fifo->drive_arg = proxy;
    config->fifo->drive = config->drives ? drive : NULL;
    *proxy_out = proxy;
    return RG_OK;
}

void rg_proxy_destroy(struct rg_proxy *proxy)
{
    if (!proxy)
        return;
    if (proxy->thread_made) {
        pthread_mutex_lock(&proxy->lock);
        proxy->stop = 1;
        pthread_mutex_unlock(&proxy->lock);
        wake(proxy);
        pthread_join(proxy->thread, NULL);
    }
    rg_engine_destroy(proxy->engine);
    if (proxy->wake_fd >= 0)
        close(proxy->wake_fd);
    if (proxy->lock_made)
        pthread_mutex_destroy(&proxy->lock);
    free(proxy->next);
    free(proxy->notes);
    free(proxy);
}

void *rg_proxy_memory(const struct rg_proxy *proxy)
{
    return rg_engine_memory(proxy->engine);
}

void rg_proxy_card(const struct rg_proxy *proxy,
                   struct rg_engine_card *card_out)
{
    rg_engine_get_card(proxy->engine, card_out);
}

/* ---- views -------------------------------------------------------------- */

/* Under the lock. */
static void call_off(struct rg_proxy *proxy)
{
    rg_engine_cancel(proxy->engine);
    while (proxy->open)
        poll_engine(proxy);
}

static void empty_fifos(struct rg_proxy *proxy)
{
    struct rg_proxy_fifo *fifo = proxy->config.fifo;

    memset(fifo->lane, 0, fifo->lanes * sizeof *fifo->lane);
    memset(proxy->next, 0, fifo->lanes * sizeof *proxy->next);
}

void rg_proxy_enter(struct rg_proxy *proxy, uint64_t epoch,
                    const struct rg_bitset *members)
{
    const struct rg_engine_config *config = &proxy->config.engine;

    pthread_mutex_lock(&proxy->lock);
    proxy->force = 0;
    call_off(proxy);
    empty_fifos(proxy);
    for (int rank = 0; rank < config->size; rank++)
        if (!rg_bitset_test(members, rank))
            rg_engine_fail(proxy->engine, rank);
    proxy->epoch = epoch;
    rg_engine_advance(proxy->engine, epoch);
    pthread_mutex_unlock(&proxy->lock);
    wake(proxy);
}

void rg_proxy_force(struct rg_proxy *proxy, int alone)
{
    rg_store_relaxed(&proxy->alone, (uint64_t)alone);
    pthread_mutex_lock(&proxy->lock);
    proxy->force = 1;
    pthread_mutex_unlock(&proxy->lock);
    wake(proxy);
}

/* ---- peers -------------------------------------------------------------- */

int rg_proxy_connect(struct rg_proxy *proxy, int rank,
                     const struct rg_engine_card *card)
{
    int status;

    pthread_mutex_lock(&proxy->lock);
    status = rg_engine_connect(proxy->engine, rank, card);
    pthread_mutex_unlock(&proxy->lock);
    return status;
}

int rg_proxy_status(struct rg_proxy *proxy, int rank)
{
    int status;

    pthread_mutex_lock(&proxy->lock);
    status = rg_engine_status(proxy->engine, rank);
    pthread_mutex_unlock(&proxy->lock);
    return status;
}

/* Under the lock. */
static void send_note(struct rg_proxy *proxy, int rank, uint64_t offset,
                      const void *data, uint64_t bytes)
{
    struct note *note = &proxy->notes[rank];
    const struct rg_engine_command command = {
        .peer = rank,
        .generation = proxy->epoch,
        .offset = offset,
        .source = note->data,
        .bytes = bytes,
        .signal = RG_ENGINE_NO_SIGNAL,
        .deadline_ns = rg_clock_after_ms(proxy->config.deadline_ms),
        .cookie = (uint64_t)rank};

    memcpy(note->data, data, bytes);
    note->under_way = 1;
    submit(proxy, &command);
}

int rg_proxy_note(struct rg_proxy *proxy, int rank, uint64_t offset,
                  const void *data, uint64_t bytes)
{
    struct note *note = &proxy->notes[rank];
    int status;

    if (bytes > RG_PROXY_NOTE_BYTES)
        return RG_EINVAL;
    pthread_mutex_lock(&proxy->lock);
    work(proxy, 0);
    status = note->status;
    if (status != RG_EPENDING)
        note->status = RG_EPENDING;
    else if (!note->under_way)
        send_note(proxy, rank, offset, data, bytes);
    pthread_mutex_unlock(&proxy->lock);
    return status;
}

void rg_proxy_read(struct rg_proxy *proxy, uint64_t offset, void *data_out,
                   uint64_t bytes)
{
    /* Under the lock: the engine writes in a round. */
    pthread_mutex_lock(&proxy->lock);
    work(proxy, 0);
    memcpy(data_out, (unsigned char *)rg_engine_memory(proxy->engine) + offset,
           bytes);
    pthread_mutex_unlock(&proxy->lock);
}

uint64_t rg_proxy_failures(struct rg_proxy *proxy)
{
    uint64_t failed;

    pthread_mutex_lock(&proxy->lock);
    failed = proxy->failed;
    pthread_mutex_unlock(&proxy->lock);
    return failed;
}

void rg_proxy_get_traffic(struct rg_proxy *proxy, int rank,
                          struct rg_engine_traffic *traffic_out)
{
    pthread_mutex_lock(&proxy->lock);
    rg_engine_get_traffic(proxy->engine, rank, traffic_out);
    pthread_mutex_unlock(&proxy->lock);
}
