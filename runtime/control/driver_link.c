#include "runtime/control/driver_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/control/wire.h"
#include "runtime/status.h"

enum {
    READ_BYTES = 16384, /* room made for one read */
    DESCRIPTORS_MAX = 8 /* unclaimed at a time; a peer owes a message each */
};

struct rg_link_frame {
    struct rg_link_frame *next;
    unsigned char *data; /* owned */
    size_t bytes;
    size_t sent;
    int fd; /* goes with the first byte; -1: none, or gone */
};

/* Room for one descriptor, aligned as the system wants it. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static void frame_destroy(struct rg_link_frame *frame)
{
    if (frame->fd >= 0)
        close(frame->fd);
    free(frame->data);
    free(frame);
}

struct rg_link *rg_link_create(enum rg_link_kind kind, int fd, int peer)
{
    struct rg_link *link = calloc(1, sizeof(*link));

    if (!link)
        goto error;
    link->descriptors = calloc(DESCRIPTORS_MAX, sizeof(*link->descriptors));
    if (!link->descriptors)
        goto error;
    link->kind = kind;
    link->fd = fd;
    link->peer = peer;
    return link;
error:
    free(link);
    close(fd);
    return NULL;
}

void rg_link_destroy(struct rg_link *link)
{
    if (!link)
        return;
    while (link->first) {
        struct rg_link_frame *frame = link->first;

        link->first = frame->next;
        frame_destroy(frame);
    }
    for (int i = 0; i < link->ndescriptors; i++)
        close(link->descriptors[i]);
    if (link->fd >= 0)
        close(link->fd);
    free(link->descriptors);
    free(link->input);
    free(link);
}

/* ---- sending ------------------------------------------------------------ */

int rg_link_send(struct rg_link *link, const struct rg_message *message, int fd)
{
    struct rg_link_frame *frame = calloc(1, sizeof(*frame));
    int rc;

    if (!frame)
        return RG_ENOMEM;
    frame->fd = -1;
    rc = rg_wire_encode(message, &frame->data, &frame->bytes);
    if (!rc && fd >= 0) {
        frame->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        rc = frame->fd < 0 ? RG_ESYSTEM : RG_OK;
    }
    if (rc) {
        frame_destroy(frame);
        return rc;
    }
    if (link->last)
        link->last->next = frame;
    else
        link->first = frame;
    link->last = frame;
    link->queued += frame->bytes;
    rc = rg_link_flush(link);
    return rc == RG_EPENDING ? RG_OK : rc;
}

/* A socket says why it failed once: to whichever call comes first. */
static void note_refusal(struct rg_link *link)
{
    link->refused |= errno == ECONNREFUSED;
}

/* Bytes written of the rest of a frame, or -1 with errno. */
static ssize_t frame_write(int socket, const struct rg_link_frame *frame)
{
    union control control = {0};
    struct iovec part = {.iov_base = frame->data + frame->sent,
                         .iov_len = frame->bytes - frame->sent};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t wrote;

    if (frame->fd >= 0) {
        struct cmsghdr *header = &control.header;

        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &frame->fd, sizeof(int));
    }
    do {
        wrote = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (wrote < 0 && errno == EINTR);
    return wrote;
}

int rg_link_flush(struct rg_link *link)
{
    while (link->first) {
        struct rg_link_frame *frame = link->first;
        ssize_t wrote = frame_write(link->fd, frame);

        if (wrote < 0) {
            note_refusal(link);
            return errno == EAGAIN || errno == ENOTCONN ? RG_EPENDING
                                                        : RG_ECLOSED;
        }
        if (frame->fd >= 0)
            close(frame->fd);
        frame->fd = -1;
        frame->sent += (size_t)wrote;
        if (frame->sent < frame->bytes)
            continue;
        link->first = frame->next;
        if (!link->first)
            link->last = NULL;
        link->queued -= frame->bytes;
        frame_destroy(frame);
    }
    if (link->finishing)
        shutdown(link->fd, SHUT_WR);
    return RG_OK;
}

void rg_link_finish(struct rg_link *link)
{
    link->finishing = 1;
    rg_link_flush(link);
}

/* ---- receiving ---------------------------------------------------------- */

/* Makes at least `bytes` free behind what is unread. */
static int make_room(struct rg_link *link, size_t bytes)
{
    size_t unread = link->input_used - link->input_at;
    size_t size = link->input_size ? link->input_size : READ_BYTES;
    unsigned char *larger;

    if (unread && link->input_at)
        memmove(link->input, link->input + link->input_at, unread);
    link->input_at = 0;
    link->input_used = unread;
    while (size - unread < bytes)
        size *= 2;
    if (size == link->input_size)
        return RG_OK;
    larger = realloc(link->input, size);
    if (!larger)
        return RG_ENOMEM;
    link->input = larger;
    link->input_size = size;
    return RG_OK;
}

/* Keeps the descriptors that came with a read. */
static int take_descriptors(struct rg_link *link, struct msghdr *message)
{
    struct cmsghdr *header;
    int rc = RG_OK;

    for (header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        int fd;

        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
        if (link->ndescriptors < DESCRIPTORS_MAX) {
            link->descriptors[link->ndescriptors++] = fd;
        } else {
            close(fd);
            rc = RG_EPROTO;
        }
    }
    return rc;
}

/* One read into the buffer. RG_OK: something came. */
static int read_some(struct rg_link *link)
{
    union control control;
    struct iovec part;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t got;

    if (make_room(link, READ_BYTES))
        return RG_ENOMEM;
    part.iov_base = link->input + link->input_used;
    part.iov_len = link->input_size - link->input_used;
    do {
        got = recvmsg(link->fd, &message, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == ENOTCONN))
        return RG_EPENDING;
    if (got < 0)
        note_refusal(link);
    if (got <= 0)
        return RG_ECLOSED;
    link->input_used += (size_t)got;
    return take_descriptors(link, &message);
}

/* Decodes the first whole frame of the buffer; RG_EPENDING: there is none. */
static int take_frame(struct rg_link *link, struct rg_message **message_out)
{
    const unsigned char *frame = link->input + link->input_at;
    size_t unread = link->input_used - link->input_at;
    size_t bytes;
    int rc;

    if (unread < RG_WIRE_PREFIX)
        return RG_EPENDING;
    rc = rg_wire_length(
        frame, link->peer < 0 ? RG_WIRE_STRANGER_MAX : RG_WIRE_MAX, &bytes);
    if (rc)
        return rc;
    if (unread - RG_WIRE_PREFIX < bytes)
        return RG_EPENDING;
    link->input_at += RG_WIRE_PREFIX + bytes;
    return rg_wire_decode(frame + RG_WIRE_PREFIX, bytes, message_out);
}

int rg_link_brings_fd(enum rg_message_kind kind)
{
    return kind == RG_MSG_OFFER || kind == RG_MSG_PULSE;
}

int rg_link_receive(struct rg_link *link, struct rg_message **message_out,
                    int *fd_out)
{
    struct rg_message *message;
    int rc;

    while ((rc = take_frame(link, &message)) == RG_EPENDING) {
        rc = read_some(link);
        if (rc)
            return rc;
    }
    if (rc)
        return rc;
    if (rg_link_brings_fd(message->kind) && link->ndescriptors) {
        *fd_out = link->descriptors[0];
        memmove(link->descriptors, link->descriptors + 1,
                (size_t)--link->ndescriptors * sizeof(*link->descriptors));
    }
    *message_out = message;
    return RG_OK;
}
