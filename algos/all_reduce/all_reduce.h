/*
 * What the all-reduce algorithms share. Their order (algos/local.mk) is the
 * index that rules use; the last one
 * serves all sizes for which nothing better is known.
 */
#ifndef RG_ALL_REDUCE_H
#define RG_ALL_REDUCE_H

#include "algos/registry.h"
#include "runtime/algo.h"
#include "runtime/device/call.h"
#include "runtime/device/share.h"

#undef RG_ENTRIES
#define RG_ENTRIES rg_all_reduce_entries
extern const struct rg_entries rg_all_reduce_entries;

#endif
