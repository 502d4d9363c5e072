/*
 * The oracle against hand-computed values, against the machine's own
 * conversions, and against its own promises about inputs.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "validate/oracle.h"

static uint64_t reduce2(enum rg_dtype dtype, enum rg_op op, uint64_t a,
                        uint64_t b)
{
    uint64_t inputs[] = {a, b};

    return rg_oracle_reduce(dtype, op, inputs, 2);
}

static void test_integers_wrap(void **state)
{
    (void)state;
    assert_int_equal(reduce2(RG_i8, RG_sum, 0x7f, 1), 0x80);
    assert_int_equal(reduce2(RG_u8, RG_sum, 200, 100), 44);
    assert_int_equal(reduce2(RG_u8, RG_prod, 17, 17), 33);
    assert_int_equal(reduce2(RG_i16, RG_prod, 0xffff, 0x8000), 0x8000);
    assert_int_equal(reduce2(RG_u32, RG_sum, 0xffffffff, 2), 1);
    assert_true(reduce2(RG_u64, RG_sum, UINT64_MAX, 2) == 1);
    assert_true(reduce2(RG_i64, RG_prod, (uint64_t)-3, 5) == (uint64_t)-15);
}

static void test_integer_average_truncates(void **state)
{
    uint64_t three[] = {100, 100, 100};

    (void)state;
    assert_int_equal(reduce2(RG_i8, RG_avg, 0xfd, 0), 0xff); /* -3 / 2 */
    assert_int_equal(reduce2(RG_i32, RG_avg, 7, 0), 3);
    assert_int_equal(reduce2(RG_u8, RG_avg, 200, 100), 22); /* 44 / 2 */
    /* 300 is 44 in 8 bits, signed or not. */
    assert_int_equal(rg_oracle_reduce(RG_i8, RG_avg, three, 3), 14);
}

static void test_integer_order_follows_the_sign(void **state)
{
    (void)state;
    assert_int_equal(reduce2(RG_i8, RG_min, 0xff, 1), 0xff);
    assert_int_equal(reduce2(RG_u8, RG_min, 0xff, 1), 1);
    assert_int_equal(reduce2(RG_i16, RG_max, 0x8000, 0x7fff), 0x7fff);
    assert_true(reduce2(RG_u64, RG_max, UINT64_MAX, 1) == UINT64_MAX);
    assert_true(reduce2(RG_i64, RG_max, UINT64_MAX, 1) == 1);
}

static void test_half_rounds_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(rg_oracle_encode(RG_f16, 1), 0x3c00);
    assert_int_equal(rg_oracle_encode(RG_f16, -2), 0xc000);
    assert_int_equal(rg_oracle_encode(RG_f16, 1 + 0x1p-11L), 0x3c00);
    assert_int_equal(rg_oracle_encode(RG_f16, 1 + 0x3p-11L), 0x3c02);
    assert_int_equal(rg_oracle_encode(RG_f16, 1 + 0x1.01p-11L), 0x3c01);
    assert_int_equal(rg_oracle_encode(RG_f16, 65504), 0x7bff);
    assert_int_equal(rg_oracle_encode(RG_f16, 65519), 0x7bff);
    assert_int_equal(rg_oracle_encode(RG_f16, 65520), 0x7c00);
    assert_int_equal(rg_oracle_encode(RG_f16, 1e9L), 0x7c00);
    assert_int_equal(rg_oracle_encode(RG_f16, 0x1p-24L), 0x0001);
    assert_int_equal(rg_oracle_encode(RG_f16, 0x1p-25L), 0x0000);
    assert_int_equal(rg_oracle_encode(RG_f16, 0x1.8p-25L), 0x0001);
    assert_int_equal(rg_oracle_encode(RG_f16, 0x1p-14L - 0x1p-25L), 0x0400);
    assert_int_equal(rg_oracle_encode(RG_f16, NAN), 0x7e00);
    assert_int_equal(rg_oracle_encode(RG_f16, -0.0L), 0x8000);
}

static void test_bfloat_rounds_to_nearest_even(void **state)
{
    (void)state;
    assert_int_equal(rg_oracle_encode(RG_bf16, 1), 0x3f80);
    assert_int_equal(rg_oracle_encode(RG_bf16, 3.14159265L), 0x4049);
    assert_int_equal(rg_oracle_encode(RG_bf16, 1 + 0x1p-8L), 0x3f80);
    assert_int_equal(rg_oracle_encode(RG_bf16, 1 + 0x3p-8L), 0x3f82);
    assert_int_equal(rg_oracle_encode(RG_bf16, 0x1.ffp127L), 0x7f80);
    assert_int_equal(rg_oracle_encode(RG_bf16, 0x1p-133L), 0x0001);
}

/* Every 16-bit pattern that is not a NaN survives decode and encode. */
static void test_short_floats_round_trip(void **state)
{
    static const enum rg_dtype types[] = {RG_f16, RG_bf16};

    (void)state;
    for (int t = 0; t < 2; t++) {
        for (uint64_t bits = 0; bits < 0x10000; bits++) {
            long double value = rg_oracle_decode(types[t], bits);
            if (!isnan(value))
                assert_int_equal(rg_oracle_encode(types[t], value), bits);
        }
    }
}

/* The generic encoder agrees with the machine on single precision. */
static void test_single_agrees_with_the_machine(void **state)
{
    uint64_t x = 88172645463325252;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        double value;
        float narrow;
        uint32_t bits;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        value = ldexp((double)(int64_t)x, (int)(x % 320) - 220);
        narrow = (float)value;
        memcpy(&bits, &narrow, sizeof(bits));
        assert_int_equal(rg_oracle_encode(RG_f32, value), bits);
    }
}

static void test_double_round_trips(void **state)
{
    static const double values[] = {0,       1,        -1.0 / 3, 0x1p-1074,
                                    0x1p-52, 0x1p1023, 1e308,    INFINITY};

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        uint64_t bits;

        memcpy(&bits, &values[i], sizeof(bits));
        assert_true(rg_oracle_encode(RG_f64, values[i]) == bits);
        assert_true(rg_oracle_decode(RG_f64, bits) == values[i]);
    }
}

static void test_loads_and_stores_unaligned(void **state)
{
    unsigned char memory[40];

    (void)state;
    memset(memory, 0xee, sizeof(memory));
    rg_oracle_store(RG_u32, memory + 1, 2, 0x01020304);
    assert_int_equal(memory[9], 4);
    assert_int_equal(memory[12], 1);
    assert_int_equal(memory[13], 0xee);
    assert_int_equal(rg_oracle_load(RG_u32, memory + 1, 2), 0x01020304);
    assert_int_equal(rg_oracle_load(RG_u8, memory + 1, 8), 4);
}

/* Reduces in a turned order, rounding to the type after every step. */
static uint64_t hop_by_hop(const struct rg_oracle *o, size_t index, int first)
{
    enum rg_op step = o->op == RG_avg ? RG_sum : o->op;
    uint64_t padded[RG_ORACLE_MAX_RANKS] = {0};
    uint64_t result = rg_oracle_input(o, first, index);

    for (int i = 1; i < o->nranks; i++) {
        int rank = (first + i) % o->nranks;
        result =
            reduce2(o->dtype, step, result, rg_oracle_input(o, rank, index));
    }
    if (o->op != RG_avg)
        return result;
    padded[0] = result; /* the average of {x, 0, 0, ...} is the quotient */
    return rg_oracle_reduce(o->dtype, RG_avg, padded, o->nranks);
}

static void each_problem(enum rg_oracle_inputs inputs,
                         void (*visit)(const struct rg_oracle *))
{
    static const int nranks[] = {1, 2, 3, 5, 8, 13, 64};

    for (int d = 0; d < RG_f8e4m3; d++) {
        for (int op = 0; op < RG_OP_COUNT; op++) {
            if (d >= RG_f16 && op >= RG_band)
                continue;
            for (size_t n = 0; n < sizeof(nranks) / sizeof(nranks[0]); n++) {
                struct rg_oracle oracle = {(enum rg_dtype)d, (enum rg_op)op,
                                           nranks[n], inputs, 11};
                if (inputs == RG_INPUTS_EXACT || nranks[n] <= 13)
                    visit(&oracle);
            }
        }
    }
}

static void check_exact(const struct rg_oracle *oracle)
{
    for (size_t i = 0; i < 60; i++) {
        uint64_t expected;
        uint64_t got = hop_by_hop(oracle, i, (int)i % oracle->nranks);

        assert_true(rg_oracle_accepts(oracle, i, got, &expected));
        assert_true(got == expected);
        assert_false(rg_oracle_accepts(oracle, i, got ^ 1, &expected));
    }
}

/* Any order and rounding gives the one right pattern; a bit off is wrong. */
static void test_exact_inputs_have_one_answer(void **state)
{
    (void)state;
    each_problem(RG_INPUTS_EXACT, check_exact);
}

static void check_rough(const struct rg_oracle *oracle)
{
    for (size_t i = 0; i < 60; i++) {
        uint64_t expected;
        uint64_t got = hop_by_hop(oracle, i, (int)i % oracle->nranks);
        long double value;

        assert_true(rg_oracle_accepts(oracle, i, got, &expected));
        value = rg_oracle_decode(oracle->dtype, expected);
        /* One contribution missing or doubled is far outside the bound. */
        if (oracle->op == RG_prod && oracle->dtype >= RG_f16)
            assert_false(rg_oracle_accepts(
                oracle, i, rg_oracle_encode(oracle->dtype, value * 1.5L),
                &expected));
    }
}

static void test_rough_inputs_stay_in_the_bound(void **state)
{
    (void)state;
    each_problem(RG_INPUTS_ROUGH, check_rough);
}

static void test_rough_sums_are_inexact(void **state)
{
    struct rg_oracle oracle = {RG_f32, RG_sum, 8, RG_INPUTS_ROUGH, 3};
    int differ = 0;

    (void)state;
    for (size_t i = 0; i < 200; i++)
        differ += hop_by_hop(&oracle, i, 0) != hop_by_hop(&oracle, i, 3);
    assert_true(differ > 20);
}

/* A missing contribution is seen in nearly every element. */
static void test_a_missing_rank_is_seen(void **state)
{
    struct rg_oracle all = {RG_bf16, RG_sum, 4, RG_INPUTS_EXACT, 5};
    uint64_t values[3];
    uint64_t expected;
    int seen = 0;

    (void)state;
    for (size_t i = 0; i < 100; i++) {
        for (int rank = 0; rank < 3; rank++)
            values[rank] = rg_oracle_input(&all, rank, i);
        seen += !rg_oracle_accepts(
            &all, i, rg_oracle_reduce(RG_bf16, RG_sum, values, 3), &expected);
    }
    assert_true(seen > 90);
}

/* The same by each operation on bits. */
static void test_a_missing_rank_is_seen_in_bits(void **state)
{
    (void)state;
    for (int op = RG_band; op <= RG_bxor; op++) {
        struct rg_oracle all = {RG_u16, (enum rg_op)op, 8, RG_INPUTS_EXACT, 5};
        uint64_t values[7];
        uint64_t expected;
        int seen = 0;

        for (size_t i = 0; i < 100; i++) {
            for (int rank = 0; rank < 7; rank++)
                values[rank] = rg_oracle_input(&all, rank, i);
            seen += !rg_oracle_accepts(
                &all, i, rg_oracle_reduce(RG_u16, all.op, values, 7),
                &expected);
        }
        assert_true(seen > 40);
    }
}

static void test_operations_on_bits(void **state)
{
    (void)state;
    assert_int_equal(reduce2(RG_i8, RG_band, 0xf0, 0x9c), 0x90);
    assert_int_equal(reduce2(RG_u16, RG_bor, 0xf001, 0x0f00), 0xff01);
    assert_true(reduce2(RG_u64, RG_bxor, UINT64_MAX, 1) == UINT64_MAX - 1);
}

/* Elements of one rank, from a place behind the first. */
static void test_check_of_what_is_moved(void **state)
{
    struct rg_oracle oracle = {rg_oracle_moved(RG_f8e5m2), RG_sum, 3,
                               RG_INPUTS_EXACT, 4};
    struct rg_oracle_mismatch first;
    uint8_t array[64];

    (void)state;
    assert_int_equal(rg_oracle_moved(RG_bf16), RG_u16);
    assert_int_equal(rg_oracle_size(RG_f8e4m3), 1);
    rg_oracle_fill(&oracle, 2, 100, array, 64);
    assert_int_equal(rg_oracle_check(&oracle, 2, 100, array, 0, 64, &first), 0);
    assert_true(rg_oracle_check(&oracle, 2, 101, array, 0, 64, &first) > 50);
    assert_true(rg_oracle_check(&oracle, 1, 100, array, 0, 64, &first) > 50);
}

static void test_check_reports_the_first(void **state)
{
    struct rg_oracle oracle = {RG_i16, RG_max, 1, RG_INPUTS_EXACT, 9};
    struct rg_oracle_mismatch first;
    uint16_t array[50];
    uint16_t right;

    (void)state;
    rg_oracle_fill(&oracle, 0, 0, array, 50);
    assert_int_equal(
        rg_oracle_check(&oracle, RG_ORACLE_ALL, 0, array, 0, 50, &first), 0);
    right = array[17];
    array[17] ^= 0x40;
    array[49] ^= 0x8000;
    assert_int_equal(
        rg_oracle_check(&oracle, RG_ORACLE_ALL, 0, array, 0, 50, &first), 2);
    assert_int_equal(first.index, 17);
    assert_int_equal(first.expected, right);
    assert_int_equal(first.got, array[17]);
    assert_int_equal(
        rg_oracle_check(&oracle, RG_ORACLE_ALL, 0, array, 18, 49, &first), 0);
}

static void test_no_nan_no_negative_zero(void **state)
{
    struct rg_oracle oracle = {RG_f16, RG_min, 4, RG_INPUTS_EXACT, 1};
    int infinite = 0;
    int subnormal = 0;

    (void)state;
    for (size_t i = 0; i < 100000; i++) {
        uint64_t bits = rg_oracle_input(&oracle, 2, i);
        assert_true((bits & 0x7fff) <= 0x7c00);
        assert_true(bits != 0x8000);
        infinite += (bits & 0x7fff) == 0x7c00;
        subnormal += (bits & 0x7c00) == 0 && bits != 0;
    }
    assert_true(infinite > 0 && subnormal > 0);
}

static void test_format(void **state)
{
    char text[64];

    (void)state;
    rg_oracle_format(RG_f16, 0x3c00, text, sizeof(text));
    assert_string_equal(text, "0x3c00 (1)");
    rg_oracle_format(RG_i8, 0xff, text, sizeof(text));
    assert_string_equal(text, "0xff (-1)");
    rg_oracle_format(RG_u64, UINT64_MAX, text, sizeof(text));
    assert_string_equal(text, "0xffffffffffffffff (18446744073709551615)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_wrap),
        cmocka_unit_test(test_integer_average_truncates),
        cmocka_unit_test(test_integer_order_follows_the_sign),
        cmocka_unit_test(test_half_rounds_to_nearest_even),
        cmocka_unit_test(test_bfloat_rounds_to_nearest_even),
        cmocka_unit_test(test_short_floats_round_trip),
        cmocka_unit_test(test_single_agrees_with_the_machine),
        cmocka_unit_test(test_double_round_trips),
        cmocka_unit_test(test_loads_and_stores_unaligned),
        cmocka_unit_test(test_exact_inputs_have_one_answer),
        cmocka_unit_test(test_rough_inputs_stay_in_the_bound),
        cmocka_unit_test(test_rough_sums_are_inexact),
        cmocka_unit_test(test_a_missing_rank_is_seen),
        cmocka_unit_test(test_a_missing_rank_is_seen_in_bits),
        cmocka_unit_test(test_operations_on_bits),
        cmocka_unit_test(test_check_of_what_is_moved),
        cmocka_unit_test(test_check_reports_the_first),
        cmocka_unit_test(test_no_nan_no_negative_zero),
        cmocka_unit_test(test_format),
    };

    return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}
