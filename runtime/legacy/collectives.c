#include <string.h>

#include "runtime/core/log.h"
#include "runtime/legacy/reduce.h"
#include "runtime/legacy/state.h"
#include "runtime/regroup.h"
#include "runtime/status.h"

enum {
    SMALL_BYTES = 16384 /* all_reduce: everybody sends everything at once */
};

/* ---- arguments ---------------------------------------------------------- */

/* How many times `count` elements a rank's buffers hold, and where the smaller
 * may lie in the larger one. */
struct shape {
    int send, recv; /* blocks; 0: the pointer is not used */
    int in_place;   /* the block of the larger buffer; -1: none */
};

static struct shape shape_of(const struct rg_legacy *legacy,
                             const struct rg_legacy_op *op)
{
    const int n = legacy->nranks, own = legacy->rank;
    const int at_root = op->root == own;

    switch (op->collective) {
    case RG_COLL_all_gather:
        return (struct shape){1, n, own};
    case RG_COLL_reduce_scatter:
        return (struct shape){n, 1, own};
    case RG_COLL_broadcast:
        return (struct shape){at_root, 1, 0};
    case RG_COLL_reduce:
        return (struct shape){1, at_root, 0};
    case RG_COLL_all_to_all:
        return (struct shape){n, n, n == 1 ? 0 : -1};
    case RG_COLL_gather:
        return (struct shape){1, at_root ? n : 0, own};
    case RG_COLL_scatter:
        return (struct shape){at_root ? n : 0, 1, own};
    case RG_COLL_barrier:
        return (struct shape){0, 0, 0};
    default:
        return (struct shape){1, 1, 0};
    }
}

/* Apart, or exactly where the collective allows it. */
static int buffers_fit(const struct shape *shape, const unsigned char *send,
                       const unsigned char *recv, uint64_t block)
{
    const unsigned char *send_end = send + (uint64_t)shape->send * block;
    const unsigned char *recv_end = recv + (uint64_t)shape->recv * block;

    if (!shape->send || !shape->recv || send_end <= recv || recv_end <= send)
        return 1;
    if (shape->in_place < 0)
        return 0;
    if (shape->recv > shape->send)
        return send == recv + (uint64_t)shape->in_place * block;
    return recv == send + (shape->send > shape->recv
                               ? (uint64_t)shape->in_place * block
                               : 0);
}

/* What is wrong with them, or null. */
static const char *find_fault(const struct rg_legacy *legacy,
                              const struct rg_legacy_op *op)
{
    const size_t element = rg_dtype_size(op->dtype);
    struct shape shape;

    if ((unsigned)op->collective > RG_COLL_barrier)
        return "no such collective";
    if (op->collective == RG_COLL_barrier)
        return NULL;
    if (!element || (unsigned)op->op >= RG_OP_COUNT)
        return "no such type or operation";
    if (rg_collective_reduces(op->collective) && !rg_op_fits(op->op, op->dtype))
        return "the operation is not defined for the type";
    if (op->root < 0 || op->root >= legacy->nranks)
        return "the root is no rank of the view";
    if (op->count > SIZE_MAX / 2 / element / (size_t)legacy->nranks)
        return "the count overflows memory";
    shape = shape_of(legacy, op);
    if (op->count && ((shape.send && !op->send) || (shape.recv && !op->recv)))
        return "a buffer is null";
    if (!buffers_fit(&shape, op->send, op->recv, op->count * element))
        return "the buffers overlap";
    return NULL;
}

int rg_legacy_check(const struct rg_legacy *legacy,
                    const struct rg_legacy_op *op)
{
    const char *fault = find_fault(legacy, op);

    if (!fault)
        return RG_OK;
    rg_log(RG_LOG_ERROR, -1, "legacy %s: %s",
           rg_collective_name(op->collective), fault);
    return RG_EINVAL;
}

/* ---- parts -------------------------------------------------------------- */

static void set_send(struct rg_legacy *legacy, int rank, const void *from,
                     uint64_t bytes)
{
    legacy->exchange.parts[rank].send = from;
    legacy->exchange.parts[rank].send_bytes = bytes;
}

static void set_recv(struct rg_legacy *legacy, int rank, void *to,
                     uint64_t bytes)
{
    legacy->exchange.parts[rank].recv = to;
    legacy->exchange.parts[rank].recv_bytes = bytes;
}

static void set_reduce(struct rg_legacy *legacy, const struct rg_legacy_op *op,
                       const void *own, void *dst, uint64_t bytes)
{
    legacy->exchange.own = own;
    legacy->exchange.dst = dst;
    legacy->exchange.reduce_bytes = bytes;
    legacy->exchange.dtype = op->dtype;
    legacy->exchange.op = op->op;
}

/* The own part needs no network. */
static void copy_own(void *to, const void *from, uint64_t bytes)
{
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

static void send_all(struct rg_legacy *legacy, const void *from, uint64_t bytes)
{
    for (int rank = 0; rank < legacy->nranks; rank++)
        if (rank != legacy->rank)
            set_send(legacy, rank, from, bytes);
}

static void send_blocks(struct rg_legacy *legacy, const unsigned char *from,
                        uint64_t bytes)
{
    for (int rank = 0; rank < legacy->nranks; rank++)
        if (rank != legacy->rank)
            set_send(legacy, rank, from + (uint64_t)rank * bytes, bytes);
}

static void recv_blocks(struct rg_legacy *legacy, unsigned char *to,
                        uint64_t bytes)
{
    for (int rank = 0; rank < legacy->nranks; rank++)
        if (rank != legacy->rank)
            set_recv(legacy, rank, to + (uint64_t)rank * bytes, bytes);
}

/* ---- collectives -------------------------------------------------------- */

static uint64_t block_bytes(const struct rg_legacy_op *op)
{
    return op->count * rg_dtype_size(op->dtype);
}

/* One exchange: everybody reduces everything, in the same order. */
static int small_all_reduce(struct rg_legacy *legacy,
                            const struct rg_legacy_op *op)
{
    const uint64_t bytes = block_bytes(op);

    /* In place, the result would overwrite what a slow peer has yet to get. */
    memcpy(legacy->stage, op->send, bytes);
    rg_legacy_exchange_reset(legacy);
    send_all(legacy, legacy->stage, bytes);
    set_reduce(legacy, op, legacy->stage, op->recv, bytes);
    return rg_legacy_exchange_run(legacy);
}

/* The share of the vector that a rank reduces: [begin, end) in bytes. */
static uint64_t share_begin(const struct rg_legacy *legacy,
                            const struct rg_legacy_op *op, int rank)
{
    const uint64_t n = (uint64_t)legacy->nranks, r = (uint64_t)rank;
    const uint64_t begin = op->count / n * r + op->count % n * r / n;

    return begin * rg_dtype_size(op->dtype);
}

static uint64_t share_bytes(const struct rg_legacy *legacy,
                            const struct rg_legacy_op *op, int rank)
{
    return share_begin(legacy, op, rank + 1) - share_begin(legacy, op, rank);
}

/*
 * 1. Everyone's share i goes to rank i, which reduces it: count bytes sent.
 * 2. Rank i's result goes to everyone: count bytes received.
 */
static int large_all_reduce(struct rg_legacy *legacy,
                            const struct rg_legacy_op *op)
{
    const unsigned char *send = op->send;
    unsigned char *recv = op->recv;
    const uint64_t begin = share_begin(legacy, op, legacy->rank);
    const uint64_t bytes = share_bytes(legacy, op, legacy->rank);
    int rc;

    rg_legacy_exchange_reset(legacy);
    for (int rank = 0; rank < legacy->nranks; rank++)
        if (rank != legacy->rank)
            set_send(legacy, rank, send + share_begin(legacy, op, rank),
                     share_bytes(legacy, op, rank));
    set_reduce(legacy, op, send + begin, recv + begin, bytes);
    rc = rg_legacy_exchange_run(legacy);
    if (rc)
        return rc;
    rg_legacy_exchange_reset(legacy);
    send_all(legacy, recv + begin, bytes);
    for (int rank = 0; rank < legacy->nranks; rank++)
        if (rank != legacy->rank)
            set_recv(legacy, rank, recv + share_begin(legacy, op, rank),
                     share_bytes(legacy, op, rank));
    return rg_legacy_exchange_run(legacy);
}

static int all_reduce(struct rg_legacy *legacy, const struct rg_legacy_op *op)
{
    const uint64_t bytes = block_bytes(op);

    return bytes <= SMALL_BYTES && bytes <= legacy->chunk_bytes
               ? small_all_reduce(legacy, op)
               : large_all_reduce(legacy, op);
}

static void plan_all_gather(struct rg_legacy *legacy,
                            const struct rg_legacy_op *op)
{
    const uint64_t bytes = block_bytes(op);
    unsigned char *recv = op->recv;

    send_all(legacy, op->send, bytes);
    recv_blocks(legacy, recv, bytes);
    copy_own(recv + (uint64_t)legacy->rank * bytes, op->send, bytes);
}

static void plan_reduce_scatter(struct rg_legacy *legacy,
                                const struct rg_legacy_op *op)
{
    const uint64_t bytes = block_bytes(op);
    const unsigned char *send = op->send;

    send_blocks(legacy, send, bytes);
    set_reduce(legacy, op, send + (uint64_t)legacy->rank * bytes, op->recv,
               bytes);
}

static void plan_broadcast(struct rg_legacy *legacy,
                           const struct rg_legacy_op *op)
{
    const uint64_t bytes = block_bytes(op);

    if (op->root != legacy->rank) {
        set_recv(legacy, op->root, op->recv, bytes);
        return;
    }
    send_all(legacy, op->send, bytes);
    copy_own(op->recv, op->send, bytes);
}

static void plan_reduce(struct rg_legacy *legacy, const struct rg_legacy_op *op)
{
    if (op->root == legacy->rank)
        set_reduce(legacy, op, op->send, op->recv, block_bytes(op));
    else
        set_send(legacy, op->root, op->send, block_bytes(op));
}

static void plan_all_to_all(struct rg_legacy *legacy,
                            const struct rg_legacy_op *op)
{
    const uint64_t bytes = block_bytes(op);
    const uint64_t own = (uint64_t)legacy->rank * bytes;
    const unsigned char *send = op->send;
    unsigned char *recv = op->recv;

    send_blocks(legacy, send, bytes);
    recv_blocks(legacy, recv, bytes);
    copy_own(recv + own, send + own, bytes);
}

static void plan_gather(struct rg_legacy *legacy, const struct rg_legacy_op *op)
{
    const uint64_t bytes = block_bytes(op);
    unsigned char *recv = op->recv;

    if (op->root != legacy->rank) {
        set_send(legacy, op->root, op->send, bytes);
        return;
    }
    recv_blocks(legacy, recv, bytes);
    copy_own(recv + (uint64_t)legacy->rank * bytes, op->send, bytes);
}

static void plan_scatter(struct rg_legacy *legacy,
                         const struct rg_legacy_op *op)
{
    const uint64_t bytes = block_bytes(op);
    const unsigned char *send = op->send;

    if (op->root != legacy->rank) {
        set_recv(legacy, op->root, op->recv, bytes);
        return;
    }
    send_blocks(legacy, send, bytes);
    copy_own(op->recv, send + (uint64_t)legacy->rank * bytes, bytes);
}

/* A byte to and from everybody; what it says does not matter. */
static void plan_barrier(struct rg_legacy *legacy,
                         const struct rg_legacy_op *op)
{
    (void)op;
    send_all(legacy, legacy->stage, 1);
    for (int rank = 0; rank < legacy->nranks; rank++)
        if (rank != legacy->rank)
            set_recv(legacy, rank, legacy->stage + 1, 1);
}

int rg_legacy_perform(struct rg_legacy *legacy, const struct rg_legacy_op *op)
{
    static void (*const plans[])(struct rg_legacy *,
                                 const struct rg_legacy_op *) = {
        [RG_COLL_all_gather] = plan_all_gather,
        [RG_COLL_reduce_scatter] = plan_reduce_scatter,
        [RG_COLL_broadcast] = plan_broadcast,
        [RG_COLL_reduce] = plan_reduce,
        [RG_COLL_all_to_all] = plan_all_to_all,
        [RG_COLL_gather] = plan_gather,
        [RG_COLL_scatter] = plan_scatter,
        [RG_COLL_barrier] = plan_barrier,
    };

    if (op->collective != RG_COLL_barrier && !op->count)
        return RG_OK;
    if (op->collective == RG_COLL_all_reduce)
        return all_reduce(legacy, op);
    rg_legacy_exchange_reset(legacy);
    plans[op->collective](legacy, op);
    return rg_legacy_exchange_run(legacy);
}
