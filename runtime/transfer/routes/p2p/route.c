/* P2P route, host side: maps the region of a rank on the same host. */
#include <string.h>

#include "runtime/status.h"
#include "runtime/transfer/route_table.h"

static int p2p_connect(struct rg_service *service,
                       const struct rg_route_peer *peer,
                       const struct rg_fd_source *source,
                       struct rg_route *route_out)
{
    void *base;
    int status;

    if (!peer->direct)
        return RG_ENOTSUP;
    status =
        rg_service_map(service, peer->world_rank, &peer->key, source, &base);
    if (status)
        return status;
    memset(route_out, 0, sizeof *route_out);
    route_out->kind =
        peer->world_rank == service->world_rank ? RG_ROUTE_SELF : RG_ROUTE_P2P;
    route_out->base = base;
    route_out->bytes = service->bytes;
    return RG_OK;
}

const struct rg_route_provider rg_route_p2p = {RG_ROUTE_P2P, "P2P",
                                               p2p_connect};
