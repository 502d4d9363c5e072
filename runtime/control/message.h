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
    RG_MSG_HELLO,   /* first on a connection: world_rank, incarnation of the
                       process, process id (call), secret (data) */
    RG_MSG_BYE,     /* the end of file that follows is no failure */
    RG_MSG_OFFER,   /* a descriptor travels with it */
    RG_MSG_PULSE,   /* likewise: the sender's pulse */
    /* Caller -> agent -> coordinator. */
    RG_MSG_JOIN,     /* capacity, first_seq, status (1: to a group that runs),
                        info, endpoint, policy (data) */
    RG_MSG_LEAVE,    /* nothing */
    RG_MSG_QUIESCED, /* epoch, completed, claimed, status (1: live graphs),
                        pairs that this member is in */
    RG_MSG_VIEW_ACK, /* epoch, attempt, rules */
    RG_MSG_POLICY,   /* call, policy (data) */
    RG_MSG_CHANGE,   /* call, slots to deactivate (data), status (1: those of
                        them that have failed can do no harm any more) */
    RG_MSG_GATHER,   /* call, block (data), status (RG_ETIMEDOUT: none, this
                        member has given the call up) */
    RG_MSG_REPORT,   /* status (enum rg_evidence), world_rank and subject, or
                        claimed and slots (data) */
    RG_MSG_FENCED,   /* nothing */
    /* Agent -> coordinator. */
    RG_MSG_HEARTBEAT, /* completed, status (enum rg_heartbeat) */
    RG_MSG_GRANT,     /* ballot, view and status (1: active here), or none */
    RG_MSG_REFUSE,    /* world_rank: whom it follows, in `term` */
    RG_MSG_STAND,     /* to its own: view, status (enum rg_reason) */
    RG_MSG_RESIGN,    /* to its own: nothing */
    /* Coordinator -> agent -> caller. */
    RG_MSG_PREPARE,  /* epoch to come, workspace */
    RG_MSG_VIEW,     /* attempt, view */
    RG_MSG_ACTIVATE, /* epoch, attempt */
    RG_MSG_ERROR,    /* status, call (of the request it answers, or 0) */
    RG_MSG_GATHERED, /* call, status, blocks in rank order (data) */
    RG_MSG_NOTICE,   /* status (enum rg_notice), slots (data) */
    RG_MSG_EXCLUDED, /* incarnation, epoch that is without it; status */
    /* Coordinator -> agent. */
    RG_MSG_BEAT,     /* completed by all, status (enum rg_beat) */
    RG_MSG_CLAIM,    /* epoch in force there, status (enum rg_reason) */
    RG_MSG_HANDOVER, /* nothing */
    RG_MSG_LOST,     /* world_rank: whom to follow in `term`, or -1 */
    /* Agent -> agent. */
    RG_MSG_SEEK,   /* nothing */
    RG_MSG_LEADER, /* world_rank */
    /* Caller -> agent. */
    RG_MSG_PROGRESS, /* completed, claimed (live graphs), status (1: waits) */
    RG_MSG_COUNT
};

/* How a failure has been seen. */
enum rg_evidence {
    RG_EVIDENCE_NONE = 0,
    RG_EVIDENCE_GONE,        /* the process has ended, its memory may live */
    RG_EVIDENCE_EXITED,      /* it is gone and can write nowhere any more */
    RG_EVIDENCE_UNREACHABLE, /* a route from the reporter to these slots */
    RG_EVIDENCE_STALLED      /* a wait for these slots in `claimed` */
};

/* The status of a coordinator's BEAT. */
enum rg_beat {
    RG_BEAT_CHANGING = 0,
    RG_BEAT_STEADY,
    RG_BEAT_STARVED /* no clean workspace: who knows of an exit? */
};

/* The status of an agent's HEARTBEAT. */
enum rg_heartbeat {
    RG_HEARTBEAT_CALM = 0,
    RG_HEARTBEAT_URGENT, /* its caller waits for the floor */
    RG_HEARTBEAT_HELD    /* it is quiet for a change nobody has finished */
};

/* Why an agent stands for election. */
enum rg_reason {
    RG_REASON_SILENT = 0, /* nothing heard of the coordinator */
    RG_REASON_GONE,       /* it is known to be dead */
    RG_REASON_HANDOVER    /* it has asked for it */
};

/* What members are told outside a view change. */
enum rg_notice {
    RG_NOTICE_NONE = 0,
    RG_NOTICE_JOINERS, /* these slots wait to be let in */
    RG_NOTICE_FAILED,  /* these slots have failed and are still members */
    RG_NOTICE_COUNT
};

enum {
    RG_SECRET_BYTES = 32,
    RG_CAPACITY_MAX = 65536,
    RG_GATHER_MAX = 65536, /* bytes of one member's block */
    RG_TEXT_MAX = 65536    /* bytes of a policy text or a set of slots */
};

/* Fields a kind does not name above are zero and do not travel. */
struct rg_message {
    int references;
    enum rg_message_kind kind;
    uint32_t group;
    uint32_t incarnation; /* of the member that speaks or is spoken to */
    uint64_t term;
    uint64_t epoch;
    uint32_t attempt;
    int status;
    int world_rank;
    uint32_t subject; /* incarnation of world_rank's process */
    int capacity;
    uint32_t workspace;
    uint64_t first_seq;
    uint64_t completed;
    uint64_t claimed;
    uint64_t call;
    uint64_t
        rules; /* hash of the selection rules that the sender will run by */
    struct rg_member_info info;
    struct rg_endpoint endpoint;
    struct rg_ballot ballot; /* under which `view` was accepted */
    struct rg_view *view;    /* owned */
    struct rg_pairs pairs;
    unsigned char *data; /* owned; data[bytes] is 0; null when bytes is 0 */
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
/* Makes `slots` the data. RG_OK or RG_ENOMEM. */
int rg_message_set_slots(struct rg_message *message,
                         const struct rg_bitset *slots);
/* Whether the slot is in the data. */
int rg_message_has_slot(const struct rg_message *message, int slot);
/* The data as text, "" when there is none. */
const char *rg_message_text(const struct rg_message *message);

/* Whether the coordinator (1) or an agent (0) is the one to receive it. */
int rg_message_for_coordinator(enum rg_message_kind kind);
/* Whether it never comes from another process. */
int rg_message_is_local(enum rg_message_kind kind);
/* For logs: "VIEW_ACK"; never null. */
const char *rg_message_name(enum rg_message_kind kind);

#endif
