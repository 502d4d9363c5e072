/* The tuner's decisions on made-up figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "bench/tune_choose.h"
#include "bench/tune_stats.h"
#include "runtime/status.h"

/* ---- ranks -------------------------------------------------------------- */

static void assert_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9))
        fail_msg("%.12g instead of %.12g", value, wanted);
}

/* Shares of the splits of a pooled sample, counted by hand. */
static void ranks_exactly(void **state)
{
    const double low[] = {1, 2, 3}, high[] = {4, 5, 6}, mixed[] = {1, 2, 5};
    const double rest[] = {3, 4, 6};

    (void)state;
    assert_near(tune_rank_p(low, 3, high, 3), 1.0 / 20);
    assert_near(tune_rank_p(high, 3, low, 3), 1);
    /* Sums up to 8 of {1..6} taken three at a time: 123, 124, 125, 134. */
    assert_near(tune_rank_p(mixed, 3, rest, 3), 4.0 / 20);
    assert_near(tune_rank_p(low, 1, high, 3), 1.0 / 4);
    assert_near(tune_rank_p(low, 0, high, 3), 1);
}

/* Pooled 1 2 2 3, ranks 1 2.5 2.5 4: sums up to 3.5 in 2 of 6 splits. */
static void ranks_ties(void **state)
{
    const double x[] = {1, 2}, y[] = {2, 3}, same[] = {7, 7, 7};

    (void)state;
    assert_near(tune_rank_p(x, 2, y, 2), 2.0 / 6);
    assert_near(tune_rank_p(same, 3, same, 3), 1);
}

/* At the border the approximation agrees with the count. */
static void approximates_what_it_does_not_count(void **state)
{
    double x[21], y[21], exact, normal;

    (void)state;
    for (int i = 0; i < 21; i++) {
        x[i] = 10 * i;
        y[i] = 10 * i + 35;
    }
    exact = tune_rank_p(x, 20, y, 20);
    normal = tune_rank_p(x, 21, y, 20);
    assert_true(exact > 0.01 && exact < 0.5);
    assert_true(fabs(exact - normal) < 0.05);
    for (int i = 0; i < 21; i++)
        x[i] = y[i] = 4;
    assert_near(tune_rank_p(x, 21, y, 21), 1);
}

static void counts_what_is_sure_and_large(void **state)
{
    const double x[] = {100, 101, 102}, close[] = {101.5, 102.5, 103};
    const double small[] = {102.1, 102.5, 102.9}, large[] = {104, 105, 106};
    const double outlier[] = {10, 101, 500};

    (void)state;
    assert_true(tune_faster(x, 3, large, 3));
    assert_false(tune_faster(large, 3, x, 3));
    assert_false(tune_faster(x, 3, close, 3));       /* not sure */
    assert_false(tune_faster(x, 3, small, 3));       /* sure, but below 2 % */
    assert_false(tune_faster(outlier, 3, large, 3)); /* one says otherwise */
    assert_false(tune_faster(x, 2, large, 2));       /* too few to be sure */
    assert_false(tune_faster(x, 0, large, 3));
}

static void summarises_launches(void **state)
{
    const double us[] = {30, 10, 20, 900};

    (void)state;
    assert_near(tune_median(us, 3), 20);
    assert_near(tune_median(us, 4), 25);
    assert_true(isnan(tune_median(us, 0)));
    assert_near(tune_noise(us, 3), 0.5);
    assert_true(isnan(tune_noise(us, 1)));
}

/* ---- costs -------------------------------------------------------------- */

static void costs_what_counts(void **state)
{
    const double a[] = {100, 101, 102}, b[] = {200, 202, 204};
    const double like_a[] = {100.5, 101.5, 102};
    const struct tune_cell cells[] = {{b, 3, NAN},      {a, 3, NAN},
                                      {like_a, 3, NAN}, {NULL, 0, 404},
                                      {NULL, 0, NAN},   {NULL, 0, 50}};
    double cost[6];

    (void)state;
    tune_costs(cells, 6, cost);
    assert_near(cost[0], log(2));
    assert_true(cost[1] == 0);
    assert_true(cost[2] > 0 && cost[2] < 1e-6); /* a tie */
    assert_near(cost[3], log(4));
    assert_true(isinf(cost[4]));
    /* A lucky guess is no measurement. */
    assert_near(cost[5], TUNE_EFFECT);
}

/* ---- choice ------------------------------------------------------------- */

static void assert_choice(int sizes, int candidates, const double *cost,
                          const char *wanted)
{
    int choice[16];

    assert_int_equal(tune_choose(sizes, candidates, cost, TUNE_SWITCH, choice),
                     RG_OK);
    for (int s = 0; s < sizes; s++)
        assert_int_equal(choice[s], wanted[s] - 'a');
}

static void switches_where_it_pays(void **state)
{
    const double cost[] = {0, 1, 0, .5, 0, .1, .1, 0, .5, 0, 1, 0};

    (void)state;
    assert_choice(6, 2, cost, "aaabbb");
}

/* b wins one size by 3 %, which two switches would use up. */
static void does_not_flip_flop(void **state)
{
    const double flip[] = {0, .5, 0, .5, .03, 0, 0, .5, 0, .5};
    const double worth[] = {0, .5, 0, .5, .05, 0, 0, .5, 0, .5};

    (void)state;
    assert_choice(5, 2, flip, "aaaaa");
    assert_choice(5, 2, worth, "aabaa");
}

static void ties_stay_with_the_neighbour(void **state)
{
    const double tie[] = {.5, 0, .5, 0, 0, 1e-9, 1e-9, 0, 0, .5};
    const double all[] = {0, 0, 0, 0};

    (void)state;
    assert_choice(5, 2, tie, "bbbba");
    assert_choice(2, 2, all, "aa");
}

static void avoids_what_cannot_run(void **state)
{
    const double cost[] = {0, 2, 0, 2, INFINITY, 2, INFINITY, 2};
    const double none[] = {0, 1, INFINITY, INFINITY};
    int choice[2];

    (void)state;
    assert_choice(4, 2, cost, "aabb");
    assert_int_equal(tune_choose(2, 2, none, TUNE_SWITCH, choice), RG_EINVAL);
}

/* ---- crossovers --------------------------------------------------------- */

static struct tune_bisect bisected(uint64_t low, uint64_t high, uint64_t grain,
                                   uint64_t from, int *steps_out)
{
    struct tune_bisect bisect = {low, high, grain};
    uint64_t bytes;

    for (*steps_out = 0; (bytes = tune_bisect_next(&bisect)); ++*steps_out) {
        assert_true(bytes > bisect.low && bytes < bisect.high);
        assert_int_equal(bytes % grain, 0);
        tune_bisect_take(&bisect, bytes, bytes >= from);
    }
    return bisect;
}

static void finds_crossovers(void **state)
{
    struct tune_bisect found;
    int steps;

    (void)state;
    found = bisected(65536, 131072, 16, 100000, &steps);
    assert_true(found.low < 100000 && found.high >= 100000);
    assert_true((double)found.high / (double)found.low < 1.1);
    assert_int_equal(steps, 3);
    found = bisected(8, 16, 4, 16, &steps);
    assert_int_equal(found.high, 16);
    found = bisected(0, 8, 4, 4, &steps);
    assert_int_equal(found.high, 4);
    found = bisected(64, 68, 4, 64, &steps);
    assert_int_equal(steps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_exactly),
        cmocka_unit_test(ranks_ties),
        cmocka_unit_test(approximates_what_it_does_not_count),
        cmocka_unit_test(counts_what_is_sure_and_large),
        cmocka_unit_test(summarises_launches),
        cmocka_unit_test(costs_what_counts),
        cmocka_unit_test(switches_where_it_pays),
        cmocka_unit_test(does_not_flip_flop),
        cmocka_unit_test(ties_stay_with_the_neighbour),
        cmocka_unit_test(avoids_what_cannot_run),
        cmocka_unit_test(finds_crossovers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
