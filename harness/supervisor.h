/*
 * Ranks that may die. Each rank of the job is a supervisor, which never
 * touches the runtime; what is tested runs in a worker, a process of its own
 * that the supervisor starts from this same program (worker.h). A worker may
 * be killed, stopped or started anew at any time: the job's launcher sees only
 * supervisors, which all live until the end and agree on what they saw.
 *
 *     launcher ---- supervisor 0 --- hub --- supervisor 1 ---- launcher
 *                       |                         |
 *                    worker 0 <== the runtime ==> worker 1
 *
 *     main:      rg_worker_present() ? be a worker : rg_job_run(...)
 *     rank_main: rg_supervisor_create
 *                for each scenario: rg_supervisor_run -> rg_supervision_code
 *                rg_supervisor_destroy
 *
 * One scenario is one set of workers. While it runs, a supervisor serves its
 * worker's bootstrap exchange, keeps what it reports, injects the faults that
 * it asks for and notes when, and ends it at the deadline. A rank whose worker
 * ended is absent from the bootstrap exchange: those still in it get
 * RG_EFAILED instead of waiting.
 *
 * A supervisor belongs to one thread, which must be the same for all calls:
 * workers end with the thread that started them.
 */
#ifndef RG_HARNESS_SUPERVISOR_H
#define RG_HARNESS_SUPERVISOR_H

#include "harness/launch.h"
#include "harness/supervision.h"
#include "harness/wire.h"

struct rg_supervisor;

/* What the workers shall do; the same at all ranks. */
struct rg_scenario {
    const void *payload; /* borrowed; each worker gets a copy */
    size_t bytes;        /* at most 32 MiB */
    int deadline_ms;     /* for all lives of a worker together */
};

/* How a rank fared. */
struct rg_fate {
    int32_t lives; /* processes that were started */
    /*
     * The worst exit code of its lives: what the process returned; PASS for
     * one that a fault ended as it was asked to; TIMEOUT for a hang, RECOVERY
     * for a signal nobody asked for, ENVIRONMENT when it could not start.
     */
    int32_t code;
    struct rg_end last; /* of the last life */
};

struct rg_rank_supervision {
    struct rg_fate fate;
    struct rg_bytes records; /* see rg_supervision_next() */
};

/* What all supervisors know of a scenario; equal at all ranks. */
struct rg_supervision {
    int size;
    struct rg_rank_supervision *ranks; /* [size] */
};

struct rg_record {
    enum rg_record_kind kind;
    int life;         /* which wrote it, from 0 on */
    uint64_t time_ns; /* when its supervisor took it */
    size_t bytes;
    const void *data; /* aligned to 8 bytes; lives as long as the result */
};

/*
 * Connects the supervisors of the job (borrowed). Collective, by the job's
 * bootstrap. RG_OK, RG_ENOMEM, RG_ESYSTEM or RG_ETIMEDOUT, the same at all
 * ranks.
 */
int rg_supervisor_create(const struct rg_job *job,
                         struct rg_supervisor **supervisor_out);
/* Accepts null. */
void rg_supervisor_destroy(struct rg_supervisor *supervisor);

/*
 * Runs one scenario to its end. Collective. RG_OK: every worker's fate is in
 * *result_out, to be freed by rg_supervision_fini(). Otherwise supervision
 * itself failed, no worker of this rank is left, and the supervisor can only be
 * destroyed: RG_ENOMEM, RG_EPROTO, RG_ECLOSED (another supervisor is gone) or
 * RG_ETIMEDOUT (another did not end its worker in time).
 */
int rg_supervisor_run(struct rg_supervisor *supervisor,
                      const struct rg_scenario *scenario,
                      struct rg_supervision *result_out);
/* The same for a single scenario, with supervisors of its own. */
int rg_supervisor_play(const struct rg_job *job,
                       const struct rg_scenario *scenario,
                       struct rg_supervision *result_out);
void rg_supervision_fini(struct rg_supervision *result);

/*
 * Steps through a rank's records in the order they were taken; *cursor starts
 * at 0. Returns 1 with *record_out filled, 0 behind the last.
 */
int rg_supervision_next(const struct rg_supervision *result, int rank,
                        size_t *cursor, struct rg_record *record_out);
/* The worst code of all ranks, an enum rg_exit or a worker's own. */
int rg_supervision_code(const struct rg_supervision *result);
/* Counts the faults that happened in the plan that they came from. */
void rg_supervision_count(const struct rg_supervision *result,
                          struct rg_fault_plan *plan);

#endif
