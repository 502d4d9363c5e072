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
};

struct call {
    const void *send;
    void *recv;
    size_t count;
    enum rg_dtype dtype;
    enum rg_op op;
    struct rg_comm *comm;
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
                                      .backend = RG_BACKEND_NEW};
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

/* ---- all-reduce --------------------------------------------------------- */

#define RG_X(name, storage, accumulator, wide)                                 \
    static void reduce_##name(const struct call *call, void **sends, int n)    \
    {                                                                          \
        for (size_t i = 0; i < call->count; i++) {                             \
            accumulator sum = rg_load_##name(((storage *)sends[0])[i]);        \
                                                                               \
            for (int r = 1; r < n; r++)                                        \
                sum = rg_combine_##name(                                       \
                    call->op, sum, rg_load_##name(((storage *)sends[r])[i]));  \
            ((storage *)call->recv)[i] =                                       \
                rg_store_##name(rg_finish_##name(call->op, sum, n));           \
        }                                                                      \
    }
RG_NUM_INT_LIST(RG_X)
RG_NUM_FLOAT_LIST(RG_X)
#undef RG_X

static void reduce(const struct call *call, void **sends, int n)
{
    switch (call->dtype) {
#define RG_X(name, bytes)                                                      \
    case RG_##name:                                                            \
        reduce_##name(call, sends, n);                                         \
        break;
        RG_DTYPE_REDUCE_LIST(RG_X)
#undef RG_X
    default:
        break;
    }
}

static int run_call(const struct call *call)
{
    struct rg_context *context = call->comm->context;
    const int n = context->config.size;
    const size_t bytes = call->count * rg_dtype_size(call->dtype);
    void **sends = calloc((size_t)n, sizeof *sends);
    void *copy = malloc(bytes + 1);

    if (!sends || !copy)
        return RG_ENOMEM;
    memcpy(copy, call->send, bytes);
    rg_comm_gather(call->comm, &copy, sizeof copy, sends);
    reduce(call, sends, n);
    if (context->spoiled >= 0 && (size_t)context->spoiled < call->count)
        ((uint8_t *)call
             ->recv)[(size_t)context->spoiled * rg_dtype_size(call->dtype)] ^=
            1;
    rg_comm_gather(call->comm, NULL, 0, NULL);
    context->seq++;
    free(sends);
    free(copy);
    return RG_OK;
}

int rg_all_reduce(const void *send, void *recv, size_t count,
                  enum rg_dtype dtype, enum rg_op op, struct rg_comm *comm,
                  struct rg_stream *stream)
{
    const struct call call = {send, recv, count, dtype, op, comm};

    if (!stream->capturing)
        return run_call(&call);
    if (stream->capturing->n == CALLS_MAX)
        return RG_ENOSPC;
    stream->capturing->calls[stream->capturing->n++] = call;
    return RG_OK;
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
