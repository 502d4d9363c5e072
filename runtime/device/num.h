/*
 * Numbers: for each data type its storage, its accumulator, and how two
 * accumulators combine.
 *
 * Integers accumulate in their own type and wrap. f16 (IEEE 754 binary16) and
 * bf16 accumulate in f32; storing rounds to nearest even and keeps NaN.
 * Of an operation on NaN only "the result is NaN for sum, prod, avg" holds.
 */
#ifndef RG_DEVICE_NUM_H
#define RG_DEVICE_NUM_H

#include "runtime/device/dev.h"
#include "runtime/types.h"

/* X(name, storage, accumulator, wide): wide is where integers cannot overflow
 * with undefined behaviour. */
#define RG_NUM_INT_LIST(X)                                                     \
    X(i8, int8_t, int8_t, uint32_t)                                            \
    X(u8, uint8_t, uint8_t, uint32_t)                                          \
    X(i16, int16_t, int16_t, uint32_t)                                         \
    X(u16, uint16_t, uint16_t, uint32_t)                                       \
    X(i32, int32_t, int32_t, uint32_t)                                         \
    X(u32, uint32_t, uint32_t, uint32_t)                                       \
    X(i64, int64_t, int64_t, uint64_t)                                         \
    X(u64, uint64_t, uint64_t, uint64_t)

#define RG_NUM_FLOAT_LIST(X)                                                   \
    X(f16, uint16_t, float, float)                                             \
    X(bf16, uint16_t, float, float)                                            \
    X(f32, float, float, float)                                                \
    X(f64, double, double, double)

#define RG_X(name, storage, accumulator, wide)                                 \
    typedef storage rg_storage_##name;                                         \
    typedef accumulator rg_accum_##name;
RG_NUM_INT_LIST(RG_X)
RG_NUM_FLOAT_LIST(RG_X)
#undef RG_X

RG_FN float rg_float_from_bits(uint32_t bits)
{
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

RG_FN uint32_t rg_bits_from_float(float value)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

RG_FN float rg_load_bf16(uint16_t bits)
{
    return rg_float_from_bits((uint32_t)bits << 16);
}

RG_FN uint16_t rg_store_bf16(float value)
{
    const uint32_t bits = rg_bits_from_float(value);

    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#if RG_ON_CUDA

RG_FN float rg_load_f16(uint16_t bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

RG_FN uint16_t rg_store_f16(float value)
{
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

#else

/* Exponents are moved by a multiplication, which also makes subnormals. */
RG_FN float rg_load_f16(uint16_t bits)
{
    const uint32_t magnitude = (uint32_t)(bits & 0x7fffu) << 13;
    const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    const float scaled =
        rg_float_from_bits(magnitude) * rg_float_from_bits(0x77800000u);
    const uint32_t special =
        magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : 0;

    return rg_float_from_bits((special ? special : rg_bits_from_float(scaled)) |
                              sign);
}

RG_FN uint16_t rg_store_f16(float value)
{
    const uint32_t bits = rg_bits_from_float(value);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    /* Subnormal results: adding 0.5 leaves the rounded value in the low
     * mantissa bits of a number whose unit in the last place is 2^-24. */
    const uint32_t small =
        rg_bits_from_float(rg_float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t normal =
        (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    const uint32_t finite = magnitude < 0x38800000u ? small : normal;
    const uint32_t limited = magnitude >= 0x477ff000u ? 0x7c00u : finite;
    const uint32_t result = magnitude > 0x7f800000u ? 0x7e00u : limited;

    return (uint16_t)(result | sign);
}

#endif

#define RG_X(name, storage, accumulator, wide)                                 \
    RG_FN accumulator rg_load_##name(storage value)                            \
    {                                                                          \
        return value;                                                          \
    }                                                                          \
    RG_FN storage rg_store_##name(accumulator value)                           \
    {                                                                          \
        return value;                                                          \
    }
RG_NUM_INT_LIST(RG_X)
RG_X(f32, float, float, float)
RG_X(f64, double, double, double)
#undef RG_X

/* combine: one step of the operation; avg adds. finish: avg divides by n. */
#define RG_COMBINE(name, accumulator, wide, more)                              \
    RG_FN accumulator rg_combine_##name(enum rg_op op, accumulator a,          \
                                        accumulator b)                         \
    {                                                                          \
        switch (op) {                                                          \
        case RG_prod:                                                          \
            return (accumulator)((wide)a * (wide)b);                           \
        case RG_min:                                                           \
            return b < a ? b : a;                                              \
        case RG_max:                                                           \
            return a < b ? b : a;                                              \
        default:                                                               \
            return (accumulator)((wide)a + (wide)b);                           \
            more(accumulator)                                                  \
        }                                                                      \
    }
#define RG_BITS(accumulator)                                                   \
    case RG_band:                                                              \
        return (accumulator)(a & b);                                           \
    case RG_bor:                                                               \
        return (accumulator)(a | b);                                           \
    case RG_bxor:                                                              \
        return (accumulator)(a ^ b);
#define RG_NO_BITS(accumulator)
#define RG_X(name, storage, accumulator, wide)                                 \
    RG_COMBINE(name, accumulator, wide, RG_BITS)
RG_NUM_INT_LIST(RG_X)
#undef RG_X
#define RG_X(name, storage, accumulator, wide)                                 \
    RG_COMBINE(name, accumulator, wide, RG_NO_BITS)
RG_NUM_FLOAT_LIST(RG_X)
#undef RG_X
#undef RG_BITS
#undef RG_NO_BITS
#undef RG_COMBINE

/* The divisor has the sign and at least the width of the storage. */
#define RG_FINISH(name, accumulator, divisor)                                  \
    RG_FN accumulator rg_finish_##name(enum rg_op op, accumulator value,       \
                                       int n)                                  \
    {                                                                          \
        return op == RG_avg ? (accumulator)(value / (divisor)n) : value;       \
    }
RG_FINISH(i8, int8_t, int32_t)
RG_FINISH(u8, uint8_t, uint32_t)
RG_FINISH(i16, int16_t, int32_t)
RG_FINISH(u16, uint16_t, uint32_t)
RG_FINISH(i32, int32_t, int32_t)
RG_FINISH(u32, uint32_t, uint32_t)
RG_FINISH(i64, int64_t, int64_t)
RG_FINISH(u64, uint64_t, uint64_t)
RG_FINISH(f16, float, float)
RG_FINISH(bf16, float, float)
RG_FINISH(f32, float, float)
RG_FINISH(f64, double, double)
#undef RG_FINISH

#endif
