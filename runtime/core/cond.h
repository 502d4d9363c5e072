/*
 * Condition variables that are waited for until a time of rg_clock_ns(), so
 * that setting the system's clock hurries nobody. Destroyed, signalled, and
 * waited for without a bound by the system's own calls.
 */
#ifndef RG_CORE_COND_H
#define RG_CORE_COND_H

#include <pthread.h>
#include <stdint.h>

/* RG_OK or RG_ENOMEM. */
int rg_cond_init(pthread_cond_t *cond);
/* With the lock that it is waited for under: both or neither. Likewise. */
int rg_cond_init_locked(pthread_cond_t *cond, pthread_mutex_t *lock);
/*
 * Under the lock. RG_OK: perhaps signalled, the caller looks again at what it
 * waits for; RG_ETIMEDOUT: until_ns has passed.
 */
int rg_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
                 uint64_t until_ns);

#endif
