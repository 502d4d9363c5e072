/*
 * A link: one stream socket that carries frames (wire.h), and descriptors on
 * UNIX sockets. Never blocks. Belongs to one driver and is used under its
 * lock.
 */
#ifndef RG_CONTROL_DRIVER_LINK_H
#define RG_CONTROL_DRIVER_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/control/message.h"

enum rg_link_kind {
    RG_LINK_CONTROL, /* TCP, between any two processes, made when needed */
    RG_LINK_LIFELINE /* UNIX, between two processes of one host */
};

struct rg_link_frame;

struct rg_link {
    struct rg_link *next; /* the driver's list */
    enum rg_link_kind kind;
    int fd;               /* owned; -1 once closed */
    int peer;             /* world rank; -1 until it has proved itself */
    uint32_t process;     /* which of that rank's: what it tells is of this */
    int said_bye;         /* the peer's end of file will be no failure */
    int finishing;        /* nothing more will be sent */
    int refused;          /* its host says that nobody listens there */
    uint64_t deadline_ns; /* while unproved: closed when this has passed */
    struct rg_link_frame *first; /* waiting to be sent */
    struct rg_link_frame *last;
    size_t queued;        /* bytes of them */
    unsigned char *input; /* received: [at, used) of size bytes */
    size_t input_at;
    size_t input_used;
    size_t input_size;
    int *descriptors; /* received, not yet claimed by a message */
    int ndescriptors;
};

/* Takes fd over, also on failure. Null when out of memory. */
struct rg_link *rg_link_create(enum rg_link_kind kind, int fd, int peer);
/* Closes the socket and everything received. Accepts null. */
void rg_link_destroy(struct rg_link *link);

/*
 * Queues a message and sends what the socket takes. `fd` (-1: none) is
 * duplicated. RG_OK, RG_ENOMEM, or RG_ECLOSED when the socket has failed.
 */
int rg_link_send(struct rg_link *link, const struct rg_message *message,
                 int fd);
/* Sends on. RG_OK: all sent; RG_EPENDING: some left; RG_ECLOSED. */
int rg_link_flush(struct rg_link *link);
/* No more sends: ends the stream once the queue is empty. */
void rg_link_finish(struct rg_link *link);

/* Whether a descriptor comes with the message. */
int rg_link_brings_fd(enum rg_message_kind kind);

/*
 * The next message, and its descriptor, if one comes with it, now the caller's;
 * *fd_out is as before when the system had no room for it. RG_EPENDING: none
 * yet; RG_ECLOSED: end of file or error; RG_EPROTO: malformed (nothing is
 * logged); RG_ENOMEM.
 */
int rg_link_receive(struct rg_link *link, struct rg_message **message_out,
                    int *fd_out);

#endif
