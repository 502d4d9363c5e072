/* Streams, events and graphs of the CUDA device. */
#include <stdlib.h>

#include "runtime/exec/cuda/cuda.h"

int cuda_stream_create(void *opaque, void *native, void **stream_out)
{
    struct cuda_device *device = opaque;
    struct cuda_stream *stream = calloc(1, sizeof *stream);
    int status = RG_OK;

    if (!stream)
        return RG_ENOMEM;
    cudaSetDevice(device->config.ordinal);
    stream->device = device;
    stream->stream = native;
    stream->owned = !native;
    if (!native)
        status = cuda_check(
            device,
            cudaStreamCreateWithFlags(&stream->stream, cudaStreamNonBlocking),
            "cudaStreamCreateWithFlags");
    if (status) {
        free(stream);
        return status;
    }
    *stream_out = stream;
    return RG_OK;
}

void cuda_stream_destroy(void *opaque)
{
    struct cuda_stream *stream = opaque;

    if (stream->owned)
        cudaStreamDestroy(stream->stream);
    free(stream);
}

int cuda_stream_synchronize(void *opaque)
{
    struct cuda_stream *stream = opaque;

    return cuda_check(stream->device, cudaStreamSynchronize(stream->stream),
                      "cudaStreamSynchronize");
}

int cuda_stream_query(void *opaque)
{
    struct cuda_stream *stream = opaque;
    const cudaError_t error = cudaStreamQuery(stream->stream);

    if (error == cudaErrorNotReady)
        return RG_EPENDING;
    return cuda_check(stream->device, error, "cudaStreamQuery");
}

/* The event may be destroyed at once: CUDA keeps it until it is reached. */
int cuda_stream_follow(void *opaque, void *after)
{
    struct cuda_stream *stream = opaque, *other = after;
    cudaEvent_t event;
    cudaError_t error;

    cudaSetDevice(stream->device->config.ordinal);
    error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error == cudaSuccess) {
        error = cudaEventRecord(event, other->stream);
        if (error == cudaSuccess)
            error = cudaStreamWaitEvent(stream->stream, event, 0);
        cudaEventDestroy(event);
    }
    return cuda_check(stream->device, error, "ordering two streams");
}

int cuda_event_create(void *opaque, void **event_out)
{
    struct cuda_device *device = opaque;
    struct cuda_event *event = calloc(1, sizeof *event);
    int status;

    if (!event)
        return RG_ENOMEM;
    cudaSetDevice(device->config.ordinal);
    event->device = device;
    status =
        cuda_check(device, cudaEventCreate(&event->event), "cudaEventCreate");
    if (status) {
        free(event);
        return status;
    }
    *event_out = event;
    return RG_OK;
}

void cuda_event_destroy(void *opaque)
{
    struct cuda_event *event = opaque;

    cudaEventDestroy(event->event);
    free(event);
}

int cuda_event_record(void *opaque, void *stream)
{
    struct cuda_event *event = opaque;

    return cuda_check(
        event->device,
        cudaEventRecord(event->event, ((struct cuda_stream *)stream)->stream),
        "cudaEventRecord");
}

int cuda_event_synchronize(void *opaque)
{
    struct cuda_event *event = opaque;

    return cuda_check(event->device, cudaEventSynchronize(event->event),
                      "cudaEventSynchronize");
}

int cuda_event_elapsed_us(void *begin, void *end, double *us_out)
{
    struct cuda_event *a = begin, *b = end;
    float ms = 0;
    const cudaError_t error = cudaEventElapsedTime(&ms, a->event, b->event);

    if (error == cudaErrorNotReady)
        return RG_EPENDING;
    if (error == cudaSuccess)
        *us_out = (double)ms * 1e3;
    return cuda_check(a->device, error, "cudaEventElapsedTime");
}

int cuda_capture_begin(void *opaque)
{
    struct cuda_stream *stream = opaque;

    return cuda_check(stream->device,
                      cudaStreamBeginCapture(stream->stream,
                                             cudaStreamCaptureModeThreadLocal),
                      "cudaStreamBeginCapture");
}

int cuda_capture_end(void *opaque, void **graph_out)
{
    struct cuda_stream *stream = opaque;
    struct cuda_graph *graph = calloc(1, sizeof *graph);
    cudaError_t error;

    if (!graph)
        return RG_ENOMEM;
    graph->device = stream->device;
    error = cudaStreamEndCapture(stream->stream, &graph->graph);
    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&graph->exec, graph->graph, 0);
    if (error == cudaSuccess)
        error = cudaGraphUpload(graph->exec, stream->stream);
    if (error != cudaSuccess) {
        cuda_graph_destroy(graph);
        return cuda_check(stream->device, error, "a capture");
    }
    *graph_out = graph;
    return RG_OK;
}

int cuda_graph_launch(void *opaque, void *stream)
{
    struct cuda_graph *graph = opaque;

    return cuda_check(
        graph->device,
        cudaGraphLaunch(graph->exec, ((struct cuda_stream *)stream)->stream),
        "cudaGraphLaunch");
}

void cuda_graph_destroy(void *opaque)
{
    struct cuda_graph *graph = opaque;

    if (graph->exec)
        cudaGraphExecDestroy(graph->exec);
    if (graph->graph)
        cudaGraphDestroy(graph->graph);
    free(graph);
}
