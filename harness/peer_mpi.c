/* MPI_Allreduce on the emulated device's memory, which is host memory. */
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
