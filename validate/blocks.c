#include "validate/blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "harness/call.h"

enum { POISON = 0xd6, PAGE = 4096 };

/* ---- elements ----------------------------------------------------------- */

/* Small enough that sums over 64 slots are exact in f32. */
static int64_t input(const struct rg_block_call *call, int slot, int block,
                     size_t i)
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
static int64_t held(const struct rg_block_call *call, int64_t value)
{
    return call->dtype == RG_u8 ? value & 0xff : value;
}

static int is_active(const struct rg_blocks *blocks, int slot)
{
    return (int)(blocks->active >> slot & 1);
}

static int64_t reduced(const struct rg_block_call *call, int block, size_t i)
{
    int64_t result = 0;

    for (int slot = 0; slot < call->blocks.slots; slot++) {
        const int64_t value = held(call, input(call, slot, block, i));

        if (!is_active(&call->blocks, slot))
            continue;
        if (call->op == RG_sum)
            result += value;
        else
            result = value > result ? value : result;
    }
    return result;
}

/* ---- blocks ------------------------------------------------------------- */

static size_t block_bytes(const struct rg_block_call *call)
{
    return call->count * rg_dtype_size(call->dtype);
}

/* What a rank has of either that is a root, or where there is none. */
static int sends_blocks(const struct rg_block_call *call)
{
    return rg_call_sends(call->collective, 1) == RG_EXTENT_BLOCKS;
}

static int receives_blocks(const struct rg_block_call *call)
{
    return rg_call_receives(call->collective, 1) == RG_EXTENT_BLOCKS;
}

static int is_root(const struct rg_block_call *call)
{
    return !rg_collective_rooted(call->collective) ||
           call->root == call->blocks.slot;
}

static int sends(const struct rg_block_call *call)
{
    return rg_call_sends(call->collective, is_root(call)) != RG_EXTENT_NOTHING;
}

static int receives(const struct rg_block_call *call)
{
    return rg_call_receives(call->collective, is_root(call)) !=
           RG_EXTENT_NOTHING;
}

/* Elements from one slot to another: all_to_all_v sends more or less of a
 * block, or nothing. */
static size_t moved(const struct rg_block_call *call, int from, int to)
{
    const uint32_t pair = (uint32_t)(from * 64 + to + 1) * 2654435761u;

    if (call->collective != RG_COLL_all_to_all_v)
        return call->count;
    return pair >> 16 & 3 ? (pair >> 18) % (call->count + 1) : 0;
}

/* Where the call's pointers point, in place to a block of the larger one. */
static size_t send_at(const struct rg_block_call *call)
{
    return call->in_place && receives_blocks(call)
               ? (size_t)call->blocks.slot * block_bytes(call)
               : 0;
}

static size_t recv_at(const struct rg_block_call *call)
{
    return call->in_place && sends_blocks(call)
               ? (size_t)call->blocks.slot * block_bytes(call)
               : 0;
}

/* Element i of a block, for what the call sends or should receive. */
typedef int64_t element(const struct rg_block_call *call, int block, size_t i);

/* One block of so many elements. */
static void store_block(const struct rg_block_call *call, unsigned char *to,
                        int block, size_t count, element *value)
{
    const size_t size = rg_dtype_size(call->dtype);

    for (size_t i = 0; i < count; i++)
        store(call->dtype, to + ((size_t)block * call->count + i) * size,
              value(call, block, i));
}

static int64_t sent(const struct rg_block_call *call, int block, size_t i)
{
    return input(call, call->blocks.slot, block, i);
}

/* Also what goes to slots that are not active: nobody is to read it. */
static void fill_send(struct rg_block_call *call)
{
    unsigned char *to = call->send_host + send_at(call);
    const int n = sends_blocks(call) ? call->blocks.slots : 1;

    for (int block = 0; block < n && sends(call); block++)
        store_block(call, to, block, moved(call, call->blocks.slot, block),
                    sent);
}

/* The active slot ahead of the own one. */
static int previous(const struct rg_blocks *blocks)
{
    int slot = blocks->slot;

    do
        slot = (slot + blocks->slots - 1) % blocks->slots;
    while (!is_active(blocks, slot));
    return slot;
}

static int64_t expected(const struct rg_block_call *call, int block, size_t i)
{
    switch (call->collective) {
    case RG_COLL_all_gather:
    case RG_COLL_gather:
        return input(call, block, 0, i);
    case RG_COLL_all_to_all:
    case RG_COLL_all_to_all_v:
        return input(call, block, call->blocks.slot, i);
    case RG_COLL_reduce_scatter:
        return reduced(call, call->blocks.slot, i);
    case RG_COLL_scatter:
        return input(call, call->root, call->blocks.slot, i);
    case RG_COLL_broadcast:
        return input(call, call->root, 0, i);
    case RG_COLL_sendrecv:
        return input(call, previous(&call->blocks), 0, i);
    default:
        return reduced(call, 0, i);
    }
}

/* Blocks of slots that are not active stay poison. */
static void expect_recv(struct rg_block_call *call)
{
    unsigned char *to = call->recv_host + recv_at(call);

    if (!receives(call))
        return;
    if (!receives_blocks(call)) {
        store_block(call, to, 0, call->count, expected);
        return;
    }
    for (int block = 0; block < call->blocks.slots; block++)
        if (is_active(&call->blocks, block))
            store_block(call, to, block, moved(call, block, call->blocks.slot),
                        expected);
}

/* ---- one call ----------------------------------------------------------- */

int rg_block_call_launch(const struct rg_block_call *call)
{
    const struct rg_blocks *b = &call->blocks;
    const struct rg_call launched = {.collective = call->collective,
                                     .send = call->send + send_at(call),
                                     .recv = call->recv + recv_at(call),
                                     .count = call->count,
                                     .dtype = call->dtype,
                                     .op = call->op,
                                     .root = call->root};
    const size_t all = (size_t)b->slots * call->count;

    if (call->collective == RG_COLL_all_to_all_v)
        return rg_all_to_all_v(launched.send, all, launched.recv, all,
                               call->owned[2], call->count, call->dtype,
                               b->comm, b->stream);
    return rg_call_launch(&launched, b->comm, b->stream);
}

static int load(struct rg_block_call *call)
{
    int status;

    memset(call->send_host, POISON, call->room);
    memset(call->recv_host, POISON, call->room);
    fill_send(call);
    status = rg_memcpy(call->blocks.context, call->recv, call->recv_host,
                       call->room);
    return status ? status
                  : rg_memcpy(call->blocks.context, call->send, call->send_host,
                              call->room);
}

int rg_block_call_load(struct rg_block_call *call, uint64_t salt)
{
    call->salt = salt;
    return load(call);
}

/*
 * On the emulated device, which is this host's memory, whoever reads or writes
 * a block of an empty slot is stopped.
 */
static void guard(const struct rg_block_call *call, int protection)
{
    if (call->blocks.device != RG_DEVICE_EMU || block_bytes(call) % PAGE)
        return;
    for (int slot = 0; slot < call->blocks.slots; slot++) {
        const size_t at = (size_t)slot * block_bytes(call);

        if (is_active(&call->blocks, slot))
            continue;
        if (sends_blocks(call))
            mprotect(call->send + at, block_bytes(call), protection);
        if (receives_blocks(call))
            mprotect(call->recv + at, block_bytes(call), protection);
    }
}

/* Launched and committed by all. */
static int complete(const struct rg_block_call *call, struct rg_graph *graph)
{
    const struct rg_blocks *b = &call->blocks;
    struct rg_outcome outcome;
    uint64_t seq;
    int status =
        graph ? rg_graph_launch(graph, b->stream) : rg_block_call_launch(call);

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
static int compare(const struct rg_block_call *call,
                   const unsigned char *device, const unsigned char *wanted,
                   const char *what, char *text, size_t bytes)
{
    unsigned char *got = malloc(call->room);
    int status = got ? rg_memcpy(call->blocks.context, got, device, call->room)
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

static int check_buffers(struct rg_block_call *call, char *text, size_t bytes)
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

int rg_block_call_check(struct rg_block_call *call, uint64_t active, char *text,
                        size_t bytes)
{
    call->blocks.active = active;
    return check_buffers(call, text, bytes);
}

static int run(struct rg_block_call *call, struct rg_graph *graph, char *text,
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

/* Each block in the place of its slot. */
static int take_layout(struct rg_block_call *call)
{
    const int n = call->blocks.slots, me = call->blocks.slot;
    const size_t bytes = 4 * (size_t)n * sizeof(uint64_t);
    uint64_t *layout = malloc(bytes);
    int status = layout == NULL
                     ? RG_ENOMEM
                     : rg_malloc(call->blocks.context, bytes, &call->owned[2]);

    for (int slot = 0; slot < n && status == RG_OK; slot++) {
        layout[slot] = moved(call, me, slot);
        layout[2 * n + slot] = moved(call, slot, me);
        layout[n + slot] = layout[3 * n + slot] = (size_t)slot * call->count;
    }
    if (status == RG_OK)
        status = rg_memcpy(call->blocks.context, call->owned[2], layout, bytes);
    free(layout);
    return status;
}

/* Both buffers, or one for both. */
static int take_memory(struct rg_block_call *call)
{
    struct rg_context *context = call->blocks.context;
    int status;

    call->room = (size_t)call->blocks.slots * block_bytes(call);
    call->send_host = malloc(call->room);
    call->recv_host = call->in_place ? call->send_host : malloc(call->room);
    if (!call->send_host || !call->recv_host)
        return RG_ENOMEM;
    status = take_device(context, call->room, &call->owned[0], &call->send);
    call->recv = call->send;
    if (status == RG_OK && !call->in_place)
        status = take_device(context, call->room, &call->owned[1], &call->recv);
    if (status == RG_OK && call->collective == RG_COLL_all_to_all_v)
        status = take_layout(call);
    return status;
}

void rg_block_call_destroy(struct rg_block_call *call)
{
    for (int i = 0; i < 3; i++)
        if (call->owned[i] != NULL)
            rg_free(call->blocks.context, call->owned[i]);
    if (call->recv_host != call->send_host)
        free(call->recv_host);
    free(call->send_host);
    memset(call, 0, sizeof(*call));
}

int rg_block_call_create(const struct rg_blocks *blocks,
                         struct rg_block_call *call)
{
    int status;

    call->blocks = *blocks;
    memset(call->owned, 0, sizeof(call->owned));
    status = take_memory(call);
    if (status != RG_OK)
        rg_block_call_destroy(call);
    return status;
}

static int check_collective(const struct rg_blocks *blocks,
                            const struct rg_block_call *what, char *text,
                            size_t bytes)
{
    int status = RG_OK;

    for (int in_place = 0; in_place < 2 && status == RG_OK; in_place++) {
        struct rg_block_call call = *what;

        if (in_place && !rg_call_has_inplace(call.collective))
            continue;
        call.in_place = in_place;
        status = rg_block_call_create(blocks, &call);
        call.salt = blocks->seed * 1000003 + call.count * 31 +
                    (uint64_t)call.collective * 2 + (uint64_t)in_place;
        if (status == RG_OK)
            status = run(&call, NULL, text, bytes);
        rg_block_call_destroy(&call);
    }
    return status;
}

/* The first active slot, or the last. */
static int root_of(const struct rg_blocks *blocks, size_t nth)
{
    return nth % 2 ? 63 - __builtin_clzll(blocks->active)
                   : __builtin_ctzll(blocks->active);
}

int rg_blocks_check(const struct rg_blocks *blocks, char *text, size_t bytes)
{
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

    for (int c = 0; c < RG_COLL_COUNT; c++)
        for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
            const struct rg_block_call call = {.collective =
                                                   (enum rg_collective)c,
                                               .dtype = kinds[k].dtype,
                                               .op = kinds[k].op,
                                               .count = kinds[k].count,
                                               .root = root_of(blocks, k)};

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
    struct rg_block_call call = {.blocks = *blocks,
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
