/*
 * Bugs planted between the machines and the world, to prove that the oracle
 * finds them. The machines themselves stay as they are.
 */
#ifndef RG_SIM_PLANT_H
#define RG_SIM_PLANT_H

#include "runtime/control/machine.h"

struct sim_world;

enum sim_plant {
    SIM_PLANT_NONE = 0,
    SIM_PLANT_STALE_EPOCH,     /* agents follow coordinators of the past */
    SIM_PLANT_NO_QUORUM,       /* the unreachable count as dead */
    SIM_PLANT_OTHER_RULES,     /* nobody hears of a member's other rules */
    SIM_PLANT_COMMIT_MAX,      /* committed_seq is the maximum completed */
    SIM_PLANT_NO_FIRST_SEQ,    /* first_seq follows the committed one */
    SIM_PLANT_LOCAL_CLAIM,     /* first_seq follows the coordinator's claims */
    SIM_PLANT_REUSE_WORKSPACE, /* the quarantine is not kept */
    SIM_PLANT_PAIR_SENT,       /* what has gone to a member is done */
    SIM_PLANT_COUNT
};

/*
 * SIM_PLANT_STALE_EPOCH: an agent to which every term looks newer than all
 * before. What it is told is translated, and so are its answers.
 */
struct sim_plant_state {
    int from;           /* who was heard last */
    uint64_t term;      /* in which term of its own */
    uint64_t told_term; /* as the agent was told */
};

/* The plant of that name, SIM_PLANT_COUNT if there is none. */
enum sim_plant sim_plant_find(const char *name);
const char *sim_plant_name(enum sim_plant plant);

/* What a machine sends to `to`, as the bug would have it. Takes and gives one
 * reference. */
struct rg_message *sim_plant_sent(struct sim_world *world, int rank, int to,
                                  struct rg_message *message);
/* What an agent receives. Takes and gives one reference. */
struct rg_message *sim_plant_received(struct sim_world *world, int rank,
                                      int from, struct rg_message *message);
/* A coordinator's window is about to close. */
void sim_plant_window(struct sim_world *world, int rank);

#endif
