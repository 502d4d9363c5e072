/*
 * The legacy backend under a communicator: collectives of runtime/legacy, run
 * by a host function in the stream's order, with the data copied through host
 * memory where the host cannot reach the device's.
 *
 * It keeps the rules of the device side, but for the claim, which is made at
 * the launch: whatever is queued when an epoch ends was claimed in it, and ends
 * aborted. The worker holds the path and waits for what runs. An invocation
 * that fails ends, and holds the path itself; who comes to a held path waits,
 * bounded, for the new view. None of it may be captured.
 */
#ifndef RG_EXEC_LEGACY_PATH_H
#define RG_EXEC_LEGACY_PATH_H

#include "runtime/engine/engine.h"
#include "runtime/exec/comm.h"

struct rg_legacy_path;

/* One collective as the user gave it: blocks by slot, root a slot. */
struct rg_legacy_call {
    enum rg_collective collective;
    enum rg_dtype dtype;
    enum rg_op op;
    int root;
    const void *send; /* device addresses */
    void *recv;
    size_t count;      /* elements of a block */
    size_t send_bytes; /* of the whole buffers */
    size_t recv_bytes;
    const uint64_t *layout; /* all_to_all_v's, in device memory */
};

int rg_legacy_path_create(struct rg_comm *comm);
/* Accepts null. */
void rg_legacy_path_destroy(struct rg_legacy_path *path);
/* What the others need to reach this rank. */
void rg_legacy_path_card(const struct rg_legacy_path *path,
                         struct rg_engine_card *card_out);

/*
 * The user's thread: in the stream's order. Amidst a change it waits for its
 * end; RG_EPENDING: the group has left this backend. RG_ENOTSUP: it has no such
 * collective. RG_OK, RG_ENOMEM, ...
 */
int rg_legacy_path_launch(struct rg_comm *comm, struct rg_stream *stream,
                          const struct rg_legacy_call *call);

/* The recovery worker; as their kin in hold.h. hold comes behind abort. */
void rg_legacy_path_abort(struct rg_comm *comm);
int rg_legacy_path_hold(struct rg_comm *comm, int timeout_ms);
int rg_legacy_path_open(struct rg_comm *comm, uint64_t ended);
/* The view that opens is of the other backend. */
void rg_legacy_path_pass(struct rg_comm *comm, uint64_t ended);
/* Every later invocation ends at once. */
void rg_legacy_path_leave(struct rg_comm *comm);

/* What the last failure was, and how many there have been; any thread. */
struct rg_legacy_failure {
    uint64_t count;
    uint64_t seq;
    int status;
};
/* `slots` gets those waited for; may be null. */
void rg_legacy_path_failure(struct rg_comm *comm,
                            struct rg_legacy_failure *failure_out,
                            struct rg_bitset *slots);
uint64_t rg_legacy_path_completed(struct rg_comm *comm);

#endif
