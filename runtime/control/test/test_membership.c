/*
 * Members that die, hang, get lost, leave and come back: coordinators and
 * agents without input or output, whose callers answer as soon as they are
 * asked. Time passes only when a test says so.
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
    GROUP = 2,
    WORKSPACES = 3,
    FIRST_SEQ = 50, /* unless a test says otherwise */
    HEARTBEAT_MS = 200,
    MISS_MS = 1000,
    WINDOW_MS = 1000,
    ISOLATE_MS = 1000

};

struct post {
    int from;
    int to;
    struct rg_message *message;
};

struct process {
    struct rg_agent *agent;
    struct rg_coordinator *coordinator;
    uint32_t life;
    int is_dead;
    int is_mute; /* its caller answers nothing */
    int side;    /* processes of different sides do not hear each other */
    uint64_t timers[2][RG_TIMER_WINDOW + 1]; /* set for so long; 0: not */
    /* What its caller says and has seen. */
    uint64_t completed;
    uint64_t claimed;
    uint64_t epoch; /* in force; 0: none */
    int out;        /* status of EXCLUDED; 0: it is in */
    int error;      /* status of the last ERROR */
    int prepares;   /* seen */
    int notices[RG_NOTICE_COUNT];
    unsigned int failed; /* slots of the last notice of failures */
    int has_graphs;
};

struct job {
    int ranks;
    enum rg_mode mode;
    uint64_t first_seq;
    struct process *processes;
    struct post *queue; /* [first, last) */
    size_t first;
    size_t last;
    size_t room;
    int hold_kind; /* messages of this kind are not carried; 0: none */
    int warnings;
};

/* ---- the job --------------------------------------------------------------
 */

static void carry_out(struct job *job, int rank, int machine,
                      struct rg_effects *effects);

static void step(struct job *job, int rank, int machine,
                 const struct rg_input *input)
{
    struct rg_effects effects = {0};

    if (machine)
        rg_coordinator_step(job->processes[rank].coordinator, input, &effects);
    else
        rg_agent_step(job->processes[rank].agent, input, &effects);
    carry_out(job, rank, machine, &effects);
}

/* Drops the reference. */
static void ask(struct job *job, int rank, struct rg_message *message)
{
    const struct rg_input input = {.kind = RG_INPUT_REQUEST,
                                   .message = message};

    step(job, rank, 0, &input);
    rg_message_unref(message);
}

static struct rg_message *request(enum rg_message_kind kind)
{
    struct rg_message *message = rg_message_create(kind, GROUP);

    assert_non_null(message);
    return message;
}

static void answer(struct job *job, int rank, enum rg_message_kind kind,
                   const struct rg_message *asked)
{
    const struct process *process = &job->processes[rank];
    struct rg_message *message = request(kind);

    message->epoch = asked->epoch;
    message->completed = process->completed;
    message->claimed = process->claimed;
    ask(job, rank, message);
}

/* What a caller does with what its agent delivers. */
static void deliver(struct job *job, int rank, const struct rg_message *message)
{
    struct process *process = &job->processes[rank];

    if (message->kind == RG_MSG_PREPARE) {
        process->prepares++;
        if (!process->is_mute)
            answer(job, rank, RG_MSG_QUIESCED, message);
    } else if (message->kind == RG_MSG_VIEW && !process->is_mute) {
        answer(job, rank, RG_MSG_VIEW_ACK, message);
    } else if (message->kind == RG_MSG_ACTIVATE) {
        process->epoch = message->epoch;
    } else if (message->kind == RG_MSG_EXCLUDED) {
        process->out = message->status;
        process->epoch = 0;
    } else if (message->kind == RG_MSG_ERROR) {
        process->error = message->status;
    } else if (message->kind == RG_MSG_NOTICE) {
        process->notices[message->status]++;
        for (int slot = 0; message->status == RG_NOTICE_FAILED && slot < 32;
             slot++)
            process->failed = (process->failed & ~(1u << slot)) |
                              (unsigned int)(slot < job->ranks &&
                                             rg_message_has_slot(message, slot))
                                  << slot;
    }
}

static void send(struct job *job, int from, int to, struct rg_message *message)
{
    if (to < 0 || to >= job->ranks ||
        job->processes[from].side != job->processes[to].side ||
        (int)message->kind == job->hold_kind)
        return;
    if (job->last == job->room) {
        job->room = job->room ? 2 * job->room : 1024;
        job->queue = realloc(job->queue, job->room * sizeof(*job->queue));
        assert_non_null(job->queue);
    }
    job->queue[job->last++] = (struct post){
        .from = from, .to = to, .message = rg_message_ref(message)};
}

static void carry_out(struct job *job, int rank, int machine,
                      struct rg_effects *effects)
{
    assert_int_equal(effects->rc, RG_OK);
    for (size_t i = 0; i < effects->count; i++) {
        struct rg_effect *effect = &effects->items[i];

        if (effect->kind == RG_EFFECT_SEND)
            send(job, rank, effect->peer, effect->message);
        else if (effect->kind == RG_EFFECT_DELIVER)
            deliver(job, rank, effect->message);
        else if (effect->kind == RG_EFFECT_TIMER)
            job->processes[rank].timers[machine][effect->timer.kind] =
                effect->delay_ms;
        else if (effect->kind == RG_EFFECT_LOG)
            job->warnings += effect->level == RG_LOG_WARN;
    }
    rg_effects_fini(effects);
}

/* The network until it is empty. */
static void settle(struct job *job)
{
    while (job->first < job->last) {
        struct post post = job->queue[job->first++];
        const struct rg_input input = {.kind = RG_INPUT_MESSAGE,
                                       .peer = post.from,
                                       .message = post.message};

        if (!job->processes[post.to].is_dead)
            step(job, post.to, rg_message_for_coordinator(post.message->kind),
                 &input);
        rg_message_unref(post.message);
    }
    job->first = job->last = 0;
}

static void fire(struct job *job, int rank, int machine,
                 enum rg_timer_kind kind)
{
    const struct rg_input input = {.kind = RG_INPUT_TIMER,
                                   .timer = {kind, GROUP}};
    uint64_t *timer = &job->processes[rank].timers[machine][kind];

    if (!*timer || job->processes[rank].is_dead)
        return;
    *timer = 0;
    step(job, rank, machine, &input);
}

/* A heartbeat passes everywhere. */
static void tick(struct job *job)
{
    for (int rank = 0; rank < job->ranks; rank++) {
        fire(job, rank, 0, RG_TIMER_TICK);
        fire(job, rank, 1, RG_TIMER_TICK);
    }
    settle(job);
}

/* All who wait for a window or for their turn have waited long enough. */
static void expire(struct job *job)
{
    for (int rank = 0; rank < job->ranks; rank++) {
        fire(job, rank, 1, RG_TIMER_WINDOW);
        settle(job);
        fire(job, rank, 0, RG_TIMER_ELECT);
        settle(job);
    }
}

/* Enough heartbeats and windows for all to find an end. */
static void pass_time(struct job *job)
{
    for (int round = 0; round < 40; round++) {
        tick(job);
        if (round % 5 == 4)
            expire(job);
    }
}

static void boot(struct job *job, int rank)
{
    struct process *process = &job->processes[rank];
    const struct rg_coordinator_config coordinator = {
        .rank = rank,
        .world_size = job->ranks,
        .mode = job->mode,
        .workspaces = WORKSPACES,
        .routes = 2,
        .heartbeat_ms = HEARTBEAT_MS,
        .miss_ms = MISS_MS,
        .window_ms = WINDOW_MS,
        .plan_ms = 10 * WINDOW_MS};
    const struct rg_agent_config agent = {.rank = rank,
                                          .world_size = job->ranks,
                                          .process = process->life + 1,
                                          .form_ms = 60000,
                                          .heartbeat_ms = HEARTBEAT_MS,
                                          .miss_ms = MISS_MS,
                                          .window_ms = WINDOW_MS,
                                          .isolate_ms = ISOLATE_MS};

    rg_agent_destroy(process->agent);
    rg_coordinator_destroy(process->coordinator);
    *process =
        (struct process){.agent = rg_agent_create(&agent),
                         .coordinator = rg_coordinator_create(&coordinator),
                         .life = agent.process,
                         .completed = job->first_seq - 1,
                         .claimed = job->first_seq - 1};
    assert_true(process->agent && process->coordinator);
}

static void join(struct job *job, int rank, int rejoin, uint32_t preference)
{
    struct rg_message *message = request(RG_MSG_JOIN);

    message->status = rejoin;
    message->capacity = job->ranks;
    message->first_seq = job->first_seq;
    message->info.capabilities = RG_CAP_NEW_BACKEND | RG_CAP_P2P;
    message->info.preference = preference;
    job->processes[rank].out = 0;
    ask(job, rank, message);
}

static struct job *create_at(int ranks, enum rg_mode mode, uint64_t first_seq)
{
    struct job *job = calloc(1, sizeof(*job));

    assert_non_null(job);
    job->ranks = ranks;
    job->mode = mode;
    job->first_seq = first_seq;
    job->processes = calloc((size_t)ranks, sizeof(*job->processes));
    assert_non_null(job->processes);
    for (int rank = 0; rank < ranks; rank++)
        boot(job, rank);
    for (int rank = 0; rank < ranks; rank++)
        join(job, rank, 0, RG_BACKEND_NEW);
    settle(job);
    for (int rank = 0; rank < ranks; rank++)
        assert_true(job->processes[rank].epoch == 1);
    return job;
}

static struct job *create(int ranks, enum rg_mode mode)
{
    return create_at(ranks, mode, FIRST_SEQ);
}

static void destroy(struct job *job)
{
    for (size_t i = job->first; i < job->last; i++)
        rg_message_unref(job->queue[i].message);
    for (int rank = 0; rank < job->ranks; rank++) {
        rg_agent_destroy(job->processes[rank].agent);
        rg_coordinator_destroy(job->processes[rank].coordinator);
    }
    free(job->processes);
    free(job->queue);
    free(job);
}

/* Everyone alive on this host sees the end of the process. */
static void tell(struct job *job, int rank, enum rg_input_kind kind)
{
    const struct rg_input input = {
        .kind = kind, .peer = rank, .process = job->processes[rank].life};

    for (int other = 0; other < job->ranks; other++)
        if (!job->processes[other].is_dead && other != rank) {
            step(job, other, 0, &input);
            step(job, other, 1, &input);
        }
}

static void die(struct job *job, int rank)
{
    job->processes[rank].is_dead = 1;
    job->processes[rank].epoch = 0;
    tell(job, rank, RG_INPUT_GONE);
}

static void die_and_exit(struct job *job, int rank)
{
    die(job, rank);
    tell(job, rank, RG_INPUT_EXITED);
    settle(job);
}

static const struct rg_view *view_of(const struct job *job, int rank)
{
    const struct rg_view *view =
        rg_agent_view(job->processes[rank].agent, GROUP);

    assert_non_null(view);
    return view;
}

/* The ranks of the mask, and they alone, are in one view of this epoch. */
static void assert_members(const struct job *job, unsigned int mask,
                           uint64_t epoch)
{
    for (int rank = 0; rank < job->ranks; rank++) {
        int in = (int)(mask >> rank & 1);

        if (!in) {
            assert_true(job->processes[rank].epoch < epoch);
            continue;
        }
        assert_true(job->processes[rank].epoch == epoch);
        for (int slot = 0; slot < job->ranks; slot++)
            assert_int_equal(rg_view_rank_of(view_of(job, rank), slot) >= 0,
                             mask >> slot & 1);
        assert_true(view_of(job, rank)->epoch == epoch);
    }
}

static void report(struct job *job, int rank, int evidence, uint64_t seq,
                   int accused)
{
    struct rg_message *message = request(RG_MSG_REPORT);
    struct rg_bitset slots;

    rg_bitset_init(&slots, job->ranks);
    if (accused >= 0)
        rg_bitset_set(&slots, accused);
    rg_message_set_slots(message, &slots);
    rg_bitset_fini(&slots);
    message->status = evidence;
    message->claimed = seq;
    ask(job, rank, message);
}

static void report_stall(struct job *job, int rank, uint64_t seq, int waits_for)
{
    report(job, rank, RG_EVIDENCE_STALLED, seq, waits_for);
}

/* All present members ask for the same change. */
static void change(struct job *job, unsigned int ranks, unsigned int leavers,
                   int vouch)
{
    struct rg_bitset slots;

    rg_bitset_init(&slots, job->ranks);
    for (int slot = 0; slot < job->ranks; slot++)
        if (leavers >> slot & 1)
            rg_bitset_set(&slots, slot);
    for (int rank = 0; rank < job->ranks; rank++) {
        struct rg_message *message;

        if (!(ranks >> rank & 1))
            continue;
        message = request(RG_MSG_CHANGE);
        message->status = vouch;
        rg_message_set_slots(message, &slots);
        ask(job, rank, message);
    }
    rg_bitset_fini(&slots);
    settle(job);
}

/* ---- deaths ---------------------------------------------------------------
 */

static void the_dead_leave_at_once(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);
    const struct rg_view *view;

    (void)state;
    for (int rank = 0; rank < 4; rank++) {
        job->processes[rank].completed = 60 + (uint64_t)rank;
        job->processes[rank].claimed = 70 - (uint64_t)rank;
    }
    die(job, 3);
    settle(job);
    assert_members(job, 0x7, 2);
    view = view_of(job, 1);
    assert_true(view->committed_seq == 60 && view->first_seq == 71);
    assert_int_equal(view->workspace, 1);
    assert_true(view->members[3].status == RG_MEMBER_FAILED);
    assert_int_equal(view->members[3].quarantine, 1); /* generation 0 */
    destroy(job);
}

/* The second dies when the first view without the other is on its way. */
static void a_death_during_a_change_joins_it(void **state)
{
    (void)state;
    for (int kind = RG_MSG_PREPARE; kind <= RG_MSG_ACTIVATE; kind++) {
        struct job *job = create(5, RG_MODE_SYNC);

        job->hold_kind = kind;
        die(job, 4);
        settle(job);
        job->hold_kind = 0;
        die(job, 3);
        settle(job);
        tick(job);
        tick(job);
        /* Once decided, a view stays: the next one is without both. */
        assert_members(job, 0x7, kind == RG_MSG_ACTIVATE ? 3 : 2);
        destroy(job);
    }
}

static void who_does_not_answer_leaves(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    job->processes[1].is_mute = 1;
    die_and_exit(job, 3);
    assert_true(job->processes[0].epoch == 1); /* waits for rank 1 */
    expire(job);
    assert_members(job, 0x5, 2);
    destroy(job);
}

static void a_silent_member_is_probed_and_leaves(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    job->processes[2].is_dead = 1; /* nobody sees it */
    pass_time(job);
    assert_int_equal(view_of(job, 0)->nactive, 3);
    assert_true(view_of(job, 0)->members[2].status == RG_MEMBER_FAILED);
    destroy(job);
}

static void a_silent_member_that_answers_stays(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    job->hold_kind = RG_MSG_HEARTBEAT;
    for (int i = 0; i < MISS_MS / HEARTBEAT_MS + 2; i++)
        tick(job);
    job->hold_kind = 0;
    pass_time(job);
    assert_int_equal(view_of(job, 0)->nactive, 4);
    assert_true(view_of(job, 3)->epoch > 1);
    destroy(job);
}

/* ---- succession -----------------------------------------------------------
 */

static void the_lowest_takes_over(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    die_and_exit(job, 0);
    assert_members(job, 0xe, 2);
    assert_int_equal(view_of(job, 3)->coordinator, 1);
    assert_true(view_of(job, 3)->term == 2);
    die_and_exit(job, 1);
    assert_members(job, 0xc, 3);
    die_and_exit(job, 2);
    assert_members(job, 0x8, 4); /* all others are dead */
    destroy(job);
}

/* A view that some had accepted is made good before anything changes. */
/* Whoever does not answer it is gone when that window is over. */
static void a_silent_coordinator_costs_one_window(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    job->processes[0].side = 1;
    for (int beat = 0; beat <= MISS_MS / HEARTBEAT_MS; beat++)
        tick(job);
    assert_members(job, 0xf, 1);
    for (int rank = 1; rank < 4; rank++)
        fire(job, rank, 1, RG_TIMER_WINDOW);
    settle(job);
    for (int rank = 1; rank < 4; rank++) {
        assert_true(job->processes[rank].epoch == 2);
        assert_int_equal(view_of(job, rank)->nactive, 3);
        assert_int_equal(view_of(job, rank)->coordinator, 1);
    }
    destroy(job);
}

/* But who answers in time stays, and nothing is aborted. */
static void a_coordinator_that_answers_its_successor_stays(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    job->processes[0].side = 1;
    for (int beat = 0; beat <= MISS_MS / HEARTBEAT_MS; beat++)
        tick(job);
    job->processes[0].side = 0;
    tick(job);
    assert_members(job, 0xf, 1);
    assert_int_equal(
        rg_coordinator_is_steady(job->processes[1].coordinator, GROUP), 1);
    destroy(job);
}

static void a_successor_adopts_what_was_proposed(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);
    const struct rg_view *view;

    (void)state;
    job->processes[2].completed = 66;
    job->hold_kind = RG_MSG_ACTIVATE;
    die(job, 3); /* a view without it is accepted, not activated */
    settle(job);
    assert_true(job->processes[2].epoch == 1);
    die(job, 0);
    job->hold_kind = 0;
    settle(job);
    tick(job);
    assert_members(job, 0x6, 3);
    view = view_of(job, 1);
    assert_int_equal(view->coordinator, 1);
    assert_true(view->members[3].status == RG_MEMBER_FAILED);
    destroy(job);
}

static void a_replaced_coordinator_steps_down(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    job->processes[0].side = 1;
    pass_time(job);
    assert_int_equal(view_of(job, 1)->nactive, 3);
    assert_int_equal(job->processes[0].out, RG_EISOLATED);
    assert_true(rg_coordinator_is_idle(job->processes[0].coordinator));
    destroy(job);
}

/* ---- sides ----------------------------------------------------------------
 */

static void half_with_the_lowest_goes_on(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    job->processes[2].side = job->processes[3].side = 1;
    pass_time(job);
    pass_time(job);
    assert_int_equal(view_of(job, 0)->nactive, 2);
    assert_int_equal(view_of(job, 1)->nactive, 2);
    assert_int_equal(job->processes[2].out, RG_EISOLATED);
    assert_int_equal(job->processes[3].out, RG_EISOLATED);
    destroy(job);
}

static void the_isolated_come_back_into_their_slots(void **state)
{
    struct job *job = create(5, RG_MODE_SYNC);
    uint32_t before = view_of(job, 0)->members[4].incarnation;

    (void)state;
    job->processes[4].side = 1;
    pass_time(job);
    assert_int_equal(job->processes[4].out, RG_EISOLATED);
    job->processes[4].side = 0;
    ask(job, 4, request(RG_MSG_LEAVE));
    join(job, 4, 1, RG_BACKEND_NEW);
    settle(job);
    tick(job);
    tick(job);
    assert_int_equal(job->processes[0].notices[RG_NOTICE_JOINERS], 1);
    assert_true(job->processes[4].epoch == 0); /* all must ask for it */
    change(job, 0xf, 0, 0);
    assert_members(job, 0x1f, view_of(job, 0)->epoch);
    assert_true(view_of(job, 0)->members[4].incarnation > before);
    assert_int_equal(view_of(job, 0)->members[4].quarantine, 0);
    destroy(job);
}

/* Who gives up waiting is not waited for, whether or not it was to come in. */
static void a_withdrawn_rejoin_lets_the_others_go_on(void **state)
{
    struct job *job = create(5, RG_MODE_SYNC);

    (void)state;
    job->processes[4].side = 1;
    pass_time(job);
    job->processes[4].side = 0;
    ask(job, 4, request(RG_MSG_LEAVE));
    join(job, 4, 1, RG_BACKEND_NEW);
    settle(job);
    ask(job, 4, request(RG_MSG_LEAVE));
    settle(job);
    change(job, 0xf, 0, 0);
    assert_members(job, 0xf, 3);
    join(job, 4, 1, RG_BACKEND_NEW);
    settle(job);
    job->hold_kind = RG_MSG_QUIESCED;
    change(job, 0xf, 0, 0); /* it is a part of this one */
    ask(job, 4, request(RG_MSG_LEAVE));
    settle(job);
    job->hold_kind = 0;
    tick(job);
    assert_members(job, 0xf, 4);
    join(job, 4, 1, RG_BACKEND_NEW);
    settle(job);
    change(job, 0xf, 0, 0);
    assert_members(job, 0x1f, 5);
    destroy(job);
}

/* While one may still be at work out there, another cannot come in. */
static void joiners_wait_for_stragglers(void **state)
{
    struct job *job = create(7, RG_MODE_SYNC);

    (void)state;
    job->processes[5].side = job->processes[6].side = 1;
    pass_time(job);
    assert_int_equal(view_of(job, 0)->nactive, 5);
    job->processes[5].side = 0;
    ask(job, 5, request(RG_MSG_LEAVE));
    join(job, 5, 1, RG_BACKEND_NEW);
    settle(job);
    change(job, 0x1f, 0, 0);
    assert_int_equal(view_of(job, 0)->nactive, 5);
    change(job, 0x1f, 0x40, 1); /* they vouch for the other one */
    assert_int_equal(view_of(job, 0)->nactive, 6);
    assert_true(job->processes[5].epoch == view_of(job, 0)->epoch);
    destroy(job);
}

/* The dead have not to vote, but they may have voted. */
static void survivors_cannot_rule_out_what_the_dead_decided(void **state)
{
    struct job *job = create(5, RG_MODE_SYNC);

    (void)state;
    job->processes[2].side = 1;
    die(job, 0);
    die(job, 1);
    settle(job);
    pass_time(job);
    assert_int_equal(job->processes[3].out, RG_EISOLATED);
    assert_int_equal(job->processes[4].out, RG_EISOLATED);
    destroy(job);
}

/* ---- a process started anew ----------------------------------------------
 */

static void a_new_process_gets_the_old_slot(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    die_and_exit(job, 2);
    boot(job, 2);
    assert_int_equal(job->processes[2].life, 2);
    join(job, 2, 1, RG_BACKEND_NEW);
    settle(job);
    change(job, 0xb, 0, 0);
    assert_members(job, 0xf, 3);
    assert_int_equal(
        view_of(job, 2)->members[2].incarnation >> RG_INCARNATION_SHIFT, 2);
    /* A late word of the first life's death does not touch the second. */
    job->processes[2].life = 1;
    tell(job, 2, RG_INPUT_GONE);
    settle(job);
    assert_members(job, 0xf, 3);
    destroy(job);
}

static void a_legacy_joiner_is_refused_while_graphs_live(void **state)
{
    struct job *job = create(3, RG_MODE_SYNC);
    struct rg_message *progress = request(RG_MSG_PROGRESS);

    (void)state;
    progress->claimed = 1;
    ask(job, 1, progress);
    die_and_exit(job, 2);
    boot(job, 2);
    join(job, 2, 1, RG_BACKEND_LEGACY);
    settle(job);
    change(job, 0x3, 0, 0);
    assert_int_equal(job->processes[2].error, RG_EBACKEND);
    assert_members(job, 0x3, 3);
    assert_true(view_of(job, 0)->backend == RG_BACKEND_NEW);
    destroy(job);
}

static void a_legacy_joiner_turns_the_group_legacy(void **state)
{
    struct job *job = create(3, RG_MODE_SYNC);

    (void)state;
    die_and_exit(job, 2);
    boot(job, 2);
    job->warnings = 0;
    join(job, 2, 1, RG_BACKEND_LEGACY);
    settle(job);
    change(job, 0x3, 0, 0);
    assert_members(job, 0x7, 3);
    assert_true(view_of(job, 0)->backend == RG_BACKEND_LEGACY);
    assert_int_equal(job->warnings, 1);
    die_and_exit(job, 2);
    assert_true(view_of(job, 0)->backend == RG_BACKEND_NEW);
    destroy(job);
}

/* A failure finds launches in flight that are for the group's backend. */
static void a_failure_does_not_turn_the_group_legacy(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    die_and_exit(job, 3);
    boot(job, 3);
    join(job, 3, 1, RG_BACKEND_LEGACY);
    settle(job);
    for (int rank = 0; rank < 3; rank++)
        job->processes[rank].claimed = 60;
    report_stall(job, 0, 60, 1);
    settle(job);
    assert_members(job, 0x7, 3);
    assert_true(view_of(job, 0)->backend == RG_BACKEND_NEW);
    change(job, 0x7, 0, 0);
    assert_members(job, 0xf, 4);
    assert_true(view_of(job, 0)->backend == RG_BACKEND_LEGACY);
    destroy(job);
}

/* ---- stalls ---------------------------------------------------------------
 */

static void who_never_began_the_seq_is_the_culprit(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    for (int rank = 0; rank < 4; rank++)
        job->processes[rank].claimed = rank == 2 ? 59 : 60;
    /* In a ring everyone accuses its predecessor. */
    for (int rank = 0; rank < 4; rank++)
        if (rank != 2)
            report_stall(job, rank, 60, (rank + 3) % 4);
    settle(job);
    assert_members(job, 0xb, 2);
    assert_int_equal(job->processes[2].out, RG_EISOLATED);
    destroy(job);
}

static void the_coordinator_itself_may_be_the_culprit(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    for (int rank = 1; rank < 4; rank++)
        job->processes[rank].claimed = 60;
    for (int rank = 1; rank < 4; rank++)
        report_stall(job, rank, 60, 0);
    settle(job);
    tick(job);
    tick(job);
    assert_members(job, 0xe, 2);
    assert_int_equal(view_of(job, 2)->coordinator, 1);
    assert_int_equal(job->processes[0].out, RG_EISOLATED);
    destroy(job);
}

/* Nobody is to blame: first another route, then the worst member leaves. */
static void a_wait_cycle_is_a_failure_of_links(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int rank = 0; rank < 4; rank++)
            job->processes[rank].claimed = 60 + (uint64_t)round * 10;
        report_stall(job, 3, 60 + (uint64_t)round * 10, 1);
        settle(job);
        assert_int_equal(view_of(job, 0)->nfaults, 1);
        assert_int_equal(view_of(job, 0)->faults[0].from, 1);
        assert_int_equal(view_of(job, 0)->faults[0].to, 3);
        assert_int_equal(view_of(job, 0)->nactive, round ? 3 : 4);
    }
    assert_true(view_of(job, 0)->members[3].status == RG_MEMBER_FAILED);
    destroy(job);
}

/* However often it is reported, and by whom; not again at a planned change. */
static void a_link_fails_once_an_epoch(void **state)
{
    struct job *job = create(4, RG_MODE_DEACTIVATE);

    (void)state;
    for (int rank = 0; rank < 4; rank++)
        job->processes[rank].claimed = 60;
    report_stall(job, 3, 60, 1);
    report_stall(job, 3, 60, 1);
    report(job, 1, RG_EVIDENCE_UNREACHABLE, 0, 3);
    report(job, 1, RG_EVIDENCE_UNREACHABLE, 0, 2);
    settle(job);
    for (uint64_t epoch = 2; epoch < 5; epoch++) {
        change(job, 0xf, 0, 0);
        assert_members(job, 0xf, epoch);
        assert_int_equal(view_of(job, 0)->nfaults, 2);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(view_of(job, 0)->faults[i].from, 1);
            assert_int_equal(view_of(job, 0)->faults[i].to, 2 + i);
            assert_int_equal(view_of(job, 0)->faults[i].count, 1);
        }
    }
    destroy(job);
}

/* ---- seqs that wrap -------------------------------------------------------
 */

static void claim(struct job *job, int rank, uint64_t claimed)
{
    job->processes[rank].claimed = claimed;
    job->processes[rank].completed = claimed - 1;
}

/* Who has claimed behind the wrap has claimed more than who has not. */
static void an_epoch_begins_behind_the_wrap(void **state)
{
    struct job *job = create_at(4, RG_MODE_SYNC, UINT64_MAX - 8);

    (void)state;
    for (int rank = 0; rank < 3; rank++)
        claim(job, rank, 0);
    claim(job, 3, UINT64_MAX);
    change(job, 0xf, 0, 0);
    assert_true(view_of(job, 1)->committed_seq == UINT64_MAX - 1);
    assert_true(view_of(job, 1)->first_seq == 1);
    for (int rank = 0; rank < 4; rank++)
        claim(job, rank, 20 + (uint64_t)(rank == 2));
    change(job, 0xf, 0, 0);
    assert_true(view_of(job, 1)->committed_seq == 19);
    assert_true(view_of(job, 1)->first_seq == 22);
    destroy(job);
}

/* Others wait for it in a seq behind the wrap: 0 is one like any other. */
static void who_lags_before_the_wrap_is_to_blame(void **state)
{
    struct job *job = create_at(4, RG_MODE_SYNC, UINT64_MAX - 8);

    (void)state;
    for (int rank = 0; rank < 3; rank++)
        claim(job, rank, 0);
    claim(job, 3, UINT64_MAX);
    report_stall(job, 1, 0, 3);
    settle(job);
    assert_members(job, 0x7, 2);
    assert_true(view_of(job, 1)->first_seq == 1);
    destroy(job);
}

static void tell_progress(struct job *job, uint64_t completed)
{
    for (int rank = 0; rank < job->ranks; rank++) {
        struct rg_message *message = request(RG_MSG_PROGRESS);

        message->completed = completed;
        ask(job, rank, message);
    }
    tick(job);
    tick(job);
}

static void the_floor_rises_across_the_wrap(void **state)
{
    const uint64_t first_seq = UINT64_MAX - 8;
    struct job *job = create_at(3, RG_MODE_SYNC, first_seq);

    (void)state;
    for (uint64_t i = 0; i < 12; i++) {
        assert_true(rg_agent_committed(job->processes[2].agent, GROUP) ==
                    first_seq - 1 + i);
        tell_progress(job, first_seq + i);
    }
    destroy(job);
}

/* ---- modes and plans ------------------------------------------------------
 */

static void failures_wait_for_a_change(void **state)
{
    static const enum rg_mode modes[] = {RG_MODE_DEACTIVATE, RG_MODE_MANAGED};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct job *job = create(4, modes[i]);

        die_and_exit(job, 3);
        tick(job);
        tick(job);
        assert_true(job->processes[0].epoch == 1);
        assert_int_equal(job->processes[1].notices[RG_NOTICE_FAILED], 1);
        change(job, 0x7, i ? 0x8 : 0, 0);
        assert_members(job, 0x7, 2);
        destroy(job);
    }
}

/* Neither who waits nor who has said whom it does not reach. */
static void a_notice_names_who_has_failed(void **state)
{
    struct job *job = create(5, RG_MODE_MANAGED);

    (void)state;
    report_stall(job, 4, 60, 3);
    settle(job);
    tick(job); /* the others may have something to say yet */
    assert_int_equal(job->processes[0].notices[RG_NOTICE_FAILED], 0);
    report_stall(job, 0, 60, 4);
    report_stall(job, 3, 60, 2);
    report_stall(job, 1, 60, 0);
    settle(job);
    tick(job);
    tick(job);
    for (int rank = 0; rank < 5; rank++) {
        assert_int_equal(job->processes[rank].notices[RG_NOTICE_FAILED], 1);
        assert_int_equal(job->processes[rank].failed, 1u << 2);
    }
    change(job, 0x1f, 1u << 2, 0);
    assert_members(job, 0x1b, 2);
    report(job, 1, RG_EVIDENCE_UNREACHABLE, 0, 4);
    settle(job);
    tick(job);
    tick(job);
    assert_int_equal(job->processes[0].failed, 1u << 4);
    destroy(job);
}

/* A report that names nobody says that its sender waits itself. */
static void who_was_aborted_waiting_is_not_to_blame(void **state)
{
    struct job *job = create(4, RG_MODE_DEACTIVATE);

    (void)state;
    job->processes[0].claimed = job->processes[1].claimed = 60;
    job->processes[2].claimed = job->processes[3].claimed = 59;
    report_stall(job, 0, 60, 2);
    report(job, 2, RG_EVIDENCE_STALLED, 59, -1);
    settle(job);
    change(job, 0xf, 0, 0);
    assert_members(job, 0x7, 2); /* rank 3 never began seq 60, nor waits */
    destroy(job);
}

static void members_leave_by_plan(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    change(job, 0x7, 0x4, 0);
    assert_true(job->processes[0].epoch == 1); /* rank 3 has not asked */
    change(job, 0x8, 0x4, 0);
    assert_members(job, 0xb, 2);
    assert_int_equal(job->processes[2].out, RG_ECLOSED);
    assert_true(view_of(job, 0)->members[2].status == RG_MEMBER_INACTIVE);
    assert_int_equal(view_of(job, 0)->members[2].quarantine, 0);
    destroy(job);
}

/* Whoever is to leave does not decide it: it hands over first. */
static void a_leaving_coordinator_hands_over(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    change(job, 0xf, 0x1, 0);
    tick(job);
    tick(job);
    assert_members(job, 0xe, 2);
    assert_int_equal(view_of(job, 1)->coordinator, 1);
    assert_int_equal(job->processes[0].out, RG_ECLOSED);
    destroy(job);
}

static void a_change_must_leave_somebody(void **state)
{
    struct job *job = create(2, RG_MODE_SYNC);

    (void)state;
    change(job, 0x3, 0x3, 0);
    assert_int_equal(job->processes[0].error, RG_EINVAL);
    assert_int_equal(job->processes[1].error, RG_EINVAL);
    assert_members(job, 0x3, 1);
    destroy(job);
}

/* ---- workspaces and the floor --------------------------------------------
 */

static void running_out_of_workspaces_has_a_name(void **state)
{
    struct job *job = create(6, RG_MODE_SYNC);

    (void)state;
    for (int rank = 5; rank > 3; rank--) {
        die(job, rank); /* none of them is known to have exited */
        settle(job);
    }
    assert_members(job, 0xf, 3);
    die(job, 3);
    settle(job);
    assert_true(job->processes[0].epoch == 3); /* and no PREPARE for 4 */
    assert_int_equal(job->processes[0].prepares, 3);
    expire(job);
    assert_int_equal(job->processes[0].out, RG_ENOSPC);
    assert_int_equal(job->processes[2].out, RG_ENOSPC);
    destroy(job);
}

/* What is only asked for is refused; the view stays, and so does the group. */
static void a_change_without_a_workspace_is_refused(void **state)
{
    struct job *job = create(6, RG_MODE_SYNC);

    (void)state;
    for (int rank = 5; rank > 3; rank--) {
        die(job, rank);
        settle(job);
    }
    change(job, 0xf, 0, 0);
    expire(job);
    for (int rank = 0; rank < 4; rank++) {
        assert_int_equal(job->processes[rank].error, RG_ENOSPC);
        assert_int_equal(job->processes[rank].out, RG_OK);
    }
    assert_members(job, 0xf, 3);
    change(job, 0xf, 0x30, 1);
    settle(job);
    assert_members(job, 0xf, 4);
    destroy(job);
}

static void an_exit_makes_a_workspace_clean(void **state)
{
    struct job *job = create(6, RG_MODE_SYNC);

    (void)state;
    for (int rank = 5; rank > 2; rank--) {
        die(job, rank);
        settle(job);
    }
    tell(job, 4, RG_INPUT_EXITED); /* it used generation 1 */
    settle(job);
    assert_members(job, 0x7, 4);
    assert_int_equal(view_of(job, 0)->workspace, 1);
    destroy(job);
}

static void the_floor_is_what_all_have_completed(void **state)
{
    struct job *job = create(3, RG_MODE_SYNC);

    (void)state;
    for (int rank = 0; rank < 3; rank++) {
        struct rg_message *progress = request(RG_MSG_PROGRESS);

        progress->completed = 60 + (uint64_t)rank;
        ask(job, rank, progress);
    }
    tick(job);
    tick(job);
    for (int rank = 0; rank < 3; rank++)
        assert_true(rg_agent_committed(job->processes[rank].agent, GROUP) ==
                    60);
    destroy(job);
}

/* ---- new groups after deaths ----------------------------------------------
 */

static void a_new_group_forms_without_the_dead(void **state)
{
    struct job *job = create(4, RG_MODE_SYNC);

    (void)state;
    die_and_exit(job, 0);
    die_and_exit(job, 2);
    for (int rank = 1; rank < 4; rank += 2) {
        ask(job, rank, request(RG_MSG_LEAVE));
        settle(job);
    }
    assert_true(rg_coordinator_is_idle(job->processes[1].coordinator));
    for (int rank = 1; rank < 4; rank += 2)
        join(job, rank, 0, RG_BACKEND_NEW);
    settle(job);
    assert_true(job->processes[1].epoch == 1 && job->processes[3].epoch == 1);
    assert_int_equal(view_of(job, 3)->nactive, 2);
    assert_int_equal(view_of(job, 3)->coordinator, 1);
    destroy(job);
}

/* ---- size -----------------------------------------------------------------
 */

static void thousands_of_members(void **state)
{
    enum { MANY = 4096 };
    struct job *job = create(MANY, RG_MODE_SYNC);

    (void)state;
    job->processes[17].completed = 80;
    job->processes[4000].claimed = 90;
    for (int rank = 0; rank < MANY; rank++)
        if (rank != 4000)
            job->processes[rank].claimed = 85;
    die_and_exit(job, 0);
    for (int rank = 1; rank < MANY; rank += 1365) {
        const struct rg_view *view = view_of(job, rank);

        assert_true(view->epoch == 2 && view->first_seq == 91);
        assert_int_equal(view->nactive, MANY - 1);
        assert_int_equal(view->coordinator, 1);
    }
    destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dead_leave_at_once),
        cmocka_unit_test(a_death_during_a_change_joins_it),
        cmocka_unit_test(who_does_not_answer_leaves),
        cmocka_unit_test(a_silent_member_is_probed_and_leaves),
        cmocka_unit_test(a_silent_member_that_answers_stays),
        cmocka_unit_test(the_lowest_takes_over),
        cmocka_unit_test(a_silent_coordinator_costs_one_window),
        cmocka_unit_test(a_coordinator_that_answers_its_successor_stays),
        cmocka_unit_test(a_successor_adopts_what_was_proposed),
        cmocka_unit_test(a_replaced_coordinator_steps_down),
        cmocka_unit_test(half_with_the_lowest_goes_on),
        cmocka_unit_test(the_isolated_come_back_into_their_slots),
        cmocka_unit_test(a_withdrawn_rejoin_lets_the_others_go_on),
        cmocka_unit_test(joiners_wait_for_stragglers),
        cmocka_unit_test(survivors_cannot_rule_out_what_the_dead_decided),
        cmocka_unit_test(a_new_process_gets_the_old_slot),
        cmocka_unit_test(a_legacy_joiner_is_refused_while_graphs_live),
        cmocka_unit_test(a_legacy_joiner_turns_the_group_legacy),
        cmocka_unit_test(a_failure_does_not_turn_the_group_legacy),
        cmocka_unit_test(who_never_began_the_seq_is_the_culprit),
        cmocka_unit_test(the_coordinator_itself_may_be_the_culprit),
        cmocka_unit_test(a_wait_cycle_is_a_failure_of_links),
        cmocka_unit_test(a_link_fails_once_an_epoch),
        cmocka_unit_test(an_epoch_begins_behind_the_wrap),
        cmocka_unit_test(who_lags_before_the_wrap_is_to_blame),
        cmocka_unit_test(the_floor_rises_across_the_wrap),
        cmocka_unit_test(failures_wait_for_a_change),
        cmocka_unit_test(a_notice_names_who_has_failed),
        cmocka_unit_test(who_was_aborted_waiting_is_not_to_blame),
        cmocka_unit_test(members_leave_by_plan),
        cmocka_unit_test(a_leaving_coordinator_hands_over),
        cmocka_unit_test(a_change_must_leave_somebody),
        cmocka_unit_test(running_out_of_workspaces_has_a_name),
        cmocka_unit_test(a_change_without_a_workspace_is_refused),
        cmocka_unit_test(an_exit_makes_a_workspace_clean),
        cmocka_unit_test(the_floor_is_what_all_have_completed),
        cmocka_unit_test(a_new_group_forms_without_the_dead),
        cmocka_unit_test(thousands_of_members),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
