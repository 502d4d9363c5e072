#include "runtime/core/cond.h"

#include "runtime/core/clock.h"
#include "runtime/status.h"

int rg_cond_init(pthread_cond_t *cond)
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

int rg_cond_init_locked(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    int status;

    if (pthread_mutex_init(lock, NULL))
        return RG_ENOMEM;
    status = rg_cond_init(cond);
    if (status)
        pthread_mutex_destroy(lock);
    return status;
}

int rg_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
    const struct timespec until = rg_clock_timespec(until_ns);

    return pthread_cond_timedwait(cond, lock, &until) ? RG_ETIMEDOUT : RG_OK;
}
