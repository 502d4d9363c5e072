/*
 * The coordinator: owns the membership of groups and publishes their views. A
 * pure machine (machine.h). Every process has one; the one of rank `first`
 * forms the groups, and a group has one coordinator at a time: the one whose
 * ballot (view.h) a quorum of the group has promised to follow.
 *
 * A view change is a flush with a decision point:
 *
 *   coordinator                                  each live member
 *     PREPARE(e+1, workspace)              -->   stops claiming
 *                                          <--   QUIESCED(completed, claimed)
 *     VIEW(e+1, committed = min completed,
 *          first = 1 + max claimed)        -->   kept, provisional
 *                                          <--   VIEW_ACK
 *     ACTIVATE(e+1)                        -->   in force
 *
 * Every seq in (committed, first) is aborted at every member; the new view
 * serves seq >= first only. Of messages between two members those are done
 * that both ends have counted (pairs.h). A group's first view is made in the
 * same way once all ranks of the job have joined, except that its first seq is
 * given.
 *
 * Who has not answered within the window is a culprit and leaves; so does who
 * is gone, and who has never claimed the seq that others wait in. Whoever
 * answered votes, also on its own removal. Without a quorum of the view in
 * force (rg_view_has_quorum) nothing is proposed and nothing becomes active.
 *
 * Succession:
 *
 *   an agent's STAND -> CLAIM(term) --> GRANT(highest view accepted), or
 *                                       REFUSE(a higher ballot)
 *   quorum of grants: the highest view is proposed again, unchanged, under the
 *   new ballot; only when it is in force may anything change.
 *
 * Messages of another term, of an epoch that is not the one in progress or of
 * another incarnation are counted and dropped. All are repeated at each tick
 * until answered, so that the network may lose, double and reorder them.
 */
#ifndef RG_CONTROL_COORDINATOR_H
#define RG_CONTROL_COORDINATOR_H

#include <stdint.h>

#include "runtime/control/machine.h"

struct rg_coordinator;

/* What follows from a failure. */
enum rg_mode {
    RG_MODE_SYNC = 0,   /* culprits are deactivated and all synchronise */
    RG_MODE_DEACTIVATE, /* culprits are named; they go with the next CHANGE */
    RG_MODE_MANAGED     /* failures are named; CHANGE says who goes */
};

struct rg_coordinator_config {
    int rank;  /* world rank of this process */
    int first; /* world rank that forms groups while it lives */
    int world_size;
    enum rg_mode mode;
    uint32_t workspaces;   /* generations per communicator, >= 2 */
    uint32_t routes;       /* a pair can be tried over, >= 1 */
    uint64_t heartbeat_ms; /* between beats and repetitions */
    uint64_t miss_ms;      /* silence after which a member is probed */
    uint64_t window_ms;    /* for answers after a failure */
    uint64_t plan_ms;      /* for answers in a planned change */
};

/* Null when out of memory. */
struct rg_coordinator *
rg_coordinator_create(const struct rg_coordinator_config *config);
void rg_coordinator_destroy(struct rg_coordinator *coordinator);

/* Appends what follows from `input`. Failures show in effects->rc. */
void rg_coordinator_step(struct rg_coordinator *coordinator,
                         const struct rg_input *input,
                         struct rg_effects *effects);

/* Hands every group over to another member: this process is to end. */
void rg_coordinator_retire(struct rg_coordinator *coordinator,
                           struct rg_effects *effects);

/* The view in force, borrowed until the next step; null: none. */
const struct rg_view *
rg_coordinator_view(const struct rg_coordinator *coordinator, uint32_t group);
/* Whether it leads no group. */
int rg_coordinator_is_idle(const struct rg_coordinator *coordinator);
/* Whether it leads the group and no change of it is going on. */
int rg_coordinator_is_steady(const struct rg_coordinator *coordinator,
                             uint32_t group);
/* Messages dropped as stale or unexpected. */
uint64_t rg_coordinator_dropped(const struct rg_coordinator *coordinator);

#endif
