#include "runtime/exec/proxy_path.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/core/log.h"
#include "runtime/exec/nearby.h"
#include "runtime/transfer/route_table.h"
#include "runtime/transfer/routes/proxy/proxy.h"

struct rg_proxy_path {
    struct rg_context *context;
    struct rg_proxy *proxy;
    struct rg_proxy_fifo *fifo; /* host address; freed by host_free */
    struct rg_proxy_fifo *fifo_device;
    void *stages;       /* host address; freed by host_free */
    void *segment;      /* what was made known to the device, or null */
    void *segment_seen; /* as teams see it */
    struct rg_bitset members;
};

/* ---- life --------------------------------------------------------------- */

static int make_fifos(struct rg_comm *comm, struct rg_proxy_path *path)
{
    const struct rg_context *context = comm->context;
    const uint64_t channels = (uint64_t)comm->layout.shape.max_channels;
    const uint64_t lanes = channels < RG_LANES ? channels : RG_LANES;
    void *stages;
    int status = context->ops->host_alloc(
        context->device,
        sizeof *path->fifo + lanes * sizeof path->fifo->lane[0],
        (void **)&path->fifo, (void **)&path->fifo_device);

    if (status)
        return status;
    status = context->ops->host_alloc(
        context->device, lanes * RG_PROXY_STAGES * RG_PROXY_STAGE_BYTES,
        &path->stages, &stages);
    if (status)
        return status;
    path->fifo->stages = stages;
    path->fifo->lanes = lanes;
    return RG_OK;
}

/* As much of the region's layout as a communicator uses. */
static uint64_t segment_bytes(const struct rg_comm *comm)
{
    return comm->workspace_offset +
           comm->context->settings.workspaces * comm->layout.bytes;
}

/* Near the device, if that is not everywhere. */
static int find_cpus(const struct rg_context *context, cpu_set_t *cpus_out)
{
    struct rg_device_info info = {0};

    return context->ops->info(context->device, &info) == RG_OK &&
           rg_nearby_cpus(info.pci_bus, cpus_out);
}

/*
 * Peers write to the region itself where the host can; else to a segment of
 * the host that is laid out as the region, as far as it is used.
 */
static int make_proxy(struct rg_comm *comm, struct rg_proxy_path *path)
{
    const struct rg_context *context = comm->context;
    const int here = context->ops->host_reads_device;
    char address[RG_ADDRESS_BYTES];
    cpu_set_t cpus;
    struct rg_proxy_config config = {
        .engine = {.rank = context->config.rank,
                   .size = context->config.size,
                   .host_id = context->host_id,
                   .address = address,
                   .memory = here ? context->service->region : NULL,
                   .bytes =
                       here ? context->service->bytes : segment_bytes(comm)},
        .fifo = path->fifo,
        .stages = path->stages,
        .deadline_ms = context->settings.deadline_ms,
        .cpus = find_cpus(context, &cpus) ? &cpus : NULL,
        .drives = here};

    rg_driver_identity(context->driver, config.engine.secret, address);
    return rg_proxy_create(&config, &path->proxy);
}

static int show_segment(struct rg_comm *comm, struct rg_proxy_path *path)
{
    const struct rg_context *context = comm->context;
    void *memory = rg_proxy_memory(path->proxy);
    int status;

    if (context->ops->host_reads_device)
        return RG_OK;
    status = context->ops->host_map(context->device, memory,
                                    segment_bytes(comm), &path->segment_seen);
    if (status)
        return status;
    path->segment = memory;
    return context->ops->memory->copy(context->device, &comm->dev->segment,
                                      &path->segment_seen,
                                      sizeof path->segment_seen);
}

int rg_proxy_path_create(struct rg_comm *comm)
{
    struct rg_proxy_path *path;
    int on, status = rg_route_is_on(RG_ROUTE_PROXY, &on);

    if (status || !on || comm->context->config.size == 1)
        return status;
    path = calloc(1, sizeof *path);
    if (!path)
        return RG_ENOMEM;
    path->context = comm->context;
    comm->proxy = path;
    status = rg_bitset_init(&path->members, comm->context->config.size);
    if (status == RG_OK)
        status = make_fifos(comm, path);
    if (status == RG_OK)
        status = make_proxy(comm, path);
    if (status == RG_OK)
        status = show_segment(comm, path);
    if (status != RG_ENOTSUP)
        return status;
    rg_proxy_path_destroy(path);
    comm->proxy = NULL;
    return RG_OK;
}

void rg_proxy_path_destroy(struct rg_proxy_path *path)
{
    const struct rg_context *context;

    if (!path)
        return;
    context = path->context;
    if (path->segment)
        context->ops->host_unmap(context->device, path->segment);
    rg_proxy_destroy(path->proxy);
    if (path->stages)
        context->ops->host_free(context->device, path->stages);
    if (path->fifo)
        context->ops->host_free(context->device, path->fifo);
    rg_bitset_fini(&path->members);
    free(path);
}

struct rg_proxy *rg_proxy_path_proxy(const struct rg_proxy_path *path)
{
    return path ? path->proxy : NULL;
}

void rg_proxy_path_card(const struct rg_proxy_path *path,
                        struct rg_engine_card *card_out)
{
    memset(card_out, 0, sizeof *card_out);
    if (path)
        rg_proxy_card(path->proxy, card_out);
}

/* ---- views -------------------------------------------------------------- */

void rg_proxy_path_enter(struct rg_comm *comm, const struct rg_view *view)
{
    struct rg_proxy_path *path = comm->proxy;

    if (!path)
        return;
    rg_bitset_zero(&path->members);
    for (int rank = 0; rank < view->nactive; rank++)
        rg_bitset_set(&path->members,
                      view->members[view->order[rank]].world_rank);
    rg_proxy_enter(path->proxy, view->epoch, &path->members);
}

/* All that comes in lies there, what this rank sends to itself as well. */
static void land_in_segment(const struct rg_comm *comm, struct rg_plan *plan)
{
    plan->landing = comm->proxy->segment_seen;
    plan->routes[plan->rank].base = plan->landing;
    /* Laid out alike at all ranks, and as large. */
    for (uint32_t p = 0; p < plan->nranks; p++)
        plan->routes[p].bytes = segment_bytes(comm);
}

void rg_proxy_path_plan(struct rg_comm *comm, struct rg_plan *plan)
{
    const struct rg_context *context = comm->context;
    uint32_t proxied = 0;

    for (uint32_t p = 0; p < plan->nranks; p++)
        proxied += plan->routes[p].kind == RG_ROUTE_PROXY;
    plan->landing = context->service->region;
    plan->proxy = NULL;
    if (!proxied)
        return;
    plan->proxy = comm->proxy->fifo_device;
    if (comm->proxy->segment)
        land_in_segment(comm, plan);
    rg_proxy_force(comm->proxy->proxy, proxied + 1 == plan->nranks);
}
