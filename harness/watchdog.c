#include "harness/watchdog.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/verdict.h"
#include "harness/wait.h"

enum { DESCRIBE_BYTES = 4096 };
#define NS_PER_S UINT64_C(1000000000)

struct rg_watchdog {
    int rank;
    int seconds;
    int started;
    int stop;             /* under lock, as all below */
    unsigned long kicks;  /* progress so far */
    struct rg_comm *comm; /* borrowed */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
};

static void end_process(struct rg_watchdog *dog)
{
    char text[DESCRIBE_BYTES] = "no communicator yet\n";

    if (dog->comm)
        rg_comm_describe(dog->comm, text, sizeof text);
    fprintf(stderr, "rank %d: no progress for %d s\n%s", dog->rank,
            dog->seconds, text);
    fflush(NULL);
    /* Others expire at nearly the same time; a launcher ends them as soon as
     * this one is gone. */
    sleep(1);
    _exit(RG_EXIT_TIMEOUT);
}

static void *watch(void *arg)
{
    struct rg_watchdog *dog = arg;
    unsigned long kicks;
    uint64_t end_ns;

    pthread_mutex_lock(&dog->lock);
    while (!dog->stop) {
        int late = 0;

        kicks = dog->kicks;
        end_ns = rg_now_ns() + (uint64_t)dog->seconds * NS_PER_S;
        while (!dog->stop && !late)
            late = rg_wait_until(&dog->changed, &dog->lock, end_ns);
        if (!dog->stop && kicks == dog->kicks)
            end_process(dog);
    }
    pthread_mutex_unlock(&dog->lock);
    return NULL;
}

int rg_watchdog_create(int rank, int seconds, struct rg_watchdog **dog_out)
{
    struct rg_watchdog *dog = calloc(1, sizeof *dog);

    if (!dog)
        return RG_ENOMEM;
    dog->rank = rank;
    dog->seconds = seconds;
    pthread_mutex_init(&dog->lock, NULL);
    if (rg_wait_init(&dog->changed) != RG_OK)
        goto error;
    if (seconds > 0 && pthread_create(&dog->thread, NULL, watch, dog) != 0)
        goto error;
    dog->started = seconds > 0;
    *dog_out = dog;
    return RG_OK;
error:
    free(dog);
    return RG_ESYSTEM;
}

void rg_watchdog_destroy(struct rg_watchdog *dog)
{
    if (!dog)
        return;
    if (dog->started) {
        pthread_mutex_lock(&dog->lock);
        dog->stop = 1;
        pthread_cond_signal(&dog->changed);
        pthread_mutex_unlock(&dog->lock);
        pthread_join(dog->thread, NULL);
    }
    pthread_cond_destroy(&dog->changed);
    pthread_mutex_destroy(&dog->lock);
    free(dog);
}

void rg_watchdog_watch(struct rg_watchdog *dog, struct rg_comm *comm)
{
    pthread_mutex_lock(&dog->lock);
    dog->comm = comm;
    dog->kicks++;
    pthread_mutex_unlock(&dog->lock);
}

void rg_watchdog_kick(struct rg_watchdog *dog)
{
    pthread_mutex_lock(&dog->lock);
    dog->kicks++;
    pthread_mutex_unlock(&dog->lock);
}
