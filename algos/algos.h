/* The table of all algorithms, null-terminated; pass it to the context. */
#ifndef RG_ALGOS_H
#define RG_ALGOS_H

#include "runtime/algo.h"

extern const struct rg_algo *const rg_algos[];

#endif
