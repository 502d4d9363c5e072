/* Summaries, stop rule, bandwidths, verdicts: figures known by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "harness/report.h"
#include "harness/stats.h"
#include "harness/verdict.h"

static struct rg_summary summary_of(int n)
{
    struct rg_samples samples = {NULL, 0, 0};
    struct rg_summary summary;

    /* n .. 1, so that nothing is sorted by luck. */
    for (int i = 0; i < n; i++)
        assert_int_equal(rg_samples_add(&samples, n - i), RG_OK);
    assert_int_equal(rg_summary_of(&samples, &summary), RG_OK);
    rg_samples_fini(&samples);
    return summary;
}

static void summarises(void **state)
{
    struct rg_summary summary = summary_of(101);

    (void)state;
    assert_int_equal(summary.n, 101);
    assert_true(summary.min_us == 1 && summary.p50_us == 51);
    assert_true(summary.p99_us == 100);
    /* Order statistics 41 and 61 of 101: the binomial's 95 % interval. */
    assert_true(summary.ci_lo_us <= 41 && summary.ci_lo_us >= 39);
    assert_true(summary.ci_hi_us >= 61 && summary.ci_hi_us <= 63);
    assert_true(summary_of(4).p50_us == 2.5);
}

static void says_what_it_cannot_know(void **state)
{
    (void)state;
    assert_true(isnan(summary_of(0).p50_us));
    assert_true(isnan(summary_of(99).p99_us));
    assert_false(isnan(summary_of(100).p99_us));
    assert_true(isnan(summary_of(5).ci_lo_us));
    assert_true(summary_of(6).ci_lo_us == 1 && summary_of(6).ci_hi_us == 6);
}

static void stops(void **state)
{
    const struct rg_stop_rule rule = {0.05, 20, 100, 1e6};
    struct rg_summary wide = {50, 1, 10, 20, 8, 12};
    struct rg_summary narrow = {50, 1, 10, 20, 9.8, 10.2};
    struct rg_summary few = {5, 1, 10, NAN, NAN, NAN};

    (void)state;
    assert_int_equal(rg_stop_decide(&rule, &wide, 0), RG_STOP_NO);
    assert_int_equal(rg_stop_decide(&rule, &narrow, 0), RG_STOP_WIDTH);
    assert_int_equal(rg_stop_decide(&rule, &few, 0), RG_STOP_NO);
    assert_int_equal(rg_stop_decide(&rule, &wide, 1e6), RG_STOP_TIME);
    wide.n = 100;
    assert_int_equal(rg_stop_decide(&rule, &wide, 0), RG_STOP_ITERATIONS);
    narrow.n = 19;
    assert_int_equal(rg_stop_decide(&rule, &narrow, 0), RG_STOP_NO);
}

static void computes_bandwidth(void **state)
{
    struct rg_row row = {.collective = RG_COLL_all_reduce,
                         .bytes = 1u << 30,
                         .ranks = 8,
                         .time = {.p50_us = 5000},
                         .peer = "mpi",
                         .peer_p50_us = 7500};

    (void)state;
    assert_true(fabs(rg_row_algbw(&row) - 214.75) < 0.01);
    assert_true(fabs(rg_row_busbw(&row) - 375.81) < 0.01);
    assert_true(rg_row_ratio(&row) == 1.5);
    row.collective = RG_COLL_all_gather;
    assert_true(fabs(rg_row_busbw(&row) - 214.75 * 7 / 8) < 0.01);
    row.peer = NULL;
    assert_true(isnan(rg_row_ratio(&row)));
}

static void judges(void **state)
{
    struct rg_verdict verdict = {0, 0, 0, 0};

    (void)state;
    assert_int_equal(rg_verdict_exit(&verdict), RG_EXIT_ENVIRONMENT);
    rg_verdict_skip(&verdict);
    assert_int_equal(rg_verdict_exit(&verdict), RG_EXIT_SKIP);
    rg_verdict_pass(&verdict);
    assert_int_equal(rg_verdict_exit(&verdict), RG_EXIT_PASS);
    rg_verdict_fail(&verdict, RG_EXIT_GATE);
    assert_int_equal(rg_verdict_exit(&verdict), RG_EXIT_GATE);
    rg_verdict_fail(&verdict, RG_EXIT_WRONG);
    rg_verdict_fail(&verdict, RG_EXIT_TIMEOUT);
    assert_int_equal(rg_verdict_exit(&verdict), RG_EXIT_WRONG);
    assert_int_equal(verdict.failed, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summarises),
        cmocka_unit_test(says_what_it_cannot_know), cmocka_unit_test(stops),
        cmocka_unit_test(computes_bandwidth), cmocka_unit_test(judges)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
