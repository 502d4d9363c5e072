/* Unit tests of the device transfer service: bounds, and bounded waits. */
#include "runtime/device/test/fake.h"
#include "runtime/device/transfer.h"

#define REASON(status) (1ull << -(status))

enum { WORD = 8 * 40 }; /* offset of the word that is waited for */

/* ---- bounds ------------------------------------------------------------- */

/* Nothing was written anywhere; the one reason and these peers are latched. */
static void check_latched(struct fake *fake, int status, uint64_t peers)
{
    const uint64_t *words = &fake->region[0][0];

    for (int i = 0; i < FAKE_RANKS * FAKE_WORDS; i++)
        assert_int_equal(words[i], 0);
    assert_int_equal(fake->dev.latch.reasons, REASON(status));
    assert_int_equal(fake->dev.latch.peers[0], peers);
    memset(&fake->dev.latch, 0, sizeof fake->dev.latch);
}

/* Beyond a region: no peer is to blame for that. */
static void check_refused(struct fake *fake)
{
    check_latched(fake, RG_EINVAL, 0);
}

static void a_put_outside_the_peers_region_is_refused(void **state)
{
    static const struct {
        uint64_t offset, bytes;
    } outside[] = {{FAKE_BYTES - 8, 16},
                   {FAKE_BYTES, 1},
                   {0, FAKE_BYTES + 1},
                   {UINT64_MAX - 7, 16},
                   {8, UINT64_MAX - 7}};
    static const uint64_t data[FAKE_WORDS + 1] = {1, 2, 3};
    struct fake *fake = *state;

    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        assert_int_equal(rg_put(&fake->call, 1, 0, outside[i].offset, data,
                                outside[i].bytes),
                         1);
        check_refused(fake);
        assert_int_equal(rg_put_signal(&fake->call, 2, 0, outside[i].offset,
                                       data, outside[i].bytes, WORD,
                                       RG_SIGNAL_SET, 1),
                         1);
        check_refused(fake);
        assert_null(
            rg_direct(&fake->call, 1, outside[i].offset, outside[i].bytes));
    }
}

static void a_put_up_to_the_last_byte_is_made(void **state)
{
    const uint64_t data[2] = {11, 22};
    struct fake *fake = *state;

    assert_int_equal(
        rg_put(&fake->call, 1, 0, FAKE_BYTES - sizeof data, data, sizeof data),
        0);
    assert_int_equal(fake->region[1][FAKE_WORDS - 2], 11);
    assert_int_equal(fake->region[1][FAKE_WORDS - 1], 22);
    assert_int_equal(fake->dev.latch.reasons, 0);
    assert_ptr_equal(rg_direct(&fake->call, 1, FAKE_BYTES - 8, 8),
                     &fake->region[1][FAKE_WORDS - 1]);
}

static void a_signal_outside_the_peers_region_is_refused(void **state)
{
    struct fake *fake = *state;

    rg_signal(&fake->call, 2, 0, FAKE_BYTES - 7, RG_SIGNAL_SET, 3);
    check_refused(fake);
    rg_signal(&fake->call, 2, 0, UINT64_MAX - 7, RG_SIGNAL_ADD, 3);
    check_refused(fake);
    rg_signal(&fake->call, 2, 0, FAKE_BYTES - 8, RG_SIGNAL_ADD, 3);
    rg_signal(&fake->call, 2, 0, FAKE_BYTES - 8, RG_SIGNAL_ADD, 4);
    assert_int_equal(fake->region[2][FAKE_WORDS - 1], 7);
    assert_int_equal(fake->dev.latch.reasons, 0);
}

static void the_null_route_carries_nothing(void **state)
{
    const uint64_t data = 1;
    struct fake *fake = *state;

    fake->plan[0]->routes[1].kind = RG_ROUTE_NULL;
    assert_int_equal(rg_put(&fake->call, 1, 0, 0, &data, sizeof data), 1);
    check_latched(fake, RG_EUNAVAILABLE, 1 << 1);
    rg_signal(&fake->call, 1, 0, 0, RG_SIGNAL_SET, 1);
    check_latched(fake, RG_EUNAVAILABLE, 1 << 1);
    /* Also where what is asked for lies beyond the region. */
    assert_int_equal(rg_put(&fake->call, 1, 0, FAKE_BYTES, &data, sizeof data),
                     1);
    check_latched(fake, RG_EUNAVAILABLE, 1 << 1);
    assert_null(rg_direct(&fake->call, 1, 0, 8));
}

static void a_put_can_signal_at_both_ends(void **state)
{
    const uint64_t data = 17;
    struct fake *fake = *state;

    assert_int_equal(
        rg_put_signal_both(&fake->call, 2, 0, 8, &data, sizeof data, WORD, 5),
        0);
    assert_int_equal(fake->region[2][1], 17);
    assert_int_equal(fake->region[2][WORD / 8], 5);
    assert_int_equal(fake->region[0][WORD / 8], 5);
    memset(fake->region, 0, sizeof fake->region);
    assert_int_equal(rg_put_signal_both(&fake->call, 2, 0, FAKE_BYTES, &data,
                                        sizeof data, WORD, 6),
                     1);
    check_refused(fake);
    assert_int_equal(
        rg_put_signal_both(&fake->call, 1, 0, 8, &data, 0, FAKE_BYTES - 7, 6),
        1);
    check_refused(fake);
}

static void a_signal_to_all_skips_the_own_word(void **state)
{
    struct fake *fake = *state;

    rg_signal_all(&fake->call, 0, WORD, RG_SIGNAL_SET, 6);
    assert_int_equal(fake->region[0][WORD / 8], 0);
    assert_int_equal(fake->region[1][WORD / 8], 6);
    assert_int_equal(fake->region[2][WORD / 8], 6);
}

/* ---- waits -------------------------------------------------------------- */

static void wait_fails_with(struct fake *fake, int status)
{
    assert_int_equal(rg_wait(&fake->call, 2, WORD, 1), 1);
    assert_true(fake->dev.latch.reasons & REASON(status));
    assert_int_equal(fake->dev.latch.peers[0],
                     status == RG_ETIMEDOUT ? 1 << 2 : 0);
}

static void a_wait_gives_up_after_its_budget(void **state)
{
    struct fake *fake = *state;
    const uint64_t begin = fake->now;

    fake->call.step = 12;
    wait_fails_with(fake, RG_ETIMEDOUT);
    assert_int_equal(fake->dev.latch.reasons, REASON(RG_ETIMEDOUT));
    assert_int_equal(fake->dev.latch.step, 12);
    assert_in_range(fake->now - begin, fake->dev.deadline_ns,
                    fake->dev.deadline_ns + 5 * fake->dev.gate_ns);
}

/* Each look comes an hour after the last, and counts as one gap. */
static void time_not_run_is_not_waited(void **state)
{
    struct fake *fake = *state;

    fake->step = 3600ull * 1000000000 / RG_LOOK_POLLS;
    fake->dev.deadline_ns = 10ull * RG_GAP_NS;
    wait_fails_with(fake, RG_ETIMEDOUT);
    assert_int_equal(fake->polls, 12 * RG_LOOK_POLLS);
}

static void arrive_at_the_last_poll(struct fake *fake)
{
    if (fake->polls == 12 * RG_LOOK_POLLS)
        fake->region[0][WORD / 8] = 1;
}

static void the_word_is_read_once_more_after_expiry(void **state)
{
    struct fake *fake = *state;

    fake->step = 3600ull * 1000000000 / RG_LOOK_POLLS;
    fake->dev.deadline_ns = 10ull * RG_GAP_NS;
    fake->hook = arrive_at_the_last_poll;
    assert_int_equal(rg_wait(&fake->call, 2, WORD, 1), 0);
    assert_int_equal(fake->polls, 12 * RG_LOOK_POLLS);
    assert_int_equal(fake->dev.latch.reasons, 0);
}

static void an_abort_of_this_epoch_or_a_later_one_ends_a_wait(void **state)
{
    struct fake *fake = *state;

    for (uint64_t epoch = FAKE_EPOCH; epoch <= FAKE_EPOCH + 1; epoch++) {
        const uint64_t begin = fake->now;

        fake->abort_epoch = epoch;
        wait_fails_with(fake, RG_EABORTED);
        assert_in_range(fake->now - begin, fake->dev.gate_ns,
                        5 * fake->dev.gate_ns);
        assert_int_equal(fake->dev.latch.reasons, REASON(RG_EABORTED));
        memset(&fake->dev.latch, 0, sizeof fake->dev.latch);
    }
    fake->abort_epoch = FAKE_EPOCH - 1;
    wait_fails_with(fake, RG_ETIMEDOUT);
}

static void another_teams_failure_ends_a_wait(void **state)
{
    struct fake *fake = *state;

    rg_latch_failure(&fake->dev, RG_EUNAVAILABLE, -1, 0);
    wait_fails_with(fake, RG_EFAILED);
    assert_int_equal(fake->dev.latch.reasons,
                     REASON(RG_EUNAVAILABLE) | REASON(RG_EFAILED));
}

static void arrive_just_before_the_gate(struct fake *fake)
{
    if (fake->polls * fake->step == fake->dev.gate_ns - fake->step)
        fake->region[0][WORD / 8] = 1;
}

/* Neither the latch nor the abort word is read: there is none to read. */
static void nothing_is_looked_at_before_the_gate(void **state)
{
    struct fake *fake = *state;

    fake->dev.abort_epoch = NULL;
    rg_latch_failure(&fake->dev, RG_ETIMEDOUT, -1, 0);
    fake->hook = arrive_just_before_the_gate;
    assert_int_equal(rg_wait(&fake->call, 2, WORD, 1), 0);
    assert_int_equal(fake->polls, 19);
    assert_int_equal(fake->dev.latch.reasons, REASON(RG_ETIMEDOUT));
}

static void a_wait_for_all_names_those_that_are_late(void **state)
{
    struct fake *fake = *state;
    uint64_t *words = &fake->region[0][WORD / 8];

    words[2] = words[4] = 9; /* ranks 1 and 2; 0 is skipped */
    assert_int_equal(rg_wait_all(&fake->call, WORD, 16, FAKE_RANKS, 0, 9), 0);
    assert_int_equal(fake->polls, 0);
    words[4] = 8;
    assert_int_equal(rg_wait_all(&fake->call, WORD, 16, FAKE_RANKS, 0, 9), 1);
    assert_int_equal(fake->dev.latch.peers[0], 1 << 2);
    words[4] = 9;
    memset(&fake->dev.latch, 0, sizeof fake->dev.latch);
    assert_int_equal(rg_wait_all(&fake->call, WORD, 16, FAKE_RANKS, -1, 9), 1);
    assert_int_equal(fake->dev.latch.peers[0], 1 << 0);
}

static void signal_words_are_compared_across_their_wrap(void **state)
{
    struct fake *fake = *state;

    fake->region[0][WORD / 8] = 2;
    assert_int_equal(rg_wait(&fake->call, 1, WORD, UINT64_MAX - 1), 0);
    assert_int_equal(fake->polls, 0);
    assert_int_equal(rg_signal_reached(UINT64_MAX, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAKE_TEST(a_put_outside_the_peers_region_is_refused),
        FAKE_TEST(a_put_up_to_the_last_byte_is_made),
        FAKE_TEST(a_signal_outside_the_peers_region_is_refused),
        FAKE_TEST(the_null_route_carries_nothing),
        FAKE_TEST(a_put_can_signal_at_both_ends),
        FAKE_TEST(a_signal_to_all_skips_the_own_word),
        FAKE_TEST(a_wait_gives_up_after_its_budget),
        FAKE_TEST(time_not_run_is_not_waited),
        FAKE_TEST(the_word_is_read_once_more_after_expiry),
        FAKE_TEST(an_abort_of_this_epoch_or_a_later_one_ends_a_wait),
        FAKE_TEST(another_teams_failure_ends_a_wait),
        FAKE_TEST(nothing_is_looked_at_before_the_gate),
        FAKE_TEST(a_wait_for_all_names_those_that_are_late),
        FAKE_TEST(signal_words_are_compared_across_their_wrap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
