/* From stamps to figures: what recovery_perf makes of a log. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "bench/recovery.h"

enum { RANKS = 3, INJECTIONS = 2, VICTIM = 1 };
#define FAULT_NS UINT64_C(1000000)

struct fixture {
    struct recovery_hit hits[INJECTIONS];
    struct recovery_stamp stamps[INJECTIONS * RANKS];
    struct recovery_log log;
};

/* Phases `step_ns` apart, beginning so long behind the fault. */
static struct recovery_stamp stamp_of(uint64_t step_ns)
{
    struct recovery_stamp stamp = {.tag = RECOVERY_TAG_STAMP,
                                   .captures = 1,
                                   .epoch = 2,
                                   .members = 0x5,
                                   .committed_seq = 9};

    for (int p = RG_PHASE_PREPARE; p <= RG_PHASE_OPEN; p++)
        stamp.phase_ns[p] = FAULT_NS + (uint64_t)p * step_ns;
    stamp.good_ns = FAULT_NS + (RG_PHASE_OPEN + 1) * step_ns;
    return stamp;
}

static void set_up(struct fixture *at)
{
    memset(at, 0, sizeof *at);
    at->hits[0] = (struct recovery_hit){VICTIM, FAULT_NS};
    at->hits[1] = (struct recovery_hit){-1, 0};
    at->stamps[0] = stamp_of(2000);
    at->stamps[2] = stamp_of(3000);
    at->log = (struct recovery_log){.size = RANKS,
                                    .injections = INJECTIONS,
                                    .hits = at->hits,
                                    .stamps = at->stamps};
}

static void assert_us(double value, double wanted)
{
    assert_true(fabs(value - wanted) < 1e-6);
}

static void test_figures(void **state)
{
    struct recovery_figures figures;
    struct fixture at;

    (void)state;
    set_up(&at);
    at.stamps[0].phase_ns[RG_PHASE_HELD] += 500;
    recovery_figures_of(&at.log, 0, &figures);
    assert_true(figures.agreed);
    assert_int_equal(figures.captures, 1);
    assert_us(figures.us[RECOVERY_DETECT], 3);
    assert_us(figures.us[RECOVERY_SAFEPOINT], 3);
    assert_us(figures.us[RECOVERY_QUIESCE], 3);
    assert_us(figures.us[RECOVERY_VIEW], 3);
    assert_us(figures.us[RECOVERY_REBUILD], 3);
    assert_us(figures.us[RECOVERY_FIRST_GOOD], 3);
    assert_us(figures.us[RECOVERY_TOTAL], 18);
    for (int f = 0; f < RECOVERY_TOTAL; f++)
        assert_us(figures.through_us[f], 3 * (f + 1));
}

/* The largest of a phase may be of another rank than that of the next. */
static void test_largest_of_each(void **state)
{
    struct recovery_figures figures;
    struct fixture at;

    (void)state;
    set_up(&at);
    at.stamps[0].phase_ns[RG_PHASE_HELD] = FAULT_NS + 8500;
    at.stamps[0].phase_ns[RG_PHASE_VIEW] = FAULT_NS + 8600;
    recovery_figures_of(&at.log, 0, &figures);
    assert_us(figures.us[RECOVERY_SAFEPOINT], 6.5);
    assert_us(figures.us[RECOVERY_QUIESCE], 3);
    assert_us(figures.through_us[RECOVERY_SAFEPOINT], 8.5);
    assert_us(figures.through_us[RECOVERY_QUIESCE], 9);
}

static void assert_disagreed(const struct fixture *at, int injection)
{
    struct recovery_figures figures;

    recovery_figures_of(&at->log, injection, &figures);
    assert_false(figures.agreed);
    assert_true(figures.cause[0] != '\0');
}

static void test_disagreement(void **state)
{
    struct fixture at;

    (void)state;
    set_up(&at);
    at.stamps[2].epoch++;
    assert_disagreed(&at, 0);
    set_up(&at);
    at.stamps[2].committed_seq++;
    assert_disagreed(&at, 0);
    set_up(&at);
    at.stamps[0].members = at.stamps[2].members = 0x7;
    assert_disagreed(&at, 0);
    set_up(&at);
    at.stamps[2].tag = 0;
    assert_disagreed(&at, 0);
    set_up(&at);
    at.stamps[0].phase_ns[RG_PHASE_PREPARE] = FAULT_NS - 1;
    assert_disagreed(&at, 0);
    assert_disagreed(&at, 1);
}

static void test_not_reached(void **state)
{
    struct recovery_figures figures;
    struct fixture at;

    (void)state;
    set_up(&at);
    at.stamps[0].tag = at.stamps[2].tag = 0;
    recovery_figures_of(&at.log, 0, &figures);
    for (int f = 0; f < RECOVERY_FIGURES; f++)
        assert_true(isnan(figures.us[f]));
}

static void test_summary(void **state)
{
    struct recovery_figures figures[5];
    struct recovery_summary summary;

    (void)state;
    for (int i = 0; i < 5; i++)
        for (int f = 0; f < RECOVERY_FIGURES; f++)
            figures[i].us[f] = f == RECOVERY_VIEW ? NAN : (i * 2) % 5 + f;
    figures[1].us[RECOVERY_DETECT] = NAN;
    assert_int_equal(recovery_summary_of(figures, 5, &summary), RG_OK);
    assert_us(summary.us[RECOVERY_MIN][RECOVERY_DETECT], 0);
    assert_us(summary.us[RECOVERY_P50][RECOVERY_DETECT], 2);
    assert_us(summary.us[RECOVERY_P99][RECOVERY_TOTAL], 4 + RECOVERY_TOTAL);
    assert_us(summary.us[RECOVERY_MAX][RECOVERY_TOTAL], 4 + RECOVERY_TOTAL);
    assert_us(summary.us[RECOVERY_P50][RECOVERY_TOTAL], 2 + RECOVERY_TOTAL);
    assert_true(isnan(summary.us[RECOVERY_P50][RECOVERY_VIEW]));
}

/* Every seed hits who it may; leaves are all but the coordinator. */
static void test_victims(void **state)
{
    struct recovery_plan plan = {.role = RECOVERY_LEAF};
    int hits[RANKS] = {0};

    (void)state;
    for (int i = 0; i < 100; i++) {
        const struct recovery_turn turn = {i, 1};

        hits[recovery_victim(&plan, &turn, RANKS)]++;
    }
    assert_int_equal(hits[1], 0);
    assert_true(hits[0] > 20 && hits[2] > 20);
    plan.role = RECOVERY_COORDINATOR;
    assert_int_equal(
        recovery_victim(&plan, &(struct recovery_turn){5, 2}, RANKS), 2);
}

static void test_succession(void **state)
{
    struct recovery_turn turn = {0, 0};

    (void)state;
    recovery_turn_next(&turn, 2);
    assert_int_equal(turn.coordinator, 0);
    recovery_turn_next(&turn, 0);
    assert_int_equal(turn.coordinator, 1);
    recovery_turn_next(&turn, 0);
    assert_int_equal(turn.coordinator, 1);
    recovery_turn_next(&turn, 1);
    assert_int_equal(turn.coordinator, 0);
    assert_int_equal(turn.injection, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_largest_of_each),
        cmocka_unit_test(test_disagreement),
        cmocka_unit_test(test_not_reached),
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_victims),
        cmocka_unit_test(test_succession),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
