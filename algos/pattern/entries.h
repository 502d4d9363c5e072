/*
 * Where a collective's entries are found: in its <name>_entries.c, which the
 * host compiles, behind <config.h>.
 */
#ifndef RG_PATTERN_ENTRIES_H
#define RG_PATTERN_ENTRIES_H

#include <stddef.h>

#include "runtime/algo.h"

/* Kernels exist only in a build with the CUDA device. */
#ifdef HAVE_CUDA
#define RG_CUDA_ENTRY(symbol) &symbol
#else
#define RG_CUDA_ENTRY(symbol) NULL
#endif

/* A collective that only moves data is built for bytes. */
#define RG_MOVE_ENTRIES(name)                                                  \
    extern const struct rg_emu_entries rg_##name##_emu_u8;                     \
    extern const struct rg_cuda_entries rg_##name##_cuda_u8;                   \
    const struct rg_entries rg_##name##_entries = {                            \
        .emu = {[RG_u8] = &rg_##name##_emu_u8},                                \
        .cuda = {[RG_u8] = RG_CUDA_ENTRY(rg_##name##_cuda_u8)}}

/* One that reduces, for each type: RG_DTYPE_REDUCE_LIST over the first,
 * RG_EMU_DTYPE_LIST and RG_CUDA_DTYPE_LIST over the others. */
#define RG_REDUCE_ENTRY_DECLARE(name, dtype)                                   \
    extern const struct rg_emu_entries rg_##name##_emu_##dtype;                \
    extern const struct rg_cuda_entries rg_##name##_cuda_##dtype;
#define RG_REDUCE_ENTRY_EMU(name, dtype) [RG_##dtype] = &rg_##name##_emu_##dtype,
#define RG_REDUCE_ENTRY_CUDA(name, dtype) [RG_##dtype] = &rg_##name##_cuda_##dtype,

#endif
