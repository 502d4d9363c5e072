/* The caller's side of an agent, and its life. */
#include "runtime/control/agent.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/control/agent_state.h"
#include "runtime/core/log.h"
#include "runtime/core/seq.h"
#include "runtime/status.h"

static struct rg_agent_group *group_find(const struct rg_agent *agent,
                                         uint32_t id)
{
    struct rg_agent_group *group = agent->groups;

    while (group && group->id != id)
        group = group->next;
    return group;
}

static struct rg_agent_past *past_find(const struct rg_agent *agent,
                                       uint32_t id)
{
    for (size_t i = 0; i < agent->npasts; i++)
        if (agent->pasts[i].group == id)
            return &agent->pasts[i];
    return NULL;
}

static uint64_t past_epoch(const struct rg_agent *agent, uint32_t id)
{
    const struct rg_agent_past *past = past_find(agent, id);

    return past ? past->epoch : 0;
}

/* Keeps what a later incarnation has to say of this one. */
static void past_keep(struct rg_agent *agent,
                      const struct rg_agent_group *group,
                      struct rg_effects *effects)
{
    struct rg_agent_past *past = past_find(agent, group->id);

    if (!group->active)
        return;
    if (!past) {
        past = realloc(agent->pasts, (agent->npasts + 1) * sizeof(*past));
        if (!past) {
            effects->rc = RG_ENOMEM;
            return;
        }
        agent->pasts = past;
        past = &agent->pasts[agent->npasts++];
    }
    *past = (struct rg_agent_past){.group = group->id,
                                   .epoch = group->active->view->epoch};
}

/* Who forms groups: the first rank that is not known to be dead. */
static int first_living(const struct rg_agent *agent)
{
    int rank = agent->config.coordinator;
    size_t i = 0;

    while (i < agent->nfacts) {
        if (agent->facts[i].rank != rank) {
            i++;
            continue;
        }
        rank++;
        i = 0;
    }
    return rank;
}

static struct rg_agent_group *group_create(struct rg_agent *agent, uint32_t id)
{
    struct rg_agent_group *group = calloc(1, sizeof(*group));

    if (!group)
        return NULL;
    group->id = id;
    group->incarnation =
        agent->config.process << RG_INCARNATION_SHIFT | ++agent->joins;
    group->past = past_epoch(agent, id);
    group->promise.leader = first_living(agent);
    group->seek = agent->config.coordinator;
    group->next = agent->groups;
    agent->groups = group;
    return group;
}

void rg_agent_forget(struct rg_agent_ask *ask)
{
    rg_message_unref(ask->request);
    ask->request = NULL;
}

static void group_remove(struct rg_agent *agent, struct rg_agent_group *group)
{
    struct rg_agent_group **link = &agent->groups;

    while (*link != group)
        link = &(*link)->next;
    *link = group->next;
    rg_message_unref(group->active);
    rg_message_unref(group->pending);
    rg_message_unref(group->join);
    rg_message_unref(group->stall);
    rg_message_unref(group->quiet);
    for (int kind = 0; kind < RG_NOTICE_COUNT; kind++)
        rg_message_unref(group->notices[kind]);
    rg_agent_forget(&group->plan);
    rg_agent_forget(&group->gather);
    free(group);
}

/* ---- what goes out ------------------------------------------------------ */

struct rg_message *rg_agent_message(const struct rg_agent_group *group,
                                    enum rg_message_kind kind)
{
    struct rg_message *message = rg_message_create(kind, group->id);

    if (message) {
        message->incarnation = group->incarnation;
        message->term = group->promise.term;
        message->epoch =
            group->active ? group->active->view->epoch : group->past;
    }
    return message;
}

void rg_agent_post(int peer, struct rg_message *message,
                   struct rg_effects *effects)
{
    rg_effects_send(effects, peer, message);
    rg_message_unref(message);
}

/* A request of the caller, stamped with who and when, to the coordinator. */
static void forward(const struct rg_agent_group *group,
                    const struct rg_message *request, uint64_t call,
                    struct rg_effects *effects)
{
    struct rg_message *message = rg_agent_message(group, request->kind);

    if (message &&
        rg_message_set_data(message, request->data, request->bytes)) {
        rg_message_unref(message);
        message = NULL;
    }
    if (message) {
        message->call = call;
        message->status = request->status;
        message->world_rank = request->world_rank;
        message->claimed = request->claimed;
        message->capacity = request->capacity;
        message->first_seq = request->first_seq;
        message->info = request->info;
        message->endpoint = request->endpoint;
    }
    rg_agent_post(group->promise.leader, message, effects);
}

void rg_agent_send_quiesced(const struct rg_agent_group *group,
                            struct rg_effects *effects)
{
    struct rg_message *message = rg_agent_message(group, RG_MSG_QUIESCED);

    if (message) {
        message->epoch = group->epoch;
        message->completed = group->quiet->completed;
        message->claimed = group->quiet->claimed;
        message->status = group->has_graphs;
        if (rg_pairs_copy(&group->quiet->pairs, &message->pairs))
            effects->rc = RG_ENOMEM;
    }
    rg_agent_post(group->promise.leader, message, effects);
}

void rg_agent_repeat(const struct rg_agent_group *group,
                     struct rg_effects *effects)
{
    if (!group->active || group->phase == RG_AGENT_OUT)
        return;
    if (group->gather.request)
        forward(group, group->gather.request, group->gather.call, effects);
    if (group->plan.request)
        forward(group, group->plan.request, group->plan.call, effects);
    if (group->stall)
        forward(group, group->stall, 0, effects);
}

void rg_agent_deliver_status(const struct rg_agent_group *group,
                             enum rg_message_kind kind, uint64_t call,
                             int status, struct rg_effects *effects)
{
    struct rg_message *message = rg_message_create(kind, group->id);

    if (message) {
        message->epoch = group->epoch;
        message->incarnation = group->incarnation;
        message->call = call;
        message->status = status;
    }
    rg_effects_deliver(effects, message);
    rg_message_unref(message);
}

void rg_agent_put_out(struct rg_agent *agent, struct rg_agent_group *group,
                      enum rg_message_kind kind, int status,
                      struct rg_effects *effects)
{
    if (group->phase == RG_AGENT_OUT)
        return;
    group->phase = RG_AGENT_OUT;
    if (group->gather.request)
        rg_agent_deliver_status(group, RG_MSG_GATHERED, group->gather.call,
                                status, effects);
    rg_agent_forget(&group->gather);
    rg_agent_forget(&group->plan);
    rg_message_unref(group->join);
    group->join = NULL;
    rg_effects_timer(effects, RG_TIMER_FORM, group->id, 0);
    rg_effects_timer(effects, RG_TIMER_TICK, group->id, 0);
    rg_effects_timer(effects, RG_TIMER_ELECT, group->id, 0);
    rg_agent_post(agent->config.rank, rg_agent_message(group, RG_MSG_RESIGN),
                  effects);
    rg_agent_deliver_status(group, kind, 0, status, effects);
}

/* ---- the caller's requests ---------------------------------------------- */

static void ask_join(struct rg_agent *agent, struct rg_message *request,
                     struct rg_effects *effects)
{
    struct rg_agent_group *group = group_create(agent, request->group);

    if (!group) {
        effects->rc = RG_ENOMEM;
        return;
    }
    group->join = rg_message_ref(request);
    group->progress = group->floor = request->first_seq - 1;
    rg_agent_knock(agent, group, effects);
    rg_effects_timer(effects, RG_TIMER_FORM, group->id, agent->config.form_ms);
    rg_effects_timer(effects, RG_TIMER_TICK, group->id,
                     agent->config.heartbeat_ms);
}

/* To its coordinator: asks to be let in with what its caller has said. */
void rg_agent_knock(struct rg_agent *agent, struct rg_agent_group *group,
                    struct rg_effects *effects)
{
    enum { ASKED_AT_ONCE = 3 };

    if (group->promise.leader >= 0)
        forward(group, group->join, 0, effects);
    for (int i = 0; i < ASKED_AT_ONCE && group->join->status; i++) {
        if (group->seek != agent->config.rank)
            rg_agent_post(group->seek, rg_agent_message(group, RG_MSG_SEEK),
                          effects);
        group->seek = (group->seek + 1) % agent->config.world_size;
    }
}

static void ask_leave(struct rg_agent *agent, struct rg_agent_group *group,
                      const struct rg_message *request,
                      struct rg_effects *effects)
{
    if (group->phase != RG_AGENT_OUT)
        forward(group, request, 0, effects);
    rg_effects_timer(effects, RG_TIMER_FORM, group->id, 0);
    rg_effects_timer(effects, RG_TIMER_TICK, group->id, 0);
    rg_effects_timer(effects, RG_TIMER_ELECT, group->id, 0);
    past_keep(agent, group, effects);
    group_remove(agent, group);
}

/* The open gather is not waited for any more; the coordinator tells all. */
static void give_gather_up(struct rg_agent_group *group,
                           struct rg_message *request,
                           struct rg_effects *effects)
{
    if (!group->gather.request)
        return; /* its answer was faster */
    rg_agent_forget(&group->gather);
    group->gather.request = rg_message_ref(request);
    forward(group, request, group->gather.call, effects);
}

static void ask_gather(struct rg_agent_group *group, struct rg_message *request,
                       struct rg_effects *effects)
{
    if (request->status == RG_ETIMEDOUT) {
        give_gather_up(group, request, effects);
        return;
    }
    group->gather.call++;
    if (!group->active || group->phase == RG_AGENT_OUT) {
        rg_agent_deliver_status(group, RG_MSG_GATHERED, group->gather.call,
                                RG_EUNAVAILABLE, effects);
        return;
    }
    rg_agent_forget(&group->gather);
    group->gather.request = rg_message_ref(request);
    forward(group, request, group->gather.call, effects);
}

static void ask_plan(struct rg_agent *agent, struct rg_agent_group *group,
                     struct rg_message *request, struct rg_effects *effects)
{
    if (!group->active || group->plan.request) {
        agent->dropped++;
        rg_agent_deliver_status(group, RG_MSG_ERROR, group->plan.call + 1,
                                group->active ? RG_EBUSY : RG_EUNAVAILABLE,
                                effects);
        return;
    }
    group->plan.request = rg_message_ref(request);
    group->plan.call++;
    forward(group, request, group->plan.call, effects);
}

static void ask_quiesced(struct rg_agent *agent, struct rg_agent_group *group,
                         struct rg_message *request, struct rg_effects *effects)
{
    if (group->phase != RG_AGENT_HOLDING || request->epoch != group->epoch) {
        agent->dropped++;
        return;
    }
    group->phase = RG_AGENT_QUIET;
    rg_message_unref(group->quiet);
    group->quiet = rg_message_ref(request);
    rg_agent_send_quiesced(group, effects);
}

static void ask_acknowledge(struct rg_agent *agent,
                            struct rg_agent_group *group,
                            const struct rg_message *request,
                            struct rg_effects *effects)
{
    if (!group->unchecked || request->epoch != group->epoch) {
        agent->dropped++;
        return;
    }
    group->unchecked--;
    group->rules = request->rules;
    if (group->phase == RG_AGENT_CHECKING && !group->unchecked)
        rg_agent_acknowledge(group, effects);
}

static void ask_report(struct rg_agent *agent, struct rg_agent_group *group,
                       struct rg_message *request, struct rg_effects *effects)
{
    if (group->phase != RG_AGENT_ACTIVE) {
        agent->dropped++;
        return;
    }
    rg_message_unref(group->stall);
    group->stall = rg_message_ref(request);
    forward(group, request, 0, effects);
}

static void ask_progress(struct rg_agent_group *group,
                         const struct rg_message *request,
                         struct rg_effects *effects)
{
    struct rg_message *message;

    rg_seq_raise(&group->progress, request->completed);
    group->has_graphs = request->claimed != 0;
    group->urgent = request->status;
    if (!group->urgent || group->phase != RG_AGENT_ACTIVE)
        return;
    message = rg_agent_message(group, RG_MSG_HEARTBEAT);
    if (message) {
        message->completed = group->progress;
        message->status = 1;
    }
    rg_agent_post(group->promise.leader, message, effects);
}

static void on_request(struct rg_agent *agent, struct rg_message *request,
                       struct rg_effects *effects)
{
    struct rg_agent_group *group = group_find(agent, request->group);

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
        ask_quiesced(agent, group, request, effects);
        break;
    case RG_MSG_VIEW_ACK:
        ask_acknowledge(agent, group, request, effects);
        break;
    case RG_MSG_POLICY:
    case RG_MSG_CHANGE:
        ask_plan(agent, group, request, effects);
        break;
    case RG_MSG_GATHER:
        ask_gather(group, request, effects);
        break;
    case RG_MSG_REPORT:
        ask_report(agent, group, request, effects);
        break;
    case RG_MSG_PROGRESS:
        ask_progress(group, request, effects);
        break;
    case RG_MSG_FENCED:
        group->fenced = group->phase == RG_AGENT_OUT;
        break;
    default:
        agent->dropped++;
    }
}

/* ---- messages ----------------------------------------------------------- */

/* A member that is none any more has been asked whether it still writes. */
static void answer_fenced(struct rg_agent *agent,
                          const struct rg_agent_group *group, int peer,
                          const struct rg_message *message,
                          struct rg_effects *effects)
{
    struct rg_message *answer;

    if (group && message->incarnation == group->incarnation && !group->fenced) {
        agent->dropped++;
        return;
    }
    answer = rg_message_create(RG_MSG_FENCED, message->group);
    if (answer) {
        answer->incarnation = message->incarnation;
        answer->term = message->term;
        answer->epoch = message->epoch;
    }
    rg_agent_post(peer, answer, effects);
}

static void on_excluded(struct rg_agent *agent, struct rg_agent_group *group,
                        int peer, const struct rg_message *message,
                        struct rg_effects *effects)
{
    if (!group || group->phase == RG_AGENT_OUT ||
        message->incarnation != group->incarnation) {
        answer_fenced(agent, group, peer, message, effects);
        return;
    }
    if (group->active && message->epoch <= group->active->view->epoch) {
        agent->dropped++;
        return;
    }
    group->epoch = message->epoch;
    rg_agent_put_out(agent, group, RG_MSG_EXCLUDED, message->status, effects);
}

/* Somebody looks for the coordinator. */
static void on_seek(const struct rg_agent_group *group, int peer,
                    struct rg_effects *effects)
{
    struct rg_message *message;

    if (!group->active || group->phase == RG_AGENT_OUT)
        return;
    message = rg_agent_message(group, RG_MSG_LEADER);
    if (message)
        message->world_rank = group->promise.leader;
    rg_agent_post(peer, message, effects);
}

static void on_leader(struct rg_agent_group *group,
                      const struct rg_message *message,
                      struct rg_effects *effects)
{
    if (!group->join || message->term < group->promise.term ||
        message->world_rank < 0)
        return;
    group->promise = (struct rg_ballot){.term = message->term,
                                        .leader = message->world_rank};
    forward(group, group->join, 0, effects);
}

static void on_message(struct rg_agent *agent, int peer,
                       struct rg_message *message, struct rg_effects *effects)
{
    struct rg_agent_group *group = group_find(agent, message->group);

    if (message->kind == RG_MSG_EXCLUDED) {
        on_excluded(agent, group, peer, message, effects);
        return;
    }
    if (!group || group->phase == RG_AGENT_OUT) {
        agent->dropped++;
        return;
    }
    switch (message->kind) {
    case RG_MSG_SEEK:
        on_seek(group, peer, effects);
        break;
    case RG_MSG_LEADER:
        on_leader(group, message, effects);
        break;
    case RG_MSG_CLAIM:
        rg_agent_on_claim(agent, group, peer, message, effects);
        break;
    case RG_MSG_HANDOVER:
        if (peer == group->promise.leader && group->phase != RG_AGENT_JOINED)
            rg_agent_stand(agent, group, RG_REASON_HANDOVER, effects);
        break;
    case RG_MSG_LOST:
        if (peer == group->promise.leader || peer == agent->config.rank)
            rg_agent_on_lost(agent, group, message, effects);
        break;
    default:
        rg_agent_follow(agent, group, peer, message, effects);
    }
}

/* ---- time --------------------------------------------------------------- */

static void on_form_late(struct rg_agent *agent, struct rg_agent_group *group,
                         struct rg_effects *effects)
{
    if (group->active || group->phase == RG_AGENT_OUT)
        return;
    rg_effects_log(effects, RG_LOG_ERROR,
                   "group %u: no first view after %llu ms (RG_BOOTSTRAP_MS)",
                   group->id, (unsigned long long)agent->config.form_ms);
    rg_agent_put_out(agent, group, RG_MSG_ERROR, RG_ETIMEDOUT, effects);
}

static void on_timer(struct rg_agent *agent, struct rg_timer timer,
                     struct rg_effects *effects)
{
    struct rg_agent_group *group = group_find(agent, timer.group);

    if (!group)
        return;
    if (timer.kind == RG_TIMER_FORM)
        on_form_late(agent, group, effects);
    else if (timer.kind == RG_TIMER_TICK)
        rg_agent_tick(agent, group, effects);
    else if (timer.kind == RG_TIMER_ELECT && group->standing)
        rg_agent_stand(agent, group, RG_REASON_SILENT, effects);
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
    free(agent->facts);
    free(agent->pasts);
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
    case RG_INPUT_EXITED:
        rg_agent_learn(agent, input->peer, input->process,
                       input->kind == RG_INPUT_EXITED, effects);
        break;
    case RG_INPUT_NONE:
        break;
    }
}

const struct rg_view *rg_agent_view(const struct rg_agent *agent,
                                    uint32_t group)
{
    const struct rg_agent_group *found = group_find(agent, group);

    return found && found->active && found->phase != RG_AGENT_OUT
               ? found->active->view
               : NULL;
}

uint64_t rg_agent_committed(const struct rg_agent *agent, uint32_t group)
{
    const struct rg_agent_group *found = group_find(agent, group);

    return found ? found->floor : 0;
}

uint32_t rg_agent_incarnation(const struct rg_agent *agent, uint32_t group)
{
    const struct rg_agent_group *found = group_find(agent, group);

    return found ? found->incarnation : 0;
}

int rg_agent_has_group(const struct rg_agent *agent, uint32_t group)
{
    return group_find(agent, group) != NULL;
}

int rg_agent_is_settled(const struct rg_agent *agent, uint32_t group)
{
    const struct rg_agent_group *found = group_find(agent, group);

    return found &&
           (found->phase == RG_AGENT_ACTIVE || found->phase == RG_AGENT_OUT);
}

void rg_agent_describe(const struct rg_agent *agent, uint32_t group, char *text,
                       size_t bytes)
{
    static const char *const phases[] = {
        [RG_AGENT_JOINED] = "joined, waits for the first view",
        [RG_AGENT_ACTIVE] = "active",
        [RG_AGENT_HOLDING] = "changing, waits for this rank to hold",
        [RG_AGENT_QUIET] = "changing, waits for the others to hold",
        [RG_AGENT_CHECKING] = "changing, waits for this rank to take the view",
        [RG_AGENT_READY] = "changing, waits for the others to take the view",
        [RG_AGENT_OUT] = "out"};
    const struct rg_agent_group *found = group_find(agent, group);

    if (!found) {
        snprintf(text, bytes, "group %u: unknown", group);
        return;
    }
    snprintf(text, bytes,
             "group %u: term %llu epoch %llu: %s, follows rank %d%s%s, "
             "%llu stale messages",
             group, (unsigned long long)found->promise.term,
             (unsigned long long)found->epoch, phases[found->phase],
             found->promise.leader,
             found->gather.request ? ", in a gather" : "",
             found->standing ? ", in an election" : "",
             (unsigned long long)agent->dropped);
}

uint64_t rg_agent_dropped(const struct rg_agent *agent)
{
    return agent->dropped;
}
