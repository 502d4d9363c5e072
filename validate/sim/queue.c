#include "validate/sim/queue.h"

#include <stdlib.h>

#include "runtime/control/message.h"

enum { CHILDREN = 4 };

static int comes_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

void sim_queue_push(struct sim_queue *queue, const struct sim_event *event)
{
    struct sim_event added = *event;
    size_t at = queue->count++;

    added.order = queue->order++;
    if (at == queue->room) {
        queue->room = at ? 2 * at : 1024;
        queue->events =
            realloc(queue->events, queue->room * sizeof(*queue->events));
        if (!queue->events)
            abort();
    }
    while (at) {
        size_t parent = (at - 1) / CHILDREN;

        if (!comes_before(&added, &queue->events[parent]))
            break;
        queue->events[at] = queue->events[parent];
        at = parent;
    }
    queue->events[at] = added;
}

/* The place of the earliest child, or `count`. */
static size_t first_child(const struct sim_queue *queue, size_t parent)
{
    size_t child = parent * CHILDREN + 1;
    size_t end =
        child + CHILDREN < queue->count ? child + CHILDREN : queue->count;
    size_t best = child < queue->count ? child : queue->count;

    for (; child < end; child++)
        if (comes_before(&queue->events[child], &queue->events[best]))
            best = child;
    return best;
}

int sim_queue_pop(struct sim_queue *queue, struct sim_event *event_out)
{
    struct sim_event last;
    size_t at = 0;

    if (!queue->count)
        return 0;
    *event_out = queue->events[0];
    last = queue->events[--queue->count];
    while (1) {
        size_t child = first_child(queue, at);

        if (child == queue->count ||
            !comes_before(&queue->events[child], &last))
            break;
        queue->events[at] = queue->events[child];
        at = child;
    }
    queue->events[at] = last;
    return 1;
}

void sim_queue_fini(struct sim_queue *queue)
{
    for (size_t i = 0; i < queue->count; i++)
        rg_message_unref(queue->events[i].message);
    free(queue->events);
    *queue = (struct sim_queue){0};
}
