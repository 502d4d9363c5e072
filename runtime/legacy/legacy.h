/*
 * The legacy backend's core: collectives driven by the host over the host
 * engine. All data is host memory. One object is one rank's end of one group.
 *
 * Every pair of ranks has a stream of chunks each way. Chunks land in the
 * receiver's region (RG_LEGACY_DEPTH slots per sender); words count what has
 * arrived and give back what has been taken:
 *
 *   sender                                 receiver
 *     chunk k -> slot k % depth,   ---->     waits for arrived > k, takes it
 *     arrived = k + 1
 *     waits for credit > k - depth <----     credit = taken, every other chunk
 *
 * The region holds this once per *workspace*; a view says which one it uses.
 * Commands carry the view's epoch as generation, so what is left of an older
 * view is refused, and what a faster rank sends for a new one waits at the door
 * until this rank has applied it, with everything at zero.
 *
 * Reductions run over the ranks in order, each element in one place: results
 * are the same bits at all ranks. f16 and bf16 accumulate in f32 and are
 * rounded once.
 *
 * Threads: one at a time, but rg_legacy_abort may be called by any.
 */
#ifndef RG_LEGACY_LEGACY_H
#define RG_LEGACY_LEGACY_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/core/bitset.h"
#include "runtime/engine/engine.h"
#include "runtime/types.h"

struct rg_legacy;

enum { RG_LEGACY_DEPTH = 4 };

struct rg_legacy_config {
    /* rank, size, secret, host_id, address, silence_ms; the rest is set here */
    struct rg_engine_config engine;
    int workspaces;       /* 0: 3 */
    uint64_t chunk_bytes; /* a multiple of 64; 0: 128 KiB */
    uint64_t deadline_ms; /* of a wait without any progress; 0: 10 s */
};

struct rg_legacy_view {
    uint64_t epoch;     /* higher than that of the last view */
    uint64_t first_seq; /* earlier ones have been aborted */
    int workspace;      /* 0 .. workspaces-1; free of stragglers */
    int nranks;
    int rank;                           /* own place in the order */
    const int *world_rank;              /* [nranks], read by apply only */
    const struct rg_engine_card *cards; /* [nranks], likewise; own is unused */
};

/*
 * Buffers as in MPI: count is what one rank gives to one other (all_to_all,
 * scatter), gives (all_gather, gather), or gets (reduce_scatter); else the
 * whole buffer. Pointers are aligned to the element. In place: send == recv
 * for all_reduce, reduce and broadcast; the own block of the larger buffer for
 * all_gather, gather, reduce_scatter, scatter; never for all_to_all. A pointer
 * that the rank's part does not need may be null.
 */
struct rg_legacy_op {
    enum rg_collective collective;
    uint64_t seq;
    const void *send;
    void *recv;
    size_t count; /* elements */
    enum rg_dtype dtype;
    enum rg_op op;
    int root; /* in the view's order */
};

/* RG_OK, RG_EINVAL, or what rg_engine_create says. */
int rg_legacy_create(const struct rg_legacy_config *config,
                     struct rg_legacy **legacy_out);
/* Accepts null. */
void rg_legacy_destroy(struct rg_legacy *legacy);

/* What the others need to reach this rank; the same for the object's life. */
void rg_legacy_get_card(const struct rg_legacy *legacy,
                        struct rg_engine_card *card_out);

/*
 * Enters a view. Connections to ranks that are in it with the same card stay.
 * A rank that cannot be reached, or has died meanwhile, shows in the next run.
 * RG_OK, RG_EINVAL, RG_ENOMEM, RG_EPROTO (a card).
 */
int rg_legacy_apply(struct rg_legacy *legacy,
                    const struct rg_legacy_view *view);

/*
 * Runs one collective and returns when this rank's part is done and its buffers
 * may be used. RG_EINVAL: nothing was done. RG_EABORTED: the epoch was aborted,
 * or seq had been before. RG_ETIMEDOUT, RG_EFAILED: `failed_out` (null, or of
 * the world's size) holds the world ranks that it waited for, or whose
 * connection is lost. After any of these but RG_EINVAL and an old seq, the view
 * is spent: all runs return the same until the next apply, and no memory of
 * the caller is read or written any more.
 */
int rg_legacy_run(struct rg_legacy *legacy, const struct rg_legacy_op *op,
                  struct rg_bitset *failed_out);

/* Ends the run of any epoch up to this one, now and for ever. */
void rg_legacy_abort(struct rg_legacy *legacy, uint64_t epoch);

#endif
