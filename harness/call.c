#include "harness/call.h"

/* ---- all_to_all_v ------------------------------------------------------- */

/* The finaliser of splitmix64 (Steele, Lea, Flood). */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

size_t rg_spread_count(const struct rg_spread *spread, int from, int to)
{
    const uint64_t pair = (uint64_t)from << 32 | (uint64_t)to;
    const uint64_t random = mix(mix(spread->seed) + pair + 1);

    return random % 4 == 0 ? 0 : (size_t)(random / 4 % (spread->most + 1));
}

size_t rg_spread_sent(const struct rg_spread *spread, int from, int to)
{
    size_t sum = 0;

    for (int other = 0; other < to; other++)
        sum += rg_spread_count(spread, from, other);
    return sum;
}

size_t rg_spread_received(const struct rg_spread *spread, int from, int to)
{
    size_t sum = 0;

    for (int other = 0; other < from; other++)
        sum += rg_spread_count(spread, other, to);
    return sum;
}

void rg_spread_layout(const struct rg_spread *spread, uint64_t *layout_out)
{
    const int n = spread->nranks, me = spread->rank;

    for (int other = 0; other < n; other++) {
        layout_out[other] = rg_spread_count(spread, me, other);
        layout_out[n + other] = rg_spread_sent(spread, me, other);
        layout_out[2 * n + other] = rg_spread_count(spread, other, me);
        layout_out[3 * n + other] = rg_spread_received(spread, other, me);
    }
}

/* The most that a rank sends or receives. */
static size_t spread_most(const struct rg_spread *spread)
{
    const int n = spread->nranks;
    size_t most = 0;

    for (int rank = 0; rank < n; rank++) {
        const size_t sent = rg_spread_sent(spread, rank, n);
        const size_t received = rg_spread_received(spread, n, rank);

        most = sent > most ? sent : most;
        most = received > most ? received : most;
    }
    return most;
}

/* ---- what buffers hold -------------------------------------------------- */

struct holds {
    unsigned char send, recv;               /* at the root, or at all */
    unsigned char others_send, others_recv; /* where there is a root */
};

static struct holds holds_of(enum rg_collective collective)
{
    enum { NOTHING = RG_EXTENT_NOTHING };
    enum { ONE = RG_EXTENT_BLOCK, ALL = RG_EXTENT_BLOCKS };

    switch (collective) {
    case RG_COLL_all_reduce:
    case RG_COLL_sendrecv:
        return (struct holds){ONE, ONE, ONE, ONE};
    case RG_COLL_all_gather:
        return (struct holds){ONE, ALL, ONE, ALL};
    case RG_COLL_reduce_scatter:
        return (struct holds){ALL, ONE, ALL, ONE};
    case RG_COLL_broadcast:
        return (struct holds){ONE, ONE, NOTHING, ONE};
    case RG_COLL_reduce:
        return (struct holds){ONE, ONE, ONE, NOTHING};
    case RG_COLL_all_to_all:
    case RG_COLL_all_to_all_v:
        return (struct holds){ALL, ALL, ALL, ALL};
    case RG_COLL_gather:
        return (struct holds){ONE, ALL, ONE, NOTHING};
    case RG_COLL_scatter:
        return (struct holds){ALL, ONE, NOTHING, ONE};
    default:
        return (struct holds){NOTHING, NOTHING, NOTHING, NOTHING};
    }
}

enum rg_extent rg_call_sends(enum rg_collective collective, int at_root)
{
    const struct holds holds = holds_of(collective);

    return (enum rg_extent)(at_root ? holds.send : holds.others_send);
}

enum rg_extent rg_call_receives(enum rg_collective collective, int at_root)
{
    const struct holds holds = holds_of(collective);

    return (enum rg_extent)(at_root ? holds.recv : holds.others_recv);
}

int rg_call_blocks(enum rg_collective collective, int nranks)
{
    const struct holds holds = holds_of(collective);
    const int most = holds.send > holds.recv ? holds.send : holds.recv;

    return most == RG_EXTENT_BLOCKS ? nranks : most;
}

int rg_call_is_served(enum rg_collective collective, enum rg_backend backend)
{
    return backend != RG_BACKEND_LEGACY ||
           (collective != RG_COLL_all_to_all_v &&
            collective != RG_COLL_sendrecv);
}

int rg_call_has_inplace(enum rg_collective collective)
{
    return collective != RG_COLL_all_to_all &&
           collective != RG_COLL_all_to_all_v &&
           collective != RG_COLL_sendrecv && collective != RG_COLL_barrier;
}

size_t rg_call_count(enum rg_collective collective, size_t bytes,
                     enum rg_dtype dtype, int nranks)
{
    const int blocks = rg_call_blocks(collective, nranks);

    return blocks ? bytes / rg_dtype_size(dtype) / (size_t)blocks : 0;
}

size_t rg_call_bytes(enum rg_collective collective, size_t count,
                     enum rg_dtype dtype, int nranks, uint64_t seed)
{
    const struct rg_spread spread = {seed, count, nranks, 0};
    const size_t blocks = (size_t)rg_call_blocks(collective, nranks);

    return rg_dtype_size(dtype) * (collective == RG_COLL_all_to_all_v
                                       ? spread_most(&spread)
                                       : blocks * count);
}

size_t rg_call_send_offset(enum rg_collective collective, size_t count,
                           int rank)
{
    const struct holds holds = holds_of(collective);

    return holds.send < holds.recv ? count * (size_t)rank : 0;
}

size_t rg_call_recv_offset(enum rg_collective collective, size_t count,
                           int rank)
{
    const struct holds holds = holds_of(collective);

    return holds.recv < holds.send ? count * (size_t)rank : 0;
}
