/* Launches: programs' own kernels, and a communicator's turn on a stream. */
#include "runtime/core/log.h"
#include "runtime/device/word.h"
#include "runtime/exec/comm.h"

int rg_kernel_launch(struct rg_stream *stream, const struct rg_kernel *kernel,
                     int teams, const void *args, size_t args_bytes)
{
    if (args_bytes > RG_KERNEL_ARGS_MAX || teams < 0)
        return RG_EINVAL;
    return stream->context->ops->kernel(stream->native, kernel, teams, args,
                                        args_bytes);
}

void rg_comm_count(struct rg_comm *comm, uint64_t launches)
{
    rg_store_relaxed(&comm->seq, rg_load_relaxed(&comm->seq) + launches);
}

int rg_comm_enter(struct rg_comm *comm, struct rg_stream *stream)
{
    int status;

    if (comm->last == stream)
        return RG_OK;
    if (comm->last) {
        status = comm->context->ops->stream_follow(stream->native,
                                                   comm->last->native);
        if (status)
            return status;
    }
    comm->last = stream;
    return RG_OK;
}

int rg_comm_take_turn(struct rg_comm *comm, struct rg_stream *stream,
                      uint64_t seqs)
{
    return stream->capture ? rg_graph_use(stream->capture, comm, seqs)
                           : rg_comm_enter(comm, stream);
}

void rg_comm_forget_stream(struct rg_stream *stream)
{
    struct rg_comm *comm = stream->context->comms;

    for (; comm; comm = comm->next)
        if (comm->last == stream)
            comm->last = NULL;
}
