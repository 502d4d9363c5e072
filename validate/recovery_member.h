/* A worker of recovery.*, as its parts share it; one process is one member. */
#ifndef RG_VALIDATE_RECOVERY_MEMBER_H
#define RG_VALIDATE_RECOVERY_MEMBER_H

#include <pthread.h>

#include "harness/probe.h"
#include "harness/worker.h"
#include "validate/blocks.h"
#include "validate/recovery.h"

/* Elements that carry votes: their sums are what all members decide by. */
enum rg_vote {
    RG_VOTE_ADMIT = 0, /* I see ranks that wait to be let in */
    RG_VOTE_VOUCH,     /* I know that who is lost for good has ended */
    RG_VOTE_LATE,      /* the time is over */
    RG_VOTE_PENDING,   /* faults are still to come */
    RG_VOTE_COUNT
};

/* The fault plan, as far as this member has to carry it out. */
struct rg_recovery_faults {
    pthread_mutex_t lock; /* of the plan: the probe has its own thread */
    struct rg_fault_plan *plan;
    int end;          /* of the entries at views that this process sees to */
    uint64_t dropped; /* ranks to which this one sends nothing */
    int abandoned;    /* the device has failed: nothing more to do here */
    /* A fault in the midst of a launch is committed by a thread. */
    pthread_t mid_thread;
    int mid_armed;
    int mid_entry;
    struct rg_fault mid_fault;
    uint64_t launched; /* 0, 1 while the launch is under way, 2 behind it */
};

struct rg_recovery_member {
    struct rg_worker *worker;
    const struct rg_job *job;
    const struct rg_recovery_scenario *scenario;
    struct rg_recovery_faults faults;
    struct rg_context *context;
    struct rg_comm *comm;
    struct rg_stream *stream;
    struct rg_graph *graph;
    unsigned char *send; /* device memory */
    unsigned char *recv;
    unsigned char *host;                       /* as large as one of them */
    struct rg_block_call calls[RG_COLL_COUNT]; /* the step's collectives */
    int ncalls;
    struct rg_probes probes;
    struct rg_transfer_request request; /* theirs, in every step */
    struct rg_recovery_report *report;
    struct rg_recovery_line *lines;  /* behind the report */
    uint64_t votes[RG_VOTE_COUNT];   /* in the next step's input */
    uint64_t counted[RG_VOTE_COUNT]; /* all members', in the last committed */
    uint64_t launch_ns;              /* from the last launch to its end */
    int launches;                    /* of the step at hand */
    int aborted;                     /* the last step was */
    /* As committed last. */
    uint64_t first_epoch; /* of all */
    uint64_t epoch;
    uint64_t participants;
    int steps_in_epoch;
    int settled;      /* steps in which nothing was left to happen */
    uint64_t failed;  /* slots that a notice has named, in this epoch */
    uint64_t vouched; /* ranks, lost for good, that all have vouched for */
};

/* ---- faults ------------------------------------------------------------- */

/* RG_OK, or as rg_fault_plan_create(). */
int rg_recovery_faults_create(struct rg_recovery_member *self);
void rg_recovery_faults_destroy(struct rg_recovery_member *self);
/* Carries out what is due at this moment of the step that begins with seq. */
void rg_recovery_at(struct rg_recovery_member *self, enum rg_fault_phase phase,
                    uint64_t seq);
/* The same for a moment in a change of the group; on any thread. */
void rg_recovery_probe(void *member, enum rg_phase phase, uint64_t epoch);
/* Around a launch: faults that are due in its midst. */
void rg_recovery_mid_begin(struct rg_recovery_member *self, uint64_t seq);
void rg_recovery_mid_end(struct rg_recovery_member *self);
/* Links work again to the ranks in the bitmap. */
void rg_recovery_heal(struct rg_recovery_member *self, uint64_t ranks);
/* Faults that will hit this rank, or that it will commit for absent ones. */
int rg_recovery_pending(struct rg_recovery_member *self, uint64_t seq);

/* ---- steps -------------------------------------------------------------- */

/* Bytes of one output or input. */
size_t rg_recovery_bytes(const struct rg_recovery_scenario *scenario);
/* What the scenario's probes ask for, if it has any. */
int rg_recovery_probes_create(struct rg_recovery_member *self);
/* Memory of the scenario's collectives, if it has any. */
int rg_recovery_calls_create(struct rg_recovery_member *self);
void rg_recovery_calls_destroy(struct rg_recovery_member *self);
/* Captures the graph, if there is to be one. */
int rg_recovery_capture(struct rg_recovery_member *self);
/*
 * One step: inputs, launches, outcomes, the check of what is committed. RG_OK
 * or the status of the call that failed.
 */
int rg_recovery_step(struct rg_recovery_member *self);

/*
 * Where failures are only named (RG_MODE 1 and 2), whoever has been waiting in
 * vain hears the names and asks for the change without them; all members do.
 * RG_OK, or out of the group, or RG_ETIMEDOUT: no names.
 */
int rg_recovery_remove_failed(struct rg_recovery_member *self);

/* ---- census ------------------------------------------------------------- */

void rg_census_take(struct rg_census *census_out);
/* The same, when it is no more than before, or after a while. */
void rg_census_settle(const struct rg_census *before,
                      struct rg_census *census_out);

#endif
