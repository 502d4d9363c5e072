/* An agent follows its coordinator through view changes. */
#include "runtime/control/agent_state.h"
#include "runtime/core/seq.h"
#include "runtime/status.h"

#include <string.h>

int rg_agent_promise(struct rg_agent *agent, struct rg_agent_group *group,
                     const struct rg_ballot *ballot, struct rg_effects *effects)
{
    int is_new = ballot->term != group->promise.term ||
                 ballot->leader != group->promise.leader;

    if (rg_ballot_compare(ballot, &group->promise) < 0)
        return 0;
    group->promise = *ballot;
    if (is_new) {
        rg_agent_testify(agent, group, effects);
        rg_agent_repeat(group, effects);
    }
    return 1;
}

/* ---- the flush ---------------------------------------------------------- */

static void on_prepare(struct rg_agent *agent, struct rg_agent_group *group,
                       struct rg_message *message, struct rg_effects *effects)
{
    int again = group->phase != RG_AGENT_ACTIVE &&
                group->phase != RG_AGENT_JOINED &&
                message->epoch == group->epoch &&
                message->workspace == group->workspace;

    if (group->active && message->epoch != group->active->view->epoch + 1) {
        agent->dropped++;
        return;
    }
    if (!again) {
        group->phase = RG_AGENT_HOLDING;
        if (group->epoch != message->epoch)
            group->unchecked = 0;
        group->epoch = message->epoch;
        group->workspace = message->workspace;
        rg_effects_deliver(effects, message);
    } else if (group->phase != RG_AGENT_HOLDING) {
        group->phase = RG_AGENT_QUIET;
        rg_agent_send_quiesced(group, effects);
    }
}

static void send_view_ack(const struct rg_agent_group *group,
                          const struct rg_ballot *ballot, uint64_t epoch,
                          struct rg_effects *effects)
{
    struct rg_message *ack = rg_agent_message(group, RG_MSG_VIEW_ACK);

    if (ack) {
        ack->term = ballot->term;
        ack->attempt = ballot->attempt;
        ack->epoch = epoch;
        ack->rules = group->rules;
    }
    rg_agent_post(ballot->leader, ack, effects);
}

void rg_agent_acknowledge(struct rg_agent_group *group,
                          struct rg_effects *effects)
{
    group->phase = RG_AGENT_READY;
    group->pending_acked = 1;
    send_view_ack(group, &group->pending_ballot, group->pending->view->epoch,
                  effects);
}

/* Keeps the view; the caller is asked if it is to live in it. */
static void accept(struct rg_agent *agent, struct rg_agent_group *group,
                   struct rg_message *message, struct rg_effects *effects)
{
    int lives = rg_view_is_active(message->view, agent->config.rank,
                                  group->incarnation);
    int known =
        group->pending && rg_view_is_same(group->pending->view, message->view);

    rg_message_ref(message);
    rg_message_unref(group->pending);
    group->pending = message;
    group->pending_ballot = group->promise;
    group->pending_acked = 0;
    group->phase = RG_AGENT_CHECKING;
    if (lives && !known) {
        group->unchecked++;
        rg_effects_deliver(effects, message);
    }
    if (!lives || !group->unchecked)
        rg_agent_acknowledge(group, effects);
}

static void on_view(struct rg_agent *agent, struct rg_agent_group *group,
                    struct rg_message *message, struct rg_effects *effects)
{
    const struct rg_view *view = message->view;

    if (group->active && rg_view_is_same(group->active->view, view)) {
        /* A new coordinator makes sure of the view it has found. */
        send_view_ack(group, &group->promise, view->epoch, effects);
        return;
    }
    if (view->epoch != group->epoch || group->phase < RG_AGENT_QUIET) {
        agent->dropped++;
        return;
    }
    accept(agent, group, message, effects);
}

/* The last view's requests have ended, or go on in the new one. */
static void renew_requests(struct rg_agent_group *group,
                           struct rg_effects *effects)
{
    if (group->gather.request)
        rg_agent_deliver_status(group, RG_MSG_GATHERED, group->gather.call,
                                RG_EABORTED, effects);
    rg_agent_forget(&group->gather);
    group->gather.call = 0;
    if (group->active->view->plan == group->plan.call)
        rg_agent_forget(&group->plan);
    group->plan.call = group->plan.request ? 1 : 0;
    rg_message_unref(group->stall);
    group->stall = NULL;
    rg_message_unref(group->join);
    group->join = NULL;
}

static void enter(struct rg_agent *agent, struct rg_agent_group *group,
                  struct rg_message *message, struct rg_effects *effects)
{
    const struct rg_view *view = group->active->view;

    renew_requests(group, effects);
    rg_agent_forget_ended(agent, view);
    group->phase = RG_AGENT_ACTIVE;
    group->unsettled = 0;
    rg_seq_raise(&group->progress, view->first_seq - 1);
    rg_seq_raise(&group->floor, view->committed_seq);
    rg_effects_timer(effects, RG_TIMER_FORM, group->id, 0);
    rg_effects_deliver(effects, message);
    rg_agent_testify(agent, group, effects);
    rg_agent_repeat(group, effects);
}

/*
 * What has been decided stays decided: this does not ask for the promise, only
 * whether the view kept here is the one that is meant.
 */
static void on_activate(struct rg_agent *agent, struct rg_agent_group *group,
                        int peer, struct rg_message *message,
                        struct rg_effects *effects)
{
    const struct rg_ballot ballot = {
        .term = message->term, .leader = peer, .attempt = message->attempt};
    const struct rg_view *view = group->pending ? group->pending->view : NULL;
    int slot;

    if (!view || !group->pending_acked || view->epoch != message->epoch ||
        rg_ballot_compare(&ballot, &group->pending_ballot)) {
        agent->dropped++;
        return;
    }
    rg_message_unref(group->active);
    group->active = group->pending;
    group->pending = NULL;
    group->epoch = view->epoch;
    if (rg_view_is_active(view, agent->config.rank, group->incarnation)) {
        enter(agent, group, message, effects);
        return;
    }
    slot = rg_view_slot_of(view, agent->config.rank);
    rg_agent_put_out(agent, group, RG_MSG_EXCLUDED,
                     slot >= 0 &&
                             view->members[slot].status == RG_MEMBER_INACTIVE
                         ? RG_ECLOSED
                         : RG_EISOLATED,
                     effects);
}

/* ---- the rest ----------------------------------------------------------- */

static void on_beat(struct rg_agent *agent, struct rg_agent_group *group,
                    const struct rg_message *message,
                    struct rg_effects *effects)
{
    if (!group->active || message->epoch != group->active->view->epoch)
        return;
    rg_seq_raise(&group->floor, message->completed);
    if (message->status == RG_BEAT_STEADY && group->phase == RG_AGENT_ACTIVE)
        group->unsettled = 0;
    if (message->status == RG_BEAT_STARVED)
        rg_agent_testify(agent, group, effects);
}

static void on_gathered(struct rg_agent *agent, struct rg_agent_group *group,
                        struct rg_message *message, struct rg_effects *effects)
{
    if (!group->gather.request || message->call != group->gather.call ||
        message->epoch != group->active->view->epoch) {
        agent->dropped++;
        return;
    }
    rg_agent_forget(&group->gather);
    rg_effects_deliver(effects, message);
}

/* A refused request leaves the view in force; any other error is the end. */
static void on_error(struct rg_agent *agent, struct rg_agent_group *group,
                     struct rg_message *message, struct rg_effects *effects)
{
    if (!message->call) {
        rg_agent_put_out(agent, group,
                         group->active ? RG_MSG_EXCLUDED : RG_MSG_ERROR,
                         message->status, effects);
    } else if (group->plan.request && message->call == group->plan.call &&
               message->epoch == group->active->view->epoch) {
        rg_agent_forget(&group->plan);
        rg_effects_deliver(effects, message);
    } else {
        agent->dropped++;
    }
}

static void on_notice(struct rg_agent *agent, struct rg_agent_group *group,
                      struct rg_message *message, struct rg_effects *effects)
{
    struct rg_message **last = &group->notices[message->status];

    if (*last && (*last)->epoch == message->epoch &&
        (*last)->bytes == message->bytes &&
        !memcmp((*last)->data, message->data, message->bytes)) {
        agent->dropped++;
        return;
    }
    rg_message_unref(*last);
    *last = rg_message_ref(message);
    rg_effects_deliver(effects, message);
}

static void take(struct rg_agent *agent, struct rg_agent_group *group,
                 struct rg_message *message, struct rg_effects *effects)
{
    switch (message->kind) {
    case RG_MSG_PREPARE:
        on_prepare(agent, group, message, effects);
        break;
    case RG_MSG_VIEW:
        on_view(agent, group, message, effects);
        break;
    case RG_MSG_BEAT:
        on_beat(agent, group, message, effects);
        break;
    case RG_MSG_GATHERED:
        on_gathered(agent, group, message, effects);
        break;
    case RG_MSG_ERROR:
        on_error(agent, group, message, effects);
        break;
    case RG_MSG_NOTICE:
        on_notice(agent, group, message, effects);
        break;
    default:
        agent->dropped++;
    }
}

/* A coordinator that has been replaced is told so. */
static void refuse(const struct rg_agent_group *group, int peer,
                   struct rg_effects *effects)
{
    struct rg_message *message = rg_agent_message(group, RG_MSG_REFUSE);

    if (message)
        message->world_rank = group->promise.leader;
    rg_agent_post(peer, message, effects);
}

void rg_agent_follow(struct rg_agent *agent, struct rg_agent_group *group,
                     int peer, struct rg_message *message,
                     struct rg_effects *effects)
{
    struct rg_ballot ballot = {.term = message->term, .leader = peer};

    if (message->kind == RG_MSG_ACTIVATE) {
        on_activate(agent, group, peer, message, effects);
        return;
    }
    /* Only a VIEW is one attempt among others. */
    if (message->kind == RG_MSG_VIEW)
        ballot.attempt = message->attempt;
    else if (ballot.term == group->promise.term &&
             ballot.leader == group->promise.leader)
        ballot.attempt = group->promise.attempt;
    if (!rg_agent_promise(agent, group, &ballot, effects)) {
        agent->dropped++;
        refuse(group, peer, effects);
        return;
    }
    rg_agent_heard(group, effects);
    take(agent, group, message, effects);
}
