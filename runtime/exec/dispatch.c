/* Public collectives: arguments checked, backend chosen, entry launched. */
#include "runtime/core/log.h"
#include "runtime/device/word.h"
#include "runtime/exec/comm.h"

static int overlap_partly(const void *a, const void *b, size_t bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return x != y && (x < y ? y - x : x - y) < bytes;
}

static int reduction_check(const struct rg_comm *comm, const void *send,
                           const void *recv, size_t count, enum rg_dtype dtype,
                           enum rg_op op)
{
    const size_t size = rg_dtype_size(dtype);
    const char *why = NULL;

    if (!size || (unsigned)op >= RG_OP_COUNT)
        why = "unknown type or operation";
    else if (count > SIZE_MAX / size / 2)
        why = "count too large";
    else if (count && (!send || !recv))
        why = "null buffer";
    else if ((uintptr_t)send % size || (uintptr_t)recv % size)
        why = "buffer not aligned to its element";
    else if (overlap_partly(send, recv, count * size))
        why = "buffers overlap partly";
    if (!why)
        return RG_OK;
    rg_log(RG_LOG_ERROR, comm->context->config.rank, "all_reduce: %s", why);
    return RG_EINVAL;
}

int rg_comm_check(const struct rg_comm *comm)
{
    if (rg_load_relaxed(&comm->closed))
        return -(int)rg_load_relaxed(&comm->closed);
    if (rg_load_relaxed(&comm->backend) == RG_BACKEND_NEW)
        return RG_OK;
    rg_log(RG_LOG_ERROR, comm->context->config.rank,
           "the group's backend is legacy, which this build does not have; "
           "every rank must ask for new");
    return RG_EBACKEND;
}

/* The entries of a collective, or null when no algorithm was given for it. */
static const struct rg_entries *entries_of(const struct rg_comm *comm,
                                           enum rg_collective collective)
{
    if (!comm->layout.count[collective])
        return NULL;
    return comm->layout.algo[collective][0]->entries;
}

static int launch(struct rg_comm *comm, struct rg_stream *stream,
                  enum rg_dtype dtype, const struct rg_launch *args)
{
    const struct rg_device_ops *ops = comm->context->ops;
    const struct rg_entries *entries = entries_of(comm, args->collective);
    struct rg_geometry geometry;
    int status;

    if (!entries)
        return RG_ENOTSUP;
    if (stream->capture)
        status = rg_graph_use(stream->capture, comm);
    else
        status = rg_comm_enter(comm, stream);
    if (status)
        return status;
    ops->geometry(comm->context->device, args->collective,
                  args->count * rg_dtype_size(dtype),
                  (int)rg_load_relaxed(&comm->sharers), &geometry);
    if (!stream->capture)
        rg_comm_count(comm, 1);
    return ops->launch(stream->native, &geometry, entries, dtype, args);
}

int rg_all_reduce(const void *send, void *recv, size_t count,
                  enum rg_dtype dtype, enum rg_op op, struct rg_comm *comm,
                  struct rg_stream *stream)
{
    const struct rg_launch args = {
        .comm = comm->dev,
        .send = send,
        .recv = recv,
        .count = count,
        .collective = RG_COLL_all_reduce,
        .op = op,
        .slots = (uint32_t)comm->context->config.capacity};
    int status = reduction_check(comm, send, recv, count, dtype, op);

    if (status || count == 0)
        return status;
    status = rg_comm_check(comm);
    if (status)
        return status;
    return launch(comm, stream, dtype, &args);
}
