/* Null route: connects to everybody and carries nothing. */
#include <string.h>

#include "runtime/status.h"
#include "runtime/transfer/route_table.h"

static int null_connect(struct rg_service *service,
                        const struct rg_route_peer *peer,
                        const struct rg_fd_source *source,
                        struct rg_route *route_out)
{
    (void)service;
    (void)peer;
    (void)source;
    memset(route_out, 0, sizeof *route_out);
    route_out->kind = RG_ROUTE_NULL;
    return RG_OK;
}

const struct rg_route_provider rg_route_null = {RG_ROUTE_NULL, "NULL",
                                                null_connect};
