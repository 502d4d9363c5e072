/*
 * Team reductions over elements of this translation unit's type.
 *
 * Sources are taken in rank order, so every rank that reduces the same data
 * gets the same bits. dst may be one of the sources (same start), never a
 * partial overlap. A second destination, when not null, gets the same result:
 * that is how a hop forwards what it has just reduced.
 */
#ifndef RG_DEVICE_REDUCE_H
#define RG_DEVICE_REDUCE_H

#include "runtime/device/copy.h"
#include "runtime/device/elem.h"

/* Where each rank's contribution lies: one's own, or in the inbox. */
struct rg_sources {
    const uint8_t *own;
    const uint8_t *inbox; /* peers' blocks, ascending by rank, without own */
    uint64_t stride;      /* bytes between the peers' blocks */
    int rank;             /* own place in the order */
    int count;
};

/* The index of a peer among all others. */
RG_FN int rg_peer_index(int peer, int rank)
{
    return peer < rank ? peer : peer - 1;
}

RG_FN const uint8_t *rg_source(const struct rg_sources *from, int rank)
{
    if (rank == from->rank)
        return from->own;
    return from->inbox +
           from->stride * (uint64_t)rg_peer_index(rank, from->rank);
}

RG_FN rg_elem rg_reduce_at(enum rg_op op, const struct rg_sources *from,
                           uint64_t i, int divide)
{
    rg_accum acc = rg_elem_load(((const rg_elem *)rg_source(from, 0))[i]);

    for (int r = 1; r < from->count; r++)
        acc = rg_elem_combine(
            op, acc, rg_elem_load(((const rg_elem *)rg_source(from, r))[i]));
    return rg_elem_store(divide ? rg_elem_finish(op, acc, divide) : acc);
}

/* ---- vectors of elements ------------------------------------------------- */

enum { RG_VEC_ELEMS = sizeof(struct rg_vec) / sizeof(rg_elem) };

union rg_vec_elems {
    struct rg_vec v;
    rg_elem e[sizeof(struct rg_vec) / sizeof(rg_elem)];
};

struct rg_vec_accum {
    rg_accum a[sizeof(struct rg_vec) / sizeof(rg_elem)];
};

RG_FN void rg_accum_first(struct rg_vec_accum *acc, struct rg_vec v)
{
    union rg_vec_elems x;

    x.v = v;
    RG_UNROLLED
    for (int k = 0; k < RG_VEC_ELEMS; k++)
        acc->a[k] = rg_elem_load(x.e[k]);
}

RG_FN void rg_accum_next(struct rg_vec_accum *acc, enum rg_op op,
                         struct rg_vec v)
{
    union rg_vec_elems x;

    x.v = v;
    RG_UNROLLED
    for (int k = 0; k < RG_VEC_ELEMS; k++)
        acc->a[k] = rg_elem_combine(op, acc->a[k], rg_elem_load(x.e[k]));
}

RG_FN struct rg_vec rg_accum_result(const struct rg_vec_accum *acc,
                                    enum rg_op op, int divide)
{
    union rg_vec_elems x;

    RG_UNROLLED
    for (int k = 0; k < RG_VEC_ELEMS; k++)
        x.e[k] = rg_elem_store(divide ? rg_elem_finish(op, acc->a[k], divide)
                                      : acc->a[k]);
    return x.v;
}

#if RG_ON_CUDA

enum { RG_REDUCE_UNROLL = 4 };

/* `unroll` vectors at i, i + step, ...; two sources load all at once. */
RG_FN void rg_reduce_vectors(const struct rg_team *team, enum rg_op op,
                             uint8_t *dst, uint8_t *dst2,
                             const struct rg_sources *from, uint64_t i,
                             const int unroll, int divide)
{
    const uint64_t step = (uint64_t)team->threads * sizeof(struct rg_vec);
    const uint8_t *first = rg_source(from, 0) + i * sizeof(struct rg_vec);
    const uint8_t *second = rg_source(from, 1) + i * sizeof(struct rg_vec);
    struct rg_vec a[RG_REDUCE_UNROLL], b[RG_REDUCE_UNROLL];
    struct rg_vec_accum acc[RG_REDUCE_UNROLL];

    RG_UNROLLED
    for (int u = 0; u < unroll; u++) {
        a[u] = rg_vec_load(first + u * step);
        b[u] = rg_vec_load(second + u * step);
    }
    RG_UNROLLED
    for (int u = 0; u < unroll; u++) {
        rg_accum_first(&acc[u], a[u]);
        rg_accum_next(&acc[u], op, b[u]);
    }
    for (int r = 2; r < from->count; r++) {
        const uint8_t *next = rg_source(from, r) + i * sizeof(struct rg_vec);
        RG_UNROLLED
        for (int u = 0; u < unroll; u++)
            a[u] = rg_vec_load(next + u * step);
        RG_UNROLLED
        for (int u = 0; u < unroll; u++)
            rg_accum_next(&acc[u], op, a[u]);
    }
    RG_UNROLLED
    for (int u = 0; u < unroll; u++) {
        const struct rg_vec v = rg_accum_result(&acc[u], op, divide);
        const uint64_t at = i * sizeof(struct rg_vec) + u * step;

        rg_vec_store(dst + at, v);
        if (dst2)
            rg_vec_store(dst2 + at, v);
    }
}

RG_FN uint64_t rg_sources_align(const struct rg_sources *from)
{
    return (uint64_t)from->own | (uint64_t)from->inbox | from->stride;
}

/* Elements [0, n) by a thread of so many; `brief` as in copy.h. */
RG_FN void rg_reduce_by(const struct rg_team *team, const int brief,
                        enum rg_op op, uint8_t *dst, uint8_t *dst2,
                        const struct rg_sources *from, uint64_t n, int divide)
{
    const uint64_t align =
        rg_sources_align(from) | (uint64_t)dst | (uint64_t)dst2;
    const uint64_t vectors =
        align % sizeof(struct rg_vec) ? 0 : n / RG_VEC_ELEMS;
    const uint64_t step = (uint64_t)team->threads;
    uint64_t i = (uint64_t)team->thread;

    for (; !brief && i + (RG_REDUCE_UNROLL - 1) * step < vectors;
         i += RG_REDUCE_UNROLL * step)
        rg_reduce_vectors(team, op, dst, dst2, from, i, RG_REDUCE_UNROLL,
                          divide);
    for (; i < vectors; i += step)
        rg_reduce_vectors(team, op, dst, dst2, from, i, 1, divide);
    for (i = vectors * RG_VEC_ELEMS + (uint64_t)team->thread; i < n;
         i += step) {
        const rg_elem value = rg_reduce_at(op, from, i, divide);

        ((rg_elem *)dst)[i] = value;
        if (dst2)
            ((rg_elem *)dst2)[i] = value;
    }
}

#define RG_X(op)                                                               \
    RG_FN_APART void rg_reduce_apart_##op(                                     \
        int thread, int threads, uint8_t *dst, uint8_t *dst2,                  \
        struct rg_sources from, uint64_t n, int divide)                        \
    {                                                                          \
        struct rg_team team = {};                                              \
                                                                               \
        team.thread = thread;                                                  \
        team.threads = threads;                                                \
        rg_reduce_by(&team, 0, RG_##op, dst, dst2, &from, n, divide);          \
    }
RG_BUILT_LIST(RG_X)
#undef RG_X

/* Elements [0, n) of every source, n >= 2 sources. See the file's head. */
RG_FN void rg_team_reduce(const struct rg_team *team, enum rg_op op, void *dst,
                          void *dst2, const struct rg_sources *from, uint64_t n,
                          int divide)
{
    if (team->brief) {
        rg_reduce_by(team, 1, op, (uint8_t *)dst, (uint8_t *)dst2, from, n,
                     divide);
        return;
    }
    switch (op) {
#define RG_X(op)                                                               \
    case RG_##op:                                                              \
        rg_reduce_apart_##op(team->thread, team->threads, (uint8_t *)dst,      \
                             (uint8_t *)dst2, *from, n, divide);               \
        return;
        RG_BUILT_LIST(RG_X)
#undef RG_X
    default:
        RG_TRAP();
    }
}

#else

/* Two sources, one pass: the loop the compiler turns into vectors. */
RG_FN void rg_reduce_two(enum rg_op op, rg_elem *dst, const rg_elem *a,
                         const rg_elem *b, uint64_t n, int divide)
{
    RG_INDEPENDENT
    for (uint64_t i = 0; i < n; i++) {
        const rg_accum acc =
            rg_elem_combine(op, rg_elem_load(a[i]), rg_elem_load(b[i]));

        dst[i] = rg_elem_store(
            op == RG_avg && divide ? rg_elem_finish(op, acc, divide) : acc);
    }
}

RG_FN void rg_reduce_two_forward(enum rg_op op, rg_elem *dst, rg_elem *dst2,
                                 const rg_elem *a, const rg_elem *b, uint64_t n,
                                 int divide)
{
    RG_INDEPENDENT
    for (uint64_t i = 0; i < n; i++) {
        const rg_accum acc =
            rg_elem_combine(op, rg_elem_load(a[i]), rg_elem_load(b[i]));
        const rg_elem value = rg_elem_store(
            op == RG_avg && divide ? rg_elem_finish(op, acc, divide) : acc);

        dst[i] = value;
        dst2[i] = value;
    }
}

enum { RG_REDUCE_BLOCK = 512 }; /* elements accumulated at once */

/* Any number of sources: a block of accumulators, source after source. */
RG_FN void rg_reduce_block(enum rg_op op, rg_elem *dst,
                           const struct rg_sources *from, uint64_t at,
                           uint64_t n, int divide)
{
    rg_accum acc[RG_REDUCE_BLOCK];
    const rg_elem *source = (const rg_elem *)rg_source(from, 0) + at;

    for (uint64_t i = 0; i < n; i++)
        acc[i] = rg_elem_load(source[i]);
    for (int r = 1; r < from->count; r++) {
        source = (const rg_elem *)rg_source(from, r) + at;
        for (uint64_t i = 0; i < n; i++)
            acc[i] = rg_elem_combine(op, acc[i], rg_elem_load(source[i]));
    }
    for (uint64_t i = 0; i < n; i++)
        dst[at + i] = rg_elem_store(op == RG_avg && divide
                                        ? rg_elem_finish(op, acc[i], divide)
                                        : acc[i]);
}

RG_FN void rg_team_reduce_by(const struct rg_team *team, enum rg_op op,
                             void *dst, void *dst2,
                             const struct rg_sources *from, uint64_t n,
                             int divide)
{
    rg_elem *to = (rg_elem *)dst, *to2 = (rg_elem *)dst2;
    const rg_elem *a = (const rg_elem *)rg_source(from, 0);
    const rg_elem *b = (const rg_elem *)rg_source(from, 1);
    uint64_t begin, end, at, block;

    rg_share(n, team->thread, team->threads, &begin, &end);
    if (from->count == 2 && to2) {
        rg_reduce_two_forward(op, to + begin, to2 + begin, a + begin, b + begin,
                              end - begin, divide);
        return;
    }
    if (from->count == 2) {
        rg_reduce_two(op, to + begin, a + begin, b + begin, end - begin,
                      divide);
        return;
    }
    for (at = begin; at < end; at += block) {
        block = end - at < RG_REDUCE_BLOCK ? end - at : RG_REDUCE_BLOCK;
        rg_reduce_block(op, to, from, at, block, divide);
        if (to2)
            __builtin_memcpy(to2 + at, to + at, block * sizeof *to);
    }
}

/* Elements [0, n) of every source, n >= 2 sources. See the file's head. */
RG_FN_SHARED void rg_team_reduce(const struct rg_team *team, enum rg_op op,
                                 void *dst, void *dst2,
                                 const struct rg_sources *from, uint64_t n,
                                 int divide)
{
    switch (op) {
#define RG_X(name)                                                             \
    case RG_##name:                                                            \
        rg_team_reduce_by(team, RG_##name, dst, dst2, from, n, divide);        \
        break;
        RG_BUILT_LIST(RG_X)
#undef RG_X
    default:
        /* Not built for the type: the dispatch has given it to another. */
        RG_TRAP();
    }
}

#endif

#endif
