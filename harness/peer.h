/*
 * Peers of --compare: other libraries that run the same calls. A peer is
 * one file with one rg_peer_type; configure lists those of a build.
 */
#ifndef RG_HARNESS_PEER_H
#define RG_HARNESS_PEER_H

#include "harness/buffers.h"
#include "harness/launch.h"
#include "harness/measure.h"
#include "runtime/regroup.h"

/* The names --compare takes; a build may lack some. */
#define RG_PEER_NAMES "|mpi|nccl|nccl-symm"
enum { RG_PEERS_MAX = 3 };

/* The index'th of these names. */
const char *rg_peer_name(int index);

/* What a peer is made from; all borrowed, outlive it. */
struct rg_peer_config {
    const struct rg_job *job;
    struct rg_context *context;
    struct rg_comm *comm;
    const char *name;
};

/*
 * Messages between ranks 0 and `peer`, on several lanes at once: in turn, as a
 * pingpong, or all of them one way.
 */
struct rg_peer_messages {
    int stream; /* one way */
    int peer;
    int lanes;
    int turns;
    size_t bytes; /* of a message */
    char *send;   /* host memory: `lanes` messages each */
    char *recv;
};

/* A live peer. Zeroed, then filled by its type's create. */
struct rg_peer {
    const struct rg_peer_type *type;
    struct rg_subject subject;
    /* alloc set: buffers must come from here to be used at their best. */
    struct rg_buffer_source source;
    /* Collective. Sets the time of all turns at the two ranks; null: it sends
     * no messages. */
    int (*messages)(const struct rg_peer_messages *what, double *us_out);
    void *state; /* owned by the type */
};

struct rg_peer_type {
    const char *name; /* serves NAME and NAME-<variant> */
    enum rg_device_kind device;
    int (*create)(const struct rg_peer_config *config, struct rg_peer *peer);
    void (*destroy)(struct rg_peer *peer); /* takes half-built ones */
};

/*
 * Collective. RG_ENOTSUP, with one line printed by rank 0: not in this build,
 * not on this device, or its library is missing.
 */
int rg_peer_create(const struct rg_peer_config *config,
                   enum rg_device_kind device, struct rg_peer *peer_out);
void rg_peer_destroy(struct rg_peer *peer); /* accepts a zeroed one */

#endif
