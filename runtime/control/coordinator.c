#include "runtime/control/coordinator.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/core/bitset.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

/* Each phase waits for the slots in group->waiting. */
enum phase {
    FORMING = 0, /* for JOIN */
    STEADY,      /* for nothing */
    PREPARING,   /* for QUIESCED */
    PROPOSING    /* for VIEW_ACK */
};

/* One call of the gather service that some members have not made yet. */
struct gather {
    struct gather *next;
    uint64_t call;
    size_t bytes; /* of the first block that came */
    int status;
    int missing;
    unsigned char *got;    /* [nactive] */
    unsigned char *blocks; /* [nactive * bytes] in rank order */
};

struct group {
    struct group *next;
    uint32_t id;
    enum phase phase;
    struct rg_view *view;     /* in force; null while the first one forms */
    struct rg_view *proposal; /* the one to come; null when STEADY */
    struct rg_bitset waiting;
    uint64_t completed_min;
    uint64_t claimed_max;
    int join_status;        /* RG_ECONFIG once two joiners disagree */
    struct rg_bitset asked; /* slots that have asked for `policy` */
    int nasked;
    int policy_status; /* RG_EPOLICY once two texts differ */
    char *policy;
    struct gather *gathers;
    int departed; /* members of the view in force that are no more */
};

struct rg_coordinator {
    struct rg_coordinator_config config;
    struct group *groups;
    uint64_t dropped;
};

/* ---- groups ------------------------------------------------------------- */

static struct group *group_find(const struct rg_coordinator *coordinator,
                                uint32_t id)
{
    struct group *group = coordinator->groups;

    while (group && group->id != id)
        group = group->next;
    return group;
}

static void gather_destroy(struct gather *gather)
{
    free(gather->got);
    free(gather->blocks);
    free(gather);
}

static void group_free(struct group *group)
{
    while (group->gathers) {
        struct gather *gather = group->gathers;

        group->gathers = gather->next;
        gather_destroy(gather);
    }
    rg_view_destroy(group->view);
    rg_view_destroy(group->proposal);
    rg_bitset_fini(&group->waiting);
    rg_bitset_fini(&group->asked);
    free(group->policy);
    free(group);
}

/* A group whose first view forms, or null. */
static struct group *group_create(struct rg_coordinator *coordinator,
                                  uint32_t id, int capacity)
{
    struct group *group = calloc(1, sizeof(*group));

    if (!group)
        return NULL;
    group->id = id;
    group->proposal = rg_view_create(id, capacity);
    if (!group->proposal || rg_bitset_init(&group->waiting, capacity) ||
        rg_bitset_init(&group->asked, capacity))
        goto error;
    for (int slot = 0; slot < coordinator->config.world_size; slot++)
        rg_bitset_set(&group->waiting, slot);
    group->next = coordinator->groups;
    coordinator->groups = group;
    return group;
error:
    group_free(group);
    return NULL;
}

static void group_remove(struct rg_coordinator *coordinator,
                         struct group *group)
{
    struct group **link = &coordinator->groups;

    while (*link != group)
        link = &(*link)->next;
    *link = group->next;
    group_free(group);
}

/* The members as they will be, else as they are. */
static struct rg_view *group_members(const struct group *group)
{
    return group->proposal ? group->proposal : group->view;
}

static int is_live(const struct rg_member *member)
{
    return member->status == RG_MEMBER_ACTIVE ||
           member->status == RG_MEMBER_JOINING;
}

static int count_live(const struct rg_view *view)
{
    int count = 0;

    for (int slot = 0; slot < view->capacity; slot++)
        count += is_live(&view->members[slot]);
    return count;
}

/* ---- sending ------------------------------------------------------------ */

static struct rg_message *message_new(const struct rg_coordinator *coordinator,
                                      const struct group *group,
                                      enum rg_message_kind kind)
{
    struct rg_message *message = rg_message_create(kind, group->id);

    if (message) {
        const struct rg_view *view = group_members(group);

        message->term = coordinator->config.term;
        message->epoch = view ? view->epoch : 0;
    }
    return message;
}

/* Sends to every live member and drops the caller's reference. */
static void broadcast(const struct group *group, struct rg_message *message,
                      struct rg_effects *effects)
{
    const struct rg_view *view = group_members(group);

    for (int slot = 0; slot < view->capacity; slot++)
        if (is_live(&view->members[slot]))
            rg_effects_send(effects, view->members[slot].world_rank, message);
    rg_message_unref(message);
}

static void broadcast_error(const struct rg_coordinator *coordinator,
                            const struct group *group, int status,
                            struct rg_effects *effects)
{
    struct rg_message *message = message_new(coordinator, group, RG_MSG_ERROR);

    if (message)
        message->status = status;
    broadcast(group, message, effects);
}

/* ---- gather ------------------------------------------------------------- */

static struct gather *gather_create(const struct group *group, uint64_t call,
                                    size_t bytes)
{
    size_t nactive = (size_t)group->view->nactive;
    struct gather *gather = calloc(1, sizeof(*gather));

    if (!gather)
        return NULL;
    gather->call = call;
    gather->bytes = bytes;
    gather->missing = group->view->nactive;
    gather->got = calloc(nactive, 1);
    gather->blocks = malloc(nactive * bytes + 1);
    if (gather->got && gather->blocks)
        return gather;
    gather_destroy(gather);
    return NULL;
}

static struct rg_message *gathered_new(const struct rg_coordinator *coordinator,
                                       const struct group *group,
                                       uint64_t epoch, uint64_t call,
                                       int status)
{
    struct rg_message *message =
        message_new(coordinator, group, RG_MSG_GATHERED);

    if (message) {
        message->epoch = epoch;
        message->call = call;
        message->status = status;
    }
    return message;
}

/* Answers every member that has contributed, then forgets the call. */
static void gather_finish(const struct rg_coordinator *coordinator,
                          struct group *group, struct gather *gather,
                          int status, struct rg_effects *effects)
{
    const struct rg_view *view = group->view;
    size_t bytes = status ? 0 : (size_t)view->nactive * gather->bytes;
    struct rg_message *message =
        gathered_new(coordinator, group, view->epoch, gather->call, status);
    struct gather **link = &group->gathers;

    if (message && rg_message_set_data(message, gather->blocks, bytes))
        effects->rc = RG_ENOMEM;
    for (int rank = 0; rank < view->nactive; rank++)
        if (gather->got[rank])
            rg_effects_send(
                effects, view->members[view->order[rank]].world_rank, message);
    rg_message_unref(message);
    while (*link != gather)
        link = &(*link)->next;
    *link = gather->next;
    gather_destroy(gather);
}

static void gather_abort_all(const struct rg_coordinator *coordinator,
                             struct group *group, int status,
                             struct rg_effects *effects)
{
    while (group->gathers)
        gather_finish(coordinator, group, group->gathers, status, effects);
}

static void gather_refuse(const struct rg_coordinator *coordinator,
                          const struct group *group, int slot,
                          const struct rg_message *message, int status,
                          struct rg_effects *effects)
{
    struct rg_message *reply =
        gathered_new(coordinator, group, message->epoch, message->call, status);

    rg_effects_send(effects, group_members(group)->members[slot].world_rank,
                    reply);
    rg_message_unref(reply);
}

/* The open gather of this call, opened if it is the first to make it. */
static struct gather *gather_open(struct group *group,
                                  const struct rg_message *message)
{
    struct gather *gather = group->gathers;

    while (gather && gather->call != message->call)
        gather = gather->next;
    if (gather)
        return gather;
    gather = gather_create(group, message->call, message->bytes);
    if (gather) {
        gather->next = group->gathers;
        group->gathers = gather;
    }
    return gather;
}

static void on_gather(struct rg_coordinator *coordinator, struct group *group,
                      int slot, const struct rg_message *message,
                      struct rg_effects *effects)
{
    int rank = group->view ? rg_view_rank_of(group->view, slot) : -1;
    int stale = rank < 0 || message->epoch != group->view->epoch;
    struct gather *gather;

    if (stale || group->departed) {
        gather_refuse(coordinator, group, slot, message,
                      stale ? RG_EABORTED : RG_ECLOSED, effects);
        return;
    }
    gather = gather_open(group, message);
    if (!gather) {
        effects->rc = RG_ENOMEM;
        return;
    }
    if (gather->got[rank]) {
        coordinator->dropped++;
        return;
    }
    gather->got[rank] = 1;
    if (message->bytes != gather->bytes)
        gather->status = RG_EINVAL;
    else if (message->bytes)
        memcpy(gather->blocks + (size_t)rank * gather->bytes, message->data,
               gather->bytes);
    if (--gather->missing == 0)
        gather_finish(coordinator, group, gather, gather->status, effects);
}

/* ---- view change -------------------------------------------------------- */

/* Why the member keeps its group on the legacy backend; null: it does not. */
static const char *legacy_reason(const struct rg_member *member)
{
    if (member->info.preference != RG_BACKEND_NEW)
        return "prefers it";
    if (!(member->info.capabilities & RG_CAP_NEW_BACKEND))
        return "is not capable of the new one";
    return NULL;
}

/* Group-wide: new only if every active member prefers it and is capable. */
static void decide_backend(const struct group *group,
                           struct rg_effects *effects)
{
    struct rg_view *view = group->proposal;
    enum rg_backend before =
        group->view ? group->view->backend : RG_BACKEND_UNSET;
    const struct rg_member *blocker = NULL;
    int wanted = 0;

    for (int rank = 0; rank < view->nactive; rank++) {
        const struct rg_member *member = &view->members[view->order[rank]];

        wanted |= member->info.preference == RG_BACKEND_NEW;
        if (!blocker && legacy_reason(member))
            blocker = member;
    }
    view->backend = blocker ? RG_BACKEND_LEGACY : RG_BACKEND_NEW;
    if (blocker && wanted && before != RG_BACKEND_LEGACY)
        rg_effects_log(effects, RG_LOG_WARN,
                       "group %u falls back to the legacy backend: rank %d %s",
                       group->id, blocker->world_rank, legacy_reason(blocker));
}

static void wait_for_live(struct group *group)
{
    const struct rg_view *view = group->proposal;

    rg_bitset_zero(&group->waiting);
    for (int slot = 0; slot < view->capacity; slot++)
        if (is_live(&view->members[slot]))
            rg_bitset_set(&group->waiting, slot);
}

/* Starts the flush towards group->proposal. */
static void prepare(struct rg_coordinator *coordinator, struct group *group,
                    struct rg_effects *effects)
{
    struct rg_view *proposal = group->proposal;
    struct rg_message *message;

    proposal->term = coordinator->config.term;
    proposal->status = RG_VIEW_CHANGING;
    if (group->view) {
        proposal->epoch = group->view->epoch + 1;
        proposal->workspace =
            (group->view->workspace + 1) % coordinator->config.workspaces;
    } else {
        proposal->epoch = 1;
    }
    group->phase = PREPARING;
    group->completed_min = UINT64_MAX;
    group->claimed_max = 0;
    wait_for_live(group);
    message = message_new(coordinator, group, RG_MSG_PREPARE);
    if (message)
        message->workspace = proposal->workspace;
    broadcast(group, message, effects);
}

/* All are quiet: publishes what they will agree on. */
static void propose(struct rg_coordinator *coordinator, struct group *group,
                    struct rg_effects *effects)
{
    struct rg_view *proposal = group->proposal;
    struct rg_message *message;

    if (group->view) {
        proposal->committed_seq = group->completed_min;
        proposal->first_seq = group->claimed_max + 1;
    } else {
        proposal->committed_seq = proposal->first_seq - 1;
    }
    for (int slot = 0; slot < proposal->capacity; slot++)
        if (proposal->members[slot].status == RG_MEMBER_JOINING)
            proposal->members[slot].status = RG_MEMBER_ACTIVE;
    rg_view_reorder(proposal);
    decide_backend(group, effects);
    proposal->status = RG_VIEW_ACTIVE;
    group->phase = PROPOSING;
    wait_for_live(group);
    message = message_new(coordinator, group, RG_MSG_VIEW);
    if (message) {
        message->view = rg_view_clone(proposal);
        if (!message->view)
            effects->rc = RG_ENOMEM;
    }
    broadcast(group, message, effects);
}

static void policy_try(struct rg_coordinator *coordinator, struct group *group,
                       struct rg_effects *effects);

static void activate(struct rg_coordinator *coordinator, struct group *group,
                     struct rg_effects *effects)
{
    if (group->view)
        gather_abort_all(coordinator, group, RG_EABORTED, effects);
    rg_view_destroy(group->view);
    group->view = group->proposal;
    group->proposal = NULL;
    group->phase = STEADY;
    broadcast(group, message_new(coordinator, group, RG_MSG_ACTIVATE), effects);
    policy_try(coordinator, group, effects);
}

/* Whether the message answers the step in progress; takes the answer if so. */
static int take_answer(struct rg_coordinator *coordinator, struct group *group,
                       enum phase phase, int slot,
                       const struct rg_message *message)
{
    if (group->phase != phase || message->epoch != group->proposal->epoch ||
        message->term != coordinator->config.term ||
        !rg_bitset_test(&group->waiting, slot)) {
        coordinator->dropped++;
        return 0;
    }
    rg_bitset_clear(&group->waiting, slot);
    return 1;
}

static void on_quiesced(struct rg_coordinator *coordinator, struct group *group,
                        int slot, const struct rg_message *message,
                        struct rg_effects *effects)
{
    if (!take_answer(coordinator, group, PREPARING, slot, message))
        return;
    if (message->completed < group->completed_min)
        group->completed_min = message->completed;
    if (message->claimed > group->claimed_max)
        group->claimed_max = message->claimed;
    if (rg_bitset_next(&group->waiting, 0) < 0)
        propose(coordinator, group, effects);
}

static void on_view_ack(struct rg_coordinator *coordinator, struct group *group,
                        int slot, const struct rg_message *message,
                        struct rg_effects *effects)
{
    if (!take_answer(coordinator, group, PROPOSING, slot, message))
        return;
    if (rg_bitset_next(&group->waiting, 0) < 0)
        activate(coordinator, group, effects);
}

/* ---- policy ------------------------------------------------------------- */

static void policy_forget(struct group *group)
{
    free(group->policy);
    group->policy = NULL;
    group->policy_status = RG_OK;
    group->nasked = 0;
    rg_bitset_zero(&group->asked);
}

/* Once all active members have asked and nothing else is in progress. */
static void policy_try(struct rg_coordinator *coordinator, struct group *group,
                       struct rg_effects *effects)
{
    if (group->phase != STEADY || !group->policy ||
        group->nasked < group->view->nactive)
        return;
    if (group->policy_status) {
        broadcast_error(coordinator, group, group->policy_status, effects);
    } else {
        group->proposal = rg_view_clone(group->view);
        if (!group->proposal ||
            rg_view_set_policy(group->proposal, group->policy)) {
            effects->rc = RG_ENOMEM;
            return;
        }
        prepare(coordinator, group, effects);
    }
    policy_forget(group);
}

static void on_policy(struct rg_coordinator *coordinator, struct group *group,
                      int slot, const struct rg_message *message,
                      struct rg_effects *effects)
{
    if (!group->view || rg_bitset_test(&group->asked, slot)) {
        coordinator->dropped++;
        return;
    }
    rg_bitset_set(&group->asked, slot);
    group->nasked++;
    if (!group->policy) {
        group->policy = strdup(rg_message_text(message));
        if (!group->policy)
            effects->rc = RG_ENOMEM;
    } else if (!group->policy_status &&
               strcmp(group->policy, rg_message_text(message))) {
        rg_effects_log(effects, RG_LOG_ERROR,
                       "group %u: the policy of slot %d is not the others'",
                       group->id, slot);
        group->policy_status = RG_EPOLICY;
    }
    policy_try(coordinator, group, effects);
}

/* ---- membership --------------------------------------------------------- */

/* What a joiner says that contradicts the group; null: nothing. */
static const char *join_conflict(const struct rg_coordinator *coordinator,
                                 const struct rg_view *view,
                                 const struct rg_message *message)
{
    const struct rg_member *other = NULL;

    if (message->capacity < coordinator->config.world_size)
        return "capacity (smaller than the world)";
    if (message->capacity != view->capacity)
        return "capacity";
    for (int slot = 0; slot < view->capacity && !other; slot++)
        if (is_live(&view->members[slot]))
            other = &view->members[slot];
    if (!other)
        return NULL;
    if (message->first_seq != view->first_seq)
        return "first seq";
    if (message->info.region_bytes != other->info.region_bytes)
        return "region size";
    if (message->info.layout_hash != other->info.layout_hash)
        return "layout (another build or algorithm table)";
    if (message->info.device_kind != other->info.device_kind)
        return "device kind";
    return NULL;
}

/* All have asked: the first view, or the same error for everyone. */
static void form(struct rg_coordinator *coordinator, struct group *group,
                 struct rg_effects *effects)
{
    if (!group->join_status) {
        prepare(coordinator, group, effects);
        return;
    }
    broadcast_error(coordinator, group, group->join_status, effects);
    group_remove(coordinator, group);
}

static void on_join(struct rg_coordinator *coordinator, struct group *group,
                    int rank, const struct rg_message *message,
                    struct rg_effects *effects)
{
    const char *conflict;
    struct rg_view *view;

    if (!group) {
        int capacity = message->capacity;

        if (capacity < coordinator->config.world_size)
            capacity = coordinator->config.world_size;
        group = group_create(coordinator, message->group, capacity);
        if (!group) {
            effects->rc = RG_ENOMEM;
            return;
        }
        group->proposal->first_seq = message->first_seq;
    }
    if (group->phase != FORMING || !rg_bitset_test(&group->waiting, rank)) {
        coordinator->dropped++;
        return;
    }
    view = group->proposal;
    conflict = join_conflict(coordinator, view, message);
    if (conflict && !group->join_status)
        rg_effects_log(effects, RG_LOG_ERROR,
                       "group %u: rank %d joins with a different %s", group->id,
                       rank, conflict);
    if (conflict)
        group->join_status = RG_ECONFIG;
    view->members[rank] = (struct rg_member){
        .status = RG_MEMBER_JOINING,
        .world_rank = rank,
        .incarnation = message->incarnation,
        .info = message->info,
    };
    if (rank == 0 && rg_view_set_policy(view, rg_message_text(message)))
        effects->rc = RG_ENOMEM;
    rg_bitset_clear(&group->waiting, rank);
    if (rg_bitset_next(&group->waiting, 0) < 0)
        form(coordinator, group, effects);
}

/*
 * A member has left or died. Those that remain cannot go on in this view: a
 * death is an error to them, and what they wait for from the other is over.
 */
static void depart(struct rg_coordinator *coordinator, struct group *group,
                   int slot, enum rg_member_status status,
                   struct rg_effects *effects)
{
    struct rg_view *view = group_members(group);

    view->members[slot].status = status;
    group->departed++;
    if (group->view)
        gather_abort_all(coordinator, group, RG_ECLOSED, effects);
    if (count_live(view) == 0) {
        group_remove(coordinator, group);
        return;
    }
    if (status == RG_MEMBER_FAILED) {
        rg_effects_log(effects, RG_LOG_ERROR, "group %u: rank %d has died",
                       group->id, view->members[slot].world_rank);
        broadcast_error(coordinator, group, RG_EFAILED, effects);
    } else if (group->phase != STEADY) {
        broadcast_error(coordinator, group, RG_ECLOSED, effects);
    }
}

static void on_gone(struct rg_coordinator *coordinator, int rank,
                    struct rg_effects *effects)
{
    struct group *next;

    for (struct group *group = coordinator->groups; group; group = next) {
        const struct rg_view *view = group_members(group);
        int slot = rg_view_slot_of(view, rank);

        next = group->next;
        if (slot >= 0 && is_live(&view->members[slot]))
            depart(coordinator, group, slot, RG_MEMBER_FAILED, effects);
    }
}

/* ---- inputs ------------------------------------------------------------- */

/* The sender's slot; -1 if it is no live member or an old incarnation. */
static int sender_slot(const struct group *group, int rank,
                       const struct rg_message *message)
{
    const struct rg_view *view = group_members(group);
    int slot = rg_view_slot_of(view, rank);

    if (slot < 0 || !is_live(&view->members[slot]) ||
        view->members[slot].incarnation != message->incarnation)
        return -1;
    return slot;
}

static void on_message(struct rg_coordinator *coordinator, int peer,
                       const struct rg_message *message,
                       struct rg_effects *effects)
{
    struct group *group = group_find(coordinator, message->group);
    int slot;

    if (message->kind == RG_MSG_JOIN) {
        on_join(coordinator, group, peer, message, effects);
        return;
    }
    slot = group ? sender_slot(group, peer, message) : -1;
    if (slot < 0) {
        coordinator->dropped++;
        return;
    }
    switch (message->kind) {
    case RG_MSG_LEAVE:
        depart(coordinator, group, slot, RG_MEMBER_LEFT, effects);
        break;
    case RG_MSG_QUIESCED:
        on_quiesced(coordinator, group, slot, message, effects);
        break;
    case RG_MSG_VIEW_ACK:
        on_view_ack(coordinator, group, slot, message, effects);
        break;
    case RG_MSG_POLICY:
        on_policy(coordinator, group, slot, message, effects);
        break;
    case RG_MSG_GATHER:
        on_gather(coordinator, group, slot, message, effects);
        break;
    default:
        coordinator->dropped++;
    }
}

struct rg_coordinator *
rg_coordinator_create(const struct rg_coordinator_config *config)
{
    struct rg_coordinator *coordinator = calloc(1, sizeof(*coordinator));

    if (coordinator)
        coordinator->config = *config;
    return coordinator;
}

void rg_coordinator_destroy(struct rg_coordinator *coordinator)
{
    if (!coordinator)
        return;
    while (coordinator->groups)
        group_remove(coordinator, coordinator->groups);
    free(coordinator);
}

void rg_coordinator_step(struct rg_coordinator *coordinator,
                         const struct rg_input *input,
                         struct rg_effects *effects)
{
    if (input->kind == RG_INPUT_MESSAGE)
        on_message(coordinator, input->peer, input->message, effects);
    else if (input->kind == RG_INPUT_GONE)
        on_gone(coordinator, input->peer, effects);
}

const struct rg_view *
rg_coordinator_view(const struct rg_coordinator *coordinator, uint32_t group)
{
    const struct group *found = group_find(coordinator, group);

    return found ? found->view : NULL;
}

int rg_coordinator_is_idle(const struct rg_coordinator *coordinator)
{
    return coordinator->groups == NULL;
}

uint64_t rg_coordinator_dropped(const struct rg_coordinator *coordinator)
{
    return coordinator->dropped;
}
