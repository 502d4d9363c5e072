/*
 * The agent: one rank's side of the control plane. A pure machine (machine.h).
 * It stamps and forwards what its caller asks, follows the coordinator through
 * view changes and delivers to its caller what that calls for, in order and at
 * most once: PREPARE, VIEW, ACTIVATE, ERROR, GATHERED, NOTICE, EXCLUDED.
 *
 * A view becomes active here in three promises:
 *
 *   QUIESCED   nothing of the epoch in force completes here any more
 *   VIEW_ACK   this view, under this ballot, is kept until it is decided
 *   (ACTIVATE) it is decided; the promises before are fulfilled
 *
 * A ballot (view.h) once promised shuts out every lower one, so that a
 * coordinator thought dead cannot finish what its successor has begun. When
 * the coordinator is dead or silent the lowest live member stands for election
 * at once, the others later and later in their order; a claimant that gets a
 * quorum of grants takes over the highest view any of them has accepted.
 *
 * An agent that finds neither a coordinator nor an end to a change within
 * miss_ms, two windows and isolate_ms delivers EXCLUDED(RG_EISOLATED) and takes
 * no part any more; its caller may leave the group and join it again.
 */
#ifndef RG_CONTROL_AGENT_H
#define RG_CONTROL_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/control/machine.h"

struct rg_agent;

struct rg_agent_config {
    int rank;              /* world rank of this process */
    int world_size;        /* ranks of the launch */
    int coordinator;       /* world rank that forms the first view */
    uint32_t process;      /* which life of this rank this is, >= 1 */
    uint64_t form_ms;      /* bound on joining; then ERROR(RG_ETIMEDOUT) */
    uint64_t heartbeat_ms; /* between heartbeats and repetitions */
    uint64_t miss_ms;      /* silence after which the coordinator is lost */
    uint64_t window_ms;    /* the spacing of elections */
    uint64_t isolate_ms;   /* how long it hopes beyond miss_ms and 2 windows */
};

/* Null when out of memory. */
struct rg_agent *rg_agent_create(const struct rg_agent_config *config);
void rg_agent_destroy(struct rg_agent *agent);

/* Appends what follows from `input`. Failures show in effects->rc. */
void rg_agent_step(struct rg_agent *agent, const struct rg_input *input,
                   struct rg_effects *effects);

/* The active view, borrowed until the next step; null: none, or isolated. */
const struct rg_view *rg_agent_view(const struct rg_agent *agent,
                                    uint32_t group);
/* Every seq up to this one has completed at every member; 0: none. */
uint64_t rg_agent_committed(const struct rg_agent *agent, uint32_t group);
/* This member's incarnation in the group; 0: not joined. */
uint32_t rg_agent_incarnation(const struct rg_agent *agent, uint32_t group);
/* Whether this group is known: joined and not left. */
int rg_agent_has_group(const struct rg_agent *agent, uint32_t group);
/* Whether nothing is going on: in force and no change, or out for good. */
int rg_agent_is_settled(const struct rg_agent *agent, uint32_t group);
/* One line: term, epoch, phase and what it waits for; always terminated. */
void rg_agent_describe(const struct rg_agent *agent, uint32_t group, char *text,
                       size_t bytes);
/* Messages dropped as stale or unexpected. */
uint64_t rg_agent_dropped(const struct rg_agent *agent);

#endif
