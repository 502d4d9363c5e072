/* The flush from one view to the next. */
#include <stdlib.h>

#include "runtime/control/coordinator_state.h"
#include "runtime/core/log.h"
#include "runtime/core/seq.h"
#include "runtime/status.h"

/* ---- who takes part ----------------------------------------------------- */

/* Whether the member to come in this slot is another than the one in force. */
static int is_joiner(const struct rg_led *led, int slot)
{
    const struct rg_member *now = led->view ? &led->view->members[slot] : NULL;

    return !now || now->status != RG_MEMBER_ACTIVE ||
           now->incarnation != led->proposal->members[slot].incarnation;
}

static void set_status(struct rg_led *led, int slot,
                       enum rg_member_status status)
{
    struct rg_member *member = &led->proposal->members[slot];
    int harmless =
        rg_bitset_test(&led->exited, slot) || rg_bitset_test(&led->left, slot);

    member->status = status;
    member->quarantine = harmless ? 0 : led->view->workspace + 1;
}

/* Takes the slot's member out of the change to come. */
static void demote(struct rg_led *led, int slot)
{
    rg_bitset_clear(&led->waiting, slot);
    rg_bitset_clear(&led->audience, slot);
    if (!led->view) {
        led->proposal->members[slot].status = RG_MEMBER_FAILED;
        return;
    }
    if (is_joiner(led, slot)) {
        led->proposal->members[slot] = led->view->members[slot];
        if (led->view->members[slot].status != RG_MEMBER_ACTIVE)
            return;
    }
    set_status(led, slot,
               rg_bitset_test(&led->left, slot) ? RG_MEMBER_LEFT
                                                : RG_MEMBER_FAILED);
}

/*
 * Nobody is let in while a member that was left behind may not know of it: if
 * all who left it behind died, it would go on alone and rightly so, since only
 * the dead had seen another view. A joiner would live on in that one.
 */
static void seat_joiners(struct rg_led *led)
{
    if (rg_view_has_stragglers(led->proposal))
        return;
    for (const struct rg_led_join *join = led->joins; join; join = join->next) {
        if (led->proposal->members[join->slot].status == RG_MEMBER_ACTIVE)
            continue;
        led->proposal->members[join->slot] = (struct rg_member){
            .status = RG_MEMBER_JOINING,
            .world_rank = join->rank,
            .incarnation = join->message->incarnation,
            .info = join->message->info,
            .endpoint = join->message->endpoint,
        };
    }
}

static void gather_audience(struct rg_led *led)
{
    rg_bitset_zero(&led->audience);
    for (int slot = 0; slot < led->proposal->capacity; slot++)
        if (led->proposal->members[slot].status == RG_MEMBER_JOINING ||
            (led->view && rg_led_is_present(led, slot)))
            rg_bitset_set(&led->audience, slot);
}

/* ---- workspaces --------------------------------------------------------- */

static int is_quarantined(const struct rg_view *view, uint32_t workspace)
{
    for (int slot = 0; slot < view->capacity; slot++)
        if (view->members[slot].quarantine == workspace + 1)
            return 1;
    return 0;
}

/* The next generation that nobody can write to any more; 0: there is none. */
static int choose_workspace(const struct rg_coordinator *coordinator,
                            struct rg_led *led)
{
    uint32_t count = coordinator->config.workspaces;

    for (uint32_t step = 1; step < count; step++) {
        uint32_t workspace = (led->view->workspace + step) % count;

        if (is_quarantined(led->proposal, workspace))
            continue;
        led->proposal->workspace = workspace;
        return 1;
    }
    return 0;
}

static void starve(const struct rg_coordinator *coordinator, struct rg_led *led,
                   struct rg_effects *effects)
{
    rg_view_destroy(led->proposal);
    led->proposal = NULL;
    if (led->is_starved)
        return;
    led->is_starved = 1;
    rg_effects_log(effects, RG_LOG_WARN,
                   "group %u: every workspace generation (RG_WORKSPACES=%u) "
                   "may still be written to by members that have failed",
                   led->id, coordinator->config.workspaces);
    rg_led_set_window(led, coordinator->config.window_ms, effects);
    rg_led_beat(led, effects);
}

/* ---- PREPARE ------------------------------------------------------------ */

static struct rg_message *prepare_message(const struct rg_led *led)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_PREPARE);

    if (message) {
        message->epoch = led->proposal->epoch;
        message->workspace = led->proposal->workspace;
    }
    return message;
}

/* The proposal as far as it is known before anyone has answered. */
static void draft(struct rg_led *led, struct rg_effects *effects)
{
    led->proposal = rg_view_clone(led->view);
    if (!led->proposal) {
        effects->rc = RG_ENOMEM;
        return;
    }
    led->proposal->epoch++;
    for (int rank = 0; rank < led->view->nactive; rank++)
        if (!rg_led_is_present(led, led->view->order[rank]))
            demote(led, led->view->order[rank]);
    rg_led_apply_plan(led, effects);
    seat_joiners(led);
}

static void blame(struct rg_led *led, int slot, const char *why,
                  struct rg_effects *effects)
{
    rg_effects_log(effects, RG_LOG_WARN, "group %u: rank %d leaves: %s",
                   led->id, led->proposal->members[slot].world_rank, why);
}

/*
 * They have not answered a successor for a whole window. There is one for a
 * reconciliation, so the flush that follows does not wait for them again.
 */
static void drop_tardy(struct rg_led *led, struct rg_effects *effects)
{
    for (int slot = rg_bitset_next(&led->tardy, 0); slot >= 0;
         slot = rg_bitset_next(&led->tardy, slot + 1))
        if (rg_bitset_test(&led->audience, slot) && !is_joiner(led, slot)) {
            blame(led, slot, "no answer (RG_WINDOW_MS)", effects);
            demote(led, slot);
        }
    rg_bitset_zero(&led->tardy);
}

static int has_failure(const struct rg_led *led)
{
    return led->is_disturbed || led->is_torn ||
           rg_bitset_next(&led->gone, 0) >= 0;
}

static const char *cause_of(const struct rg_led *led)
{
    if (rg_bitset_next(&led->gone, 0) >= 0)
        return "members are gone";
    if (led->is_disturbed)
        return "members are silent, or report failures";
    return led->is_torn ? "members are held" : "it is planned";
}

void rg_led_prepare(struct rg_coordinator *coordinator, struct rg_led *led,
                    struct rg_effects *effects)
{
    int own;

    if (led->view) {
        own = rg_led_own_slot(coordinator, led);
        if ((own < 0 || rg_led_plan_removes(led, own)) &&
            rg_led_hand_over(coordinator, led, effects))
            return;
        draft(led, effects);
        if (effects->rc)
            return;
        if (!choose_workspace(coordinator, led)) {
            starve(coordinator, led, effects);
            return;
        }
        rg_led_set_window(led,
                          has_failure(led) ? coordinator->config.window_ms
                                           : coordinator->config.plan_ms,
                          effects);
    } else {
        led->proposal->epoch = 1;
    }
    rg_effects_log(effects, RG_LOG_INFO, "group %u: epoch %llu is prepared: %s",
                   led->id, (unsigned long long)led->proposal->epoch,
                   cause_of(led));
    led->is_starved = 0;
    led->adopts = 0;
    led->proposal->status = RG_VIEW_CHANGING;
    led->phase = RG_LED_PREPARING;
    gather_audience(led);
    rg_bitset_copy(&led->waiting, &led->audience);
    rg_bitset_zero(&led->answered);
    drop_tardy(led, effects);
    rg_led_cast(led, &led->audience, prepare_message(led), effects);
}

static int needs_change(const struct rg_coordinator *coordinator,
                        const struct rg_led *led)
{
    int failed = led->is_disturbed || rg_bitset_next(&led->gone, 0) >= 0;

    return led->is_torn || led->plan.is_ready ||
           (failed && coordinator->config.mode == RG_MODE_SYNC);
}

void rg_led_review(struct rg_coordinator *coordinator, struct rg_led *led,
                   struct rg_effects *effects)
{
    if (led->phase != RG_LED_STEADY)
        return;
    if (needs_change(coordinator, led))
        rg_led_prepare(coordinator, led, effects);
    else
        rg_led_try_plan(coordinator, led, effects);
}

/* ---- what the answers mean ---------------------------------------------- */

/* Those who have not answered, and those others wait for in vain. */
static int name_culprits(const struct rg_coordinator *coordinator,
                         struct rg_led *led, struct rg_effects *effects)
{
    int count = 0;

    for (int slot = rg_bitset_next(&led->waiting, 0); slot >= 0;
         slot = rg_bitset_next(&led->waiting, slot + 1)) {
        blame(led, slot, "no answer (RG_WINDOW_MS)", effects);
        demote(led, slot);
        count++;
    }
    if (!led->view || rg_bitset_next(&led->stalled, 0) < 0 ||
        coordinator->config.mode == RG_MODE_MANAGED)
        return count;
    for (int rank = 0; rank < led->view->nactive; rank++) {
        int slot = led->view->order[rank];

        if (led->proposal->members[slot].status != RG_MEMBER_ACTIVE ||
            is_joiner(led, slot) || rg_bitset_test(&led->stalled, slot) ||
            (led->slots[slot].quiet &&
             !rg_seq_precedes(led->slots[slot].quiet->claimed, led->stall_seq)))
            continue;
        blame(led, slot, "others wait for it in a seq it has not begun",
              effects);
        /* It has answered, so it stays in the audience and votes. */
        set_status(led, slot, RG_MEMBER_FAILED);
        count++;
    }
    return count;
}

static int faults_of(const struct rg_view *view, int slot)
{
    int count = 0;

    for (int i = 0; i < view->nfaults; i++)
        count += view->faults[i].from == slot || view->faults[i].to == slot;
    return count;
}

static void add_faults(struct rg_led *led, struct rg_effects *effects)
{
    for (int to = 0; to < led->capacity; to++) {
        const struct rg_bitset *faults = &led->slots[to].faults;

        for (int from = rg_bitset_next(faults, 0); from >= 0;
             from = rg_bitset_next(faults, from + 1))
            if (rg_view_add_fault(led->proposal, from, to))
                effects->rc = RG_ENOMEM;
    }
}

/* No culprit but links that fail: other routes, or the worst member leaves. */
static void name_links(const struct rg_coordinator *coordinator,
                       struct rg_led *led, struct rg_effects *effects)
{
    struct rg_view *proposal = led->proposal;
    int exhausted = 0;
    int worst = -1;

    add_faults(led, effects);
    for (int i = 0; i < proposal->nfaults; i++)
        exhausted |= proposal->faults[i].count >= coordinator->config.routes;
    if (!exhausted || !led->has_faults)
        return;
    for (int rank = 0; rank < led->view->nactive; rank++) {
        int slot = led->view->order[rank];

        if (proposal->members[slot].status == RG_MEMBER_ACTIVE &&
            (worst < 0 ||
             faults_of(proposal, slot) >= faults_of(proposal, worst)))
            worst = slot;
    }
    blame(led, worst, "no route is left to it", effects);
    set_status(led, worst, RG_MEMBER_FAILED);
}

/* Whether some pair of the view, and of `more` and the view, cannot map each
 * other's memory. */
static int needs_proxy(const struct rg_view *view, const struct rg_member *more)
{
    const struct rg_member *first =
        more ? more : &view->members[view->order[0]];

    for (int rank = 0; rank < view->nactive; rank++) {
        const struct rg_member *member = &view->members[view->order[rank]];

        if (member != first && !rg_member_can_map(member, first))
            return 1;
    }
    return 0;
}

/* Why the member keeps its group on the legacy backend; null: it does not. */
static const char *legacy_reason(const struct rg_member *member, int proxied)
{
    if (member->info.preference != RG_BACKEND_NEW)
        return "prefers it";
    if (!(member->info.capabilities & RG_CAP_NEW_BACKEND))
        return "has no route (RG_DISABLE_P2P_ROUTE, "
               "RG_DISABLE_HOST_PROXY_ROUTE)";
    if (proxied && !(member->info.capabilities & RG_CAP_PROXY))
        return "has no route to all others (RG_DISABLE_HOST_PROXY_ROUTE)";
    return NULL;
}

/* The same of one that joins: for itself, or for members that it needs. */
static const char *joiner_reason(const struct rg_view *view,
                                 const struct rg_member *joiner)
{
    const int proxied = needs_proxy(view, joiner);
    const char *reason = legacy_reason(joiner, proxied);

    for (int rank = 0; !reason && rank < view->nactive; rank++)
        reason = legacy_reason(&view->members[view->order[rank]], proxied);
    return reason;
}

/* Group-wide: new only if every active member prefers it and is capable. */
static void decide_backend(const struct rg_led *led, struct rg_effects *effects)
{
    struct rg_view *view = led->proposal;
    enum rg_backend before = led->view ? led->view->backend : RG_BACKEND_UNSET;
    const int proxied = view->nactive > 0 && needs_proxy(view, NULL);
    const struct rg_member *blocker = NULL;
    int wanted = 0;

    for (int rank = 0; rank < view->nactive; rank++) {
        const struct rg_member *member = &view->members[view->order[rank]];

        wanted |= member->info.preference == RG_BACKEND_NEW;
        if (!blocker && legacy_reason(member, proxied))
            blocker = member;
    }
    view->backend = blocker ? RG_BACKEND_LEGACY : RG_BACKEND_NEW;
    if (blocker && wanted && before != RG_BACKEND_LEGACY)
        rg_effects_log(effects, RG_LOG_WARN,
                       "group %u falls back to the legacy backend: rank %d %s",
                       led->id, blocker->world_rank,
                       legacy_reason(blocker, proxied));
}

static void unseat_joiners(struct rg_led *led)
{
    for (int slot = 0; led->view && slot < led->proposal->capacity; slot++) {
        enum rg_member_status status = led->proposal->members[slot].status;

        if ((status == RG_MEMBER_JOINING || status == RG_MEMBER_ACTIVE) &&
            is_joiner(led, slot))
            demote(led, slot);
    }
}

static int has_graphs(const struct rg_led_slot *known)
{
    return known->quiet && known->quiet->status;
}

/*
 * A joiner that would take the new backend from the group waits for a planned
 * change: there nothing is in flight that was launched for that backend.
 */
static void delay_legacy_joiners(struct rg_led *led)
{
    if (!led->view || led->view->backend != RG_BACKEND_NEW ||
        led->plan.is_ready)
        return;
    for (int slot = 0; slot < led->proposal->capacity; slot++)
        if (led->proposal->members[slot].status == RG_MEMBER_JOINING &&
            joiner_reason(led->view, &led->proposal->members[slot]))
            demote(led, slot);
}

/* And if graphs are alive it stays out. */
static void refuse_legacy_joiners(struct rg_led *led,
                                  struct rg_effects *effects)
{
    int graphs = 0;

    if (!led->view || led->view->backend != RG_BACKEND_NEW)
        return;
    for (int rank = 0; rank < led->view->nactive; rank++)
        graphs |= has_graphs(&led->slots[led->view->order[rank]]);
    for (int slot = 0; graphs && slot < led->proposal->capacity; slot++) {
        struct rg_member *member = &led->proposal->members[slot];
        struct rg_message *message;
        const char *reason = member->status == RG_MEMBER_JOINING
                                 ? joiner_reason(led->view, member)
                                 : NULL;

        if (!reason)
            continue;
        rg_effects_log(effects, RG_LOG_ERROR,
                       "group %u: rank %d cannot join: it %s, and graphs of "
                       "the other backend are alive",
                       led->id, member->world_rank, reason);
        message = rg_led_message(led, RG_MSG_ERROR);
        if (message)
            message->status = RG_EBACKEND;
        rg_led_send(led, slot, message, effects);
        rg_message_unref(message);
        demote(led, slot);
    }
}

/* Whatever is below `committed_seq` is so at every member that lives on. */
static void settle_seqs(struct rg_led *led)
{
    struct rg_view *proposal = led->proposal;
    uint64_t completed = 0;
    uint64_t claimed;
    int heard = 0;

    if (!led->view) {
        proposal->committed_seq = proposal->first_seq - 1;
        return;
    }
    claimed = led->view->first_seq - 1;
    for (int rank = 0; rank < led->view->nactive; rank++) {
        int slot = led->view->order[rank];
        const struct rg_message *quiet = led->slots[slot].quiet;

        if (!quiet || !rg_led_is_present(led, slot))
            continue;
        if (!heard++ || rg_seq_precedes(quiet->completed, completed))
            completed = quiet->completed;
        rg_seq_raise(&claimed, quiet->claimed);
    }
    proposal->committed_seq = led->view->committed_seq;
    if (heard)
        rg_seq_raise(&proposal->committed_seq, completed);
    proposal->first_seq = claimed + 1;
}

/* What a member that goes on from the view in force says of pairs, or null. */
static const struct rg_pairs *pairs_of(const struct rg_led *led, int slot)
{
    if (slot < 0 || slot >= led->view->capacity ||
        !rg_led_is_present(led, slot) || !led->slots[slot].quiet ||
        led->proposal->members[slot].status != RG_MEMBER_ACTIVE)
        return NULL;
    return &led->slots[slot].quiet->pairs;
}

/* Adds what both ends say of the messages from this slot. */
static void settle_sender(const struct rg_led *led, int from,
                          struct rg_pairs *settled)
{
    const struct rg_pairs *sent = pairs_of(led, from);

    for (int i = 0; sent && i < sent->count; i++) {
        struct rg_pair pair = sent->items[i];
        const struct rg_pairs *other = pairs_of(led, pair.to);
        uint64_t come = pair.from == from && other
                            ? rg_pairs_find(other, from, pair.to)
                            : 0;

        if (come < pair.count)
            pair.count = come;
        if (pair.count)
            settled->items[settled->count++] = pair;
    }
}

/* A message is done if both ends say so; all others are undone at both. */
static void settle_pairs(struct rg_led *led, struct rg_effects *effects)
{
    struct rg_pairs *settled = &led->proposal->pairs;
    size_t most = 0;

    rg_pairs_fini(settled);
    for (int rank = 0; led->view && rank < led->view->nactive; rank++) {
        const struct rg_pairs *pairs = pairs_of(led, led->view->order[rank]);

        most += pairs ? (size_t)pairs->count : 0;
    }
    if (!most)
        return;
    settled->items = calloc(most, sizeof(*settled->items));
    if (!settled->items) {
        effects->rc = RG_ENOMEM;
        return;
    }
    for (int rank = 0; rank < led->view->nactive; rank++)
        settle_sender(led, led->view->order[rank], settled);
}

/* ---- VIEW --------------------------------------------------------------- */

/* Completes the proposal from what has been answered; 0: nobody is in it. */
static int compose(const struct rg_coordinator *coordinator, struct rg_led *led,
                   struct rg_effects *effects)
{
    struct rg_view *proposal = led->proposal;

    if (rg_view_has_stragglers(proposal))
        unseat_joiners(led);
    delay_legacy_joiners(led);
    refuse_legacy_joiners(led, effects);
    for (int slot = 0; slot < proposal->capacity; slot++)
        if (proposal->members[slot].status == RG_MEMBER_JOINING)
            proposal->members[slot].status = RG_MEMBER_ACTIVE;
    rg_view_reorder(proposal);
    settle_seqs(led);
    settle_pairs(led, effects);
    decide_backend(led, effects);
    proposal->status = RG_VIEW_ACTIVE;
    proposal->term = led->term;
    proposal->coordinator = coordinator->config.rank;
    proposal->attempt = led->attempt + 1;
    return proposal->nactive > 0;
}

static struct rg_message *view_message(const struct rg_led *led)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_VIEW);

    if (!message)
        return NULL;
    message->epoch = led->proposal->epoch;
    message->view = rg_view_clone(led->proposal);
    if (message->view)
        return message;
    rg_message_unref(message);
    return NULL;
}

void rg_led_propose(struct rg_coordinator *coordinator, struct rg_led *led,
                    struct rg_effects *effects)
{
    led->phase = RG_LED_PROPOSING;
    led->attempt++;
    led->has_rules = 0;
    rg_bitset_zero(&led->waiting);
    rg_bitset_zero(&led->answered);
    for (int rank = 0; rank < led->proposal->nactive; rank++)
        if (rg_bitset_test(&led->audience, led->proposal->order[rank]))
            rg_bitset_set(&led->waiting, led->proposal->order[rank]);
    if (led->view)
        rg_led_set_window(led, coordinator->config.window_ms, effects);
    rg_led_cast(led, &led->audience, view_message(led), effects);
}

/* All who will have answered: decides what comes. */
static void conclude(struct rg_coordinator *coordinator, struct rg_led *led,
                     struct rg_effects *effects)
{
    int own;

    if (!name_culprits(coordinator, led, effects) && led->view)
        name_links(coordinator, led, effects);
    if (led->view) {
        own = rg_led_own_slot(coordinator, led);
        if ((own < 0 ||
             led->proposal->members[own].status != RG_MEMBER_ACTIVE) &&
            rg_led_hand_over(coordinator, led, effects))
            return;
        if (!rg_led_has_quorum(led)) {
            rg_led_give_up(coordinator, led, effects);
            return;
        }
    }
    if (compose(coordinator, led, effects))
        rg_led_propose(coordinator, led, effects);
    else
        rg_led_give_up(coordinator, led, effects);
}

void rg_led_on_quiesced(struct rg_coordinator *coordinator, struct rg_led *led,
                        int slot, struct rg_message *message,
                        struct rg_effects *effects)
{

    if (led->phase != RG_LED_PREPARING || message->term != led->term ||
        message->epoch != led->proposal->epoch ||
        !rg_bitset_test(&led->waiting, slot)) {
        coordinator->dropped++;
        return;
    }
    rg_bitset_clear(&led->waiting, slot);
    rg_bitset_set(&led->answered, slot);
    rg_message_unref(led->slots[slot].quiet);
    led->slots[slot].quiet = rg_message_ref(message);
    if (rg_bitset_next(&led->waiting, 0) < 0)
        conclude(coordinator, led, effects);
}

/* ---- ACTIVATE ----------------------------------------------------------- */

/* The slots whose member has changed lose what was known of it. */
static void forget_departed(struct rg_led *led, const struct rg_view *before)
{
    for (int slot = 0; slot < led->view->capacity; slot++) {
        struct rg_led_slot *known = &led->slots[slot];
        int stays = before &&
                    led->view->members[slot].status == RG_MEMBER_ACTIVE &&
                    before->members[slot].status == RG_MEMBER_ACTIVE &&
                    before->members[slot].incarnation ==
                        led->view->members[slot].incarnation;

        rg_message_unref(known->quiet);
        rg_bitset_fini(&known->faults);
        *known = (struct rg_led_slot){.completed = led->view->first_seq - 1};
        if (stays)
            continue;
        rg_bitset_clear(&led->gone, slot);
        rg_bitset_clear(&led->exited, slot);
        rg_bitset_clear(&led->left, slot);
    }
}

static void enter_epoch(struct rg_led *led, struct rg_effects *effects)
{
    struct rg_view *before = led->view;

    if (before)
        rg_led_abort_gathers(led, RG_EABORTED, effects);
    led->view = led->proposal;
    led->proposal = NULL;
    forget_departed(led, before);
    rg_view_destroy(before);
    rg_led_forget_gathers(led);
    rg_led_forget_joins(led, 1);
    rg_led_reset_plan(led);
    rg_bitset_zero(&led->stalled);
    rg_bitset_zero(&led->accused);
    rg_bitset_zero(&led->confirmed);
    led->stall_seq = 0;
    led->has_faults = 0;
    led->is_disturbed = 0;
    led->is_torn = 0;
}

static void activate(struct rg_coordinator *coordinator, struct rg_led *led,
                     struct rg_effects *effects)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_ACTIVATE);

    if (message)
        message->epoch = led->proposal->epoch;
    rg_led_cast(led, &led->audience, message, effects);
    if (led->view && led->proposal->epoch == led->view->epoch) {
        rg_view_destroy(led->proposal);
        led->proposal = NULL;
    } else {
        enter_epoch(led, effects);
    }
    led->phase = RG_LED_STEADY;
    led->in_force = led->attempt;
    rg_bitset_copy(&led->tardy, &led->waiting);
    led->is_disturbed |= rg_bitset_next(&led->tardy, 0) >= 0;
    rg_led_set_window(led, 0, effects);
    rg_led_beat(led, effects);
    rg_led_review(coordinator, led, effects);
}

static void try_activate(struct rg_coordinator *coordinator, struct rg_led *led,
                         struct rg_effects *effects)
{
    if (rg_bitset_next(&led->waiting, 0) < 0 &&
        (!led->view || rg_led_has_quorum(led)))
        activate(coordinator, led, effects);
}

/* The end of a group whose members would not run by the same rules. */
static void end_divided(struct rg_coordinator *coordinator, struct rg_led *led,
                        int slot, struct rg_effects *effects)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_ERROR);

    rg_effects_log(effects, RG_LOG_ERROR,
                   "group %u: rank %d makes other rules than the others of the "
                   "policy that all were given",
                   led->id, led->proposal->members[slot].world_rank);
    if (message)
        message->status = RG_EPOLICY;
    rg_led_cast(led, &led->audience, message, effects);
    rg_led_remove(coordinator, led, effects);
}

/* Whether a member to come runs by the rules of those who answered before. */
static int agrees(struct rg_led *led, int slot,
                  const struct rg_message *message)
{
    if (led->proposal->members[slot].status != RG_MEMBER_ACTIVE)
        return 1;
    if (!led->has_rules)
        led->rules = message->rules;
    led->has_rules = 1;
    return led->rules == message->rules;
}

void rg_led_on_view_ack(struct rg_coordinator *coordinator, struct rg_led *led,
                        int slot, const struct rg_message *message,
                        struct rg_effects *effects)
{
    if (led->phase != RG_LED_PROPOSING || message->term != led->term ||
        message->attempt != led->attempt ||
        message->epoch != led->proposal->epoch ||
        !rg_bitset_test(&led->audience, slot) ||
        rg_bitset_test(&led->answered, slot)) {
        coordinator->dropped++;
        return;
    }
    if (!agrees(led, slot, message)) {
        end_divided(coordinator, led, slot, effects);
        return;
    }
    rg_bitset_clear(&led->waiting, slot);
    rg_bitset_set(&led->answered, slot);
    try_activate(coordinator, led, effects);
}

/* ---- when somebody is missing ------------------------------------------- */

/* Proposes once more without those who have been demoted. */
static void propose_again(struct rg_coordinator *coordinator,
                          struct rg_led *led, struct rg_effects *effects)
{
    rg_bitset_copy(&led->answered, &led->audience);
    if (led->view && !rg_led_has_quorum(led))
        rg_led_give_up(coordinator, led, effects);
    else if (compose(coordinator, led, effects))
        rg_led_propose(coordinator, led, effects);
    else
        rg_led_give_up(coordinator, led, effects);
}

void rg_led_lose_member(struct rg_coordinator *coordinator, struct rg_led *led,
                        int slot, struct rg_effects *effects)
{
    int was_live;

    if (led->phase == RG_LED_STEADY) {
        rg_led_review(coordinator, led, effects);
        return;
    }
    rg_bitset_clear(&led->waiting, slot);
    if (led->phase == RG_LED_CLAIMING) {
        rg_led_try_elected(coordinator, led, effects);
        return;
    }
    if (led->adopts) {
        rg_bitset_clear(&led->audience, slot);
        try_activate(coordinator, led, effects);
        return;
    }
    was_live = led->proposal->members[slot].status == RG_MEMBER_ACTIVE ||
               led->proposal->members[slot].status == RG_MEMBER_JOINING;
    if (was_live)
        demote(led, slot);
    if (led->view)
        rg_led_set_window(led, coordinator->config.window_ms, effects);
    if (led->phase == RG_LED_PROPOSING && was_live)
        propose_again(coordinator, led, effects);
    else if (led->phase == RG_LED_PROPOSING)
        try_activate(coordinator, led, effects);
    else if (rg_bitset_next(&led->waiting, 0) < 0)
        conclude(coordinator, led, effects);
}

/* Whoever has not taken the view in time is not in the next one. */
static void on_late_acks(struct rg_coordinator *coordinator, struct rg_led *led,
                         struct rg_effects *effects)
{
    int late = rg_bitset_next(&led->waiting, 0);

    if (led->adopts) {
        if (rg_led_has_quorum(led))
            activate(coordinator, led, effects);
        else
            rg_led_give_up(coordinator, led, effects);
        return;
    }
    if (late < 0) {
        rg_led_give_up(coordinator, led, effects);
        return;
    }
    name_culprits(coordinator, led, effects);
    propose_again(coordinator, led, effects);
}

static void give_up_starved(struct rg_coordinator *coordinator,
                            struct rg_led *led, struct rg_effects *effects)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_ERROR);

    rg_effects_log(effects, RG_LOG_ERROR,
                   "group %u: no clean workspace generation is left "
                   "(RG_WORKSPACES=%u)",
                   led->id, coordinator->config.workspaces);
    if (message)
        message->status = RG_ENOSPC;
    rg_led_cast_all(led, message, effects);
    rg_led_remove(coordinator, led, effects);
}

/* What was only asked for may be asked for again; a failure cannot wait. */
static void end_starving(struct rg_coordinator *coordinator, struct rg_led *led,
                         struct rg_effects *effects)
{
    if (led->plan.is_ready && !led->is_torn && !has_failure(led)) {
        led->is_starved = 0;
        rg_led_refuse_plan(led, RG_ENOSPC, effects);
        rg_led_beat(led, effects);
    } else {
        give_up_starved(coordinator, led, effects);
    }
}

void rg_led_on_window(struct rg_coordinator *coordinator, struct rg_led *led,
                      struct rg_effects *effects)
{
    switch (led->phase) {
    case RG_LED_STEADY:
        if (led->is_starved)
            end_starving(coordinator, led, effects);
        break;
    case RG_LED_PREPARING:
        conclude(coordinator, led, effects);
        break;
    case RG_LED_PROPOSING:
        on_late_acks(coordinator, led, effects);
        break;
    case RG_LED_CLAIMING:
        rg_led_remove(coordinator, led, effects);
        break;
    case RG_LED_FORMING:
        break;
    }
}

static void repeat_activate(const struct rg_led *led,
                            struct rg_effects *effects)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_ACTIVATE);

    if (message)
        message->attempt = led->in_force;
    for (int rank = 0; rank < led->view->nactive; rank++) {
        int slot = led->view->order[rank];

        if (rg_led_is_present(led, slot) &&
            !rg_bitset_test(&led->confirmed, slot))
            rg_led_send(led, slot, message, effects);
    }
    rg_message_unref(message);
}

/* Who is not known to be in the view in force cannot leave it either. */
void rg_led_repeat(const struct rg_led *led, struct rg_effects *effects)
{
    struct rg_message *message;

    if (led->view && led->phase != RG_LED_PROPOSING)
        repeat_activate(led, effects);
    if (led->phase == RG_LED_STEADY)
        return;
    message = led->phase == RG_LED_PREPARING ? prepare_message(led)
                                             : view_message(led);
    for (int slot = rg_bitset_next(&led->audience, 0); slot >= 0;
         slot = rg_bitset_next(&led->audience, slot + 1))
        if (!rg_bitset_test(&led->answered, slot))
            rg_led_send(led, slot, message, effects);
    rg_message_unref(message);
}
