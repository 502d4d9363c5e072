/* Unit tests of the queue of notices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/recovery/notices.h"

static void push(struct rg_notices *notices, uint64_t epoch)
{
    const struct rg_notice notice = {.kind = RG_NOTICE_VIEW, .epoch = epoch};

    rg_notices_push(notices, &notice);
}

static uint64_t pop(struct rg_notices *notices)
{
    struct rg_notice notice;

    return rg_notices_pop(notices, &notice) ? notice.epoch : 0;
}

static void they_come_in_order(void **state)
{
    struct rg_notices notices = {0};

    (void)state;
    assert_int_equal(pop(&notices), 0);
    for (uint64_t epoch = 1; epoch < 3 * RG_NOTICES_MAX; epoch += 2) {
        push(&notices, epoch);
        push(&notices, epoch + 1);
        assert_int_equal(pop(&notices), epoch);
        assert_int_equal(pop(&notices), epoch + 1);
    }
    assert_int_equal(pop(&notices), 0);
}

static void the_newest_are_kept(void **state)
{
    struct rg_notices notices = {0};

    (void)state;
    for (uint64_t epoch = 1; epoch <= 10000; epoch++)
        push(&notices, epoch);
    for (uint64_t epoch = 10001 - RG_NOTICES_MAX; epoch <= 10000; epoch++)
        assert_int_equal(pop(&notices), epoch);
    assert_int_equal(pop(&notices), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_come_in_order),
        cmocka_unit_test(the_newest_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
