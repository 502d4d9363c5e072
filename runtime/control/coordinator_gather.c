/* The gather service: one block of every member to every member. */
#include <stdlib.h>
#include <string.h>

#include "runtime/control/coordinator_state.h"
#include "runtime/status.h"

/* A call that some members have not made yet. */
struct rg_led_gather {
    struct rg_led_gather *next;
    uint64_t call;
    size_t bytes; /* of the first block that came */
    int status;
    int missing;
    unsigned char *got;    /* [nactive] */
    unsigned char *blocks; /* [nactive * bytes] in rank order */
};

static void gather_destroy(struct rg_led_gather *gather)
{
    free(gather->got);
    free(gather->blocks);
    free(gather);
}

static struct rg_led_gather *gather_create(const struct rg_led *led,
                                           uint64_t call, size_t bytes)
{
    size_t nactive = (size_t)led->view->nactive;
    struct rg_led_gather *gather = calloc(1, sizeof(*gather));

    if (!gather)
        return NULL;
    gather->call = call;
    gather->bytes = bytes;
    gather->missing = led->view->nactive;
    gather->got = calloc(nactive, 1);
    gather->blocks = malloc(nactive * bytes + 1);
    if (gather->got && gather->blocks)
        return gather;
    gather_destroy(gather);
    return NULL;
}

void rg_led_forget_gathers(struct rg_led *led)
{
    while (led->gathers) {
        struct rg_led_gather *gather = led->gathers;

        led->gathers = gather->next;
        gather_destroy(gather);
    }
    rg_message_unref(led->gathered);
    led->gathered = NULL;
    led->gathered_call = 0;
}

/* Answers every member that has contributed, then forgets the call. */
static void finish(struct rg_led *led, struct rg_led_gather *gather, int status,
                   struct rg_effects *effects)
{
    const struct rg_view *view = led->view;
    size_t bytes = status ? 0 : (size_t)view->nactive * gather->bytes;
    struct rg_message *message = rg_led_message(led, RG_MSG_GATHERED);
    struct rg_led_gather **link = &led->gathers;

    if (message && rg_message_set_data(message, gather->blocks, bytes)) {
        rg_message_unref(message);
        message = NULL;
    }
    if (message) {
        message->call = gather->call;
        message->status = status;
    }
    for (int rank = 0; rank < view->nactive; rank++)
        if (gather->got[rank])
            rg_effects_send(
                effects, view->members[view->order[rank]].world_rank, message);
    rg_message_unref(led->gathered);
    led->gathered = message;
    led->gathered_call = gather->call;
    while (*link != gather)
        link = &(*link)->next;
    *link = gather->next;
    gather_destroy(gather);
}

void rg_led_abort_gathers(struct rg_led *led, int status,
                          struct rg_effects *effects)
{
    while (led->gathers)
        finish(led, led->gathers, status, effects);
}

static void refuse(const struct rg_led *led, int slot,
                   const struct rg_message *message, int status,
                   struct rg_effects *effects)
{
    struct rg_message *reply = rg_led_message(led, RG_MSG_GATHERED);

    if (reply) {
        reply->epoch = message->epoch;
        reply->call = message->call;
        reply->status = status;
    }
    rg_led_send(led, slot, reply, effects);
    rg_message_unref(reply);
}

/* The open gather of this call, opened if it is the first to make it. */
static struct rg_led_gather *gather_open(struct rg_led *led,
                                         const struct rg_message *message)
{
    struct rg_led_gather *gather = led->gathers;

    while (gather && gather->call != message->call)
        gather = gather->next;
    if (gather)
        return gather;
    gather = gather_create(led, message->call, message->bytes);
    if (gather) {
        gather->next = led->gathers;
        led->gathers = gather;
    }
    return gather;
}

static void contribute(struct rg_led *led, struct rg_led_gather *gather,
                       int rank, const struct rg_message *message,
                       struct rg_effects *effects)
{
    gather->got[rank] = 1;
    if (message->status || message->bytes != gather->bytes)
        gather->status = RG_EINVAL;
    else if (message->bytes)
        memcpy(gather->blocks + (size_t)rank * gather->bytes, message->data,
               gather->bytes);
    if (--gather->missing == 0)
        finish(led, gather, gather->status, effects);
}

/* Whoever makes this call will not add to one before. */
static void end_passed_over(struct rg_led *led, int rank, uint64_t call,
                            struct rg_effects *effects)
{
    struct rg_led_gather *next;

    for (struct rg_led_gather *gather = led->gathers; gather; gather = next) {
        next = gather->next;
        if (gather->call < call && !gather->got[rank])
            finish(led, gather, RG_ETIMEDOUT, effects);
    }
}

static int someone_is_missing(const struct rg_led *led)
{
    for (int rank = 0; rank < led->view->nactive; rank++)
        if (!rg_led_is_present(led, led->view->order[rank]))
            return 1;
    return 0;
}

/* A call that is over: its answer was lost, or others have given it up. */
static void answer_late(const struct rg_led *led, int slot,
                        const struct rg_message *message,
                        struct rg_effects *effects)
{
    if (led->gathered && led->gathered->call == message->call)
        rg_led_send(led, slot, led->gathered, effects);
    else
        refuse(led, slot, message, RG_ETIMEDOUT, effects);
}

void rg_led_on_gather(struct rg_coordinator *coordinator, struct rg_led *led,
                      int slot, const struct rg_message *message,
                      struct rg_effects *effects)
{
    int rank = led->view ? rg_view_rank_of(led->view, slot) : -1;
    struct rg_led_gather *gather;

    if (rank < 0 || message->epoch != led->view->epoch) {
        refuse(led, slot, message, RG_EABORTED, effects);
        return;
    }
    end_passed_over(led, rank, message->call, effects);
    if (message->call <= led->gathered_call) {
        answer_late(led, slot, message, effects);
        return;
    }
    if (someone_is_missing(led)) {
        refuse(led, slot, message, RG_ECLOSED, effects);
        return;
    }
    gather = gather_open(led, message);
    if (!gather) {
        effects->rc = RG_ENOMEM;
    } else if (message->status == RG_ETIMEDOUT) {
        gather->got[rank] = 1;
        finish(led, gather, message->status, effects);
    } else if (gather->got[rank]) {
        coordinator->dropped++;
    } else {
        contribute(led, gather, rank, message, effects);
    }
}
