/*
 * P2P route, device side: the peer's region is mapped here, a put is a team
 * copy and a signal one release access. The caller has checked the bounds.
 */
#ifndef RG_ROUTE_P2P_DEV_H
#define RG_ROUTE_P2P_DEV_H

#include "runtime/device/copy.h"
#include "runtime/device/route.h"
#include "runtime/device/signal.h"
#include "runtime/status.h"

RG_FN void rg_p2p_put(const struct rg_team *team, const struct rg_route *route,
                      uint64_t offset, const void *src, uint64_t bytes)
{
    rg_team_copy(team, route->base + offset, src, bytes);
}

/* One thread: Set at the peer and on a local word. Pairs as below. */
RG_FN int rg_p2p_signal_both(const struct rg_route *route, uint64_t offset,
                             uint64_t *own, uint64_t value)
{
    rg_store_release_both((uint64_t *)(route->base + offset), own, value);
    return RG_OK;
}

/* One thread. Pairs with the acquire load of rg_wait(). */
RG_FN int rg_p2p_signal(const struct rg_route *route, uint64_t offset,
                        enum rg_signal_op op, uint64_t value)
{
    uint64_t *word = (uint64_t *)(route->base + offset);

    if (op == RG_SIGNAL_ADD)
        rg_add_release(word, value);
    else if (op == RG_SIGNAL_CREDIT)
        rg_store_credit(word, value);
    else
        rg_store_release(word, value);
    return RG_OK;
}

#endif
