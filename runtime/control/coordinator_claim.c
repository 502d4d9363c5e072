/* Taking a group over, and handing it on. */
#include "runtime/control/coordinator_state.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

/* ---- claiming ----------------------------------------------------------- */

void rg_led_claim(struct rg_coordinator *coordinator, struct rg_led *led,
                  struct rg_effects *effects)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_CLAIM);
    int own = rg_view_slot_of(led->view, coordinator->config.rank);

    if (message) {
        message->incarnation = led->view->members[own].incarnation;
        message->status = (int)led->reason;
    }
    rg_led_cast(led, &led->waiting, message, effects);
}

static void start_claim(struct rg_coordinator *coordinator,
                        const struct rg_view *view, uint64_t term,
                        enum rg_reason reason, struct rg_effects *effects)
{
    struct rg_led *led =
        rg_led_create(coordinator, view->group, view->capacity);

    if (led)
        led->view = rg_view_clone(view);
    if (!led || !led->view) {
        effects->rc = RG_ENOMEM;
        return;
    }
    led->term = term;
    led->reason = reason;
    led->phase = RG_LED_CLAIMING;
    for (int rank = 0; rank < view->nactive; rank++) {
        rg_bitset_set(&led->audience, view->order[rank]);
        led->slots[view->order[rank]].completed = view->first_seq - 1;
    }
    rg_bitset_copy(&led->waiting, &led->audience);
    rg_effects_timer(effects, RG_TIMER_TICK, led->id,
                     coordinator->config.heartbeat_ms);
    rg_led_set_window(led, coordinator->config.window_ms, effects);
    rg_led_claim(coordinator, led, effects);
}

void rg_led_on_stand(struct rg_coordinator *coordinator, struct rg_led *led,
                     const struct rg_message *message,
                     struct rg_effects *effects)
{
    if (led && (led->phase == RG_LED_FORMING || led->term >= message->term)) {
        coordinator->dropped++;
        return;
    }
    if (led)
        rg_led_remove(coordinator, led, effects);
    start_claim(coordinator, message->view, message->term,
                (enum rg_reason)message->status, effects);
}

static void keep_highest(struct rg_led *led, struct rg_message *grant)
{
    if (led->found &&
        rg_ballot_compare(&grant->ballot, &led->found->ballot) <= 0)
        return;
    rg_message_ref(grant);
    rg_message_unref(led->found);
    led->found = grant;
}

void rg_led_on_grant(struct rg_coordinator *coordinator, struct rg_led *led,
                     int slot, struct rg_message *message,
                     struct rg_effects *effects)
{
    const struct rg_view *view = message->view;

    if (led->phase != RG_LED_CLAIMING || message->term != led->term) {
        coordinator->dropped++;
        return;
    }
    if (view && message->status && view->epoch > led->view->epoch) {
        /* Others are further: their view says who may vote. */
        uint64_t term = led->term;
        enum rg_reason reason = led->reason;
        int own = rg_view_slot_of(view, coordinator->config.rank);

        rg_led_remove(coordinator, led, effects);
        if (own >= 0 && view->members[own].status == RG_MEMBER_ACTIVE)
            start_claim(coordinator, view, term, reason, effects);
        return;
    }
    if (view && !message->status && view->epoch == led->view->epoch + 1)
        keep_highest(led, message);
    rg_bitset_clear(&led->waiting, slot);
    rg_bitset_set(&led->answered, slot);
    rg_led_try_elected(coordinator, led, effects);
}

/* Who is to hear the view that has been found: its members and the voters. */
static void gather_audience(struct rg_led *led)
{
    rg_bitset_zero(&led->audience);
    for (int slot = 0; slot < led->view->capacity; slot++) {
        const struct rg_member *member = &led->proposal->members[slot];
        int gone = rg_bitset_test(&led->gone, slot) &&
                   member->incarnation == led->view->members[slot].incarnation;

        if (rg_led_is_present(led, slot) ||
            (member->status == RG_MEMBER_ACTIVE && !gone))
            rg_bitset_set(&led->audience, slot);
    }
}

void rg_led_try_elected(struct rg_coordinator *coordinator, struct rg_led *led,
                        struct rg_effects *effects)
{
    if (!rg_led_has_quorum(led))
        return;
    rg_effects_log(effects, RG_LOG_INFO,
                   "group %u: rank %d coordinates in term %llu", led->id,
                   coordinator->config.rank, (unsigned long long)led->term);
    led->proposal = rg_view_clone(led->found ? led->found->view : led->view);
    if (!led->proposal) {
        effects->rc = RG_ENOMEM;
        return;
    }
    rg_message_unref(led->found);
    led->found = NULL;
    led->adopts = 1;
    gather_audience(led);
    rg_led_propose(coordinator, led, effects);
}

/* ---- ending ------------------------------------------------------------- */

static struct rg_message *lost_message(const struct rg_led *led, int leader,
                                       uint64_t term)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_LOST);

    if (message) {
        message->term = term;
        message->world_rank = leader;
    }
    return message;
}

void rg_led_on_refuse(struct rg_coordinator *coordinator, struct rg_led *led,
                      const struct rg_message *message,
                      struct rg_effects *effects)
{
    const struct rg_ballot own = {.term = led->term,
                                  .leader = coordinator->config.rank};
    const struct rg_ballot other = {.term = message->term,
                                    .leader = message->world_rank};
    struct rg_message *lost;

    if (!led->view || rg_ballot_compare(&other, &own) <= 0) {
        coordinator->dropped++;
        return;
    }
    lost = lost_message(led, message->world_rank, message->term);
    rg_effects_send(effects, coordinator->config.rank, lost);
    rg_message_unref(lost);
    rg_led_remove(coordinator, led, effects);
}

void rg_led_give_up(struct rg_coordinator *coordinator, struct rg_led *led,
                    struct rg_effects *effects)
{
    rg_effects_log(effects, RG_LOG_WARN,
                   "group %u: rank %d has no majority in reach", led->id,
                   coordinator->config.rank);
    rg_led_cast(led, &led->audience, lost_message(led, -1, led->term), effects);
    rg_led_remove(coordinator, led, effects);
}

int rg_led_hand_over(struct rg_coordinator *coordinator, struct rg_led *led,
                     struct rg_effects *effects)
{
    const struct rg_view *next = rg_led_members(led);

    for (int rank = 0; rank < led->view->nactive; rank++) {
        int slot = led->view->order[rank];
        struct rg_message *message;

        if (!rg_led_is_present(led, slot) ||
            next->members[slot].status != RG_MEMBER_ACTIVE ||
            rg_led_plan_removes(led, slot) ||
            next->members[slot].world_rank == coordinator->config.rank)
            continue;
        message = rg_led_message(led, RG_MSG_HANDOVER);
        rg_led_send(led, slot, message, effects);
        rg_message_unref(message);
        rg_led_remove(coordinator, led, effects);
        return 1;
    }
    return 0;
}
