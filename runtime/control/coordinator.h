/*
 * The coordinator: owns the membership of every group and publishes its views.
 * A pure machine (machine.h); exactly one process runs it at a time.
 *
 * A view change is a flush with a decision point:
 *
 *   coordinator                                  each member
 *     PREPARE(e+1, workspace)              -->   stops claiming
 *                                          <--   QUIESCED(completed, claimed)
 *     VIEW(e+1, committed = min completed,
 *          first = 1 + max claimed)        -->   kept, provisional
 *                                          <--   VIEW_ACK
 *     ACTIVATE(e+1)                        -->   in force
 *
 * Every seq in (committed, first) is aborted at every member; the new view
 * serves seq >= first only. A group's first view is made in the same way once
 * all ranks of the job have joined, except that its first seq is given.
 *
 * Messages of another term, of an epoch that is not the one in progress or of
 * another incarnation are counted and dropped.
 */
#ifndef RG_CONTROL_COORDINATOR_H
#define RG_CONTROL_COORDINATOR_H

#include <stdint.h>

#include "runtime/control/machine.h"

struct rg_coordinator;

struct rg_coordinator_config {
    int world_size;
    uint64_t term;       /* >= 1 */
    uint32_t workspaces; /* generations per communicator */
};

/* Null when out of memory. */
struct rg_coordinator *
rg_coordinator_create(const struct rg_coordinator_config *config);
void rg_coordinator_destroy(struct rg_coordinator *coordinator);

/* Appends what follows from `input`. Failures show in effects->rc. */
void rg_coordinator_step(struct rg_coordinator *coordinator,
                         const struct rg_input *input,
                         struct rg_effects *effects);

/* The view in force, borrowed until the next step; null: none. */
const struct rg_view *
rg_coordinator_view(const struct rg_coordinator *coordinator, uint32_t group);
/* Whether no group has a member any more. */
int rg_coordinator_is_idle(const struct rg_coordinator *coordinator);
/* Messages dropped as stale or unexpected. */
uint64_t rg_coordinator_dropped(const struct rg_coordinator *coordinator);

#endif
