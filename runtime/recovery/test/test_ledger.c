/* Unit tests of the ledger: which epoch a seq belongs to, and its outcome. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/recovery/ledger.h"

enum { CAPACITY = 70 };

/* Enters an epoch whose active slots are the bits of `low`, and slot 69. */
static void enter(struct rg_ledger *ledger, uint64_t epoch, uint64_t committed,
                  uint64_t first, unsigned low)
{
    struct rg_view *view = rg_view_create(1, CAPACITY);

    assert_non_null(view);
    view->epoch = epoch;
    view->committed_seq = committed;
    view->first_seq = first;
    for (int slot = 0; slot < CAPACITY; slot++)
        if (slot == CAPACITY - 1 || (slot < 32 && low >> slot & 1))
            view->members[slot].status = RG_MEMBER_ACTIVE;
    rg_view_reorder(view);
    assert_int_equal(rg_ledger_enter(ledger, view), RG_OK);
    rg_view_destroy(view);
}

static void check(const struct rg_ledger *ledger, uint64_t seq, uint64_t floor,
                  uint64_t completed, enum rg_outcome_state state,
                  uint64_t epoch)
{
    struct rg_outcome outcome;

    assert_int_equal(rg_ledger_find(ledger, seq, floor, completed, &outcome),
                     RG_OK);
    assert_int_equal(outcome.state, state);
    assert_int_equal(outcome.epoch, epoch);
}

static int is_unknown(const struct rg_ledger *ledger, uint64_t seq)
{
    struct rg_outcome outcome;

    return rg_ledger_find(ledger, seq, 0, UINT64_MAX, &outcome) ==
           RG_EUNAVAILABLE;
}

static void the_epoch_in_force_goes_by_floor_and_completed(void **state)
{
    struct rg_ledger ledger = {0};
    struct rg_outcome outcome;

    (void)state;
    enter(&ledger, 1, 9, 10, 0x5);
    check(&ledger, 10, 11, 13, RG_OUTCOME_COMMITTED, 1);
    check(&ledger, 11, 11, 13, RG_OUTCOME_COMMITTED, 1);
    check(&ledger, 12, 11, 13, RG_OUTCOME_COMPLETED, 1);
    check(&ledger, 13, 11, 13, RG_OUTCOME_COMPLETED, 1);
    check(&ledger, 14, 11, 13, RG_OUTCOME_PENDING, 1);
    assert_true(is_unknown(&ledger, 9));
    assert_int_equal(rg_ledger_find(&ledger, 10, 0, 0, &outcome), RG_OK);
    assert_int_equal(outcome.nparticipants, 3);
    assert_int_equal(outcome.participants[0], 0x5);
    assert_int_equal(outcome.participants[1], 1u << (CAPACITY - 1 - 64));
    assert_int_equal(outcome.participants[2], 0);
    rg_ledger_fini(&ledger);
}

/* The new view decides, whatever had completed here. */
static void a_view_decides_the_epoch_before(void **state)
{
    struct rg_ledger ledger = {0};

    (void)state;
    enter(&ledger, 1, 0, 1, 0x7);
    enter(&ledger, 2, 20, 25, 0x5);
    check(&ledger, 20, 30, 30, RG_OUTCOME_COMMITTED, 1);
    for (uint64_t seq = 21; seq < 25; seq++)
        check(&ledger, seq, 30, 30, RG_OUTCOME_ABORTED, 1);
    check(&ledger, 25, 30, 30, RG_OUTCOME_COMMITTED, 2);
    enter(&ledger, 3, 24, 25, 0x1);
    check(&ledger, 24, 0, 0, RG_OUTCOME_ABORTED, 1);
    check(&ledger, 25, 0, 0, RG_OUTCOME_PENDING, 3);
    rg_ledger_fini(&ledger);
}

/* Nothing is claimed of what was decided while this rank was out. */
static void an_epoch_that_was_left_stays_open_to_doubt(void **state)
{
    struct rg_ledger ledger = {0};

    (void)state;
    enter(&ledger, 1, 0, 1, 0x7);
    enter(&ledger, 2, 20, 25, 0x7);
    rg_ledger_leave(&ledger, 27);
    check(&ledger, 22, 0, 0, RG_OUTCOME_ABORTED, 1);
    check(&ledger, 27, 0, 99, RG_OUTCOME_COMMITTED, 2);
    assert_true(is_unknown(&ledger, 28));
    enter(&ledger, 6, 50, 60, 0x7);
    check(&ledger, 27, 99, 99, RG_OUTCOME_COMMITTED, 2);
    assert_true(is_unknown(&ledger, 28));
    assert_true(is_unknown(&ledger, 59));
    check(&ledger, 60, 60, 60, RG_OUTCOME_COMMITTED, 6);
    rg_ledger_fini(&ledger);
    rg_ledger_leave(&ledger, 1);
    assert_true(is_unknown(&ledger, 1));
    rg_ledger_fini(&ledger);
}

static void many_epochs_are_kept(void **state)
{
    struct rg_ledger ledger = {0};

    (void)state;
    for (uint64_t epoch = 1; epoch <= 100; epoch++)
        enter(&ledger, epoch, epoch * 10 - 3, epoch * 10, 0x3);
    for (uint64_t epoch = 1; epoch < 100; epoch++) {
        check(&ledger, epoch * 10 + 7, 0, 0, RG_OUTCOME_COMMITTED, epoch);
        check(&ledger, epoch * 10 + 8, 0, 0, RG_OUTCOME_ABORTED, epoch);
    }
    rg_ledger_fini(&ledger);
}

/* An old seq has no outcome any more, rather than one of another epoch. */
static void the_oldest_epochs_are_forgotten(void **state)
{
    const uint64_t last = 10000, kept = last + 1 - RG_OUTCOME_EPOCHS;
    struct rg_ledger ledger = {0};

    (void)state;
    for (uint64_t epoch = 1; epoch <= last; epoch++) {
        enter(&ledger, epoch, epoch * 10 - 3, epoch * 10, 0x3);
        assert_true(ledger.count <= RG_OUTCOME_EPOCHS);
        assert_true(ledger.room <= RG_OUTCOME_EPOCHS);
    }
    assert_int_equal(ledger.count, RG_OUTCOME_EPOCHS);
    assert_true(is_unknown(&ledger, 10));
    assert_true(is_unknown(&ledger, kept * 10 - 1));
    for (uint64_t epoch = kept; epoch < last; epoch++) {
        check(&ledger, epoch * 10 + 7, 0, 0, RG_OUTCOME_COMMITTED, epoch);
        check(&ledger, epoch * 10 + 8, 0, 0, RG_OUTCOME_ABORTED, epoch);
    }
    check(&ledger, last * 10, 0, 0, RG_OUTCOME_PENDING, last);
    rg_ledger_fini(&ledger);
}

static void seqs_may_wrap(void **state)
{
    struct rg_ledger ledger = {0};

    (void)state;
    enter(&ledger, 1, UINT64_MAX - 9, UINT64_MAX - 8, 0x3);
    check(&ledger, UINT64_MAX, 0, 2, RG_OUTCOME_COMMITTED, 1);
    check(&ledger, 0, 0, 2, RG_OUTCOME_COMMITTED, 1);
    check(&ledger, 2, 0, 2, RG_OUTCOME_COMPLETED, 1);
    check(&ledger, 3, 0, 2, RG_OUTCOME_PENDING, 1);
    check(&ledger, 0, UINT64_MAX, UINT64_MAX, RG_OUTCOME_PENDING, 1);
    enter(&ledger, 2, 1, 4, 0x3);
    check(&ledger, 1, 6, 6, RG_OUTCOME_COMMITTED, 1);
    check(&ledger, 2, 6, 6, RG_OUTCOME_ABORTED, 1);
    check(&ledger, UINT64_MAX, 6, 6, RG_OUTCOME_COMMITTED, 1);
    check(&ledger, 4, 6, 6, RG_OUTCOME_COMMITTED, 2);
    rg_ledger_fini(&ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seqs_may_wrap),
        cmocka_unit_test(the_epoch_in_force_goes_by_floor_and_completed),
        cmocka_unit_test(a_view_decides_the_epoch_before),
        cmocka_unit_test(an_epoch_that_was_left_stays_open_to_doubt),
        cmocka_unit_test(many_epochs_are_kept),
        cmocka_unit_test(the_oldest_epochs_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
