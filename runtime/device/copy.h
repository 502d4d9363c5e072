/*
 * Team copies. Bytes go from any local pointer to any address this device can
 * store to; the fast path wants both 16-byte aligned, the others work.
 */
#ifndef RG_DEVICE_COPY_H
#define RG_DEVICE_COPY_H

#include "runtime/device/team.h"

struct __attribute__((aligned(16))) rg_vec {
    uint64_t low, high;
};

#if RG_ON_CUDA

/* Data is used once: it takes no place in L1. */
RG_FN struct rg_vec rg_vec_load(const void *from)
{
    struct rg_vec v;
    asm volatile("ld.global.L1::no_allocate.v2.u64 {%0, %1}, [%2];"
                 : "=l"(v.low), "=l"(v.high)
                 : "l"(from)
                 : "memory");
    return v;
}

RG_FN void rg_vec_store(void *to, struct rg_vec v)
{
    asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(v.low),
                 "l"(v.high)
                 : "memory");
}

enum { RG_COPY_UNROLL = 8 };

/* Eight independent loads a thread before the first store. */
RG_FN uint64_t rg_copy_bursts(int thread, int threads, uint8_t *dst,
                              const uint8_t *src, uint64_t vectors)
{
    const uint64_t step = (uint64_t)threads;
    uint64_t i = (uint64_t)thread;
    struct rg_vec v[RG_COPY_UNROLL];

    for (; i + (RG_COPY_UNROLL - 1) * step < vectors;
         i += RG_COPY_UNROLL * step) {
        RG_UNROLLED
        for (int u = 0; u < RG_COPY_UNROLL; u++)
            v[u] = rg_vec_load(src + (i + u * step) * sizeof(struct rg_vec));
        RG_UNROLLED
        for (int u = 0; u < RG_COPY_UNROLL; u++)
            rg_vec_store(dst + (i + u * step) * sizeof(struct rg_vec), v[u]);
    }
    return i;
}

/* `brief`, a constant: no more than a few vectors a thread. */
RG_FN void rg_copy_by(int thread, int threads, const int brief, uint8_t *dst,
                      const uint8_t *src, uint64_t bytes)
{
    const uint64_t align = (uint64_t)dst | (uint64_t)src;
    uint64_t i = (uint64_t)thread, done = 0;

    if (align % sizeof(struct rg_vec) == 0) {
        const uint64_t vectors = bytes / sizeof(struct rg_vec);

        if (!brief)
            i = rg_copy_bursts(thread, threads, dst, src, vectors);
        for (; i < vectors; i += (uint64_t)threads)
            rg_vec_store(dst + i * sizeof(struct rg_vec),
                         rg_vec_load(src + i * sizeof(struct rg_vec)));
        done = vectors * sizeof(struct rg_vec);
    } else if (align % sizeof(uint32_t) == 0) {
        for (; i < bytes / sizeof(uint32_t); i += (uint64_t)threads)
            ((volatile uint32_t *)dst)[i] = ((const uint32_t *)src)[i];
        done = bytes / sizeof(uint32_t) * sizeof(uint32_t);
    }
    for (i = done + (uint64_t)thread; i < bytes; i += (uint64_t)threads)
        ((volatile uint8_t *)dst)[i] = src[i];
}

RG_FN_APART void rg_copy_apart(int thread, int threads, uint8_t *dst,
                               const uint8_t *src, uint64_t bytes)
{
    rg_copy_by(thread, threads, 0, dst, src, bytes);
}

RG_FN void rg_team_copy(const struct rg_team *team, void *dst, const void *src,
                        uint64_t bytes)
{
    if (team->brief)
        rg_copy_by(team->thread, team->threads, 1, (uint8_t *)dst,
                   (const uint8_t *)src, bytes);
    else
        rg_copy_apart(team->thread, team->threads, (uint8_t *)dst,
                      (const uint8_t *)src, bytes);
}

/* Zeroes `bytes`, a multiple of 16, at a 16-byte aligned address. */
RG_FN void rg_team_zero(const struct rg_team *team, void *dst, uint64_t bytes)
{
    const struct rg_vec zero = {0, 0};

    for (uint64_t i = (uint64_t)team->thread; i < bytes / sizeof zero;
         i += (uint64_t)team->threads)
        rg_vec_store((uint8_t *)dst + i * sizeof zero, zero);
}

#else

RG_FN void rg_team_zero(const struct rg_team *team, void *dst, uint64_t bytes)
{
    uint64_t begin, end;

    rg_share(bytes, team->thread, team->threads, &begin, &end);
    __builtin_memset((uint8_t *)dst + begin, 0, end - begin);
}

RG_FN void rg_team_copy(const struct rg_team *team, void *dst, const void *src,
                        uint64_t bytes)
{
    uint64_t begin, end;

    rg_share(bytes, team->thread, team->threads, &begin, &end);
    __builtin_memcpy((uint8_t *)dst + begin, (const uint8_t *)src + begin,
                     end - begin);
}

#endif

#endif
