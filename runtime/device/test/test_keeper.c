/*
 * Unit tests of the keeper: a held word, the orders carried out, and who keeps.
 * The hook, called at each poll, plays the host.
 */
#include "runtime/device/entry.h"
#include "runtime/device/test/fake.h"

enum { SEQ = 40, ENDED = 47, PARK_NS = 777 };

static uint64_t word_of(uint64_t seq, uint64_t flags)
{
    return seq << RG_CONTROL_SEQ_SHIFT | flags;
}

/* `claimed` of which `completed` have. */
static void set_word(struct fake *fake, uint64_t claimed, uint64_t completed,
                     uint64_t flags)
{
    fake->dev.control = word_of(claimed, flags);
    fake->dev.hot.completed = completed;
    fake_mark(fake, (flags & RG_CONTROL_PLAN) != 0);
}

static void order(struct fake *fake, enum rg_order_kind kind)
{
    fake->mapped.orders.kind = kind;
    fake->mapped.orders.number++;
}

static void order_open(struct fake *fake, uint64_t index)
{
    struct rg_orders *orders = &fake->mapped.orders;
    struct rg_plan *plan = (struct rg_plan *)(void *)fake->mapped.plan;

    assert_ptr_equal(rg_orders_plan(orders), fake->mapped.plan);
    memcpy(plan, fake->plan[0], sizeof fake->mapped.plan);
    plan->epoch = FAKE_EPOCH + 1;
    plan->routes[FAKE_RANKS - 1].slot = 99;
    orders->plan_bytes = sizeof fake->mapped.plan;
    orders->hot.first_seq = ENDED + 1;
    orders->hot.run = 99;
    orders->hot.packets = (uint8_t *)fake->region[0];
    orders->hot.packet_max_bytes = 64;
    orders->hot.packet_stride = 128;
    orders->hot.packet_half = 256;
    orders->hot.rank = 1;
    orders->hot.nranks = FAKE_RANKS;
    orders->hot.packet_cursor = 5;
    for (int p = 0; p < RG_HOT_PEERS; p++) {
        orders->hot.inbox[p] = (uint8_t *)fake->region[0] + 16 * p;
        orders->hot.slot[p] = (uint16_t)(RG_MAX_SLOTS - 1 - p);
    }
    for (int c = 0; c < RG_HOT_COLLS; c++)
        orders->hot.size[c] = (uint8_t)(c ? 10 + c : 0);
    orders->index = index;
    orders->ended = ENDED;
    orders->park_ns = PARK_NS;
    order(fake, RG_ORDER_OPEN);
}

static void help(struct fake *fake, uint64_t epoch)
{
    const struct rg_help_args args = {
        .comm = &fake->dev, .epoch = epoch, .keepers = fake->mailbox.kept};

    rg_help(&args, &fake->call.team);
}

/* All of the order is on the line, and all that is the plan's has its mark. */
static void check_line(const struct fake *fake, int index)
{
    struct rg_hot hot = rg_hot_read(&fake->dev.hot);

    assert_true(hot.whole);
    assert_int_equal(hot.mark, index);
    assert_ptr_equal(hot.packets, fake->region[0]);
    assert_int_equal(hot.run, 99);
    assert_int_equal(hot.cursor, 5);
    assert_int_equal(hot.max_bytes, 64);
    assert_int_equal(hot.stride, 128);
    assert_int_equal(hot.half, 256);
    assert_int_equal(hot.rank, 1);
    assert_int_equal(hot.nranks, FAKE_RANKS);
    for (int p = 0; p < RG_HOT_PEERS; p++) {
        assert_int_equal(fake->dev.hot.inbox[p] & 1, index);
        assert_ptr_equal(rg_hot_inbox(&hot, p),
                         (uint8_t *)fake->region[0] + 16 * p);
        assert_int_equal(rg_hot_slot(&hot, p), RG_MAX_SLOTS - 1 - p);
    }
    assert_int_equal(fake->dev.hot.blocks & 1, index);
    for (int c = 0; c < RG_HOT_COLLS; c++)
        assert_int_equal(rg_hot_units(&hot, (enum rg_hot_coll)c),
                         c ? 1 << (9 + c) : 0);
    assert_true(rg_hot_claim(&hot) == fake->dev.control);
}

static void check_opened(const struct fake *fake, int index)
{
    assert_true(fake->dev.control ==
                word_of(ENDED, index ? RG_CONTROL_PLAN : 0));
    assert_int_equal(fake->dev.hot.completed, ENDED);
    check_line(fake, index);
    assert_int_equal(fake->plan[index]->epoch, FAKE_EPOCH + 1);
    assert_int_equal(fake->plan[index]->routes[FAKE_RANKS - 1].slot, 99);
    assert_int_equal(fake->plan[!index]->epoch, FAKE_EPOCH);
    assert_int_equal(fake->dev.park_ns, PARK_NS);
    assert_int_equal(fake->mailbox.kept, fake->mailbox.keeping);
}

/* ---- orders ------------------------------------------------------------- */

/* One order a poll: two generations cleaned, then a plan. */
static void host_cleans_and_opens(struct fake *fake)
{
    struct rg_orders *orders = &fake->mapped.orders;

    assert_int_equal(fake->mailbox.done, orders->number);
    if (fake->polls == 1) {
        assert_int_equal(fake->mailbox.keeping, 1);
        assert_int_equal(fake->mailbox.kept, 0);
        assert_int_equal(fake->mailbox.claimed, SEQ);
        assert_int_equal(fake->mailbox.completed, SEQ);
        orders->nparts = 2;
        orders->part[0] = (struct rg_part){64, 64, 0, 1};
        orders->part[1] = (struct rg_part){128, 16, 32, 2};
        order(fake, RG_ORDER_CLEAN);
    } else if (fake->polls == 2) {
        orders->nparts = 1;
        orders->part[0] = (struct rg_part){1024, 512, 0, 1};
        order(fake, RG_ORDER_CLEAN);
    } else if (fake->polls == 3) {
        assert_true(fake->dev.control & RG_CONTROL_HELD);
        order_open(fake, 1);
    }
}

static void a_keeper_carries_out_orders(void **state)
{
    struct fake *fake = *state;

    memset(fake->region[0], 0xee, sizeof fake->region[0]);
    fake->hook = host_cleans_and_opens;
    set_word(fake, SEQ, SEQ, 0);
    help(fake, FAKE_EPOCH);
    assert_int_equal(fake->polls, 3);
    check_opened(fake, 1);
    assert_int_equal(fake->mailbox.done, 3);
    for (int i = 0; i < FAKE_WORDS; i++) {
        const int clean =
            (i >= 8 && i < 18) || (i >= 20 && i < 22) || (i >= 128 && i < 192);

        assert_int_equal(fake->region[0][i] == 0, clean);
    }
}

static void host_leaves(struct fake *fake)
{
    if (fake->polls == 1)
        order(fake, RG_ORDER_LEAVE);
}

static void an_abandoned_word_stays_held(void **state)
{
    struct fake *fake = *state;

    fake->hook = host_leaves;
    set_word(fake, SEQ, SEQ, 0);
    help(fake, FAKE_EPOCH);
    assert_true(fake->dev.control == word_of(SEQ, RG_CONTROL_HELD));
    assert_int_equal(fake->dev.park_ns, 0);
    assert_int_equal(fake->mailbox.expired, 0);
    assert_int_equal(fake->mailbox.kept, 1);
}

static void a_keeper_without_orders_expires(void **state)
{
    struct fake *fake = *state;
    const uint64_t begin = fake->now;

    set_word(fake, SEQ, SEQ, 0);
    help(fake, FAKE_EPOCH);
    assert_in_range(fake->now - begin, fake->dev.keep_ns,
                    fake->dev.keep_ns + 3 * fake->step);
    assert_int_equal(fake->mailbox.expired, 1);
    assert_int_equal(fake->mailbox.kept, 1);
    assert_int_equal(fake->dev.park_ns, 0);
}

static void host_opens(struct fake *fake)
{
    if (fake->polls == 1)
        order_open(fake, 0);
}

/* What was abandoned is opened again by the next launch that helps. */
static void an_abandoned_word_can_be_opened(void **state)
{
    struct fake *fake = *state;

    an_abandoned_word_stays_held(state);
    fake->polls = 0;
    fake->hook = host_opens;
    help(fake, 0);
    check_opened(fake, 0);
    assert_int_equal(fake->mailbox.keeping, 2);
}

/* ---- who keeps ---------------------------------------------------------- */

static void a_stale_launch_touches_nothing(void **state)
{
    struct fake *fake = *state;

    set_word(fake, SEQ, SEQ, RG_CONTROL_PLAN);
    fake->plan[1]->epoch = FAKE_EPOCH + 1;
    help(fake, FAKE_EPOCH);
    assert_true(fake->dev.control == word_of(SEQ, RG_CONTROL_PLAN));
    assert_int_equal(fake->mailbox.keeping, 0);
}

/* An invocation of one team is in flight when the word is held. */
static void in_flight_completes(struct fake *fake)
{
    if (fake->polls == 20) {
        assert_int_equal(fake->mailbox.keeping, 0);
        fake->dev.hot.completed = SEQ + 1;
    } else if (fake->polls == 21) {
        assert_int_equal(fake->mailbox.keeping, 1);
        assert_int_equal(fake->mailbox.claimed, SEQ + 1);
        assert_int_equal(fake->mailbox.completed, SEQ + 1);
        order_open(fake, 1);
    }
}

static void a_launch_waits_for_what_is_in_flight(void **state)
{
    struct fake *fake = *state;

    fake->hook = in_flight_completes;
    set_word(fake, SEQ + 1, SEQ, 0);
    help(fake, FAKE_EPOCH);
    assert_int_equal(fake->polls, 21);
    check_opened(fake, 1);
}

/* Of many teams: the end is when the word says that nobody is in flight. */
static void teams_in_flight_complete(struct fake *fake)
{
    assert_int_equal(fake->mailbox.keeping, fake->polls > 20);
    if (fake->polls == 10)
        fake->dev.hot.completed = SEQ + 1;
    else if (fake->polls == 20)
        rg_close_arrivals(&fake->dev, rg_close_claim(3));
    else if (fake->polls == 21)
        order_open(fake, 1);
}

static void a_launch_waits_for_all_teams_in_flight(void **state)
{
    struct fake *fake = *state;

    fake->hook = teams_in_flight_complete;
    set_word(fake, SEQ, SEQ, 3);
    help(fake, FAKE_EPOCH);
    check_opened(fake, 1);
}

static void in_flight_stops(struct fake *fake)
{
    if (fake->polls == 20)
        fake->dev.stopped = SEQ + 1;
    if (fake->polls == 21)
        order_open(fake, 1);
}

static void who_stops_keeps_if_it_parks(void **state)
{
    struct fake *fake = *state;

    fake->hook = in_flight_stops;
    fake->dev.parks = 1;
    set_word(fake, SEQ + 1, SEQ, 0);
    help(fake, FAKE_EPOCH);
    assert_int_equal(fake->polls, 20);
    assert_int_equal(fake->mailbox.keeping, 0);
    assert_true(fake->dev.control & RG_CONTROL_HELD);
}

static void a_launch_keeps_for_who_stops_and_exits(void **state)
{
    struct fake *fake = *state;

    fake->hook = in_flight_stops;
    set_word(fake, SEQ + 1, SEQ, 0);
    help(fake, FAKE_EPOCH);
    assert_int_equal(fake->mailbox.claimed, SEQ + 1);
    assert_int_equal(fake->mailbox.completed, SEQ);
    check_opened(fake, 1);
}

/*
 * A launch asked for while nobody kept comes when another keeper, since then,
 * is about to open the word: what it finds looks like its own turn.
 */
static void a_late_launch_does_not_keep_for_another(void **state)
{
    struct fake *fake = *state;
    const struct rg_help_args args = {
        .comm = &fake->dev, .epoch = FAKE_EPOCH, .keepers = 0};

    set_word(fake, SEQ, SEQ, RG_CONTROL_HELD);
    fake->dev.frozen = SEQ;
    fake->dev.keepers = fake->mailbox.keeping = 1;
    order_open(fake, 1);
    rg_help(&args, &fake->call.team);
    assert_true(fake->dev.control == word_of(SEQ, RG_CONTROL_HELD));
    assert_int_equal(fake->dev.keepers, 1);
    assert_int_equal(fake->mailbox.done, 0);
}

/* The whole way: claim, failure, parked until the new plan is in force. */
static void a_failed_invocation_parks_until_opened(void **state)
{
    struct fake *fake = *state;
    const struct rg_launch launch = {.comm = &fake->dev};
    struct rg_opening opening;
    struct rg_open open;
    struct rg_call call;

    fake->hook = host_opens;
    fake->dev.parks = 1;
    set_word(fake, SEQ, SEQ, RG_CONTROL_PLAN);
    opening = rg_open_begin(&fake->dev, &fake->call.team);
    open = rg_open_end(&fake->dev, &fake->call.team, &opening);
    call = rg_call_of(&launch, &fake->call.team, &open);
    rg_latch_failure(&fake->dev, RG_ETIMEDOUT, 2, 9);
    rg_close(&call, &open, 1, 0);
    check_opened(fake, 0);
    assert_int_equal(fake->mailbox.failure, 1);
    assert_int_equal(fake->mailbox.seq, SEQ + 1);
    assert_int_equal(fake->mailbox.claimed, SEQ + 1);
    assert_int_equal(fake->mailbox.completed, SEQ);
    assert_int_equal(fake->dev.stopped, SEQ + 1);
}

/* ---- messages ------------------------------------------------------------ */

enum { SLOTS = 2 };

/* A launch of messages of two teams, to slot 1 and from it. */
struct launch {
    struct rg_launch args;
    struct rg_post posts[2];
    uint64_t counts[2 * SLOTS], told[2 * SLOTS];
    uint64_t noted;
};

static void prepare(struct fake *fake, struct launch *launch)
{
    *launch = (struct launch){
        .args = {.comm = &fake->dev, .nposts = 2},
        .posts = {{.slot = 1, .kind = RG_POST_SEND, .before = RG_POST_NONE},
                  {.slot = 1, .kind = RG_POST_RECV, .before = RG_POST_NONE}}};
    launch->args.posts = launch->posts;
    fake->dev.messages = launch->counts;
    fake->dev.told = launch->told;
    fake->dev.slots = SLOTS;
    fake->dev.noted = &launch->noted;
    fake->plan[0]->routes[1].slot = 1;
}

/* The first team's part: it is claimed, as if the second were, too. */
static struct rg_open claim_messages(struct fake *fake, struct launch *launch,
                                     struct rg_call *call_out)
{
    struct rg_open open;

    fake->call.team.count = 2;
    open = rg_open_messages(&fake->dev, &fake->call.team);
    fake->dev.control += RG_CONTROL_MESSENGER;
    fake->dev.arrived = 1;
    *call_out = rg_call_of(&launch->args, &fake->call.team, &open);
    call_out->seq = open.hot.completed;
    call_out->plan = fake->plan[0];
    return open;
}

static void messages_end_without_a_seq(void **state)
{
    struct fake *fake = *state;
    struct launch launch;
    struct rg_call call;
    struct rg_open open;

    prepare(fake, &launch);
    set_word(fake, SEQ, SEQ, 0);
    open = claim_messages(fake, &launch, &call);
    assert_true(open.granted && open.joined);
    assert_true(fake->dev.control == word_of(SEQ, 2 * RG_CONTROL_MESSENGER));
    rg_close_messages(&call, &open, 0, 7);
    assert_true(fake->dev.control == word_of(SEQ, 0));
    assert_int_equal(fake->dev.hot.completed, SEQ);
    assert_int_equal(fake->dev.hot.run, 7);
    assert_int_equal(launch.counts[RG_MESSAGES_OF(1) + RG_POST_SEND], 1);
    assert_int_equal(launch.counts[RG_MESSAGES_OF(1) + RG_POST_RECV], 1);
    assert_int_equal(launch.counts[RG_MESSAGES_OF(0)], 0);
}

/* Held in flight, with a seq that once stopped where messages begin. */
static void messages_in_flight_complete(struct fake *fake)
{
    assert_int_equal(fake->mailbox.keeping, fake->polls > 20);
    if (fake->polls == 20)
        rg_close_arrivals(&fake->dev, rg_close_messengers(3));
    else if (fake->polls == 21)
        order_open(fake, 1);
}

static void a_launch_waits_for_messages_in_flight(void **state)
{
    struct fake *fake = *state;
    struct launch launch;

    prepare(fake, &launch);
    launch.counts[RG_MESSAGES_OF(1)] = 5;
    fake->hook = messages_in_flight_complete;
    fake->dev.parks = 1;
    fake->dev.stopped = SEQ;
    set_word(fake, SEQ, SEQ, 3 * RG_CONTROL_MESSENGER);
    help(fake, FAKE_EPOCH);
    check_opened(fake, 1);
    assert_int_equal(fake->mailbox.claimed, SEQ);
    /* The host is told, and the next epoch counts from its begin. */
    assert_int_equal(launch.told[RG_MESSAGES_OF(1)], 5);
    assert_int_equal(launch.counts[RG_MESSAGES_OF(1)], 0);
}

static void stopped_messages_park_until_opened(void **state)
{
    struct fake *fake = *state;
    struct launch launch;
    struct rg_call call;
    struct rg_open open;

    prepare(fake, &launch);
    fake->hook = host_opens;
    fake->dev.parks = 1;
    set_word(fake, SEQ, SEQ, RG_CONTROL_PLAN);
    open = claim_messages(fake, &launch, &call);
    rg_latch_failure(&fake->dev, RG_ETIMEDOUT, 1, 9);
    rg_close_messages(&call, &open, 1, 7);
    check_opened(fake, 0);
    assert_int_equal(fake->mailbox.failure, 1);
    assert_int_equal(fake->mailbox.claimed, SEQ);
    assert_int_equal(fake->mailbox.completed, SEQ);
    assert_int_equal(launch.told[RG_MESSAGES_OF(1)], 0);
}

/* The launch made to keep was there first, as it may be behind messages. */
static void who_stops_leaves_a_word_that_is_kept(void **state)
{
    struct fake *fake = *state;
    struct rg_team *team = &fake->call.team;

    fake->dev.keepers = 4;
    rg_keep_stopped(&fake->dev, team, 3);
    assert_int_equal(fake->dev.keepers, 4);
    assert_int_equal(fake->mailbox.keeping, 0);
}

static void undone_messages_wait_for_the_caller(void **state)
{
    struct fake *fake = *state;
    struct launch launch;

    prepare(fake, &launch);
    assert_false(rg_messages_are_undone(&fake->dev));
    fake->dev.undone = FAKE_EPOCH;
    launch.noted = FAKE_EPOCH - 1;
    assert_true(rg_messages_are_undone(&fake->dev));
    launch.noted = FAKE_EPOCH;
    assert_false(rg_messages_are_undone(&fake->dev));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAKE_TEST(messages_end_without_a_seq),
        FAKE_TEST(a_launch_waits_for_messages_in_flight),
        FAKE_TEST(stopped_messages_park_until_opened),
        FAKE_TEST(who_stops_leaves_a_word_that_is_kept),
        FAKE_TEST(undone_messages_wait_for_the_caller),
        FAKE_TEST(a_keeper_carries_out_orders),
        FAKE_TEST(an_abandoned_word_stays_held),
        FAKE_TEST(a_keeper_without_orders_expires),
        FAKE_TEST(an_abandoned_word_can_be_opened),
        FAKE_TEST(a_stale_launch_touches_nothing),
        FAKE_TEST(a_launch_waits_for_what_is_in_flight),
        FAKE_TEST(a_launch_waits_for_all_teams_in_flight),
        FAKE_TEST(who_stops_keeps_if_it_parks),
        FAKE_TEST(a_launch_keeps_for_who_stops_and_exits),
        FAKE_TEST(a_late_launch_does_not_keep_for_another),
        FAKE_TEST(a_failed_invocation_parks_until_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
