/*
 * The worker's side of supervision (supervisor.h): a process that a supervisor
 * started from this same program to run one scenario, and that may be killed,
 * stopped, or started anew while it does. It has no MPI; its job's bootstrap
 * goes through the supervisor.
 *
 *     main: if (rg_worker_present())
 *               rg_worker_open -> rg_worker_scenario -> ... -> exit code
 *
 * All calls may be made from any thread, but for open and close. Statuses are
 * RG_OK, RG_ECLOSED when the supervisor is gone, or as said.
 */
#ifndef RG_HARNESS_WORKER_H
#define RG_HARNESS_WORKER_H

#include "harness/launch.h"
#include "harness/supervision.h"

struct rg_worker;

/* 1 in a process that a supervisor started. */
int rg_worker_present(void);
/*
 * Takes over the connection. Call once, before anything else opens
 * descriptors. RG_OK, RG_ENOMEM, RG_EPROTO or RG_ECLOSED.
 */
int rg_worker_open(struct rg_worker **worker_out);
/* Accepts null. The worker still has to exit for its rank to be done. */
void rg_worker_close(struct rg_worker *worker);

/*
 * kind is RG_LAUNCH_WORKER. Its bootstrap returns RG_EFAILED when a worker of
 * another rank has ended, and RG_ENOTSUP in a process started anew, which
 * needs a ticket instead.
 */
const struct rg_job *rg_worker_job(const struct rg_worker *worker);
/* 0 in the rank's first process, 1 in the next. */
int rg_worker_life(const struct rg_worker *worker);
/* The scenario's payload, aligned to 8 bytes; lives as long as the worker. */
const void *rg_worker_scenario(const struct rg_worker *worker,
                               size_t *bytes_out);

/* Hands bytes to the supervisors; kept even when the worker dies next. */
int rg_worker_report(struct rg_worker *worker, const void *data, size_t bytes);
/* Notes a moment: now. `name` of at most 23 bytes (else cut). */
int rg_worker_event(struct rg_worker *worker, const char *name, uint64_t value);

/* Publishes what a process started anew needs to enter the group. */
int rg_worker_publish(struct rg_worker *worker, const void *ticket,
                      size_t bytes);
/*
 * Waits for a ticket that is later than the `known`-th (0: any) of this
 * scenario, from any rank. Fills a block the caller frees; *number_out is
 * what to pass as `known` for the next. One thread at a time. RG_ETIMEDOUT:
 * none came in time.
 */
int rg_worker_ticket(struct rg_worker *worker, int known, int timeout_ms,
                     void **ticket_out, size_t *bytes_out, int *number_out);

/*
 * How many processes of a rank have ended, of this scenario and as far as this
 * rank's supervisor has heard: what a launcher knows, and the group may not.
 * RG_EINVAL: there is no such rank.
 */
int rg_worker_ends(struct rg_worker *worker, int rank, int *ends_out);

/*
 * Has a fault injected and counted.
 *   KILL, STOP  this rank, by its supervisor, delay_ns from now. Without a
 *               delay a kill does not return, and a stop returns when the
 *               process goes on. With one, both return at once.
 *   CUT, SPLIT  this rank's host, in the same way; without a delay the call
 *               returns when it is done. RG_ENOTSUP: this is no host of
 *               scripts/hosts.
 *   REJOIN      any rank: a new process of it is started when its last one has
 *               ended, but not before delay_ns from now. Returns at once.
 *   others      the worker commits them itself, right behind this call; behind
 *               EXIT any exit code is as planned.
 * RG_EINVAL: an action or a rank that cannot be; RG_ENOSPC: too many wait.
 */
int rg_worker_inject(struct rg_worker *worker,
                     const struct rg_injection *injection);

#endif
