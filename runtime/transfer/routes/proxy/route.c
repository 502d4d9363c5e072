/* Host proxy route, host side: a peer that the host engine is connected to. */
#include <string.h>

#include "runtime/status.h"
#include "runtime/transfer/route_table.h"
#include "runtime/transfer/routes/proxy/proxy.h"

static int proxy_connect(struct rg_service *service,
                         const struct rg_route_peer *peer,
                         const struct rg_fd_source *source,
                         struct rg_route *route_out)
{
    int status;

    (void)source;
    if (!peer->proxy || peer->world_rank == service->world_rank)
        return RG_ENOTSUP;
    status = rg_proxy_connect(peer->proxy, peer->world_rank, peer->card);
    if (status)
        return status;
    memset(route_out, 0, sizeof *route_out);
    route_out->kind = RG_ROUTE_PROXY;
    route_out->bytes = service->bytes;
    route_out->queue = (uint64_t)peer->world_rank;
    return RG_OK;
}

const struct rg_route_provider rg_route_proxy = {RG_ROUTE_PROXY, "HOST_PROXY",
                                                 proxy_connect};
