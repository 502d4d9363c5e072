/*
 * Coordinator and agents without any input or output: a queue of messages
 * stands for the network, and the tests decide what arrives and when.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/control/agent.h"
#include "runtime/control/coordinator.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

enum {
    RANKS = 4,
    GROUP = 2,
    QUEUE_MAX = 4096,
    BOX_MAX = 64,
    WORKSPACES = 3,
    INCARNATION = 1 << RG_INCARNATION_SHIFT | 1, /* of a first join */
    FIRST_SEQ = 50
};

struct post {
    int from;
    int to;
    struct rg_message *message;
};

struct world {
    struct rg_coordinator *coordinators[RANKS];
    struct rg_agent *agents[RANKS];
    struct post queue[QUEUE_MAX];
    int queued;
    struct rg_message *boxes[RANKS][BOX_MAX]; /* delivered to callers */
    int boxed[RANKS];
    uint64_t timer_ms[RANKS]; /* of the agents' FORM timers; 0: not set */
    uint64_t elect_ms[RANKS];
    uint64_t window_ms[RANKS];
    int dead[RANKS]; /* neither receives nor runs */
    enum rg_mode mode;
    int warnings;
    int errors;
};

/* ---- the world ------------------------------------------------------------
 */

static void carry_out(struct world *world, int rank, struct rg_effects *effects)
{
    assert_int_equal(effects->rc, RG_OK);
    for (size_t i = 0; i < effects->count; i++) {
        struct rg_effect *effect = &effects->items[i];

        switch (effect->kind) {
        case RG_EFFECT_SEND:
            assert_true(world->queued < QUEUE_MAX);
            world->queue[world->queued++] =
                (struct post){.from = rank,
                              .to = effect->peer,
                              .message = rg_message_ref(effect->message)};
            break;
        case RG_EFFECT_DELIVER:
            assert_true(world->boxed[rank] < BOX_MAX);
            world->boxes[rank][world->boxed[rank]++] =
                rg_message_ref(effect->message);
            break;
        case RG_EFFECT_TIMER:
            if (effect->timer.kind == RG_TIMER_FORM)
                world->timer_ms[rank] = effect->delay_ms;
            else if (effect->timer.kind == RG_TIMER_ELECT)
                world->elect_ms[rank] = effect->delay_ms;
            else if (effect->timer.kind == RG_TIMER_WINDOW)
                world->window_ms[rank] = effect->delay_ms;
            break;
        case RG_EFFECT_LOG:
            world->warnings += effect->level == RG_LOG_WARN;
            world->errors += effect->level == RG_LOG_ERROR;
            break;
        case RG_EFFECT_NONE:
            break;
        }
    }
    rg_effects_fini(effects);
}

static void step_agent(struct world *world, int rank,
                       const struct rg_input *input)
{
    struct rg_effects effects = {0};

    rg_agent_step(world->agents[rank], input, &effects);
    carry_out(world, rank, &effects);
}

static void step_coordinator(struct world *world, int rank,
                             const struct rg_input *input)
{
    struct rg_effects effects = {0};

    rg_coordinator_step(world->coordinators[rank], input, &effects);
    carry_out(world, rank, &effects);
}

static void receive(struct world *world, int from, int to,
                    struct rg_message *message)
{
    struct rg_input input = {
        .kind = RG_INPUT_MESSAGE, .peer = from, .message = message};

    if (world->dead[to])
        return;
    if (rg_message_for_coordinator(message->kind))
        step_coordinator(world, to, &input);
    else
        step_agent(world, to, &input);
}

/* Takes the queue's item out; the caller gets its reference. */
static struct post take_post(struct world *world, int index)
{
    struct post post = world->queue[index];

    world->queued--;
    memmove(&world->queue[index], &world->queue[index + 1],
            (size_t)(world->queued - index) * sizeof(post));
    return post;
}

/* The network until it is empty, oldest first. */
static void settle(struct world *world)
{
    while (world->queued) {
        struct post post = take_post(world, 0);

        receive(world, post.from, post.to, post.message);
        rg_message_unref(post.message);
    }
}

/* A caller's request; drops the reference. */
static void ask(struct world *world, int rank, struct rg_message *message)
{
    struct rg_input input = {.kind = RG_INPUT_REQUEST, .message = message};

    step_agent(world, rank, &input);
    rg_message_unref(message);
}

static struct rg_message *request(enum rg_message_kind kind)
{
    struct rg_message *message = rg_message_create(kind, GROUP);

    assert_non_null(message);
    return message;
}

static struct rg_message *join_request(int rank)
{
    struct rg_message *message = request(RG_MSG_JOIN);

    message->capacity = RANKS + 2;
    message->first_seq = FIRST_SEQ;
    message->info.capabilities = RG_CAP_NEW_BACKEND | RG_CAP_P2P;
    message->info.preference = RG_BACKEND_NEW;
    rg_message_set_data(message, rank ? "b" : "a", 1);
    return message;
}

static void ask_text(struct world *world, int rank, enum rg_message_kind kind,
                     const char *text)
{
    struct rg_message *message = request(kind);

    rg_message_set_data(message, text, strlen(text));
    ask(world, rank, message);
}

static void answer(struct world *world, int rank, enum rg_message_kind kind,
                   uint64_t epoch, uint64_t completed, uint64_t claimed)
{
    struct rg_message *message = request(kind);

    message->epoch = epoch;
    message->completed = completed;
    message->claimed = claimed;
    ask(world, rank, message);
}

/* The oldest thing delivered to a caller; fails if it is of another kind. */
static struct rg_message *take_kind(struct world *world, int rank,
                                    enum rg_message_kind kind)
{
    struct rg_message *message = world->boxes[rank][0];

    assert_true(world->boxed[rank] > 0);
    assert_string_equal(rg_message_name(message->kind), rg_message_name(kind));
    world->boxed[rank]--;
    memmove(&world->boxes[rank][0], &world->boxes[rank][1],
            (size_t)world->boxed[rank] * sizeof(message));
    return message;
}

static void expect(struct world *world, int rank, enum rg_message_kind kind)
{
    rg_message_unref(take_kind(world, rank, kind));
}

static void expect_status(struct world *world, int rank,
                          enum rg_message_kind kind, int status)
{
    struct rg_message *message = take_kind(world, rank, kind);

    assert_int_equal(message->status, status);
    rg_message_unref(message);
}

/* All callers follow a change to `epoch`, as quick as the network. */
static void follow(struct world *world, uint64_t epoch)
{
    settle(world);
    for (int rank = 0; rank < RANKS; rank++) {
        expect(world, rank, RG_MSG_PREPARE);
        answer(world, rank, RG_MSG_QUIESCED, epoch, 60 + (uint64_t)rank,
               70 - (uint64_t)rank);
    }
    settle(world);
    for (int rank = 0; rank < RANKS; rank++) {
        expect(world, rank, RG_MSG_VIEW);
        answer(world, rank, RG_MSG_VIEW_ACK, epoch, 0, 0);
    }
    settle(world);
    for (int rank = 0; rank < RANKS; rank++) {
        expect(world, rank, RG_MSG_ACTIVATE);
        assert_int_equal(world->boxed[rank], 0);
        assert_true(rg_agent_view(world->agents[rank], GROUP)->epoch == epoch);
    }
    assert_true(rg_coordinator_view(world->coordinators[0], GROUP)->epoch ==
                epoch);
}

static void boot(struct world *world, int rank, uint32_t process)
{
    const struct rg_coordinator_config coordinator = {.rank = rank,
                                                      .world_size = RANKS,
                                                      .workspaces = WORKSPACES,
                                                      .routes = 2,
                                                      .mode = world->mode,
                                                      .heartbeat_ms = 200,
                                                      .miss_ms = 600,
                                                      .window_ms = 1000,
                                                      .plan_ms = 10000};
    const struct rg_agent_config agent = {.rank = rank,
                                          .world_size = RANKS,
                                          .process = process,
                                          .form_ms = 900,
                                          .heartbeat_ms = 200,
                                          .miss_ms = 600,
                                          .window_ms = 1000,
                                          .isolate_ms = 1000};

    rg_agent_destroy(world->agents[rank]);
    rg_coordinator_destroy(world->coordinators[rank]);
    world->agents[rank] = rg_agent_create(&agent);
    world->coordinators[rank] = rg_coordinator_create(&coordinator);
    world->dead[rank] = 0;
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));

    for (int rank = 0; rank < RANKS; rank++)
        boot(world, rank, 1);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    for (int i = 0; i < world->queued; i++)
        rg_message_unref(world->queue[i].message);
    for (int rank = 0; rank < RANKS; rank++) {
        for (int i = 0; i < world->boxed[rank]; i++)
            rg_message_unref(world->boxes[rank][i]);
        rg_agent_destroy(world->agents[rank]);
        rg_coordinator_destroy(world->coordinators[rank]);
    }
    free(world);
    return 0;
}

static struct world *formed(void **state)
{
    struct world *world = *state;

    for (int rank = 0; rank < RANKS; rank++)
        ask(world, rank, join_request(rank));
    follow(world, 1);
    return world;
}

/* ---- views ----------------------------------------------------------------
 */

static void first_view_waits_for_every_rank(void **state)
{
    struct world *world = *state;
    const struct rg_view *view;

    for (int rank = RANKS - 1; rank > 0; rank--)
        ask(world, rank, join_request(rank));
    settle(world);
    assert_int_equal(world->boxed[1], 0);
    assert_int_equal(world->timer_ms[1], 900);
    ask(world, 0, join_request(0));
    follow(world, 1);
    assert_int_equal(world->timer_ms[1], 0);
    view = rg_agent_view(world->agents[2], GROUP);
    assert_int_equal(view->nactive, RANKS);
    assert_int_equal(view->capacity, RANKS + 2);
    assert_int_equal(view->workspace, 0);
    assert_string_equal(view->policy, "a");
    assert_true(view->first_seq == 50 && view->committed_seq == 49);
    assert_true(view->backend == RG_BACKEND_NEW);
    assert_true(view->status == RG_VIEW_ACTIVE && view->term == 1);
    assert_int_equal(world->warnings, 0);
}

/* Nothing is committed beyond the slowest, no seq is used twice. */
static void a_change_takes_min_completed_and_max_claimed(void **state)
{
    struct world *world = formed(state);
    const struct rg_view *view;

    for (uint64_t epoch = 2; epoch <= 5; epoch++) {
        for (int rank = 0; rank < RANKS; rank++)
            ask_text(world, rank, RG_MSG_POLICY, "p");
        follow(world, epoch);
        view = rg_agent_view(world->agents[3], GROUP);
        assert_true(view->committed_seq == 60 && view->first_seq == 71);
        assert_int_equal(view->workspace, (epoch - 1) % WORKSPACES);
    }
}

static void a_policy_needs_all_and_the_same_text(void **state)
{
    struct world *world = formed(state);

    for (int rank = 0; rank < RANKS; rank++) {
        settle(world);
        assert_int_equal(world->boxed[0], 0);
        ask_text(world, rank, RG_MSG_POLICY, rank == 2 ? "x" : "y");
    }
    settle(world);
    for (int rank = 0; rank < RANKS; rank++) {
        expect_status(world, rank, RG_MSG_ERROR, RG_EPOLICY);
        assert_true(rg_agent_view(world->agents[rank], GROUP)->epoch == 1);
    }
    assert_int_equal(world->errors, 1);
    for (int rank = 0; rank < RANKS; rank++)
        ask_text(world, rank, RG_MSG_POLICY, "y");
    follow(world, 2);
    assert_string_equal(rg_agent_view(world->agents[1], GROUP)->policy, "y");
}

/* Rank 2 makes something else of the policy than the others. */
static void divide(struct world *world, uint64_t epoch)
{
    settle(world);
    for (int rank = 0; rank < RANKS; rank++) {
        expect(world, rank, RG_MSG_PREPARE);
        answer(world, rank, RG_MSG_QUIESCED, epoch, 60, 60);
    }
    settle(world);
    for (int rank = 0; rank < RANKS; rank++) {
        struct rg_message *ack = request(RG_MSG_VIEW_ACK);

        expect(world, rank, RG_MSG_VIEW);
        ack->epoch = epoch;
        ack->rules = rank == 2 ? 8 : 9;
        ask(world, rank, ack);
    }
    settle(world);
}

static void a_first_view_of_two_minds_is_none(void **state)
{
    struct world *world = *state;

    for (int rank = 0; rank < RANKS; rank++)
        ask(world, rank, join_request(rank));
    divide(world, 1);
    for (int rank = 0; rank < RANKS; rank++)
        expect_status(world, rank, RG_MSG_ERROR, RG_EPOLICY);
    assert_int_equal(world->errors, 1);
    assert_null(rg_coordinator_view(world->coordinators[0], GROUP));
}

static void a_group_of_two_minds_ends(void **state)
{
    struct world *world = formed(state);

    for (int rank = 0; rank < RANKS; rank++)
        ask_text(world, rank, RG_MSG_POLICY, "y");
    divide(world, 2);
    for (int rank = 0; rank < RANKS; rank++) {
        expect_status(world, rank, RG_MSG_EXCLUDED, RG_EPOLICY);
        assert_int_equal(world->boxed[rank], 0);
    }
    assert_int_equal(world->errors, 1);
    assert_null(rg_coordinator_view(world->coordinators[0], GROUP));
}

/* ---- backend --------------------------------------------------------------
 */

static void form_with(struct world *world, uint32_t preference,
                      uint32_t capabilities)
{
    for (int rank = 0; rank < RANKS; rank++) {
        struct rg_message *message = join_request(rank);

        if (rank == 2) {
            message->info.preference = preference;
            message->info.capabilities = capabilities;
        }
        ask(world, rank, message);
    }
    follow(world, 1);
}

static void one_rank_for_legacy_decides_for_all(void **state)
{
    struct world *world = *state;

    form_with(world, RG_BACKEND_LEGACY, RG_CAP_NEW_BACKEND);
    assert_true(rg_agent_view(world->agents[0], GROUP)->backend ==
                RG_BACKEND_LEGACY);
    assert_int_equal(world->warnings, 1);
    for (int rank = 0; rank < RANKS; rank++)
        ask_text(world, rank, RG_MSG_POLICY, "p");
    follow(world, 2);
    assert_int_equal(world->warnings, 1);
}

static void one_incapable_rank_decides_for_all(void **state)
{
    struct world *world = *state;

    form_with(world, RG_BACKEND_NEW, RG_CAP_P2P);
    assert_true(rg_agent_view(world->agents[3], GROUP)->backend ==
                RG_BACKEND_LEGACY);
    assert_int_equal(world->warnings, 1);
}

static void agreed_legacy_is_no_warning(void **state)
{
    struct world *world = *state;

    for (int rank = 0; rank < RANKS; rank++) {
        struct rg_message *message = join_request(rank);

        message->info.preference = RG_BACKEND_LEGACY;
        ask(world, rank, message);
    }
    follow(world, 1);
    assert_int_equal(world->warnings, 0);
}

/* ---- what contradicts, is stale or never comes ----------------------------
 */

static void inconsistent_joins_fail_for_all(void **state)
{
    struct world *world = *state;

    for (int round = 0; round < 5; round++) {
        for (int rank = 0; rank < RANKS; rank++) {
            struct rg_message *message = join_request(rank);

            message->capacity += round == 0 && rank == 1;
            message->first_seq += round == 1 && rank == 2;
            message->info.layout_hash += round == 2 && rank == 3;
            message->info.region_bytes += round == 3 && rank == 0;
            if (round == 4)
                message->capacity = RANKS - 1;
            ask(world, rank, message);
        }
        settle(world);
        assert_int_equal(world->errors, round + 1);
        for (int rank = 0; rank < RANKS; rank++) {
            expect_status(world, rank, RG_MSG_ERROR, RG_ECONFIG);
            ask(world, rank, request(RG_MSG_LEAVE));
        }
        settle(world);
        assert_null(rg_coordinator_view(world->coordinators[0], GROUP));
    }
    formed(state);
}

static void stale_and_repeated_answers_are_dropped(void **state)
{
    struct world *world = formed(state);
    struct rg_message *old = request(RG_MSG_QUIESCED);

    for (int rank = 0; rank < RANKS; rank++)
        ask_text(world, rank, RG_MSG_POLICY, "p");
    settle(world);
    old->term = 1;
    old->epoch = 1; /* of the change before */
    old->incarnation = INCARNATION;
    receive(world, 1, 0, old);
    old->epoch = 2;
    old->incarnation = 9; /* of another life of this rank */
    receive(world, 1, 0, old);
    old->incarnation = INCARNATION;
    old->term = 9;
    receive(world, 1, 0, old);
    old->term = 1;
    receive(world, RANKS, 0, old); /* of nobody */
    assert_int_equal(rg_coordinator_dropped(world->coordinators[0]), 4);
    rg_message_unref(old);
    for (int rank = 0; rank < RANKS; rank++) {
        expect(world, rank, RG_MSG_PREPARE);
        answer(world, rank, RG_MSG_QUIESCED, 1, 0, 0); /* stale: not sent */
        assert_int_equal(world->queued, 0);
        answer(world, rank, RG_MSG_QUIESCED, 2, 60, 60);
        answer(world, rank, RG_MSG_QUIESCED, 2, 0, 999); /* once only */
        settle(world);
    }
    expect(world, 0, RG_MSG_VIEW);
    answer(world, 0, RG_MSG_VIEW_ACK, 2, 0, 0);
    settle(world);
    assert_int_equal(world->boxed[0], 0); /* the others have not taken it */
    assert_true(rg_agent_view(world->agents[0], GROUP)->epoch == 1);
}

static void agents_drop_what_does_not_fit(void **state)
{
    struct world *world = formed(state);
    struct rg_message *view = request(RG_MSG_VIEW);
    struct rg_message *prepare = request(RG_MSG_PREPARE);

    view->term = prepare->term = 1;
    view->epoch = 2;
    prepare->epoch = 1;
    receive(world, 0, 1, view);    /* without PREPARE */
    receive(world, 0, 1, prepare); /* of the epoch in force */
    prepare->epoch = 2;
    receive(world, 3, 1, prepare); /* not from the coordinator */
    prepare->term = 0;
    receive(world, 0, 1, prepare); /* of an older term */
    assert_int_equal(world->boxed[1], 0);
    assert_int_equal(rg_agent_dropped(world->agents[1]), 4);
    rg_message_unref(view);
    rg_message_unref(prepare);
}

static void joining_is_bounded(void **state)
{
    struct world *world = *state;
    struct rg_input late = {.kind = RG_INPUT_TIMER,
                            .timer = {RG_TIMER_FORM, GROUP}};

    ask(world, 1, join_request(1));
    settle(world);
    step_agent(world, 1, &late);
    expect_status(world, 1, RG_MSG_ERROR, RG_ETIMEDOUT);
    assert_int_equal(world->errors, 1);
    step_agent(world, 1, &late);
    assert_int_equal(world->boxed[1], 0);
}

/* ---- silence --------------------------------------------------------------
 */

/* The first tick may follow at once on what was heard last. */
static void ticks_prove_a_silence(void **state)
{
    (void)state;
    assert_int_equal(rg_machine_ticks(200, 200), 2);
    assert_int_equal(rg_machine_ticks(201, 200), 3);
    assert_int_equal(rg_machine_ticks(500, 200), 4);
    assert_int_equal(rg_machine_ticks(600, 200), 4);
}

/* ---- pairs ----------------------------------------------------------------
 */

/* The caller's QUIESCED of epoch 2 with what it says of these pairs. */
static void answer_pairs(struct world *world, int rank, struct rg_pair *items,
                         int count)
{
    const struct rg_pairs pairs = {.items = items, .count = count};
    struct rg_message *message = request(RG_MSG_QUIESCED);

    message->epoch = 2;
    assert_int_equal(rg_pairs_copy(&pairs, &message->pairs), RG_OK);
    ask(world, rank, message);
}

/* All agents are asked for a policy, and their callers have been told. */
static void begin_change(struct world *world)
{
    for (int rank = 0; rank < RANKS; rank++)
        ask_text(world, rank, RG_MSG_POLICY, "p");
    settle(world);
    for (int rank = 0; rank < RANKS; rank++)
        expect(world, rank, RG_MSG_PREPARE);
}

/*
 * What only one end says, what a stranger says and what is said of slots that
 * do not exist counts for nothing.
 */
static void a_pair_has_what_both_ends_say(void **state)
{
    struct rg_pair of_0[] = {{0, 1, 9}, {0, 2, 4}, {1, 0, 6}};
    struct rg_pair of_1[] = {{0, 1, 8}, {1, 0, 7}, {1, 3, 3}};
    struct rg_pair of_2[] = {{0, 1, 1}, {0, 2, 4}, {2, -1, 2}, {2, 99, 2}};
    struct rg_pair of_3[] = {{2, 3, 5}};
    static const struct rg_pair want[] = {{0, 1, 8}, {0, 2, 4}, {1, 0, 6}};
    struct world *world = formed(state);

    begin_change(world);
    answer_pairs(world, 0, of_0, 3);
    answer_pairs(world, 1, of_1, 3);
    answer_pairs(world, 2, of_2, 4);
    answer_pairs(world, 3, of_3, 1);
    settle(world);
    for (int rank = 0; rank < RANKS; rank++) {
        struct rg_message *view = take_kind(world, rank, RG_MSG_VIEW);

        assert_int_equal(view->view->pairs.count, 3);
        assert_memory_equal(view->view->pairs.items, want, sizeof(want));
        rg_message_unref(view);
    }
}

/* Nothing is done with a member that does not go on. */
static void a_pair_ends_with_either_end(void **state)
{
    struct rg_pair of_0[] = {{0, 1, 9}, {0, 3, 4}, {3, 0, 6}};
    struct rg_pair of_1[] = {{0, 1, 9}};
    struct rg_pair of_3[] = {{0, 3, 4}, {3, 0, 6}};
    const struct rg_input gone = {
        .kind = RG_INPUT_GONE, .peer = 3, .process = 1};
    struct world *world = formed(state);
    struct rg_message *view;

    begin_change(world);
    answer_pairs(world, 0, of_0, 3);
    answer_pairs(world, 1, of_1, 1);
    answer_pairs(world, 3, of_3, 2);
    settle(world);
    world->dead[3] = 1;
    step_coordinator(world, 0, &gone);
    answer_pairs(world, 2, NULL, 0);
    settle(world);
    view = take_kind(world, 0, RG_MSG_VIEW);
    assert_int_equal(view->view->pairs.count, 1);
    assert_true(rg_pairs_find(&view->view->pairs, 0, 1) == 9);
    rg_message_unref(view);
}

/* ---- gather ---------------------------------------------------------------
 */

static void gather_answers_in_rank_order(void **state)
{
    struct world *world = formed(state);

    for (int rank = RANKS - 1; rank >= 0; rank--) {
        char text[3] = {(char)('a' + rank), (char)('0' + rank), 0};

        assert_int_equal(world->boxed[3], 0);
        ask_text(world, rank, RG_MSG_GATHER, text);
        settle(world);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        struct rg_message *message = take_kind(world, rank, RG_MSG_GATHERED);

        assert_int_equal(message->status, RG_OK);
        assert_string_equal(rg_message_text(message), "a0b1c2d3");
        rg_message_unref(message);
    }
}

/* Calls pair by number, also when one rank runs ahead of the others. */
static void gathers_pair_by_call(void **state)
{
    struct world *world = formed(state);

    ask_text(world, 0, RG_MSG_GATHER, "1");
    ask_text(world, 0, RG_MSG_GATHER, "2"); /* has given the first up */
    for (int rank = 1; rank < RANKS; rank++)
        ask_text(world, rank, RG_MSG_GATHER, "1");
    settle(world);
    assert_int_equal(world->boxed[0], 0);
    for (int rank = 1; rank < RANKS; rank++) {
        expect_status(world, rank, RG_MSG_GATHERED, RG_OK);
        ask_text(world, rank, RG_MSG_GATHER, rank == 3 ? "22" : "2");
    }
    settle(world);
    for (int rank = 0; rank < RANKS; rank++)
        expect_status(world, rank, RG_MSG_GATHERED, RG_EINVAL);
}

/* It is over when all have made it, so nobody's answer gets lost. */
static void a_refused_gather_is_a_call_of_all(void **state)
{
    struct world *world = formed(state);

    for (int call = 1; call <= 2; call++) {
        struct rg_message *message = request(RG_MSG_GATHER);

        message->status = RG_EINVAL;
        ask(world, 1, message);
        settle(world);
        assert_int_equal(world->boxed[1], 0);
        for (int rank = 0; rank < RANKS; rank++)
            if (rank != 1)
                ask_text(world, rank, RG_MSG_GATHER, "1");
        settle(world);
        for (int rank = 0; rank < RANKS; rank++)
            expect_status(world, rank, RG_MSG_GATHERED, RG_EINVAL);
    }
    for (int rank = 0; rank < RANKS; rank++)
        ask_text(world, rank, RG_MSG_GATHER, "2");
    settle(world);
    for (int rank = 0; rank < RANKS; rank++)
        expect_status(world, rank, RG_MSG_GATHERED, RG_OK);
}

static void give_up(struct world *world, int rank)
{
    struct rg_message *message = request(RG_MSG_GATHER);

    message->status = RG_ETIMEDOUT;
    ask(world, rank, message);
}

static void gather_all(struct world *world, const char *text)
{
    for (int rank = 0; rank < RANKS; rank++)
        ask_text(world, rank, RG_MSG_GATHER, text);
    settle(world);
}

/* Those who come late find it over, too, and all are at the next call. */
static void a_gather_given_up_ends_for_all(void **state)
{
    struct world *world = formed(state);

    ask_text(world, 1, RG_MSG_GATHER, "1");
    ask_text(world, 2, RG_MSG_GATHER, "1");
    settle(world);
    give_up(world, 1);
    settle(world);
    expect_status(world, 1, RG_MSG_GATHERED, RG_ETIMEDOUT);
    expect_status(world, 2, RG_MSG_GATHERED, RG_ETIMEDOUT);
    for (int rank = 1; rank <= 2; rank++)
        ask_text(world, rank, RG_MSG_GATHER, "2");
    settle(world);
    give_up(world, 2);
    settle(world);
    expect_status(world, 1, RG_MSG_GATHERED, RG_ETIMEDOUT);
    expect_status(world, 2, RG_MSG_GATHERED, RG_ETIMEDOUT);
    for (int call = 1; call <= 2; call++)
        for (int rank = 0; rank < RANKS; rank += 3) {
            ask_text(world, rank, RG_MSG_GATHER, "late");
            settle(world);
            expect_status(world, rank, RG_MSG_GATHERED, RG_ETIMEDOUT);
        }
    give_up(world, 0); /* nothing is open */
    gather_all(world, "3");
    for (int rank = 0; rank < RANKS; rank++)
        expect_status(world, rank, RG_MSG_GATHERED, RG_OK);
}

/* The others need not wait for what will never come. */
static void a_gather_passed_over_ends_for_all(void **state)
{
    struct world *world = formed(state);

    ask_text(world, 0, RG_MSG_GATHER, "1");
    while (world->queued)
        rg_message_unref(take_post(world, 0).message); /* is lost */
    for (int rank = 1; rank < RANKS; rank++)
        ask_text(world, rank, RG_MSG_GATHER, "1");
    settle(world);
    ask_text(world, 0, RG_MSG_GATHER, "2");
    settle(world);
    for (int rank = 1; rank < RANKS; rank++) {
        expect_status(world, rank, RG_MSG_GATHERED, RG_ETIMEDOUT);
        ask_text(world, rank, RG_MSG_GATHER, "2");
    }
    settle(world);
    for (int rank = 0; rank < RANKS; rank++)
        expect_status(world, rank, RG_MSG_GATHERED, RG_OK);
}

static void gather_before_the_first_view_is_unavailable(void **state)
{
    struct world *world = *state;

    ask(world, 0, join_request(0));
    ask_text(world, 0, RG_MSG_GATHER, "x");
    expect_status(world, 0, RG_MSG_GATHERED, RG_EUNAVAILABLE);
}

static void a_change_ends_open_gathers_and_restarts_the_count(void **state)
{
    struct world *world = formed(state);

    ask_text(world, 1, RG_MSG_GATHER, "x");
    for (int rank = 0; rank < RANKS; rank++)
        ask_text(world, rank, RG_MSG_POLICY, "p");
    settle(world);
    for (int rank = 0; rank < RANKS; rank++)
        answer(world, rank, RG_MSG_QUIESCED, 2, 60, 60);
    settle(world);
    for (int rank = 0; rank < RANKS; rank++)
        answer(world, rank, RG_MSG_VIEW_ACK, 2, 0, 0);
    settle(world);
    expect(world, 1, RG_MSG_PREPARE);
    expect(world, 1, RG_MSG_VIEW);
    expect_status(world, 1, RG_MSG_GATHERED, RG_EABORTED);
    expect(world, 1, RG_MSG_ACTIVATE);
    for (int rank = 0; rank < RANKS; rank++)
        ask_text(world, rank, RG_MSG_GATHER, "y");
    settle(world);
    expect_status(world, 1, RG_MSG_GATHERED, RG_OK);
}

/* ---- going ----------------------------------------------------------------
 */

static void leaving_in_turn_empties_the_coordinator(void **state)
{
    struct world *world = formed(state);

    for (int rank = 0; rank < RANKS; rank++) {
        assert_false(rg_coordinator_is_idle(world->coordinators[0]));
        ask(world, rank, request(RG_MSG_LEAVE));
        settle(world);
    }
    assert_true(rg_coordinator_is_idle(world->coordinators[0]));
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(world->boxed[rank], 0);
        assert_false(rg_agent_has_group(world->agents[rank], GROUP));
    }
    formed(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_view_waits_for_every_rank),
        TEST(a_change_takes_min_completed_and_max_claimed),
        TEST(a_policy_needs_all_and_the_same_text),
        TEST(a_first_view_of_two_minds_is_none),
        TEST(a_group_of_two_minds_ends),
        TEST(one_rank_for_legacy_decides_for_all),
        TEST(one_incapable_rank_decides_for_all),
        TEST(agreed_legacy_is_no_warning),
        TEST(inconsistent_joins_fail_for_all),
        TEST(stale_and_repeated_answers_are_dropped),
        TEST(agents_drop_what_does_not_fit),
        TEST(joining_is_bounded),
        TEST(ticks_prove_a_silence),
        TEST(a_pair_has_what_both_ends_say),
        TEST(a_pair_ends_with_either_end),
        TEST(gather_answers_in_rank_order),
        TEST(gathers_pair_by_call),
        TEST(a_refused_gather_is_a_call_of_all),
        TEST(a_gather_given_up_ends_for_all),
        TEST(a_gather_passed_over_ends_for_all),
        TEST(gather_before_the_first_view_is_unavailable),
        TEST(a_change_ends_open_gathers_and_restarts_the_count),
        TEST(leaving_in_turn_empties_the_coordinator),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
