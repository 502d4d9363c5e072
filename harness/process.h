/*
 * Starting this program anew as a child process that ends with its parent.
 *
 * The child is a clean process: none of the parent's descriptors but standard
 * input and error and one socket, its standard output goes to standard error,
 * no signal blocked. It is killed when the *thread* that started it ends, so
 * that thread must outlive it.
 */
#ifndef RG_HARNESS_PROCESS_H
#define RG_HARNESS_PROCESS_H

#include <sys/types.h>

#include "runtime/status.h"

/* How to start it; may start any number of children. */
struct rg_self {
    char *words;    /* storage of argv */
    char **argv;    /* null-terminated */
    char **environ; /* null-terminated; the strings are borrowed */
};

/*
 * This program's own arguments and environment, plus RG_WORKER_VARIABLE. Free
 * with rg_self_fini(), also after a failure. RG_OK, RG_ENOMEM, RG_ESYSTEM.
 */
int rg_self_init(struct rg_self *self);
void rg_self_fini(struct rg_self *self);

struct rg_process {
    pid_t pid; /* 0: none */
    int pidfd; /* readable once it has ended; -1: none */
};

/* Starts one that inherits `fd` (still the caller's). RG_OK or RG_ESYSTEM. */
int rg_process_start(const struct rg_self *self, int fd,
                     struct rg_process *process_out);
/* No effect on one that ended. */
void rg_process_signal(const struct rg_process *process, int signal_number);
/*
 * RG_EPENDING: it runs. RG_OK: it ended, *wait_out is what waitpid() says and
 * *process is cleared.
 */
int rg_process_reap(struct rg_process *process, int *wait_out);

#endif
