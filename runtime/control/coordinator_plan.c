/* Planned changes: what all active members ask for in the same words. */
#include <string.h>

#include "runtime/control/coordinator_state.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

static void forget(struct rg_led *led)
{
    rg_message_unref(led->plan.request);
    led->plan.request = NULL;
    led->plan.status = RG_OK;
    led->plan.is_ready = 0;
    rg_bitset_zero(&led->plan.asked);
}

void rg_led_reset_plan(struct rg_led *led)
{
    forget(led);
    led->plan.call = 1;
    led->plan.refused = RG_OK;
}

int rg_led_plan_removes(const struct rg_led *led, int slot)
{
    return led->plan.is_ready && led->plan.request->kind == RG_MSG_CHANGE &&
           rg_message_has_slot(led->plan.request, slot);
}

static struct rg_message *refusal(const struct rg_led *led, uint64_t call,
                                  int status)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_ERROR);

    if (message) {
        message->call = call;
        message->status = status;
    }
    return message;
}

static int is_same(const struct rg_message *a, const struct rg_message *b)
{
    return a->kind == b->kind && a->status == b->status &&
           a->bytes == b->bytes &&
           (!a->bytes || !memcmp(a->data, b->data, a->bytes));
}

/* Somebody must remain. */
static int is_possible(const struct rg_led *led)
{
    const struct rg_message *request = led->plan.request;

    for (int rank = 0; rank < led->view->nactive; rank++) {
        int slot = led->view->order[rank];

        if (rg_led_is_present(led, slot) &&
            (request->kind != RG_MSG_CHANGE ||
             !rg_message_has_slot(request, slot)))
            return 1;
    }
    return 0;
}

/* All may say that these, members no more, can do no harm any more. */
static void vouch(struct rg_led *led)
{
    for (int slot = 0; slot < led->view->capacity && led->plan.request->status;
         slot++)
        if (led->view->members[slot].status != RG_MEMBER_ACTIVE &&
            rg_led_plan_removes(led, slot))
            led->view->members[slot].quarantine = 0;
}

void rg_led_refuse_plan(struct rg_led *led, int status,
                        struct rg_effects *effects)
{
    rg_led_cast_all(led, refusal(led, led->plan.call, status), effects);
    led->plan.refused = status;
    led->plan.call++;
    forget(led);
}

void rg_led_try_plan(struct rg_coordinator *coordinator, struct rg_led *led,
                     struct rg_effects *effects)
{
    if (led->phase != RG_LED_STEADY || !led->plan.request || led->plan.is_ready)
        return;
    for (int rank = 0; rank < led->view->nactive; rank++) {
        int slot = led->view->order[rank];

        if (rg_led_is_present(led, slot) &&
            !rg_bitset_test(&led->plan.asked, slot))
            return;
    }
    if (!led->plan.status && !is_possible(led))
        led->plan.status = RG_EINVAL;
    if (!led->plan.status) {
        led->plan.is_ready = 1;
        vouch(led);
        rg_led_review(coordinator, led, effects);
        return;
    }
    rg_led_refuse_plan(led, led->plan.status, effects);
}

static void take(struct rg_led *led, int slot, struct rg_message *message,
                 struct rg_effects *effects)
{
    rg_bitset_set(&led->plan.asked, slot);
    if (!led->plan.request) {
        led->plan.request = rg_message_ref(message);
    } else if (!led->plan.status && !is_same(led->plan.request, message)) {
        rg_effects_log(
            effects, RG_LOG_ERROR,
            "group %u: the %s of slot %d is not the others'", led->id,
            message->kind == RG_MSG_POLICY ? "policy" : "change", slot);
        led->plan.status =
            message->kind == RG_MSG_POLICY ? RG_EPOLICY : RG_EINVAL;
    }
}

void rg_led_on_plan(struct rg_coordinator *coordinator, struct rg_led *led,
                    int slot, struct rg_message *message,
                    struct rg_effects *effects)
{
    if (!led->view || message->epoch != led->view->epoch ||
        !rg_led_is_present(led, slot)) {
        coordinator->dropped++;
    } else if (message->call + 1 == led->plan.call) {
        struct rg_message *again =
            refusal(led, message->call, led->plan.refused);

        rg_led_send(led, slot, again, effects);
        rg_message_unref(again);
    } else if (message->call != led->plan.call ||
               rg_bitset_test(&led->plan.asked, slot)) {
        coordinator->dropped++;
    } else {
        take(led, slot, message, effects);
        rg_led_try_plan(coordinator, led, effects);
    }
}

void rg_led_apply_plan(struct rg_led *led, struct rg_effects *effects)
{
    struct rg_view *proposal = led->proposal;

    proposal->plan = led->plan.is_ready ? led->plan.call : 0;
    if (!led->plan.is_ready)
        return;
    if (led->plan.request->kind == RG_MSG_POLICY &&
        rg_view_set_policy(proposal, rg_message_text(led->plan.request)))
        effects->rc = RG_ENOMEM;
    for (int rank = 0; rank < led->view->nactive; rank++) {
        int slot = led->view->order[rank];

        if (rg_led_plan_removes(led, slot))
            proposal->members[slot].status = RG_MEMBER_INACTIVE;
    }
}
