/* The barrier algorithms in table order, and what their files share. */
#ifndef RG_BARRIER_H
#define RG_BARRIER_H

#include "runtime/algo.h"

#define RG_BARRIER_LIST(X)                                                     \
    X(dissemination)                                                           \
    X(direct)

#undef RG_ENTRIES
#define RG_ENTRIES rg_barrier_entries
extern const struct rg_entries rg_barrier_entries;

#endif
