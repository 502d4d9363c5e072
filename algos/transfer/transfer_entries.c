/* What transfer probes are to the runtime, and where their entries are. */
#include <config.h>

#include <stddef.h>

#include "algos/transfer/transfer.h"

RG_ALGO(transfer, "transfer", RG_COLL_transfer, 0, 1, RG_MAX_SLOTS);

extern const struct rg_emu_entries rg_transfer_emu;
extern const struct rg_cuda_entries rg_transfer_cuda;

/* Kernels exist only in a build with the CUDA device. */
#ifdef HAVE_CUDA
#define RG_CUDA_ENTRY(symbol) &symbol
#else
#define RG_CUDA_ENTRY(symbol) NULL
#endif

const struct rg_entries rg_transfer_entries = {
    .emu = {[RG_u8] = &rg_transfer_emu},
    .cuda = {[RG_u8] = RG_CUDA_ENTRY(rg_transfer_cuda)}};
