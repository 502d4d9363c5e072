/*
 * Unit tests of numbers: the 16-bit formats against their definition in
 * exact double arithmetic, integers against wrapping.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/device/num.h"

/* A binary format of 16 bits: mantissa bits and exponent bias. */
struct format {
    int mantissa;
    int bias;
};

static const struct format f16 = {10, 15}, bf16 = {7, 127};

static int special_exponent(const struct format *format)
{
    return (1 << (15 - format->mantissa)) - 1;
}

/* What `bits` stand for; infinities too, NaN is not asked for. */
static double meaning(const struct format *format, unsigned bits)
{
    const int exponent = (int)(bits & 0x7fffu) >> format->mantissa;
    const int fraction = (int)bits & ((1 << format->mantissa) - 1);
    const int unit = (exponent ? exponent : 1) - format->bias;
    const int whole = exponent ? 1 << format->mantissa : 0;
    double value = ldexp(whole + fraction, unit - format->mantissa);

    if (exponent == special_exponent(format))
        value = INFINITY;
    return bits & 0x8000u ? -value : value;
}

static int is_nan_code(const struct format *format, unsigned bits)
{
    const unsigned infinity = (unsigned)special_exponent(format)
                              << format->mantissa;

    return (bits & 0x7fffu) > infinity;
}

/* The nearest value of the format, ties to the even one. */
static double nearest(const struct format *format, double value)
{
    const double top = ldexp(2, format->bias);
    int exponent;
    double unit, rounded;

    if (value == 0 || isinf(value))
        return value;
    frexp(value, &exponent);
    if (exponent < 2 - format->bias)
        exponent = 2 - format->bias;
    unit = ldexp(1, exponent - 1 - format->mantissa);
    rounded = nearbyint(value / unit) * unit;
    return fabs(rounded) >= top ? copysign(INFINITY, value) : rounded;
}

static int same_double(double a, double b)
{
    return a == b && !signbit(a) == !signbit(b);
}

static void every_code_is_loaded_and_stored_back(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 65536; bits++) {
        const float half = rg_load_f16((uint16_t)bits);
        const float brain = rg_load_bf16((uint16_t)bits);

        if (is_nan_code(&f16, bits)) {
            assert_true(isnan(half));
            assert_true(is_nan_code(&f16, rg_store_f16(half)));
        } else {
            assert_true(same_double(half, meaning(&f16, bits)));
            assert_int_equal(rg_store_f16(half), bits);
        }
        if (is_nan_code(&bf16, bits)) {
            assert_true(isnan(brain));
            assert_true(is_nan_code(&bf16, rg_store_bf16(brain)));
        } else {
            assert_true(same_double(brain, meaning(&bf16, bits)));
            assert_int_equal(rg_store_bf16(brain), bits);
        }
    }
}

static void check_rounding(float value)
{
    const unsigned half = rg_store_f16(value), brain = rg_store_bf16(value);

    if (isnan(value)) {
        assert_true(is_nan_code(&f16, half));
        assert_true(is_nan_code(&bf16, brain));
        return;
    }
    if (!same_double(meaning(&f16, half), nearest(&f16, value)))
        fail_msg("%a is stored as f16 0x%04x", (double)value, half);
    if (!same_double(meaning(&bf16, brain), nearest(&bf16, value)))
        fail_msg("%a is stored as bf16 0x%04x", (double)value, brain);
}

/* All floats by a stride that meets every exponent and mantissa residue. */
static void stores_round_to_nearest_even(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 1021)
        check_rounding(rg_float_from_bits((uint32_t)bits));
}

/* Between two neighbours: just below the middle, the middle, just above. */
static void ties_and_their_neighbours_round_right(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 65535; code++) {
        const struct format *const formats[] = {&f16, &bf16};

        for (int i = 0; i < 2; i++) {
            const double a = meaning(formats[i], code);
            const double b = meaning(formats[i], code + 1);
            const float middle = (float)((a + b) / 2);

            if (!isfinite(a) || !isfinite(b))
                continue;
            check_rounding(middle);
            check_rounding(nextafterf(middle, -INFINITY));
            check_rounding(nextafterf(middle, INFINITY));
        }
    }
    /* The tie between the largest f16 and infinity. */
    assert_int_equal(rg_store_f16(65520.0f), 0x7c00);
    assert_int_equal(rg_store_f16(nextafterf(65520.0f, 0)), 0x7bff);
}

static void integers_wrap(void **state)
{
    (void)state;
    assert_int_equal(rg_combine_i8(RG_sum, 127, 1), -128);
    assert_int_equal(rg_combine_u8(RG_sum, 255, 1), 0);
    assert_int_equal(rg_combine_i16(RG_prod, 32767, 32767), 1);
    assert_int_equal(rg_combine_u16(RG_prod, 65535, 65535), 1);
    assert_int_equal(rg_combine_i32(RG_sum, INT32_MAX, 1), INT32_MIN);
    assert_int_equal(rg_combine_i32(RG_prod, INT32_MIN, -1), INT32_MIN);
    assert_int_equal(rg_combine_u32(RG_prod, 65536, 65537), 65536);
    assert_true(rg_combine_i64(RG_sum, INT64_MAX, 1) == INT64_MIN);
    assert_true(rg_combine_i64(RG_prod, INT64_MIN, -1) == INT64_MIN);
    assert_true(rg_combine_u64(RG_sum, UINT64_MAX, 2) == 1);
}

/* Order is that of the type: -1 is not above 1, UINT_MAX is. */
static void minimum_and_maximum_know_the_sign(void **state)
{
    (void)state;
    assert_int_equal(rg_combine_i8(RG_min, -1, 1), -1);
    assert_int_equal(rg_combine_i8(RG_max, -1, 1), 1);
    assert_int_equal(rg_combine_u8(RG_max, 255, 1), 255);
    assert_int_equal(rg_combine_i32(RG_min, INT32_MIN, 0), INT32_MIN);
    assert_true(rg_combine_u32(RG_max, UINT32_MAX, 0) == UINT32_MAX);
    assert_true(rg_combine_i64(RG_max, INT64_MIN, -1) == -1);
    assert_true(rg_combine_u64(RG_min, UINT64_MAX, 1) == 1);
    assert_true(rg_combine_f32(RG_min, -INFINITY, 1) == -INFINITY);
    assert_true(rg_combine_f64(RG_max, -2.5, -3.5) == -2.5);
}

/* avg adds, and divides once, at the end: integers towards zero. */
static void averages_divide_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(rg_combine_i32(RG_avg, 5, 6), 11);
    assert_int_equal(rg_finish_i8(RG_avg, -7, 2), -3);
    assert_int_equal(rg_finish_u8(RG_avg, 255, 2), 127);
    assert_int_equal(rg_finish_i16(RG_avg, -32768, 3), -10922);
    assert_int_equal(rg_finish_i32(RG_avg, -9, 8), -1);
    assert_true(rg_finish_u32(RG_avg, UINT32_MAX, 3) == 1431655765u);
    assert_true(rg_finish_i64(RG_avg, INT64_MIN, 2) == INT64_MIN / 2);
    assert_true(rg_finish_u64(RG_avg, UINT64_MAX, 5) == UINT64_MAX / 5);
    assert_true(rg_finish_f64(RG_avg, 1, 4) == 0.25);
    assert_int_equal(rg_finish_i32(RG_sum, -9, 8), -9);
    /* 16-bit floats add up in f32: two of the largest do not overflow. */
    assert_true(rg_finish_f16(RG_avg,
                              rg_combine_f16(RG_avg, rg_load_f16(0x7bff),
                                             rg_load_f16(0x7bff)),
                              2) == 65504.0f);
}

static void nan_goes_through_sums_and_products(void **state)
{
    (void)state;
    assert_true(isnan(rg_combine_f32(RG_sum, NAN, 1)));
    assert_true(isnan(rg_combine_f64(RG_prod, 1, NAN)));
    assert_true(isnan(rg_combine_bf16(RG_avg, 0, NAN)));
    assert_true(isnan(rg_load_f16(
        rg_store_f16(rg_combine_f16(RG_sum, rg_load_f16(0x7c01), 1)))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_is_loaded_and_stored_back),
        cmocka_unit_test(stores_round_to_nearest_even),
        cmocka_unit_test(ties_and_their_neighbours_round_right),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(minimum_and_maximum_know_the_sign),
        cmocka_unit_test(averages_divide_at_the_end),
        cmocka_unit_test(nan_goes_through_sums_and_products),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
