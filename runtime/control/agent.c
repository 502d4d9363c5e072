#include "runtime/control/agent.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/core/log.h"
#include "runtime/status.h"

/*
 *   JOINED -> HOLDING -> QUIET -> CHECKING -> READY -> ACTIVE
 *                ^                                        |
 *                +------------ PREPARE -------------------+
 *
 * QUIET, READY and JOINED wait for the coordinator, HOLDING and CHECKING for
 * the caller. FAILED has delivered its last word.
 */
enum phase {
    JOINED = 0, /* for PREPARE of the first view */
    ACTIVE,     /* for nothing */
    HOLDING,    /* for the caller's QUIESCED */
    QUIET,      /* for VIEW */
    CHECKING,   /* for the caller's VIEW_ACK */
    READY,      /* for ACTIVATE */
    FAILED      /* for the caller's LEAVE */
};

struct group {
    struct group *next;
    uint32_t id;
    enum phase phase;
    uint64_t term;             /* the highest seen */
    uint64_t epoch;            /* to come while changing, else the active one */
    struct rg_message *active; /* the VIEW in force; null: none yet */
    struct rg_message *pending; /* the VIEW to come; from CHECKING on */
    uint64_t calls;             /* gathers made in this epoch */
    int gathering;              /* the last of them has no answer yet */
};

struct rg_agent {
    struct rg_agent_config config;
    struct group *groups;
    uint64_t dropped;
};

static struct group *group_find(const struct rg_agent *agent, uint32_t id)
{
    struct group *group = agent->groups;

    while (group && group->id != id)
        group = group->next;
    return group;
}

static struct group *group_create(struct rg_agent *agent, uint32_t id)
{
    struct group *group = calloc(1, sizeof(*group));

    if (!group)
        return NULL;
    group->id = id;
    group->next = agent->groups;
    agent->groups = group;
    return group;
}

static void group_remove(struct rg_agent *agent, struct group *group)
{
    struct group **link = &agent->groups;

    while (*link != group)
        link = &(*link)->next;
    *link = group->next;
    rg_message_unref(group->active);
    rg_message_unref(group->pending);
    free(group);
}

/* ---- what goes out ------------------------------------------------------ */

/* The caller's message, stamped with who and when, to the coordinator. */
static void forward(const struct rg_agent *agent, const struct group *group,
                    const struct rg_message *request,
                    struct rg_effects *effects)
{
    struct rg_message *message = rg_message_create(request->kind, group->id);

    if (!message ||
        rg_message_set_data(message, request->data, request->bytes)) {
        effects->rc = RG_ENOMEM;
        rg_message_unref(message);
        return;
    }
    message->incarnation = agent->config.incarnation;
    message->term = group->term;
    message->epoch = group->epoch;
    if (request->kind == RG_MSG_GATHER) {
        message->epoch = group->active->epoch;
        message->call = group->calls;
    }
    message->completed = request->completed;
    message->claimed = request->claimed;
    message->capacity = request->capacity;
    message->first_seq = request->first_seq;
    message->info = request->info;
    rg_effects_send(effects, agent->config.coordinator, message);
    rg_message_unref(message);
}

static void deliver_status(const struct group *group, enum rg_message_kind kind,
                           int status, struct rg_effects *effects)
{
    struct rg_message *message = rg_message_create(kind, group->id);

    if (message) {
        message->epoch = group->epoch;
        message->call = group->calls;
        message->status = status;
    }
    rg_effects_deliver(effects, message);
    rg_message_unref(message);
}

/* No view will come any more; a gather in progress ends with `status`. */
static void group_abandon(struct group *group, int status,
                          struct rg_effects *effects)
{
    if (group->gathering)
        deliver_status(group, RG_MSG_GATHERED, status, effects);
    group->gathering = 0;
    group->phase = FAILED;
    rg_effects_timer(effects, RG_TIMER_FORM, group->id, 0);
}

static void group_fail(struct group *group, int status,
                       struct rg_effects *effects)
{
    if (group->phase == FAILED)
        return;
    group_abandon(group, status, effects);
    deliver_status(group, RG_MSG_ERROR, status, effects);
}

/* ---- the caller's requests ---------------------------------------------- */

static void ask_join(struct rg_agent *agent, const struct rg_message *request,
                     struct rg_effects *effects)
{
    struct group *group = group_create(agent, request->group);

    if (!group) {
        effects->rc = RG_ENOMEM;
        return;
    }
    forward(agent, group, request, effects);
    rg_effects_timer(effects, RG_TIMER_FORM, group->id, agent->config.form_ms);
}

static void ask_leave(struct rg_agent *agent, struct group *group,
                      const struct rg_message *request,
                      struct rg_effects *effects)
{
    forward(agent, group, request, effects);
    rg_effects_timer(effects, RG_TIMER_FORM, group->id, 0);
    group_remove(agent, group);
}

static void ask_gather(struct rg_agent *agent, struct group *group,
                       const struct rg_message *request,
                       struct rg_effects *effects)
{
    group->calls++;
    if (!group->active || group->phase == FAILED) {
        deliver_status(group, RG_MSG_GATHERED, RG_EUNAVAILABLE, effects);
        return;
    }
    group->gathering = 1;
    forward(agent, group, request, effects);
}

/* An answer of the caller: moves on if it answers the step in progress. */
static void ask_advance(struct rg_agent *agent, struct group *group,
                        enum phase from, enum phase to,
                        const struct rg_message *request,
                        struct rg_effects *effects)
{
    if (group->phase != from || request->epoch != group->epoch) {
        agent->dropped++;
        return;
    }
    group->phase = to;
    forward(agent, group, request, effects);
}

static void on_request(struct rg_agent *agent, const struct rg_message *request,
                       struct rg_effects *effects)
{
    struct group *group = group_find(agent, request->group);

    if (!group == (request->kind != RG_MSG_JOIN)) {
        agent->dropped++;
        return;
    }
    switch (request->kind) {
    case RG_MSG_JOIN:
        ask_join(agent, request, effects);
        break;
    case RG_MSG_LEAVE:
        ask_leave(agent, group, request, effects);
        break;
    case RG_MSG_QUIESCED:
        ask_advance(agent, group, HOLDING, QUIET, request, effects);
        break;
    case RG_MSG_VIEW_ACK:
        ask_advance(agent, group, CHECKING, READY, request, effects);
        break;
    case RG_MSG_POLICY:
        forward(agent, group, request, effects);
        break;
    case RG_MSG_GATHER:
        ask_gather(agent, group, request, effects);
        break;
    default:
        agent->dropped++;
    }
}

/* ---- the coordinator's messages ----------------------------------------- */

static int on_prepare(struct group *group, const struct rg_message *message)
{
    if (group->phase == FAILED || message->epoch <= group->epoch)
        return 0;
    group->phase = HOLDING;
    group->epoch = message->epoch;
    return 1;
}

static int on_view(struct group *group, struct rg_message *message)
{
    if (group->phase != QUIET || message->epoch != group->epoch)
        return 0;
    rg_message_unref(group->pending);
    group->pending = rg_message_ref(message);
    group->phase = CHECKING;
    return 1;
}

static int on_activate(struct group *group, const struct rg_message *message,
                       struct rg_effects *effects)
{
    if (group->phase != READY || message->epoch != group->epoch)
        return 0;
    if (group->gathering)
        deliver_status(group, RG_MSG_GATHERED, RG_EABORTED, effects);
    group->gathering = 0;
    group->calls = 0;
    rg_message_unref(group->active);
    group->active = group->pending;
    group->pending = NULL;
    group->phase = ACTIVE;
    rg_effects_timer(effects, RG_TIMER_FORM, group->id, 0);
    return 1;
}

static int on_gathered(struct group *group, const struct rg_message *message)
{
    if (!group->gathering || message->call != group->calls ||
        message->epoch != group->active->epoch)
        return 0;
    group->gathering = 0;
    return 1;
}

static int on_error(struct group *group, const struct rg_message *message,
                    struct rg_effects *effects)
{
    if (group->phase == FAILED)
        return 0;
    /* A refused policy leaves the view in force. */
    if (message->status != RG_EPOLICY)
        group_abandon(group, message->status, effects);
    return 1;
}

/* Whether the message fits the phase and is to be delivered as it is. */
static int take(struct group *group, struct rg_message *message,
                struct rg_effects *effects)
{
    switch (message->kind) {
    case RG_MSG_PREPARE:
        return on_prepare(group, message);
    case RG_MSG_VIEW:
        return on_view(group, message);
    case RG_MSG_ACTIVATE:
        return on_activate(group, message, effects);
    case RG_MSG_GATHERED:
        return on_gathered(group, message);
    case RG_MSG_ERROR:
        return on_error(group, message, effects);
    default:
        return 0;
    }
}

static void on_message(struct rg_agent *agent, int peer,
                       struct rg_message *message, struct rg_effects *effects)
{
    struct group *group = group_find(agent, message->group);

    if (!group || peer != agent->config.coordinator ||
        message->term < group->term || !take(group, message, effects)) {
        agent->dropped++;
        return;
    }
    group->term = message->term;
    rg_effects_deliver(effects, message);
}

/* ---- time and death ----------------------------------------------------- */

static void on_timer(struct rg_agent *agent, struct rg_timer timer,
                     struct rg_effects *effects)
{
    struct group *group = group_find(agent, timer.group);

    if (!group || group->active || group->phase == FAILED)
        return;
    rg_effects_log(effects, RG_LOG_ERROR,
                   "group %u: no first view after %llu ms (RG_BOOTSTRAP_MS)",
                   group->id, (unsigned long long)agent->config.form_ms);
    group_fail(group, RG_ETIMEDOUT, effects);
}

static void on_gone(struct rg_agent *agent, int peer,
                    struct rg_effects *effects)
{
    if (peer != agent->config.coordinator || !agent->groups)
        return;
    rg_effects_log(effects, RG_LOG_ERROR, "the coordinator (rank %d) has gone",
                   peer);
    for (struct group *group = agent->groups; group; group = group->next)
        group_fail(group, RG_ECLOSED, effects);
}

/* ---- life and inspection ------------------------------------------------ */

struct rg_agent *rg_agent_create(const struct rg_agent_config *config)
{
    struct rg_agent *agent = calloc(1, sizeof(*agent));

    if (agent)
        agent->config = *config;
    return agent;
}

void rg_agent_destroy(struct rg_agent *agent)
{
    if (!agent)
        return;
    while (agent->groups)
        group_remove(agent, agent->groups);
    free(agent);
}

void rg_agent_step(struct rg_agent *agent, const struct rg_input *input,
                   struct rg_effects *effects)
{
    switch (input->kind) {
    case RG_INPUT_MESSAGE:
        on_message(agent, input->peer, input->message, effects);
        break;
    case RG_INPUT_REQUEST:
        on_request(agent, input->message, effects);
        break;
    case RG_INPUT_TIMER:
        on_timer(agent, input->timer, effects);
        break;
    case RG_INPUT_GONE:
        on_gone(agent, input->peer, effects);
        break;
    case RG_INPUT_NONE:
        break;
    }
}

const struct rg_view *rg_agent_view(const struct rg_agent *agent,
                                    uint32_t group)
{
    const struct group *found = group_find(agent, group);

    return found && found->active ? found->active->view : NULL;
}

int rg_agent_has_group(const struct rg_agent *agent, uint32_t group)
{
    return group_find(agent, group) != NULL;
}

void rg_agent_describe(const struct rg_agent *agent, uint32_t group, char *text,
                       size_t bytes)
{
    static const char *const phases[] = {
        [JOINED] = "joined, waits for the other ranks",
        [ACTIVE] = "active",
        [HOLDING] = "changing, waits for this rank to hold",
        [QUIET] = "changing, waits for the others to hold",
        [CHECKING] = "changing, waits for this rank to take the view",
        [READY] = "changing, waits for the others to take the view",
        [FAILED] = "failed"};
    const struct group *found = group_find(agent, group);

    if (!found) {
        snprintf(text, bytes, "group %u: unknown", group);
        return;
    }
    snprintf(text, bytes,
             "group %u: term %llu epoch %llu: %s%s, %llu stale messages", group,
             (unsigned long long)found->term, (unsigned long long)found->epoch,
             phases[found->phase], found->gathering ? ", in a gather" : "",
             (unsigned long long)agent->dropped);
}

uint64_t rg_agent_dropped(const struct rg_agent *agent)
{
    return agent->dropped;
}
