#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "validate/selection.h"

enum { POISON = 0xd6, PAGE = 4096 };

/* One call: what goes in, and what must come out. */
struct call {
    const struct rg_blocks *blocks;
    enum rg_collective collective;
    enum rg_dtype dtype;
    enum rg_op op;
    int in_place;
    size_t count; /* elements of a block */
    int root;
    uint64_t salt;
    /* Either buffer has room for a block a slot; in place they are one. */
    unsigned char *send, *recv;           /* device memory, */
    void *owned[2];                       /* in these blocks */
    unsigned char *send_host, *recv_host; /* as loaded, then as expected */
    size_t room;
};

/* ---- elements ----------------------------------------------------------- */

/* Small enough that sums over 64 slots are exact in f32. */
static int64_t input(const struct call *call, int slot, int block, size_t i)
{
    const uint32_t mixed = ((uint32_t)call->salt ^ (uint32_t)i) * 2654435761u +
                           (uint32_t)(slot + 1) * 2246822519u +
                           (uint32_t)block * 3266489917u;

    return (mixed ^ mixed >> 15) & 0xffff;
}

static void store(enum rg_dtype dtype, unsigned char *at, int64_t value)
{
    const uint8_t u8 = (uint8_t)value;
    const uint32_t u32 = (uint32_t)value;
    const float f32 = (float)value;
    const double f64 = (double)value;

    if (dtype == RG_u8)
        memcpy(at, &u8, sizeof(u8));
    else if (dtype == RG_u32)
        memcpy(at, &u32, sizeof(u32));
    else if (dtype == RG_f32)
        memcpy(at, &f32, sizeof(f32));
    else if (dtype == RG_f64)
        memcpy(at, &f64, sizeof(f64));
    else
        memcpy(at, &value, sizeof(value));
}

/* As the type holds it: u8 is cut before it is reduced. */
static int64_t held(const struct call *call, int64_t value)
{
    return call->dtype == RG_u8 ? value & 0xff : value;
}

static int is_active(const struct rg_blocks *blocks, int slot)
{
    return (int)(blocks->active >> slot & 1);
}

static int64_t reduced(const struct call *call, int block, size_t i)
{
    int64_t result = 0;

    for (int slot = 0; slot < call->blocks->slots; slot++) {
        const int64_t value = held(call, input(call, slot, block, i));

        if (!is_active(call->blocks, slot))
            continue;
        if (call->op == RG_sum)
            result += value;
        else
            result = value > result ? value : result;
    }
    return result;
}

/* ---- blocks ------------------------------------------------------------- */

static size_t block_bytes(const struct call *call)
{
    return call->count * rg_dtype_size(call->dtype);
}

static int sends_blocks(const struct call *call)
{
    return call->collective == RG_COLL_reduce_scatter ||
           call->collective == RG_COLL_all_to_all;
}

static int receives_blocks(const struct call *call)
{
    return call->collective == RG_COLL_all_gather ||
           call->collective == RG_COLL_all_to_all;
}

/* Where the call's pointers point, in place to a block of the larger one. */
static size_t send_at(const struct call *call)
{
    return call->in_place && receives_blocks(call)
               ? (size_t)call->blocks->slot * block_bytes(call)
               : 0;
}

static size_t recv_at(const struct call *call)
{
    return call->in_place && sends_blocks(call)
               ? (size_t)call->blocks->slot * block_bytes(call)
               : 0;
}

/* Element i of a block, for what the call sends or should receive. */
typedef int64_t element(const struct call *call, int block, size_t i);

/* Blocks of slots that are not active stay poison. */
static void store_blocks(const struct call *call, unsigned char *to, int n,
                         element *value)
{
    const size_t size = rg_dtype_size(call->dtype);

    for (int block = 0; block < n; block++)
        for (size_t i = 0; i < call->count; i++)
            if (n == 1 || is_active(call->blocks, block))
                store(call->dtype,
                      to + ((size_t)block * call->count + i) * size,
                      value(call, block, i));
}

static int64_t sent(const struct call *call, int block, size_t i)
{
    return input(call, call->blocks->slot, block, i);
}

static void fill_send(struct call *call)
{
    store_blocks(call, call->send_host + send_at(call),
                 sends_blocks(call) ? call->blocks->slots : 1, sent);
}

static int64_t expected(const struct call *call, int block, size_t i)
{
    switch (call->collective) {
    case RG_COLL_all_gather:
        return input(call, block, 0, i);
    case RG_COLL_all_to_all:
        return input(call, block, call->blocks->slot, i);
    case RG_COLL_reduce_scatter:
        return reduced(call, call->blocks->slot, i);
    case RG_COLL_broadcast:
        return input(call, call->root, 0, i);
    default:
        return reduced(call, 0, i);
    }
}

static void expect_recv(struct call *call)
{
    store_blocks(call, call->recv_host + recv_at(call),
                 receives_blocks(call) ? call->blocks->slots : 1, expected);
}

/* ---- one call ----------------------------------------------------------- */

static int launch(const struct call *call)
{
    const struct rg_blocks *b = call->blocks;
    const void *send = call->send + send_at(call);
    void *recv = call->recv + recv_at(call);

    switch (call->collective) {
    case RG_COLL_all_reduce:
        return rg_all_reduce(send, recv, call->count, call->dtype, call->op,
                             b->comm, b->stream);
    case RG_COLL_all_gather:
        return rg_all_gather(send, recv, call->count, call->dtype, b->comm,
                             b->stream);
    case RG_COLL_reduce_scatter:
        return rg_reduce_scatter(send, recv, call->count, call->dtype, call->op,
                                 b->comm, b->stream);
    case RG_COLL_all_to_all:
        return rg_all_to_all(send, recv, call->count, call->dtype, b->comm,
                             b->stream);
    case RG_COLL_broadcast:
        return rg_broadcast(send, recv, call->count, call->dtype, call->root,
                            b->comm, b->stream);
    default:
        return rg_barrier(b->comm, b->stream);
    }
}

static int load(struct call *call)
{
    int status;

    memset(call->send_host, POISON, call->room);
    memset(call->recv_host, POISON, call->room);
    fill_send(call);
    status = rg_memcpy(call->blocks->context, call->recv, call->recv_host,
                       call->room);
    return status ? status
                  : rg_memcpy(call->blocks->context, call->send,
                              call->send_host, call->room);
}

/*
 * On the emulated device, which is this host's memory, whoever reads or writes
 * a block of an empty slot is stopped.
 */
static void guard(const struct call *call, int protection)
{
    if (call->blocks->device != RG_DEVICE_EMU || block_bytes(call) % PAGE)
        return;
    for (int slot = 0; slot < call->blocks->slots; slot++) {
        const size_t at = (size_t)slot * block_bytes(call);

        if (is_active(call->blocks, slot))
            continue;
        if (sends_blocks(call))
            mprotect(call->send + at, block_bytes(call), protection);
        if (receives_blocks(call))
            mprotect(call->recv + at, block_bytes(call), protection);
    }
}

/* Launched and committed by all. */
static int complete(const struct call *call, struct rg_graph *graph)
{
    const struct rg_blocks *b = call->blocks;
    struct rg_outcome outcome;
    uint64_t seq;
    int status = graph ? rg_graph_launch(graph, b->stream) : launch(call);

    if (status == RG_OK)
        status = rg_stream_synchronize(b->stream);
    if (status == RG_OK)
        status = rg_comm_seq(b->comm, &seq);
    if (status == RG_OK)
        status = rg_comm_wait(b->comm, seq, &outcome);
    if (status == RG_OK && outcome.state != RG_OUTCOME_COMMITTED)
        status = RG_EABORTED;
    return status == RG_OK ? rg_comm_error(b->comm) : status;
}

/* The whole of a buffer, with what lies around the output. */
static int compare(const struct call *call, const unsigned char *device,
                   const unsigned char *wanted, const char *what, char *text,
                   size_t bytes)
{
    unsigned char *got = malloc(call->room);
    int status = got ? rg_memcpy(call->blocks->context, got, device, call->room)
                     : RG_ENOMEM;

    for (size_t i = 0; status == RG_OK && i < call->room; i++)
        if (got[i] != wanted[i]) {
            snprintf(text, bytes,
                     "%s of %zu %s%s: byte %zu of the %s is %#x, not %#x",
                     rg_collective_name(call->collective), call->count,
                     rg_dtype_name(call->dtype),
                     call->in_place ? " in place" : "", i, what, got[i],
                     wanted[i]);
            status = RG_EPROTO;
        }
    free(got);
    return status;
}

static int check_buffers(struct call *call, char *text, size_t bytes)
{
    int status;

    if (call->collective != RG_COLL_barrier)
        expect_recv(call);
    status = compare(call, call->recv, call->recv_host, "output", text, bytes);
    if (status == RG_OK && !call->in_place)
        status =
            compare(call, call->send, call->send_host, "input", text, bytes);
    return status;
}

static int run(struct call *call, struct rg_graph *graph, char *text,
               size_t bytes)
{
    int status = load(call);

    guard(call, PROT_NONE);
    if (status == RG_OK)
        status = complete(call, graph);
    guard(call, PROT_READ | PROT_WRITE);
    if (status == RG_ENOTSUP && call->collective != RG_COLL_all_reduce)
        return RG_OK;
    if (status == RG_OK)
        return check_buffers(call, text, bytes);
    snprintf(text, bytes, "%s of %zu %s%s: %s",
             rg_collective_name(call->collective), call->count,
             rg_dtype_name(call->dtype), call->in_place ? " in place" : "",
             rg_status_string(status));
    return status;
}

/* ---- several ------------------------------------------------------------ */

/* Device memory from the begin of a page on. */
static int take_device(struct rg_context *context, size_t bytes,
                       void **owned_out, unsigned char **at_out)
{
    int status = rg_malloc(context, bytes + PAGE, owned_out);

    if (status == RG_OK)
        *at_out = (unsigned char *)*owned_out +
                  (PAGE - (uintptr_t)*owned_out % PAGE) % PAGE;
    return status;
}

/* Both buffers, or one for both. */
static int take_memory(struct call *call)
{
    struct rg_context *context = call->blocks->context;
    int status;

    call->owned[0] = call->owned[1] = NULL;
    call->room = (size_t)call->blocks->slots * block_bytes(call);
    call->send_host = malloc(call->room);
    call->recv_host = call->in_place ? call->send_host : malloc(call->room);
    if (!call->send_host || !call->recv_host)
        return RG_ENOMEM;
    status = take_device(context, call->room, &call->owned[0], &call->send);
    call->recv = call->send;
    if (status == RG_OK && !call->in_place)
        status = take_device(context, call->room, &call->owned[1], &call->recv);
    return status;
}

static void give_memory(struct call *call)
{
    for (int i = 0; i < 2; i++)
        rg_free(call->blocks->context, call->owned[i]);
    if (!call->in_place)
        free(call->recv_host);
    free(call->send_host);
}

static int lowest(uint64_t active)
{
    return __builtin_ctzll(active);
}

static int check_collective(const struct rg_blocks *blocks, struct call *call,
                            char *text, size_t bytes)
{
    int status = RG_OK;

    for (int in_place = 0; in_place < 2 && status == RG_OK; in_place++) {
        if (in_place && (call->collective == RG_COLL_all_to_all ||
                         call->collective == RG_COLL_barrier))
            continue;
        call->in_place = in_place;
        call->salt = blocks->seed * 1000003 + call->count * 31 +
                     (uint64_t)call->collective * 2 + (uint64_t)in_place;
        status = take_memory(call);
        if (status == RG_OK)
            status = run(call, NULL, text, bytes);
        give_memory(call);
    }
    return status;
}

int rg_blocks_check(const struct rg_blocks *blocks, char *text, size_t bytes)
{
    static const enum rg_collective collectives[] = {
        RG_COLL_all_reduce, RG_COLL_all_gather, RG_COLL_reduce_scatter,
        RG_COLL_broadcast,  RG_COLL_all_to_all, RG_COLL_barrier};
    /* The last is whole pages: blocks of empty slots are guarded. */
    static const struct {
        size_t count;
        enum rg_dtype dtype;
        enum rg_op op;
    } kinds[] = {{1, RG_f32, RG_sum},
                 {7, RG_u8, RG_max},
                 {1001, RG_i64, RG_sum},
                 {65537, RG_f32, RG_sum},
                 {8192, RG_f64, RG_max}};
    int status = RG_OK;

    for (size_t c = 0; c < sizeof(collectives) / sizeof(*collectives); c++)
        for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
            struct call call = {.blocks = blocks,
                                .collective = collectives[c],
                                .dtype = kinds[k].dtype,
                                .op = kinds[k].op,
                                .count = kinds[k].count,
                                .root = lowest(blocks->active)};

            status = check_collective(blocks, &call, text, bytes);
            if (status != RG_OK)
                return status;
        }
    return RG_OK;
}

int rg_blocks_reduce(const struct rg_blocks *blocks, uint32_t *send,
                     uint32_t *recv, size_t count, struct rg_graph *graph,
                     char *text, size_t bytes)
{
    struct call call = {.blocks = blocks,
                        .collective = RG_COLL_all_reduce,
                        .dtype = RG_u32,
                        .op = RG_sum,
                        .count = count,
                        .salt = blocks->seed,
                        .send = (unsigned char *)send,
                        .recv = (unsigned char *)recv};
    int status = RG_ENOMEM;

    call.room = block_bytes(&call);
    call.send_host = malloc(call.room);
    call.recv_host = malloc(call.room);
    if (call.send_host && call.recv_host)
        status = run(&call, graph, text, bytes);
    free(call.send_host);
    free(call.recv_host);
    return status;
}
