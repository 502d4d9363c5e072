#include "runtime/exec/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/device/word.h"
#include "runtime/transfer/route_table.h"

enum { COMM_TEAM_ALIGN = 4096 };

static int comm_rank(const struct rg_comm *comm)
{
    return comm->context->config.rank;
}

static int comm_timeout_ms(const struct rg_comm *comm)
{
    return (int)comm->context->settings.bootstrap_ms;
}

/* ---- device block ------------------------------------------------------- */

/* The device block: rg_comm_dev and both plans behind it. */
static size_t block_plan_offset(int capacity, int index)
{
    const size_t plan =
        (rg_plan_bytes(capacity) + RG_LINE - 1) / RG_LINE * RG_LINE;

    return sizeof(struct rg_comm_dev) + (size_t)index * plan;
}

/*
 * Deadlines of device waits count running time only; on a crowded host a
 * team runs cores/ranks of the time at best.
 */
static uint64_t deadline_ns(const struct rg_context *context)
{
    struct rg_device_info info;
    uint64_t budget = context->settings.deadline_ms * 1000000ull;
    const uint64_t ranks = (uint64_t)context->config.size;

    if (context->config.device == RG_DEVICE_EMU &&
        context->ops->info(context->device, &info) == RG_OK &&
        ranks > (uint64_t)info.cores)
        budget = budget * ranks / (uint64_t)info.cores;
    return budget;
}

static int block_init(struct rg_comm *comm)
{
    struct rg_context *context = comm->context;
    const int capacity = context->config.capacity;
    uint8_t *block = context->service->region + comm->control_offset;
    struct rg_comm_dev dev;

    memset(&dev, 0, sizeof dev);
    dev.hot.control = RG_CONTROL_HELD;
    dev.deadline_ns = deadline_ns(context);
    dev.gate_ns = context->settings.gate_us * 1000ull;
    /* A failed communicator is not opened again: later launches end at once
     * instead of waiting for a plan. */
    dev.park_ns = 0;
    dev.region = context->service->region;
    dev.region_bytes = context->service->bytes;
    dev.abort_epoch = &comm->mapped_device->abort_epoch;
    dev.mailbox = &comm->mapped_device->mailbox;
    for (int i = 0; i < 2; i++)
        dev.plan[i] =
            (struct rg_plan *)(void *)(block + block_plan_offset(capacity, i));
    comm->dev = (struct rg_comm_dev *)(void *)block;
    return context->ops->memory->copy(context->device, block, &dev, sizeof dev);
}

static int comm_allocate(struct rg_comm *comm)
{
    struct rg_context *context = comm->context;
    struct rg_arena *arena = &context->service->arena;
    const int capacity = context->config.capacity;
    int status;

    status = context->ops->host_alloc(context->device, sizeof *comm->mapped,
                                      (void **)&comm->mapped,
                                      (void **)&comm->mapped_device);
    if (status)
        return status;
    status = rg_arena_alloc(arena, block_plan_offset(capacity, 2),
                            COMM_TEAM_ALIGN, &comm->control_offset);
    if (status == RG_OK)
        status = rg_arena_alloc(
            arena, comm->layout.bytes * context->settings.workspaces,
            COMM_TEAM_ALIGN, &comm->workspace_offset);
    if (status) {
        rg_log(RG_LOG_ERROR, comm_rank(comm),
               "the region (RG_REGION_BYTES=%llu) has no room for another "
               "communicator of %llu bytes",
               (unsigned long long)context->service->bytes,
               (unsigned long long)(comm->layout.bytes *
                                    context->settings.workspaces));
        return status;
    }
    comm->routes = calloc((size_t)capacity, sizeof *comm->routes);
    comm->plan = calloc(1, rg_plan_bytes(capacity));
    if (!comm->routes || !comm->plan)
        return RG_ENOMEM;
    return block_init(comm);
}

/* ---- routes ------------------------------------------------------------- */

static int fetch_fd(void *arg, int world_rank, int *fd_out)
{
    struct rg_comm *comm = arg;

    return rg_driver_fetch_fd(comm->context->driver, world_rank,
                              comm_timeout_ms(comm), fd_out);
}

static int gather(struct rg_comm *comm, const void *in, size_t bytes, void *out)
{
    return rg_driver_gather(comm->context->driver, comm->group, in, bytes, out,
                            comm_timeout_ms(comm));
}

static int routes_choose(struct rg_comm *comm, const struct rg_view *view,
                         const struct rg_region_key *keys)
{
    const struct rg_fd_source source = {fetch_fd, comm};
    struct rg_route_peer peer;
    int status;

    for (int rank = 0; rank < view->nactive; rank++) {
        const struct rg_member *member = &view->members[view->order[rank]];

        peer.world_rank = member->world_rank;
        peer.slot = view->order[rank];
        peer.same_host =
            strcmp(member->info.host_id, comm->context->host_id) == 0;
        peer.key = keys[rank];
        status = rg_route_choose(comm->context->service, &peer, &source,
                                 &comm->routes[rank]);
        if (status)
            return status;
    }
    return RG_OK;
}

static uint64_t proof_salt(const struct rg_view *view)
{
    uint64_t hash = rg_hash(RG_HASH_INIT, &view->group, sizeof view->group);

    return rg_hash(hash, &view->epoch, sizeof view->epoch);
}

/*
 * One row of the job's reachability: good[p] says whether this rank has seen
 * its route to p work. All rows are exchanged; a pair is good both ways.
 */
static int routes_prove(struct rg_comm *comm, const struct rg_view *view,
                        uint8_t *good, uint8_t *all)
{
    struct rg_service *service = comm->context->service;
    const uint64_t salt = proof_salt(view);
    const int n = view->nactive;
    int status;

    status = rg_service_proof_sign(service, salt);
    if (status == RG_OK)
        status = gather(comm, NULL, 0, NULL);
    if (status)
        return status;
    for (int p = 0; p < n; p++)
        good[p] = comm->routes[p].kind != RG_ROUTE_NULL &&
                  rg_service_proof_write(
                      service, view->members[view->order[p]].world_rank, salt);
    status = gather(comm, NULL, 0, NULL);
    if (status)
        return status;
    for (int p = 0; p < n; p++)
        good[p] = good[p] &&
                  rg_service_proof_check(
                      service, view->members[view->order[p]].world_rank, salt);
    return gather(comm, good, (size_t)n, all);
}

/* The communicator is usable only if every pair can reach each other. */
static int routes_judge(struct rg_comm *comm, const struct rg_view *view,
                        const uint8_t *all)
{
    const int n = view->nactive;

    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            if (!all[a * n + b]) {
                rg_log(RG_LOG_ERROR, comm_rank(comm),
                       "no route from rank %d to rank %d", a, b);
                return RG_EFAILED;
            }
    for (int p = 0; p < n; p++)
        rg_log(RG_LOG_INFO, comm_rank(comm), "route to rank %d: %s", p,
               rg_route_name(comm->routes[p].kind));
    return RG_OK;
}

static int routes_make(struct rg_comm *comm, const struct rg_view *view)
{
    const struct rg_region_key key = rg_service_key(comm->context->service);
    const size_t n = (size_t)view->nactive;
    struct rg_region_key *keys = calloc(n, sizeof *keys);
    uint8_t *good = calloc(n, 1), *all = calloc(n, n);
    int status = RG_ENOMEM;

    if (keys && good && all)
        status = gather(comm, &key, sizeof key, keys);
    if (status == RG_OK)
        status = routes_choose(comm, view, keys);
    if (status == RG_OK)
        status = routes_prove(comm, view, good, all);
    if (status == RG_OK)
        status = routes_judge(comm, view, all);
    free(keys);
    free(good);
    free(all);
    return status;
}

/* ---- view in force ------------------------------------------------------ */

/* The most ranks that share one device: their launches must fit together. */
static int view_sharers(const struct rg_view *view)
{
    int most = 1;

    for (int a = 0; a < view->nactive; a++) {
        const char *uuid = view->members[view->order[a]].info.device_uuid;
        int same = 0;

        for (int b = 0; b < view->nactive; b++)
            same += strcmp(uuid,
                           view->members[view->order[b]].info.device_uuid) == 0;
        most = same > most ? same : most;
    }
    return most;
}

/*
 * Writes the idle plan and its excerpt, then the control word that selects it.
 * The control word is HELD and nothing is in flight.
 */
static int plan_publish(struct rg_comm *comm, const struct rg_view *view,
                        uint64_t ended)
{
    struct rg_context *context = comm->context;
    const int index = comm->view ? !comm->plan_index : 0;
    struct rg_comm_dev *dev = comm->dev;
    uint8_t *plan = (uint8_t *)dev + block_plan_offset(view->capacity, index);
    struct rg_hot_line hot;
    int status;

    status = context->ops->memory->copy(context->device, &hot, &dev->hot,
                                        sizeof hot);
    if (status)
        return status;
    rg_plan_excerpt(&comm->layout, comm->plan, context->service->region,
                    &hot.plan[index]);
    hot.completed = ended;
    hot.packet_cursor = view->first_seq - 1;
    hot.control = (index ? RG_CONTROL_PLAN : 0) | (ended & RG_CONTROL_SEQ_MASK)
                                                      << RG_CONTROL_SEQ_SHIFT;
    status = context->ops->memory->copy(context->device, plan, comm->plan,
                                        rg_plan_bytes(view->capacity));
    if (status == RG_OK)
        status = context->ops->memory->copy(context->device, &dev->hot, &hot,
                                            sizeof hot);
    if (status == RG_OK)
        comm->plan_index = index;
    return status;
}

static uint64_t workspace_of(const struct rg_comm *comm,
                             const struct rg_view *view)
{
    return comm->workspace_offset + view->workspace %
                                        comm->context->settings.workspaces *
                                        comm->layout.bytes;
}

static int comm_completed(struct rg_comm *comm, uint64_t *seq_out)
{
    return comm->context->ops->memory->copy(comm->context->device, seq_out,
                                            &comm->dev->hot.completed,
                                            sizeof *seq_out);
}

int rg_comm_apply(struct rg_comm *comm, struct rg_view *view)
{
    const struct rg_plan_input input = {
        .view = view,
        .routes = comm->routes,
        .rank = 0,
        .kind = comm->context->config.device,
        .channels = comm->context->ops->channels(comm->context->device),
        .workspace = workspace_of(comm, view)};
    struct rg_plan_input mine = input;
    uint64_t ended = view->first_seq - 1;
    int status = RG_OK;

    while (view->members[view->order[mine.rank]].world_rank != comm_rank(comm))
        mine.rank++;
    if (!comm->view)
        status = routes_make(comm, view);
    else
        status = comm_completed(comm, &ended);
    if (status == RG_OK)
        status = rg_plan_build(&comm->layout, &mine, comm->plan);
    if (status == RG_OK)
        status = plan_publish(comm, view, ended);
    if (status) {
        rg_view_destroy(view);
        return status;
    }
    comm->sharers = view_sharers(view);
    rg_view_destroy(comm->view);
    comm->view = view;
    return RG_OK;
}

/* ---- view change -------------------------------------------------------- */

/* PREPARE: nothing is in flight, and the next generation is clean here. */
static int change_prepare(struct rg_comm *comm,
                          const struct rg_group_event *event)
{
    struct rg_context *context = comm->context;
    const uint64_t held = RG_CONTROL_HELD;
    uint64_t completed = context->config.first_seq - 1;
    uint64_t offset =
        comm->workspace_offset +
        event->workspace % context->settings.workspaces * comm->layout.bytes;
    int status = RG_OK;

    if (comm->view) {
        status = comm_completed(comm, &completed);
        if (status == RG_OK)
            status = context->ops->memory->copy(
                context->device, &comm->dev->hot.control, &held, sizeof held);
        if (status == RG_OK)
            status = context->ops->set(context->device,
                                       context->service->region + offset, 0,
                                       comm->layout.bytes);
    }
    if (status)
        return status;
    return rg_driver_quiesced(context->driver, comm->group, event->epoch,
                              completed, completed);
}

/* One event; *view collects the provisional view. 1: the change is over. */
static int change_step(struct rg_comm *comm, struct rg_group_event *event,
                       struct rg_view **view)
{
    struct rg_driver *driver = comm->context->driver;

    switch (event->kind) {
    case RG_EVENT_PREPARE:
        return change_prepare(comm, event);
    case RG_EVENT_VIEW:
        rg_view_destroy(*view);
        *view = event->view;
        return rg_driver_view_ready(driver, comm->group, event->epoch);
    case RG_EVENT_ACTIVATE:
        return *view && (*view)->epoch == event->epoch ? 1 : RG_EPROTO;
    case RG_EVENT_ISOLATED:
    case RG_EVENT_ERROR:
        return event->status ? event->status : RG_EFAILED;
    default:
        return RG_OK;
    }
}

/* Follows a view change to its end and brings the new view in force. */
static int comm_change(struct rg_comm *comm)
{
    const uint64_t limit =
        rg_clock_ns() + (uint64_t)comm_timeout_ms(comm) * 1000000ull;
    struct rg_group_event event;
    struct rg_view *view = NULL;
    int status = RG_OK;

    while (status == RG_OK) {
        status =
            rg_driver_next(comm->context->driver, comm->group, 100, &event);
        if (status == RG_OK)
            status = change_step(comm, &event, &view);
        else if (status == RG_EPENDING)
            status = rg_clock_ns() > limit ? RG_ETIMEDOUT : RG_OK;
    }
    if (status == 1)
        return rg_comm_apply(comm, view);
    rg_view_destroy(view);
    return status;
}

/* ---- life --------------------------------------------------------------- */

static void member_info(const struct rg_comm *comm,
                        const struct rg_device_info *device,
                        struct rg_member_info *info_out)
{
    const struct rg_context *context = comm->context;

    memset(info_out, 0, sizeof *info_out);
    info_out->capabilities = RG_CAP_NEW_BACKEND | RG_CAP_P2P;
    info_out->preference = context->preference;
    info_out->device_kind = context->config.device;
    info_out->cores = (uint32_t)device->cores;
    info_out->region_bytes = context->service->bytes;
    info_out->layout_hash = comm->layout.hash;
    snprintf(info_out->host_id, sizeof info_out->host_id, "%s",
             context->host_id);
    snprintf(info_out->device_uuid, sizeof info_out->device_uuid, "%s",
             device->uuid);
}

static int comm_join(struct rg_comm *comm)
{
    struct rg_context *context = comm->context;
    struct rg_device_info device;
    struct rg_join join = {.group = comm->group,
                           .capacity = context->config.capacity,
                           .first_seq = context->config.first_seq,
                           .policy = context->config.algo_override};
    int status = rg_policy_check(&comm->layout, join.policy);

    if (status == RG_OK)
        status = context->ops->info(context->device, &device);
    if (status)
        return status;
    member_info(comm, &device, &join.info);
    return rg_driver_join(context->driver, &join);
}

static void comm_link(struct rg_comm *comm)
{
    comm->next = comm->context->comms;
    comm->context->comms = comm;
}

static void comm_unlink(struct rg_comm *comm)
{
    struct rg_comm **at = &comm->context->comms;

    while (*at && *at != comm)
        at = &(*at)->next;
    if (*at)
        *at = comm->next;
}

static void comm_free(struct rg_comm *comm)
{
    struct rg_arena *arena = &comm->context->service->arena;

    comm_unlink(comm);
    rg_driver_leave(comm->context->driver, comm->group);
    if (comm->control_offset)
        rg_arena_free(arena, comm->control_offset);
    if (comm->workspace_offset)
        rg_arena_free(arena, comm->workspace_offset);
    if (comm->mapped)
        comm->context->ops->host_free(comm->context->device, comm->mapped);
    rg_view_destroy(comm->view);
    free(comm->routes);
    free(comm->plan);
    free(comm);
}

int rg_comm_create(struct rg_context *context, struct rg_comm **comm_out)
{
    struct rg_comm *comm = calloc(1, sizeof *comm);
    int status;

    if (!comm)
        return RG_ENOMEM;
    comm->context = context;
    comm->group = ++context->next_group;
    comm_link(comm);
    status = rg_layout_init(
        &comm->layout, context->config.algos, context->config.capacity,
        context->ops->max_channels(context->device),
        (int)context->settings.workspaces, context->service->bytes / RG_SHARES);
    if (status == RG_OK)
        status = comm_allocate(comm);
    if (status == RG_OK)
        status = comm_join(comm);
    if (status == RG_OK)
        status = comm_change(comm);
    if (status) {
        rg_log(RG_LOG_ERROR, context->config.rank,
               "communicator %u could not be made: %s", comm->group,
               rg_status_string(status));
        comm_free(comm);
        return status;
    }
    *comm_out = comm;
    return RG_OK;
}

int rg_comm_destroy(struct rg_comm *comm)
{
    if (!comm)
        return RG_OK;
    if (comm->graphs)
        return RG_EBUSY;
    if (comm->last)
        rg_stream_synchronize(comm->last);
    /* A peer may still return a credit: no memory goes before all are here. */
    gather(comm, NULL, 0, NULL);
    comm_free(comm);
    return RG_OK;
}

int rg_comm_set_policy(struct rg_comm *comm, const char *text)
{
    int status = rg_policy_check(&comm->layout, text);

    if (status == RG_OK && comm->last)
        status = rg_stream_synchronize(comm->last);
    if (status == RG_OK)
        status =
            rg_driver_propose_policy(comm->context->driver, comm->group, text);
    return status ? status : comm_change(comm);
}

/* ---- what is known ------------------------------------------------------ */

int rg_comm_view(const struct rg_comm *comm, struct rg_view_info *info_out)
{
    const struct rg_view *view = comm->view;

    memset(info_out, 0, sizeof *info_out);
    info_out->epoch = view->epoch;
    info_out->term = view->term;
    info_out->first_seq = view->first_seq;
    info_out->policy_hash = view->policy_hash;
    info_out->rank = (int)comm->plan->rank;
    info_out->slot = view->order[info_out->rank];
    info_out->nranks = view->nactive;
    info_out->capacity = view->capacity;
    info_out->backend = view->backend;
    return RG_OK;
}

/* Slower kinds have higher numbers, own memory apart. */
static enum rg_route_kind slowest_route(const struct rg_comm *comm)
{
    enum rg_route_kind slowest = RG_ROUTE_SELF;

    for (int p = 0; p < comm->view->nactive; p++) {
        const enum rg_route_kind kind = comm->routes[p].kind;

        if (kind != RG_ROUTE_SELF &&
            (slowest == RG_ROUTE_SELF || kind > slowest))
            slowest = kind;
    }
    return slowest;
}

int rg_comm_last_run(struct rg_comm *comm, struct rg_run_info *info_out)
{
    struct rg_context *context = comm->context;
    struct rg_hot_line hot;
    int status = comm->last ? rg_stream_synchronize(comm->last) : RG_OK;

    if (status == RG_OK)
        status = context->ops->memory->copy(context->device, &hot,
                                            &comm->dev->hot, sizeof hot);
    if (status)
        return status;
    memset(info_out, 0, sizeof *info_out);
    info_out->seq = hot.run ? hot.completed : 0;
    info_out->epoch = RG_RUN_EPOCH(hot.run);
    info_out->algorithm =
        comm->layout.algo[RG_COLL_all_reduce][RG_RUN_ALGO(hot.run)]->name;
    info_out->channels = RG_RUN_CHANNELS(hot.run);
    info_out->route = slowest_route(comm);
    return RG_OK;
}

/* The most telling of the reasons that teams met. */
static int reasons_status(uint64_t reasons)
{
    static const int order[] = {RG_EUNAVAILABLE, RG_ETIMEDOUT, RG_EABORTED,
                                RG_EFAILED};

    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (reasons & 1ull << -order[i])
            return order[i];
    return RG_EFAILED;
}

int rg_comm_error(struct rg_comm *comm)
{
    const struct rg_mailbox *mailbox = &comm->mapped->mailbox;

    /* Pairs with the release store at the safe point. */
    if (!rg_load_acquire(&mailbox->failure))
        return RG_OK;
    return reasons_status(rg_load_relaxed(&mailbox->reasons));
}

int rg_comm_gather(struct rg_comm *comm, const void *in, size_t bytes,
                   void *out)
{
    return gather(comm, in, bytes, out);
}

/* The ranks in the mailbox's bitmap, as "1,3". */
static void describe_peers(const struct rg_mailbox *mailbox, char *text,
                           size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (int p = 0; p < RG_MAX_SLOTS && used + 8 < bytes; p++)
        if (rg_load_relaxed(&mailbox->peers[p / 64]) >> (p % 64) & 1)
            used += (size_t)snprintf(text + used, bytes - used, "%s%d",
                                     used ? "," : "", p);
}

int rg_comm_describe(struct rg_comm *comm, char *text, size_t bytes)
{
    struct rg_context *context = comm->context;
    const struct rg_mailbox *mailbox = &comm->mapped->mailbox;
    struct rg_hot_line hot;
    char peers[256], group[256] = "";
    uint64_t claimed;
    int status = context->ops->memory->copy(context->device, &hot,
                                            &comm->dev->hot, sizeof hot);

    if (status)
        return status;
    claimed = (hot.control >> RG_CONTROL_SEQ_SHIFT & RG_CONTROL_SEQ_MASK) +
              ((hot.control & RG_CONTROL_ARRIVALS) != 0);
    describe_peers(mailbox, peers, sizeof peers);
    rg_driver_describe(context->driver, comm->group, group, sizeof group);
    snprintf(text, bytes,
             "rank %d: phase %s, claimed seq %llu, completed seq %llu, epoch "
             "%llu, policy %016llx\n"
             "rank %d: failure %llu (%s) at seq %llu step %llu, waits for "
             "ranks [%s]\n"
             "rank %d: control plane: %s\n",
             (int)comm->plan->rank,
             hot.control & RG_CONTROL_HELD                      ? "held"
             : claimed != (hot.completed & RG_CONTROL_SEQ_MASK) ? "running"
                                                                : "idle",
             (unsigned long long)claimed, (unsigned long long)hot.completed,
             (unsigned long long)comm->view->epoch,
             (unsigned long long)comm->view->policy_hash, (int)comm->plan->rank,
             (unsigned long long)rg_load_acquire(&mailbox->failure),
             rg_status_string(rg_comm_error(comm)),
             (unsigned long long)rg_load_relaxed(&mailbox->seq),
             (unsigned long long)rg_load_relaxed(&mailbox->step), peers,
             (int)comm->plan->rank, group);
    return RG_OK;
}
