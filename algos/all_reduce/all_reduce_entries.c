/* Where the all-reduce entries of every type and device are found. */
#include <config.h>

#include <stddef.h>

#include "algos/all_reduce/all_reduce.h"

/* Kernels exist only in a build with the CUDA device. */
#ifdef HAVE_CUDA
#define RG_CUDA_ENTRY(symbol) &symbol
#else
#define RG_CUDA_ENTRY(symbol) NULL
#endif

#define RG_X(name, bytes)                                                      \
    extern const rg_emu_entry rg_all_reduce_emu_##name[RG_OP_COUNT];           \
    extern const struct rg_cuda_entries rg_all_reduce_cuda_##name;             \
    extern void rg_all_reduce_bare_##name(const struct rg_launch *launch,      \
                                          struct rg_team *team);
RG_DTYPE_LIST(RG_X)
#undef RG_X

#define RG_X(name, bytes) rg_all_reduce_emu_##name,
#define RG_Y(name, bytes) RG_CUDA_ENTRY(rg_all_reduce_cuda_##name),
#define RG_Z(name, bytes) rg_all_reduce_bare_##name,
const struct rg_entries rg_all_reduce_entries = {
    {RG_DTYPE_LIST(RG_X)}, {RG_DTYPE_LIST(RG_Y)}, {RG_DTYPE_LIST(RG_Z)}};
#undef RG_X
#undef RG_Y
#undef RG_Z
