/*
 * The program of one simulated process: it launches collectives, follows the
 * changes its agent tells of, and joins again when it is out.
 *
 * A collective of some seq is complete here when every active member has begun
 * it in the same view.
 */
#ifndef RG_SIM_PROGRAM_H
#define RG_SIM_PROGRAM_H

#include <stdint.h>

#include "runtime/control/message.h"

struct sim_world;
struct sim_version;

enum sim_step {
    SIM_STEP_LAUNCH,
    SIM_STEP_REJOIN,
    SIM_STEP_POLICY, /* asks for the policy of this time */
    SIM_STEP_CHANGE, /* asks to let joiners in */
    SIM_STEP_RETIRE, /* asks to deactivate world->retiree */
    SIM_STEP_LEAVE
};

enum sim_program_state {
    SIM_OUTSIDE = 0, /* not joined, or out: may join again */
    SIM_JOINING,
    SIM_ACTIVE,
    SIM_HELD, /* between PREPARE and ACTIVATE */
    SIM_ENDED /* will not come back */
};

enum { SIM_MATES = 2 }; /* pairs that a program sends and receives in */

/* What it has done in the pair with the member so far before or behind it. */
struct sim_mate {
    int slot; /* of the other; -1: nobody */
    uint64_t sent;
    uint64_t come;
};

struct sim_program {
    enum sim_program_state state;
    const struct sim_version *version; /* in force here; null: none */
    struct rg_view *coming;            /* the last VIEW; owned */
    uint64_t claimed;
    uint64_t completed;
    uint64_t committed; /* of the last view */
    int is_quiet;       /* its device writes to no workspace */
    struct sim_mate mates[SIM_MATES];
    uint64_t stuck_us; /* it launches nothing before that time */
    uint64_t waits_us; /* since when it waits for its oldest collective */
    int has_reported;
    int joins;
};

void sim_program_start(struct sim_world *world, int rank, int rejoins);
void sim_program_step(struct sim_world *world, int rank, enum sim_step step);
/* What the agent delivers. */
void sim_program_take(struct sim_world *world, int rank,
                      struct rg_message *message);
void sim_program_fini(struct sim_program *program);

#endif
