#include "runtime/legacy/reduce.h"

#include "runtime/device/num.h"

enum { BLOCK = 512 }; /* elements accumulated at once */

/* Per type: a block of accumulators, source after source; one instance per
 * operation, so that the inner loops are straight. */
#define REDUCE(name, storage, accumulator, more)                               \
    RG_FN void block_##name(enum rg_op op, storage *dst,                       \
                            const unsigned char *const *sources, int n,        \
                            size_t at, size_t count)                           \
    {                                                                          \
        accumulator acc[BLOCK];                                                \
        const storage *from = (const storage *)(const void *)sources[0] + at;  \
                                                                               \
        for (size_t i = 0; i < count; i++)                                     \
            acc[i] = rg_load_##name(from[i]);                                  \
        for (int r = 1; r < n; r++) {                                          \
            from = (const storage *)(const void *)sources[r] + at;             \
            for (size_t i = 0; i < count; i++)                                 \
                acc[i] =                                                       \
                    rg_combine_##name(op, acc[i], rg_load_##name(from[i]));    \
        }                                                                      \
        for (size_t i = 0; i < count; i++)                                     \
            dst[at + i] = rg_store_##name(rg_finish_##name(op, acc[i], n));    \
    }                                                                          \
    RG_FN void all_##name(enum rg_op op, storage *dst,                         \
                          const unsigned char *const *sources, int n,          \
                          size_t count)                                        \
    {                                                                          \
        for (size_t at = 0; at < count; at += BLOCK)                           \
            block_##name(op, dst, sources, n, at,                              \
                         count - at < BLOCK ? count - at : BLOCK);             \
    }                                                                          \
    static void reduce_##name(enum rg_op op, void *dst,                        \
                              const unsigned char *const *sources, int n,      \
                              size_t count)                                    \
    {                                                                          \
        switch (op) {                                                          \
        case RG_prod:                                                          \
            all_##name(RG_prod, (storage *)dst, sources, n, count);            \
            break;                                                             \
        case RG_min:                                                           \
            all_##name(RG_min, (storage *)dst, sources, n, count);             \
            break;                                                             \
        case RG_max:                                                           \
            all_##name(RG_max, (storage *)dst, sources, n, count);             \
            break;                                                             \
        case RG_avg:                                                           \
            all_##name(RG_avg, (storage *)dst, sources, n, count);             \
            break;                                                             \
        default:                                                               \
            all_##name(RG_sum, (storage *)dst, sources, n, count);             \
            break;                                                             \
            more(name, storage)                                                \
        }                                                                      \
    }
#define BITS_CASE(op, name, storage)                                           \
    case RG_##op:                                                              \
        all_##name(RG_##op, (storage *)dst, sources, n, count);                \
        break;
#define BITS(name, storage)                                                    \
    BITS_CASE(band, name, storage)                                             \
    BITS_CASE(bor, name, storage)                                              \
    BITS_CASE(bxor, name, storage)
#define NO_BITS(name, storage)
#define INTEGER(name, storage, accumulator, wide)                              \
    REDUCE(name, storage, accumulator, BITS)
#define FLOAT(name, storage, accumulator, wide)                                \
    REDUCE(name, storage, accumulator, NO_BITS)
RG_NUM_INT_LIST(INTEGER)
RG_NUM_FLOAT_LIST(FLOAT)
#undef FLOAT
#undef INTEGER
#undef NO_BITS
#undef BITS
#undef BITS_CASE
#undef REDUCE

void rg_legacy_reduce(enum rg_dtype dtype, enum rg_op op, void *dst,
                      const unsigned char *const *sources, int n, size_t count)
{
    static void (*const by_type[RG_DTYPE_COUNT])(
        enum rg_op, void *, const unsigned char *const *, int, size_t) = {
#define RG_X(name, bytes) [RG_##name] = reduce_##name,
        RG_DTYPE_REDUCE_LIST(RG_X)
#undef RG_X
    };

    by_type[dtype](op, dst, sources, n, count);
}
