/* Public collectives: arguments checked, backend chosen, entry launched. */
#include "runtime/core/log.h"
#include "runtime/device/word.h"
#include "runtime/exec/legacy_path.h"

int rg_buffers_overlap(const void *a, size_t a_bytes, const void *b,
                       size_t b_bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return x < y ? y - x < a_bytes : x - y < b_bytes;
}

/* What is wrong with the arguments, or null. */
static const char *argument_fault(const struct rg_comm *comm,
                                  const struct rg_legacy_call *call)
{
    const size_t size = rg_dtype_size(call->dtype);
    const size_t most = SIZE_MAX / 2 / (size_t)comm->context->config.capacity;

    if (!size || (unsigned)call->op >= RG_OP_COUNT)
        return "unknown type or operation";
    if (rg_collective_reduces(call->collective) &&
        !rg_op_fits(call->op, call->dtype))
        return "the operation is not defined for the type";
    if (call->count > most / size)
        return "count too large";
    if (call->root < 0 || call->root >= comm->context->config.capacity)
        return "no such root";
    if ((uintptr_t)call->send % size || (uintptr_t)call->recv % size)
        return "buffer not aligned to its element";
    return NULL;
}

/* The same for the buffers, once their sizes are known. */
static const char *buffer_fault(const struct rg_legacy_call *call, int in_place)
{
    if ((call->send_bytes && !call->send) || (call->recv_bytes && !call->recv))
        return "null buffer";
    if (!in_place && rg_buffers_overlap(call->send, call->send_bytes,
                                        call->recv, call->recv_bytes))
        return "buffers overlap partly";
    return NULL;
}

static int refuse(const struct rg_comm *comm, enum rg_collective collective,
                  const char *why)
{
    rg_log(RG_LOG_ERROR, comm->context->config.rank, "%s: %s",
           rg_collective_name(collective), why);
    return RG_EINVAL;
}

int rg_comm_check(const struct rg_comm *comm)
{
    if (rg_load_relaxed(&comm->closed))
        return -(int)rg_load_relaxed(&comm->closed);
    return RG_OK;
}

/* The entries of a collective, or null when no algorithm was given for it. */
static const struct rg_entries *entries_of(const struct rg_comm *comm,
                                           enum rg_collective collective)
{
    if (!comm->layout.count[collective])
        return NULL;
    return comm->layout.algo[collective][0]->entries;
}

/* An integer's bits do not tell whether it has a sign. */
static int op_wraps(enum rg_op op)
{
#define RG_X(name) op == RG_##name ||
    return RG_OP_WRAP_LIST(RG_X) RG_OP_BITS_LIST(RG_X) 0;
#undef RG_X
}

/*
 * Whose entry runs it. In two's complement a sum or a product of signed
 * integers has the bits of that of unsigned ones, and is not built twice; nor
 * are operations on bits.
 */
static enum rg_dtype entry_dtype(enum rg_dtype dtype, enum rg_op op)
{
#define RG_X(s, u)                                                             \
    if (dtype == RG_##s && op_wraps(op))                                       \
        return RG_##u;
    RG_DTYPE_SIGN_LIST(RG_X)
#undef RG_X
    return dtype;
}

/* Collectives that only move data are built once, for bytes. */
static struct rg_launch launch_of(const struct rg_comm *comm,
                                  const struct rg_legacy_call *call)
{
    const size_t size = rg_dtype_size(call->dtype);
    const int bytes = !rg_collective_reduces(call->collective);
    const struct rg_launch args = {
        .comm = comm->dev,
        .send = call->send,
        .recv = call->recv,
        .count = bytes ? call->count * size : call->count,
        .collective = call->collective,
        .root = (uint32_t)call->root,
        .op = bytes ? 0 : call->op,
        .slots = (uint32_t)comm->context->config.capacity,
        .dtype = call->dtype,
        .unit = (uint32_t)size,
        .layout = call->layout,
        .room = {call->send_bytes / size, call->recv_bytes / size},
    };

    return args;
}

/* Bytes of a rank's largest buffer: what rules go by, and a launch is made
 * for. */
static uint64_t rule_bytes(const struct rg_comm *comm,
                           const struct rg_legacy_call *call)
{
    const uint64_t bytes = call->count * rg_dtype_size(call->dtype);

    return bytes *
           rg_rule_blocks(call->collective, comm->context->config.capacity);
}

static int launch_new(struct rg_comm *comm, struct rg_stream *stream,
                      const struct rg_legacy_call *call, int bare)
{
    const struct rg_device_ops *ops = comm->context->ops;
    const struct rg_entries *entries = entries_of(comm, call->collective);
    const struct rg_launch args = launch_of(comm, call);
    struct rg_geometry geometry;
    int status;

    if (!entries)
        return RG_ENOTSUP;
    status = rg_comm_take_turn(comm, stream, 1);
    if (status)
        return status;
    ops->geometry(comm->context->device, call->collective,
                  rule_bytes(comm, call), (int)rg_load_relaxed(&comm->sharers),
                  &geometry);
    geometry.bare = bare;
    /* It serves one packet a thread. */
    if (bare && args.count * rg_dtype_size(call->dtype) >
                    (size_t)geometry.threads * RG_PACKET_PAYLOAD)
        return RG_ENOTSUP;
    if (!stream->capture)
        rg_comm_count(comm, 1);
    return ops->launch(stream->native, &geometry, entries,
                       rg_collective_reduces(call->collective)
                           ? entry_dtype(call->dtype, call->op)
                           : RG_u8,
                       &args);
}

static int launch(struct rg_comm *comm, struct rg_stream *stream,
                  const struct rg_legacy_call *call)
{
    int status = rg_comm_check(comm);

    if (status == RG_OK && !stream->capture &&
        rg_load_relaxed(&comm->backend) != RG_BACKEND_NEW)
        status = rg_legacy_path_launch(comm, stream, call);
    else if (status == RG_OK)
        status = RG_EPENDING;
    if (status != RG_EPENDING)
        return status;
    if (rg_load_relaxed(&comm->backend) == RG_BACKEND_NEW)
        return launch_new(comm, stream, call, 0);
    rg_log(RG_LOG_ERROR, comm->context->config.rank,
           "%s: the legacy backend cannot be captured",
           rg_collective_name(call->collective));
    return RG_EBACKEND;
}

int rg_all_reduce(const void *send, void *recv, size_t count,
                  enum rg_dtype dtype, enum rg_op op, struct rg_comm *comm,
                  struct rg_stream *stream)
{
    struct rg_legacy_call call = {.collective = RG_COLL_all_reduce,
                                  .dtype = dtype,
                                  .op = op,
                                  .send = send,
                                  .recv = recv,
                                  .count = count};
    const char *why = argument_fault(comm, &call);

    if (!why) {
        call.send_bytes = call.recv_bytes = count * rg_dtype_size(dtype);
        why = buffer_fault(&call, send == recv);
    }
    if (why)
        return refuse(comm, call.collective, why);
    return count ? launch(comm, stream, &call) : RG_OK;
}

int rg_all_reduce_bare(const void *send, void *recv, size_t count,
                       enum rg_dtype dtype, struct rg_comm *comm,
                       struct rg_stream *stream)
{
    const struct rg_legacy_call call = {.collective = RG_COLL_all_reduce,
                                        .dtype = dtype,
                                        .op = RG_sum,
                                        .send = send,
                                        .recv = recv,
                                        .count = count};
    const char *why = argument_fault(comm, &call);
    const size_t bytes = why ? 0 : count * rg_dtype_size(dtype);
    int hot;

    if (why)
        return refuse(comm, call.collective, why);
    pthread_mutex_lock(&comm->lock);
    hot = rg_plan_is_hot(&comm->layout, comm->plan, bytes);
    pthread_mutex_unlock(&comm->lock);
    if (!hot || bytes > RG_SMALL_BYTES ||
        rg_load_relaxed(&comm->backend) != RG_BACKEND_NEW)
        return RG_ENOTSUP;
    return launch_new(comm, stream, &call, 1);
}

/* ---- collectives of blocks ---------------------------------------------- */

/* How much a buffer holds. */
enum extent { NOTHING = 0, BLOCK, BLOCKS };

/* What a rank has, and what one has that is not the root. */
struct shape {
    unsigned char send, recv;
    unsigned char others_send, others_recv;
};

static const struct shape shapes[RG_COLL_COUNT] = {
    [RG_COLL_all_reduce] = {BLOCK, BLOCK, BLOCK, BLOCK},
    [RG_COLL_all_gather] = {BLOCK, BLOCKS, BLOCK, BLOCKS},
    [RG_COLL_reduce_scatter] = {BLOCKS, BLOCK, BLOCKS, BLOCK},
    [RG_COLL_broadcast] = {BLOCK, BLOCK, NOTHING, BLOCK},
    [RG_COLL_reduce] = {BLOCK, BLOCK, BLOCK, NOTHING},
    [RG_COLL_all_to_all] = {BLOCKS, BLOCKS, BLOCKS, BLOCKS},
    [RG_COLL_gather] = {BLOCK, BLOCKS, BLOCK, NOTHING},
    [RG_COLL_scatter] = {BLOCKS, BLOCK, NOTHING, BLOCK},
};

static size_t extent_bytes(enum extent extent, size_t block, int slots)
{
    return extent == BLOCKS  ? block * (size_t)slots
           : extent == BLOCK ? block
                             : 0;
}

/* 1: the buffers are one where that is allowed; both are there. */
static int is_in_place(const struct rg_legacy_call *call, enum extent send,
                       enum extent recv, size_t own)
{
    const char *from = call->send, *to = call->recv;

    if (send == recv)
        return send == BLOCK && from == to;
    return send == BLOCK ? from == to + own : to == from + own;
}

/* Sets the sizes, and drops what this rank does not have. */
static const char *blocks_fault(struct rg_legacy_call *call, int slot,
                                int slots)
{
    const struct shape *shape = &shapes[call->collective];
    const int other =
        rg_collective_rooted(call->collective) && call->root != slot;
    const enum extent send = other ? shape->others_send : shape->send;
    const enum extent recv = other ? shape->others_recv : shape->recv;
    const size_t block = call->count * rg_dtype_size(call->dtype);

    call->send_bytes = extent_bytes(send, block, slots);
    call->recv_bytes = extent_bytes(recv, block, slots);
    if (send == NOTHING)
        call->send = NULL;
    if (recv == NOTHING)
        call->recv = NULL;
    return buffer_fault(
        call, send == NOTHING || recv == NOTHING ||
                  is_in_place(call, send, recv, block * (size_t)slot));
}

/* The own slot is the same in all views. */
static int launch_blocks(struct rg_comm *comm, struct rg_stream *stream,
                         struct rg_legacy_call *call)
{
    const char *why = argument_fault(comm, call);
    struct rg_view_info view;
    int status;

    if (!why) {
        status = rg_comm_view(comm, &view);
        if (status)
            return status;
        why = blocks_fault(call, view.slot, comm->context->config.capacity);
    }
    if (why)
        return refuse(comm, call->collective, why);
    return call->count ? launch(comm, stream, call) : RG_OK;
}

int rg_all_gather(const void *send, void *recv, size_t count,
                  enum rg_dtype dtype, struct rg_comm *comm,
                  struct rg_stream *stream)
{
    struct rg_legacy_call call = {.collective = RG_COLL_all_gather,
                                  .dtype = dtype,
                                  .send = send,
                                  .recv = recv,
                                  .count = count};

    return launch_blocks(comm, stream, &call);
}

int rg_reduce_scatter(const void *send, void *recv, size_t count,
                      enum rg_dtype dtype, enum rg_op op, struct rg_comm *comm,
                      struct rg_stream *stream)
{
    struct rg_legacy_call call = {.collective = RG_COLL_reduce_scatter,
                                  .dtype = dtype,
                                  .op = op,
                                  .send = send,
                                  .recv = recv,
                                  .count = count};

    return launch_blocks(comm, stream, &call);
}

int rg_all_to_all(const void *send, void *recv, size_t count,
                  enum rg_dtype dtype, struct rg_comm *comm,
                  struct rg_stream *stream)
{
    struct rg_legacy_call call = {.collective = RG_COLL_all_to_all,
                                  .dtype = dtype,
                                  .send = send,
                                  .recv = recv,
                                  .count = count};

    return launch_blocks(comm, stream, &call);
}

int rg_broadcast(const void *send, void *recv, size_t count,
                 enum rg_dtype dtype, int root, struct rg_comm *comm,
                 struct rg_stream *stream)
{
    struct rg_legacy_call call = {.collective = RG_COLL_broadcast,
                                  .dtype = dtype,
                                  .root = root,
                                  .send = send,
                                  .recv = recv,
                                  .count = count};

    return launch_blocks(comm, stream, &call);
}

int rg_reduce(const void *send, void *recv, size_t count, enum rg_dtype dtype,
              enum rg_op op, int root, struct rg_comm *comm,
              struct rg_stream *stream)
{
    struct rg_legacy_call call = {.collective = RG_COLL_reduce,
                                  .dtype = dtype,
                                  .op = op,
                                  .root = root,
                                  .send = send,
                                  .recv = recv,
                                  .count = count};

    return launch_blocks(comm, stream, &call);
}

int rg_gather(const void *send, void *recv, size_t count, enum rg_dtype dtype,
              int root, struct rg_comm *comm, struct rg_stream *stream)
{
    struct rg_legacy_call call = {.collective = RG_COLL_gather,
                                  .dtype = dtype,
                                  .root = root,
                                  .send = send,
                                  .recv = recv,
                                  .count = count};

    return launch_blocks(comm, stream, &call);
}

int rg_scatter(const void *send, void *recv, size_t count, enum rg_dtype dtype,
               int root, struct rg_comm *comm, struct rg_stream *stream)
{
    struct rg_legacy_call call = {.collective = RG_COLL_scatter,
                                  .dtype = dtype,
                                  .root = root,
                                  .send = send,
                                  .recv = recv,
                                  .count = count};

    return launch_blocks(comm, stream, &call);
}

int rg_barrier(struct rg_comm *comm, struct rg_stream *stream)
{
    const struct rg_legacy_call call = {.collective = RG_COLL_barrier};

    return launch(comm, stream, &call);
}

int rg_all_to_all_v(const void *send, size_t send_count, void *recv,
                    size_t recv_count, const uint64_t *layout, size_t most,
                    enum rg_dtype dtype, struct rg_comm *comm,
                    struct rg_stream *stream)
{
    struct rg_legacy_call call = {.collective = RG_COLL_all_to_all_v,
                                  .dtype = dtype,
                                  .send = send,
                                  .recv = recv,
                                  .count = most,
                                  .layout = layout};
    const size_t size = rg_dtype_size(dtype);
    const char *why = argument_fault(comm, &call);

    if (!why && (!layout || (uintptr_t)layout % sizeof *layout))
        why = "null or unaligned layout";
    if (!why && (send_count > SIZE_MAX / size || recv_count > SIZE_MAX / size))
        why = "count too large";
    if (!why) {
        call.send_bytes = send_count * size;
        call.recv_bytes = recv_count * size;
        why = buffer_fault(&call, 0);
    }
    if (why)
        return refuse(comm, call.collective, why);
    return most ? launch(comm, stream, &call) : RG_OK;
}

int rg_transfer_probe(const void *request, void *report, size_t bytes,
                      struct rg_comm *comm, struct rg_stream *stream)
{
    const struct rg_legacy_call call = {.collective = RG_COLL_transfer,
                                        .dtype = RG_u8,
                                        .op = RG_sum,
                                        .send = request,
                                        .recv = report,
                                        .count = bytes};
    const int status = rg_comm_check(comm);

    if (status != RG_OK)
        return status;
    if (!request || !report || (uintptr_t)request % sizeof(uint64_t) ||
        (uintptr_t)report % sizeof(uint64_t))
        return refuse(comm, call.collective, "null or unaligned block");
    /* A legacy view has no routes. */
    if (rg_load_relaxed(&comm->backend) != RG_BACKEND_NEW)
        return RG_EUNAVAILABLE;
    return launch_new(comm, stream, &call, 0);
}
