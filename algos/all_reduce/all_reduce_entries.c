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
    extern const struct rg_emu_entries rg_all_reduce_emu_##name;               \
    extern const struct rg_cuda_entries rg_all_reduce_cuda_##name;
RG_DTYPE_REDUCE_LIST(RG_X)
#undef RG_X

#define RG_X(name, bytes) &rg_all_reduce_emu_##name,
#define RG_Y(name, bytes) RG_CUDA_ENTRY(rg_all_reduce_cuda_##name),
const struct rg_entries rg_all_reduce_entries = {{RG_DTYPE_REDUCE_LIST(RG_X)},
                                                 {RG_DTYPE_REDUCE_LIST(RG_Y)}};
#undef RG_X
#undef RG_Y
