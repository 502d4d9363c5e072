/*
 * What a program asks of an invocation that moves data by the transfer service
 * alone (rg_transfer_probe), and what each rank is told. Both blocks are device
 * memory; the report adds up over invocations until the program clears it.
 *
 *   pingpong   ranks 0 and `peer` put to each other in turn
 *   stream     rank 0 puts to `peer` as fast as that takes it
 *   exchange   every rank puts to every rank, itself too, and checks all that
 *              arrives
 *   bounds     what is in a peer's region, and what is beyond its end
 *   deadline   a wait for what does not come, up to the end of its budget
 *   beyond     rank 0 puts `bytes` to `peer` that end `offset` bytes behind the
 *              end of its region; the invocation fails
 *
 * Lanes are independent of each other and in use at once. A turn moves `bytes`
 * on each lane.
 */
#ifndef RG_ALGOS_TRANSFER_REQUEST_H
#define RG_ALGOS_TRANSFER_REQUEST_H

#include <stdint.h>

enum rg_transfer_program {
    RG_TRANSFER_PINGPONG = 0,
    RG_TRANSFER_STREAM,
    RG_TRANSFER_EXCHANGE,
    RG_TRANSFER_BOUNDS,
    RG_TRANSFER_DEADLINE,
    RG_TRANSFER_BEYOND
};

enum {
    RG_TRANSFER_LANES = 32, /* at most */
    RG_TRANSFER_DEPTH = 4,  /* payloads of a lane under way in a stream */
    RG_TRANSFER_GUARD = 16, /* bytes looked after on both sides of a payload */
    RG_TRANSFER_TURNS_MAX = 1 << 20
};

struct rg_transfer_request {
    uint64_t program; /* enum rg_transfer_program */
    uint64_t lanes;
    uint64_t turns;
    uint64_t bytes;
    uint64_t offset;    /* of a payload in its place, and of its source */
    uint64_t adds;      /* 1: signals add, where they can; else they set */
    uint64_t salt;      /* of what payloads are made of */
    uint64_t peer;      /* dense rank */
    uint64_t budget_ns; /* deadline */
    uint8_t *source;    /* device memory: rg_transfer_source_bytes() */
};

struct rg_transfer_report {
    uint64_t turns;   /* on all lanes */
    uint64_t wrong;   /* bytes of payloads */
    uint64_t spilled; /* bytes beside them that changed */
    uint64_t signals; /* words that are not what was signalled */
    uint64_t bounds;  /* places that are taken wrongly to be in, or not */
    uint64_t where; /* of the last wrong one: from << 32 | lane << 24 | turn */
    uint64_t route; /* enum rg_route_kind of the peer */
    uint64_t elapsed_ns;
};

#ifdef __CUDACC__
#define RG_TRANSFER_FN static __host__ __device__ inline
#else
#define RG_TRANSFER_FN static inline
#endif

/* A payload with its guards, from a multiple of 16 to the next one. */
RG_TRANSFER_FN uint64_t
rg_transfer_room(const struct rg_transfer_request *request)
{
    return (request->bytes + request->offset + 2 * RG_TRANSFER_GUARD + 15) /
           16 * 16;
}

/* A lane's place at a peer. */
RG_TRANSFER_FN uint64_t
rg_transfer_place_bytes(const struct rg_transfer_request *request)
{
    const uint64_t depth =
        request->program == RG_TRANSFER_STREAM ? RG_TRANSFER_DEPTH : 1;

    return depth * rg_transfer_room(request);
}

/* At most what rg_comm_limits() says: max_bytes. */
RG_TRANSFER_FN uint64_t
rg_transfer_landing_bytes(const struct rg_transfer_request *request)
{
    return request->lanes * rg_transfer_place_bytes(request);
}

RG_TRANSFER_FN uint64_t
rg_transfer_source_bytes(const struct rg_transfer_request *request)
{
    return request->lanes * rg_transfer_room(request);
}

#endif
