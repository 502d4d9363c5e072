/*
 * Route choice. Providers are tried in a fixed order for each peer; the first
 * that connects, and whose proof holds in both directions, is published.
 * RG_DISABLE_<NAME>_ROUTE and MOONCAKE_PG_DISABLE_<NAME>_ROUTE switch one off.
 */
#ifndef RG_TRANSFER_ROUTE_TABLE_H
#define RG_TRANSFER_ROUTE_TABLE_H

#include "runtime/device/route.h"
#include "runtime/transfer/service.h"

struct rg_engine_card;
struct rg_proxy;

/* A peer as the view and the exchange describe it. */
struct rg_route_peer {
    int world_rank;
    int slot;
    int direct; /* its region may be mapped here, by what both ends know */
    struct rg_region_key key;
    struct rg_proxy *proxy;            /* null: there is none */
    const struct rg_engine_card *card; /* of the peer's */
};

struct rg_route_provider {
    enum rg_route_kind kind;
    const char *name; /* upper case, as in the switches */
    /* Fills kind, base, bytes, queue. RG_OK or why not (not logged). */
    int (*connect)(struct rg_service *service, const struct rg_route_peer *peer,
                   const struct rg_fd_source *source,
                   struct rg_route *route_out);
};

extern const struct rg_route_provider rg_route_p2p;
extern const struct rg_route_provider rg_route_proxy;
extern const struct rg_route_provider rg_route_null;

/* Whether all switches are well-formed. RG_OK, RG_ECONFIG. */
int rg_route_check(void);
/* Whether routes of this kind are switched on. RG_OK, RG_ECONFIG. */
int rg_route_is_on(enum rg_route_kind kind, int *on_out);
/*
 * One entry; falls through to the null route. RG_OK, or RG_ECONFIG for a
 * malformed switch.
 */
int rg_route_choose(struct rg_service *service,
                    const struct rg_route_peer *peer,
                    const struct rg_fd_source *source,
                    struct rg_route *route_out);

#endif
