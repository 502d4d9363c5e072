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
    X(AllGather)                                                               \
    X(ReduceScatter)                                                           \
    X(Broadcast)                                                               \
    X(Reduce)                                                                  \
    X(Send)                                                                    \
    X(Recv)                                                                    \
    X(GroupStart)                                                              \
    X(GroupEnd)                                                                \
    X(GetErrorString)

/* Of 2.28; an older library's way is messages in a group. Their types are said
 * here, as an older header has none. */
#define NCCL_BLOCK_CALLS(X)                                                    \
    X(AlltoAll)                                                                \
    X(Gather)                                                                  \
    X(Scatter)

typedef ncclResult_t all_to_all_call(const void *, void *, size_t,
                                     ncclDataType_t, ncclComm_t, cudaStream_t);
typedef ncclResult_t rooted_call(const void *, void *, size_t, ncclDataType_t,
                                 int, ncclComm_t, cudaStream_t);

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
    int rank, size;
    all_to_all_call *AlltoAll; /* null, as the next two: not in the library */
    rooted_call *Gather, *Scatter;
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

static int told(const struct state *state, const char *what,
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
    if (symmetric) {
        NCCL_WINDOW_CALLS(X)
    }
#undef X
#define X(name) *(void **)&state->name = dlsym(state->library, "nccl" #name);
    NCCL_BLOCK_CALLS(X)
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

/* What is only moved is bytes. It has no barrier, and no operations on bits. */
static int supports(void *arg, enum rg_collective collective,
                    enum rg_dtype dtype, enum rg_op op)
{
    ncclDataType_t type;

    (void)arg;
    if (collective == RG_COLL_barrier)
        return 0;
    return !rg_collective_reduces(collective) ||
           (type_of(dtype, &type) && op != RG_band && op != RG_bor &&
            op != RG_bxor);
}

/* ---- calls -------------------------------------------------------------- */

static ncclResult_t reduce(struct state *state, const struct rg_call *call,
                           ncclDataType_t type)
{
    const ncclRedOp_t op = op_of(call->op);

    switch (call->collective) {
    case RG_COLL_all_reduce:
        return state->AllReduce(call->send, call->recv, call->count, type, op,
                                state->comm, state->native);
    case RG_COLL_reduce_scatter:
        return state->ReduceScatter(call->send, call->recv, call->count, type,
                                    op, state->comm, state->native);
    default:
        return state->Reduce(call->send, call->recv, call->count, type, op,
                             call->root, state->comm, state->native);
    }
}

/* One way, or both, between this rank and another; bytes. */
static ncclResult_t exchange(struct state *state, int peer, const char *send,
                             size_t send_bytes, char *recv, size_t recv_bytes)
{
    ncclResult_t result = ncclSuccess;

    if (send_bytes)
        result = state->Send(send, send_bytes, ncclUint8, peer, state->comm,
                             state->native);
    if (result == ncclSuccess && recv_bytes)
        result = state->Recv(recv, recv_bytes, ncclUint8, peer, state->comm,
                             state->native);
    return result;
}

static ncclResult_t exchange_v(struct state *state, const struct rg_call *call,
                               int peer)
{
    const struct rg_spread *spread = call->spread;
    const size_t unit = rg_dtype_size(call->dtype);
    const int me = state->rank;

    return exchange(
        state, peer,
        (const char *)call->send + unit * rg_spread_sent(spread, me, peer),
        unit * rg_spread_count(spread, me, peer),
        (char *)call->recv + unit * rg_spread_received(spread, peer, me),
        unit * rg_spread_count(spread, peer, me));
}

/* A block of so many bytes. */
static ncclResult_t exchange_block(struct state *state,
                                   const struct rg_call *call, int peer,
                                   size_t bytes)
{
    const int at_root = state->rank == call->root, to_root = peer == call->root;
    const size_t theirs = (size_t)peer * bytes;
    const char *send = call->send;
    char *recv = call->recv;

    switch (call->collective) {
    case RG_COLL_gather:
        return exchange(state, peer, send, to_root ? bytes : 0, recv + theirs,
                        at_root ? bytes : 0);
    case RG_COLL_scatter:
        return exchange(state, peer, send + theirs, at_root ? bytes : 0, recv,
                        to_root ? bytes : 0);
    case RG_COLL_all_to_all:
        return exchange(state, peer, send + theirs, bytes, recv + theirs,
                        bytes);
    case RG_COLL_sendrecv: /* a ring */
        return exchange(state, peer, send,
                        peer == (state->rank + 1) % state->size ? bytes : 0,
                        recv,
                        state->rank == (peer + 1) % state->size ? bytes : 0);
    default:
        return exchange_v(state, call, peer);
    }
}

/* All pairs in one group, as the library's guide has it. */
static ncclResult_t exchange_all(struct state *state,
                                 const struct rg_call *call, size_t bytes)
{
    ncclResult_t result = state->GroupStart(), end;

    if (result != ncclSuccess)
        return result;
    for (int peer = 0; result == ncclSuccess && peer < state->size; peer++)
        result = exchange_block(state, call, peer, bytes);
    end = state->GroupEnd();
    return result == ncclSuccess ? end : result;
}

static ncclResult_t move(struct state *state, const struct rg_call *call,
                         size_t bytes)
{
    const ncclDataType_t type = ncclUint8;

    if (call->collective == RG_COLL_all_gather)
        return state->AllGather(call->send, call->recv, bytes, type,
                                state->comm, state->native);
    if (call->collective == RG_COLL_broadcast)
        return state->Broadcast(call->send, call->recv, bytes, type, call->root,
                                state->comm, state->native);
    if (call->collective == RG_COLL_all_to_all && state->AlltoAll)
        return state->AlltoAll(call->send, call->recv, bytes, type, state->comm,
                               state->native);
    if (call->collective == RG_COLL_gather && state->Gather)
        return state->Gather(call->send, call->recv, bytes, type, call->root,
                             state->comm, state->native);
    if (call->collective == RG_COLL_scatter && state->Scatter)
        return state->Scatter(call->send, call->recv, bytes, type, call->root,
                              state->comm, state->native);
    return exchange_all(state, call, bytes);
}

static int run(void *arg, const struct rg_call *call)
{
    struct state *state = arg;
    const char *what = rg_collective_name(call->collective);
    ncclDataType_t type;

    if (!rg_collective_reduces(call->collective))
        return told(
            state, what,
            move(state, call, call->count * rg_dtype_size(call->dtype)));
    return type_of(call->dtype, &type)
               ? told(state, what, reduce(state, call, type))
               : RG_ENOTSUP;
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
    status = told(state, "ncclMemAlloc", state->MemAlloc(&pointer, bytes));
    if (status != RG_OK)
        return status;
    status = told(state, "ncclCommWindowRegister",
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
        status = told(state, "ncclGetUniqueId", state->GetUniqueId(&id));
    if (status == RG_OK)
        status = rg_comm_gather(config->comm, &id, sizeof id, all);
    if (status == RG_OK)
        status =
            told(state, "ncclCommInitRank",
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
    state->size = config->job->size;
    status = open_library(state, symmetric);
    if (status == RG_OK)
        status = open_stream(state, config, &peer->subject.stream);
    if (status == RG_OK)
        status = join(state, config);
    if (status != RG_OK)
        return status;
    peer->subject.name = config->name;
    peer->subject.supports = supports;
    peer->subject.run = run;
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
