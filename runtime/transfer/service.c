#include "runtime/transfer/service.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

int rg_service_create(const struct rg_memory *memory, int world_rank,
                      int world_size, uint64_t bytes,
                      struct rg_service **service_out)
{
    struct rg_service *service = calloc(1, sizeof *service);
    uint64_t board;
    int status = RG_ENOMEM;

    if (!service)
        return RG_ENOMEM;
    service->memory = *memory;
    service->world_rank = world_rank;
    service->world_size = world_size;
    service->fd = -1;
    service->bytes = bytes;
    rg_arena_init(&service->arena, bytes);
    service->peers = calloc((size_t)world_size, sizeof *service->peers);
    if (!service->peers)
        goto error;
    status = rg_arena_alloc(
        &service->arena, (uint64_t)world_size * RG_PROOF_BYTES, 4096, &board);
    if (status) {
        rg_log(RG_LOG_ERROR, world_rank,
               "a region of %llu bytes (RG_REGION_BYTES) is too small",
               (unsigned long long)bytes);
        goto error;
    }
    status = memory->ops->region_create(
        memory->device, bytes, (void **)&service->region, &service->fd);
    if (status)
        goto error;
    *service_out = service;
    return RG_OK;
error:
    rg_service_destroy(service);
    return status;
}

static void service_unmap(struct rg_service *service, int world_rank)
{
    struct rg_service_peer *peer = &service->peers[world_rank];

    if (peer->base && world_rank != service->world_rank)
        service->memory.ops->region_unmap(service->memory.device, &peer->key,
                                          peer->base, service->bytes);
    peer->base = NULL;
}

void rg_service_destroy(struct rg_service *service)
{
    if (!service)
        return;
    if (service->peers)
        for (int i = 0; i < service->world_size; i++)
            service_unmap(service, i);
    if (service->region)
        service->memory.ops->region_destroy(service->memory.device,
                                            service->region, service->bytes,
                                            service->fd);
    rg_arena_fini(&service->arena);
    free(service->peers);
    free(service);
}

struct rg_region_key rg_service_key(const struct rg_service *service)
{
    return (struct rg_region_key){
        service->memory.ops->process(service->memory.device),
        (uint64_t)(uintptr_t)service->region};
}

static int service_map_fd(struct rg_service *service, int world_rank,
                          const struct rg_region_key *key,
                          const struct rg_fd_source *source, void **base_out)
{
    const struct rg_memory_ops *ops = service->memory.ops;
    int fd = -1, status;

    if (ops->needs_fd(service->memory.device, key)) {
        status = source->fetch(source->arg, world_rank, &fd);
        if (status)
            return status;
    }
    status = ops->region_map(service->memory.device, key, fd, service->bytes,
                             base_out);
    if (fd >= 0)
        close(fd);
    return status;
}

int rg_service_map(struct rg_service *service, int world_rank,
                   const struct rg_region_key *key,
                   const struct rg_fd_source *source, void **base_out)
{
    struct rg_service_peer *peer = &service->peers[world_rank];
    int status = RG_OK;

    if (peer->base && memcmp(&peer->key, key, sizeof *key) != 0)
        service_unmap(service, world_rank);
    if (!peer->base && world_rank == service->world_rank)
        peer->base = service->region;
    if (!peer->base)
        status = service_map_fd(service, world_rank, key, source, &peer->base);
    if (status)
        return status;
    peer->key = *key;
    *base_out = peer->base;
    return RG_OK;
}

/* What rank `from` writes on the board of rank `on`. */
static void proof_pattern(uint64_t salt, int from, int on,
                          uint64_t pattern[RG_PROOF_BYTES / 8])
{
    uint64_t hash = rg_hash(RG_HASH_INIT, &salt, sizeof salt);

    hash = rg_hash(hash, &from, sizeof from);
    hash = rg_hash(hash, &on, sizeof on);
    for (int i = 0; i < RG_PROOF_BYTES / 8; i++)
        pattern[i] = hash = rg_hash(hash, &i, sizeof i);
}

static int proof_put(struct rg_service *service, void *board, int from, int on,
                     uint64_t salt)
{
    uint64_t pattern[RG_PROOF_BYTES / 8];

    proof_pattern(salt, from, on, pattern);
    return service->memory.ops->copy_words(
        service->memory.device, (uint64_t *)board + from * (RG_PROOF_BYTES / 8),
        pattern, RG_PROOF_BYTES / 8);
}

static int proof_holds(struct rg_service *service, const void *board, int from,
                       int on, uint64_t salt)
{
    uint64_t pattern[RG_PROOF_BYTES / 8], seen[RG_PROOF_BYTES / 8];

    proof_pattern(salt, from, on, pattern);
    if (service->memory.ops->copy_words(service->memory.device, seen,
                                        (const uint64_t *)board +
                                            from * (RG_PROOF_BYTES / 8),
                                        RG_PROOF_BYTES / 8))
        return 0;
    return memcmp(pattern, seen, sizeof seen) == 0;
}

int rg_service_proof_sign(struct rg_service *service, uint64_t salt)
{
    return proof_put(service, service->region, service->world_rank,
                     service->world_rank, salt);
}

int rg_service_proof_write(struct rg_service *service, int world_rank,
                           uint64_t salt, uint64_t peer_salt)
{
    void *board = service->peers[world_rank].base;

    if (!board ||
        !proof_holds(service, board, world_rank, world_rank, peer_salt))
        return 0;
    /* The own mark stands, and peers are reading it. */
    if (world_rank == service->world_rank)
        return 1;
    return proof_put(service, board, service->world_rank, world_rank, salt) ==
           RG_OK;
}

int rg_service_proof_check(struct rg_service *service, int world_rank,
                           uint64_t peer_salt)
{
    return proof_holds(service, service->region, world_rank,
                       service->world_rank, peer_salt);
}

uint64_t rg_service_proof_mark(uint64_t salt, int from, int on,
                               uint64_t mark_out[RG_PROOF_BYTES / 8])
{
    proof_pattern(salt, from, on, mark_out);
    return (uint64_t)from * RG_PROOF_BYTES;
}
