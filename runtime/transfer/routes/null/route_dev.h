/*
 * Null route, device side: nothing is reachable. The folder to copy: a route
 * gives a put and a signal, and its tag in transfer.h's switches.
 */
#ifndef RG_ROUTE_NULL_DEV_H
#define RG_ROUTE_NULL_DEV_H

#include "runtime/device/route.h"
#include "runtime/status.h"

RG_FN int rg_null_unavailable(const struct rg_route *route)
{
    (void)route;
    return RG_EUNAVAILABLE;
}

#endif
