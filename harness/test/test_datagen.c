/*
 * Inputs and their check: for every type, operation and rank count up to 64
 * the result is the same in any order and with rounding at every step, and
 * every way of getting it wrong is found and named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "harness/datagen.h"
#include "harness/datagen_dev.h"
#include "runtime/device/num.h"

enum { COUNT = 67, RANKS_MAX = 64, GUARD = 16, ITERATION = 5 };

struct block {
    uint8_t before[GUARD];
    uint64_t data[COUNT]; /* of any type */
};

static uint64_t inputs[RANKS_MAX][COUNT];
static struct block *result; /* its guard behind follows the last element */
static uint8_t memory[sizeof(struct block) + GUARD + 8];
static struct rg_datagen_kernels kernels;

static const enum rg_dtype all_dtypes[] = {
#define RG_X(name, bytes) RG_##name,
    RG_DTYPE_REDUCE_LIST(RG_X)
#undef RG_X
};

static size_t size_of(enum rg_dtype dtype)
{
    static const size_t sizes[] = {
#define RG_X(name, bytes) bytes,
        RG_DTYPE_REDUCE_LIST(RG_X)
#undef RG_X
    };

    return sizes[dtype];
}

static struct rg_pattern pattern_of(enum rg_dtype dtype, enum rg_op op, int n)
{
    return (struct rg_pattern){.count = COUNT,
                               .block = COUNT,
                               .from = RG_FROM_ALL,
                               .as = (int32_t)dtype,
                               .op = (int32_t)op,
                               .nranks = n,
                               .iteration = ITERATION,
                               .dtype = (int32_t)dtype,
                               .number = -1};
}

static void fill(const struct rg_pattern *pattern, int rank)
{
    const struct rg_fill_args args = {inputs[rank], *pattern, rank};

    for (int team = 0; team < 3; team++)
        kernels.fill.emu(&args, team, 3);
}

/* The sum, rounded to the type at every step, from rank `first` onwards. */
#define RG_X(name, storage, accumulator, wide)                                 \
    static void reduce_##name(enum rg_op op, int n, int first)                 \
    {                                                                          \
        storage *out = (storage *)result->data;                                \
                                                                               \
        for (int i = 0; i < COUNT; i++) {                                      \
            storage sum = ((storage *)inputs[first])[i];                       \
                                                                               \
            for (int k = 1; k < n; k++)                                        \
                sum = rg_store_##name(rg_combine_##name(                       \
                    op, rg_load_##name(sum),                                   \
                    rg_load_##name(((storage *)inputs[(first + k) % n])[i]))); \
            out[i] =                                                           \
                rg_store_##name(rg_finish_##name(op, rg_load_##name(sum), n)); \
        }                                                                      \
    }
RG_NUM_INT_LIST(RG_X)
RG_NUM_FLOAT_LIST(RG_X)
#undef RG_X

static void reduce(const struct rg_pattern *pattern, int first)
{
    switch (pattern->as) {
#define RG_X(name, bytes)                                                      \
    case RG_##name:                                                            \
        reduce_##name((enum rg_op)pattern->op, pattern->nranks, first);        \
        break;
        RG_DTYPE_REDUCE_LIST(RG_X)
#undef RG_X
    }
}

static struct rg_check_words check(const struct rg_pattern *pattern)
{
    struct rg_check_words words;
    const struct rg_check_args args = {
        .recv = result->data,
        .pattern = *pattern,
        .guarded = result->data,
        .guarded_bytes = COUNT * size_of((enum rg_dtype)pattern->as),
        .guard_bytes = GUARD,
        .guard_byte = RG_GUARD_BYTE,
        .words = &words};

    memset(&words, 0, sizeof words);
    for (int team = 0; team < 3; team++)
        kernels.check.emu(&args, team, 3);
    return words;
}

static void prepare(const struct rg_pattern *pattern, int first)
{
    memset(memory, RG_GUARD_BYTE, sizeof memory);
    for (int r = 0; r < pattern->nranks; r++)
        fill(pattern, r);
    reduce(pattern, first);
}

/* Operations on bits are for integers, which come first. */
static int fits(int op, enum rg_dtype dtype)
{
    return op < RG_band || dtype < RG_f16;
}

static void every_order_is_exact(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof all_dtypes / sizeof *all_dtypes; d++)
        for (int op = 0; op < RG_OP_COUNT; op++)
            for (int n = 1; n <= RANKS_MAX && fits(op, all_dtypes[d]); n++) {
                const struct rg_pattern pattern =
                    pattern_of(all_dtypes[d], (enum rg_op)op, n);

                for (int first = 0; first < n; first += 1 + n / 3) {
                    prepare(&pattern, first);
                    assert_int_equal(check(&pattern).wrong, 0);
                    assert_int_equal(check(&pattern).guards, 0);
                }
            }
}

/* Adds the rank's input to, or takes it from, an i64 sum. */
static void add(int rank, int index, int64_t times)
{
    result->data[index] += (uint64_t)times * inputs[rank][index];
}

static int explain(const struct rg_pattern *pattern, int *culprit)
{
    const struct rg_check_words words = check(pattern);

    assert_int_equal(words.wrong, 1);
    return rg_datagen_explain(&words, culprit);
}

static void names_the_culprit(void **state)
{
    const struct rg_pattern pattern = pattern_of(RG_i64, RG_sum, 5);
    struct rg_pattern before = pattern;
    uint64_t fresh;
    int culprit;

    (void)state;
    before.iteration--;
    prepare(&pattern, 0);
    add(3, 11, -1);
    assert_int_equal(explain(&pattern, &culprit), RG_MISMATCH_MISSING);
    assert_int_equal(culprit, 3);
    add(3, 11, 2);
    assert_int_equal(explain(&pattern, &culprit), RG_MISMATCH_DOUBLED);
    assert_int_equal(culprit, 3);
    add(3, 11, -1);
    fresh = inputs[1][66];
    add(1, 66, -1);
    fill(&before, 1);
    assert_int_not_equal(fresh, inputs[1][66]);
    add(1, 66, 1);
    assert_int_equal(explain(&pattern, &culprit), RG_MISMATCH_STALE);
    assert_int_equal(culprit, 1);
}

/* By and, or and exclusive or, as far as a rank makes a difference. */
static void names_who_is_missing_of_bits(void **state)
{
    (void)state;
    for (int op = RG_band; op <= RG_bxor; op++) {
        struct rg_pattern pattern = pattern_of(RG_u32, (enum rg_op)op, 4);
        struct rg_check_words words;
        int culprit;

        prepare(&pattern, 0);
        pattern.nranks = 3;
        reduce(&pattern, 0);
        pattern.nranks = 4;
        words = check(&pattern);
        assert_true(words.wrong > COUNT * 3 / 4);
        assert_int_equal(rg_datagen_explain(&words, &culprit),
                         RG_MISMATCH_MISSING);
        assert_int_equal(culprit, 3);
    }
}

/* Two blocks of an all-to-all to rank 1, from the end of what is sent. */
static struct rg_pattern moved_pattern(void)
{
    struct rg_pattern pattern = pattern_of(RG_u16, RG_sum, 2);

    pattern.from = RG_FROM_EACH;
    pattern.block = 20;
    pattern.count = 40;
    pattern.first = 20;
    return pattern;
}

static void move_blocks(const struct rg_pattern *pattern)
{
    struct rg_pattern sent = pattern_of(RG_u16, RG_sum, 2);

    memset(memory, RG_GUARD_BYTE, sizeof memory);
    sent.iteration = pattern->iteration;
    for (int r = 0; r < 2; r++) {
        fill(&sent, r);
        memcpy((uint16_t *)result->data + 20 * r, (uint16_t *)inputs[r] + 20,
               20 * sizeof(uint16_t));
    }
}

static void names_whose_block_is_wrong(void **state)
{
    struct rg_pattern pattern = moved_pattern();
    uint16_t *const got = (uint16_t *)result->data;
    int culprit;

    (void)state;
    move_blocks(&pattern);
    assert_int_equal(check(&pattern).wrong, 0);
    got[25] = ((uint16_t *)inputs[0])[25];
    assert_int_equal(explain(&pattern, &culprit), RG_MISMATCH_OTHERS);
    assert_int_equal(culprit, 0);
    pattern.iteration--;
    move_blocks(&pattern);
    pattern.iteration++;
    fill(&pattern, 0);
    memcpy(got, inputs[0], 20 * sizeof(uint16_t));
    memset(got + 21, RG_POISON_BYTE, 19 * sizeof(uint16_t));
    assert_int_equal(check(&pattern).index, 20);
    pattern.count = 21;
    assert_int_equal(explain(&pattern, &culprit), RG_MISMATCH_STALE);
    assert_int_equal(culprit, 1);
}

static void sees_what_was_not_to_be_written(void **state)
{
    struct rg_pattern pattern = moved_pattern();
    int culprit;

    (void)state;
    memset(memory, RG_GUARD_BYTE, sizeof memory);
    memset(result->data, RG_POISON_BYTE, sizeof result->data);
    pattern.from = RG_FROM_NOBODY;
    assert_int_equal(check(&pattern).wrong, 0);
    ((uint16_t *)result->data)[39] = 0;
    assert_int_equal(explain(&pattern, &culprit), RG_MISMATCH_TOUCHED);
}

static void sees_old_and_unwritten_results(void **state)
{
    struct rg_pattern pattern = pattern_of(RG_f32, RG_sum, 4);
    struct rg_check_words words;
    int culprit;

    (void)state;
    prepare(&pattern, 0);
    pattern.iteration++;
    words = check(&pattern);
    assert_true(words.wrong > COUNT / 2);
    assert_int_equal(rg_datagen_explain(&words, &culprit),
                     RG_MISMATCH_STALE_ALL);
    pattern.iteration--;
    memset((float *)result->data + 9, RG_POISON_BYTE, sizeof(float));
    assert_int_equal(explain(&pattern, &culprit), RG_MISMATCH_UNWRITTEN);
    assert_int_equal(check(&pattern).index, 9);
    assert_int_equal(culprit, -1);
}

static void sees_guards(void **state)
{
    const struct rg_pattern pattern = pattern_of(RG_bf16, RG_max, 3);

    (void)state;
    prepare(&pattern, 0);
    result->before[GUARD - 1] ^= 1;
    ((uint8_t *)result->data)[COUNT * size_of(RG_bf16)] ^= 1;
    ((uint8_t *)result->data)[COUNT * size_of(RG_bf16) + GUARD] ^= 1;
    assert_int_equal(check(&pattern).guards, 2);
    assert_int_equal(check(&pattern).wrong, 0);
}

static void poisons_any_length(void **state)
{
    uint8_t bytes[40];

    (void)state;
    for (size_t n = 0; n < 32; n++) {
        const struct rg_poison_args args = {
            bytes, n, 0x0101010101010101ull * RG_POISON_BYTE};

        memset(bytes, 0, sizeof bytes);
        for (int team = 0; team < 2; team++)
            kernels.poison.emu(&args, team, 2);
        for (size_t i = 0; i < sizeof bytes; i++)
            assert_int_equal(bytes[i], i < n ? RG_POISON_BYTE : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_is_exact),
        cmocka_unit_test(names_the_culprit),
        cmocka_unit_test(names_who_is_missing_of_bits),
        cmocka_unit_test(names_whose_block_is_wrong),
        cmocka_unit_test(sees_what_was_not_to_be_written),
        cmocka_unit_test(sees_old_and_unwritten_results),
        cmocka_unit_test(sees_guards),
        cmocka_unit_test(poisons_any_length)};

    result = (struct block *)(((uintptr_t)memory + 7) / 8 * 8);
    rg_datagen_kernels_emu(&kernels);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
