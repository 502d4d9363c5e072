/*
 * The encoding of control messages: bounded, versioned, little-endian.
 *
 *   frame = u32 bytes that follow, u16 version, u16 kind, u32 group,
 *           u32 incarnation, u64 term, u64 epoch, the fields of the kind
 *   text and data = u32 bytes, bytes
 *
 * A decoder accepts exactly what an encoder writes: every length is checked
 * before it is used, enumerations must be in range, and left-over bytes are an
 * error. Nothing is logged here; the caller knows who sent the frame.
 */
#ifndef RG_CONTROL_WIRE_H
#define RG_CONTROL_WIRE_H

#include <stddef.h>

#include "runtime/control/message.h"

enum {
    RG_WIRE_VERSION = 1,
    RG_WIRE_PREFIX = 4,         /* bytes of the length prefix */
    RG_WIRE_STRANGER_MAX = 256, /* bytes of a frame from an unproved peer */
    RG_WIRE_MAX = 1 << 29       /* bytes of any frame */
};

/* The frame with its prefix, freed by the caller. RG_OK, RG_ENOMEM. */
int rg_wire_encode(const struct rg_message *message, unsigned char **frame_out,
                   size_t *bytes_out);

/* Bytes that follow the prefix at `frame`; RG_EPROTO when above `limit`. */
int rg_wire_length(const unsigned char *frame, size_t limit, size_t *bytes_out);

/* Decodes the `bytes` bytes behind a prefix. RG_OK, RG_EPROTO, RG_ENOMEM. */
int rg_wire_decode(const unsigned char *body, size_t bytes,
                   struct rg_message **message_out);

#endif
