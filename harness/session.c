#include "harness/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/datagen.h"
#include "harness/output.h"

/* Of what the runtime says nothing. Returns status. */
static int tell(const struct rg_session_config *config, int status,
                const char *what)
{
    if (status != RG_OK)
        rg_say(config->program, "rank %d: %s: %s", config->job->rank, what,
               rg_status_string(status));
    return status;
}

static int open_context(struct rg_session *session,
                        const struct rg_session_config *config)
{
    const struct rg_job *job = config->job;
    struct rg_context_config context;
    int status = rg_job_context_config(job, config->device, &context);

    if (status != RG_OK) {
        if (job->rank == 0)
            fprintf(stderr, "%s: device %s: %s\n", config->program,
                    config->device == RG_DEVICE_CUDA ? "cuda" : "emu",
                    rg_status_string(status));
        return status;
    }
    context.algos = config->algos;
    context.backend = config->backend;
    context.policy = config->policy;
    status = rg_context_create(&context, &session->context);
    return status == RG_ENOMEM ? tell(config, status, "no context") : status;
}

static int find_places(struct rg_session *session,
                       const struct rg_session_config *config)
{
    struct rg_place place;
    int status =
        rg_topo_create(config->device == RG_DEVICE_CUDA, &session->topo);

    if (status == RG_OK)
        status = rg_context_device_info(session->context, &session->info);
    if (status != RG_OK)
        return status;
    if (config->device == RG_DEVICE_EMU)
        rg_topo_bind(session->topo, config->job);
    else
        rg_topo_bind_near(session->topo, config->job, session->info.pci_bus);
    rg_topo_place(session->topo, config->job, &session->info, &place);
    session->places =
        calloc((size_t)config->job->size, sizeof *session->places);
    if (!session->places)
        return RG_ENOMEM;
    return rg_comm_gather(session->comm, &place, sizeof place, session->places);
}

/* The group exists: what is made of it. */
static int equip(struct rg_session *session,
                 const struct rg_session_config *config)
{
    int status =
        tell(config, rg_stream_create(session->context, &session->stream),
             "no stream");

    if (status == RG_OK)
        status = tell(config, rg_datagen_warm(session->stream),
                      "the data cannot be made");
    return status == RG_OK ? tell(config, find_places(session, config),
                                  "the ranks' places are not known")
                           : status;
}

int rg_session_create(const struct rg_session_config *config,
                      struct rg_session **session_out)
{
    struct rg_session *session = calloc(1, sizeof *session);
    int status;

    if (!session)
        return tell(config, RG_ENOMEM, "no session");
    session->job = config->job;
    status = tell(
        config,
        rg_watchdog_create(config->job->rank, config->timeout_s, &session->dog),
        "no watchdog");
    if (status == RG_OK)
        status = open_context(session, config);
    if (status == RG_OK)
        status = rg_comm_create(session->context, &session->comm);
    if (status == RG_OK) {
        rg_watchdog_watch(session->dog, session->comm);
        status = equip(session, config);
    }
    if (status != RG_OK)
        goto error;
    *session_out = session;
    return RG_OK;
error:
    rg_session_destroy(session);
    return status;
}

void rg_session_destroy(struct rg_session *session)
{
    if (!session)
        return;
    rg_stream_destroy(session->stream);
    if (session->dog)
        rg_watchdog_watch(session->dog, NULL);
    rg_comm_destroy(session->comm);
    rg_context_destroy(session->context);
    rg_topo_destroy(session->topo);
    rg_watchdog_destroy(session->dog);
    free(session->places);
    free(session);
}

struct rg_report_env rg_session_env(const struct rg_session *session,
                                    const char *command,
                                    enum rg_collective collective)
{
    return (struct rg_report_env){.command = command,
                                  .collective = rg_collective_name(collective),
                                  .device = session->info.kind,
                                  .backend = RG_BACKEND_NEW,
                                  .info = session->info,
                                  .places = session->places,
                                  .nranks = session->job->size,
                                  .hosts = session->job->hosts};
}
