/*
 * MPI's collectives on the emulated device's memory, which is host memory; and
 * messages between two ranks.
 */
#include <mpi.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    case RG_band:
        return MPI_BAND;
    case RG_bor:
        return MPI_BOR;
    case RG_bxor:
        return MPI_BXOR;
    default:
        return MPI_OP_NULL;
    }
}

/* What is only moved is bytes. */
static int supports(void *arg, enum rg_collective collective,
                    enum rg_dtype dtype, enum rg_op op)
{
    (void)arg;
    return !rg_collective_reduces(collective) ||
           (type_of(dtype) != MPI_DATATYPE_NULL && op_of(op) != MPI_OP_NULL);
}

/* Counts and places of the last all_to_all_v, in bytes. */
struct state {
    int rank, size;
    struct rg_spread spread;
    size_t unit;
    int *words; /* four lists, as a layout's */
};

/* Sets the lists up for the call, unless they are so. */
static int spread_out(struct state *state, const struct rg_call *call)
{
    const size_t words = 4 * (size_t)state->size;
    const size_t unit = rg_dtype_size(call->dtype);
    uint64_t *layout;

    if (state->unit == unit && state->spread.seed == call->spread->seed &&
        state->spread.most == call->spread->most)
        return RG_OK;
    layout = malloc(words * sizeof *layout);
    if (!layout)
        return RG_ENOMEM;
    rg_spread_layout(call->spread, layout);
    for (size_t i = 0; i < words; i++)
        state->words[i] = (int)(layout[i] * unit);
    free(layout);
    state->spread = *call->spread;
    state->unit = unit;
    return RG_OK;
}

static int all_to_all_v(struct state *state, const struct rg_call *call)
{
    const int n = state->size;

    if (spread_out(state, call) != RG_OK)
        return MPI_ERR_NO_MEM;
    return MPI_Alltoallv(call->send, state->words, state->words + n, MPI_BYTE,
                         call->recv, state->words + 2 * n, state->words + 3 * n,
                         MPI_BYTE, MPI_COMM_WORLD);
}

/* `bytes` of a block, which is a block of recv too if in place. */
static int move(struct state *state, const struct rg_call *call, int bytes)
{
    const size_t own = (size_t)state->rank * (size_t)bytes;
    const int root = call->root, at_root = state->rank == root;
    const int next = (state->rank + 1) % state->size;
    const int previous = (state->rank + state->size - 1) % state->size;
    const char *send = call->send;
    char *recv = call->recv;

    switch (call->collective) {
    case RG_COLL_all_gather:
        return MPI_Allgather(send == recv + own ? MPI_IN_PLACE : send, bytes,
                             MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
    case RG_COLL_broadcast: /* the root's output is its input */
        return MPI_Bcast(at_root ? (void *)send : recv, bytes, MPI_BYTE, root,
                         MPI_COMM_WORLD);
    case RG_COLL_all_to_all:
        return MPI_Alltoall(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE,
                            MPI_COMM_WORLD);
    case RG_COLL_gather:
        return MPI_Gather(at_root && send == recv + own ? MPI_IN_PLACE : send,
                          bytes, MPI_BYTE, recv, bytes, MPI_BYTE, root,
                          MPI_COMM_WORLD);
    case RG_COLL_scatter:
        return MPI_Scatter(send, bytes, MPI_BYTE,
                           at_root && send + own == recv ? MPI_IN_PLACE : recv,
                           bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    case RG_COLL_all_to_all_v:
        return all_to_all_v(state, call);
    case RG_COLL_sendrecv:
        return MPI_Sendrecv(send, bytes, MPI_BYTE, next, 0, recv, bytes,
                            MPI_BYTE, previous, 0, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE);
    default:
        return MPI_Barrier(MPI_COMM_WORLD);
    }
}

static int reduce(struct state *state, const struct rg_call *call, int count)
{
    const MPI_Datatype type = type_of(call->dtype);
    const MPI_Op op = op_of(call->op);
    const size_t own =
        (size_t)state->rank * (size_t)count * rg_dtype_size(call->dtype);
    const char *send = call->send;
    char *recv = call->recv;

    switch (call->collective) {
    case RG_COLL_all_reduce:
        return MPI_Allreduce(send == recv ? MPI_IN_PLACE : send, recv, count,
                             type, op, MPI_COMM_WORLD);
    case RG_COLL_reduce:
        return MPI_Reduce(
            send == recv && state->rank == call->root ? MPI_IN_PLACE : send,
            recv, count, type, op, call->root, MPI_COMM_WORLD);
    default: /* in place, its block is the first */
        return send + own == recv
                   ? MPI_Reduce_scatter_block(MPI_IN_PLACE, (void *)send, count,
                                              type, op, MPI_COMM_WORLD)
                   : MPI_Reduce_scatter_block(send, recv, count, type, op,
                                              MPI_COMM_WORLD);
    }
}

static int run(void *arg, const struct rg_call *call)
{
    struct state *state = arg;
    const size_t bytes = call->count * rg_dtype_size(call->dtype);
    int error;

    if (bytes > INT_MAX / (size_t)state->size)
        return RG_ENOTSUP;
    error = rg_collective_reduces(call->collective)
                ? reduce(state, call, (int)call->count)
                : move(state, call, (int)bytes);
    return error == MPI_SUCCESS ? RG_OK : RG_EFAILED;
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

static void destroy(struct rg_peer *peer)
{
    struct state *state = peer->state;

    if (state)
        free(state->words);
    free(state);
}

static int create(const struct rg_peer_config *config, struct rg_peer *peer)
{
    struct state *state;
    int initialized = 0;

    MPI_Initialized(&initialized);
    if (!initialized) {
        if (config->job->rank == 0)
            fprintf(stderr, "peer mpi: ranks are not MPI processes\n");
        return RG_ENOTSUP;
    }
    peer->state = state = calloc(1, sizeof *state);
    if (!state)
        return RG_ENOMEM;
    state->rank = config->job->rank;
    state->size = config->job->size;
    state->words = calloc(4 * (size_t)state->size, sizeof *state->words);
    if (!state->words)
        return RG_ENOMEM;
    peer->subject = (struct rg_subject){
        .name = "mpi", .supports = supports, .run = run, .arg = state};
    peer->messages = messages;
    return RG_OK;
}

const struct rg_peer_type rg_peer_mpi = {
    .name = "mpi",
    .device = RG_DEVICE_EMU,
    .create = create,
    .destroy = destroy,
};
