/* An agent watches its coordinator and finds another one. */
#include <stdlib.h>

#include "runtime/control/agent_state.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

/* ---- who is dead -------------------------------------------------------- */

static int covers(const struct rg_agent_fact *fact, uint32_t incarnation)
{
    return incarnation >> RG_INCARNATION_SHIFT <= fact->process;
}

static int concerns(const struct rg_agent_fact *fact,
                    const struct rg_view *view)
{
    int slot = rg_view_slot_of(view, fact->rank);
    const struct rg_member *member;

    if (slot < 0)
        return 0;
    member = &view->members[slot];
    return covers(fact, member->incarnation) &&
           (member->status == RG_MEMBER_ACTIVE || member->quarantine);
}

static int is_dead(const struct rg_agent *agent,
                   const struct rg_agent_group *group, int rank)
{
    const struct rg_view *view = group->active->view;
    int slot = rg_view_slot_of(view, rank);

    for (size_t i = 0; i < agent->nfacts && slot >= 0; i++)
        if (agent->facts[i].rank == rank &&
            covers(&agent->facts[i], view->members[slot].incarnation))
            return 1;
    return 0;
}

void rg_agent_testify(const struct rg_agent *agent,
                      const struct rg_agent_group *group,
                      struct rg_effects *effects)
{
    for (size_t i = 0; i < agent->nfacts && group->active; i++) {
        const struct rg_agent_fact *fact = &agent->facts[i];
        struct rg_message *report;

        if (!concerns(fact, group->active->view))
            continue;
        report = rg_agent_message(group, RG_MSG_REPORT);
        if (report) {
            report->status =
                fact->exited ? RG_EVIDENCE_EXITED : RG_EVIDENCE_GONE;
            report->world_rank = fact->rank;
            report->subject = fact->process;
        }
        rg_agent_post(group->promise.leader, report, effects);
    }
}

void rg_agent_forget_ended(struct rg_agent *agent, const struct rg_view *view)
{
    size_t kept = 0;

    for (size_t i = 0; i < agent->nfacts; i++) {
        const struct rg_agent_fact fact = agent->facts[i];
        int slot = rg_view_slot_of(view, fact.rank);

        if (slot < 0 || view->members[slot].status != RG_MEMBER_ACTIVE ||
            covers(&fact, view->members[slot].incarnation))
            agent->facts[kept++] = fact;
    }
    agent->nfacts = kept;
}

/* Merges what is new; 0: nothing is. */
static int keep_fact(struct rg_agent *agent, int rank, uint32_t process,
                     int exited, struct rg_effects *effects)
{
    struct rg_agent_fact *facts;
    size_t i = 0;

    while (i < agent->nfacts && agent->facts[i].rank != rank)
        i++;
    if (i < agent->nfacts && (agent->facts[i].process > process ||
                              (agent->facts[i].process == process &&
                               agent->facts[i].exited >= exited)))
        return 0;
    if (i == agent->nfacts) {
        facts = realloc(agent->facts, (i + 1) * sizeof(*facts));
        if (!facts) {
            effects->rc = RG_ENOMEM;
            return 0;
        }
        agent->facts = facts;
        agent->nfacts++;
    }
    agent->facts[i] = (struct rg_agent_fact){
        .rank = rank, .process = process, .exited = exited};
    return 1;
}

/* ---- elections ---------------------------------------------------------- */

static int64_t ticks(const struct rg_agent *agent, uint64_t ms)
{
    return (int64_t)rg_machine_ticks(ms, agent->config.heartbeat_ms);
}

void rg_agent_heard(struct rg_agent_group *group, struct rg_effects *effects)
{
    group->silent = 0;
    if (group->standing)
        rg_effects_timer(effects, RG_TIMER_ELECT, group->id, 0);
    group->standing = 0;
}

/* Gives whoever claims the group now a window before the next one may. */
static void grace(const struct rg_agent *agent, struct rg_agent_group *group,
                  struct rg_effects *effects)
{
    rg_agent_heard(group, effects);
    group->silent = ticks(agent, agent->config.miss_ms) -
                    ticks(agent, agent->config.window_ms);
}

void rg_agent_stand(struct rg_agent *agent, struct rg_agent_group *group,
                    enum rg_reason reason, struct rg_effects *effects)
{
    struct rg_message *message;

    if (!group->active)
        return;
    message = rg_agent_message(group, RG_MSG_STAND);
    if (reason == RG_REASON_SILENT &&
        is_dead(agent, group, group->promise.leader))
        reason = RG_REASON_GONE;
    if (message) {
        message->view = rg_view_ref(group->active->view);
        message->term = group->promise.term + 1;
        message->status = (int)reason;
    }
    grace(agent, group, effects);
    rg_agent_post(agent->config.rank, message, effects);
}

/* How many live members come before this one. */
static int position(const struct rg_agent *agent,
                    const struct rg_agent_group *group)
{
    const struct rg_view *view = group->active->view;
    int slot = rg_view_slot_of(view, agent->config.rank);
    int before = rg_view_rank_of(view, slot);
    int leader = rg_view_slot_of(view, group->promise.leader);

    for (size_t i = 0; i < agent->nfacts; i++) {
        int dead = rg_view_slot_of(view, agent->facts[i].rank);

        if (dead >= 0 && dead < slot && dead != leader &&
            rg_view_rank_of(view, dead) >= 0 &&
            covers(&agent->facts[i], view->members[dead].incarnation))
            before--;
    }
    if (leader >= 0 && leader < slot && rg_view_rank_of(view, leader) >= 0)
        before--;
    return before;
}

/* The first at once; 2, 4, 8 ... more share each further half window. */
static uint64_t turn_ms(const struct rg_agent *agent, int place)
{
    uint64_t half = agent->config.window_ms / 2;
    uint64_t first = 1;
    uint64_t delay = 0;

    while (first * 2 <= (uint64_t)place + 1) {
        first *= 2;
        delay += half;
    }
    return delay + half * ((uint64_t)place + 1 - first) / first;
}

static void take_turn(struct rg_agent *agent, struct rg_agent_group *group,
                      struct rg_effects *effects)
{
    uint64_t delay = turn_ms(agent, position(agent, group));

    if (!delay) {
        rg_agent_stand(agent, group, RG_REASON_SILENT, effects);
        return;
    }
    group->standing = 1;
    rg_effects_timer(effects, RG_TIMER_ELECT, group->id, delay);
}

/* The coordinator will not be heard again. */
static void lose(struct rg_agent *agent, struct rg_agent_group *group,
                 struct rg_effects *effects)
{
    int64_t miss = ticks(agent, agent->config.miss_ms);

    if (!group->active || group->phase == RG_AGENT_OUT || group->standing)
        return;
    if (group->silent < miss)
        group->silent = miss;
    take_turn(agent, group, effects);
}

void rg_agent_on_lost(struct rg_agent *agent, struct rg_agent_group *group,
                      const struct rg_message *message,
                      struct rg_effects *effects)
{
    const struct rg_ballot ballot = {.term = message->term,
                                     .leader = message->world_rank};

    if (message->world_rank < 0)
        lose(agent, group, effects);
    else if (rg_agent_promise(agent, group, &ballot, effects))
        rg_agent_heard(group, effects);
}

void rg_agent_learn(struct rg_agent *agent, int rank, uint32_t process,
                    int exited, struct rg_effects *effects)
{
    if (!keep_fact(agent, rank, process, exited, effects))
        return;
    for (struct rg_agent_group *group = agent->groups; group;
         group = group->next) {
        if (group->phase == RG_AGENT_OUT)
            continue;
        if (!group->active && group->join && !group->join->status &&
            rank == group->promise.leader) {
            rg_effects_log(effects, RG_LOG_ERROR,
                           "group %u: the coordinator (rank %d) has gone",
                           group->id, rank);
            rg_agent_put_out(agent, group, RG_MSG_ERROR, RG_ECLOSED, effects);
        } else if (group->active) {
            rg_agent_testify(agent, group, effects);
            if (is_dead(agent, group, group->promise.leader))
                lose(agent, group, effects);
        }
    }
}

/* ---- claims ------------------------------------------------------------- */

/* What this member has accepted, or holds in force beyond the claimant. */
static void send_grant(const struct rg_agent_group *group, int peer,
                       const struct rg_message *claim,
                       struct rg_effects *effects)
{
    struct rg_message *grant = rg_agent_message(group, RG_MSG_GRANT);
    struct rg_view *active = group->active->view;

    if (grant && active->epoch > claim->epoch) {
        grant->view = rg_view_ref(active);
        grant->status = 1;
    } else if (grant && group->pending) {
        grant->view = rg_view_ref(group->pending->view);
        grant->ballot = group->pending_ballot;
    }
    rg_agent_post(peer, grant, effects);
}

static void send_refuse(const struct rg_agent_group *group, int peer,
                        struct rg_effects *effects)
{
    struct rg_message *refusal = rg_agent_message(group, RG_MSG_REFUSE);

    if (refusal)
        refusal->world_rank = group->promise.leader;
    rg_agent_post(peer, refusal, effects);
}

static void send_excluded(const struct rg_agent_group *group, int peer,
                          const struct rg_message *claim,
                          struct rg_effects *effects)
{
    struct rg_message *message = rg_agent_message(group, RG_MSG_EXCLUDED);

    if (message) {
        message->incarnation = claim->incarnation;
        message->status = RG_EISOLATED;
    }
    rg_agent_post(peer, message, effects);
}

/* Heard of the coordinator lately and knows nothing against it. */
static int is_content(const struct rg_agent *agent,
                      const struct rg_agent_group *group, int claimant,
                      const struct rg_message *claim)
{
    return claim->status == RG_REASON_SILENT &&
           claimant != agent->config.rank &&
           claimant != group->promise.leader &&
           group->silent * 2 < ticks(agent, agent->config.miss_ms) &&
           !is_dead(agent, group, group->promise.leader);
}

void rg_agent_on_claim(struct rg_agent *agent, struct rg_agent_group *group,
                       int peer, const struct rg_message *message,
                       struct rg_effects *effects)
{
    const struct rg_ballot ballot = {.term = message->term, .leader = peer};
    const struct rg_view *view = group->active ? group->active->view : NULL;

    if (!view) {
        agent->dropped++;
    } else if (message->epoch < view->epoch &&
               !rg_view_is_active(view, peer, message->incarnation)) {
        send_excluded(group, peer, message, effects);
    } else if (is_content(agent, group, peer, message) ||
               !rg_agent_promise(agent, group, &ballot, effects)) {
        send_refuse(group, peer, effects);
    } else {
        grace(agent, group, effects);
        send_grant(group, peer, message, effects);
    }
}

/* ---- the tick ----------------------------------------------------------- */

static void send_heartbeat(struct rg_agent_group *group,
                           struct rg_effects *effects)
{
    struct rg_message *message = rg_agent_message(group, RG_MSG_HEARTBEAT);

    if (message) {
        message->completed = group->progress;
        message->status =
            group->phase == RG_AGENT_ACTIVE ? group->urgent : RG_HEARTBEAT_HELD;
    }
    rg_agent_post(group->promise.leader, message, effects);
}

void rg_agent_tick(struct rg_agent *agent, struct rg_agent_group *group,
                   struct rg_effects *effects)
{
    const struct rg_agent_config *config = &agent->config;
    int64_t miss = ticks(agent, config->miss_ms);
    int64_t limit = ticks(agent, config->miss_ms + 2 * config->window_ms +
                                     config->isolate_ms);

    if (group->phase == RG_AGENT_OUT)
        return;
    group->silent++;
    group->unsettled++;
    if (group->active && group->unsettled >= limit) {
        rg_effects_log(effects, RG_LOG_ERROR,
                       "group %u: no majority in reach, isolated", group->id);
        rg_agent_put_out(agent, group, RG_MSG_EXCLUDED, RG_EISOLATED, effects);
        return;
    }
    rg_effects_timer(effects, RG_TIMER_TICK, group->id,
                     agent->config.heartbeat_ms);
    if (group->join &&
        (group->phase == RG_AGENT_JOINED || group->silent > miss))
        rg_agent_knock(agent, group, effects);
    if (!group->active)
        return;
    send_heartbeat(group, effects);
    rg_agent_repeat(group, effects);
    if (group->silent >= miss)
        lose(agent, group, effects);
}
