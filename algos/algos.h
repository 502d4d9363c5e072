/* The table of all algorithms, null-terminated; pass it to the context. */
#ifndef RG_ALGOS_H
#define RG_ALGOS_H

#include "runtime/algo.h"

extern const struct rg_algo *const rg_algos[];
/* For rg_transfer_probe(), which shares the workspace with whatever is in the
 * same table: with the algorithms, and alone. */
extern const struct rg_algo *const rg_algos_with_probes[];
extern const struct rg_algo *const rg_probes[];

#endif
