#include "harness/test/fake_runtime.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/device/num.h"

enum { CALLS_MAX = 1024 };

struct rg_comm {
    struct rg_context *context;
};

struct rg_stream {
    struct rg_graph *capturing;
};

struct rg_context {
    struct rg_context_config config;
    struct rg_comm comm;
    long spoiled; /* index, -1: none */
    uint64_t seq;
    const void *sent; /* by rg_send, in the group */
};

struct call {
    enum rg_collective collective;
    const void *send;
    void *recv;
    size_t count;
    enum rg_dtype dtype;
    enum rg_op op;
    int root;
    struct rg_comm *comm;
    size_t send_count; /* elements of send */
    const uint64_t *layout;
};

struct rg_graph {
    struct call calls[CALLS_MAX];
    int n;
};

void fake_spoil(struct rg_context *context, long index)
{
    context->spoiled = index;
}

/* ---- context ------------------------------------------------------------ */

int rg_device_count(enum rg_device_kind kind)
{
    return kind == RG_DEVICE_EMU ? 1 : RG_ENOTSUP;
}

int rg_context_create(const struct rg_context_config *config,
                      struct rg_context **context_out)
{
    struct rg_context *context = calloc(1, sizeof *context);

    if (!context)
        return RG_ENOMEM;
    context->config = *config;
    context->comm.context = context;
    context->spoiled = -1;
    *context_out = context;
    return RG_OK;
}

void rg_context_destroy(struct rg_context *context)
{
    free(context);
}

int rg_context_device_info(const struct rg_context *context,
                           struct rg_device_info *info_out)
{
    (void)context;
    memset(info_out, 0, sizeof *info_out);
    strcpy(info_out->name, "fake");
    return RG_OK;
}

int rg_malloc(struct rg_context *context, size_t bytes, void **pointer_out)
{
    (void)context;
    *pointer_out = aligned_alloc(256, (bytes + 255) / 256 * 256);
    return *pointer_out ? RG_OK : RG_ENOMEM;
}

void rg_free(struct rg_context *context, void *pointer)
{
    (void)context;
    free(pointer);
}

int rg_memcpy(struct rg_context *context, void *dst, const void *src,
              size_t bytes)
{
    (void)context;
    memcpy(dst, src, bytes);
    return RG_OK;
}

int rg_memset(struct rg_context *context, void *dst, int byte, size_t bytes)
{
    (void)context;
    memset(dst, byte, bytes);
    return RG_OK;
}

/* ---- streams ------------------------------------------------------------ */

int rg_stream_create(struct rg_context *context, struct rg_stream **stream_out)
{
    (void)context;
    *stream_out = calloc(1, sizeof **stream_out);
    return *stream_out ? RG_OK : RG_ENOMEM;
}

void rg_stream_destroy(struct rg_stream *stream)
{
    free(stream);
}

int rg_stream_synchronize(struct rg_stream *stream)
{
    (void)stream;
    return RG_OK;
}

int rg_event_create(struct rg_context *context, struct rg_event **event_out)
{
    (void)context;
    (void)event_out;
    return RG_ENOTSUP;
}

void rg_event_destroy(struct rg_event *event)
{
    (void)event;
}

int rg_event_record(struct rg_event *event, struct rg_stream *stream)
{
    (void)event;
    (void)stream;
    return RG_ENOTSUP;
}

int rg_event_elapsed_us(struct rg_event *begin, struct rg_event *end,
                        double *us_out)
{
    (void)begin;
    (void)end;
    (void)us_out;
    return RG_ENOTSUP;
}

int rg_kernel_launch(struct rg_stream *stream, const struct rg_kernel *kernel,
                     int teams, const void *args, size_t args_bytes)
{
    (void)stream;
    (void)args_bytes;
    teams = teams ? teams : 3;
    for (int team = 0; team < teams; team++)
        kernel->emu(args, team, teams);
    return RG_OK;
}

/* ---- communicator ------------------------------------------------------- */

int rg_comm_create(struct rg_context *context, struct rg_comm **comm_out)
{
    *comm_out = &context->comm;
    return RG_OK;
}

int rg_comm_destroy(struct rg_comm *comm)
{
    (void)comm;
    return RG_OK;
}

int rg_comm_view(struct rg_comm *comm, struct rg_view_info *info_out)
{
    *info_out = (struct rg_view_info){.epoch = 1,
                                      .rank = comm->context->config.rank,
                                      .nranks = comm->context->config.size,
                                      .slot = comm->context->config.rank,
                                      .capacity = comm->context->config.size,
                                      .backend = RG_BACKEND_NEW};
    return RG_OK;
}

int rg_comm_members(struct rg_comm *comm, int *world_rank_out)
{
    for (int slot = 0; slot < comm->context->config.size; slot++)
        world_rank_out[slot] = slot;
    return RG_OK;
}

int rg_comm_set_policy(struct rg_comm *comm, const char *text)
{
    (void)comm;
    (void)text;
    return RG_OK;
}

int rg_comm_last_run(struct rg_comm *comm, struct rg_run_info *info_out)
{
    *info_out = (struct rg_run_info){.seq = comm->context->seq,
                                     .epoch = 1,
                                     .algorithm = "fake",
                                     .channels = 1,
                                     .route = RG_ROUTE_P2P};
    return RG_OK;
}

int rg_comm_error(struct rg_comm *comm)
{
    (void)comm;
    return RG_OK;
}

int rg_comm_describe(struct rg_comm *comm, char *text, size_t bytes)
{
    (void)comm;
    strncpy(text, "fake\n", bytes);
    return RG_OK;
}

int rg_comm_gather(struct rg_comm *comm, const void *in, size_t bytes,
                   void *out)
{
    const struct rg_bootstrap *bootstrap = &comm->context->config.bootstrap;

    return bootstrap->allgather(bootstrap->arg, in, out, bytes);
}

/* ---- collectives -------------------------------------------------------- */

/* Elements [at, at + count) of all ranks' inputs. */
#define RG_X(name, storage, accumulator, wide)                                 \
    static void reduce_##name(const struct call *call, char **sends, int n,    \
                              size_t at)                                       \
    {                                                                          \
        for (size_t i = 0; i < call->count; i++) {                             \
            accumulator sum =                                                  \
                rg_load_##name(((storage *)(void *)sends[0])[at + i]);         \
                                                                               \
            for (int r = 1; r < n; r++)                                        \
                sum = rg_combine_##name(                                       \
                    call->op, sum,                                             \
                    rg_load_##name(((storage *)(void *)sends[r])[at + i]));    \
            ((storage *)call->recv)[i] =                                       \
                rg_store_##name(rg_finish_##name(call->op, sum, n));           \
        }                                                                      \
    }
RG_NUM_INT_LIST(RG_X)
RG_NUM_FLOAT_LIST(RG_X)
#undef RG_X

static void reduce(const struct call *call, char **sends, int n, size_t at)
{
    switch (call->dtype) {
#define RG_X(name, bytes)                                                      \
    case RG_##name:                                                            \
        reduce_##name(call, sends, n, at);                                     \
        break;
        RG_DTYPE_REDUCE_LIST(RG_X)
#undef RG_X
    default:
        break;
    }
}

/* Every rank's layout, as it stands while all are in the call. */
static void move_v(const struct call *call, char **sends,
                   const uint64_t **layouts, int n)
{
    const size_t size = rg_dtype_size(call->dtype);
    const int me = call->comm->context->config.rank;

    for (int r = 0; r < n; r++)
        memcpy((char *)call->recv + call->layout[3 * n + r] * size,
               sends[r] + layouts[r][n + me] * size,
               call->layout[2 * n + r] * size);
}

/* Block `from` of what each sends, if it sends blocks. */
static void move_each(const struct call *call, char **sends, int n, size_t from)
{
    const size_t block = call->count * rg_dtype_size(call->dtype);

    for (int r = 0; r < n; r++)
        memcpy((char *)call->recv + (size_t)r * block, sends[r] + from * block,
               block);
}

static void produce(const struct call *call, char **sends,
                    const uint64_t **layouts, int n)
{
    const size_t block = call->count * rg_dtype_size(call->dtype);
    const size_t me = (size_t)call->comm->context->config.rank;
    const int at_root = (int)me == call->root;

    switch (call->collective) {
    case RG_COLL_all_reduce:
        reduce(call, sends, n, 0);
        break;
    case RG_COLL_reduce:
        if (at_root)
            reduce(call, sends, n, 0);
        break;
    case RG_COLL_reduce_scatter:
        reduce(call, sends, n, me * call->count);
        break;
    case RG_COLL_all_gather:
        move_each(call, sends, n, 0);
        break;
    case RG_COLL_gather:
        if (at_root)
            move_each(call, sends, n, 0);
        break;
    case RG_COLL_all_to_all:
        move_each(call, sends, n, me);
        break;
    case RG_COLL_all_to_all_v:
        move_v(call, sends, layouts, n);
        break;
    case RG_COLL_broadcast:
        memcpy(call->recv, sends[call->root], block);
        break;
    case RG_COLL_sendrecv:
        memcpy(call->recv, sends[(me + (size_t)n - 1) % (size_t)n], block);
        break;
    case RG_COLL_scatter:
        memcpy(call->recv, sends[call->root] + me * block, block);
        break;
    default:
        break;
    }
}

static int run_call(const struct call *call)
{
    struct rg_context *context = call->comm->context;
    const int n = context->config.size;
    const size_t size = rg_dtype_size(call->dtype);
    char **sends = calloc((size_t)n, sizeof *sends);
    const uint64_t **layouts = calloc((size_t)n, sizeof *layouts);
    char *copy = malloc(call->send_count * size + 1);

    if (!sends || !layouts || !copy)
        return RG_ENOMEM;
    if (call->send_count)
        memcpy(copy, call->send, call->send_count * size);
    rg_comm_gather(call->comm, &copy, sizeof copy, sends);
    rg_comm_gather(call->comm, &call->layout, sizeof call->layout, layouts);
    produce(call, sends, layouts, n);
    if (context->spoiled >= 0 && (size_t)context->spoiled < call->count)
        ((uint8_t *)call->recv)[(size_t)context->spoiled * size] ^= 1;
    rg_comm_gather(call->comm, NULL, 0, NULL);
    context->seq++;
    free(sends);
    free(layouts);
    free(copy);
    return RG_OK;
}

static int run_or_record(const struct call *call, struct rg_stream *stream)
{
    if (!stream->capturing)
        return run_call(call);
    if (stream->capturing->n == CALLS_MAX)
        return RG_ENOSPC;
    stream->capturing->calls[stream->capturing->n++] = *call;
    return RG_OK;
}

/* How much of `send` a rank has: blocks of each, or one; 0 but at the root. */
static size_t sent(const struct call *call, int blocks, int of_root)
{
    const struct rg_context_config *config = &call->comm->context->config;

    if (of_root && config->rank != call->root)
        return 0;
    return call->count * (size_t)(blocks ? config->size : 1);
}

#define CALL(name, type, operation, from, blocks, of_root)                     \
    struct call call = {.collective = RG_COLL_##name,                          \
                        .send = send,                                          \
                        .recv = recv,                                          \
                        .count = count,                                        \
                        .dtype = type,                                         \
                        .op = operation,                                       \
                        .root = from,                                          \
                        .comm = comm};                                         \
                                                                               \
    call.send_count = sent(&call, blocks, of_root);                            \
    return run_or_record(&call, stream)

int rg_all_reduce(const void *send, void *recv, size_t count,
                  enum rg_dtype dtype, enum rg_op op, struct rg_comm *comm,
                  struct rg_stream *stream)
{
    CALL(all_reduce, dtype, op, 0, 0, 0);
}

int rg_all_gather(const void *send, void *recv, size_t count,
                  enum rg_dtype dtype, struct rg_comm *comm,
                  struct rg_stream *stream)
{
    CALL(all_gather, dtype, RG_sum, 0, 0, 0);
}

int rg_reduce_scatter(const void *send, void *recv, size_t count,
                      enum rg_dtype dtype, enum rg_op op, struct rg_comm *comm,
                      struct rg_stream *stream)
{
    CALL(reduce_scatter, dtype, op, 0, 1, 0);
}

int rg_all_to_all(const void *send, void *recv, size_t count,
                  enum rg_dtype dtype, struct rg_comm *comm,
                  struct rg_stream *stream)
{
    CALL(all_to_all, dtype, RG_sum, 0, 1, 0);
}

int rg_broadcast(const void *send, void *recv, size_t count,
                 enum rg_dtype dtype, int root, struct rg_comm *comm,
                 struct rg_stream *stream)
{
    CALL(broadcast, dtype, RG_sum, root, 0, 1);
}

int rg_reduce(const void *send, void *recv, size_t count, enum rg_dtype dtype,
              enum rg_op op, int root, struct rg_comm *comm,
              struct rg_stream *stream)
{
    CALL(reduce, dtype, op, root, 0, 0);
}

int rg_gather(const void *send, void *recv, size_t count, enum rg_dtype dtype,
              int root, struct rg_comm *comm, struct rg_stream *stream)
{
    CALL(gather, dtype, RG_sum, root, 0, 0);
}

int rg_scatter(const void *send, void *recv, size_t count, enum rg_dtype dtype,
               int root, struct rg_comm *comm, struct rg_stream *stream)
{
    CALL(scatter, dtype, RG_sum, root, 1, 1);
}

int rg_barrier(struct rg_comm *comm, struct rg_stream *stream)
{
    const struct call call = {.collective = RG_COLL_barrier, .comm = comm};

    return run_or_record(&call, stream);
}

int rg_all_to_all_v(const void *send, size_t send_count, void *recv,
                    size_t recv_count, const uint64_t *layout, size_t most,
                    enum rg_dtype dtype, struct rg_comm *comm,
                    struct rg_stream *stream)
{
    const struct call call = {.collective = RG_COLL_all_to_all_v,
                              .send = send,
                              .recv = recv,
                              .count = most,
                              .dtype = dtype,
                              .comm = comm,
                              .send_count = send_count,
                              .layout = layout};

    (void)recv_count;
    return run_or_record(&call, stream);
}

/* Of a group there is one of each, in a ring: the receive does it. */
int rg_group_begin(struct rg_comm *comm, struct rg_stream *stream)
{
    (void)comm;
    (void)stream;
    return RG_OK;
}

int rg_group_end(struct rg_comm *comm)
{
    (void)comm;
    return RG_OK;
}

int rg_send(const void *send, size_t count, enum rg_dtype dtype, int slot,
            struct rg_comm *comm, struct rg_stream *stream)
{
    (void)count;
    (void)dtype;
    (void)stream;
    comm->context->sent = send;
    return slot == (comm->context->config.rank + 1) % comm->context->config.size
               ? RG_OK
               : RG_EINVAL;
}

int rg_recv(void *recv, size_t count, enum rg_dtype dtype, int slot,
            struct rg_comm *comm, struct rg_stream *stream)
{
    const void *send = comm->context->sent;

    (void)slot;
    CALL(sendrecv, dtype, RG_sum, 0, 0, 0);
}

int rg_graph_begin(struct rg_stream *stream)
{
    stream->capturing = calloc(1, sizeof *stream->capturing);
    return stream->capturing ? RG_OK : RG_ENOMEM;
}

int rg_graph_end(struct rg_stream *stream, struct rg_graph **graph_out)
{
    *graph_out = stream->capturing;
    stream->capturing = NULL;
    return RG_OK;
}

int rg_graph_launch(struct rg_graph *graph, struct rg_stream *stream)
{
    int status = RG_OK;

    (void)stream;
    for (int i = 0; status == RG_OK && i < graph->n; i++)
        status = run_call(&graph->calls[i]);
    return status;
}

void rg_graph_destroy(struct rg_graph *graph)
{
    free(graph);
}
