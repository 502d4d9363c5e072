#include "validate/sim/program.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/status.h"
#include "validate/sim/world.h"

enum {
    FIRST_SEQ = 1000,
    AHEAD_MAX = 4, /* launches without waiting for their end */
    DEADLINE_US = 1500 * SIM_MS,
    LAUNCH_US = 60 * SIM_MS,
    JOINS_MAX = 8
};

static struct rg_message *request(enum rg_message_kind kind)
{
    struct rg_message *message = rg_message_create(kind, SIM_GROUP);

    if (!message)
        abort();
    return message;
}

static struct sim_program *program_of(struct sim_world *world, int rank)
{
    return &world->processes[rank].program;
}

/* ---- joining ------------------------------------------------------------ */

static void join(struct sim_world *world, int rank, int rejoins)
{
    struct sim_program *program = program_of(world, rank);
    struct rg_message *message = request(RG_MSG_JOIN);

    program->state = SIM_JOINING;
    program->joins++;
    message->status = rejoins;
    message->capacity = world->options.ranks;
    message->first_seq = FIRST_SEQ;
    message->info.capabilities = RG_CAP_NEW_BACKEND;
    message->info.preference = RG_BACKEND_NEW;
    sim_world_ask(world, rank, message);
}

static uint64_t launch_delay(struct sim_world *world)
{
    uint64_t usual = LAUNCH_US + (uint64_t)world->options.ranks * 20;

    return sim_random_in(&world->random, usual / 2, usual * 3 / 2);
}

void sim_program_start(struct sim_world *world, int rank, int rejoins)
{
    struct sim_program *program = program_of(world, rank);

    *program = (struct sim_program){.state = SIM_OUTSIDE};
    if (rejoins)
        join(world, rank, 1);
    else
        sim_world_step_later(world, rank,
                             sim_random_below(&world->random, 20 * SIM_MS),
                             SIM_STEP_REJOIN);
    sim_world_step_later(world, rank, launch_delay(world), SIM_STEP_LAUNCH);
}

/* ---- collectives -------------------------------------------------------- */

static void advance(struct sim_world *world, int rank)
{
    struct sim_program *program = program_of(world, rank);

    while (program->completed < program->claimed &&
           sim_oracle_is_complete(program->version, program->completed + 1)) {
        sim_oracle_complete(world, rank, ++program->completed);
        program->waits_us = world->now_us;
    }
}

/* ---- messages between two ------------------------------------------------ */

/* The member before and the one behind it, in the order of the view. */
static void find_mates(struct sim_program *program, int rank)
{
    const struct rg_view *view = program->version->view;
    int slot = rg_view_slot_of(view, rank);
    int at = rg_view_rank_of(view, slot);
    int count = view->nactive;

    for (int i = 0; i < SIM_MATES; i++)
        program->mates[i] = (struct sim_mate){
            .slot = i < count - 1
                        ? view->order[(at + (i ? 1 : count - 1)) % count]
                        : -1};
}

/* How many messages to the slot have gone, in the version. */
static uint64_t sent_to(const struct sim_world *world, int rank,
                        const struct sim_version *version, int slot)
{
    const struct sim_program *program = &world->processes[rank].program;

    for (int i = 0; i < SIM_MATES && program->version == version; i++)
        if (program->mates[i].slot == slot)
            return program->mates[i].sent;
    return 0;
}

/* Sends now and then, and takes what has been sent. */
static void converse(struct sim_world *world, int rank)
{
    struct sim_program *program = program_of(world, rank);
    const struct rg_view *view = program->version->view;
    int own = rg_view_slot_of(view, rank);

    for (int i = 0; i < SIM_MATES; i++) {
        struct sim_mate *mate = &program->mates[i];

        if (mate->slot < 0)
            continue;
        mate->sent += sim_random_hits(&world->random, 5000);
        if (sim_random_hits(&world->random, 5000))
            mate->come = sent_to(world, view->members[mate->slot].world_rank,
                                 program->version, own);
    }
}

static void put_pair(struct rg_pairs *pairs, int from, int to, uint64_t count)
{
    int at = pairs->count;

    if (!count)
        return;
    pairs->count++;
    while (at > 0 && (pairs->items[at - 1].from > from ||
                      (pairs->items[at - 1].from == from &&
                       pairs->items[at - 1].to > to))) {
        pairs->items[at] = pairs->items[at - 1];
        at--;
    }
    pairs->items[at] = (struct rg_pair){.from = from, .to = to, .count = count};
}

static void tell_pairs(struct sim_world *world, int rank,
                       struct rg_message *answer)
{
    const struct sim_program *program = program_of(world, rank);
    struct rg_pair items[2 * SIM_MATES];
    struct rg_pairs pairs = {.items = items};
    int own =
        program->version ? rg_view_slot_of(program->version->view, rank) : -1;

    for (int i = 0; i < SIM_MATES && own >= 0; i++)
        if (program->mates[i].slot >= 0) {
            put_pair(&pairs, own, program->mates[i].slot,
                     program->mates[i].sent);
            put_pair(&pairs, program->mates[i].slot, own,
                     program->mates[i].come);
        }
    if (rg_pairs_copy(&pairs, &answer->pairs))
        abort();
}

/* ---- collectives' ends --------------------------------------------------- */

static void report_stall(struct sim_world *world, int rank)
{
    struct sim_program *program = program_of(world, rank);
    const struct rg_view *view = program->version->view;
    struct rg_message *message = request(RG_MSG_REPORT);
    struct rg_bitset slots;

    if (rg_bitset_init(&slots, view->capacity))
        abort();
    for (int i = 0; i < view->nactive; i++) {
        int slot = view->order[i];
        const struct sim_program *other =
            program_of(world, view->members[slot].world_rank);

        if (other->version != program->version ||
            other->claimed <= program->completed)
            rg_bitset_set(&slots, slot);
    }
    message->status = RG_EVIDENCE_STALLED;
    message->claimed = program->completed + 1;
    if (rg_message_set_slots(message, &slots))
        abort();
    rg_bitset_fini(&slots);
    sim_world_tell(world, "rank %d is stalled in %llu", rank,
                   (unsigned long long)message->claimed);
    program->has_reported = 1;
    sim_world_ask(world, rank, message);
}

static void launch(struct sim_world *world, int rank)
{
    struct sim_program *program = program_of(world, rank);
    struct rg_message *message;

    sim_world_step_later(world, rank, launch_delay(world), SIM_STEP_LAUNCH);
    if (program->state != SIM_ACTIVE)
        return;
    converse(world, rank);
    advance(world, rank);
    if (program->claimed - program->completed < AHEAD_MAX &&
        program->stuck_us <= world->now_us) {
        if (program->claimed == program->completed)
            program->waits_us = world->now_us;
        sim_oracle_begin(world, rank, ++program->claimed);
    }
    message = request(RG_MSG_PROGRESS);
    message->completed = program->completed;
    sim_world_ask(world, rank, message);
    sim_oracle_floor(
        world, rank,
        rg_agent_committed(world->processes[rank].agent, SIM_GROUP));
    if (program->state == SIM_ACTIVE && !program->has_reported &&
        program->claimed > program->completed &&
        world->now_us > program->waits_us + DEADLINE_US)
        report_stall(world, rank);
}

/* ---- requests of all ---------------------------------------------------- */

static void ask_policy(struct sim_world *world, int rank)
{
    struct rg_message *message = request(RG_MSG_POLICY);
    char text[32];
    int bytes = snprintf(text, sizeof(text), "p%llu",
                         (unsigned long long)(world->now_us / 1000 / SIM_MS));

    if (rg_message_set_data(message, text, (size_t)bytes))
        abort();
    sim_world_ask(world, rank, message);
}

/* retiree < 0: only lets joiners in. */
static void ask_change(struct sim_world *world, int rank, int retiree)
{
    struct rg_message *message = request(RG_MSG_CHANGE);
    struct rg_bitset slots;

    if (rg_bitset_init(&slots, world->options.ranks))
        abort();
    if (retiree >= 0)
        rg_bitset_set(&slots, retiree);
    if (rg_message_set_slots(message, &slots))
        abort();
    rg_bitset_fini(&slots);
    sim_world_ask(world, rank, message);
}

static void leave(struct sim_world *world, int rank)
{
    struct sim_program *program = program_of(world, rank);

    sim_world_tell(world, "rank %d leaves", rank);
    program->state = SIM_ENDED;
    program->is_quiet = 1;
    sim_world_ask(world, rank, request(RG_MSG_LEAVE));
}

static void rejoin(struct sim_world *world, int rank)
{
    struct sim_program *program = program_of(world, rank);

    if (program->state != SIM_OUTSIDE)
        return;
    if (program->joins >= JOINS_MAX) {
        program->state = SIM_ENDED;
        return;
    }
    if (program->joins) {
        world->counts.rejoined++;
        program->is_quiet = 1;
        sim_world_ask(world, rank, request(RG_MSG_LEAVE));
        rg_view_destroy(program->coming);
        program->coming = NULL;
    }
    join(world, rank, program->joins > 0);
}

void sim_program_step(struct sim_world *world, int rank, enum sim_step step)
{
    int active = program_of(world, rank)->state == SIM_ACTIVE;

    if (step == SIM_STEP_LAUNCH)
        launch(world, rank);
    else if (step == SIM_STEP_REJOIN)
        rejoin(world, rank);
    else if (step == SIM_STEP_POLICY && active)
        ask_policy(world, rank);
    else if (step == SIM_STEP_CHANGE && active)
        ask_change(world, rank, -1);
    else if (step == SIM_STEP_RETIRE && active)
        ask_change(world, rank, world->retiree);
    else if (step == SIM_STEP_LEAVE && active)
        leave(world, rank);
}

/* ---- what the agent delivers -------------------------------------------- */

static void on_prepare(struct sim_world *world, int rank,
                       const struct rg_message *message)
{
    struct sim_program *program = program_of(world, rank);
    struct rg_message *answer = request(RG_MSG_QUIESCED);

    if (program->state == SIM_ACTIVE && sim_random_hits(&world->random, 5000))
        advance(world, rank);
    if (program->state == SIM_ACTIVE)
        program->state = SIM_HELD;
    answer->epoch = message->epoch;
    answer->completed = program->completed;
    answer->claimed = program->claimed;
    tell_pairs(world, rank, answer);
    sim_world_ask_later(world, rank,
                        sim_random_in(&world->random, 50, 3 * SIM_MS), answer);
}

/* What this process makes of a policy. */
static uint64_t rules_of(const struct sim_world *world, int rank,
                         const struct rg_view *view)
{
    const int is_other = world->options.plant == SIM_PLANT_OTHER_RULES &&
                         rank == world->options.ranks - 1;

    return view->policy_hash + (uint64_t)is_other;
}

static void on_view(struct sim_world *world, int rank,
                    const struct rg_message *message)
{
    struct sim_program *program = program_of(world, rank);
    struct rg_message *answer = request(RG_MSG_VIEW_ACK);

    rg_view_destroy(program->coming);
    program->coming = rg_view_ref(message->view);
    answer->epoch = message->epoch;
    answer->rules = rules_of(world, rank, message->view);
    sim_world_ask_later(world, rank,
                        sim_random_in(&world->random, 50, 3 * SIM_MS), answer);
}

static void on_activate(struct sim_world *world, int rank,
                        const struct rg_message *message)
{
    struct sim_program *program = program_of(world, rank);
    struct rg_view *view = program->coming;

    if (!view || view->epoch != message->epoch) {
        sim_oracle_break(world, "rank %d activates epoch %llu, was shown %llu",
                         rank, (unsigned long long)message->epoch,
                         (unsigned long long)(view ? view->epoch : 0));
        return;
    }
    program->version =
        sim_oracle_enter(world, rank, view, rules_of(world, rank, view));
    find_mates(program, rank);
    program->state = SIM_ACTIVE;
    program->claimed = view->first_seq - 1;
    program->completed = view->first_seq - 1;
    program->committed = view->committed_seq;
    program->is_quiet = 0;
    program->has_reported = 0;
    program->waits_us = world->now_us;
}

/* Its device may go on for a while; then it is halted. */
static void on_excluded(struct sim_world *world, int rank,
                        const struct rg_message *message)
{
    struct sim_program *program = program_of(world, rank);
    uint64_t halt = sim_random_in(&world->random, 1 * SIM_MS, 400 * SIM_MS);

    sim_world_tell(world, "rank %d is out (%d)", rank, message->status);
    world->counts.isolated += message->status == RG_EISOLATED;
    program->state = SIM_OUTSIDE;
    if (message->status != RG_EISOLATED)
        program->is_quiet = 1; /* it left by plan and is drained */
    sim_world_ask_later(world, rank, halt, request(RG_MSG_FENCED));
    sim_world_step_later(
        world, rank,
        halt + sim_random_in(&world->random, 1 * SIM_MS, 1500 * SIM_MS),
        SIM_STEP_REJOIN);
}

static void on_error(struct sim_world *world, int rank,
                     const struct rg_message *message)
{
    struct sim_program *program = program_of(world, rank);

    if (message->call)
        return; /* a request of all was refused: nothing has changed */
    sim_world_tell(world, "rank %d: error %d", rank, message->status);
    if (message->status == RG_ECONFIG || message->status == RG_EBACKEND)
        sim_oracle_break(world, "rank %d: error %d", rank, message->status);
    world->counts.starved += message->status == RG_ENOSPC;
    program->is_quiet = 1;
    program->state = SIM_ENDED;
}

void sim_program_take(struct sim_world *world, int rank,
                      struct rg_message *message)
{
    switch (message->kind) {
    case RG_MSG_PREPARE:
        on_prepare(world, rank, message);
        break;
    case RG_MSG_VIEW:
        on_view(world, rank, message);
        break;
    case RG_MSG_ACTIVATE:
        on_activate(world, rank, message);
        break;
    case RG_MSG_EXCLUDED:
        on_excluded(world, rank, message);
        break;
    case RG_MSG_ERROR:
        on_error(world, rank, message);
        break;
    case RG_MSG_NOTICE:
        sim_world_step_later(
            world, rank, sim_random_in(&world->random, 1 * SIM_MS, 50 * SIM_MS),
            SIM_STEP_CHANGE);
        break;
    default:
        break;
    }
}

void sim_program_fini(struct sim_program *program)
{
    rg_view_destroy(program->coming);
    program->coming = NULL;
}
