/*
 * What an algorithm is to the runtime: a name, what it needs, how much
 * workspace it wants, and the entries that run it on each device.
 *
 * An algorithm file holds a device function and ends with RG_ALGO_LAYOUT and
 * RG_ALGO. Compiled alone it gives the descriptor; included by its
 * collective's entry source, which is compiled once per data type and device,
 * it gives the function. The program passes a null-terminated table of
 * descriptors to the context; all algorithms of a collective share `entries`
 * and their order in the table is the index the device's switch uses.
 */
#ifndef RG_ALGO_H
#define RG_ALGO_H

#include <stdint.h>

#include "runtime/types.h"

struct rg_launch;
struct rg_team;

enum rg_algo_flags {
    RG_ALGO_DIRECT = 1 << 0,  /* needs loads and stores to every peer */
    RG_ALGO_PACKETS = 1 << 1, /* can run from the hot line: the small path */
    RG_ALGO_SMALL = 1 << 2    /* its small blocks go by all_reduce's packets */
};

/* What a workspace is laid out for; constant for a communicator. */
struct rg_shape {
    int capacity; /* slots */
    int max_channels;
    uint64_t budget; /* bytes this algorithm may use, per generation */
};

/* What a workspace of that size allows. */
struct rg_limits {
    uint64_t max_bytes; /* largest buffer; UINT64_MAX: any */
    uint64_t max_chunk; /* bytes; 0: the algorithm has no chunks */
    /* What an epoch must find zero: so many bytes at the area's start.
     * RG_ALGO_PACKETS: as many of its slots as are used. */
    uint64_t head;
    /* Bytes of the head that a buffer's byte stands for: it need be zero no
     * further than the largest buffer that is served reaches. 0: all of it. */
    uint64_t head_rate;
};

/* Runs one team's thread on the emulated device. */
typedef void (*rg_emu_entry)(const struct rg_launch *launch,
                             struct rg_team *team);

/* The kernels of one (type, operation) on CUDA: __global__ addresses. */
struct rg_cuda_entry {
    const void *warp;  /* one block of one warp: a unit of packets a thread */
    const void *small; /* one block, sizes up to RG_SMALL_BYTES */
    const void *large;
};

/*
 * Those of one type. Null: not built, as operations that the type does not
 * have, and those of a signed type that have the unsigned type's bits.
 * Collectives that only move data have one, the first, of u8. `bare` is of the
 * sum: rg_all_reduce_bare().
 */
struct rg_emu_entries {
    rg_emu_entry op[RG_OP_COUNT];
    rg_emu_entry bare;
};

struct rg_cuda_entries {
    struct rg_cuda_entry op[RG_OP_COUNT];
    struct rg_cuda_entry bare;
};

/* Per data type; null: not built. */
struct rg_entries {
    const struct rg_emu_entries *emu[RG_DTYPE_COUNT];
    const struct rg_cuda_entries *cuda[RG_DTYPE_COUNT];
};

struct rg_algo {
    const char *name;
    enum rg_collective collective;
    unsigned flags; /* enum rg_algo_flags */
    int min_ranks, max_ranks;
    /* Bytes of workspace for the shape, at most its budget; 0: cannot run. */
    uint64_t (*layout)(const struct rg_shape *shape,
                       struct rg_limits *limits_out);
    const struct rg_entries *entries;
    /*
     * Algorithms that name the same area share it, of whatever collectives they
     * are; their layouts are the same. Null: its own. What an invocation finds
     * there is what the last one of any of them has left, at all ranks alike.
     */
    const char *area;
};

enum {
    RG_SMALL_BYTES = 8192,   /* the small path's largest buffer */
    RG_PACKET_UNITS = 131072 /* packets' largest payload, in 8-byte units */
};

#define RG_ALGO_LAYOUT(symbol)                                                 \
    RG_FN uint64_t symbol##_layout(const struct rg_shape *shape,               \
                                   struct rg_limits *limits_out)

#define RG_ALGO(symbol, name, collective, flags, min_ranks, max_ranks)         \
    RG_ALGO_IN(symbol, name, collective, flags, min_ranks, max_ranks, 0)
#ifdef RG_ENTRY_DTYPE
#define RG_ALGO_IN(symbol, name, collective, flags, min_ranks, max_ranks,      \
                   area)                                                       \
    struct rg_algo_unused
#else
#define RG_ALGO_IN(symbol, name, collective, flags, min_ranks, max_ranks,      \
                   area)                                                       \
    static uint64_t symbol##_layout_host(const struct rg_shape *shape,         \
                                         struct rg_limits *limits_out)         \
    {                                                                          \
        return symbol##_layout(shape, limits_out);                             \
    }                                                                          \
    extern const struct rg_algo rg_algo_##symbol;                              \
    const struct rg_algo rg_algo_##symbol = {                                  \
        name,      collective,           flags,       min_ranks,               \
        max_ranks, symbol##_layout_host, &RG_ENTRIES, area}
#endif

#endif
