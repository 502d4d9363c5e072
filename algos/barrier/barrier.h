/* What the barrier algorithms share. */
#ifndef RG_BARRIER_H
#define RG_BARRIER_H

#include "algos/registry.h"
#include "runtime/algo.h"

#undef RG_ENTRIES
#define RG_ENTRIES rg_barrier_entries
extern const struct rg_entries rg_barrier_entries;

#endif
