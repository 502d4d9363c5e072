/*
 * The launch made to keep a communicator's word (keeper.h), one for each
 * device: a function for a host thread, the address of a kernel of one block.
 */
#ifndef RG_DEVICE_HELP_H
#define RG_DEVICE_HELP_H

#include <stdint.h>

struct rg_comm_dev;
struct rg_team;

enum { RG_HELP_THREADS = 512 }; /* of the kernel's block */

/* By value, the kernel's one parameter. */
struct rg_help_args {
    struct rg_comm_dev *comm;
    uint64_t epoch;   /* whose word is to be held */
    uint64_t keepers; /* so far: if it is late, others have kept meanwhile */
};

void rg_help_emu(const struct rg_help_args *args, struct rg_team *team);

#ifdef __cplusplus
extern "C" {
#endif
extern const void *const rg_help_cuda;
#ifdef __cplusplus
}
#endif

#endif
