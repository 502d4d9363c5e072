#include "harness/wait.h"

#include "runtime/status.h"

enum { NS_PER_S = 1000000000 };

int rg_wait_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int failed;

    if (pthread_condattr_init(&attr))
        return RG_ENOMEM;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    failed = pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return failed ? RG_ENOMEM : RG_OK;
}

int rg_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock,
                  uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                                   .tv_nsec = (long)(until_ns % NS_PER_S)};

    return pthread_cond_timedwait(cond, lock, &until) ? RG_ETIMEDOUT : RG_OK;
}
