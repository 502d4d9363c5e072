#include "runtime/exec/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/device/word.h"
#include "runtime/exec/hold.h"
#include "runtime/exec/legacy_path.h"
#include "runtime/exec/proxy_path.h"
#include "runtime/exec/select.h"
#include "runtime/transfer/route_table.h"
#include "runtime/transfer/routes/proxy/proxy.h"

enum { COMM_TEAM_ALIGN = 4096 };

static int comm_rank(const struct rg_comm *comm)
{
    return comm->context->config.rank;
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

/* Behind both plans. */
static size_t block_messages_offset(int capacity)
{
    return block_plan_offset(capacity, 2);
}

static size_t messages_bytes(int capacity)
{
    return RG_MESSAGES_OF(capacity) * sizeof(uint64_t);
}

/* In the mapped block, behind its plan. */
static size_t told_offset(int capacity)
{
    return sizeof(struct rg_comm_mapped) + rg_plan_bytes(capacity);
}

uint64_t *rg_comm_told(const struct rg_comm *comm)
{
    return (uint64_t *)(void *)((char *)comm->mapped +
                                told_offset(comm->context->config.capacity));
}

uint64_t *rg_comm_counts(const struct rg_comm *comm)
{
    return (uint64_t *)(void *)(comm->context->service->region +
                                comm->control_offset +
                                block_messages_offset(
                                    comm->context->config.capacity));
}

static int block_init(struct rg_comm *comm)
{
    struct rg_context *context = comm->context;
    const int capacity = context->config.capacity;
    struct rg_comm_mapped *mapped = comm->mapped_device;
    uint8_t *block = context->service->region + comm->control_offset;
    struct rg_comm_dev dev;
    int status;

    memset(&dev, 0, sizeof dev);
    dev.control = RG_CONTROL_HELD;
    dev.deadline_ns = deadline_ns(context);
    dev.gate_ns = context->settings.gate_us * 1000ull;
    dev.park_ns = dev.keep_ns = context->settings.park_ms * 1000000ull;
    /* Where the caller decides what follows a failure, it must get the word. */
    dev.parks = context->parks && !context->settings.mode;
    dev.hot.completed = dev.frozen = dev.stopped = comm->held.claimed;
    dev.region = context->service->region;
    dev.region_bytes = context->service->bytes;
    dev.abort_epoch = &mapped->abort_epoch;
    dev.mailbox = &mapped->mailbox;
    dev.orders = &mapped->orders;
    dev.messages = rg_comm_counts(comm);
    dev.told = (uint64_t *)(void *)((char *)mapped + told_offset(capacity));
    dev.slots = (uint64_t)capacity;
    dev.noted = &mapped->noted;
    for (int i = 0; i < 2; i++)
        dev.plan[i] =
            (struct rg_plan *)(void *)(block + block_plan_offset(capacity, i));
    comm->dev = (struct rg_comm_dev *)(void *)block;
    status = context->ops->set(context->device, dev.messages, 0,
                               messages_bytes(capacity));
    if (status)
        return status;
    return context->ops->memory->copy(context->device, block, &dev, sizeof dev);
}

static int comm_allocate(struct rg_comm *comm)
{
    struct rg_context *context = comm->context;
    struct rg_arena *arena = &context->service->arena;
    const int capacity = context->config.capacity;
    int status;

    status = context->ops->host_alloc(
        context->device, told_offset(capacity) + messages_bytes(capacity),
        (void **)&comm->mapped, (void **)&comm->mapped_device);
    if (status)
        return status;
    status = rg_arena_alloc(
        arena, block_messages_offset(capacity) + messages_bytes(capacity),
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
    comm->ways = calloc((size_t)capacity, sizeof *comm->ways);
    comm->routes = calloc((size_t)capacity, sizeof *comm->routes);
    comm->plan = calloc(1, rg_plan_bytes(capacity));
    comm->agreed = calloc(RG_MESSAGES_OF(capacity), sizeof *comm->agreed);
    comm->partners = calloc((size_t)capacity, sizeof *comm->partners);
    if (!comm->ways || !comm->routes || !comm->plan || !comm->agreed ||
        !comm->partners)
        return RG_ENOMEM;
    return block_init(comm);
}

/* ---- plans -------------------------------------------------------------- */

uint64_t rg_comm_workspace(const struct rg_comm *comm, uint32_t generation)
{
    return comm->workspace_offset +
           generation % comm->context->settings.workspaces * comm->layout.bytes;
}

struct rg_plan_input rg_comm_plan_input(const struct rg_comm *comm,
                                        const struct rg_view *view)
{
    const struct rg_context *context = comm->context;
    struct rg_plan_input input = {
        .view = view,
        .routes = comm->routes,
        .kind = context->config.device,
        .channels = context->ops->channels(context->device),
        .node_ranks = context->settings.node_ranks,
        .workspace = rg_comm_workspace(comm, view->workspace)};

    while (view->members[view->order[input.rank]].world_rank != comm_rank(comm))
        input.rank++;
    return input;
}

int rg_comm_completed(struct rg_comm *comm, uint64_t *seq_out)
{
    const struct rg_context *context = comm->context;

    if (rg_load_relaxed(&comm->backend) != RG_BACKEND_LEGACY)
        return context->ops->read_word(context->device,
                                       &comm->dev->hot.completed, seq_out);
    *seq_out = rg_legacy_path_completed(comm);
    return RG_OK;
}

/* ---- life --------------------------------------------------------------- */

int rg_comm_info(const struct rg_comm *comm, struct rg_member_info *info_out)
{
    const struct rg_context *context = comm->context;
    const struct rg_region_key key = rg_service_key(context->service);
    struct rg_device_info device;
    struct rg_engine_card cards[RG_CARDS];
    int mapped, status = context->ops->info(context->device, &device);

    if (status == RG_OK)
        status = rg_route_is_on(RG_ROUTE_P2P, &mapped);
    if (status)
        return status;
    static_assert(sizeof cards == sizeof info_out->card,
                  "a member's card is those of its engines");
    memset(info_out, 0, sizeof *info_out);
    if (mapped)
        info_out->capabilities |= RG_CAP_P2P;
    if (comm->proxy)
        info_out->capabilities |= RG_CAP_PROXY;
    if (info_out->capabilities || context->config.size == 1)
        info_out->capabilities |= RG_CAP_NEW_BACKEND;
    info_out->preference = context->preference;
    info_out->device_kind = context->config.device;
    info_out->cores = (uint32_t)device.cores;
    info_out->region_bytes = context->service->bytes;
    /* Who counts as one node must be agreed on like the layout. */
    info_out->layout_hash =
        rg_hash(comm->layout.hash, &context->settings.node_ranks,
                sizeof context->settings.node_ranks);
    info_out->region_process = key.process;
    info_out->region_base = key.base;
    rg_legacy_path_card(comm->legacy, &cards[RG_CARD_LEGACY]);
    rg_proxy_path_card(comm->proxy, &cards[RG_CARD_PROXY]);
    memcpy(info_out->card, cards, sizeof info_out->card);
    snprintf(info_out->host_id, sizeof info_out->host_id, "%s",
             context->host_id);
    snprintf(info_out->device_uuid, sizeof info_out->device_uuid, "%s",
             device.uuid);
    return RG_OK;
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

void rg_comm_unmake(struct rg_comm *comm)
{
    struct rg_arena *arena;

    if (!comm)
        return;
    arena = &comm->context->service->arena;
    comm_unlink(comm);
    rg_helper_destroy(comm->helper);
    rg_legacy_path_destroy(comm->legacy);
    rg_proxy_path_destroy(comm->proxy);
    if (comm->control_offset)
        rg_arena_free(arena, comm->control_offset);
    if (comm->workspace_offset)
        rg_arena_free(arena, comm->workspace_offset);
    if (comm->mapped)
        comm->context->ops->host_free(comm->context->device, comm->mapped);
    rg_view_destroy(comm->view);
    pthread_mutex_destroy(&comm->lock);
    free(comm->ways);
    free(comm->routes);
    free(comm->plan);
    free(comm->agreed);
    free(comm->partners);
    free(comm);
}

int rg_comm_layout(const struct rg_context *context,
                   struct rg_layout *layout_out)
{
    return rg_layout_init(
        layout_out, context->config.algos, context->config.capacity,
        context->ops->max_channels(context->device),
        (int)context->settings.workspaces, context->service->bytes / RG_SHARES);
}

int rg_comm_make(struct rg_context *context, struct rg_comm **comm_out)
{
    struct rg_comm *comm = calloc(1, sizeof *comm);
    int status;

    if (!comm)
        return RG_ENOMEM;
    comm->context = context;
    comm->group = ++context->next_group;
    comm->seq = comm->held.claimed = comm->held.completed =
        context->config.first_seq - 1;
    comm->plan_index = 1;
    pthread_mutex_init(&comm->lock, NULL);
    comm_link(comm);
    status = rg_comm_layout(context, &comm->layout);
    if (status == RG_OK)
        status = comm_allocate(comm);
    if (status == RG_OK)
        status = rg_legacy_path_create(comm);
    if (status == RG_OK)
        status = rg_proxy_path_create(comm);
    if (status == RG_OK)
        status = rg_helper_create(comm);
    if (status) {
        rg_comm_unmake(comm);
        return status;
    }
    *comm_out = comm;
    return RG_OK;
}

/* ---- what is known ------------------------------------------------------ */

int rg_comm_view(struct rg_comm *comm, struct rg_view_info *info_out)
{
    const struct rg_view *view;

    memset(info_out, 0, sizeof *info_out);
    pthread_mutex_lock(&comm->lock);
    view = comm->view;
    info_out->epoch = view->epoch;
    info_out->term = view->term;
    info_out->first_seq = view->first_seq;
    info_out->policy_hash = view->policy_hash;
    info_out->rank = (int)comm->plan->rank;
    info_out->slot = view->order[info_out->rank];
    info_out->nranks = view->nactive;
    info_out->capacity = view->capacity;
    info_out->backend = view->backend;
    pthread_mutex_unlock(&comm->lock);
    return RG_OK;
}

int rg_comm_members(struct rg_comm *comm, int *world_rank_out)
{
    const struct rg_view *view;

    pthread_mutex_lock(&comm->lock);
    view = comm->view;
    for (int slot = 0; slot < view->capacity; slot++)
        world_rank_out[slot] = view->members[slot].status == RG_MEMBER_ACTIVE
                                   ? view->members[slot].world_rank
                                   : -1;
    pthread_mutex_unlock(&comm->lock);
    return RG_OK;
}

int rg_comm_seq(struct rg_comm *comm, uint64_t *seq_out)
{
    *seq_out = rg_load_relaxed(&comm->seq);
    return RG_OK;
}

int rg_comm_traffic(struct rg_comm *comm, int world_rank,
                    struct rg_traffic *traffic_out)
{
    struct rg_proxy *proxy = rg_proxy_path_proxy(comm->proxy);
    struct rg_engine_traffic traffic = {0};

    if (world_rank < 0 || world_rank >= comm->context->config.size)
        return RG_EINVAL;
    if (proxy)
        rg_proxy_get_traffic(proxy, world_rank, &traffic);
    *traffic_out = (struct rg_traffic){traffic.payload, traffic.sent};
    return RG_OK;
}

int rg_comm_break_route(struct rg_comm *comm, int world_rank)
{
    const struct rg_context *context = comm->context;
    struct rg_route broken = {.kind = RG_ROUTE_NULL};
    struct rg_plan *plan;
    int rank, status = RG_EINVAL;

    pthread_mutex_lock(&comm->lock);
    plan = (struct rg_plan *)(void *)((unsigned char *)comm->dev +
                                      block_plan_offset(comm->view->capacity,
                                                        comm->plan_index));
    rank = rg_view_rank_of(comm->view, rg_view_slot_of(comm->view, world_rank));
    if (rank >= 0 && world_rank != comm_rank(comm)) {
        broken.slot = comm->plan->routes[rank].slot;
        /* Kind and slot are one word: teams may be reading it. */
        status = context->ops->memory->copy_words(
            context->device, (uint64_t *)(void *)&plan->routes[rank],
            (const uint64_t *)(const void *)&broken, 1);
    }
    pthread_mutex_unlock(&comm->lock);
    return status;
}

int rg_comm_route(struct rg_comm *comm, int world_rank,
                  enum rg_route_kind *kind_out)
{
    int rank;

    pthread_mutex_lock(&comm->lock);
    rank = rg_view_rank_of(comm->view, rg_view_slot_of(comm->view, world_rank));
    if (rank >= 0)
        *kind_out = comm->view->backend == RG_BACKEND_LEGACY
                        ? RG_ROUTE_NULL
                        : (enum rg_route_kind)comm->plan->routes[rank].kind;
    pthread_mutex_unlock(&comm->lock);
    return rank >= 0 ? RG_OK : RG_EINVAL;
}

/* Slower kinds have higher numbers, own memory apart. */
static enum rg_route_kind slowest_route(const struct rg_comm *comm)
{
    enum rg_route_kind slowest = RG_ROUTE_SELF;

    for (uint32_t p = 0; p < comm->plan->nranks; p++) {
        const enum rg_route_kind kind = comm->plan->routes[p].kind;

        if (kind != RG_ROUTE_SELF &&
            (slowest == RG_ROUTE_SELF || kind > slowest))
            slowest = kind;
    }
    return slowest;
}

static int last_legacy_run(struct rg_comm *comm, uint64_t completed,
                           struct rg_run_info *info_out)
{
    pthread_mutex_lock(&comm->lock);
    info_out->seq = completed;
    info_out->epoch = (uint32_t)comm->view->epoch;
    info_out->algorithm = "legacy";
    info_out->channels = 1;
    info_out->route = RG_ROUTE_HOST;
    pthread_mutex_unlock(&comm->lock);
    return RG_OK;
}

int rg_comm_limits(struct rg_comm *comm, const struct rg_algo *algo,
                   struct rg_comm_limits *limits_out)
{
    const struct rg_layout *layout = &comm->layout;
    const int coll = (int)algo->collective;
    struct rg_plan_input input = {0};
    int i = 0, runs;

    while (i < layout->count[coll] && layout->algo[coll][i] != algo)
        i++;
    if (i == layout->count[coll])
        return RG_EINVAL;
    pthread_mutex_lock(&comm->lock);
    input.view = comm->view;
    runs = rg_rules_can_run(layout, coll, i, &input);
    pthread_mutex_unlock(&comm->lock);
    limits_out->max_bytes = runs ? layout->limits[coll][i].max_bytes : 0;
    limits_out->max_chunk = layout->limits[coll][i].max_chunk;
    limits_out->max_channels = layout->shape.max_channels;
    return RG_OK;
}

int rg_comm_last_run(struct rg_comm *comm, struct rg_run_info *info_out)
{
    const struct rg_context *context = comm->context;
    uint64_t run, completed;
    int status = comm->last ? rg_stream_synchronize(comm->last) : RG_OK;

    if (status == RG_OK)
        status =
            context->ops->read_word(context->device, &comm->dev->hot.run, &run);
    if (status == RG_OK)
        status = rg_comm_completed(comm, &completed);
    if (status)
        return status;
    memset(info_out, 0, sizeof *info_out);
    if (rg_load_relaxed(&comm->backend) == RG_BACKEND_LEGACY)
        return last_legacy_run(comm, completed, info_out);
    info_out->seq = run ? completed : 0;
    info_out->epoch = RG_RUN_EPOCH(run);
    info_out->algorithm =
        run ? comm->layout.algo[RG_RUN_COLLECTIVE(run)][RG_RUN_ALGO(run)]->name
            : "none";
    info_out->channels = RG_RUN_CHANNELS(run);
    pthread_mutex_lock(&comm->lock);
    info_out->route = slowest_route(comm);
    pthread_mutex_unlock(&comm->lock);
    return RG_OK;
}

/* The most telling of the reasons that teams met. */
static int reasons_status(uint64_t reasons)
{
    static const int order[] = {RG_EUNAVAILABLE, RG_EINVAL, RG_ETIMEDOUT,
                                RG_EABORTED, RG_EFAILED};

    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (reasons & 1ull << -order[i])
            return order[i];
    return RG_EFAILED;
}

int rg_comm_error(struct rg_comm *comm)
{
    const struct rg_mailbox *mailbox = &comm->mapped->mailbox;
    struct rg_legacy_failure legacy;

    if (rg_load_relaxed(&comm->closed))
        return -(int)rg_load_relaxed(&comm->closed);
    if (rg_load_relaxed(&comm->backend) == RG_BACKEND_LEGACY) {
        rg_legacy_path_failure(comm, &legacy, NULL);
        return legacy.count == comm->legacy_failures_seen ? RG_OK
                                                          : legacy.status;
    }
    /* Pairs with the release store at the safe point. */
    if (rg_load_acquire(&mailbox->failure) != comm->failures_seen)
        return reasons_status(rg_load_relaxed(&mailbox->reasons));
    if (rg_load_relaxed(&comm->undone) > rg_load_relaxed(&comm->mapped->noted))
        return RG_EABORTED;
    return rg_load_relaxed(&mailbox->declined) == comm->declines_seen
               ? RG_OK
               : RG_EUNAVAILABLE;
}

void rg_comm_clear_error(struct rg_comm *comm)
{
    struct rg_legacy_failure legacy;

    rg_legacy_path_failure(comm, &legacy, NULL);
    comm->legacy_failures_seen = legacy.count;
    comm->failures_seen = rg_load_acquire(&comm->mapped->mailbox.failure);
    comm->declines_seen = rg_load_relaxed(&comm->mapped->mailbox.declined);
    rg_store_relaxed(&comm->mapped->noted, rg_load_relaxed(&comm->undone));
}

int rg_comm_gather(struct rg_comm *comm, const void *in, size_t bytes,
                   void *out)
{
    return rg_driver_gather(comm->context->driver, comm->group, in, bytes, out,
                            (int)comm->context->settings.bootstrap_ms);
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

/* Words of the device, read while teams may write them. */
static int read_words(struct rg_comm *comm, uint64_t *control_out,
                      uint64_t *completed_out)
{
    const struct rg_context *context = comm->context;
    const int status = context->ops->read_word(
        context->device, &comm->dev->control, control_out);

    return status ? status : rg_comm_completed(comm, completed_out);
}

static const char *phase_of(uint64_t control, uint64_t completed)
{
    const uint64_t claimed = control >> RG_CONTROL_SEQ_SHIFT;

    if (control & RG_CONTROL_HELD)
        return "held";
    return control & (RG_CONTROL_ARRIVALS | RG_CONTROL_MESSENGERS) ||
                   claimed != (completed & RG_CONTROL_SEQ_MASK)
               ? "running"
               : "idle";
}

int rg_comm_describe(struct rg_comm *comm, char *text, size_t bytes)
{
    struct rg_context *context = comm->context;
    const struct rg_mailbox *mailbox = &comm->mapped->mailbox;
    char peers[256], group[256] = "";
    uint64_t control, completed;
    struct rg_view_info view;
    int status = read_words(comm, &control, &completed);

    if (status == RG_OK)
        status = rg_comm_view(comm, &view);
    if (status)
        return status;
    describe_peers(mailbox, peers, sizeof peers);
    rg_driver_describe(context->driver, comm->group, group, sizeof group);
    snprintf(text, bytes,
             "rank %d: phase %s, claimed seq %llu, completed seq %llu, epoch "
             "%llu, policy %016llx\n"
             "rank %d: failure %llu (%s) at seq %llu step %llu, waits for "
             "ranks [%s]\n"
             "rank %d: control plane: %s\n",
             view.rank, phase_of(control, completed),
             (unsigned long long)(control >> RG_CONTROL_SEQ_SHIFT) +
                 ((control & RG_CONTROL_ARRIVALS) != 0),
             (unsigned long long)completed, (unsigned long long)view.epoch,
             (unsigned long long)view.policy_hash, view.rank,
             (unsigned long long)rg_load_acquire(&mailbox->failure),
             rg_status_string(rg_comm_error(comm)),
             (unsigned long long)rg_load_relaxed(&mailbox->seq),
             (unsigned long long)rg_load_relaxed(&mailbox->step), peers,
             view.rank, group);
    return RG_OK;
}
