/*
 * Frames over a stream socket, and a growing run of bytes to build them in.
 *
 * Supervisors, their workers and the hub between them (supervisor.h) speak in
 * frames. Sender and receiver run the same binary, so a header is sent as it
 * lies in memory. Nothing here blocks but rg_wire_wait(). One thread at a
 * time.
 */
#ifndef RG_HARNESS_WIRE_H
#define RG_HARNESS_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/status.h"

/* Zero-initialise; rg_bytes_fini() frees. */
struct rg_bytes {
    char *data;
    size_t used;
    size_t room;
};
/* Appends a copy of what `from` (null: zeroes) holds. RG_OK or RG_ENOMEM. */
int rg_bytes_append(struct rg_bytes *bytes, const void *from, size_t n);
/* Replaces the content. RG_OK, or RG_ENOMEM and nothing is held. */
int rg_bytes_set(struct rg_bytes *bytes, const void *from, size_t n);
void rg_bytes_fini(struct rg_bytes *bytes);

/* What `id` and `value` mean is the kind's matter (supervision.h). */
struct rg_frame {
    uint32_t bytes; /* of the body behind it */
    uint32_t kind;
    uint32_t id;
    int32_t value;
};

enum { RG_FRAME_BYTES_MAX = 64 << 20 };

struct rg_wire {
    int fd; /* owned; -1: none */
    struct rg_bytes in;
    size_t in_taken; /* bytes of `in` that were handed out */
    struct rg_bytes out;
    size_t out_sent;
};

/* Takes over fd; -1 makes a wire that holds nothing. */
void rg_wire_init(struct rg_wire *wire, int fd);
/* Closes. What was not sent is lost. */
void rg_wire_fini(struct rg_wire *wire);
/*
 * Queues a frame and sends what the socket takes now. head->bytes says how
 * long the body is. RG_OK, RG_ENOMEM, RG_EINVAL (too long) or RG_ECLOSED.
 */
int rg_wire_send(struct rg_wire *wire, const struct rg_frame *head,
                 const void *body);
/* Sends more. RG_OK: all is sent; RG_EPENDING; RG_ECLOSED. */
int rg_wire_flush(struct rg_wire *wire);
/*
 * The next frame; the body stays valid until the next call. RG_EPENDING: none
 * is complete; RG_ECLOSED: and none will come; RG_EPROTO; RG_ENOMEM.
 */
int rg_wire_receive(struct rg_wire *wire, struct rg_frame *head_out,
                    const void **body_out);
/* What poll() should wait for on this wire. */
short rg_wire_events(const struct rg_wire *wire);
/*
 * Waits for poll()'s `events` on the wire, or until `deadline_ns` of
 * rg_now_ns(). RG_OK or RG_ETIMEDOUT. May run beside the calls above.
 */
int rg_wire_wait(const struct rg_wire *wire, short events,
                 uint64_t deadline_ns);

#endif
