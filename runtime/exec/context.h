/* Inside of a context, its streams, events and graphs. */
#ifndef RG_EXEC_CONTEXT_H
#define RG_EXEC_CONTEXT_H

#include "runtime/control/driver.h"
#include "runtime/core/settings.h"
#include "runtime/exec/device.h"
#include "runtime/transfer/service.h"

struct rg_context {
    struct rg_context_config config;
    struct rg_settings settings;
    const struct rg_device_ops *ops;
    void *device;
    struct rg_service *service;
    struct rg_driver *driver;
    enum rg_backend preference;
    char *selection; /* the text this rank asks for (select.h); owned */
    int parks; /* RG_ON_FAILURE: a failed invocation keeps the word itself */
    char host_id[RG_HOST_ID_BYTES];
    uint32_t next_group;
    struct rg_comm *comms; /* live ones, newest first */
};

struct rg_stream {
    struct rg_context *context;
    void *native;             /* the backend's stream */
    struct rg_graph *capture; /* being recorded; owned until its end */
};

struct rg_event {
    struct rg_context *context;
    void *native;
};

struct rg_graph {
    struct rg_context *context;
    void *native;
    struct rg_graph_use *uses; /* communicators it launches on; owned */
    int count;
};

struct rg_graph_use {
    struct rg_comm *comm;
    uint64_t seqs; /* of one replay */
};

/* Notes one more launch on a communicator in the graph being captured. */
int rg_graph_use(struct rg_graph *graph, struct rg_comm *comm, uint64_t seqs);

#endif
