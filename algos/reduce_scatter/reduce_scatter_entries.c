/* Where the reduce-scatter entries of every type and device are found. */
#include <config.h>

#include "algos/reduce_scatter/reduce_scatter.h"
#include "algos/pattern/entries.h"

#define RG_X(dtype, bytes) RG_REDUCE_ENTRY_DECLARE(reduce_scatter, dtype)
RG_DTYPE_REDUCE_LIST(RG_X)
#undef RG_X

#define RG_X(dtype) RG_REDUCE_ENTRY_EMU(reduce_scatter, dtype)
#define RG_Y(dtype) RG_REDUCE_ENTRY_CUDA(reduce_scatter, dtype)
const struct rg_entries rg_reduce_scatter_entries = {
    .emu = {RG_EMU_DTYPE_LIST(RG_X)}, .cuda = {RG_CUDA_DTYPE_LIST(RG_Y)}};
#undef RG_X
#undef RG_Y
