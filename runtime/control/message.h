/*
 * Control messages: what agents, the coordinator and the caller of the driver
 * say to each other. A caller's request is the message its agent sends on, and
 * what an agent delivers to its caller is the message the coordinator sent, so
 * one type serves all three borders.
 *
 * A message is filled by its creator and immutable once it has been sent,
 * delivered or handed to a machine; references count owners. One thread at a
 * time may touch a message.
 */
#ifndef RG_CONTROL_MESSAGE_H
#define RG_CONTROL_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/control/view.h"

enum rg_message_kind {
    RG_MSG_NONE = 0,
    /* Between drivers; no machine sees them. */
    RG_MSG_ADDRESS, /* bootstrap: host id, endpoint, status, secret (data) */
    RG_MSG_HELLO,   /* first on a connection: world_rank, secret (data) */
    RG_MSG_BYE,     /* the end of file that follows is no failure */
    RG_MSG_OFFER,   /* a descriptor travels with it */
    /* Caller -> agent -> coordinator. */
    RG_MSG_JOIN,     /* capacity, first_seq, info, policy (data) */
    RG_MSG_LEAVE,    /* nothing */
    RG_MSG_QUIESCED, /* epoch, completed, claimed */
    RG_MSG_VIEW_ACK, /* epoch */
    RG_MSG_POLICY,   /* policy (data) */
    RG_MSG_GATHER,   /* call, block (data) */
    /* Coordinator -> agent -> caller. */
    RG_MSG_PREPARE,  /* epoch to come, workspace */
    RG_MSG_VIEW,     /* view */
    RG_MSG_ACTIVATE, /* epoch */
    RG_MSG_ERROR,    /* status */
    RG_MSG_GATHERED, /* call, status, blocks in rank order (data) */
    RG_MSG_COUNT
};

enum {
    RG_SECRET_BYTES = 16,
    RG_ADDRESS_BYTES = 48, /* a numeric address and its terminator */
    RG_UNIX_NAME_BYTES = 48,
    RG_CAPACITY_MAX = 65536,
    RG_GATHER_MAX = 65536, /* bytes of one member's block */
    RG_TEXT_MAX = 65536    /* bytes of a policy text */
};

struct rg_endpoint {
    char address[RG_ADDRESS_BYTES];
    uint32_t port;
    char unix_name[RG_UNIX_NAME_BYTES]; /* abstract, without the leading 0 */
};

/* Fields a kind does not name above are zero and do not travel. */
struct rg_message {
    int references;
    enum rg_message_kind kind;
    uint32_t group;
    uint32_t incarnation; /* of the member that speaks or is spoken to */
    uint64_t term;
    uint64_t epoch;
    int status;
    int world_rank;
    int capacity;
    uint32_t workspace;
    uint64_t first_seq;
    uint64_t completed;
    uint64_t claimed;
    uint64_t call;
    struct rg_member_info info;
    struct rg_endpoint endpoint;
    struct rg_view *view; /* owned */
    unsigned char *data;  /* owned; data[bytes] is 0; null when bytes is 0 */
    size_t bytes;
};

/* One reference, the caller's. Null when out of memory. */
struct rg_message *rg_message_create(enum rg_message_kind kind, uint32_t group);
struct rg_message *rg_message_ref(struct rg_message *message);
/* Frees with the last reference. Accepts null. */
void rg_message_unref(struct rg_message *message);

/* Copies `bytes` bytes into the message. RG_OK or RG_ENOMEM. */
int rg_message_set_data(struct rg_message *message, const void *data,
                        size_t bytes);
/* The data as text, "" when there is none. */
const char *rg_message_text(const struct rg_message *message);

/* Whether the coordinator (1) or an agent (0) is the one to receive it. */
int rg_message_for_coordinator(enum rg_message_kind kind);
/* For logs: "VIEW_ACK"; never null. */
const char *rg_message_name(enum rg_message_kind kind);

#endif
