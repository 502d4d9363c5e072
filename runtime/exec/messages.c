#include "runtime/exec/messages.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/core/log.h"
#include "runtime/device/word.h"
#include "runtime/exec/legacy_path.h"

/* ---- a batch ------------------------------------------------------------ */

static int own_slot(const struct rg_comm *comm, int *slot_out)
{
    struct rg_view_info view;
    const int status = rg_comm_view((struct rg_comm *)(uintptr_t)comm, &view);

    if (status == RG_OK)
        *slot_out = view.slot;
    return status;
}

/* What is wrong with one, or null. */
static const char *message_fault(const struct rg_comm *comm, const void *buffer,
                                 size_t count, enum rg_dtype dtype, int slot)
{
    const size_t size = rg_dtype_size(dtype);

    if (!size)
        return "unknown type";
    if (count > SIZE_MAX / 2 / size)
        return "count too large";
    if (slot < 0 || slot >= comm->context->config.capacity)
        return "no such slot";
    if (count && !buffer)
        return "null buffer";
    return (uintptr_t)buffer % size ? "buffer not aligned to its element"
                                    : NULL;
}

static int refuse(struct rg_comm *comm, const char *why)
{
    struct rg_batch *batch = &comm->batch;

    rg_log(RG_LOG_ERROR, comm->context->config.rank, "sendrecv: %s", why);
    if (batch->status == RG_OK)
        batch->status = RG_EINVAL;
    return RG_EINVAL;
}

/* The first of this kind to the own slot that has no other end yet. */
static struct rg_post *find_own(struct rg_batch *batch, int slot,
                                enum rg_post_kind kind)
{
    for (uint64_t m = 0; m < batch->args.launch.nposts; m++) {
        struct rg_post *message = &batch->args.post[m];

        if (message->slot == (uint32_t)slot && message->kind == kind)
            return message;
    }
    return NULL;
}

static int batch_join(struct rg_comm *comm, struct rg_post *other,
                      const struct rg_post *message)
{
    if (other->bytes != message->bytes)
        return refuse(comm, "a message to itself has two sizes");
    if (message->kind == RG_POST_SEND)
        other->from = message->from;
    else
        other->to = message->to;
    other->kind = RG_POST_COPY;
    return RG_OK;
}

static int batch_add(struct rg_comm *comm, const struct rg_post *message)
{
    struct rg_batch *batch = &comm->batch;
    struct rg_launch *launch = &batch->args.launch;
    struct rg_post *other = NULL;
    int own, status = own_slot(comm, &own);

    if (status)
        return status;
    if (message->slot == (uint32_t)own)
        other = find_own(batch, own,
                         message->kind == RG_POST_SEND ? RG_POST_RECV
                                                       : RG_POST_SEND);
    if (other)
        return batch_join(comm, other, message);
    if (launch->nposts == RG_GROUP_MAX)
        return refuse(comm, "too many messages in a group");
    batch->args.post[launch->nposts++] = *message;
    if (message->bytes > launch->count)
        launch->count = message->bytes;
    return RG_OK;
}

/* Each is told which one goes ahead of it. */
static void batch_order(struct rg_batch *batch)
{
    for (uint64_t m = 0; m < batch->args.launch.nposts; m++) {
        struct rg_post *message = &batch->args.post[m];

        message->before = RG_POST_NONE;
        for (uint64_t b = 0; b < m; b++)
            if (batch->args.post[b].kind == message->kind &&
                batch->args.post[b].slot == message->slot)
                message->before = (uint16_t)b;
    }
}

/* ---- launches ----------------------------------------------------------- */

static int launch_new(struct rg_comm *comm, struct rg_stream *stream)
{
    const struct rg_device_ops *ops = comm->context->ops;
    struct rg_launch *launch = &comm->batch.args.launch;
    struct rg_geometry geometry;
    int status;

    if (!comm->layout.count[RG_COLL_sendrecv])
        return RG_ENOTSUP;
    status = rg_comm_take_turn(comm, stream, 0);
    if (status)
        return status;
    ops->geometry(comm->context->device, RG_COLL_sendrecv, launch->count,
                  (int)rg_load_relaxed(&comm->sharers), &geometry);
    launch->comm = comm->dev;
    launch->collective = RG_COLL_sendrecv;
    launch->slots = (uint32_t)comm->context->config.capacity;
    launch->dtype = RG_u8;
    launch->posts = comm->batch.args.post;
    return ops->launch(stream->native, &geometry,
                       comm->layout.algo[RG_COLL_sendrecv][0]->entries, RG_u8,
                       launch);
}

/* What one receives into lies apart from all that the others touch. */
static int is_apart(const struct rg_batch *batch, uint64_t m)
{
    const struct rg_post *post = &batch->args.post[m];

    for (uint64_t i = 0; post->to && i < batch->args.launch.nposts; i++) {
        const struct rg_post *other = &batch->args.post[i];

        if (other->from && rg_buffers_overlap(post->to, post->bytes,
                                              other->from, other->bytes))
            return 0;
        if (i != m && other->to &&
            rg_buffers_overlap(post->to, post->bytes, other->to, other->bytes))
            return 0;
    }
    return 1;
}

/* Launches what has been gathered. */
static int batch_launch(struct rg_comm *comm, struct rg_stream *stream)
{
    struct rg_batch *batch = &comm->batch;
    int own, status = own_slot(comm, &own);

    if (status == RG_OK)
        status = rg_comm_check(comm);
    if (status)
        return status;
    if (find_own(batch, own, RG_POST_SEND) ||
        find_own(batch, own, RG_POST_RECV))
        return refuse(comm, "a message to itself has one end");
    for (uint64_t m = 0; m < batch->args.launch.nposts; m++)
        if (!is_apart(batch, m))
            return refuse(comm, "buffers overlap");
    if (rg_load_relaxed(&comm->backend) != RG_BACKEND_NEW)
        return RG_ENOTSUP;
    batch_order(batch);
    return batch->args.launch.nposts ? launch_new(comm, stream) : RG_OK;
}

int rg_group_begin(struct rg_comm *comm, struct rg_stream *stream)
{
    struct rg_batch *batch = &comm->batch;

    if (!stream)
        return RG_EINVAL;
    if (batch->stream)
        return RG_EBUSY;
    batch->stream = stream;
    batch->status = RG_OK;
    memset(&batch->args.launch, 0, sizeof batch->args.launch);
    return RG_OK;
}

int rg_group_end(struct rg_comm *comm)
{
    struct rg_batch *batch = &comm->batch;
    struct rg_stream *stream = batch->stream;

    batch->stream = NULL;
    if (!stream)
        return RG_EINVAL;
    return batch->status ? batch->status : batch_launch(comm, stream);
}

/* In a group, or as one of its own. */
static int post(struct rg_comm *comm, struct rg_stream *stream,
                const struct rg_post *message, const char *why)
{
    const int alone = !comm->batch.stream;
    int status = RG_OK, ended;

    if (alone)
        status = rg_group_begin(comm, stream);
    if (status)
        return status;
    if (!why && stream != comm->batch.stream)
        why = "another stream than the group's";
    if (why)
        status = refuse(comm, why);
    else if (message->bytes)
        status = batch_add(comm, message);
    if (!alone)
        return status;
    ended = rg_group_end(comm);
    return status ? status : ended;
}

int rg_send(const void *send, size_t count, enum rg_dtype dtype, int slot,
            struct rg_comm *comm, struct rg_stream *stream)
{
    const struct rg_post message = {.from = send,
                                    .bytes = count * rg_dtype_size(dtype),
                                    .slot = (uint32_t)slot,
                                    .kind = RG_POST_SEND};

    return post(comm, stream, &message,
                message_fault(comm, send, count, dtype, slot));
}

int rg_recv(void *recv, size_t count, enum rg_dtype dtype, int slot,
            struct rg_comm *comm, struct rg_stream *stream)
{
    const struct rg_post message = {.to = recv,
                                    .bytes = count * rg_dtype_size(dtype),
                                    .slot = (uint32_t)slot,
                                    .kind = RG_POST_RECV};

    return post(comm, stream, &message,
                message_fault(comm, recv, count, dtype, slot));
}

/* ---- counts ------------------------------------------------------------- */

int rg_comm_messages(struct rg_comm *comm, int slot,
                     struct rg_messages *messages_out)
{
    const struct rg_context *context = comm->context;
    uint64_t here[2];
    int status = rg_comm_check(comm);

    if (slot < 0 || slot >= context->config.capacity)
        return RG_EINVAL;
    for (int way = 0; way < 2 && status == RG_OK; way++)
        status = context->ops->read_word(
            context->device,
            &rg_comm_counts(comm)[RG_MESSAGES_OF(slot) + (uint64_t)way],
            &here[way]);
    if (status)
        return status;
    pthread_mutex_lock(&comm->lock);
    if (rg_load_relaxed(&comm->settling))
        status = RG_EPENDING;
    else
        *messages_out = (struct rg_messages){
            comm->agreed[RG_MESSAGES_OF(slot)] + here[RG_POST_SEND],
            comm->agreed[RG_MESSAGES_OF(slot) + 1] + here[RG_POST_RECV],
            comm->agreed[RG_MESSAGES_OF(slot)],
            comm->agreed[RG_MESSAGES_OF(slot) + 1]};
    pthread_mutex_unlock(&comm->lock);
    return status;
}

/* The slot that this rank has in a view. */
static int slot_in(const struct rg_comm *comm, const struct rg_view *view)
{
    return rg_view_slot_of(view, comm->context->config.rank);
}

static void pairs_add(struct rg_pairs *pairs, int from, int to, uint64_t count)
{
    if (count)
        pairs->items[pairs->count++] =
            (struct rg_pair){.from = from, .to = to, .count = count};
}

int rg_messages_held(struct rg_comm *comm, struct rg_pairs *pairs_out)
{
    const int slots = comm->context->config.capacity;
    const int own = slot_in(comm, comm->view);
    const uint64_t *told = rg_comm_told(comm);
    struct rg_pairs pairs = {0};

    pairs.items = calloc(RG_MESSAGES_OF(slots), sizeof *pairs.items);
    if (!pairs.items)
        return RG_ENOMEM;
    for (int from = 0; own >= 0 && from < slots; from++) {
        if (from != own)
            pairs_add(
                &pairs, from, own,
                rg_load_relaxed(&told[RG_MESSAGES_OF(from) + RG_POST_RECV]));
        for (int to = 0; from == own && to < slots; to++)
            pairs_add(
                &pairs, own, to,
                rg_load_relaxed(&told[RG_MESSAGES_OF(to) + RG_POST_SEND]));
    }
    *pairs_out = pairs;
    return RG_OK;
}

/* Whether both ends are the processes that they were. */
static int is_same_pair(const struct rg_comm *comm, int own, int slot)
{
    const struct rg_view *view = comm->view;
    const uint64_t here = view->members[own].incarnation;
    const uint64_t there = view->members[slot].incarnation;
    const int same =
        comm->partners[slot] == there && comm->partners[own] == here;

    return same && view->members[slot].status == RG_MEMBER_ACTIVE;
}

/* Whether more has ended here than at both ends. */
static int has_undone(const struct rg_comm *comm, int own, int slot)
{
    const struct rg_pairs *pairs = &comm->view->pairs;
    const uint64_t *told = &rg_comm_told(comm)[RG_MESSAGES_OF(slot)];

    return rg_load_relaxed(&told[RG_POST_SEND]) >
               rg_pairs_find(pairs, own, slot) ||
           rg_load_relaxed(&told[RG_POST_RECV]) >
               rg_pairs_find(pairs, slot, own);
}

uint64_t rg_messages_undone(struct rg_comm *comm)
{
    const int own = slot_in(comm, comm->view);
    const uint64_t before = rg_load_relaxed(&comm->undone);

    for (int slot = 0; slot < comm->view->capacity; slot++)
        if (is_same_pair(comm, own, slot) && has_undone(comm, own, slot)) {
            rg_store_relaxed(&comm->undone, comm->view->epoch);
            return comm->view->epoch;
        }
    return before > rg_load_relaxed(&comm->mapped->noted) ? before : 0;
}

void rg_messages_settle(struct rg_comm *comm)
{
    const struct rg_view *view = comm->view;
    const int own = slot_in(comm, view);
    uint64_t *told = rg_comm_told(comm);

    pthread_mutex_lock(&comm->lock);
    for (int slot = 0; slot < view->capacity; slot++) {
        uint64_t *agreed = &comm->agreed[RG_MESSAGES_OF(slot)];
        const int same = is_same_pair(comm, own, slot);

        agreed[0] =
            same ? agreed[0] + rg_pairs_find(&view->pairs, own, slot) : 0;
        agreed[1] =
            same ? agreed[1] + rg_pairs_find(&view->pairs, slot, own) : 0;
        rg_store_relaxed(&told[RG_MESSAGES_OF(slot) + RG_POST_SEND], 0);
        rg_store_relaxed(&told[RG_MESSAGES_OF(slot) + RG_POST_RECV], 0);
    }
    for (int slot = 0; slot < view->capacity; slot++)
        comm->partners[slot] = view->members[slot].incarnation;
    rg_store_relaxed(&comm->settling, 0);
    pthread_mutex_unlock(&comm->lock);
}
