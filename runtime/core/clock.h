/* Monotonic time in nanoseconds (CLOCK_MONOTONIC). */
#ifndef RG_CORE_CLOCK_H
#define RG_CORE_CLOCK_H

#include <stdint.h>
#include <time.h>

uint64_t rg_clock_ns(void);
/* The time so many milliseconds from now. */
uint64_t rg_clock_after_ms(uint64_t ms);
/* Sleeps at least ns; used by host threads that poll, never on a fast path. */
void rg_clock_sleep_ns(uint64_t ns);
/* A time, or a duration, as the system's calls want it. */
struct timespec rg_clock_timespec(uint64_t ns);

#endif
