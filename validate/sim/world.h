/*
 * A job of many processes in one: the real agents and coordinators under a
 * simulated clock, network, operating system and program. Everything follows
 * from the seed.
 *
 * One process is an agent, a coordinator and a program that launches
 * collectives (program.h). Processes of one host see each other die; all
 * others have only messages. The first broken invariant (oracle.h) ends a run.
 */
#ifndef RG_SIM_WORLD_H
#define RG_SIM_WORLD_H

#include <stdint.h>

#include "runtime/control/agent.h"
#include "runtime/control/coordinator.h"
#include "validate/sim/oracle.h"
#include "validate/sim/plant.h"
#include "validate/sim/program.h"
#include "validate/sim/queue.h"
#include "validate/sim/random.h"

enum {
    SIM_GROUP = 1,
    SIM_SIDES = 2, /* of a partition */
    SIM_MS = 1000, /* microseconds */
    SIM_WORKSPACES = 3,
    /* The settings of a run, in ms: short, since time is what runs cost. */
    SIM_HEARTBEAT_MS = 200,
    SIM_MISS_MS = 1000, /* the most; see miss_ms */
    SIM_WINDOW_MS = 400,
    SIM_ISOLATE_MS = 3000,
    SIM_FORM_MS = 6000,
    SIM_PLAN_MS = 2000
};

enum sim_machine { SIM_AGENT, SIM_COORDINATOR, SIM_MACHINES };

/* A directed link of the control plane that carries nothing for a time. */
struct sim_drop {
    int from;
    int to;
    uint64_t until_us;
};

struct sim_process {
    struct rg_agent *agent;
    struct rg_coordinator *coordinator;
    struct sim_program program;
    uint32_t life; /* 1: the first process of this rank */
    int is_dead;
    uint64_t died_us;
    uint64_t exits_us;   /* its memory can be written by it until then */
    uint64_t stopped_us; /* it does nothing before that time */
    int side;
    uint32_t timers[SIM_MACHINES][RG_TIMER_WINDOW + 1]; /* set so often */
};

struct sim_network {
    uint32_t loss; /* chances in 10000 */
    uint32_t doubling;
    uint32_t slow; /* of a long delay */
    uint64_t slow_us;
    uint64_t delay_us;
    int is_cut[SIM_SIDES][SIM_SIDES]; /* from one side to the other */
    struct sim_drop *drops;
    size_t ndrops;
};

struct sim_options {
    int ranks;
    uint64_t seed;
    enum sim_plant plant;
    int is_verbose; /* tells the story on standard error */
};

/* What a run was about, for the summary. */
struct sim_counts {
    uint64_t events;
    uint64_t views; /* epochs that became active */
    uint64_t crashes;
    uint64_t isolated; /* members that found themselves out */
    uint64_t rejoined;
    uint64_t elected; /* views of another coordinator than the one before */
    uint64_t starved;
    int ends_active; /* members of the last view */
};

struct sim_world {
    struct sim_options options;
    struct sim_random random;
    struct sim_queue queue;
    struct sim_network network;
    struct sim_process *processes; /* [ranks] */
    struct sim_oracle oracle;
    struct sim_counts counts;
    struct rg_effects effects;
    uint64_t now_us;
    uint64_t quiet_us; /* no fault strikes after it */
    int ranks_per_host;
    int is_mild;       /* so little goes wrong that most must live on */
    int is_split;      /* side 1 must live on by itself until it is mended */
    uint64_t miss_ms;  /* silence after which somebody is missed */
    uint64_t late_us;  /* by which timers may be late */
    int recovery_kill; /* steps of changes until one kills; -1: none does */
    int retiree;       /* the slot whose planned leave is asked for */
    struct sim_plant_state *plants; /* [ranks], owned */
};

/* Runs one seed. 0, or 1 with what broke in world->oracle.verdict. */
int sim_world_run(const struct sim_options *options,
                  struct sim_counts *counts_out, char *verdict, size_t bytes);

/* ---- for the parts of a world -------------------------------------------- */

/* Whether the process runs a step now (not dead, not stopped). */
int sim_world_is_up(const struct sim_world *world, int rank);
/* The program's request to its agent; drops the reference. */
void sim_world_ask(struct sim_world *world, int rank,
                   struct rg_message *message);
/* The same, later. */
void sim_world_ask_later(struct sim_world *world, int rank, uint64_t delay_us,
                         struct rg_message *message);
/* The program's next step. */
void sim_world_step_later(struct sim_world *world, int rank, uint64_t delay_us,
                          uint32_t step);
/* Whether a message from one would arrive at the other by itself. */
int sim_world_reaches(const struct sim_world *world, int from, int to);
/* An input to the rank's coordinator. */
void sim_world_coordinate(struct sim_world *world, int rank,
                          const struct rg_input *input);
void sim_world_crash(struct sim_world *world, int rank);
void sim_world_restart(struct sim_world *world, int rank);
/* The rank whose coordinator is steady in the highest epoch, or -1. */
int sim_world_leader(const struct sim_world *world);
void sim_world_tell(const struct sim_world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
