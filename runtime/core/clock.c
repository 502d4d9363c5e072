#include "runtime/core/clock.h"

#include <errno.h>

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

uint64_t rg_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t rg_clock_after_ms(uint64_t ms)
{
    return rg_clock_ns() + ms * NS_PER_MS;
}

void rg_clock_sleep_ns(uint64_t ns)
{
    struct timespec left = rg_clock_timespec(ns);

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

struct timespec rg_clock_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S),
                             .tv_nsec = (long)(ns % NS_PER_S)};
}
