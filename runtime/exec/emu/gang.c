/* The gang: helper threads that run a launch's teams beside the runner. */
#include <stdlib.h>
#include <string.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/exec/emu/emu.h"

int emu_gang_init(struct emu_gang *gang)
{
    memset(gang, 0, sizeof *gang);
    if (pthread_mutex_init(&gang->lock, NULL))
        return RG_ENOMEM;
    pthread_cond_init(&gang->start, NULL);
    pthread_cond_init(&gang->done, NULL);
    return RG_OK;
}

void emu_gang_fini(struct emu_gang *gang)
{
    pthread_mutex_lock(&gang->lock);
    gang->stop = 1;
    pthread_cond_broadcast(&gang->start);
    pthread_mutex_unlock(&gang->lock);
    for (int i = 0; i < gang->count; i++)
        pthread_join(gang->threads[i], NULL);
    pthread_cond_destroy(&gang->start);
    pthread_cond_destroy(&gang->done);
    pthread_mutex_destroy(&gang->lock);
    free(gang->threads);
    free(gang->teams);
}

/* Member `who` of teams x threads plays its part of the launch. */
static void gang_part(const struct emu_work *work, struct rg_emu_team *teams,
                      int who)
{
    struct rg_team team = {0};

    team.index = who / work->threads;
    team.count = work->teams;
    team.thread = who % work->threads;
    team.threads = work->threads;
    team.emu = &teams[team.index];
    work->u.launch.entry(&work->u.launch.launch, &team);
}

/* A helper's start: which gang, and which member it is. */
struct gang_helper {
    struct emu_gang *gang;
    int who;
};

static void *gang_helper_main(void *arg)
{
    struct gang_helper helper = *(struct gang_helper *)arg;
    struct emu_gang *gang = helper.gang;
    uint64_t seen = 0;

    rg_thread_name("team");
    free(arg);
    pthread_mutex_lock(&gang->lock);
    for (;;) {
        while (!gang->stop &&
               (gang->round == seen || helper.who > gang->wanted)) {
            seen = gang->round;
            pthread_cond_wait(&gang->start, &gang->lock);
        }
        if (gang->stop)
            break;
        seen = gang->round;
        pthread_mutex_unlock(&gang->lock);
        gang_part(gang->work, gang->teams, helper.who);
        pthread_mutex_lock(&gang->lock);
        if (--gang->running == 0)
            pthread_cond_signal(&gang->done);
    }
    pthread_mutex_unlock(&gang->lock);
    return NULL;
}

static int gang_hire(struct emu_gang *gang)
{
    struct gang_helper *helper = malloc(sizeof *helper);
    pthread_t *threads =
        realloc(gang->threads, (size_t)(gang->count + 1) * sizeof *threads);

    if (threads)
        gang->threads = threads;
    if (!helper || !threads)
        goto error;
    *helper = (struct gang_helper){gang, gang->count + 1};
    if (pthread_create(&threads[gang->count], NULL, gang_helper_main, helper))
        goto error;
    gang->count++;
    return RG_OK;
error:
    free(helper);
    rg_log(RG_LOG_ERROR, -1, "no thread for team member %d", gang->count + 1);
    return RG_ENOMEM;
}

static int gang_prepare(struct emu_gang *gang, struct emu_device *device,
                        const struct emu_work *work)
{
    const int members = work->teams * work->threads;

    /* One thread alone keeps no state in its team. */
    if (members == 1 && gang->team_room)
        return RG_OK;
    while (gang->count < members - 1)
        if (gang_hire(gang))
            return RG_ENOMEM;
    if (gang->team_room < work->teams) {
        free(gang->teams);
        gang->teams = calloc((size_t)work->teams, sizeof *gang->teams);
        gang->team_room = gang->teams ? work->teams : 0;
    }
    if (!gang->teams)
        return RG_ENOMEM;
    memset(gang->teams, 0, (size_t)work->teams * sizeof *gang->teams);
    for (int i = 0; i < work->teams; i++) {
        gang->teams[i].now_ns = rg_clock_ns;
        gang->teams[i].relax = emu_relax;
        gang->teams[i].crowded =
            device->crowded ||
            members * device->config.world_size > device->cores;
    }
    return RG_OK;
}

int emu_gang_run(struct emu_gang *gang, struct emu_device *device,
                 const struct emu_work *work)
{
    const int helpers = work->teams * work->threads - 1;
    int status = gang_prepare(gang, device, work);

    if (status)
        return status;
    if (helpers == 0) {
        gang_part(work, gang->teams, 0);
        return RG_OK;
    }
    pthread_mutex_lock(&gang->lock);
    gang->work = work;
    gang->wanted = helpers;
    gang->running = helpers;
    gang->round++;
    pthread_cond_broadcast(&gang->start);
    pthread_mutex_unlock(&gang->lock);
    gang_part(work, gang->teams, 0);
    pthread_mutex_lock(&gang->lock);
    while (gang->running)
        pthread_cond_wait(&gang->done, &gang->lock);
    pthread_mutex_unlock(&gang->lock);
    return RG_OK;
}
