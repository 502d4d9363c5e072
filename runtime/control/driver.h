/*
 * The driver: one thread per context that owns every control socket and timer
 * and runs the coordinator (world rank 0 first) and the agent. It makes no
 * device call. All functions below may be called from any thread; they hand a
 * request to the driver thread and, where they say so, wait for the answer.
 *
 * A group goes through a view change like this (protocol: coordinator.h):
 *
 *   driver                              caller (one at a time per group)
 *     RG_EVENT_PREPARE(epoch, ...)  -->   close the control word
 *                                   <--   rg_driver_quiesced()
 *     RG_EVENT_VIEW(view)           -->   routes and plan made ready
 *                                   <--   rg_driver_view_ready()   (VIEW_ACK)
 *     RG_EVENT_ACTIVATE(epoch)      -->   open the control word
 */
#ifndef RG_CONTROL_DRIVER_H
#define RG_CONTROL_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/control/view.h"
#include "runtime/core/settings.h"

struct rg_driver;

struct rg_driver_config {
    int world_rank;
    int world_size;
    uint32_t process; /* which life of this rank this is; 0 is 1 */
    /* The launcher's exchange, used inside rg_driver_create only. */
    int (*allgather)(void *arg, const void *in, void *out, size_t bytes);
    void *allgather_arg;
    /*
     * Instead of the exchange, for a process started into a running job: the
     * ticket of any of its ranks (rg_driver_ticket). `process` must then be
     * higher than that of this rank's last process.
     */
    const unsigned char *ticket;
    size_t ticket_bytes;
    const char *host_id;                /* copied */
    const struct rg_settings *settings; /* copied */
};

enum rg_event_kind {
    RG_EVENT_NONE = 0,
    RG_EVENT_PREPARE,  /* epoch: the one to come; workspace: its generation */
    RG_EVENT_VIEW,     /* view: provisional, owned by the receiver */
    RG_EVENT_ACTIVATE, /* epoch: now in force */
    /*
     * Out of the group: RG_EISOLATED (this side has no majority, or the others
     * go on without this member), RG_ECLOSED (deactivated as planned); or the
     * end of the group: RG_EPOLICY, RG_ENOSPC.
     */
    RG_EVENT_ISOLATED,
    /*
     * Something for the members to decide: status is 1 when `slots` wait to be
     * let in (rg_driver_change), 2 when they have failed and are still members
     * (RG_MODE is not 0).
     */
    RG_EVENT_NOTICE,
    RG_EVENT_ERROR /* status, e.g. RG_EPOLICY; the group is unusable */
};

struct rg_group_event {
    enum rg_event_kind kind;
    uint64_t epoch;
    uint32_t workspace;
    int status;
    struct rg_view *view;
    struct rg_bitset slots; /* NOTICE; owned by the receiver, else zeroed */
};

/*
 * RG_FENCE: unset, or "kill": processes of this host that are left behind are
 * killed. RG_OK, or RG_ECONFIG (logged).
 */
int rg_driver_fences(int rank, int *fences_out);

/*
 * Collective over the world, unless there is a ticket. Opens the listening
 * sockets (TCP for control, a UNIX socket for same-host lifelines and
 * descriptors), exchanges addresses and a job secret through `allgather`,
 * starts the thread, connects to the coordinator and to same-host peers. RG_OK,
 * RG_ESYSTEM, RG_ETIMEDOUT.
 */
int rg_driver_create(const struct rg_driver_config *config,
                     struct rg_driver **driver_out);
/*
 * Says LEAVE for all groups, stops the thread, closes all. Where the
 * coordinator runs it goes on serving until every member of every group has
 * left, at most deadline_ms. Accepts null.
 */
void rg_driver_destroy(struct rg_driver *driver);

/*
 * What a process needs to enter this job: the addresses of all ranks and the
 * secret of the job, so keep it to yourself. Freed by the caller.
 */
int rg_driver_ticket(struct rg_driver *driver, unsigned char **ticket_out,
                     size_t *bytes_out);

enum { RG_DRIVER_SECRET_BYTES = 32 };

/* The job's secret, and the numeric address that others reach this rank by. */
void rg_driver_identity(const struct rg_driver *driver,
                        unsigned char secret_out[RG_DRIVER_SECRET_BYTES],
                        char address_out[RG_ADDRESS_BYTES]);

/*
 * Asks to be a member of `group` (ids are chosen by the caller, the same at
 * every rank). The first view forms when all `world_size` ranks have asked, or
 * RG_EVENT_ERROR comes when what they say is inconsistent (RG_ECONFIG).
 * Returns at once; events follow.
 */
struct rg_join {
    uint32_t group;
    int capacity;       /* >= world_size, the same everywhere */
    uint64_t first_seq; /* of the first view, the same everywhere */
    /*
     * 1: to a group that runs, as a new incarnation of this rank in its old
     * slot, after RG_EVENT_ISOLATED and rg_driver_leave(), or in a process
     * started anew. What the last incarnation had written to must be written
     * to no more. RG_EVENT_PREPARE comes when the members let it in.
     */
    int rejoin;
    const char *policy; /* copied; rank 0's is published */
    struct rg_member_info info;
};
int rg_driver_join(struct rg_driver *driver, const struct rg_join *join);
/* Leaves the group; pending events are dropped. */
int rg_driver_leave(struct rg_driver *driver, uint32_t group);

/* The group's next event; RG_EPENDING after timeout_ms without one. */
int rg_driver_next(struct rg_driver *driver, uint32_t group, int timeout_ms,
                   struct rg_group_event *event_out);
/*
 * The answers of the diagram above. `epoch` is the event's. A change may begin
 * again: every PREPARE and every VIEW that comes is answered, the last VIEW
 * before ACTIVATE is the one that counts. `pairs` (null: none) is what this
 * member has sent to others in this epoch and what has come to it; view->pairs
 * says what of it is done at both ends. `rules` is a hash of what this member
 * makes of the view's policy: where members differ, all get
 * RG_EVENT_ISOLATED(RG_EPOLICY), or RG_EVENT_ERROR if it is the first view.
 */
int rg_driver_quiesced(struct rg_driver *driver, uint32_t group, uint64_t epoch,
                       uint64_t completed, uint64_t claimed,
                       const struct rg_pairs *pairs);
int rg_driver_view_ready(struct rg_driver *driver, uint32_t group,
                         uint64_t epoch, uint64_t rules);

/*
 * Planned transition to a new selection text: collective, same text at every
 * active member, else every member gets RG_EVENT_ERROR(RG_EPOLICY) for this
 * request and the old view stays. Leads to PREPARE, VIEW, ACTIVATE.
 */
int rg_driver_propose_policy(struct rg_driver *driver, uint32_t group,
                             const char *policy);

/*
 * Planned change of the members: collective like a policy, with the same
 * slots (of the group's capacity; all clear is fine) at every active member.
 * Those named are deactivated and get RG_EVENT_ISOLATED(RG_ECLOSED); those
 * that wait are let in. With `vouch`, slots named that have failed before are
 * taken to be harmless from now on (their processes have ended, their hosts
 * are gone). RG_EVENT_ERROR(RG_EINVAL) if the members differ.
 */
int rg_driver_change(struct rg_driver *driver, uint32_t group,
                     const struct rg_bitset *leavers, int vouch);

/*
 * What the device side sees. A stall: a wait in `seq` for these slots has run
 * into its deadline; unreachable: a route to these slots has failed, or, with
 * no slot set, the epoch is to end for what nobody is to blame for. What
 * follows (PREPARE, as a rule) is decided for the whole group.
 */
int rg_driver_report_stall(struct rg_driver *driver, uint32_t group,
                           uint64_t seq, const struct rg_bitset *slots);
int rg_driver_report_unreachable(struct rg_driver *driver, uint32_t group,
                                 const struct rg_bitset *slots);
/*
 * Every seq up to `completed` has completed here, and whether captured graphs
 * are alive. Goes out with the next heartbeat, at once when `waits` says that
 * somebody waits for rg_driver_committed().
 */
int rg_driver_progress(struct rg_driver *driver, uint32_t group,
                       uint64_t completed, int has_graphs, int waits);
/*
 * Waits until every seq of the view in force up to `seq` has completed at
 * every member: RG_OK. RG_ETIMEDOUT; RG_EABORTED when a change has begun
 * before; RG_EISOLATED.
 */
int rg_driver_wait_committed(struct rg_driver *driver, uint32_t group,
                             uint64_t seq, int timeout_ms);
/*
 * Every seq of `epoch` up to *seq_out has completed at every member, as far as
 * is known here. RG_OK; RG_EUNAVAILABLE: that view is not, or no longer, the
 * one in force.
 */
int rg_driver_committed(struct rg_driver *driver, uint32_t group,
                        uint64_t epoch, uint64_t *seq_out);
/* After RG_EVENT_ISOLATED: this rank's device writes nowhere any more. */
int rg_driver_fenced(struct rg_driver *driver, uint32_t group);

/*
 * Host-side all-gather among the active members in rank order, matched by
 * call order. Waits. `bytes` <= 65536 and equal everywhere, else all members
 * get RG_EINVAL for this call. RG_ETIMEDOUT after timeout_ms, in which time
 * that the process was stopped is not counted: then every member gets that for
 * this call that has not been answered before, and all are at the next one.
 */
int rg_driver_gather(struct rg_driver *driver, uint32_t group, const void *in,
                     size_t bytes, void *out, int timeout_ms);

/*
 * File descriptors between same-host ranks over the UNIX sockets
 * (SCM_RIGHTS). The offered descriptor stays the caller's (duplicated); a
 * fetch waits until the peer has offered. RG_ENOTSUP: not on this host.
 */
int rg_driver_offer_fd(struct rg_driver *driver, int fd);
int rg_driver_fetch_fd(struct rg_driver *driver, int world_rank, int timeout_ms,
                       int *fd_out);

/*
 * For fault plans. drop_link: nothing is sent to that rank's process over
 * control links as long as it is on; the way back is not touched. abandon:
 * ends the driver's work as the death of its process would, without a word;
 * every call fails from then on, and only destroy makes sense.
 */
int rg_driver_drop_link(struct rg_driver *driver, int world_rank, int on);
void rg_driver_abandon(struct rg_driver *driver);

/* One line a group for rg_comm_describe(): term, epoch, status, waiting for. */
int rg_driver_describe(struct rg_driver *driver, uint32_t group, char *text,
                       size_t bytes);

#endif
