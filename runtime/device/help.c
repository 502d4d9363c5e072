/* The entries of help.h, for the device of the compiler at hand. */
#include "runtime/device/help.h"

#include "runtime/device/keeper.h"

#if RG_ON_CUDA

static __global__ void __launch_bounds__(RG_HELP_THREADS)
    help(const __grid_constant__ struct rg_help_args args)
{
    struct rg_team team;

    team.thread = (int)threadIdx.x;
    team.threads = (int)blockDim.x;
    team.index = 0;
    team.count = 1;
    rg_help(&args, &team);
}

const void *const rg_help_cuda = (const void *)help;

#else

void rg_help_emu(const struct rg_help_args *args, struct rg_team *team)
{
    rg_help(args, team);
}

#endif
