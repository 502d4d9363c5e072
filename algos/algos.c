/* The table of all algorithms, in each collective's own order. */
#include "algos/algos.h"

#include <stddef.h>

#include "algos/all_reduce/all_reduce.h"

#define RG_X(name) extern const struct rg_algo rg_algo_all_reduce_##name;
RG_ALL_REDUCE_LIST(RG_X)
#undef RG_X

extern const struct rg_algo rg_algo_transfer;

#define RG_X(name)   &rg_algo_all_reduce_##name,
#define RG_PROBES(X) X(transfer)
#define RG_Y(name)   &rg_algo_##name,
const struct rg_algo *const rg_algos[] = {RG_ALL_REDUCE_LIST(RG_X) NULL};
const struct rg_algo *const rg_algos_with_probes[] = {RG_ALL_REDUCE_LIST(RG_X)
                                                          RG_PROBES(RG_Y) NULL};
const struct rg_algo *const rg_probes[] = {RG_PROBES(RG_Y) NULL};
