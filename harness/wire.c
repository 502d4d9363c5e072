#include "harness/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/wait.h"

enum { READ_BYTES = 64 << 10 };

static int reserve(struct rg_bytes *bytes, size_t n)
{
    size_t room = bytes->room ? bytes->room : 256;
    char *data;

    while (room - bytes->used < n)
        room *= 2;
    if (room == bytes->room)
        return RG_OK;
    data = realloc(bytes->data, room);
    if (!data)
        return RG_ENOMEM;
    bytes->data = data;
    bytes->room = room;
    return RG_OK;
}

int rg_bytes_append(struct rg_bytes *bytes, const void *from, size_t n)
{
    if (n == 0)
        return RG_OK;
    if (reserve(bytes, n) != RG_OK)
        return RG_ENOMEM;
    if (from)
        memcpy(bytes->data + bytes->used, from, n);
    else
        memset(bytes->data + bytes->used, 0, n);
    bytes->used += n;
    return RG_OK;
}

int rg_bytes_set(struct rg_bytes *bytes, const void *from, size_t n)
{
    bytes->used = 0;
    return rg_bytes_append(bytes, from, n);
}

void rg_bytes_fini(struct rg_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct rg_bytes){0};
}

/* Forgets the first n bytes. */
static void discard(struct rg_bytes *bytes, size_t n)
{
    if (n == 0)
        return;
    bytes->used -= n;
    memmove(bytes->data, bytes->data + n, bytes->used);
}

void rg_wire_init(struct rg_wire *wire, int fd)
{
    *wire = (struct rg_wire){.fd = fd};
}

void rg_wire_fini(struct rg_wire *wire)
{
    if (wire->fd >= 0)
        close(wire->fd);
    rg_bytes_fini(&wire->in);
    rg_bytes_fini(&wire->out);
    rg_wire_init(wire, -1);
}

int rg_wire_send(struct rg_wire *wire, const struct rg_frame *head,
                 const void *body)
{
    const size_t used = wire->out.used;
    int status;

    if (wire->fd < 0)
        return RG_ECLOSED;
    if (head->bytes > RG_FRAME_BYTES_MAX)
        return RG_EINVAL;
    if (rg_bytes_append(&wire->out, head, sizeof *head) != RG_OK ||
        rg_bytes_append(&wire->out, body, head->bytes) != RG_OK) {
        wire->out.used = used;
        return RG_ENOMEM;
    }
    status = rg_wire_flush(wire);
    return status == RG_EPENDING ? RG_OK : status;
}

int rg_wire_flush(struct rg_wire *wire)
{
    while (wire->out_sent < wire->out.used) {
        ssize_t n =
            send(wire->fd, wire->out.data + wire->out_sent,
                 wire->out.used - wire->out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? RG_EPENDING : RG_ECLOSED;
        wire->out_sent += (size_t)n;
    }
    wire->out.used = 0;
    wire->out_sent = 0;
    return RG_OK;
}

/* RG_OK: a frame lies at the front. */
static int look(const struct rg_wire *wire, struct rg_frame *head_out)
{
    if (wire->in.used < sizeof *head_out)
        return RG_EPENDING;
    memcpy(head_out, wire->in.data, sizeof *head_out);
    if (head_out->bytes > RG_FRAME_BYTES_MAX)
        return RG_EPROTO;
    return wire->in.used - sizeof *head_out < head_out->bytes ? RG_EPENDING
                                                              : RG_OK;
}

/* RG_OK: something came in. */
static int read_more(struct rg_wire *wire)
{
    ssize_t n;

    if (reserve(&wire->in, READ_BYTES) != RG_OK)
        return RG_ENOMEM;
    do {
        n = recv(wire->fd, wire->in.data + wire->in.used, READ_BYTES,
                 MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n > 0)
        wire->in.used += (size_t)n;
    if (n > 0)
        return RG_OK;
    return n < 0 && errno == EAGAIN ? RG_EPENDING : RG_ECLOSED;
}

int rg_wire_receive(struct rg_wire *wire, struct rg_frame *head_out,
                    const void **body_out)
{
    struct rg_frame head;
    int status;

    if (wire->fd < 0)
        return RG_ECLOSED;
    discard(&wire->in, wire->in_taken);
    wire->in_taken = 0;
    while ((status = look(wire, &head)) == RG_EPENDING) {
        status = read_more(wire);
        if (status != RG_OK)
            return status;
    }
    if (status != RG_OK)
        return status;
    wire->in_taken = sizeof head + head.bytes;
    *head_out = head;
    *body_out = wire->in.data + sizeof head;
    return RG_OK;
}

short rg_wire_events(const struct rg_wire *wire)
{
    return (short)(wire->out_sent < wire->out.used ? POLLIN | POLLOUT : POLLIN);
}

int rg_wire_wait(const struct rg_wire *wire, short events, uint64_t deadline_ns)
{
    struct pollfd entry = {.fd = wire->fd, .events = events};
    int n;

    do {
        n = poll(&entry, 1, rg_ms_until(deadline_ns));
    } while (n <= 0 && rg_now_ns() < deadline_ns);
    return n > 0 ? RG_OK : RG_ETIMEDOUT;
}
