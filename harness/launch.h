/*
 * How a program's ranks come to life: as processes under mpirun, or as threads
 * of one process. The rest of a program sees only struct rg_job.
 *
 *     main: parse options -> rg_job_run(&launch, rank_main, &options)
 *     rank_main: rg_job_context_config -> rg_context_create -> ... -> exit code
 *
 * Options are parsed before MPI starts, so a usage error costs nothing and
 * `--launch local` never touches MPI. launch_mpi.c and peer_mpi.c are the only
 * files that include mpi.h.
 */
#ifndef RG_HARNESS_LAUNCH_H
#define RG_HARNESS_LAUNCH_H

#include "runtime/regroup.h"

enum rg_launch_kind {
    RG_LAUNCH_AUTO = 0, /* mpi under a launcher, else local */
    RG_LAUNCH_MPI,
    RG_LAUNCH_LOCAL,
    RG_LAUNCH_WORKER /* never asked for: see worker.h */
};

/* What the options --launch and --ranks say. */
struct rg_launch_options {
    int kind;  /* enum rg_launch_kind */
    int ranks; /* local: number of threads, 0: one; mpi: must be 0 */
};

/* One rank of the job; lives as long as its rank_main runs. */
struct rg_job {
    int rank;
    int size;
    int local_rank; /* among the ranks of this host */
    int local_size;
    int hosts;
    enum rg_launch_kind kind; /* never AUTO */
    const char *host;         /* this host's name */
    struct rg_bootstrap bootstrap;
};

/* A rank's program; returns an exit code of verdict.h, the same everywhere. */
typedef int rg_rank_main(const struct rg_job *job, void *arg);

/*
 * Runs rank_main(job, arg) on every rank of this process and returns the
 * process's exit code (see rg_output_close). `arg` is shared by ranks that are
 * threads. MPI is finalised when the code is one that all ranks have agreed on;
 * after a timeout or a failed recovery the process leaves by _exit instead.
 */
int rg_job_run(const struct rg_launch_options *launch, rg_rank_main *rank_main,
               void *arg);

/*
 * The largest `code` over all ranks, through the bootstrap exchange: for
 * decisions before a context exists (is the output file writable?). Returns
 * it, or a negative rg_status.
 */
int rg_job_agree(const struct rg_job *job, int code);

/* A word of every rank, in world rank order; the caller frees *all_out. It is
 * collective; null with a status. */
int rg_job_gather(const struct rg_job *job, uint64_t mine, uint64_t **all_out);

/*
 * Zeroes *config_out and fills rank, size, bootstrap, device, device_ordinal
 * (local rank modulo the devices here) and backend (preference.h). RG_ENODEV
 * or RG_ENOTSUP: this process sees no such device.
 */
int rg_job_context_config(const struct rg_job *job, enum rg_device_kind device,
                          struct rg_context_config *config_out);

/* The world rank by the launcher's environment; 0 without a launcher. */
int rg_launch_env_rank(void);
/* 1 under a launcher that would make MPI see several processes. */
int rg_launch_env_present(void);

/*
 * For the two ways: a rank from its begin to its exit code. Arguments that are
 * not the same at all ranks, and preference variables that are wrong at any,
 * end all before anything starts.
 */
int rg_job_main(const struct rg_job *job, rg_rank_main *rank_main, void *arg);

/* The two ways, for rg_job_run. */
int rg_launch_mpi(rg_rank_main *rank_main, void *arg);
int rg_launch_local(int ranks, rg_rank_main *rank_main, void *arg);

#endif
