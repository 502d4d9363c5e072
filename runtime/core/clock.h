/* Monotonic time in nanoseconds (CLOCK_MONOTONIC). */
#ifndef RG_CORE_CLOCK_H
#define RG_CORE_CLOCK_H

#include <stdint.h>

uint64_t rg_clock_ns(void);
/* Sleeps at least ns; used by host threads that poll, never on a fast path. */
void rg_clock_sleep_ns(uint64_t ns);

#endif
