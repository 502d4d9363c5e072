#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/core/socket.h"
#include "runtime/engine/tcp/tcp.h"
#include "runtime/status.h"

enum {
    SOCKET_TYPE = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
    KEEP_IDLE_S = 1,
    BACKLOG = 1024
};

union name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* The length; 0: not a numeric address. */
static socklen_t make_name(const char *address, uint32_t port, union name *name)
{
    memset(name, 0, sizeof(*name));
    if (inet_pton(AF_INET, address, &name->v4.sin_addr) == 1) {
        name->v4.sin_family = AF_INET;
        name->v4.sin_port = htons((uint16_t)port);
        return sizeof(name->v4);
    }
    if (inet_pton(AF_INET6, address, &name->v6.sin6_addr) != 1)
        return 0;
    name->v6.sin6_family = AF_INET6;
    name->v6.sin6_port = htons((uint16_t)port);
    return sizeof(name->v6);
}

int rg_tcp_listen(struct rg_tcp *tcp)
{
    struct rg_engine_card_data *card = &tcp->engine->card;
    union name name;
    socklen_t length = make_name(card->address, 0, &name);
    int fd = -1;

    errno = EINVAL;
    if (length)
        fd = socket(name.any.sa_family, SOCKET_TYPE, 0);
    if (fd < 0 || bind(fd, &name.any, length) || listen(fd, BACKLOG) ||
        getsockname(fd, &name.any, &length)) {
        rg_log(RG_LOG_ERROR, card->rank, "engine cannot listen on %s: %m",
               card->address);
        if (fd >= 0)
            close(fd);
        return RG_ESYSTEM;
    }
    card->port = ntohs(name.any.sa_family == AF_INET ? name.v4.sin_port
                                                     : name.v6.sin6_port);
    tcp->listen_fd = fd;
    return RG_OK;
}

/*
 * A host that has gone is noticed after silence_ms, idle or not; the kernel
 * answers for a process that does not poll.
 */
static void set_options(const struct rg_tcp *tcp, int fd)
{
    const int on = 1, idle = KEEP_IDLE_S;
    const unsigned silence = (unsigned)tcp->silence_ms;

    rg_socket_set_prompt(fd);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof(silence));
}

struct rg_tcp_conn *rg_tcp_start(struct rg_tcp *tcp, int peer,
                                 const struct rg_engine_card_data *card)
{
    const int rank = tcp->engine->config.rank;
    struct rg_tcp_conn *conn;
    union name name;
    const socklen_t length = make_name(card->address, card->port, &name);
    int fd = -1;

    errno = EINVAL;
    if (length)
        fd = socket(name.any.sa_family, SOCKET_TYPE, 0);
    if (fd >= 0)
        set_options(tcp, fd);
    if (fd < 0 || (connect(fd, &name.any, length) && errno != EINPROGRESS)) {
        rg_log(RG_LOG_WARN, rank, "engine cannot connect to rank %d at %s: %m",
               peer, card->address);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    conn = rg_tcp_add(tcp, fd);
    if (!conn)
        return NULL;
    conn->peer = peer;
    conn->outgoing = 1;
    conn->token = card->token;
    rg_tcp_watch(tcp, conn);
    return conn;
}

void rg_tcp_accept(struct rg_tcp *tcp)
{
    int fd = accept4(tcp->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct rg_tcp_conn *conn;

    if (fd < 0)
        return;
    set_options(tcp, fd);
    conn = rg_tcp_add(tcp, fd);
    if (conn)
        conn->stage = RG_TCP_WANT_HELLO;
}

/* ---- messages ----------------------------------------------------------- */

/* RG_EPENDING: not all of it is there; RG_ECLOSED: it will not come. */
static int receive(struct rg_tcp_conn *conn, struct rg_tcp_hello *message_out)
{
    ssize_t n = recv(conn->fd, conn->in.buffer + conn->hello_bytes,
                     sizeof(*message_out) - conn->hello_bytes, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return RG_EPENDING;
    if (n <= 0)
        return RG_ECLOSED;
    conn->hello_bytes += (size_t)n;
    if (conn->hello_bytes < sizeof(*message_out))
        return RG_EPENDING;
    conn->hello_bytes = 0;
    memcpy(message_out, conn->in.buffer, sizeof(*message_out));
    if (message_out->magic != RG_ENGINE_MAGIC ||
        message_out->stage != (uint32_t)conn->stage)
        return RG_EPROTO;
    return RG_OK;
}

/* A handshake fits any socket's empty buffer: less is an error. */
static int send_message(struct rg_tcp_conn *conn,
                        const struct rg_tcp_hello *message)
{
    const ssize_t n = send(conn->fd, message, sizeof(*message), MSG_NOSIGNAL);

    return n == (ssize_t)sizeof(*message) ? RG_OK : RG_ECLOSED;
}

/* The connector's message to an acceptor in that stage, or the reverse. */
static void init_message(const struct rg_tcp *tcp,
                         const struct rg_tcp_conn *conn,
                         enum rg_tcp_stage stage, struct rg_tcp_hello *message)
{
    const int own = tcp->engine->config.rank;

    memset(message, 0, sizeof(*message));
    message->magic = RG_ENGINE_MAGIC;
    message->stage = (uint32_t)stage;
    message->from = conn->outgoing ? own : conn->peer;
    message->to = conn->outgoing ? conn->peer : own;
    message->token = tcp->engine->card.token;
}

/* What either side proves: the role keeps a proof from being reflected. */
static void prove(const struct rg_tcp *tcp, const struct rg_tcp_conn *conn,
                  char role, unsigned char hash[RG_KEYED_BYTES])
{
    struct {
        uint64_t role;
        int32_t from, to;
        uint64_t tokens[2];
        unsigned char nonces[2][RG_TCP_NONCE_BYTES];
    } text = {.role = (uint64_t)role,
              .from = conn->hello.from,
              .to = conn->hello.to,
              .tokens = {conn->hello.token, conn->challenge.token}};

    memcpy(text.nonces[0], conn->hello.nonce, RG_TCP_NONCE_BYTES);
    memcpy(text.nonces[1], conn->challenge.nonce, RG_TCP_NONCE_BYTES);
    rg_keyed_hash(tcp->engine->config.secret, &text, sizeof(text), hash);
}

static int make_nonce(struct rg_tcp_hello *message)
{
    return getrandom(message->nonce, sizeof(message->nonce), 0) ==
                   sizeof(message->nonce)
               ? RG_OK
               : RG_ESYSTEM;
}

/* ---- the connector's side ----------------------------------------------- */

static int say_hello(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    socklen_t length = sizeof(int);
    int error = 0, rc;

    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &length) || error) {
        errno = error;
        rg_log(RG_LOG_INFO, tcp->engine->config.rank,
               "engine cannot connect to rank %d: %m", conn->peer);
        return RG_EFAILED;
    }
    init_message(tcp, conn, RG_TCP_WANT_HELLO, &conn->hello);
    rc = make_nonce(&conn->hello);
    conn->stage = RG_TCP_WANT_CHALLENGE;
    return rc ? rc : send_message(conn, &conn->hello);
}

static int answer_challenge(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    unsigned char expected[RG_KEYED_BYTES];
    struct rg_tcp_hello proof;
    int rc = receive(conn, &conn->challenge);

    if (rc)
        return rc;
    prove(tcp, conn, 'a', expected);
    if (conn->challenge.token != conn->token ||
        !rg_keyed_equal(expected, conn->challenge.hash))
        return RG_EPROTO;
    init_message(tcp, conn, RG_TCP_WANT_PROOF, &proof);
    prove(tcp, conn, 'c', proof.hash);
    conn->stage = RG_TCP_WANT_WELCOME;
    return send_message(conn, &proof);
}

static int take_welcome(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_hello message;
    int rc = receive(conn, &message);

    if (rc)
        return rc;
    init_message(tcp, conn, RG_TCP_WELCOMED, &message);
    rc = send_message(conn, &message);
    if (!rc)
        rg_tcp_adopt(tcp, conn);
    return rc;
}

/* ---- the acceptor's side ------------------------------------------------ */

static int answer_hello(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    const struct rg_engine_config *config = &tcp->engine->config;
    struct rg_tcp_hello *hello = &conn->hello;
    int rc = receive(conn, hello);

    if (rc)
        return rc;
    if (hello->to != config->rank || hello->from == config->rank ||
        hello->from < 0 || hello->from >= config->size)
        return RG_EPROTO;
    conn->peer = hello->from;
    conn->token = hello->token;
    init_message(tcp, conn, RG_TCP_WANT_CHALLENGE, &conn->challenge);
    rc = make_nonce(&conn->challenge);
    if (rc)
        return rc;
    prove(tcp, conn, 'a', conn->challenge.hash);
    conn->stage = RG_TCP_WANT_PROOF;
    return send_message(conn, &conn->challenge);
}

static int check_proof(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    unsigned char expected[RG_KEYED_BYTES];
    struct rg_tcp_hello proof;
    int rc = receive(conn, &proof);

    if (rc)
        return rc;
    prove(tcp, conn, 'c', expected);
    if (!rg_keyed_equal(expected, proof.hash))
        return RG_EPROTO;
    conn->stage = RG_TCP_PROVEN;
    rg_tcp_admit(tcp, conn);
    return RG_OK;
}

/* Whether it is of that life of its peer that this end is to talk to. */
static int is_expected(const struct rg_tcp *tcp, const struct rg_tcp_conn *conn)
{
    const struct rg_engine_peer *peer = &tcp->engine->peers[conn->peer];

    return peer->ops && peer->card.token == conn->token;
}

void rg_tcp_admit(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_conn *attempt = tcp->links[conn->peer].attempt;
    struct rg_tcp_hello welcome;

    if (!is_expected(tcp, conn))
        return;
    if (attempt && tcp->engine->config.rank < conn->peer) {
        rg_tcp_lose(tcp, conn);
        return;
    }
    conn->stage = RG_TCP_WELCOMED;
    init_message(tcp, conn, RG_TCP_WANT_WELCOME, &welcome);
    if (send_message(conn, &welcome))
        rg_tcp_lose(tcp, conn);
    else if (attempt)
        rg_tcp_give_up(tcp, conn->peer);
}

static int take_start(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_hello start;
    int rc = receive(conn, &start);

    if (!rc && !is_expected(tcp, conn))
        return RG_ECLOSED; /* given up since it was welcomed */
    if (!rc)
        rg_tcp_adopt(tcp, conn);
    return rc;
}

/* Nothing is sent before the welcome, so all that can come is the end. */
static int check_open(const struct rg_tcp_conn *conn)
{
    char byte;
    const ssize_t n = recv(conn->fd, &byte, 1, MSG_PEEK);

    return n < 0 && (errno == EAGAIN || errno == EINTR) ? RG_OK : RG_ECLOSED;
}

void rg_tcp_shake(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    int (*const steps[])(struct rg_tcp *, struct rg_tcp_conn *) = {
        [RG_TCP_CONNECTING] = say_hello,
        [RG_TCP_WANT_HELLO] = answer_hello,
        [RG_TCP_WANT_CHALLENGE] = answer_challenge,
        [RG_TCP_WANT_PROOF] = check_proof,
        [RG_TCP_WANT_WELCOME] = take_welcome,
        [RG_TCP_WELCOMED] = take_start,
    };
    int rc;

    if (conn->stage == RG_TCP_PROVEN)
        rc = check_open(conn);
    else
        rc = steps[conn->stage](tcp, conn);
    if (rc == RG_EPROTO)
        rg_log(RG_LOG_WARN, tcp->engine->config.rank,
               "engine refuses a connection that says to be rank %d",
               conn->peer);
    if (rc && rc != RG_EPENDING)
        rg_tcp_lose(tcp, conn);
    else
        rg_tcp_watch(tcp, conn);
}
