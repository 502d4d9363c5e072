#include "runtime/engine/tcp/tcp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

enum {
    EVENTS = 64,
    NS_PER_MS = 1000000,
    EXPIRE_NS = 200000, /* deadlines are looked at so often */
    TELL_NS = 1000000,  /* and what is not in a hurry told */
    SILENCE_MS = 30000
};

/* ---- connections -------------------------------------------------------- */

struct rg_tcp_conn *rg_tcp_add(struct rg_tcp *tcp, int fd)
{
    struct rg_tcp_conn *conn = calloc(1, sizeof(*conn));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};

    if (!conn || epoll_ctl(tcp->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
        rg_log(RG_LOG_ERROR, tcp->engine->config.rank,
               "engine cannot watch one more connection: %m");
        free(conn);
        close(fd);
        return NULL;
    }
    conn->fd = fd;
    conn->peer = -1;
    conn->events = EPOLLIN;
    conn->born_ns = rg_clock_ns();
    conn->next = tcp->conns;
    tcp->conns = conn;
    return conn;
}

static uint32_t wanted_events(const struct rg_tcp *tcp,
                              const struct rg_tcp_conn *conn)
{
    if (conn->stage == RG_TCP_CONNECTING)
        return EPOLLOUT;
    if (conn->stage != RG_TCP_UP)
        return EPOLLIN;
    /* At the door only the end of the connection is of interest. */
    return (rg_tcp_is_held(tcp, conn) ? EPOLLRDHUP : EPOLLIN) |
           (conn->blocked ? EPOLLOUT : 0);
}

void rg_tcp_watch(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct epoll_event event = {.data.ptr = conn};

    if (conn->stage == RG_TCP_DEAD)
        return;
    event.events = wanted_events(tcp, conn);
    if (event.events == conn->events)
        return;
    if (epoll_ctl(tcp->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event))
        rg_log(RG_LOG_ERROR, tcp->engine->config.rank,
               "engine cannot watch rank %d: %m", conn->peer);
    conn->events = event.events;
}

/* Ends it without a word to its link. Freed by the poll, which may hold it. */
static void retire(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    if (conn->stage == RG_TCP_DEAD)
        return;
    conn->stage = RG_TCP_DEAD;
    /* Closing is not enough where a fork holds the socket too. */
    epoll_ctl(tcp->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
    close(conn->fd);
    conn->fd = -1;
}

static void free_conn(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    retire(tcp, conn);
    free(conn->refusals);
    free(conn);
}

static void free_dead(struct rg_tcp *tcp)
{
    struct rg_tcp_conn **at = &tcp->conns;

    while (*at) {
        struct rg_tcp_conn *conn = *at;

        if (conn->stage != RG_TCP_DEAD) {
            at = &conn->next;
            continue;
        }
        *at = conn->next;
        free_conn(tcp, conn);
    }
}

/* ---- links -------------------------------------------------------------- */

static void end_commands(struct rg_tcp *tcp, struct rg_tcp_link *link,
                         int status)
{
    rg_engine_complete_all(tcp->engine, &link->sent, status);
    rg_engine_complete_all(tcp->engine, &link->queue, status);
}

/* Whether the end of this connection leaves its link without any. */
static int was_last(const struct rg_tcp *tcp, struct rg_tcp_link *link,
                    const struct rg_tcp_conn *conn, enum rg_tcp_stage stage)
{
    if (link->conn == conn) {
        link->conn = NULL;
        return 1;
    }
    if (link->attempt == conn) {
        link->attempt = NULL;
        /* Turned down after TCP had connected: the lower rank's own attempt
         * is on its way here. */
        return stage == RG_TCP_CONNECTING ||
               tcp->engine->config.rank < conn->peer;
    }
    return stage == RG_TCP_WELCOMED && !link->conn && !link->attempt;
}

void rg_tcp_lose(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    const enum rg_tcp_stage stage = conn->stage;
    struct rg_tcp_link *link;

    retire(tcp, conn);
    if (conn->peer < 0)
        return;
    link = &tcp->links[conn->peer];
    if (!was_last(tcp, link, conn, stage))
        return;
    link->lost = 1;
    end_commands(tcp, link, RG_EFAILED);
}

void rg_tcp_give_up(struct rg_tcp *tcp, int peer)
{
    retire(tcp, tcp->links[peer].attempt);
    tcp->links[peer].attempt = NULL;
}

void rg_tcp_adopt(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_link *link = &tcp->links[conn->peer];

    if (link->attempt && link->attempt != conn)
        retire(tcp, link->attempt);
    if (link->conn && link->conn != conn)
        retire(tcp, link->conn);
    /* Nobody will ever tell whether these arrived. */
    rg_engine_complete_all(tcp->engine, &link->sent, RG_EFAILED);
    link->attempt = NULL;
    link->conn = conn;
    link->lost = 0;
    conn->stage = RG_TCP_UP;
    rg_tcp_write(tcp, conn);
}

/* ---- the table of calls ------------------------------------------------- */

static void tcp_fini(void *state)
{
    struct rg_tcp *tcp = state;

    while (tcp->conns) {
        struct rg_tcp_conn *conn = tcp->conns;

        tcp->conns = conn->next;
        free_conn(tcp, conn);
    }
    for (int i = 0; tcp->links && i < tcp->engine->config.size; i++)
        end_commands(tcp, &tcp->links[i], RG_EABORTED);
    if (tcp->listen_fd >= 0)
        close(tcp->listen_fd);
    if (tcp->epoll_fd >= 0)
        close(tcp->epoll_fd);
    free(tcp->links);
    free(tcp->dirty);
    free(tcp);
}

static int open_sockets(struct rg_tcp *tcp)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    int rc = rg_tcp_listen(tcp);

    if (rc)
        return rc;
    tcp->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (tcp->epoll_fd < 0 ||
        epoll_ctl(tcp->epoll_fd, EPOLL_CTL_ADD, tcp->listen_fd, &event)) {
        rg_log(RG_LOG_ERROR, tcp->engine->config.rank,
               "engine cannot watch its socket: %m");
        return RG_ESYSTEM;
    }
    return RG_OK;
}

static int tcp_init(struct rg_engine *engine, void **state_out)
{
    struct rg_tcp *tcp = calloc(1, sizeof(*tcp));
    int rc = RG_ENOMEM;

    if (!tcp)
        return RG_ENOMEM;
    tcp->engine = engine;
    tcp->listen_fd = tcp->epoll_fd = -1;
    tcp->silence_ms =
        engine->config.silence_ms ? engine->config.silence_ms : SILENCE_MS;
    tcp->links = calloc((size_t)engine->config.size, sizeof(*tcp->links));
    tcp->dirty = calloc((size_t)engine->config.size, sizeof(*tcp->dirty));
    if (tcp->links && tcp->dirty)
        rc = open_sockets(tcp);
    if (rc)
        goto error;
    *state_out = tcp;
    return RG_OK;
error:
    tcp_fini(tcp);
    return rc;
}

/* A connection that came before its card. */
static void admit_proven(struct rg_tcp *tcp)
{
    for (struct rg_tcp_conn *conn = tcp->conns; conn; conn = conn->next)
        if (conn->stage == RG_TCP_PROVEN)
            rg_tcp_admit(tcp, conn);
}

/* The peer's own connection is about to start. */
static int is_welcomed(const struct rg_tcp *tcp, int peer)
{
    const struct rg_tcp_conn *conn = tcp->conns;

    while (conn && (conn->stage != RG_TCP_WELCOMED || conn->peer != peer))
        conn = conn->next;
    return conn != NULL;
}

static int tcp_connect(void *state, int peer,
                       const struct rg_engine_card_data *card)
{
    struct rg_tcp *tcp = state;
    struct rg_tcp_link *link = &tcp->links[peer];
    const int again = link->lost;

    if (!card->port)
        return RG_ENOTSUP;
    link->expected = 1;
    link->lost = 0;
    if (link->conn || link->attempt || is_welcomed(tcp, peer))
        return RG_OK;
    if (tcp->engine->config.rank > peer && !again)
        return RG_OK;
    link->attempt = rg_tcp_start(tcp, peer, card);
    if (link->attempt)
        return RG_OK;
    link->lost = 1;
    return RG_ESYSTEM;
}

static int tcp_status(const void *state, int peer)
{
    const struct rg_tcp_link *link =
        &((const struct rg_tcp *)state)->links[peer];

    return link->expected && !link->lost ? RG_OK : RG_EFAILED;
}

static void tcp_submit(void *state, struct rg_engine_node *node)
{
    struct rg_tcp *tcp = state;
    struct rg_tcp_link *link = &tcp->links[node->command.peer];

    if (!link->expected || link->lost) {
        rg_engine_complete(tcp->engine, node, RG_EFAILED);
        return;
    }
    rg_engine_push(&link->queue, node);
    if (link->dirty)
        return;
    link->dirty = 1;
    tcp->dirty[tcp->dirty_count++] = node->command.peer;
}

/* What has been queued since the last poll goes out together. */
static void tcp_flush(void *state)
{
    struct rg_tcp *tcp = state;

    for (int i = 0; i < tcp->dirty_count; i++) {
        struct rg_tcp_link *link = &tcp->links[tcp->dirty[i]];

        link->dirty = 0;
        if (link->conn && !link->conn->blocked)
            rg_tcp_write(tcp, link->conn);
    }
    tcp->dirty_count = 0;
}

static void tcp_fail(void *state, int peer, int status)
{
    struct rg_tcp *tcp = state;
    struct rg_tcp_link *link = &tcp->links[peer];
    int dirty;

    end_commands(tcp, link, status);
    if (link->conn)
        retire(tcp, link->conn);
    if (link->attempt)
        retire(tcp, link->attempt);
    dirty = link->dirty;
    memset(link, 0, sizeof(*link));
    link->dirty = dirty; /* it is in the list */
    /* The other side may think that all is well and not connect again. */
    link->lost = 1;
}

static void tcp_cancel(void *state)
{
    struct rg_tcp *tcp = state;

    for (int i = 0; i < tcp->engine->config.size; i++) {
        end_commands(tcp, &tcp->links[i], RG_EABORTED);
        rg_tcp_detach(&tcp->links[i]);
    }
}

static void expire(struct rg_tcp *tcp, uint64_t now)
{
    for (int i = 0; i < tcp->engine->config.size; i++) {
        struct rg_tcp_link *link = &tcp->links[i];

        if (!link->queue.first && !link->sent.first)
            continue;
        rg_engine_expire(tcp->engine, &link->queue, now);
        rg_engine_expire(tcp->engine, &link->sent, now);
        rg_tcp_detach(link);
    }
    for (struct rg_tcp_conn *conn = tcp->conns; conn; conn = conn->next)
        if (conn->stage < RG_TCP_PROVEN && now > conn->born_ns &&
            now - conn->born_ns > tcp->silence_ms * NS_PER_MS)
            rg_tcp_lose(tcp, conn);
}

static void serve(struct rg_tcp *tcp, struct rg_tcp_conn *conn, uint32_t events)
{
    if (conn->stage == RG_TCP_DEAD)
        return;
    if (conn->stage != RG_TCP_UP) {
        rg_tcp_shake(tcp, conn);
        return;
    }
    if (rg_tcp_is_held(tcp, conn) &&
        events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
        rg_tcp_lose(tcp, conn);
        return;
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        rg_tcp_read(tcp, conn);
    if (events & EPOLLOUT && conn->stage == RG_TCP_UP)
        rg_tcp_write(tcp, conn);
}

/* What lazy ends have not told with anything else. */
static void acknowledge(struct rg_tcp *tcp, uint64_t now)
{
    if (!tcp->engine->config.lazy || now - tcp->told_ns < TELL_NS)
        return;
    tcp->told_ns = now;
    for (struct rg_tcp_conn *conn = tcp->conns; conn; conn = conn->next) {
        /* Since the last time something has gone there, with all of it then. */
        if (conn->stage == RG_TCP_UP && conn->in.acked == conn->in.acked_then)
            rg_tcp_acknowledge(tcp, conn);
        conn->in.acked_then = conn->in.acked;
    }
}

static void tcp_poll(void *state, uint64_t now)
{
    struct rg_tcp *tcp = state;
    struct epoll_event events[EVENTS];
    int count;

    tcp_flush(tcp);
    count = epoll_wait(tcp->epoll_fd, events, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr)
            serve(tcp, events[i].data.ptr, events[i].events);
        else
            rg_tcp_accept(tcp);
    }
    /* After the reading: a process that slept finds its answers first. */
    if (now - tcp->expired_ns >= EXPIRE_NS) {
        tcp->expired_ns = now;
        admit_proven(tcp);
        acknowledge(tcp, now);
        expire(tcp, now);
        free_dead(tcp);
    }
}

static void tcp_advance(void *state)
{
    struct rg_tcp *tcp = state;

    for (int i = 0; i < tcp->engine->config.size; i++)
        if (tcp->links[i].conn)
            rg_tcp_read(tcp, tcp->links[i].conn);
}

static int tcp_fd(const void *state)
{
    return ((const struct rg_tcp *)state)->epoll_fd;
}

const struct rg_engine_ops rg_engine_tcp = {
    .name = "tcp",
    .init = tcp_init,
    .connect = tcp_connect,
    .submit = tcp_submit,
    .flush = tcp_flush,
    .poll = tcp_poll,
    .fail = tcp_fail,
    .cancel = tcp_cancel,
    .status = tcp_status,
    .advance = tcp_advance,
    .fd = tcp_fd,
    .fini = tcp_fini,
};
