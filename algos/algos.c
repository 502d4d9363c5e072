/* The table of all algorithms, in each collective's own order. */
#include "algos/algos.h"

#include <stddef.h>

#include "algos/all_gather/all_gather.h"
#include "algos/all_reduce/all_reduce.h"
#include "algos/all_to_all/all_to_all.h"
#include "algos/all_to_all_v/all_to_all_v.h"
#include "algos/barrier/barrier.h"
#include "algos/broadcast/broadcast.h"
#include "algos/gather/gather.h"
#include "algos/reduce/reduce.h"
#include "algos/reduce_scatter/reduce_scatter.h"
#include "algos/scatter/scatter.h"
#include "algos/sendrecv/sendrecv.h"

/* X(collective, name) */
#define RG_OF_all_reduce(name)     RG_X(all_reduce, name)
#define RG_OF_all_gather(name)     RG_X(all_gather, name)
#define RG_OF_reduce_scatter(name) RG_X(reduce_scatter, name)
#define RG_OF_broadcast(name)      RG_X(broadcast, name)
#define RG_OF_reduce(name)         RG_X(reduce, name)
#define RG_OF_all_to_all(name)     RG_X(all_to_all, name)
#define RG_OF_gather(name)         RG_X(gather, name)
#define RG_OF_scatter(name)        RG_X(scatter, name)
#define RG_OF_barrier(name)        RG_X(barrier, name)
#define RG_OF_all_to_all_v(name)   RG_X(all_to_all_v, name)
#define RG_OF_sendrecv(name)       RG_X(sendrecv, name)
#define RG_ALGOS_LIST                                                          \
    RG_ALL_REDUCE_LIST(RG_OF_all_reduce)                                       \
    RG_ALL_GATHER_LIST(RG_OF_all_gather)                                       \
    RG_REDUCE_SCATTER_LIST(RG_OF_reduce_scatter)                               \
    RG_BROADCAST_LIST(RG_OF_broadcast)                                         \
    RG_REDUCE_LIST(RG_OF_reduce)                                               \
    RG_ALL_TO_ALL_LIST(RG_OF_all_to_all)                                       \
    RG_GATHER_LIST(RG_OF_gather)                                               \
    RG_SCATTER_LIST(RG_OF_scatter)                                             \
    RG_BARRIER_LIST(RG_OF_barrier)                                             \
    RG_ALL_TO_ALL_V_LIST(RG_OF_all_to_all_v)                                   \
    RG_SENDRECV_LIST(RG_OF_sendrecv)

#define RG_X(collective, name)                                                 \
    extern const struct rg_algo rg_algo_##collective##_##name;
RG_ALGOS_LIST
#undef RG_X

extern const struct rg_algo rg_algo_transfer;

#define RG_X(collective, name) &rg_algo_##collective##_##name,
#define RG_PROBE               &rg_algo_transfer
const struct rg_algo *const rg_algos[] = {RG_ALGOS_LIST NULL};
const struct rg_algo *const rg_algos_with_probes[] = {RG_ALGOS_LIST RG_PROBE,
                                                      NULL};
const struct rg_algo *const rg_probes[] = {RG_PROBE, NULL};
