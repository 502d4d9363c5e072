#include "validate/sim/oracle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/hash.h"
#include "validate/sim/world.h"

void sim_oracle_break(struct sim_world *world, const char *format, ...)
{
    struct sim_oracle *oracle = &world->oracle;
    va_list args;

    if (oracle->is_broken)
        return;
    oracle->is_broken = 1;
    va_start(args, format);
    vsnprintf(oracle->verdict, sizeof(oracle->verdict), format, args);
    va_end(args);
    sim_world_tell(world, "BROKEN: %s", oracle->verdict);
}

static void version_destroy(struct sim_version *version)
{
    rg_view_destroy(version->view);
    free(version->entered);
    free(version->begun);
    free(version);
}

void sim_oracle_fini(struct sim_oracle *oracle)
{
    for (size_t epoch = 0; epoch < oracle->nepochs; epoch++)
        while (oracle->epochs[epoch]) {
            struct sim_version *version = oracle->epochs[epoch];

            oracle->epochs[epoch] = version->next;
            version_destroy(version);
        }
    free(oracle->epochs);
    free(oracle->owners);
    *oracle = (struct sim_oracle){0};
}

/* Room for `count` items, the new ones zeroed. */
static void *grow(void *items, size_t *have, size_t count, size_t bytes)
{
    size_t room = *have ? *have : 16;
    unsigned char *larger;

    if (count <= *have)
        return items;
    while (room < count)
        room *= 2;
    larger = realloc(items, room * bytes);
    if (!larger)
        abort();
    memset(larger + *have * bytes, 0, (room - *have) * bytes);
    *have = room;
    return larger;
}

/* ---- views -------------------------------------------------------------- */

static uint64_t hash_view(const struct rg_view *view)
{
    const uint64_t head[] = {view->epoch,
                             view->committed_seq,
                             view->first_seq,
                             view->workspace,
                             view->policy_hash,
                             (uint64_t)view->backend,
                             (uint64_t)view->nactive};
    uint64_t hash = rg_hash(RG_HASH_INIT, head, sizeof(head));

    for (int i = 0; i < view->pairs.count; i++) {
        const struct rg_pair *pair = &view->pairs.items[i];
        const uint64_t body[] = {(uint64_t)pair->from, (uint64_t)pair->to,
                                 pair->count};

        hash = rg_hash(hash, body, sizeof(body));
    }
    for (int rank = 0; rank < view->nactive; rank++) {
        const struct rg_member *member = &view->members[view->order[rank]];
        const uint64_t body[] = {(uint64_t)view->order[rank],
                                 (uint64_t)member->world_rank,
                                 member->incarnation};

        hash = rg_hash(hash, body, sizeof(body));
    }
    return hash;
}

/* Whether a process that lives has entered it. */
static int is_alive(const struct sim_world *world,
                    const struct sim_version *version)
{
    for (int rank = 0; rank < world->options.ranks; rank++)
        if (version->entered[rank] && !world->processes[rank].is_dead &&
            version->entered[rank] == world->processes[rank].life)
            return 1;
    return 0;
}

/* A process writes to the members of its own view only. */
static int have_other_in_common(const struct rg_view *a,
                                const struct rg_view *b, int rank)
{
    for (int i = 0; i < a->nactive; i++) {
        const struct rg_member *member = &a->members[a->order[i]];
        int slot = rg_view_slot_of(b, member->world_rank);

        if (member->world_rank != rank && slot >= 0 &&
            b->members[slot].status == RG_MEMBER_ACTIVE)
            return 1;
    }
    return 0;
}

/* Whoever is not in the new view must not be able to write into its memory. */
static void check_workspace(struct sim_world *world, const struct rg_view *view)
{
    for (int rank = 0; rank < world->options.ranks; rank++) {
        const struct sim_process *process = &world->processes[rank];
        const struct sim_program *program = &process->program;
        int can_write =
            program->version && !program->is_quiet &&
            (!process->is_dead || process->exits_us > world->now_us);

        if (!can_write ||
            program->version->view->workspace != view->workspace ||
            rg_view_is_active(
                view, rank, rg_agent_incarnation(process->agent, SIM_GROUP)) ||
            !have_other_in_common(view, program->version->view, rank))
            continue;
        sim_oracle_break(world,
                         "epoch %llu uses workspace %u, which rank %d of "
                         "epoch %llu can write to",
                         (unsigned long long)view->epoch, view->workspace, rank,
                         (unsigned long long)program->version->view->epoch);
    }
}

/* Nothing but a death, or a cut, may take the office from anyone. */
static void check_leader(struct sim_world *world, const struct rg_view *before,
                         const struct rg_view *view)
{
    int leader = before->coordinator;

    if (!world->is_mild || leader == view->coordinator ||
        world->processes[leader].is_dead ||
        (world->processes[leader].side !=
         world->processes[view->coordinator].side))
        return;
    sim_oracle_break(world, "epoch %llu: rank %d replaces rank %d, which lives",
                     (unsigned long long)view->epoch, view->coordinator,
                     leader);
}

static void count_view(struct sim_world *world, const struct rg_view *view)
{
    const struct sim_version *before =
        view->epoch > 1 && world->oracle.nepochs >= view->epoch
            ? world->oracle.epochs[view->epoch - 1]
            : NULL;

    world->counts.views++;
    if (before)
        check_leader(world, before->view, view);
    if (before && before->view->coordinator != view->coordinator)
        world->counts.elected++;
    sim_world_tell(world,
                   "epoch %llu: %d members, committed %llu, first %llu, "
                   "workspace %u, by rank %d in term %llu",
                   (unsigned long long)view->epoch, view->nactive,
                   (unsigned long long)view->committed_seq,
                   (unsigned long long)view->first_seq, view->workspace,
                   view->coordinator, (unsigned long long)view->term);
}

static struct sim_version *find_version(struct sim_world *world,
                                        struct rg_view *view)
{
    struct sim_oracle *oracle = &world->oracle;
    struct sim_version *version;
    uint64_t hash;

    oracle->epochs = grow(oracle->epochs, &oracle->nepochs,
                          (size_t)view->epoch + 1, sizeof(*oracle->epochs));
    version = oracle->epochs[view->epoch];
    while (version && version->view != view)
        version = version->next;
    if (version)
        return version;
    hash = hash_view(view);
    version = oracle->epochs[view->epoch];
    while (version && version->hash != hash)
        version = version->next;
    if (version)
        return version;
    version = calloc(1, sizeof(*version));
    if (!version)
        abort();
    version->entered =
        calloc((size_t)world->options.ranks, sizeof(*version->entered));
    if (!version->entered)
        abort();
    version->hash = hash;
    version->view = rg_view_ref(view);
    version->next = oracle->epochs[view->epoch];
    count_view(world, view);
    check_workspace(world, view);
    oracle->epochs[view->epoch] = version;
    return version;
}

static void check_single(struct sim_world *world,
                         const struct sim_version *version, int rank)
{
    const struct sim_version *other =
        world->oracle.epochs[version->view->epoch];

    for (; other; other = other->next)
        if (other != version && is_alive(world, other))
            sim_oracle_break(world,
                             "epoch %llu has two views: rank %d enters the "
                             "one of rank %d in term %llu",
                             (unsigned long long)version->view->epoch, rank,
                             version->view->coordinator,
                             (unsigned long long)version->view->term);
}

/* No more is done in a pair than this member has done. */
static void check_pairs(struct sim_world *world, int rank,
                        const struct rg_view *view)
{
    const struct sim_program *program = &world->processes[rank].program;
    int own = rg_view_slot_of(program->version->view, rank);

    for (int i = 0; i < SIM_MATES; i++) {
        const struct sim_mate *mate = &program->mates[i];

        if (rg_pairs_find(&view->pairs, own, mate->slot) > mate->sent ||
            rg_pairs_find(&view->pairs, mate->slot, own) > mate->come)
            sim_oracle_break(world,
                             "epoch %llu says that more is done between slots "
                             "%d and %d than rank %d has done",
                             (unsigned long long)view->epoch, own, mate->slot,
                             rank);
    }
}

/* What a member that goes on from the epoch before has seen must stand. */
static void check_history(struct sim_world *world, int rank,
                          const struct rg_view *view)
{
    const struct sim_program *program = &world->processes[rank].program;

    if (view->committed_seq > program->completed)
        sim_oracle_break(world,
                         "epoch %llu commits %llu, rank %d completed %llu",
                         (unsigned long long)view->epoch,
                         (unsigned long long)view->committed_seq, rank,
                         (unsigned long long)program->completed);
    if (view->committed_seq < program->committed)
        sim_oracle_break(world, "epoch %llu commits %llu after %llu",
                         (unsigned long long)view->epoch,
                         (unsigned long long)view->committed_seq,
                         (unsigned long long)program->committed);
    if (view->first_seq <= program->claimed)
        sim_oracle_break(world,
                         "epoch %llu begins at %llu, rank %d claimed "
                         "%llu",
                         (unsigned long long)view->epoch,
                         (unsigned long long)view->first_seq, rank,
                         (unsigned long long)program->claimed);
}

/* The first who enters says what holds for all. */
static void check_rules(struct sim_world *world, struct sim_version *version,
                        int rank, uint64_t rules)
{
    if (!version->rules)
        version->rules = rules;
    if (version->rules != rules)
        sim_oracle_break(world, "rank %d enters epoch %llu by other rules",
                         rank, (unsigned long long)version->view->epoch);
}

const struct sim_version *sim_oracle_enter(struct sim_world *world, int rank,
                                           struct rg_view *view, uint64_t rules)
{
    const struct sim_process *process = &world->processes[rank];
    const struct sim_program *program = &process->program;
    struct sim_version *version = find_version(world, view);

    if (!rg_view_is_active(view, rank,
                           rg_agent_incarnation(process->agent, SIM_GROUP)))
        sim_oracle_break(world, "rank %d enters epoch %llu without being in it",
                         rank, (unsigned long long)view->epoch);
    check_single(world, version, rank);
    check_rules(world, version, rank, rules);
    if (program->state == SIM_HELD && program->version &&
        program->version->view->epoch + 1 == view->epoch) {
        check_history(world, rank, view);
        check_pairs(world, rank, view);
    }
    version->entered[rank] = process->life;
    version->floor = 0;
    return version;
}

/* ---- seqs --------------------------------------------------------------- */

void sim_oracle_begin(struct sim_world *world, int rank, uint64_t seq)
{
    struct sim_version *version =
        (struct sim_version *)world->processes[rank].program.version;
    size_t index = (size_t)(seq - version->view->first_seq);

    version->begun = grow(version->begun, &version->nbegun, index + 1,
                          sizeof(*version->begun));
    version->begun[index]++;
}

void sim_oracle_complete(struct sim_world *world, int rank, uint64_t seq)
{
    struct sim_oracle *oracle = &world->oracle;
    const struct sim_version *version = world->processes[rank].program.version;
    const struct sim_version *owner;

    oracle->owners = grow(oracle->owners, &oracle->nowners, (size_t)seq + 1,
                          sizeof(*oracle->owners));
    owner = oracle->owners[seq];
    if (owner && owner != version && is_alive(world, owner))
        sim_oracle_break(
            world, "seq %llu of epoch %llu completes in epoch %llu",
            (unsigned long long)seq, (unsigned long long)owner->view->epoch,
            (unsigned long long)version->view->epoch);
    oracle->owners[seq] = version;
}

int sim_oracle_is_complete(const struct sim_version *version, uint64_t seq)
{
    size_t index = (size_t)(seq - version->view->first_seq);

    return index < version->nbegun &&
           version->begun[index] == version->view->nactive;
}

void sim_oracle_floor(struct sim_world *world, int rank, uint64_t floor)
{
    struct sim_version *version =
        (struct sim_version *)world->processes[rank].program.version;

    /* In a version members complete more, never less. */
    if (floor < version->view->first_seq || floor <= version->floor)
        return;
    for (int i = 0; i < version->view->nactive; i++) {
        int other = version->view->members[version->view->order[i]].world_rank;
        const struct sim_program *program = &world->processes[other].program;

        if (program->version == version && program->state == SIM_ACTIVE &&
            program->completed < floor)
            sim_oracle_break(world,
                             "rank %d believes that %llu is committed, rank "
                             "%d has completed %llu",
                             rank, (unsigned long long)floor, other,
                             (unsigned long long)program->completed);
    }
    version->floor = floor;
}

/* ---- rest --------------------------------------------------------------- */

static int count_steady(const struct sim_world *world, uint64_t epoch)
{
    int count = 0;

    for (int rank = 0; rank < world->options.ranks; rank++) {
        const struct sim_process *process = &world->processes[rank];

        if (!process->is_dead &&
            rg_coordinator_is_steady(process->coordinator, SIM_GROUP) &&
            rg_coordinator_view(process->coordinator, SIM_GROUP)->epoch ==
                epoch)
            count++;
    }
    return count;
}

void sim_oracle_split(struct sim_world *world)
{
    int side = 0;

    for (int rank = 0; rank < world->options.ranks; rank++)
        side += world->processes[rank].side;
    for (int rank = 0; rank < world->options.ranks; rank++) {
        const struct sim_program *program = &world->processes[rank].program;

        if (world->processes[rank].side &&
            (program->state != SIM_ACTIVE ||
             program->version->view->nactive != side))
            sim_oracle_break(world, "rank %d is not in a group with its half",
                             rank);
    }
}

const char *sim_oracle_unrest(const struct sim_world *world)
{
    const struct sim_version *version = NULL;
    int active = 0;

    for (int rank = 0; rank < world->options.ranks; rank++) {
        const struct sim_process *process = &world->processes[rank];

        if (process->is_dead || process->program.state == SIM_ENDED)
            continue;
        if (process->program.state != SIM_ACTIVE ||
            !rg_agent_is_settled(process->agent, SIM_GROUP))
            return "a rank is joining or changing";
        if (version && process->program.version != version)
            return "two views are in force";
        version = process->program.version;
        active++;
    }
    if (!version)
        return NULL;
    if (active != version->view->nactive)
        return "the view names members that are no more";
    return count_steady(world, version->view->epoch) == 1
               ? NULL
               : "not one coordinator is steady";
}

void sim_oracle_rest(struct sim_world *world)
{
    const char *unrest = sim_oracle_unrest(world);
    int active = 0;

    if (unrest)
        sim_oracle_break(world, "no rest: %s", unrest);
    for (int rank = 0; rank < world->options.ranks; rank++)
        active += !world->processes[rank].is_dead &&
                  world->processes[rank].program.state == SIM_ACTIVE;
    world->counts.ends_active = active;
    if (world->is_mild && 2 * active <= world->options.ranks)
        sim_oracle_break(world, "only %d of %d live on", active,
                         world->options.ranks);
}
