/* What the algorithms of send and receive share. */
#ifndef RG_SENDRECV_H
#define RG_SENDRECV_H

#include "algos/registry.h"
#include "runtime/algo.h"

#undef RG_ENTRIES
#define RG_ENTRIES rg_sendrecv_entries
extern const struct rg_entries rg_sendrecv_entries;

#endif
