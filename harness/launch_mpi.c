/* Ranks as MPI processes. After start-up MPI is only called to finalise. */
#include <mpi.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "harness/launch.h"
#include "harness/verdict.h"

static int allgather(void *arg, const void *in, void *out, size_t bytes)
{
    (void)arg;
    if (bytes > INT_MAX ||
        MPI_Allgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE,
                      MPI_COMM_WORLD) != MPI_SUCCESS)
        return RG_ESYSTEM;
    return RG_OK;
}

static void find_place(struct rg_job *job)
{
    MPI_Comm node;
    int leader;

    MPI_Comm_rank(MPI_COMM_WORLD, &job->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job->size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, job->rank,
                        MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &job->local_rank);
    MPI_Comm_size(node, &job->local_size);
    MPI_Comm_free(&node);
    leader = job->local_rank == 0;
    MPI_Allreduce(&leader, &job->hosts, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int rg_launch_mpi(rg_rank_main *rank_main, void *arg)
{
    struct rg_job job = {.kind = RG_LAUNCH_MPI,
                         .bootstrap = {.allgather = allgather}};
    char host[64] = "";
    int level, code;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return RG_EXIT_ENVIRONMENT;
    find_place(&job);
    gethostname(host, sizeof host - 1);
    job.host = host;
    code = rg_job_main(&job, rank_main, arg);
    /* With a rank dead or stuck, finalising would hang. */
    if (code == RG_EXIT_TIMEOUT || code == RG_EXIT_RECOVERY) {
        fflush(NULL);
        _exit(code);
    }
    MPI_Finalize();
    return code;
}
