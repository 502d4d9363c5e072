/* Streams and graphs of the emulated device. */
#include <stdlib.h>
#include <string.h>

#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/exec/emu/emu.h"

int emu_list_add(struct emu_list *list, const struct emu_work *work)
{
    if (list->count == list->room) {
        const int room = list->room ? 2 * list->room : 16;
        struct emu_work *more =
            realloc(list->work, (size_t)room * sizeof *more);

        if (!more)
            return RG_ENOMEM;
        list->work = more;
        list->room = room;
    }
    list->work[list->count++] = *work;
    return RG_OK;
}

void emu_work_fini(const struct emu_work *work)
{
    if (work->kind == EMU_WORK_LAUNCH)
        free((void *)(uintptr_t)work->u.launch.launch.posts);
}

static void list_free(struct emu_list *list)
{
    for (int i = 0; i < list->count; i++)
        emu_work_fini(&list->work[i]);
    free(list->work);
}

/* Frees the graph with its last user; pairs with the adds of the others. */
static void graph_drop(struct emu_graph *graph)
{
    if (rg_add_acq_rel_dev(&graph->users, (uint64_t)-1) != 1)
        return;
    list_free(&graph->list);
    free(graph);
}

static void stream_wait_ended(struct emu_stream *stream, uint64_t ticket)
{
    pthread_mutex_lock(&stream->lock);
    while (stream->ended < ticket)
        pthread_cond_wait(&stream->change, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
}

static void stream_run(struct emu_stream *stream, const struct emu_work *work)
{
    switch (work->kind) {
    case EMU_WORK_LAUNCH:
        if (emu_gang_run(&stream->gang, stream->device, work))
            rg_log(RG_LOG_ERROR, stream->device->config.world_rank,
                   "a launch could not be run: out of memory or threads");
        break;
    case EMU_WORK_KERNEL:
        for (int team = 0; team < work->teams; team++)
            work->u.kernel.run(work->u.kernel.args, team, work->teams);
        break;
    case EMU_WORK_EVENT:
        emu_event_reach(work->u.event);
        break;
    case EMU_WORK_FOLLOW:
        stream_wait_ended(work->u.follow.stream, work->u.follow.ticket);
        break;
    case EMU_WORK_GRAPH:
        for (int i = 0; i < work->u.graph->list.count; i++)
            stream_run(stream, &work->u.graph->list.work[i]);
        graph_drop(work->u.graph);
        break;
    }
}

/* The next queued work, or 0 when the stream is to end. */
static int stream_take(struct emu_stream *stream, struct emu_work *work_out)
{
    while (stream->head == stream->queue.count && !stream->stop)
        pthread_cond_wait(&stream->change, &stream->lock);
    if (stream->head == stream->queue.count)
        return 0;
    *work_out = stream->queue.work[stream->head++];
    if (stream->head == stream->queue.count)
        stream->head = stream->queue.count = 0;
    return 1;
}

static void *stream_main(void *arg)
{
    struct emu_stream *stream = arg;
    struct emu_work work;

    rg_thread_name("stream");
    pthread_mutex_lock(&stream->lock);
    while (stream_take(stream, &work)) {
        pthread_mutex_unlock(&stream->lock);
        stream_run(stream, &work);
        emu_work_fini(&work);
        pthread_mutex_lock(&stream->lock);
        stream->ended++;
        pthread_cond_broadcast(&stream->change);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

int emu_stream_create(void *device, void *native, void **stream_out)
{
    struct emu_stream *stream;

    if (native)
        return RG_ENOTSUP;
    stream = calloc(1, sizeof *stream);
    if (!stream)
        return RG_ENOMEM;
    stream->device = device;
    if (pthread_mutex_init(&stream->lock, NULL) ||
        emu_gang_init(&stream->gang)) {
        free(stream);
        return RG_ENOMEM;
    }
    pthread_cond_init(&stream->change, NULL);
    stream->device->streams++;
    *stream_out = stream;
    return RG_OK;
}

void emu_stream_destroy(void *opaque)
{
    struct emu_stream *stream = opaque;

    emu_stream_synchronize(stream);
    pthread_mutex_lock(&stream->lock);
    stream->stop = 1;
    pthread_cond_broadcast(&stream->change);
    pthread_mutex_unlock(&stream->lock);
    if (stream->started)
        pthread_join(stream->runner, NULL);
    emu_gang_fini(&stream->gang);
    pthread_cond_destroy(&stream->change);
    pthread_mutex_destroy(&stream->lock);
    stream->device->streams--;
    if (stream->capture)
        list_free(stream->capture);
    free(stream->capture);
    free(stream->queue.work);
    free(stream);
}

int emu_stream_synchronize(void *opaque)
{
    struct emu_stream *stream = opaque;

    if (stream->started)
        stream_wait_ended(stream, stream->posted);
    return RG_OK;
}

int emu_stream_query(void *opaque)
{
    struct emu_stream *stream = opaque;
    int idle;

    pthread_mutex_lock(&stream->lock);
    idle = stream->ended == stream->posted;
    pthread_mutex_unlock(&stream->lock);
    return idle ? RG_OK : RG_EPENDING;
}

static int stream_enqueue(struct emu_stream *stream,
                          const struct emu_work *work)
{
    int status;

    if (!stream->started) {
        if (pthread_create(&stream->runner, NULL, stream_main, stream))
            return RG_ENOMEM;
        stream->started = 1;
    }
    pthread_mutex_lock(&stream->lock);
    status = emu_list_add(&stream->queue, work);
    if (status == RG_OK)
        stream->posted++;
    pthread_cond_broadcast(&stream->change);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/* Messages that only go or only come: what they wait for may be a call that
 * the other end makes once this one has returned. */
static int is_one_way(const struct rg_launch *launch)
{
    uint64_t sends = 0;

    for (uint64_t i = 0; i < launch->nposts; i++)
        sends += launch->posts[i].kind == RG_POST_SEND;
    return launch->nposts && (!sends || sends == launch->nposts);
}

/* May the caller's thread do it? See the head of emu.h. */
static int stream_inline(struct emu_stream *stream, const struct emu_work *work)
{
    if (work->kind == EMU_WORK_LAUNCH &&
        (work->teams * work->threads > 1 || is_one_way(&work->u.launch.launch)))
        return 0;
    if (work->kind == EMU_WORK_GRAPH)
        for (int i = 0; i < work->u.graph->list.count; i++)
            if (!stream_inline(stream, &work->u.graph->list.work[i]))
                return 0;
    if (work->kind == EMU_WORK_FOLLOW || stream->device->streams > 1)
        return 0;
    return !stream->started || emu_stream_query(stream) == RG_OK;
}

int emu_stream_post(struct emu_stream *stream, const struct emu_work *work)
{
    if (stream->capture)
        return emu_list_add(stream->capture, work);
    if (!stream_inline(stream, work))
        return stream_enqueue(stream, work);
    stream_run(stream, work);
    emu_work_fini(work);
    return RG_OK;
}

int emu_stream_follow(void *opaque, void *after)
{
    struct emu_stream *stream = opaque, *other = after;
    struct emu_work work = {.kind = EMU_WORK_FOLLOW};

    if (emu_stream_query(other) == RG_OK)
        return RG_OK;
    work.u.follow.stream = other;
    work.u.follow.ticket = other->posted;
    return emu_stream_post(stream, &work);
}

int emu_capture_begin(void *opaque)
{
    struct emu_stream *stream = opaque;

    if (stream->capture)
        return RG_EBUSY;
    stream->capture = calloc(1, sizeof *stream->capture);
    return stream->capture ? RG_OK : RG_ENOMEM;
}

int emu_capture_end(void *opaque, void **graph_out)
{
    struct emu_stream *stream = opaque;
    struct emu_graph *graph;

    if (!stream->capture)
        return RG_EINVAL;
    graph = calloc(1, sizeof *graph);
    if (!graph)
        return RG_ENOMEM;
    graph->list = *stream->capture;
    graph->users = 1;
    free(stream->capture);
    stream->capture = NULL;
    *graph_out = graph;
    return RG_OK;
}

int emu_graph_launch(void *opaque, void *stream)
{
    struct emu_graph *graph = opaque;
    struct emu_work work = {.kind = EMU_WORK_GRAPH};
    int status;

    work.u.graph = graph;
    rg_add_relaxed_dev(&graph->users, 1);
    status = emu_stream_post(stream, &work);
    if (status)
        graph_drop(graph);
    return status;
}

void emu_graph_destroy(void *graph)
{
    graph_drop(graph);
}
