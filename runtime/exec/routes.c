#include "runtime/exec/routes.h"

#include <string.h>

#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/transfer/route_table.h"

static struct rg_region_key key_of(const struct rg_member *member)
{
    return (struct rg_region_key){member->info.region_process,
                                  member->info.region_base};
}

uint64_t rg_comm_proof_salt(struct rg_region_key key, int world_rank)
{
    uint64_t hash = rg_hash(RG_HASH_INIT, &key.process, sizeof key.process);

    hash = rg_hash(hash, &key.base, sizeof key.base);
    return rg_hash(hash, &world_rank, sizeof world_rank);
}

static int fetch_fd(void *arg, int world_rank, int *fd_out)
{
    const struct rg_comm *comm = arg;

    return rg_driver_fetch_fd(comm->context->driver, world_rank,
                              (int)comm->context->settings.bootstrap_ms,
                              fd_out);
}

/* The first way that connects; kept in way->route. */
static int way_choose(struct rg_comm *comm, const struct rg_member *member,
                      int slot, struct rg_way *way)
{
    const struct rg_fd_source source = {fetch_fd, comm};
    const struct rg_route_peer peer = {
        .world_rank = member->world_rank,
        .slot = slot,
        .same_host = strcmp(member->info.host_id, comm->context->host_id) == 0,
        .key = key_of(member)};
    int status =
        rg_route_choose(comm->context->service, &peer, &source, &way->route);

    if (status)
        return status;
    way->key = peer.key;
    way->state = RG_WAY_CHOSEN;
    return RG_OK;
}

/* Leaves the own mark with the peer and looks for the peer's here. */
static void way_prove(struct rg_comm *comm, const struct rg_member *member,
                      struct rg_way *way)
{
    struct rg_service *service = comm->context->service;
    const int rank = comm->context->config.rank;
    const uint64_t peer_salt = rg_comm_proof_salt(way->key, member->world_rank);

    if (way->state == RG_WAY_CHOSEN && way->route.kind != RG_ROUTE_NULL &&
        rg_service_proof_write(
            service, member->world_rank,
            rg_comm_proof_salt(rg_service_key(service), rank), peer_salt))
        way->state = RG_WAY_MARKED;
    if (way->state != RG_WAY_MARKED ||
        !rg_service_proof_check(service, member->world_rank, peer_salt))
        return;
    way->state = RG_WAY_PROVED;
    rg_log(RG_LOG_INFO, rank, "route to rank %d: %s", member->world_rank,
           rg_route_name(way->route.kind));
}

static int way_find(struct rg_comm *comm, const struct rg_member *member,
                    int slot)
{
    const struct rg_region_key key = key_of(member);
    struct rg_way *way = &comm->ways[slot];
    int status = RG_OK;

    if (way->state == RG_WAY_UNKNOWN ||
        memcmp(&way->key, &key, sizeof key) != 0)
        status = way_choose(comm, member, slot, way);
    if (status == RG_OK)
        way_prove(comm, member, way);
    return status;
}

int rg_comm_routes_find(struct rg_comm *comm, const struct rg_view *view,
                        struct rg_bitset *missing)
{
    int status = RG_OK;

    rg_bitset_zero(missing);
    for (int rank = 0; rank < view->nactive; rank++) {
        const int slot = view->order[rank];
        const struct rg_member *member = &view->members[slot];
        const int found = way_find(comm, member, slot);

        if (found)
            return found;
        if (comm->ways[slot].state == RG_WAY_PROVED)
            continue;
        rg_bitset_set(missing, slot);
        if (comm->ways[slot].route.kind == RG_ROUTE_NULL) {
            rg_log(RG_LOG_ERROR, comm->context->config.rank,
                   "no route from rank %d to rank %d",
                   comm->context->config.rank, member->world_rank);
            status = RG_EFAILED;
        } else if (status == RG_OK) {
            status = RG_EPENDING;
        }
    }
    return status;
}

void rg_comm_routes_dense(const struct rg_comm *comm,
                          const struct rg_view *view, struct rg_route *out)
{
    for (int rank = 0; rank < view->nactive; rank++)
        out[rank] = comm->ways[view->order[rank]].route;
}
