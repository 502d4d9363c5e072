/*
 * recovery.*: what rank_main of a supervised worker does, and what it reports.
 * The cases (cases_recovery.c) run in the supervisors, which never touch the
 * group that is tested; the workers (recovery_worker.c) are processes of their
 * own, see harness/supervisor.h.
 */
#ifndef RG_VALIDATE_RECOVERY_H
#define RG_VALIDATE_RECOVERY_H

#include <stdint.h>

enum { RG_RECOVERY_ROUND = 10, RG_RECOVERY_ADMIT = 8 };
enum { RG_RECOVERY_PLAN_MAX = 2048, RG_RECOVERY_RANKS_MAX = 64 };

/* The payload of a scenario. */
struct rg_recovery_scenario {
    int32_t device; /* enum rg_device_kind */
    int32_t team_width;
    int32_t teams;
    int32_t invocations; /* by each rank that lives */
    int32_t count;       /* elements of each, of type u32 */
    int32_t replay;      /* one graph, captured once, is replayed */
    int32_t stall_ms;    /* detect silence so fast; 0: the defaults */
    /*
     * How often a rank comes back: so many rounds of RG_RECOVERY_ROUND
     * invocations, in each of which all wait, behind the one number
     * RG_RECOVERY_ADMIT, until the group is complete again.
     */
    int32_t rejoins;
    char plan[RG_RECOVERY_PLAN_MAX]; /* text of a fault plan */
};

/* What a rank saw of one invocation; zeroes: it was no member then. */
struct rg_recovery_line {
    uint64_t seq;
    uint64_t epoch;
    uint64_t participants; /* a bitmap of slots */
    uint64_t digest;       /* of the output, when committed, else 0 */
    int32_t state;         /* enum rg_outcome_state */
    int32_t wrong;         /* elements that are not what they must be */
};

/* In front of the lines. */
struct rg_recovery_report {
    uint64_t epoch;
    uint64_t members; /* a bitmap of world ranks */
    int32_t lines;
    int32_t captures;
    int32_t status; /* why it is out of the group; RG_OK: it is not */
    int32_t unused;
};

/* main() of a worker: returns its exit code. */
int rg_recovery_worker(void);

#endif
