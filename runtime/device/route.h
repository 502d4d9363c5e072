/*
 * Route table entry: how this rank reaches one peer's region. Written by the
 * host for each view, read by teams; indexed by dense rank inside a plan.
 */
#ifndef RG_DEVICE_ROUTE_H
#define RG_DEVICE_ROUTE_H

#include "runtime/device/dev.h"
#include "runtime/types.h"

struct rg_route {
    uint32_t kind;  /* enum rg_route_kind */
    uint32_t slot;  /* the peer's slot in the group */
    uint8_t *base;  /* its region mapped here, for routes of loads and stores */
    uint64_t bytes; /* size of its region: every access is checked */
    uint64_t queue; /* routes with queues: their first queue */
};

static_assert(sizeof(struct rg_route) == 32, "shared by host and device");

#endif
