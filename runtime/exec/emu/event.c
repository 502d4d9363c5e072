/* Events: a time stamp taken when the stream gets there. */
#include <stdlib.h>

#include "runtime/core/clock.h"
#include "runtime/exec/emu/emu.h"

int emu_event_create(void *device, void **event_out)
{
    (void)device;
    *event_out = calloc(1, sizeof(struct emu_event));
    return *event_out ? RG_OK : RG_ENOMEM;
}

void emu_event_destroy(void *event)
{
    free(event);
}

void emu_event_reach(struct emu_event *event)
{
    rg_store_relaxed(&event->time_ns, rg_clock_ns());
    /* Pairs with the acquire load of emu_event_synchronize. */
    rg_add_release(&event->reached, 1);
}

int emu_event_record(void *event, void *stream)
{
    struct emu_work work = {.kind = EMU_WORK_EVENT};

    work.u.event = event;
    work.u.event->recorded++;
    return emu_stream_post(stream, &work);
}

int emu_event_synchronize(void *event)
{
    struct emu_event *e = event;
    uint64_t polls = 0;

    while (rg_load_acquire(&e->reached) < e->recorded)
        emu_relax(polls++, 1);
    return RG_OK;
}

int emu_event_elapsed_us(void *begin, void *end, double *us_out)
{
    struct emu_event *a = begin, *b = end;

    if (rg_load_acquire(&a->reached) < a->recorded || !a->recorded ||
        rg_load_acquire(&b->reached) < b->recorded || !b->recorded)
        return RG_EPENDING;
    *us_out = (double)(int64_t)(rg_load_relaxed(&b->time_ns) -
                                rg_load_relaxed(&a->time_ns)) /
              1e3;
    return RG_OK;
}
