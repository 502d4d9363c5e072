#include "harness/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/output.h"
#include "harness/preference.h"
#include "harness/verdict.h"
#include "runtime/core/hash.h"

/* What Open MPI, MPICH and their kin, and Slurm set for each process. */
static const char *const rank_variables[] = {
    "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL};

static const char *env_rank_text(void)
{
    for (int i = 0; rank_variables[i]; i++) {
        const char *text = getenv(rank_variables[i]);

        if (text)
            return text;
    }
    return NULL;
}

int rg_launch_env_rank(void)
{
    const char *text = env_rank_text();

    return text ? atoi(text) : 0;
}

int rg_launch_env_present(void)
{
    return env_rank_text() != NULL;
}

static int run_ranks(const struct rg_launch_options *launch,
                     rg_rank_main *rank_main, void *arg)
{
    int kind = launch->kind;

    /* For the CUDA driver, which reads them when it starts; set before there
     * are threads that might read the environment. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    if (kind == RG_LAUNCH_AUTO)
        kind = rg_launch_env_present() && launch->ranks == 0 ? RG_LAUNCH_MPI
                                                             : RG_LAUNCH_LOCAL;
    if (kind == RG_LAUNCH_MPI)
        return rg_launch_mpi(rank_main, arg);
    return rg_launch_local(launch->ranks ? launch->ranks : 1, rank_main, arg);
}

int rg_job_run(const struct rg_launch_options *launch, rg_rank_main *rank_main,
               void *arg)
{
    return rg_output_close(run_ranks(launch, rank_main, arg));
}

int rg_job_gather(const struct rg_job *job, uint64_t mine, uint64_t **all_out)
{
    uint64_t *all = calloc((size_t)job->size, sizeof *all);
    int status = RG_ENOMEM;

    if (all)
        status = job->bootstrap.allgather(job->bootstrap.arg, &mine, all,
                                          sizeof mine);
    if (status != RG_OK) {
        free(all);
        all = NULL;
    }
    *all_out = all;
    return status;
}

/*
 * Of the program's name and its arguments. Of how it was called only the last
 * part counts: the same build may lie elsewhere on other hosts.
 */
static uint64_t hash_arguments(void)
{
    const char *name = program_invocation_short_name;
    FILE *file = fopen("/proc/self/cmdline", "r");
    uint64_t hash = rg_hash(RG_HASH_INIT, name, strlen(name));
    unsigned char part[512];
    int byte = file ? 1 : EOF;
    size_t n;

    while (byte > 0)
        byte = getc(file);
    while (byte != EOF && (n = fread(part, 1, sizeof part, file)) > 0)
        hash = rg_hash(hash, part, n);
    if (file)
        fclose(file);
    return hash;
}

/* Ranks with other arguments would wait for each other in vain. */
static int check_arguments(const struct rg_job *job)
{
    uint64_t *all;
    int other = 0;
    int status = rg_job_gather(job, hash_arguments(), &all);

    while (status == RG_OK && other < job->size && all[other] == all[0])
        other++;
    free(all);
    if (status != RG_OK || other == job->size)
        return status;
    if (job->rank == 0)
        rg_say(program_invocation_short_name,
               "rank %d was started with other arguments than rank 0", other);
    return RG_EXIT_USAGE;
}

int rg_job_main(const struct rg_job *job, rg_rank_main *rank_main, void *arg)
{
    int code = job->kind == RG_LAUNCH_MPI ? check_arguments(job) : 0;

    if (code == 0)
        code = rg_preference_check(job);
    if (code == 0)
        return rank_main(job, arg);
    return code < 0 ? rg_exit_of_status(code) : code;
}

int rg_job_agree(const struct rg_job *job, int code)
{
    uint64_t *all;
    int status = rg_job_gather(job, (uint64_t)code, &all);

    for (int i = 0; i < job->size && status == RG_OK; i++)
        code = (int)all[i] > code ? (int)all[i] : code;
    free(all);
    return status == RG_OK ? code : status;
}

int rg_job_context_config(const struct rg_job *job, enum rg_device_kind device,
                          struct rg_context_config *config_out)
{
    const int devices = rg_device_count(device);

    if (devices < 0)
        return devices;
    if (devices == 0)
        return RG_ENODEV;
    *config_out = (struct rg_context_config){
        .rank = job->rank,
        .size = job->size,
        .bootstrap = job->bootstrap,
        .device = device,
        .device_ordinal = job->local_rank % devices,
        .backend = rg_preference(RG_BACKEND_UNSET),
    };
    return RG_OK;
}
