/*
 * One invocation of any collective, as a value: what is measured, filled,
 * checked, and handed to peers. Blocks and roots are as regroup.h has them.
 *
 * In place, the smaller buffer is the own block of the larger one, or both are
 * one; where a rank has one buffer only, that one lies where it would lie at
 * the root.
 *
 * sendrecv stands here for a ring: in one group, each rank sends its block to
 * the next rank and receives that of the one before. Alone, it copies.
 */
#ifndef RG_HARNESS_CALL_H
#define RG_HARNESS_CALL_H

#include "runtime/regroup.h"

/*
 * How many elements go from rank to rank in an all_to_all_v: a function of the
 * seed, nothing for a quarter of the pairs and never more than `most`. A
 * rank's blocks follow each other without gaps, in the order of ranks.
 */
struct rg_spread {
    uint64_t seed;
    size_t most;
    int nranks;
    int rank; /* own */
};
size_t rg_spread_count(const struct rg_spread *spread, int from, int to);
/* Elements before that of `to` in what `from` sends; of `from` in what `to`
 * receives. With nranks: all of them. */
size_t rg_spread_sent(const struct rg_spread *spread, int from, int to);
size_t rg_spread_received(const struct rg_spread *spread, int from, int to);
/* The own layout, 4 * nranks words, as rg_all_to_all_v() takes it. */
void rg_spread_layout(const struct rg_spread *spread, uint64_t *layout_out);

struct rg_call {
    enum rg_collective collective;
    const void *send;
    void *recv;
    size_t count; /* elements of a block; all_to_all_v: of a pair at most */
    enum rg_dtype dtype;
    enum rg_op op;
    int root;
    /* all_to_all_v alone; the layout is device memory and says the same. */
    const struct rg_spread *spread;
    const uint64_t *layout;
};

/* By the public API. */
int rg_call_launch(const struct rg_call *call, struct rg_comm *comm,
                   struct rg_stream *stream);

/* ---- what its buffers hold ---------------------------------------------- */

enum rg_extent { RG_EXTENT_NOTHING = 0, RG_EXTENT_BLOCK, RG_EXTENT_BLOCKS };

/* At the root, and at all ranks where there is none; else at the others. */
enum rg_extent rg_call_sends(enum rg_collective collective, int at_root);
enum rg_extent rg_call_receives(enum rg_collective collective, int at_root);
/* Blocks of a rank's largest buffer: 0, 1, or one a rank. */
int rg_call_blocks(enum rg_collective collective, int nranks);
/* 0: the backend has none. */
int rg_call_is_served(enum rg_collective collective, enum rg_backend backend);
/* 0: there is no such thing as in place. */
int rg_call_has_inplace(enum rg_collective collective);

/* Elements of a block, for a largest buffer of so many bytes at most. */
size_t rg_call_count(enum rg_collective collective, size_t bytes,
                     enum rg_dtype dtype, int nranks);
/*
 * Bytes of the largest buffer of any rank, for blocks of `count`; `seed` is
 * that of an all_to_all_v.
 */
size_t rg_call_bytes(enum rg_collective collective, size_t count,
                     enum rg_dtype dtype, int nranks, uint64_t seed);
/*
 * Where the buffers of rank `rank` begin within the larger one, in elements,
 * when in place.
 */
size_t rg_call_send_offset(enum rg_collective collective, size_t count,
                           int rank);
size_t rg_call_recv_offset(enum rg_collective collective, size_t count,
                           int rank);

#endif
