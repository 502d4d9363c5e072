/*
 * Ranks as threads of this process. The bootstrap exchange publishes each
 * rank's pointer, waits for all, copies, and waits again so that nobody
 * returns while another still reads from it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/launch.h"
#include "harness/verdict.h"

struct group {
    int size;
    pthread_barrier_t barrier;
    const void **inputs; /* [size] */
    rg_rank_main *rank_main;
    void *arg;
    char host[64];
};

struct thread_rank {
    struct group *group; /* borrowed */
    struct rg_job job;
    pthread_t thread;
    int code;
};

static int allgather(void *arg, const void *in, void *out, size_t bytes)
{
    const struct thread_rank *self = arg;
    struct group *group = self->group;

    group->inputs[self->job.rank] = in;
    pthread_barrier_wait(&group->barrier);
    for (int r = 0; bytes > 0 && r < group->size; r++)
        memcpy((char *)out + (size_t)r * bytes, group->inputs[r], bytes);
    pthread_barrier_wait(&group->barrier);
    return RG_OK;
}

static void *run_rank(void *arg)
{
    struct thread_rank *self = arg;

    self->code =
        rg_job_main(&self->job, self->group->rank_main, self->group->arg);
    return NULL;
}

static void init_rank(struct thread_rank *self, struct group *group, int rank)
{
    self->group = group;
    self->job = (struct rg_job){
        .rank = rank,
        .size = group->size,
        .local_rank = rank,
        .local_size = group->size,
        .hosts = 1,
        .kind = RG_LAUNCH_LOCAL,
        .host = group->host,
        .bootstrap = {.arg = self, .allgather = allgather},
    };
}

/* The calling thread is rank 0. A rank that cannot start would leave the
 * others waiting for it, so that ends the process. */
static int run_ranks(struct group *group, struct thread_rank *ranks)
{
    int code;

    for (int r = 0; r < group->size; r++)
        init_rank(&ranks[r], group, r);
    for (int r = 1; r < group->size; r++)
        if (pthread_create(&ranks[r].thread, NULL, run_rank, &ranks[r]) != 0)
            _exit(RG_EXIT_ENVIRONMENT);
    run_rank(&ranks[0]);
    code = ranks[0].code;
    for (int r = 1; r < group->size; r++) {
        pthread_join(ranks[r].thread, NULL);
        code = rg_exit_worse(code, ranks[r].code);
    }
    return code;
}

int rg_launch_local(int ranks, rg_rank_main *rank_main, void *arg)
{
    struct group group = {.size = ranks, .rank_main = rank_main, .arg = arg};
    struct thread_rank *threads = calloc((size_t)ranks, sizeof *threads);
    int code = RG_EXIT_ENVIRONMENT;

    group.inputs = calloc((size_t)ranks, sizeof *group.inputs);
    gethostname(group.host, sizeof group.host - 1);
    if (threads && group.inputs &&
        pthread_barrier_init(&group.barrier, NULL, (unsigned)ranks) == 0) {
        code = run_ranks(&group, threads);
        pthread_barrier_destroy(&group.barrier);
    }
    free(group.inputs);
    free(threads);
    return code;
}
