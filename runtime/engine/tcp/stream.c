#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/core/log.h"
#include "runtime/engine/tcp/tcp.h"
#include "runtime/status.h"

enum {
    TURNS = 16, /* system calls per peer and poll: none keeps out the others */
    VERDICT_BYTES = sizeof(uint64_t)
};

static_assert(sizeof(struct rg_tcp_header) + RG_ENGINE_SMALL_BYTES +
                      VERDICT_BYTES <=
                  RG_TCP_BATCH_BYTES,
              "a batch has room for any small command");

static uint64_t generation_of(const struct rg_tcp *tcp)
{
    return tcp->engine->header->generation; /* the owner's thread writes it */
}

/* ---- reading ------------------------------------------------------------ */

static size_t buffered(const struct rg_tcp_in *in)
{
    return in->end - in->begin;
}

/* 1 and the next bytes, if all of them are there. */
static int take(struct rg_tcp_in *in, void *to, size_t bytes)
{
    if (buffered(in) < bytes)
        return 0;
    memcpy(to, in->buffer + in->begin, bytes);
    in->begin += bytes;
    return 1;
}

static void take_acks(struct rg_tcp *tcp, struct rg_tcp_link *link,
                      const struct rg_tcp_header *header)
{
    struct rg_engine_node *node = link->sent.first;

    while (header->kind == RG_TCP_NACK && node &&
           node->sequence != header->sequence)
        node = node->next;
    if (header->kind == RG_TCP_NACK && node)
        node->status = header->status;
    while (link->sent.first && link->sent.first->sequence <= header->ack) {
        node = rg_engine_pop(&link->sent);
        rg_engine_complete(tcp->engine, node, node->status);
    }
}

static int push_refusal(struct rg_tcp_conn *conn, uint64_t sequence, int status)
{
    if (conn->refused == conn->refusals_size) {
        const size_t size = conn->refusals_size ? 2 * conn->refusals_size : 16;
        struct rg_tcp_refusal *more =
            realloc(conn->refusals, size * sizeof(*more));

        if (!more)
            return RG_ENOMEM;
        conn->refusals = more;
        conn->refusals_size = size;
    }
    conn->refusals[conn->refused].sequence = sequence;
    conn->refusals[conn->refused++].status = status;
    return RG_OK;
}

/* The command at hand is over: its signal, or its refusal. */
static int finish(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_in *in = &conn->in;
    const struct rg_tcp_header *header = &in->header;

    in->state = RG_TCP_IN_HEADER;
    in->completed++;
    in->awaited |= header->bytes > RG_ENGINE_SMALL_BYTES;
    tcp->engine->arrivals++;
    if (!in->status && header->generation != generation_of(tcp))
        in->status = RG_EABORTED;
    if (in->status)
        return push_refusal(conn, header->sequence, in->status);
    rg_engine_signal(tcp->engine->base, header->signal,
                     (enum rg_signal_op)header->op, header->value);
    return RG_OK;
}

static int take_header(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_in *in = &conn->in;
    const struct rg_tcp_header *header = &in->header;

    if (header->magic != RG_ENGINE_MAGIC || header->kind < RG_TCP_PUT ||
        header->kind > RG_TCP_NACK ||
        (header->kind == RG_TCP_PUT && header->sequence != in->completed + 1)) {
        rg_log(RG_LOG_ERROR, tcp->engine->config.rank,
               "rank %d sent what is no engine frame", conn->peer);
        return RG_EPROTO;
    }
    take_acks(tcp, &tcp->links[conn->peer], header);
    if (header->kind == RG_TCP_PUT)
        in->state = RG_TCP_IN_DOOR;
    return RG_OK;
}

/* Bounds are checked here, the generation before each write. */
static int enter(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_in *in = &conn->in;
    const struct rg_tcp_header *header = &in->header;

    in->status = rg_engine_check(tcp->engine->config.bytes, header->offset,
                                 header->bytes, header->signal);
    in->left = header->bytes;
    in->state = RG_TCP_IN_PAYLOAD;
    return in->left ? RG_OK : finish(tcp, conn);
}

/* Where the next payload byte goes; null: nowhere, it is refused. */
static unsigned char *payload_at(struct rg_tcp *tcp, struct rg_tcp_in *in)
{
    if (!in->status && in->header.generation != generation_of(tcp))
        in->status = RG_EABORTED;
    if (in->status)
        return NULL;
    return tcp->engine->base + in->header.offset + in->header.bytes - in->left;
}

static void take_payload(struct rg_tcp *tcp, struct rg_tcp_in *in)
{
    const size_t have = buffered(in);
    const size_t bytes = have < in->left ? have : (size_t)in->left;
    unsigned char *to = payload_at(tcp, in);

    if (to)
        memcpy(to, in->buffer + in->begin, bytes);
    in->begin += bytes;
    in->left -= bytes;
    if (!in->left)
        in->state = RG_TCP_IN_VERDICT;
}

static int take_verdict(struct rg_tcp *tcp, struct rg_tcp_conn *conn,
                        uint64_t verdict)
{
    if (verdict != RG_TCP_GO && !conn->in.status)
        conn->in.status = RG_EABORTED;
    return finish(tcp, conn);
}

int rg_tcp_is_held(const struct rg_tcp *tcp, const struct rg_tcp_conn *conn)
{
    return conn->in.state == RG_TCP_IN_DOOR &&
           conn->in.header.generation > generation_of(tcp);
}

/* RG_EPENDING: more bytes are needed, or it waits at the door. */
static int parse_one(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_in *in = &conn->in;
    uint64_t verdict;

    switch (in->state) {
    case RG_TCP_IN_HEADER:
        return take(in, &in->header, sizeof(in->header))
                   ? take_header(tcp, conn)
                   : RG_EPENDING;
    case RG_TCP_IN_DOOR:
        return rg_tcp_is_held(tcp, conn) ? RG_EPENDING : enter(tcp, conn);
    case RG_TCP_IN_PAYLOAD:
        if (!buffered(in))
            return RG_EPENDING;
        take_payload(tcp, in);
        return RG_OK;
    default:
        return take(in, &verdict, sizeof(verdict))
                   ? take_verdict(tcp, conn, verdict)
                   : RG_EPENDING;
    }
}

/* Payload goes straight to its place, what follows it into the buffer. */
static int receive_more(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_in *in = &conn->in;
    unsigned char *to =
        in->state == RG_TCP_IN_PAYLOAD ? payload_at(tcp, in) : NULL;
    struct iovec parts[2] = {{to, to ? (size_t)in->left : 0}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    size_t straight;
    ssize_t n;

    memmove(in->buffer, in->buffer + in->begin, buffered(in));
    in->end -= in->begin;
    in->begin = 0;
    parts[1].iov_base = in->buffer + in->end;
    parts[1].iov_len = sizeof(in->buffer) - in->end;
    n = recvmsg(conn->fd, &message, 0);
    in->drained = n >= 0 && (size_t)n < parts[0].iov_len + parts[1].iov_len;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return RG_EPENDING;
    if (n <= 0)
        return RG_ECLOSED;
    straight = (size_t)n < parts[0].iov_len ? (size_t)n : parts[0].iov_len;
    in->left -= straight;
    if (straight && !in->left)
        in->state = RG_TCP_IN_VERDICT;
    in->end += (size_t)n - straight;
    return RG_OK;
}

void rg_tcp_read(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    int rc = RG_OK;

    for (int turn = 0; turn < TURNS && !rc; turn++) {
        do
            rc = parse_one(tcp, conn);
        while (!rc);
        if (rc == RG_EPENDING && !rg_tcp_is_held(tcp, conn) &&
            !conn->in.drained)
            rc = receive_more(tcp, conn);
    }
    conn->in.drained = 0;
    /* What came last is not left for a next event, which may never come. */
    while (!rc)
        rc = parse_one(tcp, conn);
    if (rc != RG_EPENDING)
        rg_tcp_lose(tcp, conn);
    else if (!conn->blocked)
        rg_tcp_write(tcp, conn);
    else
        rg_tcp_watch(tcp, conn);
}

/* ---- writing ------------------------------------------------------------ */

/* A refused command may only be counted once its refusal has been told. */
static uint64_t ack_of(const struct rg_tcp_conn *conn)
{
    return conn->refused ? conn->refusals[0].sequence - 1 : conn->in.completed;
}

static void start_frame(struct rg_tcp_conn *conn, enum rg_tcp_kind kind)
{
    struct rg_tcp_out *out = &conn->out;

    memset(&out->header, 0, sizeof(out->header));
    out->header.magic = RG_ENGINE_MAGIC;
    out->header.kind = (uint8_t)kind;
    out->header.ack = conn->in.acked = ack_of(conn);
    conn->in.awaited = 0;
    out->active = 1;
    out->batched = 0;
    out->bytes = 0;
    out->total = sizeof(out->header);
    out->written = 0;
}

static void start_refusal(struct rg_tcp_conn *conn)
{
    const struct rg_tcp_refusal refusal = conn->refusals[0];

    conn->refused--;
    memmove(conn->refusals, conn->refusals + 1,
            conn->refused * sizeof(refusal));
    start_frame(conn, RG_TCP_NACK);
    conn->out.header.sequence = refusal.sequence;
    conn->out.header.status = (int16_t)refusal.status;
}

/* Takes the next command; the frame's header and payload are in `out`. */
static void start_put(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_link *link = &tcp->links[conn->peer];
    struct rg_engine_node *node = rg_engine_pop(&link->queue);
    const struct rg_engine_command *command = &node->command;
    struct rg_tcp_out *out = &conn->out;
    struct rg_tcp_header *header = &out->header;

    start_frame(conn, RG_TCP_PUT);
    header->op = (uint8_t)command->op;
    header->generation = command->generation;
    header->offset = command->offset;
    header->bytes = command->bytes;
    header->signal = command->signal;
    header->value = command->value;
    header->sequence = node->sequence = ++out->sequence;
    out->source = command->source;
    out->bytes = command->bytes;
    out->verdict = RG_TCP_GO;
    if (out->bytes)
        out->total += out->bytes + VERDICT_BYTES;
    node->status = RG_OK;
    rg_engine_push(&link->sent, node);
    tcp->engine->traffic[conn->peer].payload += command->bytes;
}

static int is_small(const struct rg_engine_node *node)
{
    return node && node->command.bytes <= RG_ENGINE_SMALL_BYTES;
}

/* Appends the frame in `out` to the batch. */
static size_t append(struct rg_tcp_out *out, size_t at)
{
    memcpy(out->batch + at, &out->header, sizeof(out->header));
    at += sizeof(out->header);
    if (!out->bytes)
        return at;
    memcpy(out->batch + at, out->source, out->bytes);
    at += out->bytes;
    memcpy(out->batch + at, &out->verdict, VERDICT_BYTES);
    return at + VERDICT_BYTES;
}

/* Small commands that stand behind each other are one system call. */
static void start_batch(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    const struct rg_tcp_link *link = &tcp->links[conn->peer];
    const size_t most =
        sizeof(conn->out.header) + RG_ENGINE_SMALL_BYTES + VERDICT_BYTES;
    struct rg_tcp_out *out = &conn->out;
    size_t bytes = 0;

    while (is_small(link->queue.first) && bytes + most <= sizeof(out->batch)) {
        start_put(tcp, conn);
        bytes = append(out, bytes);
    }
    out->batched = 1;
    out->bytes = 0;
    out->total = bytes;
}

static int owes_ack(const struct rg_tcp *tcp, const struct rg_tcp_conn *conn)
{
    const uint64_t count = conn->in.completed - conn->in.acked;

    return count && (!tcp->engine->config.lazy || count >= RG_TCP_LAZY_PUTS ||
                     conn->in.awaited);
}

/* 0: there is nothing to say. */
static int start_next(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_link *link = &tcp->links[conn->peer];

    if (conn->refused)
        start_refusal(conn);
    else if (is_small(link->queue.first))
        start_batch(tcp, conn);
    else if (link->queue.first)
        start_put(tcp, conn);
    else if (owes_ack(tcp, conn))
        start_frame(conn, RG_TCP_ACK);
    return conn->out.active;
}

/* The rest of a part that begins `at` bytes into the frame. */
static struct iovec rest_of(const struct rg_tcp_out *out, uint64_t at,
                            const void *part, uint64_t bytes)
{
    const uint64_t skip = out->written > at ? out->written - at : 0;
    struct iovec rest = {NULL, 0};

    if (skip < bytes) {
        rest.iov_base = (unsigned char *)(uintptr_t)part + skip;
        rest.iov_len = bytes - skip;
    }
    return rest;
}

/* Payload that was called off flows as zeros, a piece at a time. */
static int fill_zeros(const struct rg_tcp_out *out, struct iovec *part)
{
    static const unsigned char zeros[16384];
    const uint64_t begin = sizeof(out->header);
    const uint64_t at = out->written > begin ? out->written - begin : 0;
    const uint64_t left = at < out->bytes ? out->bytes - at : 0;

    part->iov_base = (unsigned char *)(uintptr_t)zeros;
    part->iov_len = left < sizeof(zeros) ? left : sizeof(zeros);
    return part->iov_len == left;
}

static int send_more(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    struct rg_tcp_out *out = &conn->out;
    const uint64_t payload = sizeof(out->header);
    const uint64_t verdict = payload + out->bytes;
    struct iovec parts[3];
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    int whole = 1;
    ssize_t n;

    if (out->batched) {
        parts[0] = rest_of(out, 0, out->batch, out->total);
        message.msg_iovlen = 1;
    } else {
        parts[0] = rest_of(out, 0, &out->header, payload);
        parts[1] = rest_of(out, payload, out->source, out->bytes);
        parts[2] = rest_of(out, verdict, &out->verdict, out->total - verdict);
    }
    if (out->bytes && !out->source)
        whole = fill_zeros(out, &parts[1]);
    if (!whole)
        message.msg_iovlen = 2;
    n = sendmsg(conn->fd, &message, MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? RG_EPENDING : RG_ECLOSED;
    out->written += (uint64_t)n;
    tcp->engine->traffic[conn->peer].sent += (uint64_t)n;
    out->active = out->written < out->total;
    return RG_OK;
}

void rg_tcp_write(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    int rc = RG_OK;

    for (int turn = 0; turn < TURNS && !rc; turn++) {
        if (!conn->out.active && !start_next(tcp, conn))
            break;
        rc = send_more(tcp, conn);
    }
    if (rc && rc != RG_EPENDING) {
        rg_tcp_lose(tcp, conn);
        return;
    }
    conn->blocked =
        conn->out.active || tcp->links[conn->peer].queue.first || conn->refused;
    rg_tcp_watch(tcp, conn);
}

void rg_tcp_acknowledge(struct rg_tcp *tcp, struct rg_tcp_conn *conn)
{
    if (conn->in.completed == conn->in.acked || conn->blocked ||
        conn->out.active)
        return;
    start_frame(conn, RG_TCP_ACK);
    rg_tcp_write(tcp, conn);
}

void rg_tcp_detach(struct rg_tcp_link *link)
{
    struct rg_tcp_out *out = link->conn ? &link->conn->out : NULL;
    const struct rg_engine_node *node = link->sent.first;

    if (!out || !out->active || out->header.kind != RG_TCP_PUT || !out->bytes)
        return;
    while (node && node->sequence != out->header.sequence)
        node = node->next;
    if (node)
        return;
    out->source = NULL;
    if (out->written <= out->total - VERDICT_BYTES)
        out->verdict = RG_TCP_VOID;
}
