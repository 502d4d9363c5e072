/*
 * The monotonic clock, and condition variables that are waited for until a
 * time of it.
 */
#ifndef RG_HARNESS_WAIT_H
#define RG_HARNESS_WAIT_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* In nanoseconds; the same for all processes of a host. */
static inline uint64_t rg_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The milliseconds from now to then, rounded up, as poll() wants them. */
static inline int rg_ms_until(uint64_t then_ns)
{
    const uint64_t now = rg_now_ns();
    const uint64_t ms = then_ns > now ? (then_ns - now + 999999) / 1000000 : 0;

    return ms > 3600000 ? 3600000 : (int)ms;
}

/* Destroyed and signalled by the system's own calls. RG_OK or RG_ENOMEM. */
int rg_wait_init(pthread_cond_t *cond);
/*
 * Under the lock. RG_OK: perhaps signalled, the caller looks again at what it
 * waits for; RG_ETIMEDOUT: until_ns has passed.
 */
int rg_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock,
                  uint64_t until_ns);

#endif
