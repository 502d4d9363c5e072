/* Groups of a coordinator, its inputs and its tick. */
#include "runtime/control/coordinator.h"

#include <stdlib.h>

#include "runtime/control/coordinator_state.h"
#include "runtime/core/seq.h"
#include "runtime/status.h"

/* ---- groups ------------------------------------------------------------- */

struct rg_led *rg_led_find(const struct rg_coordinator *coordinator,
                           uint32_t id)
{
    struct rg_led *led = coordinator->groups;

    while (led && led->id != id)
        led = led->next;
    return led;
}

static void led_free(struct rg_led *led)
{
    rg_led_forget_gathers(led);
    rg_led_forget_joins(led, 0);
    for (int slot = 0; led->slots && slot < led->capacity; slot++) {
        rg_message_unref(led->slots[slot].quiet);
        rg_bitset_fini(&led->slots[slot].faults);
    }
    rg_message_unref(led->plan.request);
    rg_message_unref(led->found);
    rg_view_destroy(led->view);
    rg_view_destroy(led->proposal);
    rg_bitset_fini(&led->plan.asked);
    rg_bitset_fini(&led->waiting);
    rg_bitset_fini(&led->audience);
    rg_bitset_fini(&led->answered);
    rg_bitset_fini(&led->confirmed);
    rg_bitset_fini(&led->gone);
    rg_bitset_fini(&led->exited);
    rg_bitset_fini(&led->left);
    rg_bitset_fini(&led->stalled);
    rg_bitset_fini(&led->accused);
    rg_bitset_fini(&led->tardy);
    free(led->slots);
    free(led);
}

struct rg_led *rg_led_create(struct rg_coordinator *coordinator, uint32_t id,
                             int capacity)
{
    struct rg_led *led = calloc(1, sizeof(*led));

    if (!led)
        return NULL;
    led->id = id;
    led->plan.call = 1;
    led->capacity = capacity;
    led->slots = calloc((size_t)capacity, sizeof(*led->slots));
    if (!led->slots || rg_bitset_init(&led->plan.asked, capacity) ||
        rg_bitset_init(&led->waiting, capacity) ||
        rg_bitset_init(&led->audience, capacity) ||
        rg_bitset_init(&led->answered, capacity) ||
        rg_bitset_init(&led->confirmed, capacity) ||
        rg_bitset_init(&led->gone, capacity) ||
        rg_bitset_init(&led->exited, capacity) ||
        rg_bitset_init(&led->left, capacity) ||
        rg_bitset_init(&led->stalled, capacity) ||
        rg_bitset_init(&led->accused, capacity) ||
        rg_bitset_init(&led->tardy, capacity)) {
        led_free(led);
        return NULL;
    }
    led->next = coordinator->groups;
    coordinator->groups = led;
    return led;
}

void rg_led_remove(struct rg_coordinator *coordinator, struct rg_led *led,
                   struct rg_effects *effects)
{
    struct rg_led **link = &coordinator->groups;

    rg_effects_timer(effects, RG_TIMER_TICK, led->id, 0);
    rg_effects_timer(effects, RG_TIMER_WINDOW, led->id, 0);
    while (*link != led)
        link = &(*link)->next;
    *link = led->next;
    led_free(led);
}

struct rg_view *rg_led_members(const struct rg_led *led)
{
    return led->proposal ? led->proposal : led->view;
}

int rg_led_is_present(const struct rg_led *led, int slot)
{
    return led->view->members[slot].status == RG_MEMBER_ACTIVE &&
           !rg_bitset_test(&led->gone, slot) &&
           !rg_bitset_test(&led->left, slot);
}

int rg_led_own_slot(const struct rg_coordinator *coordinator,
                    const struct rg_led *led)
{
    int slot = rg_view_slot_of(led->view, coordinator->config.rank);

    return slot >= 0 && rg_led_is_present(led, slot) ? slot : -1;
}

/*
 * The dead and those who have left do not vote. A slot may also have answered
 * for its next incarnation, while the one that was a member is gone.
 */
int rg_led_has_quorum(const struct rg_led *led)
{
    struct rg_bitset absent = {0};
    struct rg_bitset voters = {0};
    int capacity = led->view->capacity;
    int has = 0;

    if (!rg_bitset_init(&absent, capacity) &&
        !rg_bitset_init(&voters, capacity)) {
        for (int rank = 0; rank < led->view->nactive; rank++) {
            int slot = led->view->order[rank];

            if (!rg_led_is_present(led, slot))
                rg_bitset_set(&absent, slot);
            else if (rg_bitset_test(&led->answered, slot))
                rg_bitset_set(&voters, slot);
        }
        has = rg_view_has_quorum(led->view, &voters, &absent);
    }
    rg_bitset_fini(&absent);
    rg_bitset_fini(&voters);
    return has;
}

/* ---- sending ------------------------------------------------------------ */

struct rg_message *rg_led_message(const struct rg_led *led,
                                  enum rg_message_kind kind)
{
    struct rg_message *message = rg_message_create(kind, led->id);

    if (message) {
        message->term = led->term;
        message->epoch = led->view ? led->view->epoch : 0;
        message->attempt = led->attempt;
    }
    return message;
}

void rg_led_send(const struct rg_led *led, int slot, struct rg_message *message,
                 struct rg_effects *effects)
{
    rg_effects_send(effects, rg_led_members(led)->members[slot].world_rank,
                    message);
}

void rg_led_cast(const struct rg_led *led, const struct rg_bitset *slots,
                 struct rg_message *message, struct rg_effects *effects)
{
    for (int slot = rg_bitset_next(slots, 0); slot >= 0;
         slot = rg_bitset_next(slots, slot + 1))
        rg_led_send(led, slot, message, effects);
    rg_message_unref(message);
}

void rg_led_cast_all(const struct rg_led *led, struct rg_message *message,
                     struct rg_effects *effects)
{
    for (int rank = 0; rank < led->view->nactive; rank++)
        if (rg_led_is_present(led, led->view->order[rank]))
            rg_effects_send(
                effects, led->view->members[led->view->order[rank]].world_rank,
                message);
    rg_message_unref(message);
}

void rg_led_set_window(const struct rg_led *led, uint64_t ms,
                       struct rg_effects *effects)
{
    rg_effects_timer(effects, RG_TIMER_WINDOW, led->id, ms);
}

/* ---- the tick ----------------------------------------------------------- */

static uint64_t completed_by_all(const struct rg_led *led)
{
    uint64_t least = led->slots[led->view->order[0]].completed;

    for (int rank = 1; rank < led->view->nactive; rank++) {
        const struct rg_led_slot *slot = &led->slots[led->view->order[rank]];

        if (rg_seq_precedes(slot->completed, least))
            least = slot->completed;
    }
    return least;
}

void rg_led_beat(const struct rg_led *led, struct rg_effects *effects)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_BEAT);

    if (message) {
        message->completed = completed_by_all(led);
        message->status = led->is_starved               ? RG_BEAT_STARVED
                          : led->phase == RG_LED_STEADY ? RG_BEAT_STEADY
                                                        : RG_BEAT_CHANGING;
    }
    rg_led_cast_all(led, message, effects);
}

/* Asks those who may still write to old memory whether they do. */
static void ask_excluded(const struct rg_led *led, struct rg_effects *effects)
{
    for (int slot = 0; slot < led->view->capacity; slot++) {
        const struct rg_member *member = &led->view->members[slot];
        struct rg_message *message;

        if (!member->quarantine || member->status == RG_MEMBER_ACTIVE)
            continue;
        message = rg_led_message(led, RG_MSG_EXCLUDED);
        if (message) {
            message->incarnation = member->incarnation;
            message->status = RG_EISOLATED;
        }
        rg_effects_send(effects, member->world_rank, message);
        rg_message_unref(message);
    }
}

static void count_silence(const struct rg_coordinator *coordinator,
                          struct rg_led *led)
{
    uint64_t limit = rg_machine_ticks(coordinator->config.miss_ms,
                                      coordinator->config.heartbeat_ms);

    for (int rank = 0; rank < led->view->nactive; rank++) {
        int slot = led->view->order[rank];

        if (++led->slots[slot].silent >= limit && rg_led_is_present(led, slot))
            led->is_disturbed = 1;
    }
}

static void on_tick(struct rg_coordinator *coordinator, struct rg_led *led,
                    struct rg_effects *effects)
{
    rg_effects_timer(effects, RG_TIMER_TICK, led->id,
                     coordinator->config.heartbeat_ms);
    if (led->phase == RG_LED_CLAIMING) {
        rg_led_claim(coordinator, led, effects);
        return;
    }
    if (led->view) {
        rg_led_beat(led, effects);
        ask_excluded(led, effects);
        rg_led_notify(coordinator, led, effects);
        led->is_hearing = 0;
    }
    if (led->phase != RG_LED_FORMING)
        rg_led_repeat(led, effects);
    if (led->view && led->phase == RG_LED_STEADY) {
        count_silence(coordinator, led);
        rg_led_review(coordinator, led, effects);
    }
}

static void on_timer(struct rg_coordinator *coordinator, struct rg_timer timer,
                     struct rg_effects *effects)
{
    struct rg_led *led = rg_led_find(coordinator, timer.group);

    if (!led)
        return;
    if (timer.kind == RG_TIMER_TICK)
        on_tick(coordinator, led, effects);
    else if (timer.kind == RG_TIMER_WINDOW)
        rg_led_on_window(coordinator, led, effects);
}

/* ---- messages ----------------------------------------------------------- */

static int holds_slot(const struct rg_view *view, int slot,
                      const struct rg_message *message)
{
    return view && slot >= 0 &&
           view->members[slot].incarnation == message->incarnation &&
           (view->members[slot].status == RG_MEMBER_ACTIVE ||
            view->members[slot].status == RG_MEMBER_JOINING);
}

/* The sender's slot; -1 if it is no member or an old incarnation. */
static int sender_slot(const struct rg_led *led, int rank,
                       const struct rg_message *message)
{
    int slot = -1;

    if (led->proposal) {
        slot = rg_view_slot_of(led->proposal, rank);
        if (holds_slot(led->proposal, slot, message))
            return slot;
    }
    if (led->view) {
        slot = rg_view_slot_of(led->view, rank);
        if (holds_slot(led->view, slot, message))
            return slot;
    }
    return -1;
}

/* It thinks to be a member of a view that others have moved on from. */
static void tell_excluded(const struct rg_led *led, int peer,
                          const struct rg_message *message,
                          struct rg_effects *effects)
{
    struct rg_message *answer;

    if (!led->view || led->phase == RG_LED_CLAIMING || !message->epoch ||
        message->epoch >= led->view->epoch)
        return;
    answer = rg_led_message(led, RG_MSG_EXCLUDED);
    if (answer) {
        answer->incarnation = message->incarnation;
        answer->status = RG_EISOLATED;
    }
    rg_effects_send(effects, peer, answer);
    rg_message_unref(answer);
}

static void from_member(struct rg_coordinator *coordinator, struct rg_led *led,
                        int slot, struct rg_message *message,
                        struct rg_effects *effects)
{
    led->slots[slot].silent = 0;
    rg_bitset_clear(&led->tardy, slot);
    switch (message->kind) {
    case RG_MSG_LEAVE:
        rg_led_on_leave(coordinator, led, slot, message, effects);
        break;
    case RG_MSG_QUIESCED:
        rg_led_on_quiesced(coordinator, led, slot, message, effects);
        break;
    case RG_MSG_VIEW_ACK:
        rg_led_on_view_ack(coordinator, led, slot, message, effects);
        break;
    case RG_MSG_POLICY:
    case RG_MSG_CHANGE:
        rg_led_on_plan(coordinator, led, slot, message, effects);
        break;
    case RG_MSG_GATHER:
        rg_led_on_gather(coordinator, led, slot, message, effects);
        break;
    case RG_MSG_REPORT:
        rg_led_on_report(coordinator, led, slot, message, effects);
        break;
    case RG_MSG_HEARTBEAT:
        rg_led_on_heartbeat(coordinator, led, slot, message, effects);
        break;
    case RG_MSG_GRANT:
        rg_led_on_grant(coordinator, led, slot, message, effects);
        break;
    default:
        coordinator->dropped++;
    }
}

static void on_message(struct rg_coordinator *coordinator, int peer,
                       struct rg_message *message, struct rg_effects *effects)
{
    struct rg_led *led = rg_led_find(coordinator, message->group);
    int own = peer == coordinator->config.rank;
    int slot;

    if (message->kind == RG_MSG_JOIN) {
        rg_led_on_join(coordinator, led, peer, message, effects);
    } else if (message->kind == RG_MSG_STAND && own) {
        rg_led_on_stand(coordinator, led, message, effects);
    } else if (!led) {
        coordinator->dropped++;
    } else if (message->kind == RG_MSG_RESIGN && own) {
        if (led->phase != RG_LED_FORMING)
            rg_led_remove(coordinator, led, effects);
    } else if (message->kind == RG_MSG_REFUSE) {
        rg_led_on_refuse(coordinator, led, message, effects);
    } else if (message->kind == RG_MSG_FENCED) {
        rg_led_on_fenced(coordinator, led, peer, message->incarnation, effects);
    } else {
        /* Also who waits to be let in may have thought better of it. */
        if (message->kind == RG_MSG_LEAVE)
            rg_led_drop_join(led, peer, message->incarnation);
        slot = sender_slot(led, peer, message);
        if (slot < 0) {
            coordinator->dropped++;
            tell_excluded(led, peer, message, effects);
        } else {
            from_member(coordinator, led, slot, message, effects);
        }
    }
}

/* ---- life and inspection ------------------------------------------------ */

static void on_end(struct rg_coordinator *coordinator,
                   const struct rg_input *input, struct rg_effects *effects)
{
    struct rg_led *next;

    if (input->peer >= 0 && input->peer < coordinator->config.world_size &&
        input->process > coordinator->ended[input->peer])
        coordinator->ended[input->peer] = input->process;
    for (struct rg_led *led = coordinator->groups; led; led = next) {
        next = led->next;
        rg_led_on_end(coordinator, led, input->peer, input->process,
                      input->kind == RG_INPUT_EXITED, effects);
    }
}

struct rg_coordinator *
rg_coordinator_create(const struct rg_coordinator_config *config)
{
    struct rg_coordinator *coordinator = calloc(1, sizeof(*coordinator));

    if (!coordinator)
        return NULL;
    coordinator->config = *config;
    coordinator->ended =
        calloc((size_t)config->world_size, sizeof(*coordinator->ended));
    if (coordinator->ended)
        return coordinator;
    free(coordinator);
    return NULL;
}

void rg_coordinator_destroy(struct rg_coordinator *coordinator)
{
    if (!coordinator)
        return;
    while (coordinator->groups) {
        struct rg_led *led = coordinator->groups;

        coordinator->groups = led->next;
        led_free(led);
    }
    free(coordinator->ended);
    free(coordinator);
}

void rg_coordinator_step(struct rg_coordinator *coordinator,
                         const struct rg_input *input,
                         struct rg_effects *effects)
{
    switch (input->kind) {
    case RG_INPUT_MESSAGE:
        on_message(coordinator, input->peer, input->message, effects);
        break;
    case RG_INPUT_TIMER:
        on_timer(coordinator, input->timer, effects);
        break;
    case RG_INPUT_GONE:
    case RG_INPUT_EXITED:
        on_end(coordinator, input, effects);
        break;
    default:
        break;
    }
}

void rg_coordinator_retire(struct rg_coordinator *coordinator,
                           struct rg_effects *effects)
{
    while (coordinator->groups)
        if (!coordinator->groups->view ||
            !rg_led_hand_over(coordinator, coordinator->groups, effects))
            rg_led_remove(coordinator, coordinator->groups, effects);
}

const struct rg_view *
rg_coordinator_view(const struct rg_coordinator *coordinator, uint32_t group)
{
    const struct rg_led *led = rg_led_find(coordinator, group);

    return led ? led->view : NULL;
}

int rg_coordinator_is_idle(const struct rg_coordinator *coordinator)
{
    return coordinator->groups == NULL;
}

int rg_coordinator_is_steady(const struct rg_coordinator *coordinator,
                             uint32_t group)
{
    const struct rg_led *led = rg_led_find(coordinator, group);

    return led && led->phase == RG_LED_STEADY;
}

uint64_t rg_coordinator_dropped(const struct rg_coordinator *coordinator)
{
    return coordinator->dropped;
}
