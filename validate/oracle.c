#include "validate/oracle.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum kind { SIGNED, UNSIGNED, FLOATING };

/* IEEE 754 parameters: a sign, `exponent` bits, `fraction` bits. */
struct format {
    unsigned bits;
    enum kind kind;
    int exponent;
    int fraction;
};

static const struct format formats[RG_DTYPE_COUNT] = {
    [RG_i8] = {8, SIGNED, 0, 0},
    [RG_u8] = {8, UNSIGNED, 0, 0},
    [RG_i16] = {16, SIGNED, 0, 0},
    [RG_u16] = {16, UNSIGNED, 0, 0},
    [RG_i32] = {32, SIGNED, 0, 0},
    [RG_u32] = {32, UNSIGNED, 0, 0},
    [RG_i64] = {64, SIGNED, 0, 0},
    [RG_u64] = {64, UNSIGNED, 0, 0},
    [RG_f16] = {16, FLOATING, 5, 10},
    [RG_bf16] = {16, FLOATING, 8, 7},
    [RG_f32] = {32, FLOATING, 8, 23},
    [RG_f64] = {64, FLOATING, 11, 52},
    /* Only moved: bits. */
    [RG_f8e4m3] = {8, UNSIGNED, 0, 0},
    [RG_f8e5m2] = {8, UNSIGNED, 0, 0},
};

/* ---- types -------------------------------------------------------------- */

static uint64_t low_bits(unsigned count)
{
    return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static int exponent_bias(const struct format *f)
{
    return (1 << (f->exponent - 1)) - 1;
}

static uint64_t sign_bit(const struct format *f)
{
    return UINT64_C(1) << (f->bits - 1);
}

static uint64_t infinity_bits(const struct format *f)
{
    return low_bits((unsigned)f->exponent) << f->fraction;
}

enum rg_dtype rg_oracle_moved(enum rg_dtype dtype)
{
    switch (formats[dtype].bits) {
    case 8:
        return RG_u8;
    case 16:
        return RG_u16;
    case 32:
        return RG_u32;
    default:
        return RG_u64;
    }
}

size_t rg_oracle_size(enum rg_dtype dtype)
{
    return formats[dtype].bits / 8;
}

/* Two's complement to the 64-bit number. */
static int64_t sign_extend(const struct format *f, uint64_t bits)
{
    uint64_t sign = sign_bit(f);

    return (int64_t)((bits ^ sign) - sign);
}

/* A normal number; written as a double's bits because that is quick. */
static double normal_decode(const struct format *f, int field,
                            uint64_t fraction)
{
    const struct format *wide = &formats[RG_f64];
    uint64_t exponent =
        (uint64_t)(field - exponent_bias(f) + exponent_bias(wide));
    uint64_t bits =
        exponent << wide->fraction | fraction << (wide->fraction - f->fraction);
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static long double float_decode(const struct format *f, uint64_t bits)
{
    uint64_t fraction = bits & low_bits((unsigned)f->fraction);
    int field = (int)((bits & infinity_bits(f)) >> f->fraction);
    long double value;

    if (field == (int)low_bits((unsigned)f->exponent))
        value = fraction ? NAN : INFINITY;
    else if (field == 0)
        value = ldexpl(fraction, 1 - exponent_bias(f) - f->fraction);
    else
        value = normal_decode(f, field, fraction);
    return bits & sign_bit(f) ? -value : value;
}

long double rg_oracle_decode(enum rg_dtype dtype, uint64_t bits)
{
    const struct format *f = &formats[dtype];

    if (f->kind == FLOATING)
        return float_decode(f, bits);
    if (f->kind == SIGNED)
        return sign_extend(f, bits);
    return bits;
}

/*
 * The magnitude is counted in units of the last place of its binade: rintl()
 * rounds to nearest even. A count that reaches the next binade, or the first
 * normal number, carries into the exponent field by plain addition.
 */
static uint64_t magnitude_encode(const struct format *f, long double value)
{
    int least = 1 - exponent_bias(f);
    int exponent;
    uint64_t units;
    uint64_t bits;

    if (value == 0)
        return 0;
    if (isinf(value))
        return infinity_bits(f);
    exponent = ilogbl(value);
    if (exponent > exponent_bias(f))
        return infinity_bits(f);
    if (exponent < least)
        exponent = least;
    units = (uint64_t)rintl(ldexpl(value, f->fraction - exponent));
    bits = units + ((uint64_t)(exponent - least) << f->fraction);
    return bits < infinity_bits(f) ? bits : infinity_bits(f);
}

uint64_t rg_oracle_encode(enum rg_dtype dtype, long double value)
{
    const struct format *f = &formats[dtype];
    uint64_t bits;

    if (isnan(value))
        return infinity_bits(f) | (UINT64_C(1) << (f->fraction - 1));
    bits = magnitude_encode(f, fabsl(value));
    return signbit(value) ? bits | sign_bit(f) : bits;
}

void rg_oracle_format(enum rg_dtype dtype, uint64_t bits, char *text,
                      size_t bytes)
{
    const struct format *f = &formats[dtype];

    if (f->kind == FLOATING)
        snprintf(text, bytes, "0x%0*" PRIx64 " (%.17Lg)", (int)f->bits / 4,
                 bits, float_decode(f, bits));
    else if (f->kind == SIGNED)
        snprintf(text, bytes, "0x%0*" PRIx64 " (%" PRId64 ")", (int)f->bits / 4,
                 bits, sign_extend(f, bits));
    else
        snprintf(text, bytes, "0x%0*" PRIx64 " (%" PRIu64 ")", (int)f->bits / 4,
                 bits, bits);
}

uint64_t rg_oracle_load(enum rg_dtype dtype, const void *array, size_t index)
{
    size_t bytes = formats[dtype].bits / 8;
    const unsigned char *at = (const unsigned char *)array + index * bytes;
    uint64_t bits = 0;

    for (size_t i = 0; i < bytes; i++)
        bits |= (uint64_t)at[i] << (8 * i);
    return bits;
}

void rg_oracle_store(enum rg_dtype dtype, void *array, size_t index,
                     uint64_t bits)
{
    size_t bytes = formats[dtype].bits / 8;
    unsigned char *at = (unsigned char *)array + index * bytes;

    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(bits >> (8 * i));
}

/* ---- inputs ------------------------------------------------------------- */

/* The finaliser of splitmix64 (Steele, Lea, Flood): a bijection that mixes. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Random bits of an element; rank -1: the same at every rank. */
static uint64_t random_at(const struct rg_oracle *oracle, int rank,
                          size_t index)
{
    uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

    return mix(mix(oracle->seed + golden * (uint64_t)(rank + 2)) +
               golden * (uint64_t)index);
}

/* Uniform in [-limit, limit]. */
static int64_t random_within(uint64_t random, int64_t limit)
{
    return (int64_t)(random % (uint64_t)(2 * limit + 1)) - limit;
}

/*
 * Multipliers of the unit whose sum over ranks still fits the significand, so
 * that any partial sum is exact. One unit is kept back for the last rank of an
 * average, which moves its own by less than nranks to make the sum divisible.
 */
static int64_t exact_limit(const struct rg_oracle *oracle,
                           const struct format *f)
{
    int digits = f->fraction + 1 < 24 ? f->fraction + 1 : 24;

    return (INT64_C(1) << digits) / oracle->nranks - 1;
}

static int64_t exact_multiplier(const struct rg_oracle *oracle,
                                const struct format *f, int rank, size_t index)
{
    int64_t limit = exact_limit(oracle, f);
    int64_t own = random_within(random_at(oracle, rank, index), limit);
    int64_t sum = own;

    if (oracle->op != RG_avg || rank != oracle->nranks - 1)
        return own;
    for (int other = 0; other < rank; other++)
        sum += random_within(random_at(oracle, other, index), limit);
    return own - sum % oracle->nranks;
}

static uint64_t compose(const struct format *f, int negative, int exponent,
                        uint64_t fraction)
{
    return (negative ? sign_bit(f) : 0) |
           (uint64_t)(exponent + exponent_bias(f)) << f->fraction |
           (fraction & low_bits((unsigned)f->fraction));
}

/* A multiplier, at most a significand long, of a unit from 1/4 to 4. */
static uint64_t exact_term(const struct rg_oracle *oracle,
                           const struct format *f, int rank, size_t index)
{
    int unit = (int)(random_at(oracle, -1, index) % 5) - 2;
    int64_t multiplier = exact_multiplier(oracle, f, rank, index);
    uint64_t magnitude = (uint64_t)(multiplier < 0 ? -multiplier : multiplier);
    int binade;

    if (magnitude == 0)
        return 0;
    binade = 63 - __builtin_clzll(magnitude);
    return compose(f, multiplier < 0, binade + unit,
                   magnitude << (f->fraction - binade));
}

/* +-1/2, +-1, +-2: 14 of them fit f16's exponents, more are +-1. */
static uint64_t exact_factor(const struct rg_oracle *oracle,
                             const struct format *f, uint64_t random)
{
    int exponent = oracle->nranks <= 14 ? (int)(random >> 8) % 3 - 1 : 0;

    return compose(f, random & 1, exponent, 0);
}

/* A full significand, magnitude in [1/2, 2) for factors, [1/8, 8) else. */
static uint64_t rough_value(const struct rg_oracle *oracle,
                            const struct format *f, uint64_t random)
{
    int steps = oracle->op == RG_prod ? 2 : 6;
    int exponent = (int)((random >> 1) % (uint64_t)steps) - steps / 2;

    return compose(f, random & 1, exponent, random >> 12);
}

/* Any finite value or infinity; a NaN's or negative zero's bits are moved. */
static uint64_t ordered_bits(const struct format *f, uint64_t random)
{
    uint64_t bits = random & low_bits(f->bits);

    if ((bits & ~sign_bit(f)) > infinity_bits(f))
        bits &= ~(UINT64_C(1) << f->fraction);
    return bits == sign_bit(f) ? 0 : bits;
}

/* Odd factors: no product fades to zero. Of eight bits, one is not neutral to
 * and, or to or. */
static uint64_t integer_input(const struct rg_oracle *oracle, uint64_t random)
{
    const uint64_t sparse = random & mix(random) & mix(~random);

    switch (oracle->op) {
    case RG_prod:
        return random | 1;
    case RG_band:
        return ~sparse;
    case RG_bor:
        return sparse;
    default:
        return random;
    }
}

uint64_t rg_oracle_input(const struct rg_oracle *oracle, int rank, size_t index)
{
    const struct format *f = &formats[oracle->dtype];
    uint64_t random = random_at(oracle, rank, index);

    if (f->kind != FLOATING)
        return integer_input(oracle, random) & low_bits(f->bits);
    if (oracle->op == RG_min || oracle->op == RG_max)
        return ordered_bits(f, random);
    if (oracle->inputs == RG_INPUTS_ROUGH)
        return rough_value(oracle, f, random);
    if (oracle->op == RG_prod)
        return exact_factor(oracle, f, random);
    return exact_term(oracle, f, rank, index);
}

void rg_oracle_fill(const struct rg_oracle *oracle, int rank, size_t first,
                    void *array, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rg_oracle_store(oracle->dtype, array, i,
                        rg_oracle_input(oracle, rank, first + i));
}

/* ---- results ------------------------------------------------------------ */

static uint64_t integer_divide(const struct format *f, uint64_t sum, int by)
{
    if (f->kind == SIGNED)
        return (uint64_t)(sign_extend(f, sum) / by);
    return sum / (uint64_t)by;
}

static int integer_less(const struct format *f, uint64_t a, uint64_t b)
{
    if (f->kind == SIGNED)
        return sign_extend(f, a) < sign_extend(f, b);
    return a < b;
}

static uint64_t integer_step(const struct format *f, enum rg_op op, uint64_t a,
                             uint64_t b)
{
    switch (op) {
    case RG_prod:
        return (a * b) & low_bits(f->bits);
    case RG_min:
        return integer_less(f, b, a) ? b : a;
    case RG_max:
        return integer_less(f, a, b) ? b : a;
    case RG_band:
        return a & b;
    case RG_bor:
        return a | b;
    case RG_bxor:
        return a ^ b;
    default:
        return (a + b) & low_bits(f->bits);
    }
}

static uint64_t integer_reduce(const struct format *f, enum rg_op op,
                               const uint64_t *inputs, int nranks)
{
    uint64_t result = inputs[0];

    for (int rank = 1; rank < nranks; rank++)
        result = integer_step(f, op, result, inputs[rank]);
    if (op == RG_avg)
        result = integer_divide(f, result, nranks);
    return result & low_bits(f->bits);
}

static long double float_reduce(enum rg_dtype dtype, enum rg_op op,
                                const uint64_t *inputs, int nranks)
{
    long double result = rg_oracle_decode(dtype, inputs[0]);

    for (int rank = 1; rank < nranks; rank++) {
        long double next = rg_oracle_decode(dtype, inputs[rank]);

        if (op == RG_prod)
            result *= next;
        else if (op == RG_min)
            result = next < result ? next : result;
        else if (op == RG_max)
            result = next > result ? next : result;
        else
            result += next;
    }
    return op == RG_avg ? result / nranks : result;
}

uint64_t rg_oracle_reduce(enum rg_dtype dtype, enum rg_op op,
                          const uint64_t *inputs, int nranks)
{
    const struct format *f = &formats[dtype];

    if (f->kind != FLOATING)
        return integer_reduce(f, op, inputs, nranks);
    return rg_oracle_encode(dtype, float_reduce(dtype, op, inputs, nranks));
}

long double rg_oracle_bound(enum rg_dtype dtype, enum rg_op op,
                            const uint64_t *inputs, int nranks)
{
    const struct format *f = &formats[dtype];
    long double u = ldexpl(1, -f->fraction - 1);
    long double tiny = ldexpl(1, 1 - exponent_bias(f) - f->fraction);
    long double result = fabsl(float_reduce(dtype, op, inputs, nranks));
    long double sum = 0;

    if (op == RG_prod)
        return (nranks + 1) * u * result + nranks * tiny;
    for (int rank = 0; rank < nranks; rank++)
        sum += fabsl(rg_oracle_decode(dtype, inputs[rank]));
    sum *= (nranks + 1) * u;
    if (op == RG_avg)
        return (sum + nranks * tiny) / nranks + u * result + tiny;
    return sum;
}

static int has_one_answer(const struct rg_oracle *oracle)
{
    return oracle->inputs == RG_INPUTS_EXACT ||
           formats[oracle->dtype].kind != FLOATING || oracle->op == RG_min ||
           oracle->op == RG_max;
}

int rg_oracle_accepts(const struct rg_oracle *oracle, size_t index,
                      uint64_t got, uint64_t *expected_out)
{
    enum rg_dtype dtype = oracle->dtype;
    int n = oracle->nranks;
    uint64_t inputs[RG_ORACLE_MAX_RANKS];
    long double distance;

    for (int rank = 0; rank < n; rank++)
        inputs[rank] = rg_oracle_input(oracle, rank, index);
    *expected_out = rg_oracle_reduce(dtype, oracle->op, inputs, n);
    if (has_one_answer(oracle) || got == *expected_out)
        return got == *expected_out;
    distance = fabsl(rg_oracle_decode(dtype, got) -
                     float_reduce(dtype, oracle->op, inputs, n));
    return distance <= rg_oracle_bound(dtype, oracle->op, inputs, n);
}

/* The same of what one rank has sent. */
static int accepts_from(const struct rg_oracle *oracle, int from, size_t index,
                        uint64_t got, uint64_t *expected_out)
{
    if (from == RG_ORACLE_ALL)
        return rg_oracle_accepts(oracle, index, got, expected_out);
    *expected_out = rg_oracle_input(oracle, from, index);
    return got == *expected_out;
}

size_t rg_oracle_check(const struct rg_oracle *oracle, int from, size_t at,
                       const void *array, size_t first, size_t end,
                       struct rg_oracle_mismatch *mismatch_out)
{
    size_t wrong = 0;

    for (size_t i = first; i < end; i++) {
        uint64_t got = rg_oracle_load(oracle->dtype, array, i);
        uint64_t expected;

        if (accepts_from(oracle, from, at + i, got, &expected))
            continue;
        if (wrong++ == 0)
            *mismatch_out = (struct rg_oracle_mismatch){i, expected, got};
    }
    return wrong;
}
