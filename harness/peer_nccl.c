/*
 * NCCL, opened at run time: "nccl" on any buffers, "nccl-symm" with buffers
 * from ncclMemAlloc registered as symmetric windows.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/peer.h"

#define NCCL_CALLS(X)                                                          \
    X(GetUniqueId)                                                             \
    X(CommInitRank)                                                            \
    X(CommDestroy)                                                             \
    X(AllReduce)                                                               \
    X(GetErrorString)

/* Later than the calls above; only the symmetric variant needs them. */
#define NCCL_WINDOW_CALLS(X)                                                   \
    X(MemAlloc)                                                                \
    X(MemFree)                                                                 \
    X(CommWindowRegister)                                                      \
    X(CommWindowDeregister)

enum { WINDOWS_MAX = 2 };

struct state {
    void *library;
    cudaStream_t native;
    ncclComm_t comm;
    int rank;
    struct {
        void *pointer;
        ncclWindow_t window;
    } windows[WINDOWS_MAX];
#define X(name) __typeof__(&nccl##name) name;
    NCCL_CALLS(X)
    NCCL_WINDOW_CALLS(X)
#undef X
};

static int fail(const struct state *state, const char *what, const char *why)
{
    if (state->rank == 0)
        fprintf(stderr, "peer nccl: %s: %s\n", what, why);
    return RG_ENOTSUP;
}

static int call(const struct state *state, const char *what,
                ncclResult_t result)
{
    return result == ncclSuccess
               ? RG_OK
               : fail(state, what, state->GetErrorString(result));
}

static int open_library(struct state *state, int symmetric)
{
    state->library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!state->library)
        return fail(state, "cannot open the library", dlerror());
#define X(name)                                                                \
    *(void **)&state->name = dlsym(state->library, "nccl" #name);              \
    if (!state->name)                                                          \
        return fail(state, "the library lacks nccl" #name, "too old");
    NCCL_CALLS(X)
    if (!symmetric)
        return RG_OK;
    NCCL_WINDOW_CALLS(X)
#undef X
    return RG_OK;
}

/* ---- types -------------------------------------------------------------- */

static int type_of(enum rg_dtype dtype, ncclDataType_t *type_out)
{
    static const struct {
        enum rg_dtype from;
        ncclDataType_t to;
    } types[] = {{RG_i8, ncclInt8},     {RG_u8, ncclUint8},
                 {RG_i32, ncclInt32},   {RG_u32, ncclUint32},
                 {RG_i64, ncclInt64},   {RG_u64, ncclUint64},
                 {RG_f16, ncclFloat16}, {RG_bf16, ncclBfloat16},
                 {RG_f32, ncclFloat32}, {RG_f64, ncclFloat64}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].from == dtype) {
            *type_out = types[i].to;
            return 1;
        }
    return 0;
}

static ncclRedOp_t op_of(enum rg_op op)
{
    switch (op) {
    case RG_prod:
        return ncclProd;
    case RG_min:
        return ncclMin;
    case RG_max:
        return ncclMax;
    case RG_avg:
        return ncclAvg;
    default:
        return ncclSum;
    }
}

static int supports(void *arg, enum rg_dtype dtype, enum rg_op op)
{
    ncclDataType_t type;

    (void)arg;
    (void)op;
    return type_of(dtype, &type);
}

static int all_reduce(void *arg, const void *send, void *recv, size_t count,
                      enum rg_dtype dtype, enum rg_op op)
{
    struct state *state = arg;
    ncclDataType_t type;

    if (!type_of(dtype, &type))
        return RG_ENOTSUP;
    return call(state, "ncclAllReduce",
                state->AllReduce(send, recv, count, type, op_of(op),
                                 state->comm, state->native));
}

/* ---- symmetric buffers -------------------------------------------------- */

static int alloc_window(void *arg, size_t bytes, void **pointer_out)
{
    struct state *state = arg;
    void *pointer = NULL;
    int status, i = 0;

    while (i < WINDOWS_MAX && state->windows[i].pointer)
        i++;
    if (i == WINDOWS_MAX)
        return RG_ENOSPC;
    status = call(state, "ncclMemAlloc", state->MemAlloc(&pointer, bytes));
    if (status != RG_OK)
        return status;
    status = call(state, "ncclCommWindowRegister",
                  state->CommWindowRegister(state->comm, pointer, bytes,
                                            &state->windows[i].window,
                                            NCCL_WIN_COLL_SYMMETRIC));
    if (status != RG_OK) {
        state->MemFree(pointer);
        return status;
    }
    state->windows[i].pointer = pointer;
    *pointer_out = pointer;
    return RG_OK;
}

static void free_window(void *arg, void *pointer)
{
    struct state *state = arg;

    for (int i = 0; i < WINDOWS_MAX; i++)
        if (state->windows[i].pointer == pointer) {
            state->CommWindowDeregister(state->comm, state->windows[i].window);
            state->windows[i].pointer = NULL;
        }
    state->MemFree(pointer);
}

/* ---- life --------------------------------------------------------------- */

/* Rank 0's unique id reaches the others over the control plane. */
static int join(struct state *state, const struct rg_peer_config *config)
{
    const int size = config->job->size;
    ncclUniqueId id, *all = calloc((size_t)size, sizeof *all);
    int status = all ? RG_OK : RG_ENOMEM;

    memset(&id, 0, sizeof id);
    if (status == RG_OK && state->rank == 0)
        status = call(state, "ncclGetUniqueId", state->GetUniqueId(&id));
    if (status == RG_OK)
        status = rg_comm_gather(config->comm, &id, sizeof id, all);
    if (status == RG_OK)
        status =
            call(state, "ncclCommInitRank",
                 state->CommInitRank(&state->comm, size, all[0], state->rank));
    free(all);
    return status;
}

static int open_stream(struct state *state, const struct rg_peer_config *config,
                       struct rg_stream **stream_out)
{
    struct rg_device_info info;
    int status = rg_context_device_info(config->context, &info);

    if (status != RG_OK)
        return status;
    if (cudaSetDevice(info.ordinal) != cudaSuccess ||
        cudaStreamCreateWithFlags(&state->native, cudaStreamNonBlocking) !=
            cudaSuccess)
        return fail(state, "cannot create a stream", "CUDA failed");
    return rg_stream_wrap(config->context, state->native, stream_out);
}

static int create(const struct rg_peer_config *config, struct rg_peer *peer)
{
    const int symmetric = strcmp(config->name, "nccl-symm") == 0;
    struct state *state = calloc(1, sizeof *state);
    int status;

    if (!state)
        return RG_ENOMEM;
    peer->state = state;
    state->rank = config->job->rank;
    status = open_library(state, symmetric);
    if (status == RG_OK)
        status = open_stream(state, config, &peer->subject.stream);
    if (status == RG_OK)
        status = join(state, config);
    if (status != RG_OK)
        return status;
    peer->subject.name = config->name;
    peer->subject.supports = supports;
    peer->subject.all_reduce = all_reduce;
    peer->subject.arg = state;
    if (symmetric)
        peer->source =
            (struct rg_buffer_source){alloc_window, free_window, state};
    return RG_OK;
}

static void destroy(struct rg_peer *peer)
{
    struct state *state = peer->state;

    if (!state)
        return;
    rg_stream_destroy(peer->subject.stream);
    if (state->comm)
        state->CommDestroy(state->comm);
    if (state->native)
        cudaStreamDestroy(state->native);
    if (state->library)
        dlclose(state->library);
    free(state);
}

const struct rg_peer_type rg_peer_nccl = {
    .name = "nccl",
    .device = RG_DEVICE_CUDA,
    .create = create,
    .destroy = destroy,
};
