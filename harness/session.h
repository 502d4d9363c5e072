/*
 * What every measuring program sets up on a rank, in order: watchdog, context,
 * communicator, stream, placement. Torn down in reverse.
 */
#ifndef RG_HARNESS_SESSION_H
#define RG_HARNESS_SESSION_H

#include "harness/launch.h"
#include "harness/report.h"
#include "harness/topo.h"
#include "harness/watchdog.h"
#include "runtime/regroup.h"

struct rg_session_config {
    const char *program;
    const struct rg_job *job;           /* borrowed, outlives the session */
    const struct rg_algo *const *algos; /* borrowed */
    enum rg_device_kind device;
    enum rg_backend backend;
    int timeout_s; /* of the watchdog, 0: none */
    /* Text of a selection table; null: what RG_POLICY says. */
    const char *policy;
};

struct rg_session {
    const struct rg_job *job;
    struct rg_watchdog *dog;
    struct rg_topo *topo;
    struct rg_context *context;
    struct rg_comm *comm;
    struct rg_stream *stream;
    struct rg_device_info info; /* this rank's */
    struct rg_place *places;    /* [size], of all ranks */
};

/*
 * Collective. On the emulated device the calling thread is bound to its share
 * of the cores, after the runtime's own threads have started. Every failure
 * has been reported when this returns.
 */
int rg_session_create(const struct rg_session_config *config,
                      struct rg_session **session_out);
void rg_session_destroy(struct rg_session *session); /* accepts null */

/* What the report's header says of all ranks, on the new backend. */
struct rg_report_env rg_session_env(const struct rg_session *session,
                                    const char *command,
                                    enum rg_collective collective);

#endif
