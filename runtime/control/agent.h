/*
 * The agent: one rank's side of the control plane. A pure machine (machine.h).
 * It stamps and forwards what its caller asks, follows the coordinator through
 * a view change and delivers to its caller what that calls for, in order and
 * at most once: PREPARE, VIEW, ACTIVATE, ERROR, GATHERED.
 */
#ifndef RG_CONTROL_AGENT_H
#define RG_CONTROL_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/control/machine.h"

struct rg_agent;

struct rg_agent_config {
    int coordinator;      /* world rank of the process that runs it */
    uint32_t incarnation; /* of this process in its slot, >= 1 */
    uint64_t form_ms;     /* bound on joining; then ERROR(RG_ETIMEDOUT) */
};

/* Null when out of memory. */
struct rg_agent *rg_agent_create(const struct rg_agent_config *config);
void rg_agent_destroy(struct rg_agent *agent);

/* Appends what follows from `input`. Failures show in effects->rc. */
void rg_agent_step(struct rg_agent *agent, const struct rg_input *input,
                   struct rg_effects *effects);

/* The active view, borrowed until the next step; null: none. */
const struct rg_view *rg_agent_view(const struct rg_agent *agent,
                                    uint32_t group);
/* Whether this group is known: joined and not left. */
int rg_agent_has_group(const struct rg_agent *agent, uint32_t group);
/* One line: term, epoch, phase and what it waits for; always terminated. */
void rg_agent_describe(const struct rg_agent *agent, uint32_t group, char *text,
                       size_t bytes);
/* Messages dropped as stale or unexpected. */
uint64_t rg_agent_dropped(const struct rg_agent *agent);

#endif
