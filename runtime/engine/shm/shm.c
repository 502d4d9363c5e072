/*
 * The shm provider: peers of one host map each other's region. A command is a
 * copy and a release store (or add) by the submitting thread; the target takes
 * no part, so nothing here waits for a peer.
 *
 * The descriptor of a peer's region is opened as /proc/<pid>/fd/<number>, which
 * the kernel grants to processes of the same user; the token in the region's
 * header proves that it is the right one. Where it cannot be opened another
 * provider is taken. A mapping outlives its owner: writing to a dead peer's
 * region harms nobody; its pidfd tells within LOOK_NS of polling that it died.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/device/word.h"
#include "runtime/engine/provider.h"
#include "runtime/status.h"

enum { LOOK_NS = 1000000 };

struct shm_peer {
    struct rg_engine_header *header; /* null: not mapped */
    unsigned char *base;
    uint64_t bytes;
    int pid_fd; /* -1: own process, or it cannot be watched */
    int lost;
    /* Of a generation that the target has not entered yet. */
    struct rg_engine_queue waiting;
};

struct shm {
    struct rg_engine *engine; /* borrowed */
    struct shm_peer *peers;   /* [size] */
    uint64_t looked_ns;
};

static void unmap(struct shm_peer *peer)
{
    if (peer->header)
        munmap(peer->header, RG_ENGINE_HEADER_BYTES + peer->bytes);
    if (peer->header && peer->pid_fd >= 0)
        close(peer->pid_fd);
    memset(peer, 0, sizeof(*peer));
    peer->pid_fd = -1;
}

static void shm_fini(void *state)
{
    struct shm *shm = state;

    for (int i = 0; shm->peers && i < shm->engine->config.size; i++) {
        struct rg_engine_node *node;

        while ((node = rg_engine_pop(&shm->peers[i].waiting)))
            free(node);
        unmap(&shm->peers[i]);
    }
    free(shm->peers);
    free(shm);
}

static int shm_init(struct rg_engine *engine, void **state_out)
{
    struct shm *shm;

    if (engine->memory_fd < 0 && engine->providers == 1) {
        rg_log(RG_LOG_ERROR, engine->config.rank,
               "RG_ENGINE=shm needs a region that the engine makes");
        return RG_ENOTSUP;
    }
    shm = calloc(1, sizeof(*shm));
    if (!shm)
        return RG_ENOMEM;
    shm->engine = engine;
    shm->peers = calloc((size_t)engine->config.size, sizeof(*shm->peers));
    if (!shm->peers) {
        shm_fini(shm);
        return RG_ENOMEM;
    }
    for (int i = 0; i < engine->config.size; i++)
        shm->peers[i].pid_fd = -1;
    engine->card.pid = getpid();
    engine->card.fd = engine->memory_fd;
    *state_out = shm;
    return RG_OK;
}

/* ---- connecting --------------------------------------------------------- */

static int same_host(const struct rg_engine_card_data *own,
                     const struct rg_engine_card_data *card)
{
    return own->host && own->fd >= 0 && card->fd >= 0 &&
           own->host == card->host;
}

/* Maps the card's descriptor if it is what the card says; else null. */
static struct rg_engine_header *
map_region(const struct rg_engine_card_data *card)
{
    const uint64_t bytes = RG_ENGINE_HEADER_BYTES + card->bytes;
    struct rg_engine_header *header = MAP_FAILED;
    struct stat status;
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)card->pid,
             (int)card->fd);
    /* In another pid namespace it may be anything: open it without effect. */
    fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    /* Touching a mapping beyond the file's end would be fatal. */
    if (!fstat(fd, &status) && S_ISREG(status.st_mode) &&
        (uint64_t)status.st_size == bytes)
        header = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (header == MAP_FAILED)
        return NULL;
    if (header->token == card->token)
        return header;
    munmap(header, bytes);
    return NULL;
}

static int shm_connect(void *state, int rank,
                       const struct rg_engine_card_data *card)
{
    struct shm *shm = state;
    struct shm_peer *peer = &shm->peers[rank];
    struct rg_engine_header *header;
    int pid_fd = -1;

    if (!same_host(&shm->engine->card, card))
        return RG_ENOTSUP;
    /* Opened before the region: a region that answers to its token then
     * belongs to the process that is watched, not to a successor of its pid. */
    if (card->pid != getpid())
        pid_fd = (int)syscall(SYS_pidfd_open, card->pid, 0);
    header = map_region(card);
    if (!header) {
        rg_log(RG_LOG_INFO, shm->engine->config.rank,
               "rank %d of this host cannot be mapped", rank);
        if (pid_fd >= 0)
            close(pid_fd);
        return RG_ENOTSUP;
    }
    unmap(peer);
    peer->header = header;
    peer->base = (unsigned char *)header + RG_ENGINE_HEADER_BYTES;
    peer->bytes = card->bytes;
    peer->pid_fd = pid_fd;
    return RG_OK;
}

static int shm_status(const void *state, int rank)
{
    const struct shm_peer *peer = &((const struct shm *)state)->peers[rank];

    return peer->header && !peer->lost ? RG_OK : RG_EFAILED;
}

static void shm_fail(void *state, int rank, int status)
{
    struct shm *shm = state;

    rg_engine_complete_all(shm->engine, &shm->peers[rank].waiting, status);
    unmap(&shm->peers[rank]);
}

/* ---- commands ----------------------------------------------------------- */

/* RG_EPENDING: the target is not there yet. */
static int execute(struct shm_peer *peer, const struct rg_engine_command *to)
{
    const uint64_t generation = rg_load_acquire(&peer->header->generation);
    int rc;

    if (to->generation > generation)
        return RG_EPENDING;
    if (to->generation < generation)
        return RG_EABORTED;
    rc = rg_engine_check(peer->bytes, to->offset, to->bytes, to->signal);
    if (rc)
        return rc;
    if (to->bytes)
        memcpy(peer->base + to->offset, to->source, to->bytes);
    rg_engine_signal(peer->base, to->signal, to->op, to->value);
    return RG_OK;
}

static void count(struct rg_engine_traffic *traffic,
                  const struct rg_engine_command *command)
{
    traffic->payload += command->bytes;
    traffic->sent += command->bytes;
    if (command->signal != RG_ENGINE_NO_SIGNAL)
        traffic->sent += sizeof(uint64_t);
}

/* In order: none overtakes one that waits. */
static void run_waiting(struct shm *shm, struct shm_peer *peer)
{
    while (peer->waiting.first) {
        const struct rg_engine_command *command = &peer->waiting.first->command;
        const int rc = execute(peer, command);

        if (rc == RG_EPENDING)
            return;
        if (rc == RG_OK)
            count(&shm->engine->traffic[command->peer], command);
        rg_engine_complete(shm->engine, rg_engine_pop(&peer->waiting), rc);
    }
}

static void shm_submit(void *state, struct rg_engine_node *node)
{
    struct shm *shm = state;
    struct shm_peer *peer = &shm->peers[node->command.peer];

    if (!peer->header || peer->lost) {
        rg_engine_complete(shm->engine, node, RG_EFAILED);
        return;
    }
    rg_engine_push(&peer->waiting, node);
    run_waiting(shm, peer);
}

static void look_alive(struct shm *shm, struct shm_peer *peer)
{
    struct pollfd poller = {.fd = peer->pid_fd, .events = POLLIN};

    if (peer->pid_fd < 0 || peer->lost || poll(&poller, 1, 0) <= 0)
        return;
    peer->lost = 1;
    rg_engine_complete_all(shm->engine, &peer->waiting, RG_EFAILED);
}

static void shm_poll(void *state, uint64_t now)
{
    struct shm *shm = state;
    const int look = now - shm->looked_ns >= LOOK_NS;

    if (look)
        shm->looked_ns = now;
    for (int i = 0; i < shm->engine->config.size; i++) {
        struct shm_peer *peer = &shm->peers[i];

        if (!peer->header)
            continue;
        run_waiting(shm, peer);
        rg_engine_expire(shm->engine, &peer->waiting, now);
        if (look)
            look_alive(shm, peer);
    }
}

static void shm_cancel(void *state)
{
    struct shm *shm = state;

    for (int i = 0; i < shm->engine->config.size; i++)
        rg_engine_complete_all(shm->engine, &shm->peers[i].waiting,
                               RG_EABORTED);
}

const struct rg_engine_ops rg_engine_shm = {
    .name = "shm",
    .init = shm_init,
    .connect = shm_connect,
    .submit = shm_submit,
    .poll = shm_poll,
    .fail = shm_fail,
    .cancel = shm_cancel,
    .status = shm_status,
    .fini = shm_fini,
};
