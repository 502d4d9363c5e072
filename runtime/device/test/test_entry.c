/*
 * Unit tests of the frame around an invocation: the control word's claims,
 * and how a launch closes.
 */
#include "runtime/device/entry.h"
#include "runtime/device/test/fake.h"

enum { TEAMS = 3, SEQ = 40 };

static uint64_t word_of(uint64_t seq, uint64_t flags)
{
    return seq << RG_CONTROL_SEQ_SHIFT | flags;
}

/* Open, with all claimed invocations complete. */
static void ready(struct fake *fake, uint64_t seq, uint64_t flags)
{
    fake->dev.control = word_of(seq, flags);
    fake->dev.hot.completed = seq;
    fake_mark(fake, (flags & RG_CONTROL_PLAN) != 0);
}

static struct rg_open open_as(struct fake *fake, int team, int teams)
{
    struct rg_opening opening;

    fake->call.team.index = team;
    fake->call.team.count = teams;
    opening = rg_open_begin(&fake->dev, &fake->call.team);
    return rg_open_end(&fake->dev, &fake->call.team, &opening);
}

/* What an entry does, around an algorithm that ends with `failed`. */
static void close_as(struct fake *fake, int team, int teams,
                     const struct rg_open *open, int failed)
{
    const struct rg_launch launch = {.comm = &fake->dev};
    struct rg_call call;

    fake->call.team.index = team;
    fake->call.team.count = teams;
    call = rg_call_of(&launch, &fake->call.team, open);
    if (!open->granted)
        failed = (rg_latch_failure(&fake->dev, RG_EABORTED, -1, 0), 1);
    rg_close(&call, open, failed, RG_RUN(1, 2, teams, FAKE_EPOCH));
}

static void check_control(const struct fake *fake, uint64_t seq, uint64_t flags)
{
    assert_true(fake->dev.control == word_of(seq, flags));
}

/* ---- claims ------------------------------------------------------------- */

static void one_team_claims_a_seq_at_once(void **state)
{
    struct fake *fake = *state;
    struct rg_open open;

    ready(fake, SEQ, RG_CONTROL_PLAN);
    open = open_as(fake, 0, 1);
    assert_true(open.granted && open.joined);
    assert_int_equal(open.plan, 1);
    check_control(fake, SEQ + 1, RG_CONTROL_PLAN);
    assert_int_equal(fake->dev.hot.completed, SEQ);
    close_as(fake, 0, 1, &open, 0);
    check_control(fake, SEQ + 1, RG_CONTROL_PLAN);
    assert_int_equal(fake->dev.hot.completed, SEQ + 1);
    assert_int_equal(fake->dev.hot.run, RG_RUN(1, 2, 1, FAKE_EPOCH));
    assert_int_equal(fake->mailbox.failure, 0);
}

/* Arrivals while it runs; the last team turns them into one seq. */
static void many_teams_close_into_one_seq(void **state)
{
    struct fake *fake = *state;
    struct rg_open open[TEAMS];

    ready(fake, SEQ, 0);
    for (int launch = 1; launch <= 2; launch++) {
        for (int i = 0; i < TEAMS; i++) {
            open[i] = open_as(fake, i, TEAMS);
            assert_true(open[i].granted && open[i].joined);
            check_control(fake, SEQ + (uint64_t)launch - 1, (uint64_t)i + 1);
        }
        for (int i = TEAMS - 1; i >= 0; i--) {
            assert_int_equal(fake->dev.hot.completed, SEQ + launch - 1);
            close_as(fake, i, TEAMS, &open[i], 0);
        }
        check_control(fake, SEQ + (uint64_t)launch, 0);
        assert_int_equal(fake->dev.hot.completed, SEQ + launch);
        assert_int_equal(fake->dev.arrived, 0);
    }
    assert_int_equal(fake->dev.hot.run, RG_RUN(1, 2, TEAMS, FAKE_EPOCH));
}

/* The host's answer to a view change, some polls after a launch parked. */
static void open_with_the_other_plan(struct fake *fake)
{
    if (fake->polls == 100)
        fake->dev.control = word_of(SEQ, RG_CONTROL_PLAN);
}

static void a_closed_word_parks_and_claims_again(void **state)
{
    struct fake *fake = *state;
    struct rg_open open;

    for (int teams = 1; teams <= TEAMS; teams += TEAMS - 1) {
        fake->polls = 0;
        fake->hook = open_with_the_other_plan;
        ready(fake, SEQ, RG_CONTROL_HELD);
        open = open_as(fake, 0, teams);
        assert_int_equal(fake->polls, 100);
        assert_true(open.granted && open.joined);
        assert_int_equal(open.plan, 1);
        /* The first claim left no trace in the new word. */
        if (teams == 1)
            check_control(fake, SEQ + 1, RG_CONTROL_PLAN);
        else
            check_control(fake, SEQ, RG_CONTROL_PLAN | 1);
    }
}

static void a_parked_launch_leaves_after_its_bound(void **state)
{
    struct fake *fake = *state;
    const uint64_t begin = fake->now;
    struct rg_open open;

    ready(fake, SEQ, RG_CONTROL_HELD);
    open = open_as(fake, 0, 1);
    assert_false(open.granted || open.joined);
    assert_in_range(fake->now - begin, fake->dev.park_ns,
                    fake->dev.park_ns + 3 * fake->step);
    assert_int_equal(fake->dev.hot.completed, SEQ);
    assert_int_equal(fake->mailbox.expired, 1);
    check_control(fake, SEQ, RG_CONTROL_HELD);
}

/* However many launches leave, the word stays what it was. */
static void launches_of_an_abandoned_word_leave_no_trace(void **state)
{
    struct fake *fake = *state;

    fake->dev.park_ns = 0;
    ready(fake, SEQ, RG_CONTROL_HELD);
    for (int i = 0; i < 3000; i++) {
        const struct rg_open open = open_as(fake, i % 128, i % 3 ? 128 : 1);

        assert_false(open.granted || open.joined);
    }
    check_control(fake, SEQ, RG_CONTROL_HELD);
    assert_int_equal(fake->mailbox.expired, 0);
}

/* The first team was in when the word was closed: the others only close. */
static void teams_of_a_closed_launch_join_without_grant(void **state)
{
    struct fake *fake = *state;
    struct rg_open open[TEAMS];

    ready(fake, SEQ, 0);
    open[0] = open_as(fake, 0, TEAMS);
    fake->dev.control |= RG_CONTROL_HELD | RG_CONTROL_INFLIGHT;
    for (int i = 1; i < TEAMS; i++) {
        open[i] = open_as(fake, i, TEAMS);
        assert_true(open[i].joined && !open[i].granted);
    }
    assert_int_equal(fake->polls, 0);
    for (int i = 0; i < TEAMS; i++) {
        assert_int_equal(fake->mailbox.failure, 0);
        close_as(fake, i, TEAMS, &open[i], 0);
    }
    assert_int_equal(fake->mailbox.failure, 1);
    assert_int_equal(fake->mailbox.reasons, 1ull << -RG_EABORTED);
    assert_int_equal(fake->mailbox.seq, SEQ + 1);
    assert_int_equal(fake->dev.hot.completed, SEQ);
    check_control(fake, SEQ + 1, RG_CONTROL_HELD);
    assert_int_equal(fake->dev.stopped, SEQ + 1);
    assert_int_equal(fake->dev.frozen, SEQ + 1);
}

/* Held between the last claim and the end: it completes, nothing is left. */
static void a_launch_may_complete_under_a_held_word(void **state)
{
    struct fake *fake = *state;
    struct rg_open open[TEAMS];

    ready(fake, SEQ, 0);
    for (int i = 0; i < TEAMS; i++)
        open[i] = open_as(fake, i, TEAMS);
    assert_true(rg_hold_word(&fake->dev, FAKE_EPOCH));
    assert_int_equal(fake->dev.frozen, SEQ + 1);
    check_control(fake, SEQ,
                  RG_CONTROL_HELD | RG_CONTROL_INFLIGHT | (uint64_t)TEAMS);
    for (int i = 0; i < TEAMS; i++)
        close_as(fake, i, TEAMS, &open[i], 0);
    check_control(fake, SEQ + 1, RG_CONTROL_HELD);
    assert_int_equal(fake->dev.hot.completed, SEQ + 1);
    assert_int_equal(fake->mailbox.failure, 0);
}

/* The seq is on top of the word: its carry is lost, nothing else moves. */
static void the_claimed_seq_wraps_alone(void **state)
{
    struct fake *fake = *state;
    struct rg_open open[TEAMS];

    for (int teams = 1; teams <= TEAMS; teams += TEAMS - 1) {
        ready(fake, RG_CONTROL_SEQ_MASK, RG_CONTROL_PLAN);
        for (int i = 0; i < teams; i++)
            open[i] = open_as(fake, i, teams);
        for (int i = 0; i < teams; i++)
            close_as(fake, i, teams, &open[i], 0);
        check_control(fake, 0, RG_CONTROL_PLAN);
        assert_true(fake->dev.hot.completed == RG_CONTROL_SEQ_MASK + 1);
    }
}

/* ---- failures ----------------------------------------------------------- */

static void check_mailbox(const struct fake *fake, uint64_t failure)
{
    assert_int_equal(fake->mailbox.failure, failure);
    assert_int_equal(fake->mailbox.seq, SEQ + 1);
    assert_int_equal(fake->mailbox.epoch, FAKE_EPOCH);
    assert_int_equal(fake->mailbox.reasons,
                     1ull << -RG_ETIMEDOUT | 1ull << -RG_EFAILED);
    assert_int_equal(fake->mailbox.step, 9);
    assert_int_equal(fake->mailbox.peers[0], 1ull << 3);
    assert_true(fake->mailbox.peers[1] == 1ull << 6);
    assert_true(fake->mailbox.peers[RG_MAX_SLOTS / 64 - 1] == 1ull << 63);
    assert_int_equal(fake->dev.hot.completed, SEQ);
    assert_int_equal(fake->dev.hot.run, 0);
    /* The latch is clear for the next invocation. */
    assert_int_equal(fake->dev.latch.reasons, 0);
    for (int i = 0; i < RG_MAX_SLOTS / 64; i++)
        assert_int_equal(fake->dev.latch.peers[i], 0);
}

static void latch_some(struct fake *fake)
{
    rg_latch_failure(&fake->dev, RG_EFAILED, -1, 8);
    rg_latch_failure(&fake->dev, RG_ETIMEDOUT, 3, 9);
    rg_latch_failure(&fake->dev, RG_ETIMEDOUT, 70, 9);
    rg_latch_failure(&fake->dev, RG_ETIMEDOUT, RG_MAX_SLOTS - 1, 9);
}

static void a_failed_team_holds_the_word_and_reports(void **state)
{
    struct fake *fake = *state;
    struct rg_open open;

    fake->mailbox.failure = 6;
    ready(fake, SEQ, 0);
    open = open_as(fake, 0, 1);
    latch_some(fake);
    close_as(fake, 0, 1, &open, 1);
    check_mailbox(fake, 7);
    check_control(fake, SEQ + 1, RG_CONTROL_HELD);
}

/* Whichever team failed, the last one to arrive reports, and only that. */
static void one_failed_team_of_many_fails_the_launch(void **state)
{
    struct fake *fake = *state;
    struct rg_open open[TEAMS];

    for (int bad = 0; bad < TEAMS; bad++) {
        ready(fake, SEQ, 0);
        for (int i = 0; i < TEAMS; i++)
            open[i] = open_as(fake, i, TEAMS);
        latch_some(fake);
        for (int i = 0; i < TEAMS; i++) {
            assert_int_equal(fake->mailbox.failure, bad);
            close_as(fake, i, TEAMS, &open[i], i == bad);
        }
        check_mailbox(fake, (uint64_t)bad + 1);
        check_control(fake, SEQ + 1, RG_CONTROL_HELD);
        assert_int_equal(fake->dev.arrived, 0);
    }
}

/* ---- packets and rules -------------------------------------------------- */

enum { HALF = 256 };

/* Closes an invocation that used packets; the half it used is dirty. */
static void use_packets(struct fake *fake, uint64_t cursor)
{
    const struct rg_launch launch = {.comm = &fake->dev};
    struct rg_open open;
    struct rg_call call;

    memset(fake->region[0], 0xee, sizeof fake->region[0]);
    fake->dev.hot.packets = (uint64_t)fake->region[0];
    fake->dev.hot.ranks = RG_HOT_RANKS(HALF, 0, FAKE_RANKS);
    fake->dev.hot.cursor = cursor << 1;
    ready(fake, SEQ, 0);
    open = open_as(fake, 0, 1);
    call = rg_call_of(&launch, &fake->call.team, &open);
    call.packet_cursor++;
    rg_close(&call, &open, 0, 0);
    assert_true(fake->dev.hot.cursor == (cursor + 1) << 1);
}

/* 1: the half was cleaned as a whole; 0: it was left alone as a whole. */
static int half_is_clean(const struct fake *fake, int half)
{
    const uint64_t *word = &fake->region[0][half * HALF / 8];

    for (int i = 1; i < HALF / 8; i++)
        assert_true(word[i] == word[0]);
    return word[0] == 0;
}

static void slots_are_cleaned_before_tags_come_round(void **state)
{
    struct fake *fake = *state;
    const uint64_t round = UINT32_MAX; /* tags in a round */

    for (uint64_t cursor = round - 4; cursor < round + 2; cursor++) {
        const int used = (int)(cursor & 1);
        const int last = cursor == round - 2 || cursor == round - 1;

        use_packets(fake, cursor);
        assert_int_equal(half_is_clean(fake, used), last);
        assert_int_equal(half_is_clean(fake, !used), 0);
        assert_true(fake->region[0][2 * HALF / 8] != 0);
    }
}

/* A line between two plans: any one mark of another plan gives it away. */
static void a_torn_line_proves_no_claim(void **state)
{
    struct fake *fake = *state;
    uint64_t *const marked[] = {&fake->dev.hot.packets, &fake->dev.hot.cursor,
                                &fake->dev.hot.ranks, &fake->dev.hot.blocks};
    struct rg_hot hot;

    fake->call.team.count = 1;
    for (uint64_t mark = 0; mark < 2; mark++) {
        ready(fake, SEQ, mark ? RG_CONTROL_PLAN : 0);
        hot = rg_hot_read(&fake->dev.hot);
        assert_true(rg_claim_proves(fake->dev.control, &hot, &fake->call.team));
        for (int i = 0; i < 3; i++) {
            *marked[i] ^= 1;
            hot = rg_hot_read(&fake->dev.hot);
            assert_false(
                rg_claim_proves(fake->dev.control, &hot, &fake->call.team));
            *marked[i] ^= 1;
        }
        hot = rg_hot_read(&fake->dev.hot);
        fake->dev.hot.inbox[3] ^= 1;
        rg_hot_inbox(&hot, 2);
        assert_true(hot.whole);
        rg_hot_inbox(&hot, 3);
        assert_false(hot.whole);
        fake->dev.hot.inbox[3] ^= 1;
    }
}

/* Nor does a word that is held, of the other plan, or ahead of `completed`. */
static void a_line_proves_its_own_claim_only(void **state)
{
    struct fake *fake = *state;
    struct rg_hot hot;

    ready(fake, SEQ, 0);
    hot = rg_hot_read(&fake->dev.hot);
    for (int teams = 1; teams <= TEAMS; teams += TEAMS - 1) {
        fake->call.team.count = teams;
        assert_true(rg_claim_proves(word_of(SEQ, 0), &hot, &fake->call.team));
        assert_int_equal(
            rg_claim_proves(word_of(SEQ, 2), &hot, &fake->call.team),
            teams > 1);
        assert_false(
            rg_claim_proves(word_of(SEQ + 1, 0), &hot, &fake->call.team));
        assert_false(rg_claim_proves(word_of(SEQ, RG_CONTROL_HELD), &hot,
                                     &fake->call.team));
        assert_false(rg_claim_proves(word_of(SEQ, RG_CONTROL_PLAN), &hot,
                                     &fake->call.team));
    }
}

/* A rank that has launched less than others: the line serves nothing yet. */
static void sizes_are_served_from_first_seq_on(void **state)
{
    struct fake *fake = *state;
    const struct rg_launch launch = {.comm = &fake->dev};
    const struct rg_hot_plan plan = {.first_seq = SEQ + 3,
                                     .packet_max_bytes = 64};
    struct rg_open open;
    struct rg_call call;

    rg_hot_write(&fake->dev, &plan, 0, SEQ);
    fake->dev.control = word_of(SEQ, 0);
    fake->plan[0]->first_seq = SEQ + 3;
    for (uint64_t seq = SEQ + 1; seq < SEQ + 3; seq++) {
        open = open_as(fake, 0, 1);
        assert_int_equal(open.hot.max_bytes, 0);
        call = rg_call_of(&launch, &fake->call.team, &open);
        assert_int_equal(call.seq, seq);
        call.plan = fake->plan[0];
        rg_close(&call, &open, 0, 0);
    }
    open = open_as(fake, 0, 1);
    assert_int_equal(open.hot.max_bytes, 64);
    rg_hot_write(&fake->dev, &plan, 0, SEQ + 2);
    assert_int_equal(rg_hot_read(&fake->dev.hot).max_bytes, 64);
}

static const struct rg_rule *rule_for(const struct fake *fake,
                                      enum rg_dtype dtype, uint64_t bytes)
{
    return rg_rule_for(fake->plan[0], RG_COLL_all_reduce, dtype, bytes);
}

static void rules_go_by_type_and_size(void **state)
{
    static const uint64_t below[] = {100, 1000, 2000, UINT64_MAX, UINT64_MAX};
    static const uint32_t dtypes[] = {~2u, 2, ~2u, 2, ~2u};
    struct fake *fake = *state;
    struct rg_rules *rules = &fake->plan[0]->rules[RG_COLL_all_reduce];
    const struct rg_rule *rule = rules->rule;

    rules->count = 5;
    for (int i = 0; i < 5; i++) {
        rules->rule[i].below = below[i];
        rules->rule[i].dtypes = dtypes[i];
    }
    assert_ptr_equal(rule_for(fake, RG_i8, 0), rule);
    assert_ptr_equal(rule_for(fake, RG_i8, 99), rule);
    assert_ptr_equal(rule_for(fake, RG_i8, 100), rule + 2);
    assert_ptr_equal(rule_for(fake, RG_f64, 1999), rule + 2);
    assert_ptr_equal(rule_for(fake, RG_f64, 2000), rule + 4);
    assert_ptr_equal(rule_for(fake, RG_u8, 0), rule + 1);
    assert_ptr_equal(rule_for(fake, RG_u8, 999), rule + 1);
    assert_ptr_equal(rule_for(fake, RG_u8, 1000), rule + 3);
    assert_ptr_equal(rule_for(fake, RG_u8, 1ull << 60), rule + 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAKE_TEST(one_team_claims_a_seq_at_once),
        FAKE_TEST(many_teams_close_into_one_seq),
        FAKE_TEST(a_closed_word_parks_and_claims_again),
        FAKE_TEST(a_parked_launch_leaves_after_its_bound),
        FAKE_TEST(launches_of_an_abandoned_word_leave_no_trace),
        FAKE_TEST(teams_of_a_closed_launch_join_without_grant),
        FAKE_TEST(a_launch_may_complete_under_a_held_word),
        FAKE_TEST(the_claimed_seq_wraps_alone),
        FAKE_TEST(a_failed_team_holds_the_word_and_reports),
        FAKE_TEST(one_failed_team_of_many_fails_the_launch),
        FAKE_TEST(slots_are_cleaned_before_tags_come_round),
        FAKE_TEST(a_torn_line_proves_no_claim),
        FAKE_TEST(a_line_proves_its_own_claim_only),
        FAKE_TEST(sizes_are_served_from_first_seq_on),
        FAKE_TEST(rules_go_by_type_and_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
