#include "runtime/transfer/route_table.h"

#include <stdio.h>

#include "runtime/core/env.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

/* In order of preference; the null route connects always. */
static const struct rg_route_provider *const route_providers[] = {
    &rg_route_p2p, &rg_route_proxy, &rg_route_null};

static int route_disabled(const struct rg_route_provider *provider,
                          int *disabled_out)
{
    const char *const prefixes[] = {"RG", "MOONCAKE_PG"};
    char name[64];
    int disabled = 0, status;

    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s_DISABLE_%s_ROUTE", prefixes[i],
                 provider->name);
        *disabled_out = 0;
        status = rg_env_bool(name, disabled_out);
        if (status)
            return status;
        disabled |= *disabled_out;
    }
    *disabled_out = disabled;
    return RG_OK;
}

int rg_route_check(void)
{
    const int providers = sizeof route_providers / sizeof *route_providers;
    int disabled, status = RG_OK;

    for (int i = 0; status == RG_OK && i < providers; i++)
        status = route_disabled(route_providers[i], &disabled);
    return status;
}

int rg_route_is_on(enum rg_route_kind kind, int *on_out)
{
    const int providers = sizeof route_providers / sizeof *route_providers;
    int i = 0, disabled, status;

    *on_out = 0;
    while (i < providers && route_providers[i]->kind != kind)
        i++;
    if (i == providers)
        return RG_OK;
    status = route_disabled(route_providers[i], &disabled);
    *on_out = status == RG_OK && !disabled;
    return status;
}

int rg_route_choose(struct rg_service *service,
                    const struct rg_route_peer *peer,
                    const struct rg_fd_source *source,
                    struct rg_route *route_out)
{
    const int providers = sizeof route_providers / sizeof *route_providers;
    int disabled, status;

    for (int i = 0; i < providers; i++) {
        status = route_disabled(route_providers[i], &disabled);
        if (status)
            return status;
        if (disabled && peer->world_rank != service->world_rank &&
            route_providers[i]->kind != RG_ROUTE_NULL)
            continue;
        status = route_providers[i]->connect(service, peer, source, route_out);
        if (status == RG_OK)
            break;
        rg_log(RG_LOG_INFO, service->world_rank, "no %s route to rank %d: %d",
               route_providers[i]->name, peer->world_rank, status);
    }
    route_out->slot = (uint32_t)peer->slot;
    return RG_OK;
}
