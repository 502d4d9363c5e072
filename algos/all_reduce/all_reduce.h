/*
 * The all-reduce algorithms in table order, and what their files share. The
 * order is the index that rules and the device's switch use; the last one
 * serves all sizes for which nothing better is known.
 */
#ifndef RG_ALL_REDUCE_H
#define RG_ALL_REDUCE_H

#include "runtime/algo.h"
#include "runtime/device/call.h"
#include "runtime/device/share.h"

#define RG_ALL_REDUCE_LIST(X)                                                  \
    X(oneshot_ll)                                                              \
    X(twoshot_ll)                                                              \
    X(doubling_ll)                                                             \
    X(doubling)                                                                \
    X(oneshot)                                                                 \
    X(twoshot)                                                                 \
    X(hierarchical)                                                            \
    X(ring)

#define RG_X(name) RG_ALL_REDUCE_##name,
enum rg_all_reduce { RG_ALL_REDUCE_LIST(RG_X) RG_ALL_REDUCE_COUNT };
#undef RG_X

#undef RG_ENTRIES
#define RG_ENTRIES rg_all_reduce_entries
extern const struct rg_entries rg_all_reduce_entries;

#endif
