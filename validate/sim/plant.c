#include "validate/sim/plant.h"

#include <stdlib.h>
#include <string.h>

#include "validate/sim/world.h"

static const char *const names[SIM_PLANT_COUNT] = {
    "none",        "stale-epoch",     "no-quorum",
    "other-rules", "commit-max",      "no-first-seq",
    "local-claim", "reuse-workspace", "pair-sent"};

enum sim_plant sim_plant_find(const char *name)
{
    int plant = 0;

    while (plant < SIM_PLANT_COUNT && strcmp(names[plant], name))
        plant++;
    return (enum sim_plant)plant;
}

const char *sim_plant_name(enum sim_plant plant)
{
    return names[plant];
}

/* A copy of the message that may be changed. */
static struct rg_message *copy(const struct rg_message *message)
{
    struct rg_message *changed =
        rg_message_create(message->kind, message->group);

    if (!changed)
        abort();
    *changed = *message;
    changed->references = 1;
    changed->data = NULL;
    if (message->view && !(changed->view = rg_view_clone(message->view)))
        abort();
    if (rg_pairs_copy(&message->pairs, &changed->pairs))
        abort();
    if (rg_message_set_data(changed, message->data, message->bytes))
        abort();
    return changed;
}

/* ---- views that say something else -------------------------------------- */

static uint64_t most_completed(const struct sim_world *world,
                               const struct rg_view *view)
{
    uint64_t most = view->committed_seq;

    for (int i = 0; i < view->nactive; i++) {
        int rank = view->members[view->order[i]].world_rank;
        const struct sim_program *program = &world->processes[rank].program;

        if (program->state == SIM_HELD && program->completed > most)
            most = program->completed;
    }
    return most;
}

static void count_as_sent(const struct sim_world *world, struct rg_view *view)
{
    for (int i = 0; i < view->pairs.count; i++) {
        struct rg_pair *pair = &view->pairs.items[i];
        int rank = view->members[pair->from].world_rank;
        const struct sim_program *program = &world->processes[rank].program;

        for (int mate = 0; mate < SIM_MATES; mate++)
            if (program->mates[mate].slot == pair->to)
                pair->count = program->mates[mate].sent;
    }
}

static void change_view(const struct sim_world *world, int rank,
                        struct rg_view *view)
{
    const struct sim_program *own = &world->processes[rank].program;

    if (view->epoch == 1)
        return;
    switch (world->options.plant) {
    case SIM_PLANT_COMMIT_MAX:
        view->committed_seq = most_completed(world, view);
        break;
    case SIM_PLANT_NO_FIRST_SEQ:
        view->first_seq = view->committed_seq + 1;
        break;
    case SIM_PLANT_LOCAL_CLAIM:
        view->first_seq = own->claimed + 1;
        break;
    case SIM_PLANT_REUSE_WORKSPACE:
        view->workspace = view->epoch % 2;
        break;
    case SIM_PLANT_PAIR_SENT:
        count_as_sent(world, view);
        break;
    default:
        break;
    }
}

static int changes_views(enum sim_plant plant)
{
    return plant >= SIM_PLANT_COMMIT_MAX && plant < SIM_PLANT_COUNT;
}

/* ---- terms -------------------------------------------------------------- */

static int is_of_leader(enum rg_message_kind kind)
{
    return kind == RG_MSG_PREPARE || kind == RG_MSG_VIEW ||
           kind == RG_MSG_ACTIVATE || kind == RG_MSG_BEAT ||
           kind == RG_MSG_CLAIM;
}

struct rg_message *sim_plant_received(struct sim_world *world, int rank,
                                      int from, struct rg_message *message)
{
    struct sim_plant_state *state = &world->plants[rank];
    struct rg_message *changed;

    if (world->options.plant != SIM_PLANT_STALE_EPOCH ||
        !is_of_leader(message->kind))
        return message;
    if (state->from != from || state->term != message->term) {
        state->from = from;
        state->term = message->term;
        state->told_term =
            (message->term > state->told_term ? message->term
                                              : state->told_term) +
            1;
    }
    changed = copy(message);
    changed->term = state->told_term;
    rg_message_unref(message);
    return changed;
}

struct rg_message *sim_plant_sent(struct sim_world *world, int rank, int to,
                                  struct rg_message *message)
{
    const struct sim_plant_state *state = &world->plants[rank];
    enum rg_message_kind kind = message->kind;
    struct rg_message *changed;

    if (changes_views(world->options.plant) &&
        (kind == RG_MSG_VIEW || kind == RG_MSG_PREPARE)) {
        changed = copy(message);
        if (changed->view)
            change_view(world, rank, changed->view);
        else if (world->options.plant == SIM_PLANT_REUSE_WORKSPACE)
            changed->workspace = changed->epoch % 2;
    } else if (world->options.plant == SIM_PLANT_OTHER_RULES &&
               kind == RG_MSG_VIEW_ACK) {
        changed = copy(message);
        changed->rules = 0;
    } else if (world->options.plant == SIM_PLANT_STALE_EPOCH &&
               state->from == to &&
               (kind == RG_MSG_QUIESCED || kind == RG_MSG_VIEW_ACK ||
                kind == RG_MSG_GRANT)) {
        changed = copy(message);
        changed->term = state->term;
    } else {
        return message;
    }
    rg_message_unref(message);
    return changed;
}

/* ---- quorum ------------------------------------------------------------- */

void sim_plant_window(struct sim_world *world, int rank)
{
    const struct rg_view *view =
        rg_coordinator_view(world->processes[rank].coordinator, SIM_GROUP);
    int *unreached;
    int count = 0;

    if (world->options.plant != SIM_PLANT_NO_QUORUM || !view)
        return;
    unreached = calloc((size_t)view->nactive + 1, sizeof(*unreached));
    if (!unreached)
        abort();
    for (int i = 0; i < view->nactive; i++) {
        int other = view->members[view->order[i]].world_rank;

        if (other != rank && !sim_world_reaches(world, rank, other))
            unreached[count++] = other;
    }
    for (int i = 0; i < count; i++) {
        const struct rg_input input = {.kind = RG_INPUT_GONE,
                                       .peer = unreached[i],
                                       .process =
                                           world->processes[unreached[i]].life};

        sim_world_coordinate(world, rank, &input);
    }
    free(unreached);
}
