/* Who joins, leaves, dies, is alive, and what members report. */
#include <stdlib.h>

#include "runtime/control/coordinator_state.h"
#include "runtime/core/log.h"
#include "runtime/core/seq.h"
#include "runtime/status.h"

static int is_live(const struct rg_member *member)
{
    return member->status == RG_MEMBER_ACTIVE ||
           member->status == RG_MEMBER_JOINING;
}

static int covers(uint32_t process, const struct rg_member *member)
{
    return member->incarnation >> RG_INCARNATION_SHIFT <= process;
}

/* ---- forming ------------------------------------------------------------ */

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
    if (!message->status && message->first_seq != view->first_seq)
        return "first seq";
    if (message->info.region_bytes != other->info.region_bytes)
        return "region size";
    if (message->info.layout_hash != other->info.layout_hash)
        return "layout (another build, algorithm table or RG_NODE_RANKS)";
    if (message->info.device_kind != other->info.device_kind)
        return "device kind";
    return NULL;
}

/* Nobody will join from there. */
static void mark_ended(struct rg_led *led, int slot)
{
    led->proposal->members[slot].status = RG_MEMBER_FAILED;
    led->proposal->members[slot].world_rank = slot;
    rg_bitset_clear(&led->waiting, slot);
}

static struct rg_led *forming_create(struct rg_coordinator *coordinator,
                                     const struct rg_message *message,
                                     struct rg_effects *effects)
{
    int capacity = message->capacity;
    struct rg_led *led;

    if (capacity < coordinator->config.world_size)
        capacity = coordinator->config.world_size;
    led = rg_led_create(coordinator, message->group, capacity);
    if (!led)
        return NULL;
    led->proposal = rg_view_create(message->group, capacity);
    if (!led->proposal) {
        rg_led_remove(coordinator, led, effects);
        return NULL;
    }
    led->term = 1;
    led->proposal->first_seq = message->first_seq;
    for (int slot = 0; slot < coordinator->config.world_size; slot++)
        if (coordinator->ended[slot])
            mark_ended(led, slot);
        else
            rg_bitset_set(&led->waiting, slot);
    rg_effects_timer(effects, RG_TIMER_TICK, led->id,
                     coordinator->config.heartbeat_ms);
    return led;
}

/* Groups are formed by the first rank that lives. */
static int may_form(const struct rg_coordinator *coordinator)
{
    for (int rank = coordinator->config.first; rank < coordinator->config.rank;
         rank++)
        if (!coordinator->ended[rank])
            return 0;
    return coordinator->config.rank >= coordinator->config.first;
}

/* The end of a group that has no view: the same error for everyone. */
static void dissolve(struct rg_coordinator *coordinator, struct rg_led *led,
                     int status, struct rg_effects *effects)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_ERROR);

    if (message)
        message->status = status;
    for (int slot = 0; slot < led->proposal->capacity; slot++)
        if (is_live(&led->proposal->members[slot]))
            rg_led_send(led, slot, message, effects);
    rg_message_unref(message);
    rg_led_remove(coordinator, led, effects);
}

/* Once all have asked. */
static void try_form(struct rg_coordinator *coordinator, struct rg_led *led,
                     struct rg_effects *effects)
{
    if (rg_bitset_next(&led->waiting, 0) >= 0)
        return;
    if (led->join_status)
        dissolve(coordinator, led, led->join_status, effects);
    else
        rg_led_prepare(coordinator, led, effects);
}

static void join_first(struct rg_coordinator *coordinator, struct rg_led *led,
                       int rank, const struct rg_message *message,
                       struct rg_effects *effects)
{
    struct rg_view *view = led->proposal;
    const char *conflict;

    if (led->phase != RG_LED_FORMING || rank >= led->waiting.bits ||
        !rg_bitset_test(&led->waiting, rank)) {
        coordinator->dropped++;
        return;
    }
    conflict = join_conflict(coordinator, view, message);
    if (conflict && !led->join_status)
        rg_effects_log(effects, RG_LOG_ERROR,
                       "group %u: rank %d joins with a different %s", led->id,
                       rank, conflict);
    if (conflict)
        led->join_status = RG_ECONFIG;
    view->members[rank] = (struct rg_member){
        .status = RG_MEMBER_JOINING,
        .world_rank = rank,
        .incarnation = message->incarnation,
        .info = message->info,
        .endpoint = message->endpoint,
    };
    if (rank == 0 && rg_view_set_policy(view, rg_message_text(message)))
        effects->rc = RG_ENOMEM;
    rg_bitset_clear(&led->waiting, rank);
    try_form(coordinator, led, effects);
}

/* ---- joining a group that runs ------------------------------------------ */

void rg_led_forget_joins(struct rg_led *led, int admitted_only)
{
    struct rg_led_join **link = &led->joins;

    while (*link) {
        struct rg_led_join *join = *link;

        if (admitted_only && !rg_view_is_active(led->view, join->rank,
                                                join->message->incarnation)) {
            link = &join->next;
            continue;
        }
        *link = join->next;
        rg_message_unref(join->message);
        free(join);
    }
}

void rg_led_drop_join(struct rg_led *led, int rank, uint32_t last)
{
    struct rg_led_join **link = &led->joins;

    while (*link) {
        struct rg_led_join *join = *link;

        if (join->rank != rank || join->message->incarnation > last) {
            link = &join->next;
            continue;
        }
        *link = join->next;
        rg_message_unref(join->message);
        free(join);
    }
}

static int is_reserved(const struct rg_led *led, int slot)
{
    const struct rg_led_join *join = led->joins;

    while (join && join->slot != slot)
        join = join->next;
    return join != NULL;
}

/* Its own slot of before, else the first one that nobody can claim; or -1. */
static int find_seat(const struct rg_led *led, int rank)
{
    const struct rg_view *view = led->view;
    int own = rg_view_slot_of(view, rank);

    for (int slot = 0; own < 0 && slot < view->capacity; slot++) {
        const struct rg_member *member = &view->members[slot];

        if (member->status != RG_MEMBER_ACTIVE && !member->quarantine &&
            !is_reserved(led, slot))
            own = slot;
    }
    return own;
}

static int has_other_straggler(const struct rg_view *view, int own)
{
    for (int slot = 0; slot < view->capacity; slot++)
        if (slot != own && view->members[slot].quarantine)
            return 1;
    return 0;
}

static void keep_join(struct rg_led *led, int slot, int rank,
                      struct rg_message *message, struct rg_effects *effects)
{
    struct rg_led_join *join = led->joins;

    while (join && join->rank != rank)
        join = join->next;
    if (!join) {
        join = calloc(1, sizeof(*join));
        if (!join) {
            effects->rc = RG_ENOMEM;
            return;
        }
        join->next = led->joins;
        led->joins = join;
        if (has_other_straggler(led->view, slot))
            rg_effects_log(effects, RG_LOG_INFO,
                           "group %u: rank %d waits to be let in until nobody "
                           "left behind can act any more (rg_comm_vouch)",
                           led->id, rank);
    }
    rg_message_ref(message);
    rg_message_unref(join->message);
    join->slot = slot;
    join->rank = rank;
    join->message = message;
}

static void refuse_join(const struct rg_led *led, int rank, int status,
                        struct rg_effects *effects)
{
    struct rg_message *message = rg_led_message(led, RG_MSG_ERROR);

    if (message)
        message->status = status;
    rg_effects_send(effects, rank, message);
    rg_message_unref(message);
}

/*
 * A new incarnation is the end of the one before: it has said so by joining,
 * unless it has seen an epoch that this coordinator has not.
 */
static void join_again(struct rg_coordinator *coordinator, struct rg_led *led,
                       int rank, struct rg_message *message,
                       struct rg_effects *effects)
{
    int slot = find_seat(led, rank);
    const struct rg_member *before =
        slot < 0 ? NULL : &led->view->members[slot];
    const char *conflict = join_conflict(coordinator, led->view, message);

    if (led->phase == RG_LED_CLAIMING || message->epoch > led->view->epoch ||
        (before && before->world_rank == rank &&
         before->incarnation >= message->incarnation)) {
        coordinator->dropped++;
        return;
    }
    if (conflict || !before) {
        rg_effects_log(effects, RG_LOG_ERROR,
                       "group %u: rank %d cannot join: %s", led->id, rank,
                       conflict ? conflict : "no slot is free");
        refuse_join(led, rank, conflict ? RG_ECONFIG : RG_ENOSPC, effects);
        return;
    }
    keep_join(led, slot, rank, message, effects);
    if (before->world_rank == rank)
        rg_led_on_fenced(coordinator, led, rank, before->incarnation, effects);
}

void rg_led_on_join(struct rg_coordinator *coordinator, struct rg_led *led,
                    int rank, struct rg_message *message,
                    struct rg_effects *effects)
{
    /* Who joins lives: what was known of its last process is over. */
    if (rank < coordinator->config.world_size &&
        message->incarnation >> RG_INCARNATION_SHIFT > coordinator->ended[rank])
        coordinator->ended[rank] = 0;
    if (!led && !message->status && may_form(coordinator)) {
        led = forming_create(coordinator, message, effects);
        if (!led)
            effects->rc = RG_ENOMEM;
    }
    if (!led)
        coordinator->dropped++;
    else if (led->view)
        join_again(coordinator, led, rank, message, effects);
    else
        join_first(coordinator, led, rank, message, effects);
}

/* ---- leaving and dying -------------------------------------------------- */

static int nobody_is_present(const struct rg_led *led)
{
    for (int rank = 0; rank < led->view->nactive; rank++)
        if (rg_led_is_present(led, led->view->order[rank]))
            return 0;
    return 1;
}

/* The view in force has lost a member; what goes on has to do without. */
static void depart(struct rg_coordinator *coordinator, struct rg_led *led,
                   int slot, struct rg_effects *effects)
{
    rg_led_abort_gathers(led, RG_ECLOSED, effects);
    if (nobody_is_present(led))
        rg_led_remove(coordinator, led, effects);
    else
        rg_led_lose_member(coordinator, led, slot, effects);
}

void rg_led_on_leave(struct rg_coordinator *coordinator, struct rg_led *led,
                     int slot, const struct rg_message *message,
                     struct rg_effects *effects)
{
    if (!led->view) {
        led->proposal->members[slot].status = RG_MEMBER_LEFT;
        dissolve(coordinator, led, RG_ECLOSED, effects);
    } else if (message->epoch > led->view->epoch) {
        coordinator->dropped++;
    } else if (led->view->members[slot].incarnation == message->incarnation &&
               rg_led_is_present(led, slot)) {
        rg_bitset_set(&led->left, slot);
        depart(coordinator, led, slot, effects);
    } else {
        rg_led_lose_member(coordinator, led, slot, effects);
    }
}

static void end_before_first_view(struct rg_coordinator *coordinator,
                                  struct rg_led *led, int rank,
                                  struct rg_effects *effects)
{
    int slot = rank < led->waiting.bits ? rank : -1;

    if (slot < 0)
        return;
    if (led->phase != RG_LED_FORMING) {
        if (is_live(&led->proposal->members[slot]))
            rg_led_lose_member(coordinator, led, slot, effects);
        return;
    }
    mark_ended(led, slot);
    try_form(coordinator, led, effects);
}

static void end_member(struct rg_coordinator *coordinator, struct rg_led *led,
                       int slot, struct rg_effects *effects)
{
    if (!rg_led_is_present(led, slot))
        return;
    rg_effects_log(effects, RG_LOG_WARN, "group %u: rank %d has died", led->id,
                   led->view->members[slot].world_rank);
    rg_bitset_set(&led->gone, slot);
    depart(coordinator, led, slot, effects);
}

/* Its memory is clean again, now or when it leaves. */
static void lift_quarantine(struct rg_led *led, int slot)
{
    struct rg_member *member = &led->view->members[slot];

    if (member->status == RG_MEMBER_ACTIVE) {
        rg_bitset_set(&led->exited, slot);
        return;
    }
    member->quarantine = 0;
    if (led->proposal && !is_live(&led->proposal->members[slot]))
        led->proposal->members[slot].quarantine = 0;
}

void rg_led_on_end(struct rg_coordinator *coordinator, struct rg_led *led,
                   int rank, uint32_t process, int exited,
                   struct rg_effects *effects)
{
    const struct rg_view *members = rg_led_members(led);
    int slot = rg_view_slot_of(members, rank);

    if (!led->view) {
        end_before_first_view(coordinator, led, rank, effects);
        return;
    }
    rg_led_drop_join(led, rank, ((process + 1) << RG_INCARNATION_SHIFT) - 1);
    if (slot < 0 || !covers(process, &led->view->members[slot]))
        return;
    /* A joiner that has this slot in the change to come. */
    if (led->proposal && is_live(&led->proposal->members[slot]) &&
        covers(process, &led->proposal->members[slot]) &&
        led->proposal->members[slot].incarnation !=
            led->view->members[slot].incarnation) {
        rg_led_lose_member(coordinator, led, slot, effects);
        return;
    }
    if (exited)
        lift_quarantine(led, slot);
    if (led->view->members[slot].status == RG_MEMBER_ACTIVE)
        end_member(coordinator, led, slot, effects);
    else if (led->is_starved)
        rg_led_review(coordinator, led, effects);
}

void rg_led_on_fenced(struct rg_coordinator *coordinator, struct rg_led *led,
                      int rank, uint32_t incarnation,
                      struct rg_effects *effects)
{
    int slot = led->view ? rg_view_slot_of(led->view, rank) : -1;

    if (slot < 0 || led->view->members[slot].incarnation != incarnation)
        return;
    lift_quarantine(led, slot);
    if (led->view->members[slot].status == RG_MEMBER_ACTIVE)
        end_member(coordinator, led, slot, effects);
    else if (led->is_starved)
        rg_led_review(coordinator, led, effects);
}

/* ---- reports and heartbeats --------------------------------------------- */

/* All may name all, so a pair takes a bit. */
static void keep_fault(struct rg_led *led, int from, int to,
                       struct rg_effects *effects)
{
    struct rg_bitset *faults = &led->slots[to].faults;

    if (!faults->words && rg_bitset_init(faults, led->capacity)) {
        effects->rc = RG_ENOMEM;
        return;
    }
    rg_bitset_set(faults, from);
    led->has_faults = 1;
}

/* Reports are repeated: what is new is a sign that there is more to come. */
static void note(struct rg_led *led, struct rg_bitset *slots, int slot)
{
    led->is_hearing |= !rg_bitset_test(slots, slot);
    rg_bitset_set(slots, slot);
}

/* A stalled member waits for what the others should have sent it. */
static void keep_report(struct rg_led *led, int slot,
                        const struct rg_message *message,
                        struct rg_effects *effects)
{
    int stalled = message->status == RG_EVIDENCE_STALLED;

    for (int rank = 0; rank < led->view->nactive; rank++) {
        int other = led->view->order[rank];

        if (!rg_message_has_slot(message, other) || other == slot)
            continue;
        keep_fault(led, stalled ? other : slot, stalled ? slot : other,
                   effects);
        note(led, &led->accused, other);
    }
    if (!stalled)
        return;
    if (rg_bitset_next(&led->stalled, 0) < 0)
        led->stall_seq = message->claimed;
    rg_seq_raise(&led->stall_seq, message->claimed);
    note(led, &led->stalled, slot);
}

void rg_led_on_report(struct rg_coordinator *coordinator, struct rg_led *led,
                      int slot, const struct rg_message *message,
                      struct rg_effects *effects)
{
    if (message->status == RG_EVIDENCE_GONE ||
        message->status == RG_EVIDENCE_EXITED) {
        rg_led_on_end(coordinator, led, message->world_rank, message->subject,
                      message->status == RG_EVIDENCE_EXITED, effects);
    } else if (led->view && message->epoch == led->view->epoch &&
               rg_led_is_present(led, slot)) {
        keep_report(led, slot, message, effects);
        led->is_disturbed = 1;
        rg_led_review(coordinator, led, effects);
    } else {
        coordinator->dropped++;
    }
}

void rg_led_on_heartbeat(struct rg_coordinator *coordinator, struct rg_led *led,
                         int slot, const struct rg_message *message,
                         struct rg_effects *effects)
{
    struct rg_led_slot *known = &led->slots[slot];

    if (!led->view || message->epoch != led->view->epoch)
        return;
    rg_bitset_set(&led->confirmed, slot);
    rg_seq_raise(&known->completed, message->completed);
    if (message->status == RG_HEARTBEAT_HELD) {
        led->is_torn |= led->phase == RG_LED_STEADY;
        rg_led_review(coordinator, led, effects);
    } else if (message->status == RG_HEARTBEAT_URGENT) {
        rg_led_beat(led, effects);
    }
}

/* ---- notices ------------------------------------------------------------ */

static void send_notice(const struct rg_led *led, enum rg_notice kind,
                        const struct rg_bitset *slots,
                        struct rg_effects *effects)
{
    struct rg_message *message;

    if (rg_bitset_next(slots, 0) < 0)
        return;
    message = rg_led_message(led, RG_MSG_NOTICE);
    if (message && rg_message_set_slots(message, slots)) {
        rg_message_unref(message);
        message = NULL;
    }
    if (message)
        message->status = (int)kind;
    rg_led_cast_all(led, message, effects);
}

/* Who is dead or silent. */
static void add_lost(const struct rg_coordinator *coordinator,
                     const struct rg_led *led, struct rg_bitset *slots)
{
    uint64_t limit = rg_machine_ticks(coordinator->config.miss_ms,
                                      coordinator->config.heartbeat_ms);

    for (int rank = 0; rank < led->view->nactive; rank++) {
        int slot = led->view->order[rank];

        if (rg_bitset_test(&led->gone, slot) ||
            led->slots[slot].silent >= limit)
            rg_bitset_set(slots, slot);
    }
}

/*
 * Whom others name. Who waits itself is not to blame, unless all do; so this
 * is for a time when all who wait have said so.
 */
static void add_accused(const struct rg_led *led, struct rg_bitset *slots)
{
    for (int slot = rg_bitset_next(&led->accused, 0); slot >= 0;
         slot = rg_bitset_next(&led->accused, slot + 1))
        if (!rg_bitset_test(&led->stalled, slot))
            rg_bitset_set(slots, slot);
    if (rg_bitset_next(slots, 0) < 0)
        rg_bitset_copy(slots, &led->accused);
}

void rg_led_notify(const struct rg_coordinator *coordinator,
                   const struct rg_led *led, struct rg_effects *effects)
{
    struct rg_bitset slots;

    if (rg_bitset_init(&slots, led->view->capacity)) {
        effects->rc = RG_ENOMEM;
        return;
    }
    for (const struct rg_led_join *join = led->joins; join; join = join->next)
        rg_bitset_set(&slots, join->slot);
    if (!rg_view_has_stragglers(led->view))
        send_notice(led, RG_NOTICE_JOINERS, &slots, effects);
    rg_bitset_zero(&slots);
    add_lost(coordinator, led, &slots);
    if (!led->is_hearing)
        add_accused(led, &slots);
    if (coordinator->config.mode != RG_MODE_SYNC)
        send_notice(led, RG_NOTICE_FAILED, &slots, effects);
    rg_bitset_fini(&slots);
}
