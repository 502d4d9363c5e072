/* Coverage, constraints and determinism of the array generator. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "runtime/status.h"
#include "validate/pairwise.h"

static const int levels[] = {4, 12, 5, 9, 6};
enum { NPARAMS = 5 };

/* Values 3 of the first and 0 of the third parameter never meet. */
static int not_both(const int *row, void *arg)
{
    (void)arg;
    return !(row[0] == 3 && row[2] == 0);
}

static int has_pair(const struct rg_rows *rows, int a, int x, int b, int y)
{
    for (int r = 0; r < rows->nrows; r++) {
        const int *row = rg_rows_at(rows, r);
        if (row[a] == x && row[b] == y)
            return 1;
    }
    return 0;
}

/* The number of pairs of the full product that the rows do not have. */
static int missing_pairs(const struct rg_rows *rows)
{
    int missing = 0;

    for (int a = 0; a < NPARAMS; a++)
        for (int b = a + 1; b < NPARAMS; b++)
            for (int x = 0; x < levels[a]; x++)
                for (int y = 0; y < levels[b]; y++)
                    missing += !has_pair(rows, a, x, b, y);
    return missing;
}

static void make(rg_row_allowed allowed, uint64_t seed, struct rg_rows *product,
                 struct rg_rows *array)
{
    assert_int_equal(rg_rows_product(levels, NPARAMS, allowed, NULL, product),
                     RG_OK);
    assert_int_equal(rg_rows_pairwise(product, seed, array), RG_OK);
}

static void test_product_is_complete(void **state)
{
    struct rg_rows product;
    const int *last;

    (void)state;
    assert_int_equal(rg_rows_product(levels, NPARAMS, NULL, NULL, &product),
                     RG_OK);
    assert_int_equal(product.nrows, 4 * 12 * 5 * 9 * 6);
    last = rg_rows_at(&product, product.nrows - 1);
    for (int p = 0; p < NPARAMS; p++)
        assert_int_equal(last[p], levels[p] - 1);
    rg_rows_fini(&product);
}

static void test_every_pair_is_covered(void **state)
{
    struct rg_rows product, array;

    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        make(NULL, seed * 1000, &product, &array);
        assert_int_equal(missing_pairs(&array), 0);
        /* 12 x 9 is the least possible; an array twice that is no use. */
        assert_true(array.nrows >= 108 && array.nrows < 216);
        rg_rows_fini(&array);
        rg_rows_fini(&product);
    }
}

static void test_one_row_less_is_noticed(void **state)
{
    struct rg_rows product, array;

    (void)state;
    make(NULL, 0, &product, &array);
    array.nrows = 107; /* fewer rows than pairs of the two longest lists */
    assert_true(missing_pairs(&array) > 0);
    rg_rows_fini(&array);
    rg_rows_fini(&product);
}

static void test_constraint_is_kept(void **state)
{
    struct rg_rows product, array;

    (void)state;
    make(not_both, 7, &product, &array);
    for (int r = 0; r < array.nrows; r++)
        assert_true(not_both(rg_rows_at(&array, r), NULL));
    assert_int_equal(missing_pairs(&array), 1);
    rg_rows_fini(&array);
    rg_rows_fini(&product);
}

static void test_same_seed_same_rows(void **state)
{
    struct rg_rows product, first, second;

    (void)state;
    make(NULL, 42, &product, &first);
    assert_int_equal(rg_rows_pairwise(&product, 42, &second), RG_OK);
    assert_int_equal(first.nrows, second.nrows);
    assert_memory_equal(first.values, second.values,
                        (size_t)first.nrows * NPARAMS * sizeof(int));
    rg_rows_fini(&second);
    rg_rows_fini(&first);
    rg_rows_fini(&product);
}

static void test_bad_levels(void **state)
{
    static const int zero[] = {3, 0};
    static const int huge[] = {1 << 20, 1 << 20};
    struct rg_rows rows;

    (void)state;
    assert_int_equal(rg_rows_product(zero, 2, NULL, NULL, &rows), RG_EINVAL);
    assert_int_equal(rg_rows_product(huge, 2, NULL, NULL, &rows), RG_EINVAL);
    assert_int_equal(rg_rows_product(zero, 0, NULL, NULL, &rows), RG_EINVAL);
}

static int never(const int *row, void *arg)
{
    (void)row;
    (void)arg;
    return 0;
}

static void test_nothing_allowed_is_empty(void **state)
{
    struct rg_rows product, array;

    (void)state;
    make(never, 5, &product, &array);
    assert_int_equal(product.nrows, 0);
    assert_int_equal(array.nrows, 0);
    rg_rows_fini(&array);
    rg_rows_fini(&product);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product_is_complete),
        cmocka_unit_test(test_every_pair_is_covered),
        cmocka_unit_test(test_one_row_less_is_noticed),
        cmocka_unit_test(test_constraint_is_kept),
        cmocka_unit_test(test_same_seed_same_rows),
        cmocka_unit_test(test_bad_levels),
        cmocka_unit_test(test_nothing_allowed_is_empty),
    };

    return cmocka_run_group_tests_name("pairwise", tests, NULL, NULL);
}
