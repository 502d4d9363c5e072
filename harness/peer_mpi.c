/*
 * MPI_Allreduce on the emulated device's memory, which is host memory; and
 * messages between two ranks.
 */
#include <mpi.h>
#include <limits.h>
#include <stdio.h>

#include "harness/peer.h"

static MPI_Datatype type_of(enum rg_dtype dtype)
{
    switch (dtype) {
    case RG_i8:
        return MPI_INT8_T;
    case RG_u8:
        return MPI_UINT8_T;
    case RG_i16:
        return MPI_INT16_T;
    case RG_u16:
        return MPI_UINT16_T;
    case RG_i32:
        return MPI_INT32_T;
    case RG_u32:
        return MPI_UINT32_T;
    case RG_i64:
        return MPI_INT64_T;
    case RG_u64:
        return MPI_UINT64_T;
    case RG_f32:
        return MPI_FLOAT;
    case RG_f64:
        return MPI_DOUBLE;
    default:
        return MPI_DATATYPE_NULL;
    }
}

static MPI_Op op_of(enum rg_op op)
{
    switch (op) {
    case RG_sum:
        return MPI_SUM;
    case RG_prod:
        return MPI_PROD;
    case RG_min:
        return MPI_MIN;
    case RG_max:
        return MPI_MAX;
    default:
        return MPI_OP_NULL;
    }
}

static int supports(void *arg, enum rg_dtype dtype, enum rg_op op)
{
    (void)arg;
    return type_of(dtype) != MPI_DATATYPE_NULL && op_of(op) != MPI_OP_NULL;
}

static int all_reduce(void *arg, const void *send, void *recv, size_t count,
                      enum rg_dtype dtype, enum rg_op op)
{
    (void)arg;
    if (count > INT_MAX)
        return RG_ENOTSUP;
    return MPI_Allreduce(send == recv ? MPI_IN_PLACE : send, recv, (int)count,
                         type_of(dtype), op_of(op),
                         MPI_COMM_WORLD) == MPI_SUCCESS
               ? RG_OK
               : RG_EFAILED;
}

/* ---- messages between two ranks ----------------------------------------- */

enum { MESSAGE_LANES = 32 };

/* All lanes of one turn, one way: from this rank, or to it. */
static int pass(const struct rg_peer_messages *what, int other, int sends)
{
    MPI_Request requests[MESSAGE_LANES];
    const int bytes = (int)what->bytes;
    int error = MPI_SUCCESS;

    if (what->lanes == 1)
        return sends ? MPI_Send(what->send, bytes, MPI_BYTE, other, 0,
                                MPI_COMM_WORLD)
                     : MPI_Recv(what->recv, bytes, MPI_BYTE, other, 0,
                                MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < what->lanes && error == MPI_SUCCESS; i++)
        error =
            sends ? MPI_Isend(what->send + (size_t)i * what->bytes, bytes,
                              MPI_BYTE, other, i, MPI_COMM_WORLD, &requests[i])
                  : MPI_Irecv(what->recv + (size_t)i * what->bytes, bytes,
                              MPI_BYTE, other, i, MPI_COMM_WORLD, &requests[i]);
    return error == MPI_SUCCESS
               ? MPI_Waitall(what->lanes, requests, MPI_STATUSES_IGNORE)
               : error;
}

/* An empty message each way: both are there; or all has been taken. */
static int meet(int other, int first)
{
    char none[1] = {0};
    int error = MPI_SUCCESS;

    for (int i = 0; i < 2 && error == MPI_SUCCESS; i++)
        error = (i == 0) == first
                    ? MPI_Send(none, 0, MPI_BYTE, other, 99, MPI_COMM_WORLD)
                    : MPI_Recv(none, 0, MPI_BYTE, other, 99, MPI_COMM_WORLD,
                               MPI_STATUS_IGNORE);
    return error;
}

static int take_turns(const struct rg_peer_messages *what, int other, int first)
{
    int error = MPI_SUCCESS;

    for (int turn = 0; turn < what->turns && error == MPI_SUCCESS; turn++) {
        error = pass(what, other, first);
        if (error == MPI_SUCCESS && !what->stream)
            error = pass(what, other, !first);
    }
    return what->stream && error == MPI_SUCCESS ? meet(other, first) : error;
}

static int messages(const struct rg_peer_messages *what, double *us_out)
{
    int rank = 0, other, error;
    double begin;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (what->bytes > INT_MAX || what->lanes > MESSAGE_LANES)
        return RG_ENOTSUP;
    *us_out = 0;
    if (rank != 0 && rank != what->peer)
        return RG_OK;
    other = rank == 0 ? what->peer : 0;
    error = meet(other, rank == 0);
    begin = MPI_Wtime();
    if (error == MPI_SUCCESS)
        error = take_turns(what, other, rank == 0);
    *us_out = (MPI_Wtime() - begin) * 1e6;
    return error == MPI_SUCCESS ? RG_OK : RG_EFAILED;
}

static int create(const struct rg_peer_config *config, struct rg_peer *peer)
{
    int initialized = 0;

    MPI_Initialized(&initialized);
    if (!initialized) {
        if (config->job->rank == 0)
            fprintf(stderr, "peer mpi: ranks are not MPI processes\n");
        return RG_ENOTSUP;
    }
    peer->subject = (struct rg_subject){
        .name = "mpi", .supports = supports, .all_reduce = all_reduce};
    peer->messages = messages;
    return RG_OK;
}

static void destroy(struct rg_peer *peer)
{
    (void)peer;
}

const struct rg_peer_type rg_peer_mpi = {
    .name = "mpi",
    .device = RG_DEVICE_EMU,
    .create = create,
    .destroy = destroy,
};
