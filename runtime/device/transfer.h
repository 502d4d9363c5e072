/*
 * The device transfer service as an algorithm sees it: peers are dense ranks,
 * places are offsets in their regions. No handle, key or foreign pointer.
 *
 *   writer                              reader
 *   rg_put_signal(peer, ...)            rg_wait(offset, value)
 *     copy payload                        poll the local signal word
 *     team barrier                        acquire load  <- pairs with the
 *     release store of the signal  ---->  team barrier     release store
 *                                         read the payload
 *
 * Team calls: every thread of the team makes them with the same arguments and
 * gets the same result, 0 or 1 for failed; then the algorithm returns at once.
 * Order holds within (peer, lane); lanes are RG_LANES. Remote accesses are
 * checked against the peer's region: one beyond its end is `invalid`, which is
 * the invocation's own fault; without a route to the peer all are
 * `unavailable`, which costs the pair the route.
 */
#ifndef RG_DEVICE_TRANSFER_H
#define RG_DEVICE_TRANSFER_H

#include "runtime/device/call.h"
#include "runtime/device/copy.h"
#include "runtime/device/signal.h"
#include "runtime/transfer/routes/null/route_dev.h"
#include "runtime/transfer/routes/p2p/route_dev.h"
#include "runtime/transfer/routes/proxy/route_dev.h"

RG_FN int rg_fail(struct rg_call *call, int status, int peer)
{
    if (call->team.thread == 0)
        rg_latch_failure(call->dev, status, peer, call->step);
    return 1;
}

/* The route to a peer if [offset, offset + bytes) is inside its region. */
RG_FN const struct rg_route *rg_route_to(const struct rg_call *call, int peer,
                                         uint64_t offset, uint64_t bytes)
{
    const struct rg_route *route = &call->plan->routes[peer];
    const int inside = offset <= route->bytes && bytes <= route->bytes - offset;

    return route->kind != RG_ROUTE_NULL && inside ? route : 0;
}

/*
 * One thread: why rg_route_to() has said no, for the group to hear. Only a
 * route's failure names the peer: nobody is to blame for what lies beyond a
 * region.
 */
RG_FN int rg_refuse(const struct rg_call *call, int peer)
{
    const int broken = call->plan->routes[peer].kind == RG_ROUTE_NULL;

    rg_latch_failure(call->dev, broken ? RG_EUNAVAILABLE : RG_EINVAL,
                     broken ? peer : -1, call->step);
    return 1;
}

/* The same for all threads of a team. */
RG_FN int rg_refuse_team(const struct rg_call *call, int peer)
{
    return call->team.thread == 0 ? rg_refuse(call, peer) : 1;
}

/* Where peer's region is loaded from and stored to directly, or null. */
RG_FN uint8_t *rg_direct(const struct rg_call *call, int peer, uint64_t offset,
                         uint64_t bytes)
{
    const struct rg_route *route = rg_route_to(call, peer, offset, bytes);

    if (!route)
        return 0;
    if (route->kind != RG_ROUTE_P2P && route->kind != RG_ROUTE_SELF)
        return 0;
    return route->base + offset;
}

/* Where data for `offset` lands in this rank's own memory. */
RG_FN uint8_t *rg_inbox(const struct rg_call *call, uint64_t offset)
{
    return call->plan->landing + offset;
}

/* Copies local memory to peer's region; ordered within (peer, lane). */
RG_FN int rg_put(struct rg_call *call, int peer, int lane, uint64_t offset,
                 const void *src, uint64_t bytes)
{
    const struct rg_route *route = rg_route_to(call, peer, offset, bytes);
    struct rg_proxy_target target;

    if (!route)
        return rg_refuse_team(call, peer);
    switch (route->kind) {
    case RG_ROUTE_SELF:
    case RG_ROUTE_P2P:
        rg_p2p_put(&call->team, route, offset, src, bytes);
        return 0;
    case RG_ROUTE_PROXY:
        target = rg_proxy_target(call, route, peer, lane);
        return rg_proxy_put(call, &target, offset, src, bytes);
    default:
        return rg_fail(call, rg_null_unavailable(route), peer);
    }
}

/* One thread. RG_OK, a status to latch, or 1 for one that has been. */
RG_FN int rg_signal_by(const struct rg_call *call, const struct rg_route *route,
                       int peer, int lane, uint64_t offset,
                       enum rg_signal_op op, uint64_t value)
{
    struct rg_proxy_target target;

    switch (route->kind) {
    case RG_ROUTE_SELF:
    case RG_ROUTE_P2P:
        return rg_p2p_signal(route, offset, op, value);
    case RG_ROUTE_PROXY:
        target = rg_proxy_target(call, route, peer, lane);
        target.signal = offset;
        target.op = op;
        target.value = value;
        return rg_proxy_signal(call, &target);
    default:
        return rg_null_unavailable(route);
    }
}

/* One thread, after a team barrier: rg_signal's second half. */
RG_FN int rg_signal_send(struct rg_call *call, int peer, int lane,
                         uint64_t offset, enum rg_signal_op op, uint64_t value)
{
    const struct rg_route *route =
        rg_route_to(call, peer, offset, sizeof value);
    int status;

    if (!route)
        return call->refused |= rg_refuse(call, peer);
    status = rg_signal_by(call, route, peer, lane, offset, op, value);
    if (status < 0)
        rg_latch_failure(call->dev, status, peer, call->step);
    call->refused |= status != 0;
    return status != 0;
}

/*
 * Set or Add on peer's signal word, visible after all that the team stored
 * before and all that it put to this peer. Returns 0; one that is refused
 * fails the invocation when the team closes.
 */
RG_FN int rg_signal(struct rg_call *call, int peer, int lane, uint64_t offset,
                    enum rg_signal_op op, uint64_t value)
{
    rg_team_barrier(&call->team);
    if (call->team.thread == 0)
        rg_signal_send(call, peer, lane, offset, op, value);
    return 0;
}

/* rg_signal to every other rank, the same word and value at each. */
RG_FN int rg_signal_all(struct rg_call *call, int lane, uint64_t offset,
                        enum rg_signal_op op, uint64_t value)
{
    const int n = (int)call->plan->nranks, rank = (int)call->plan->rank;

    rg_team_barrier(&call->team);
    for (int p = call->team.thread; p < n; p += call->team.threads)
        if (p != rank)
            rg_signal_send(call, p, lane, offset, op, value);
    return 0;
}

/* 1: a signal to the peer costs nothing if it goes with the payload. */
RG_FN int rg_carries_signal(const struct rg_call *call, int peer)
{
    return call->plan->routes[peer].kind == RG_ROUTE_PROXY;
}

/* rg_signal_all to those only to whom no payload carries it. */
RG_FN int rg_signal_rest(struct rg_call *call, int lane, uint64_t offset,
                         enum rg_signal_op op, uint64_t value)
{
    const int n = (int)call->plan->nranks, rank = (int)call->plan->rank;

    rg_team_barrier(&call->team);
    for (int p = call->team.thread; p < n; p += call->team.threads)
        if (p != rank && !rg_carries_signal(call, p))
            rg_signal_send(call, p, lane, offset, op, value);
    return 0;
}

/* rg_put, then a signal that is visible only after the payload. */
RG_FN int rg_put_signal(struct rg_call *call, int peer, int lane,
                        uint64_t offset, const void *src, uint64_t bytes,
                        uint64_t signal_offset, enum rg_signal_op op,
                        uint64_t value)
{
    const struct rg_route *route =
        rg_route_to(call, peer, signal_offset, sizeof value);
    struct rg_proxy_target target;

    if (route && route->kind == RG_ROUTE_PROXY && bytes &&
        rg_route_to(call, peer, offset, bytes)) {
        target = rg_proxy_target(call, route, peer, lane);
        target.signal = signal_offset;
        target.op = op;
        target.value = value;
        return rg_proxy_put(call, &target, offset, src, bytes);
    }
    if (rg_put(call, peer, lane, offset, src, bytes))
        return 1;
    return rg_signal(call, peer, lane, signal_offset, op, value);
}

/*
 * rg_put_signal with Set, that also sets the word at the same offset of this
 * rank's own region: for those here who wait until the put has left its
 * source.
 */
RG_FN int rg_put_signal_both(struct rg_call *call, int peer, int lane,
                             uint64_t offset, const void *src, uint64_t bytes,
                             uint64_t signal_offset, uint64_t value)
{
    const struct rg_route *route =
        rg_route_to(call, peer, signal_offset, sizeof value);
    uint64_t *own = (uint64_t *)(void *)rg_inbox(call, signal_offset);

    if (!route)
        return rg_refuse_team(call, peer);
    if (route->kind != RG_ROUTE_P2P) {
        if (rg_put_signal(call, peer, lane, offset, src, bytes, signal_offset,
                          RG_SIGNAL_SET, value))
            return 1;
        /* Every route's put has left its source by now. */
        rg_team_barrier(&call->team);
        if (call->team.thread == 0)
            rg_store_release(own, value);
        return 0;
    }
    if (rg_put(call, peer, lane, offset, src, bytes))
        return 1;
    rg_team_barrier(&call->team);
    if (call->team.thread == 0)
        rg_p2p_signal_both(route, signal_offset, own, value);
    return 0;
}

/* All earlier puts of the lane have left their source. */
RG_FN int rg_flush(struct rg_call *call, int peer, int lane)
{
    (void)peer;
    (void)lane;
    rg_team_barrier(&call->team);
    return 0;
}

/*
 * Waits until the local words at offset + p * stride, p a rank, have reached
 * `value` for all `count` ranks except `skip` (-1: none).
 */
RG_FN int rg_wait_all(struct rg_call *call, uint64_t offset, uint64_t stride,
                      int count, int skip, uint64_t value)
{
    int failed = 0;

    for (int p = call->team.thread; p < count; p += call->team.threads)
        if (p != skip)
            failed |= rg_wait_word(
                call,
                (const uint64_t *)rg_inbox(call, offset + stride * (uint64_t)p),
                value, p);
    return rg_team_any(&call->team, failed);
}

/* Waits until the local word at offset, published by peer, reached `value`. */
RG_FN int rg_wait(struct rg_call *call, int peer, uint64_t offset,
                  uint64_t value)
{
    int failed = 0;

    if (call->team.thread == 0)
        failed = rg_wait_word(call, (const uint64_t *)rg_inbox(call, offset),
                              value, peer);
    return rg_team_any(&call->team, failed);
}

#endif
