/*
 * Inside of a communicator: its objects at stable addresses, the view it runs
 * under, and how a view becomes routes and a plan.
 */
#ifndef RG_EXEC_COMM_H
#define RG_EXEC_COMM_H

#include "runtime/exec/context.h"
#include "runtime/exec/plan_slot.h"

/* What teams and host share in mapped host memory. */
struct rg_comm_mapped {
    uint64_t abort_epoch; /* the highest epoch to abort, never cleared */
    struct rg_mailbox mailbox __attribute__((aligned(RG_LINE)));
};

struct rg_comm {
    struct rg_context *context;
    struct rg_comm *next; /* in the context's list */
    uint32_t group;
    struct rg_layout layout;
    struct rg_view *view;    /* in force; owned */
    struct rg_route *routes; /* [capacity], by dense rank; owned */
    struct rg_plan *plan;    /* host copy of the one in force; owned */
    int plan_index;
    int sharers;             /* most ranks of the group on one device */
    int graphs;              /* captured and alive */
    struct rg_stream *last;  /* where it was last launched, or null */
    uint64_t control_offset; /* of the device block in the region */
    uint64_t workspace_offset;
    struct rg_comm_dev *dev;              /* device block, device address */
    struct rg_comm_mapped *mapped;        /* host address */
    struct rg_comm_mapped *mapped_device; /* as teams see it */
};

/*
 * Called before a launch on a stream: the communicator's invocations are one
 * sequence, so a new stream follows the last one. Nothing to do in capture.
 */
int rg_comm_enter(struct rg_comm *comm, struct rg_stream *stream);
/* A stream is going away: no communicator may follow it any more. */
void rg_comm_forget_stream(struct rg_stream *stream);

/* Brings `view` in force: routes, plan, control word. Takes the view. */
int rg_comm_apply(struct rg_comm *comm, struct rg_view *view);

#endif
