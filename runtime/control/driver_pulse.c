#include "runtime/control/driver_pulse.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/status.h"

enum pulse_state {
    PULSE_STARTING = 0,
    PULSE_BEATING,
    PULSE_FAILED,
    PULSE_STOP
};

struct rg_pulse {
    int read_fd;
    int write_fd; /* until the thread has it to itself */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum pulse_state state; /* under lock */
};

/* Leaves this thread's own table with nothing but the writing end. */
static int take_over(const struct rg_pulse *pulse)
{
    const unsigned only = (unsigned)pulse->write_fd;

    if (unshare(CLONE_FILES))
        return errno;
    if ((only > 0 && close_range(0, only - 1, 0)) ||
        close_range(only + 1, ~0u, 0))
        return errno;
    return 0;
}

static void set_state(struct rg_pulse *pulse, enum pulse_state state)
{
    pthread_mutex_lock(&pulse->lock);
    pulse->state = state;
    pthread_cond_broadcast(&pulse->changed);
    pthread_mutex_unlock(&pulse->lock);
}

static void wait_while(struct rg_pulse *pulse, enum pulse_state state)
{
    pthread_mutex_lock(&pulse->lock);
    while (pulse->state == state)
        pthread_cond_wait(&pulse->changed, &pulse->lock);
    pthread_mutex_unlock(&pulse->lock);
}

static void *beat(void *arg)
{
    struct rg_pulse *pulse = arg;

    rg_thread_name("pulse");
    if (take_over(pulse)) {
        set_state(pulse, PULSE_FAILED);
        return NULL;
    }
    set_state(pulse, PULSE_BEATING);
    wait_while(pulse, PULSE_BEATING);
    return NULL;
}

static int start(struct rg_pulse *pulse, int rank)
{
    sigset_t all, before;
    int ends[2];
    int error;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
        rg_log(RG_LOG_ERROR, rank, "cannot make a pipe: %m");
        return RG_ESYSTEM;
    }
    pulse->read_fd = ends[0];
    pulse->write_fd = ends[1];
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&pulse->thread, NULL, beat, pulse);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        errno = error;
        rg_log(RG_LOG_ERROR, rank, "no thread for the pulse: %m");
        close(ends[1]);
        return RG_ESYSTEM;
    }
    wait_while(pulse, PULSE_STARTING);
    close(ends[1]);
    if (pulse->state == PULSE_BEATING)
        return RG_OK;
    pthread_join(pulse->thread, NULL);
    return RG_ENOTSUP;
}

static void free_pulse(struct rg_pulse *pulse)
{
    if (pulse->read_fd >= 0)
        close(pulse->read_fd);
    pthread_cond_destroy(&pulse->changed);
    pthread_mutex_destroy(&pulse->lock);
    free(pulse);
}

int rg_pulse_create(int rank, struct rg_pulse **pulse_out)
{
    struct rg_pulse *pulse = calloc(1, sizeof(*pulse));
    int rc;

    if (!pulse)
        return RG_ENOMEM;
    pulse->read_fd = -1;
    pthread_mutex_init(&pulse->lock, NULL);
    pthread_cond_init(&pulse->changed, NULL);
    rc = start(pulse, rank);
    if (rc) {
        free_pulse(pulse);
        return rc;
    }
    *pulse_out = pulse;
    return RG_OK;
}

void rg_pulse_destroy(struct rg_pulse *pulse)
{
    if (!pulse)
        return;
    set_state(pulse, PULSE_STOP);
    pthread_join(pulse->thread, NULL);
    free_pulse(pulse);
}

int rg_pulse_fd(const struct rg_pulse *pulse)
{
    return pulse->read_fd;
}
