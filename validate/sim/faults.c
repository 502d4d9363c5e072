#include "validate/sim/faults.h"

#include <stdlib.h>

#include "validate/sim/world.h"

enum {
    FAULTS_MAX = 7,
    BEGIN_US = 400 * SIM_MS,
    SPAN_US = 6000 * SIM_MS,
    SETTLE_US = 6000 * SIM_MS /* from the last fault to the end of all */
};

enum fault {
    FAULT_KILL = 0,
    FAULT_KILL_TWO,
    FAULT_KILL_LEADER,
    FAULT_KILL_RECOVERY, /* at a step of the next change of the view */
    FAULT_STOP,
    FAULT_STOP_LEADER,
    FAULT_RESTART,
    FAULT_PARTITION,
    FAULT_CUT, /* one direction only */
    FAULT_DROP,
    FAULT_STUCK,
    FAULT_POLICY,
    FAULT_RETIRE,
    FAULT_LEAVE,
    FAULT_KINDS,
    FAULT_SPLIT,
    FAULT_MEND, /* partitions and cuts */
    FAULT_HEAL
};

static int any_rank(struct sim_world *world)
{
    return (int)sim_random_below(&world->random,
                                 (uint64_t)world->options.ranks);
}

/* The coordinator at this time, or whoever is drawn. */
static int leader_or_any(struct sim_world *world)
{
    int leader = sim_world_leader(world);

    return leader >= 0 ? leader : any_rank(world);
}

static void put(struct sim_world *world, uint64_t at_us, enum fault fault)
{
    const struct sim_event event = {
        .at_us = at_us, .kind = SIM_FAULT, .what = (uint32_t)fault};

    sim_queue_push(&world->queue, &event);
}

static uint64_t later(struct sim_world *world, uint64_t low_ms,
                      uint64_t high_ms)
{
    return sim_random_in(&world->random, low_ms * SIM_MS, high_ms * SIM_MS);
}

/* ---- drawing ------------------------------------------------------------ */

static void draw_network(struct sim_world *world)
{
    struct sim_network *network = &world->network;
    struct sim_random *random = &world->random;

    network->delay_us = sim_random_in(random, 20, 400);
    network->slow_us = 1 * SIM_MS;
    if (sim_random_hits(random, 5000)) {
        network->loss = (uint32_t)sim_random_below(random, 300);
        network->doubling = (uint32_t)sim_random_below(random, 300);
    }
    if (sim_random_hits(random, 5000)) {
        network->slow = (uint32_t)sim_random_below(random, 500);
        network->slow_us = sim_random_in(random, 1, 150) * SIM_MS;
    }
}

static void draw_hosts(struct sim_world *world)
{
    static const int sizes[] = {1, 2, 4, 8, 64};

    world->ranks_per_host =
        sizes[sim_random_below(&world->random, sizeof(sizes) / sizeof(*sizes))];
}

static void draw_time(struct sim_world *world)
{
    static const uint64_t misses_ms[] = {SIM_HEARTBEAT_MS + 1, 500,
                                         SIM_MISS_MS};

    world->miss_ms = misses_ms[sim_random_below(
        &world->random, sizeof(misses_ms) / sizeof(*misses_ms))];
    world->late_us = sim_random_below(&world->random, 5 * SIM_MS);
}

/*
 * Few kills on a sound network, or a lasting cut right through it: no excuse
 * not to live on.
 */
static void draw_mild(struct sim_world *world)
{
    int kills = world->options.ranks / 4;

    world->is_mild = 1;
    world->ranks_per_host = world->options.ranks; /* a witness for each */
    if (sim_random_hits(&world->random, 5000)) {
        put(world, BEGIN_US + later(world, 0, 1000), FAULT_SPLIT);
        return;
    }
    if (kills > 3)
        kills = 3;
    for (int i = 0; i < kills; i++)
        put(world, BEGIN_US + later(world, 0, 4000),
            sim_random_hits(&world->random, 3000) ? FAULT_KILL_LEADER
                                                  : FAULT_KILL);
}

static void draw_wild(struct sim_world *world)
{
    uint64_t count = sim_random_in(&world->random, 1, FAULTS_MAX);

    for (uint64_t i = 0; i < count; i++)
        put(world,
            BEGIN_US + sim_random_below(&world->random, SPAN_US - BEGIN_US),
            (enum fault)sim_random_below(&world->random, FAULT_KINDS));
}

void sim_faults_draw(struct sim_world *world)
{
    draw_hosts(world);
    draw_time(world);
    if (sim_random_hits(&world->random, 2000)) {
        world->network.delay_us = 100;
        world->network.slow_us = SIM_MS;
        draw_mild(world);
    } else {
        draw_network(world);
        draw_wild(world);
    }
    put(world, SPAN_US, FAULT_HEAL);
    world->quiet_us = SPAN_US;
}

/* ---- striking ----------------------------------------------------------- */

static void stop(struct sim_world *world, int rank)
{
    struct sim_process *process = &world->processes[rank];

    process->stopped_us = world->now_us + later(world, 100, 4000);
    sim_world_tell(world, "rank %d is stopped for %llu ms", rank,
                   (unsigned long long)(process->stopped_us - world->now_us) /
                       SIM_MS);
}

static void restart(struct sim_world *world)
{
    int first = any_rank(world);

    for (int i = 0; i < world->options.ranks; i++) {
        int rank = (first + i) % world->options.ranks;

        if (world->processes[rank].is_dead) {
            sim_world_restart(world, rank);
            return;
        }
    }
}

/* Two sides of any size, sometimes cut in one direction only. */
static void partition(struct sim_world *world, int both_ways)
{
    struct sim_network *network = &world->network;
    uint32_t share = (uint32_t)sim_random_in(&world->random, 500, 9500);
    int one = 0;

    for (int rank = 0; rank < world->options.ranks; rank++) {
        world->processes[rank].side = sim_random_hits(&world->random, share);
        one += world->processes[rank].side;
    }
    network->is_cut[0][1] = 1;
    network->is_cut[1][0] = both_ways;
    sim_world_tell(world, "partition: %d and %d, rank 0 on side %d, %s",
                   world->options.ranks - one, one, world->processes[0].side,
                   both_ways ? "both ways" : "0 -> 1 only");
    put(world, world->now_us + later(world, 200, 5000), FAULT_MEND);
}

/*
 * Slot 0 with no more others than it needs to go on, half of all where their
 * number is even, until all heals.
 */
static void split(struct sim_world *world)
{
    int leader = sim_world_leader(world);
    int ranks = world->options.ranks;
    int missing = (ranks + 1) / 2 - 1;
    const struct rg_view *view;

    if (leader < 0)
        return;
    view = rg_coordinator_view(world->processes[leader].coordinator, SIM_GROUP);
    if (view->nactive != ranks)
        return;
    for (int rank = 0; rank < ranks; rank++) {
        uint64_t left = (uint64_t)(ranks - rank);
        int joins = rank == 0 ||
                    sim_random_below(&world->random, left) < (uint64_t)missing;

        missing -= rank && joins;
        world->processes[rank].side = joins;
    }
    world->network.is_cut[0][1] = 1;
    world->network.is_cut[1][0] = 1;
    world->is_split = 1;
    sim_world_tell(world, "split: half of the ranks are by themselves");
}

static void drop(struct sim_world *world)
{
    struct sim_network *network = &world->network;
    struct sim_drop *drops = realloc(
        network->drops, (network->ndrops + 1) * sizeof(*network->drops));

    if (!drops)
        abort();
    network->drops = drops;
    drops[network->ndrops++] = (struct sim_drop){
        .from = any_rank(world),
        .to = sim_random_hits(&world->random, 5000) ? leader_or_any(world)
                                                    : any_rank(world),
        .until_us = world->now_us + later(world, 500, 5000)};
}

/* All who are active ask for the same, each in its own time. */
static void ask_all(struct sim_world *world, enum sim_step step)
{
    world->retiree = any_rank(world);
    for (int rank = 0; rank < world->options.ranks; rank++)
        sim_world_step_later(world, rank, later(world, 0, 20), (uint32_t)step);
}

static void mend(struct sim_world *world)
{
    if (world->is_split)
        sim_oracle_split(world);
    world->is_split = 0;
    world->network.is_cut[0][1] = 0;
    world->network.is_cut[1][0] = 0;
    sim_world_tell(world, "partitions are mended");
}

void sim_faults_heal(struct sim_world *world)
{
    mend(world);
    world->network.ndrops = 0;
    world->network.loss = 0;
    world->network.doubling = 0;
    world->recovery_kill = -1;
}

void sim_faults_recovery(struct sim_world *world, int coordinator)
{
    if (world->recovery_kill < 0 || world->recovery_kill-- > 0)
        return;
    sim_world_crash(world, sim_random_hits(&world->random, 5000)
                               ? coordinator
                               : any_rank(world));
}

static void strike_process(struct sim_world *world, enum fault fault)
{
    int rank = any_rank(world);

    if (fault == FAULT_KILL || fault == FAULT_KILL_TWO)
        sim_world_crash(world, rank);
    if (fault == FAULT_KILL_TWO)
        sim_world_crash(world, any_rank(world));
    else if (fault == FAULT_KILL_LEADER)
        sim_world_crash(world, leader_or_any(world));
    else if (fault == FAULT_KILL_RECOVERY)
        world->recovery_kill = (int)sim_random_below(
            &world->random, 4 * (uint64_t)world->options.ranks);
    else if (fault == FAULT_STOP)
        stop(world, rank);
    else if (fault == FAULT_STOP_LEADER)
        stop(world, leader_or_any(world));
    else if (fault == FAULT_RESTART)
        restart(world);
    else if (fault == FAULT_STUCK)
        world->processes[rank].program.stuck_us =
            world->now_us + later(world, 500, 4000);
}

void sim_faults_strike(struct sim_world *world, uint32_t what)
{
    switch ((enum fault)what) {
    case FAULT_PARTITION:
        partition(world, 1);
        break;
    case FAULT_CUT:
        partition(world, 0);
        break;
    case FAULT_DROP:
        drop(world);
        break;
    case FAULT_POLICY:
        ask_all(world, SIM_STEP_POLICY);
        break;
    case FAULT_RETIRE:
        ask_all(world, SIM_STEP_RETIRE);
        break;
    case FAULT_LEAVE:
        sim_world_step_later(world, any_rank(world), 0, SIM_STEP_LEAVE);
        break;
    case FAULT_SPLIT:
        split(world);
        break;
    case FAULT_MEND:
        mend(world);
        break;
    case FAULT_HEAL:
        sim_faults_heal(world);
        break;
    default:
        strike_process(world, (enum fault)what);
    }
}
