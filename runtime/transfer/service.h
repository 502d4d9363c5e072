/*
 * The transfer service of one rank: its registered region, the arena in it,
 * and the peers' regions as they are mapped here.
 *
 * The head of every region is the proof board, one slot per world rank: a
 * route is published only after a pattern was written and read through it.
 */
#ifndef RG_TRANSFER_SERVICE_H
#define RG_TRANSFER_SERVICE_H

#include "runtime/transfer/arena.h"
#include "runtime/transfer/memory.h"

enum { RG_PROOF_BYTES = 64 };

struct rg_service_peer {
    struct rg_region_key key;
    void *base; /* null: not mapped */
};

struct rg_service {
    struct rg_memory memory;
    struct rg_arena arena;
    uint8_t *region;
    uint64_t bytes;
    int fd;
    int world_rank;
    int world_size;
    struct rg_service_peer *peers; /* [world_size]; owned */
};

/* Makes the region. RG_OK, RG_ENOMEM, RG_ENOSPC or what the device says. */
int rg_service_create(const struct rg_memory *memory, int world_rank,
                      int world_size, uint64_t bytes,
                      struct rg_service **service_out);
/* Unmaps the peers, frees the region. Accepts null. */
void rg_service_destroy(struct rg_service *service);

/* How the others may map this region. */
struct rg_region_key rg_service_key(const struct rg_service *service);

/* How a route gets a peer's descriptor (owned by the caller). */
struct rg_fd_source {
    int (*fetch)(void *arg, int world_rank, int *fd_out);
    void *arg;
};

/* Keeps the mapping of a peer that has one with the same key. */
int rg_service_map(struct rg_service *service, int world_rank,
                   const struct rg_region_key *key,
                   const struct rg_fd_source *source, void **base_out);

/*
 * The proof, in three steps at each end, any time after each other: sign (write
 * the own slot of the own board), write (the own slot on the peer's board, if
 * the peer's own slot is signed), check (what the peer wrote here). A rank's
 * salt is known to all and changes with its process and its region. write and
 * check: 1 good, 0 not, or not yet.
 */
int rg_service_proof_sign(struct rg_service *service, uint64_t salt);
int rg_service_proof_write(struct rg_service *service, int world_rank,
                           uint64_t salt, uint64_t peer_salt);
int rg_service_proof_check(struct rg_service *service, int world_rank,
                           uint64_t peer_salt);

/*
 * Where a route only writes: what rank `from` leaves on the board of rank `on`,
 * and at which offset there. A mark is one that its writer has sent, which may
 * be compared with this.
 */
uint64_t rg_service_proof_mark(uint64_t salt, int from, int on,
                               uint64_t mark_out[RG_PROOF_BYTES / 8]);

#endif
