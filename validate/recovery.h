/*
 * recovery.*: ranks are killed, stopped, cut off, started anew; the others
 * must go on and agree.
 *
 *     cases_recovery.c    the matrix: fault plans, and what must follow
 *       recovery_judge.c    what all ranks reported, against that
 *     - - - - - - - - - - supervisors above, workers below - - - - - - - -
 *     recovery_worker.c   a rank's life: the loop of steps
 *       recovery_faults.c   the faults of the plan, each at its moment
 *       recovery_step.c     one step: inputs, launches, outcomes, the check
 *       recovery_census.c   what a process holds, to see what leaks
 *
 * Cases run in the supervisors (harness/supervisor.h), which never touch the
 * group that is tested. Slots are world ranks: the groups here are made of all
 * ranks at once, and who comes back gets its slot.
 */
#ifndef RG_VALIDATE_RECOVERY_H
#define RG_VALIDATE_RECOVERY_H

#include <stdint.h>

#include "harness/supervisor.h"
#include "harness/worker.h"
#include "validate/suite.h"
#include "validate/work.h"

enum {
    RG_RECOVERY_PLAN_MAX = 16384,
    RG_RECOVERY_SETTINGS_MAX = 256,
    RG_RECOVERY_RANKS_MAX = 64,
    RG_RECOVERY_LINES_MAX = 16384
};

/* All launches of a step but the last are transfer probes, which spend their
 * time in this. */
enum rg_recovery_probe {
    RG_PROBE_NONE = 0,
    RG_PROBE_PUT,  /* large payloads */
    RG_PROBE_WAIT, /* short waits, one after the other */
    RG_PROBE_FLUSH /* a source that is used again and again */
};

/* The payload of a scenario. */
struct rg_recovery_scenario {
    struct rg_work work;
    int32_t device; /* enum rg_device_kind */
    int32_t team_width;
    int32_t teams;
    int32_t steps;  /* the first that may be the last */
    int32_t batch;  /* launches a step */
    int32_t count;  /* elements of each; a few of them are votes */
    int32_t dtype;  /* RG_u32 or RG_f32 */
    int32_t replay; /* one graph, captured once, is replayed */
    int32_t probe;  /* enum rg_recovery_probe */
    /* A bit for each enum rg_collective: a step launches one of each, of so
     * many elements a block, in front of its last launch. With `replay` all of
     * them are in the one graph. */
    uint32_t collectives;
    int32_t block;
    int32_t root; /* a slot; of those that have one */
    /* A rank that is out of the group asks to be let in again; dropped links
     * then work again. Else it is out for good. */
    int32_t comes_back;
    int32_t churn;    /* every so many steps a member leaves in order; 0: no */
    int32_t mode;     /* RG_MODE of the settings */
    int32_t warm;     /* epochs, after which nothing may grow; 0: none */
    int32_t limit_ms; /* from the begin, after which a step is the last */
    int32_t backend;  /* enum rg_backend, as a flag says it */
    uint64_t seed;
    uint64_t begin_ns; /* rg_now_ns() of this rank's host */
    uint64_t members;  /* at the end: a bitmap of ranks */
    char settings[RG_RECOVERY_SETTINGS_MAX]; /* "NAME=VALUE;...", or empty */
    char plan[RG_RECOVERY_PLAN_MAX];         /* text of a fault plan */
};

/* What a rank saw of one invocation. */
struct rg_recovery_line {
    uint64_t seq;
    uint64_t epoch;
    uint64_t participants; /* a bitmap of slots */
    uint64_t digest;       /* of an output that was checked, else 0 */
    int32_t state;         /* enum rg_outcome_state */
    int32_t wrong;         /* elements that are not what they must be */
};

/* What a process holds. */
struct rg_census {
    int32_t threads;
    int32_t descriptors;
    int32_t shared; /* mappings of shared memory */
    int32_t rss_kb;
};

/* In front of the lines. */
struct rg_recovery_report {
    uint64_t epoch;
    uint64_t members; /* a bitmap of world ranks */
    int32_t lines;
    int32_t captures;
    int32_t status;  /* why it is out of the group; RG_OK: it is not */
    int32_t returns; /* it was out, and let in again */
    int32_t admits;  /* planned changes that let others in */
    int32_t leaves;  /* planned changes in which somebody left */
    int32_t backend; /* enum rg_backend of the last view */
    int32_t unused;
    /* enum rg_route_kind, by world rank: in the first view, and in the last. */
    uint8_t first_routes[RG_RECOVERY_RANKS_MAX];
    uint8_t routes[RG_RECOVERY_RANKS_MAX];
    struct rg_census before; /* there was a context */
    struct rg_census warm;   /* all members, some epochs later */
    struct rg_census end;    /* the last step is done */
    struct rg_census after;  /* there was a context */
};

static inline const struct rg_recovery_line *
rg_recovery_lines(const struct rg_recovery_report *report)
{
    return (const struct rg_recovery_line *)(report + 1);
}

/*
 * Looks at a plan that an option names (rg_fault_plan_load), for so many ranks
 * (0: not known yet). RG_OK, or another status with the cause in `text`.
 */
int rg_recovery_check_plan(const char *file_or_text, int ranks, char *text,
                           size_t bytes);

/* main() of a worker: returns its exit code. */
int rg_recovery_worker(struct rg_worker *worker);

/* A scenario that was played, with what must be true of it. */
struct rg_recovery_played {
    const struct rg_recovery_scenario *scenario;
    const struct rg_supervision *supervision;
    struct rg_fault_plan *plan;
    int bootstrap; /* a rank dies before there is a group: the others hear it */
    int aborts;    /* each witness has seen an invocation aborted */
    int breaks;    /* links of the plan break: others take their place */
    /* Bitmaps of ranks: must have been let in again; must never have been. */
    uint64_t out, stay;
    /* Which each witness that lives through all has to see, in order: members
     * of committed invocations, of each stage at least so many. */
    uint64_t witnesses;
    int nstages;
    uint64_t stages[3];
    int least[3]; /* 0: one */
};

/*
 * Fails the case unless: all faults of the plan were injected; every worker
 * ended as planned; those who are members at the end hold the same view, of
 * the expected members; every invocation has the same outcome, epoch and
 * participants at all that know it; a committed one has the right bits, the
 * same everywhere; the last one is committed by all; all stages were seen;
 * whoever was out is back; a pair whose link broke has gone from P2P to the
 * host proxy, and no other pair; nothing leaks.
 */
void rg_recovery_judge(const struct rg_recovery_played *played,
                       struct rg_case_result *result);

#endif
