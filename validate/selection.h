/*
 * selection.backend.*: which backend a group gets, and what that means.
 *
 *     cases_selection.c     who asks for what; the judgement
 *     - - - - - - - - - - supervisors above, workers below - - - - - - - -
 *     selection_worker.c    a rank's part in a scenario
 *       blocks.c            the collectives, with what they must give
 *
 * Preferences are variables of the environment, so each worker sets its own
 * before it makes a context. A worker compares what it sees with the scenario
 * and reports the first difference.
 */
#ifndef RG_VALIDATE_SELECTION_H
#define RG_VALIDATE_SELECTION_H

#include <stdint.h>

#include "harness/worker.h"
#include "runtime/regroup.h"
#include "validate/findings.h"
#include "validate/work.h"

enum { RG_SELECTION_RANKS_MAX = 64 };

/* What a rank's variables say. */
enum rg_wish {
    RG_WISH_NEW = 0,
    RG_WISH_LEGACY,
    RG_WISH_NONE, /* no variable: the library's default, legacy */
    RG_WISH_BOTH, /* two that contradict each other */
    RG_WISH_WRONG /* a value that there is not */
};

/* What the workers do. */
enum rg_selection_script {
    /* All collectives; again, when the victim has been killed. */
    RG_SELECTION_COLLECTIVES = 0,
    /* All get a configuration error. */
    RG_SELECTION_REFUSED,
    /* The victim is killed and started anew, and then wishes for legacy, */
    RG_SELECTION_JOIN_REFUSED, /* while the others have graphs */
    RG_SELECTION_JOIN          /* while one that is out has a graph */
};

struct rg_selection_scenario {
    struct rg_work work;
    int32_t device; /* enum rg_device_kind */
    int32_t team_width;
    int32_t teams;
    int32_t script;   /* enum rg_selection_script */
    int32_t victim;   /* -1: none */
    int32_t queue;    /* all-reduces that are launched when it dies */
    int32_t no_route; /* no rank can reach another's memory */
    uint64_t seed;
    uint8_t wishes[RG_SELECTION_RANKS_MAX]; /* enum rg_wish, of first lives */
};

struct rg_selection_report {
    struct rg_findings findings;
    int32_t warnings; /* lines that say that the group falls back */
};

/*
 * Where the standard error of a rank's workers goes, so that they can count
 * lines in it; the supervisor, a process of this id, shows and removes it.
 */
void rg_selection_log_path(int supervisor, int rank, char *path, size_t bytes);

/* main() of a worker: returns its exit code. */
int rg_selection_worker(struct rg_worker *worker);

#endif
