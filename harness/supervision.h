/*
 * What supervisors (supervisor.h), their workers (worker.h) and the hub
 * (hub.h) say to each other. Private to these three; only the records and
 * injections further up are also what a caller sees.
 */
#ifndef RG_HARNESS_SUPERVISION_H
#define RG_HARNESS_SUPERVISION_H

#include <stdint.h>

#include "harness/fault_plan.h"

/* What a record of a rank holds. */
enum rg_record_kind {
    RG_RECORD_NONE = 0,
    RG_RECORD_REPORT, /* opaque bytes of the worker */
    RG_RECORD_EVENT,  /* struct rg_event */
    RG_RECORD_FAULT,  /* struct rg_injected */
    RG_RECORD_END     /* struct rg_end: how a life ended */
};

/* A moment in a worker's life. */
struct rg_event {
    uint64_t time_ns; /* rg_now_ns() of the worker */
    uint64_t value;   /* what the name implies: a seq, an epoch */
    char name[24];
};

/* A fault that a worker asks for. */
struct rg_injection {
    int32_t action; /* enum rg_fault_action */
    int32_t entry;  /* of the fault plan; -1: of none */
    int32_t rank;   /* whom it hits */
    int32_t unused;
    uint64_t delay_ns;    /* from now on */
    uint64_t duration_ns; /* of a stop, a cut or a split */
};

/* A fault that happened. */
struct rg_injected {
    int32_t action;
    int32_t entry;
    uint64_t asked_ns;
    uint64_t done_ns; /* taken right before the signal */
};

struct rg_end {
    int32_t exit_code; /* -1: ended by a signal, or never started */
    int32_t signal;    /* 0: it exited */
    int32_t planned;   /* a fault that was asked for ended it */
    int32_t hang;      /* the deadline ended it */
};

enum rg_frame_kind {
    RG_FRAME_NONE = 0,
    /* worker to supervisor, answered by RG_FRAME_REPLY with the same id */
    RG_FRAME_ALLGATHER,  /* body: this rank's share. Also on to the hub */
    RG_FRAME_INJECT,     /* body: struct rg_injection */
    RG_FRAME_GET_TICKET, /* value: answer when there is a later one */
    RG_FRAME_GET_ENDS,   /* value: rank */
    /* worker to supervisor, no answer */
    RG_FRAME_REPORT, /* body: opaque */
    RG_FRAME_EVENT,  /* body: struct rg_event */
    RG_FRAME_TICKET, /* body: opaque. On to the hub, and from it to all */
    /* supervisor to worker */
    RG_FRAME_WELCOME, /* value: life; body: struct rg_welcome, scenario */
    RG_FRAME_REPLY,   /* value: status, number of the ticket, or count */
    /* supervisor to hub */
    RG_FRAME_HELLO, /* value: rank; body: the key, 8 bytes */
    /* The worker ended: it takes part in no exchange. On to all; value: rank */
    RG_FRAME_ABSENT,
    RG_FRAME_IDLE, /* id: restarts that came; body: struct rg_fate, records */
    RG_FRAME_RESTART, /* body: struct rg_injection. On to that rank */
    /* hub to supervisor */
    RG_FRAME_GATHERED, /* id: as asked; value: status; body: all shares */
    RG_FRAME_RESULT,   /* value: rank; body: as of RG_FRAME_IDLE */
    RG_FRAME_DONE      /* value: status; the scenario is over */
};

struct rg_welcome {
    int32_t rank;
    int32_t size;
    int32_t local_rank;
    int32_t local_size;
    int32_t hosts;
    int32_t unused;
    char host[64];
};

/* The descriptor of a worker's socket, in decimal. */
#define RG_WORKER_VARIABLE "RG_WORKER_SOCKET"

#endif
