/* Streams, events and graphs: the public objects over the backend's. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/word.h"
#include "runtime/exec/comm.h"
#include "runtime/exec/context.h"

static int stream_open(struct rg_context *context, void *native,
                       struct rg_stream **stream_out)
{
    struct rg_stream *stream = calloc(1, sizeof *stream);
    int status;

    if (!stream)
        return RG_ENOMEM;
    stream->context = context;
    status =
        context->ops->stream_create(context->device, native, &stream->native);
    if (status) {
        free(stream);
        return status;
    }
    *stream_out = stream;
    return RG_OK;
}

int rg_stream_create(struct rg_context *context, struct rg_stream **stream_out)
{
    return stream_open(context, NULL, stream_out);
}

int rg_stream_wrap(struct rg_context *context, void *native,
                   struct rg_stream **stream_out)
{
    return native ? stream_open(context, native, stream_out) : RG_EINVAL;
}

void rg_stream_destroy(struct rg_stream *stream)
{
    if (!stream)
        return;
    rg_stream_synchronize(stream);
    rg_comm_forget_stream(stream);
    rg_graph_destroy(stream->capture);
    stream->context->ops->stream_destroy(stream->native);
    free(stream);
}

int rg_stream_synchronize(struct rg_stream *stream)
{
    return stream->context->ops->stream_synchronize(stream->native);
}

int rg_stream_query(struct rg_stream *stream)
{
    return stream->context->ops->stream_query(stream->native);
}

int rg_event_create(struct rg_context *context, struct rg_event **event_out)
{
    struct rg_event *event = calloc(1, sizeof *event);
    int status;

    if (!event)
        return RG_ENOMEM;
    event->context = context;
    status = context->ops->event_create(context->device, &event->native);
    if (status) {
        free(event);
        return status;
    }
    *event_out = event;
    return RG_OK;
}

void rg_event_destroy(struct rg_event *event)
{
    if (!event)
        return;
    event->context->ops->event_destroy(event->native);
    free(event);
}

int rg_event_record(struct rg_event *event, struct rg_stream *stream)
{
    return event->context->ops->event_record(event->native, stream->native);
}

int rg_event_synchronize(struct rg_event *event)
{
    return event->context->ops->event_synchronize(event->native);
}

int rg_event_elapsed_us(struct rg_event *begin, struct rg_event *end,
                        double *us_out)
{
    return begin->context->ops->event_elapsed_us(begin->native, end->native,
                                                 us_out);
}

int rg_graph_begin(struct rg_stream *stream)
{
    struct rg_graph *graph;
    int status;

    if (stream->capture)
        return RG_EBUSY;
    graph = calloc(1, sizeof *graph);
    if (!graph)
        return RG_ENOMEM;
    graph->context = stream->context;
    status = stream->context->ops->capture_begin(stream->native);
    if (status) {
        free(graph);
        return status;
    }
    stream->capture = graph;
    return RG_OK;
}

int rg_graph_use(struct rg_graph *graph, struct rg_comm *comm, uint64_t seqs)
{
    struct rg_graph_use *uses;

    for (int i = 0; i < graph->count; i++)
        if (graph->uses[i].comm == comm) {
            graph->uses[i].seqs += seqs;
            return RG_OK;
        }
    uses = realloc(graph->uses, (size_t)(graph->count + 1) * sizeof *uses);
    if (!uses)
        return RG_ENOMEM;
    graph->uses = uses;
    graph->uses[graph->count++] = (struct rg_graph_use){comm, seqs};
    rg_add_relaxed_dev(&comm->graphs, 1);
    return RG_OK;
}

int rg_graph_end(struct rg_stream *stream, struct rg_graph **graph_out)
{
    struct rg_graph *graph = stream->capture;
    int status;

    if (!graph)
        return RG_EINVAL;
    stream->capture = NULL;
    status = stream->context->ops->capture_end(stream->native, &graph->native);
    if (status) {
        rg_graph_destroy(graph);
        return status;
    }
    *graph_out = graph;
    return RG_OK;
}

int rg_graph_launch(struct rg_graph *graph, struct rg_stream *stream)
{
    int status = RG_OK;

    for (int i = 0; i < graph->count && status == RG_OK; i++)
        status = rg_comm_check(graph->uses[i].comm);
    for (int i = 0; i < graph->count && status == RG_OK; i++)
        if (rg_load_relaxed(&graph->uses[i].comm->backend) != RG_BACKEND_NEW)
            status = RG_EUNAVAILABLE;
    for (int i = 0; i < graph->count && status == RG_OK; i++)
        status = rg_comm_enter(graph->uses[i].comm, stream);
    if (status)
        return status;
    for (int i = 0; i < graph->count; i++)
        rg_comm_count(graph->uses[i].comm, graph->uses[i].seqs);
    return stream->context->ops->graph_launch(graph->native, stream->native);
}

void rg_graph_destroy(struct rg_graph *graph)
{
    if (!graph)
        return;
    for (int i = 0; i < graph->count; i++)
        rg_add_relaxed_dev(&graph->uses[i].comm->graphs, (uint64_t)-1);
    if (graph->native)
        graph->context->ops->graph_destroy(graph->native);
    free(graph->uses);
    free(graph);
}
