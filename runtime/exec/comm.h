/*
 * Inside of a communicator: its objects at stable addresses, the view it runs
 * under, and how a view becomes a plan in force. Who decides when is
 * runtime/recovery.
 *
 * Threads. The user's thread launches; it reads the fields under "launches"
 * with relaxed loads. The recovery worker writes everything else, under `lock`
 * where the user's calls look at it.
 */
#ifndef RG_EXEC_COMM_H
#define RG_EXEC_COMM_H

#include <pthread.h>

#include "runtime/device/mailbox.h"
#include "runtime/exec/context.h"
#include "runtime/exec/plan_slot.h"

/* What teams and host share in mapped host memory; a plan lies behind it, and
 * behind that what rg_comm_told() says. */
struct rg_comm_mapped {
    uint64_t abort_epoch; /* the highest epoch to abort, never cleared */
    uint64_t noted;       /* as in the device block (plan.h) */
    struct rg_mailbox mailbox __attribute__((aligned(RG_LINE)));
    struct rg_orders orders __attribute__((aligned(RG_LINE)));
};

/* What a member's card holds: one for each engine of the communicator. */
enum { RG_CARD_LEGACY = 0, RG_CARD_PROXY, RG_CARDS };

enum rg_way_state {
    RG_WAY_UNKNOWN = 0,
    RG_WAY_CHOSEN,
    RG_WAY_MARKED, /* the own mark is on the peer's board */
    RG_WAY_PROVED  /* and the peer's on the own */
};

/* The way to one slot's member (routes.h). */
struct rg_way {
    enum rg_way_state state;
    struct rg_region_key key; /* of the region at its end */
    int direct;               /* as rg_view_is_direct() */
    uint64_t card;            /* hash of the host engine's */
    struct rg_route route;
};

/* What is frozen while no plan is in force: the last seqs of their kind. */
struct rg_held {
    uint64_t claimed;   /* and ended */
    uint64_t completed; /* here */
};

/* What may be in a workspace generation; count 0: it is clean. */
struct rg_litter {
    int count;
    struct rg_part part[RG_CLEAN_PARTS];
};

enum { RG_WORKSPACES_MAX = 8 };

/* Messages that are gathered for a launch; the user's thread. */
struct rg_batch {
    struct rg_post_launch args;
    struct rg_stream *stream; /* null: none is open */
    int status;               /* of the first that was wrong */
};

struct rg_helper;
struct rg_legacy_path;
struct rg_proxy_path;
struct rg_recovery;

struct rg_comm {
    struct rg_context *context;
    struct rg_comm *next; /* in the context's list */
    uint32_t group;
    struct rg_layout layout;
    struct rg_helper *helper;      /* hold.h; owned */
    struct rg_recovery *recovery;  /* runtime/recovery; owned */
    struct rg_legacy_path *legacy; /* legacy_path.h; owned */
    struct rg_proxy_path *proxy;   /* proxy_path.h, or null; owned */

    /* Launches: written by the worker, read without a lock. */
    uint64_t closed;  /* 0, or -status: out of the group */
    uint64_t sharers; /* most ranks of the group on one device */
    uint64_t backend; /* enum rg_backend */
    uint64_t seq;     /* launched so far; the user's thread, and joining */
    uint64_t graphs;  /* captured and alive; the helper looks too */

    pthread_mutex_t lock;
    struct rg_view *view; /* in force or being made so; owned, under lock */
    struct rg_plan *plan; /* host copy of the one in force; owned */
    int plan_index;
    enum rg_backend open; /* what runs; UNSET: held */
    struct rg_held held;  /* while it is not */
    struct rg_litter litter[RG_WORKSPACES_MAX];
    uint64_t failures_seen; /* those the user has taken note of */
    uint64_t declines_seen;
    uint64_t legacy_failures_seen;

    struct rg_batch batch;
    /* Messages agreed on, [capacity][sent, received], and with which process of
     * each slot; owned, under lock. */
    uint64_t *agreed, *partners;
    uint64_t settling; /* 1: what the device has counted may be neither */
    uint64_t undone;   /* the last epoch whose begin has undone messages */

    struct rg_way *ways;     /* [capacity], by slot; owned */
    struct rg_route *routes; /* [capacity], by dense rank; owned */
    struct rg_stream *last;  /* where it was last launched, or null */
    uint64_t control_offset; /* of the device block in the region */
    uint64_t workspace_offset;
    struct rg_comm_dev *dev;              /* device block, device address */
    struct rg_comm_mapped *mapped;        /* host address */
    struct rg_comm_mapped *mapped_device; /* as teams see it */
};

/* Of any communicator of the context, once its device is open. */
int rg_comm_layout(const struct rg_context *context,
                   struct rg_layout *layout_out);
/* A communicator that is no member of anything yet. */
int rg_comm_make(struct rg_context *context, struct rg_comm **comm_out);
/* Nothing runs on it, and nobody holds it. Accepts null. */
void rg_comm_unmake(struct rg_comm *comm);
/* What the member tells of itself. */
int rg_comm_info(const struct rg_comm *comm, struct rg_member_info *info_out);

/* 1: two buffers have a byte in common. */
int rg_buffers_overlap(const void *a, size_t a_bytes, const void *b,
                       size_t b_bytes);
/* RG_OK, or why nothing can be launched: out of the group. */
int rg_comm_check(const struct rg_comm *comm);
/* So many more invocations have been handed to the device. */
void rg_comm_count(struct rg_comm *comm, uint64_t launches);
/*
 * Called before a launch on a stream: the communicator's invocations are one
 * sequence, so a new stream follows the last one. Nothing to do in capture.
 */
int rg_comm_enter(struct rg_comm *comm, struct rg_stream *stream);
/* The same for a launch of so many seqs, also in capture. */
int rg_comm_take_turn(struct rg_comm *comm, struct rg_stream *stream,
                      uint64_t seqs);
/* A stream is going away: no communicator may follow it any more. */
void rg_comm_forget_stream(struct rg_stream *stream);

/* What makes a plan of the view, all routes found. */
struct rg_plan_input rg_comm_plan_input(const struct rg_comm *comm,
                                        const struct rg_view *view);
/* The keeper's words for messages (plan.h), at the host's address. */
uint64_t *rg_comm_told(const struct rg_comm *comm);
/* Where the device counts them: memory of the device. */
uint64_t *rg_comm_counts(const struct rg_comm *comm);
/* Offset of the view's, or any, workspace generation in the region. */
uint64_t rg_comm_workspace(const struct rg_comm *comm, uint32_t generation);
/*
 * The device's completed seq. On CUDA a device call that runs beside all
 * streams, so also while a team is parked; not for the control thread and the
 * recovery worker, which make none then.
 */
int rg_comm_completed(struct rg_comm *comm, uint64_t *seq_out);

#endif
