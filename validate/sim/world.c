#include "validate/sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/log.h"
#include "validate/sim/faults.h"

enum {
    REST_CHECK_US = 250 * SIM_MS,
    REST_LIMIT_US = 40000 * SIM_MS, /* after the last fault */
    START_SPREAD_US = 20 * SIM_MS
};

void sim_world_tell(const struct sim_world *world, const char *format, ...)
{
    va_list args;

    if (!world->options.is_verbose)
        return;
    fprintf(stderr, "%9.3f ms  ", (double)world->now_us / SIM_MS);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int sim_world_is_up(const struct sim_world *world, int rank)
{
    const struct sim_process *process = &world->processes[rank];

    return !process->is_dead && process->stopped_us <= world->now_us;
}

/* ---- the network -------------------------------------------------------- */

static int is_dropped(const struct sim_world *world, int from, int to)
{
    const struct sim_network *network = &world->network;

    for (size_t i = 0; i < network->ndrops; i++)
        if (network->drops[i].from == from && network->drops[i].to == to &&
            network->drops[i].until_us > world->now_us)
            return 1;
    return network
        ->is_cut[world->processes[from].side][world->processes[to].side];
}

int sim_world_reaches(const struct sim_world *world, int from, int to)
{
    return !is_dropped(world, from, to) && !is_dropped(world, to, from) &&
           sim_world_is_up(world, to);
}

static uint64_t delay(struct sim_world *world)
{
    struct sim_network *network = &world->network;

    if (sim_random_hits(&world->random, network->slow))
        return sim_random_in(&world->random, 1, network->slow_us);
    return sim_random_in(&world->random, network->delay_us / 2,
                         network->delay_us * 2);
}

static void put_message(struct sim_world *world, int from, int to,
                        uint64_t delay_us, struct rg_message *message)
{
    const struct sim_event event = {.at_us = world->now_us + delay_us,
                                    .kind = SIM_MESSAGE,
                                    .rank = to,
                                    .from = from,
                                    .life = world->processes[to].life,
                                    .message = rg_message_ref(message)};

    sim_queue_push(&world->queue, &event);
}

static void send_message(struct sim_world *world, int from, int to,
                         struct rg_message *message)
{
    if (from == to) {
        put_message(world, from, to, 1, message);
        return;
    }
    if (is_dropped(world, from, to) ||
        sim_random_hits(&world->random, world->network.loss))
        return;
    put_message(world, from, to, delay(world), message);
    if (sim_random_hits(&world->random, world->network.doubling))
        put_message(world, from, to, delay(world), message);
}

/* ---- the machines ------------------------------------------------------- */

static uint64_t late_by(struct sim_world *world)
{
    return sim_random_below(&world->random, world->late_us + 1);
}

static void set_timer(struct sim_world *world, int rank,
                      enum sim_machine machine, const struct rg_effect *effect)
{
    struct sim_process *process = &world->processes[rank];
    uint32_t kind = (uint32_t)effect->timer.kind;
    const struct sim_event event = {
        .at_us = world->now_us + effect->delay_ms * SIM_MS + late_by(world),
        .kind = SIM_TIMER,
        .rank = rank,
        .from = (int)machine,
        .life = process->life,
        .what = kind,
        .serial = ++process->timers[machine][kind]};

    if (effect->delay_ms)
        sim_queue_push(&world->queue, &event);
}

static int is_step_of_change(const struct rg_message *message)
{
    return message->kind == RG_MSG_PREPARE || message->kind == RG_MSG_VIEW ||
           message->kind == RG_MSG_ACTIVATE;
}

static void carry_send(struct sim_world *world, int rank,
                       enum sim_machine machine, struct rg_effect *effect)
{
    if (machine == SIM_COORDINATOR && is_step_of_change(effect->message))
        sim_faults_recovery(world, rank);
    if (world->processes[rank].is_dead)
        return;
    effect->message =
        sim_plant_sent(world, rank, effect->peer, effect->message);
    if (effect->peer >= 0 && effect->peer < world->options.ranks)
        send_message(world, rank, effect->peer, effect->message);
}

/* A process that dies half way has sent half of it. */
static void carry_out(struct sim_world *world, int rank,
                      enum sim_machine machine)
{
    struct rg_effects effects = world->effects;

    world->effects = (struct rg_effects){0};
    if (effects.rc)
        sim_oracle_break(world, "rank %d: effects fail with %d", rank,
                         effects.rc);
    for (size_t i = 0; i < effects.count; i++) {
        struct rg_effect *effect = &effects.items[i];

        if (world->processes[rank].is_dead)
            break;
        if (effect->kind == RG_EFFECT_SEND)
            carry_send(world, rank, machine, effect);
        else if (effect->kind == RG_EFFECT_DELIVER)
            sim_program_take(world, rank, effect->message);
        else if (effect->kind == RG_EFFECT_TIMER)
            set_timer(world, rank, machine, effect);
        else if (effect->kind == RG_EFFECT_LOG)
            sim_world_tell(world, "rank %d: %s", rank, effect->text);
    }
    rg_effects_clear(&effects);
    if (world->effects.capacity)
        rg_effects_fini(&effects); /* a step within took the storage's place */
    else
        world->effects = effects;
}

static void step(struct sim_world *world, int rank, enum sim_machine machine,
                 const struct rg_input *input)
{
    struct sim_process *process = &world->processes[rank];

    if (machine == SIM_AGENT)
        rg_agent_step(process->agent, input, &world->effects);
    else
        rg_coordinator_step(process->coordinator, input, &world->effects);
    carry_out(world, rank, machine);
}

void sim_world_coordinate(struct sim_world *world, int rank,
                          const struct rg_input *input)
{
    step(world, rank, SIM_COORDINATOR, input);
}

void sim_world_ask(struct sim_world *world, int rank,
                   struct rg_message *message)
{
    const struct rg_input input = {.kind = RG_INPUT_REQUEST,
                                   .message = message};

    step(world, rank, SIM_AGENT, &input);
    rg_message_unref(message);
}

void sim_world_ask_later(struct sim_world *world, int rank, uint64_t delay_us,
                         struct rg_message *message)
{
    const struct sim_event event = {.at_us = world->now_us + delay_us,
                                    .kind = SIM_ANSWER,
                                    .rank = rank,
                                    .life = world->processes[rank].life,
                                    .message = message};

    sim_queue_push(&world->queue, &event);
}

void sim_world_step_later(struct sim_world *world, int rank, uint64_t delay_us,
                          uint32_t what)
{
    const struct sim_event event = {.at_us = world->now_us + delay_us,
                                    .kind = SIM_CALLER,
                                    .rank = rank,
                                    .life = world->processes[rank].life,
                                    .what = what};

    sim_queue_push(&world->queue, &event);
}

/* ---- processes ---------------------------------------------------------- */

static void start_process(struct sim_world *world, int rank)
{
    struct sim_process *process = &world->processes[rank];
    const struct rg_agent_config agent = {.rank = rank,
                                          .world_size = world->options.ranks,
                                          .process = ++process->life,
                                          .form_ms = SIM_FORM_MS,
                                          .heartbeat_ms = SIM_HEARTBEAT_MS,
                                          .miss_ms = world->miss_ms,
                                          .window_ms = SIM_WINDOW_MS,
                                          .isolate_ms = SIM_ISOLATE_MS};
    const struct rg_coordinator_config coordinator = {
        .rank = rank,
        .world_size = world->options.ranks,
        .workspaces = SIM_WORKSPACES,
        .routes = 2,
        .heartbeat_ms = SIM_HEARTBEAT_MS,
        .miss_ms = world->miss_ms,
        .window_ms = SIM_WINDOW_MS,
        .plan_ms = SIM_PLAN_MS};

    process->agent = rg_agent_create(&agent);
    process->coordinator = rg_coordinator_create(&coordinator);
    if (!process->agent || !process->coordinator)
        abort();
    process->is_dead = 0;
    process->stopped_us = 0;
}

static void end_process(struct sim_process *process)
{
    rg_agent_destroy(process->agent);
    rg_coordinator_destroy(process->coordinator);
    sim_program_fini(&process->program);
    process->agent = NULL;
    process->coordinator = NULL;
}

static void put_fact(struct sim_world *world, int rank, int about,
                     enum rg_input_kind kind, uint64_t at_us)
{
    const struct sim_event event = {.at_us = at_us,
                                    .kind = SIM_FACT,
                                    .rank = rank,
                                    .from = about,
                                    .life = world->processes[rank].life,
                                    .what = (uint32_t)kind,
                                    .serial = world->processes[about].life};

    sim_queue_push(&world->queue, &event);
}

/* The driver takes its time to tear a process down, as measured. */
void sim_world_crash(struct sim_world *world, int rank)
{
    struct sim_process *process = &world->processes[rank];
    int first = rank - rank % world->ranks_per_host;
    int end = first + world->ranks_per_host;

    if (process->is_dead)
        return;
    sim_world_tell(world, "rank %d is killed", rank);
    world->counts.crashes++;
    process->is_dead = 1;
    process->died_us = world->now_us;
    process->exits_us =
        world->now_us +
        sim_random_in(&world->random, 79 * SIM_MS, 103 * SIM_MS);
    for (int other = first; other < end && other < world->options.ranks;
         other++) {
        if (other == rank || world->processes[other].is_dead)
            continue;
        put_fact(world, other, rank, RG_INPUT_GONE,
                 world->now_us +
                     sim_random_in(&world->random, 200, 25 * SIM_MS));
        put_fact(world, other, rank, RG_INPUT_EXITED,
                 process->exits_us +
                     sim_random_in(&world->random, 1, 5 * SIM_MS));
    }
}

void sim_world_restart(struct sim_world *world, int rank)
{
    struct sim_process *process = &world->processes[rank];

    if (!process->is_dead || process->exits_us > world->now_us)
        return;
    sim_world_tell(world, "rank %d starts again", rank);
    end_process(process);
    start_process(world, rank);
    sim_program_start(world, rank, 1);
}

int sim_world_leader(const struct sim_world *world)
{
    uint64_t highest = 0;
    int leader = -1;

    for (int rank = 0; rank < world->options.ranks; rank++) {
        const struct sim_process *process = &world->processes[rank];
        const struct rg_view *view;

        if (process->is_dead ||
            !rg_coordinator_is_steady(process->coordinator, SIM_GROUP))
            continue;
        view = rg_coordinator_view(process->coordinator, SIM_GROUP);
        if (view->epoch <= highest)
            continue;
        highest = view->epoch;
        leader = rank;
    }
    return leader;
}

/* ---- events ------------------------------------------------------------- */

static void on_message(struct sim_world *world, struct sim_event *event)
{
    struct rg_input input = {.kind = RG_INPUT_MESSAGE, .peer = event->from};
    int up = rg_message_for_coordinator(event->message->kind);

    if (!up)
        event->message =
            sim_plant_received(world, event->rank, event->from, event->message);
    input.message = event->message;
    step(world, event->rank, up ? SIM_COORDINATOR : SIM_AGENT, &input);
}

static void on_timer(struct sim_world *world, const struct sim_event *event)
{
    enum sim_machine machine = (enum sim_machine)event->from;
    const struct rg_input input = {
        .kind = RG_INPUT_TIMER,
        .timer = {.kind = (enum rg_timer_kind)event->what, .group = SIM_GROUP}};

    const uint32_t *serial =
        &world->processes[event->rank].timers[machine][event->what];

    if (*serial == event->serial && machine == SIM_COORDINATOR &&
        event->what == RG_TIMER_WINDOW)
        sim_plant_window(world, event->rank);
    if (*serial != event->serial)
        return;
    step(world, event->rank, machine, &input);
}

static void on_fact(struct sim_world *world, const struct sim_event *event)
{
    const struct rg_input input = {.kind = (enum rg_input_kind)event->what,
                                   .peer = event->from,
                                   .process = event->serial};

    step(world, event->rank, SIM_AGENT, &input);
    if (!world->processes[event->rank].is_dead)
        step(world, event->rank, SIM_COORDINATOR, &input);
}

static void on_answer(struct sim_world *world, const struct sim_event *event)
{
    /* What it says of its device is true from now on. */
    if (event->message->kind == RG_MSG_FENCED ||
        event->message->kind == RG_MSG_QUIESCED)
        world->processes[event->rank].program.is_quiet = 1;
    sim_world_ask(world, event->rank, rg_message_ref(event->message));
}

static void handle(struct sim_world *world, struct sim_event *event)
{
    const struct sim_process *process = &world->processes[event->rank];

    if (event->kind == SIM_FAULT) {
        sim_faults_strike(world, event->what);
        return;
    }
    if (process->is_dead || process->life != event->life)
        return;
    if (process->stopped_us > world->now_us) {
        event->at_us = process->stopped_us;
        if (event->message)
            rg_message_ref(event->message);
        sim_queue_push(&world->queue, event);
        return;
    }
    if (event->kind == SIM_MESSAGE)
        on_message(world, event);
    else if (event->kind == SIM_TIMER)
        on_timer(world, event);
    else if (event->kind == SIM_FACT)
        on_fact(world, event);
    else if (event->kind == SIM_ANSWER)
        on_answer(world, event);
    else
        sim_program_step(world, event->rank, (enum sim_step)event->what);
}

/* ---- a run -------------------------------------------------------------- */

static void run(struct sim_world *world)
{
    uint64_t check_us = world->quiet_us + REST_CHECK_US;
    struct sim_event event;

    while (!world->oracle.is_broken && sim_queue_pop(&world->queue, &event)) {
        world->now_us = event.at_us;
        world->counts.events++;
        handle(world, &event);
        rg_message_unref(event.message);
        if (world->now_us < check_us)
            continue;
        check_us = world->now_us + REST_CHECK_US;
        if (!sim_oracle_unrest(world))
            break;
        if (world->now_us > world->quiet_us + REST_LIMIT_US) {
            sim_oracle_break(world, "no rest: %s", sim_oracle_unrest(world));
            break;
        }
    }
    if (!world->oracle.is_broken)
        sim_oracle_rest(world);
}

static void start(struct sim_world *world)
{
    int ranks = world->options.ranks;

    world->random.state = world->options.seed * 0x9e3779b97f4a7c15ull + 1;
    world->processes = calloc((size_t)ranks, sizeof(*world->processes));
    world->plants = calloc((size_t)ranks, sizeof(*world->plants));
    if (!world->processes || !world->plants)
        abort();
    sim_faults_draw(world);
    for (int rank = 0; rank < ranks; rank++)
        start_process(world, rank);
    for (int rank = 0; rank < ranks; rank++)
        sim_program_start(world, rank, 0);
}

int sim_world_run(const struct sim_options *options,
                  struct sim_counts *counts_out, char *verdict, size_t bytes)
{
    struct sim_world world = {.options = *options, .recovery_kill = -1};
    int broken;

    start(&world);
    run(&world);
    broken = world.oracle.is_broken;
    *counts_out = world.counts;
    snprintf(verdict, bytes, "%s", world.oracle.verdict);
    sim_queue_fini(&world.queue);
    for (int rank = 0; rank < options->ranks; rank++)
        end_process(&world.processes[rank]);
    sim_oracle_fini(&world.oracle);
    rg_effects_fini(&world.effects);
    free(world.processes);
    free(world.plants);
    free(world.network.drops);
    return broken;
}
