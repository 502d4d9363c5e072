/* Guidelines on made-up rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "bench/guideline.h"

static struct guideline_row row(enum rg_collective collective, int sweep,
                                uint64_t bytes, double us, double width)
{
    return (struct guideline_row){sweep, collective, RG_f32,     RG_sum,    0,
                                  bytes, us,         us - width, us + width};
}

struct found {
    int n;
    struct guideline_violation last;
};

static void take(void *arg, const struct guideline_violation *violation)
{
    struct found *found = arg;

    found->n++;
    found->last = *violation;
}

static struct found check(const struct guideline_row *rows, int n,
                          enum guideline_rule rule, int applied)
{
    struct found found = {0};

    assert_int_equal(guideline_check(rows, n, rule, take, &found), applied);
    return found;
}

static void sizes_that_grow_are_fine(void **state)
{
    const struct guideline_row rows[] = {row(RG_COLL_all_reduce, 0, 8, 10, 1),
                                         row(RG_COLL_all_reduce, 0, 16, 10, 1),
                                         row(RG_COLL_all_reduce, 0, 32, 12, 1)};

    (void)state;
    assert_int_equal(check(rows, 3, GUIDELINE_NEXT_LARGER, 2).n, 0);
    assert_int_equal(check(rows, 3, GUIDELINE_ANY_LARGER, 1).n, 0);
}

static void slower_than_the_next_size(void **state)
{
    struct guideline_row rows[] = {row(RG_COLL_all_reduce, 0, 8, 20, 1),
                                   row(RG_COLL_all_reduce, 0, 16, 10, 1),
                                   row(RG_COLL_all_reduce, 0, 32, 30, 1)};
    struct found found = check(rows, 3, GUIDELINE_NEXT_LARGER, 2);

    (void)state;
    assert_int_equal(found.n, 1);
    assert_true(found.last.row == &rows[0] && found.last.other == &rows[1]);
    assert_true(found.last.factor == 2);
    /* Within noise, and sure but small, it is none. */
    rows[0].ci_lo_us = 10.5;
    assert_int_equal(check(rows, 3, GUIDELINE_NEXT_LARGER, 2).n, 0);
    rows[0] = row(RG_COLL_all_reduce, 0, 8, 10.1, 0.01);
    rows[1] = row(RG_COLL_all_reduce, 0, 16, 10, 0.01);
    assert_int_equal(check(rows, 3, GUIDELINE_NEXT_LARGER, 2).n, 0);
    /* Nor where there is no interval, or nothing is moved. */
    rows[0] = row(RG_COLL_all_reduce, 0, 8, 20, NAN);
    assert_int_equal(check(rows, 3, GUIDELINE_NEXT_LARGER, 1).n, 0);
    rows[0] = row(RG_COLL_all_reduce, 0, 0, 20, 1);
    assert_int_equal(check(rows, 3, GUIDELINE_NEXT_LARGER, 1).n, 0);
}

static void slower_than_a_larger_size(void **state)
{
    const struct guideline_row rows[] = {row(RG_COLL_all_reduce, 0, 8, 20, 1),
                                         row(RG_COLL_all_reduce, 0, 16, 19, 2),
                                         row(RG_COLL_all_reduce, 0, 32, 10, 1),
                                         row(RG_COLL_all_reduce, 0, 64, 12, 1)};
    const struct found found = check(rows, 4, GUIDELINE_ANY_LARGER, 2);

    (void)state;
    assert_int_equal(found.n, 2);
    assert_true(found.last.row == &rows[1] && found.last.other == &rows[3]);
}

static void sweeps_are_apart(void **state)
{
    struct guideline_row rows[] = {row(RG_COLL_all_reduce, 0, 8, 20, 1),
                                   row(RG_COLL_all_reduce, 1, 16, 10, 1)};

    (void)state;
    assert_int_equal(check(rows, 2, GUIDELINE_NEXT_LARGER, 0).n, 0);
    rows[1].sweep = 0;
    assert_int_equal(check(rows, 2, GUIDELINE_NEXT_LARGER, 1).n, 1);
    rows[1].inplace = 1;
    assert_int_equal(check(rows, 2, GUIDELINE_NEXT_LARGER, 0).n, 0);
}

static void slower_than_its_parts(void **state)
{
    const struct guideline_row rows[] = {
        row(RG_COLL_all_reduce, 0, 8, 20, 1),
        row(RG_COLL_reduce_scatter, 1, 8, 7, 1),
        row(RG_COLL_all_gather, 2, 8, 8, 1),
        row(RG_COLL_all_reduce, 0, 16, 20, 1),
        row(RG_COLL_all_gather, 2, 16, 8, 1)};
    const struct found found = check(rows, 5, GUIDELINE_SPLIT, 1);

    (void)state;
    assert_int_equal(found.n, 1);
    assert_true(found.last.other_us == 15);
    assert_int_equal(check(rows, 1, GUIDELINE_SPLIT, 0).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_grow_are_fine),
        cmocka_unit_test(slower_than_the_next_size),
        cmocka_unit_test(slower_than_a_larger_size),
        cmocka_unit_test(sweeps_are_apart),
        cmocka_unit_test(slower_than_its_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
