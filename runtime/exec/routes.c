#include "runtime/exec/routes.h"

#include <string.h>

#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/exec/locality.h"
#include "runtime/exec/proxy_path.h"
#include "runtime/transfer/route_table.h"
#include "runtime/transfer/routes/proxy/proxy.h"

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

static void card_of(const struct rg_member *member,
                    struct rg_engine_card *card_out)
{
    memcpy(card_out->bytes,
           member->info.card + RG_CARD_PROXY * sizeof card_out->bytes,
           sizeof card_out->bytes);
}

static uint64_t card_hash(const struct rg_member *member)
{
    struct rg_engine_card card;

    card_of(member, &card);
    return rg_hash(RG_HASH_INIT, card.bytes, sizeof card.bytes);
}

/* The first way that connects; kept in way->route. */
static int way_choose(struct rg_comm *comm, const struct rg_member *member,
                      int slot, int direct, struct rg_way *way)
{
    const struct rg_fd_source source = {fetch_fd, comm};
    struct rg_engine_card card;
    const struct rg_route_peer peer = {.world_rank = member->world_rank,
                                       .slot = slot,
                                       .direct = direct,
                                       .key = key_of(member),
                                       .proxy =
                                           rg_proxy_path_proxy(comm->proxy),
                                       .card = &card};
    int status;

    card_of(member, &card);
    status =
        rg_route_choose(comm->context->service, &peer, &source, &way->route);
    if (status)
        return status;
    way->key = peer.key;
    way->direct = direct;
    way->card = card_hash(member);
    way->state = RG_WAY_CHOSEN;
    return RG_OK;
}

/* Whether the own mark is on the peer's board by now. */
static int way_mark(struct rg_comm *comm, const struct rg_member *member,
                    const struct rg_way *way)
{
    struct rg_service *service = comm->context->service;
    const int rank = comm->context->config.rank;
    const uint64_t salt = rg_comm_proof_salt(rg_service_key(service), rank);
    uint64_t mark[RG_PROOF_BYTES / 8], at;

    if (way->route.kind != RG_ROUTE_PROXY)
        return rg_service_proof_write(
            service, member->world_rank, salt,
            rg_comm_proof_salt(way->key, member->world_rank));
    at = rg_service_proof_mark(salt, rank, member->world_rank, mark);
    return rg_proxy_note(rg_proxy_path_proxy(comm->proxy), member->world_rank,
                         at, mark, sizeof mark) == RG_OK;
}

/* Whether the peer's mark is on the own board. */
static int way_is_marked(struct rg_comm *comm, const struct rg_member *member,
                         const struct rg_way *way)
{
    const int rank = comm->context->config.rank;
    const uint64_t salt = rg_comm_proof_salt(way->key, member->world_rank);
    uint64_t mark[RG_PROOF_BYTES / 8], seen[RG_PROOF_BYTES / 8], at;

    if (way->route.kind != RG_ROUTE_PROXY)
        return rg_service_proof_check(comm->context->service,
                                      member->world_rank, salt);
    at = rg_service_proof_mark(salt, member->world_rank, rank, mark);
    rg_proxy_read(rg_proxy_path_proxy(comm->proxy), at, seen, sizeof seen);
    return memcmp(seen, mark, sizeof mark) == 0;
}

/* Leaves the own mark with the peer and looks for the peer's here. */
static void way_prove(struct rg_comm *comm, const struct rg_member *member,
                      struct rg_way *way)
{
    if (way->state == RG_WAY_CHOSEN && way->route.kind != RG_ROUTE_NULL &&
        way_mark(comm, member, way))
        way->state = RG_WAY_MARKED;
    if (way->state != RG_WAY_MARKED || !way_is_marked(comm, member, way))
        return;
    way->state = RG_WAY_PROVED;
    rg_log(RG_LOG_DEBUG, comm->context->config.rank, "route to rank %d: %s",
           member->world_rank, rg_route_name(way->route.kind));
}

/* Whether the way that is known still leads to the member. */
static int way_stands(struct rg_comm *comm, const struct rg_member *member,
                      int direct, const struct rg_way *way)
{
    const struct rg_region_key key = key_of(member);

    return way->state != RG_WAY_UNKNOWN && way->direct == direct &&
           way->card == card_hash(member) &&
           memcmp(&way->key, &key, sizeof key) == 0 &&
           (way->route.kind != RG_ROUTE_PROXY ||
            rg_proxy_status(rg_proxy_path_proxy(comm->proxy),
                            member->world_rank) == RG_OK);
}

static int way_find(struct rg_comm *comm, const struct rg_view *view, int own,
                    int slot)
{
    const struct rg_member *member = &view->members[slot];
    const int direct = rg_view_is_direct(view, own, slot);
    struct rg_way *way = &comm->ways[slot];
    int status = RG_OK;

    if (!way_stands(comm, member, direct, way))
        status = way_choose(comm, member, slot, direct, way);
    if (status == RG_OK)
        way_prove(comm, member, way);
    return status;
}

int rg_comm_routes_find(struct rg_comm *comm, const struct rg_view *view,
                        struct rg_bitset *missing)
{
    const int own = rg_view_slot_of(view, comm->context->config.rank);
    int status = RG_OK;

    rg_bitset_zero(missing);
    for (int rank = 0; rank < view->nactive; rank++) {
        const int slot = view->order[rank];
        const struct rg_member *member = &view->members[slot];
        const int found = way_find(comm, view, own, slot);

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

static char route_letter(const struct rg_comm *comm, const struct rg_view *view,
                         int world_rank)
{
    static const char letters[RG_ROUTE_COUNT] = {
        [RG_ROUTE_NULL] = '-', [RG_ROUTE_P2P] = 'p',   [RG_ROUTE_RDMA] = 'r',
        [RG_ROUTE_GIN] = 'g',  [RG_ROUTE_PROXY] = 'h', [RG_ROUTE_SELF] = '.'};
    const int slot = rg_view_slot_of(view, world_rank);

    if (slot < 0 || rg_view_rank_of(view, slot) < 0)
        return '-';
    return letters[comm->ways[slot].route.kind];
}

void rg_comm_routes_report(const struct rg_comm *comm,
                           const struct rg_view *view)
{
    enum { GROUP = 8, RANKS = 512 }; /* what fits in a line of the log */
    char text[RANKS + RANKS / GROUP + 1];
    const int size = comm->context->config.size;

    for (int first = 0; first < size; first += RANKS) {
        const int end = size - first < RANKS ? size : first + RANKS;
        int n = 0;

        for (int rank = first; rank < end; rank++) {
            if (rank > first && rank % GROUP == 0)
                text[n++] = ' ';
            text[n++] = route_letter(comm, view, rank);
        }
        text[n] = '\0';
        rg_log(RG_LOG_INFO, comm->context->config.rank,
               "routes of epoch %llu%s: %s", (unsigned long long)view->epoch,
               first ? ", continued" : "", text);
    }
}
