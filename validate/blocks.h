/*
 * Calls of any collective in a group that changes: what each block must hold
 * follows from who takes part. Blocks of slots that are not active are neither
 * read nor written, and nor is anything else outside the output.
 *
 * A call has memory of its own, at addresses that stay, so it can be captured:
 * create, then any number of rounds of load, launch (or a replay) and check.
 */
#ifndef RG_VALIDATE_BLOCKS_H
#define RG_VALIDATE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/regroup.h"

/* A group as the collectives' results depend on it; slots are world ranks. */
struct rg_blocks {
    struct rg_context *context;
    struct rg_comm *comm;
    struct rg_stream *stream;
    enum rg_device_kind device;
    int slot; /* own */
    int slots;
    uint64_t active; /* a bitmap of slots */
    uint64_t seed;
};

struct rg_block_call {
    enum rg_collective collective;
    enum rg_dtype dtype; /* u8, u32, i64, f32 or f64 */
    enum rg_op op;       /* sum or max */
    int in_place;
    size_t count; /* elements of a block; of all_to_all_v at most */
    int root;
    /* The rest is the call's own. */
    struct rg_blocks blocks; /* as it was created; `active` of the check */
    uint64_t salt;
    /* Either buffer has room for a block a slot; in place they are one. */
    unsigned char *send, *recv;           /* device memory, */
    void *owned[3];                       /* in these blocks */
    unsigned char *send_host, *recv_host; /* as loaded, then as expected */
    size_t room;
};

/* What is set of the call is kept. RG_OK, or it has been destroyed. */
int rg_block_call_create(const struct rg_blocks *blocks,
                         struct rg_block_call *call);
void rg_block_call_destroy(struct rg_block_call *call); /* takes a zeroed one */
/* Inputs by `salt`, the same at all members; poison everywhere else. */
int rg_block_call_load(struct rg_block_call *call, uint64_t salt);
int rg_block_call_launch(const struct rg_block_call *call);
/* Of one that is committed. RG_EPROTO: wrong data, which `text` names. */
int rg_block_call_check(struct rg_block_call *call, uint64_t active, char *text,
                        size_t bytes);

/*
 * Every collective, in and out of place, of several types and sizes. RG_OK, or
 * the status of what failed (RG_EPROTO: wrong data) with the cause in `text`.
 * Where the group's backend has no algorithm, a collective other than
 * all-reduce is passed over.
 */
int rg_blocks_check(const struct rg_blocks *blocks, char *text, size_t bytes);
/* One all-reduce with a new input; `graph` instead of a call, if not null. */
int rg_blocks_reduce(const struct rg_blocks *blocks, uint32_t *send,
                     uint32_t *recv, size_t count, struct rg_graph *graph,
                     char *text, size_t bytes);

#endif
