/* Where the all-reduce entries of every type and device are found. */
#include <config.h>

#include "algos/all_reduce/all_reduce.h"

#define RG_X(name, bytes)                                                      \
    extern const rg_emu_entry rg_all_reduce_emu_##name[RG_OP_COUNT];           \
    extern const struct rg_cuda_entry rg_all_reduce_cuda_##name[RG_OP_COUNT];
RG_DTYPE_LIST(RG_X)
#undef RG_X

const struct rg_entries rg_all_reduce_entries = {
#define RG_X(name, bytes) rg_all_reduce_emu_##name,
    {RG_DTYPE_LIST(RG_X)},
#undef RG_X
#ifdef HAVE_CUDA
#define RG_X(name, bytes) rg_all_reduce_cuda_##name,
    {RG_DTYPE_LIST(RG_X)},
#undef RG_X
#endif
};
