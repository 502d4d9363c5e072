/* Reduction of host memory, in the order of the sources. */
#ifndef RG_LEGACY_REDUCE_H
#define RG_LEGACY_REDUCE_H

#include <stddef.h>

#include "runtime/types.h"

/*
 * dst[i] = op over sources[0][i] .. sources[n-1][i], i < count; avg divides by
 * n. dst may be one of the sources, never a partial overlap.
 */
void rg_legacy_reduce(enum rg_dtype dtype, enum rg_op op, void *dst,
                      const unsigned char *const *sources, int n, size_t count);

#endif
