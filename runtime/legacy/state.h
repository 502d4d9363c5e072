/* What the parts of the legacy backend share; inside runtime/legacy only. */
#ifndef RG_LEGACY_STATE_H
#define RG_LEGACY_STATE_H

#include "runtime/legacy/legacy.h"

/* The streams to and from one world rank, counted from the view's start. */
struct rg_legacy_stream {
    uint64_t issued; /* chunks submitted */
    uint64_t taken;  /* chunks consumed */
    int open;        /* submitted chunks without completion */
    int lost; /* a command, or the connection, has failed in this view */
};

/* What one collective moves to and from one rank of the view. */
struct rg_legacy_part {
    const unsigned char *send;
    uint64_t send_bytes;
    uint64_t sent;
    unsigned char *recv; /* null where chunks are reduced */
    uint64_t recv_bytes;
    uint64_t received;
};

/*
 * One exchange: all parts, driven until done. If reduce_bytes is not 0, that
 * many bytes come from every other rank and are reduced, with `own`, to `dst`,
 * as soon as a chunk is there from all.
 */
struct rg_legacy_exchange {
    struct rg_legacy_part *parts; /* [nranks] */
    const unsigned char *own;
    unsigned char *dst;
    uint64_t reduce_bytes;
    uint64_t reduced;
    enum rg_dtype dtype;
    enum rg_op op;
};

struct rg_legacy {
    struct rg_engine *engine;
    unsigned char *region; /* the engine's */
    int size;              /* of the world */
    int workspaces;
    uint64_t chunk_bytes;
    uint64_t area_bytes; /* of one workspace */
    uint64_t deadline_ns;
    uint64_t abort_epoch; /* atomic; only grows */
    int status;           /* not RG_OK: the view is spent */

    /* The view. */
    uint64_t epoch;
    uint64_t first_seq;
    uint64_t area; /* offset of its workspace */
    int nranks;
    int rank;
    int *world_rank;                  /* [size] */
    struct rg_legacy_stream *streams; /* [size], by world rank */

    /* For a collective at a time. */
    struct rg_legacy_exchange exchange;
    const unsigned char **sources; /* [size] */
    unsigned char *stage;          /* [chunk_bytes] */

    /* For a wait. */
    uint64_t waited_ns;
    uint64_t looked_ns;
};

/* exchange.c: */
/* Forgets the parts of the last one. */
void rg_legacy_exchange_reset(struct rg_legacy *legacy);
/* Drives the exchange to its end. RG_OK, or why there is none. */
int rg_legacy_exchange_run(struct rg_legacy *legacy);
/* Whom the exchange still waits for: fills the set of world ranks. */
void rg_legacy_exchange_blame(const struct rg_legacy *legacy, int status,
                              struct rg_bitset *failed);
/* Takes back all commands: no memory of the caller is read any more. */
void rg_legacy_exchange_stop(struct rg_legacy *legacy);
/* Offset of the count word or the slots of a world rank in an area. */
uint64_t rg_legacy_arrived_at(const struct rg_legacy *legacy, int world_rank);
uint64_t rg_legacy_slots_at(const struct rg_legacy *legacy, int world_rank);

/* collectives.c: */
/* RG_OK, or RG_EINVAL (logged) for arguments out of their range. */
int rg_legacy_check(const struct rg_legacy *legacy,
                    const struct rg_legacy_op *op);
/* Runs the exchanges of a checked collective. */
int rg_legacy_perform(struct rg_legacy *legacy, const struct rg_legacy_op *op);

#endif
