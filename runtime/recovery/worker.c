#include <stdlib.h>
#include <string.h>

#include "runtime/core/clock.h"
#include "runtime/core/cond.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/device/word.h"
#include "runtime/exec/hold.h"
#include "runtime/exec/legacy_path.h"
#include "runtime/exec/messages.h"
#include "runtime/exec/proxy_path.h"
#include "runtime/exec/routes.h"
#include "runtime/exec/select.h"
#include "runtime/recovery/recovery.h"

enum {
    WORKER_POLL_MS = 5,  /* between two looks at the mailbox */
    WORKER_PROVE_MS = 1, /* between two looks at the peers' marks */
    NS_PER_MS = 1000000
};

static struct rg_driver *driver_of(const struct rg_recovery *recovery)
{
    return recovery->comm->context->driver;
}

static const struct rg_settings *settings_of(const struct rg_recovery *recovery)
{
    return &recovery->comm->context->settings;
}

static int rank_of(const struct rg_recovery *recovery)
{
    return recovery->comm->context->config.rank;
}

static void reach(const struct rg_recovery *recovery, enum rg_phase phase,
                  uint64_t epoch)
{
    const struct rg_probe *probe = &recovery->comm->context->config.probe;

    if (probe->reached)
        probe->reached(probe->arg, phase, epoch);
}

/* ---- what the user hears ------------------------------------------------ */

static void notify(struct rg_recovery *recovery, enum rg_notice_kind kind,
                   uint64_t epoch, int status, const struct rg_bitset *slots)
{
    struct rg_notice notice = {.kind = kind, .epoch = epoch, .status = status};

    for (int slot = -1; slots && (slot = rg_bitset_next(slots, slot + 1)) >= 0;)
        notice.slots[slot / 64] |= 1ull << (slot % 64);
    pthread_mutex_lock(&recovery->comm->lock);
    rg_notices_push(&recovery->notices, &notice);
    pthread_cond_broadcast(&recovery->changed);
    pthread_mutex_unlock(&recovery->comm->lock);
}

static void refuse(struct rg_recovery *recovery, int status)
{
    pthread_mutex_lock(&recovery->comm->lock);
    recovery->refusals++;
    recovery->refusal = status;
    pthread_cond_broadcast(&recovery->changed);
    pthread_mutex_unlock(&recovery->comm->lock);
}

/* ---- out of the group --------------------------------------------------- */

/* Every seq that is known to have completed everywhere. */
static uint64_t floor_of(struct rg_recovery *recovery)
{
    const struct rg_comm *comm = recovery->comm;
    uint64_t floor;

    if (!comm->view)
        return 0;
    if (rg_driver_committed(driver_of(recovery), comm->group, comm->view->epoch,
                            &floor))
        floor = comm->view->committed_seq;
    return floor;
}

static void closed(struct rg_recovery *recovery, int status)
{
    struct rg_comm *comm = recovery->comm;
    const uint64_t floor = floor_of(recovery);

    pthread_mutex_lock(&comm->lock);
    rg_ledger_leave(&recovery->ledger, floor);
    recovery->epoch = 0;
    recovery->failed = status;
    rg_store_release(&comm->closed, (uint64_t)-status);
    pthread_cond_broadcast(&recovery->changed);
    pthread_mutex_unlock(&comm->lock);
}

/*
 * From now on every call and every launch ends at once. Only a device that has
 * been seen to stop is said to be fenced.
 */
static void close_down(struct rg_recovery *recovery, int status)
{
    struct rg_comm *comm = recovery->comm;
    int stuck;

    recovery->finding = 0;
    closed(recovery, status);
    stuck = rg_hold_begin(comm, (int)settings_of(recovery)->window_ms);
    if (stuck == RG_OK)
        stuck = rg_hold_leave(comm);
    if (stuck == RG_OK)
        rg_driver_fenced(driver_of(recovery), comm->group);
    reach(recovery, RG_PHASE_CLOSED, 0);
    notify(recovery, RG_NOTICE_CLOSED, 0, status, NULL);
}

/* This rank cannot go on: the others go on without it. */
static void give_up(struct rg_recovery *recovery, int status)
{
    close_down(recovery, status);
    rg_driver_leave(driver_of(recovery), recovery->comm->group);
}

/* ---- the flush ---------------------------------------------------------- */

/* Whatever has failed in the epoch is over with it. */
static void forget_failures(struct rg_recovery *recovery)
{
    struct rg_comm *comm = recovery->comm;
    struct rg_legacy_failure legacy;

    rg_legacy_path_failure(comm, &legacy, NULL);
    recovery->legacy_failure = legacy.count;
    recovery->failure = rg_load_acquire(&comm->mapped->mailbox.failure);
}

/*
 * Clean when the change first comes here; when it begins again, others may have
 * got further the first time, and what they have written must stay.
 */
static int promise_workspace(struct rg_recovery *recovery,
                             const struct rg_group_event *event)
{
    int status;

    if (recovery->promised == event->epoch &&
        recovery->workspace == event->workspace)
        return RG_OK;
    status = rg_hold_clean(recovery->comm, event->workspace);
    if (status)
        return status;
    recovery->promised = event->epoch;
    recovery->workspace = event->workspace;
    return RG_OK;
}

/* Promises that nothing of the old epoch ends here any more. */
static void quiesced(struct rg_recovery *recovery, uint64_t epoch)
{
    struct rg_comm *comm = recovery->comm;
    struct rg_pairs pairs = {0};

    if (comm->view && rg_messages_held(comm, &pairs)) {
        give_up(recovery, RG_ENOMEM);
        return;
    }
    rg_driver_quiesced(driver_of(recovery), comm->group, epoch,
                       comm->held.completed, comm->held.claimed, &pairs);
    rg_pairs_fini(&pairs);
}

static void on_prepare(struct rg_recovery *recovery,
                       const struct rg_group_event *event)
{
    struct rg_comm *comm = recovery->comm;
    int status;

    reach(recovery, RG_PHASE_PREPARE, event->epoch);
    recovery->finding = 0;
    rg_store_relaxed(&comm->settling, 1);
    status = rg_hold_begin(comm, (int)settings_of(recovery)->park_ms);
    if (status == RG_OK)
        status = promise_workspace(recovery, event);
    if (status) {
        rg_log(RG_LOG_ERROR, rank_of(recovery),
               "group %u: the device does not come to rest: %s", comm->group,
               rg_status_string(status));
        give_up(recovery, RG_EISOLATED);
        return;
    }
    forget_failures(recovery);
    reach(recovery, RG_PHASE_HELD, event->epoch);
    quiesced(recovery, event->epoch);
}

/* Reads the view's policy, unless it is that of the view before. */
static int read_selection(struct rg_recovery *recovery)
{
    const struct rg_comm *comm = recovery->comm;
    const char *policy = recovery->pending->policy;

    if (rg_selection_is(recovery->selection, policy))
        return RG_OK;
    rg_selection_destroy(recovery->selection);
    recovery->selection = NULL;
    return rg_selection_create(policy, comm->context->config.device,
                               &recovery->selection);
}

/* What this rank makes of the view's policy; its routes are not known yet. */
static int make_rules(struct rg_recovery *recovery)
{
    const struct rg_comm *comm = recovery->comm;
    struct rg_plan_input input = rg_comm_plan_input(comm, recovery->pending);
    struct rg_rules rules[RG_COLL_COUNT];
    int status = read_selection(recovery);

    input.routes = NULL;
    input.selection = recovery->selection;
    if (status == RG_OK)
        status = rg_rules_build(&comm->layout, &input, rules);
    if (status == RG_OK)
        recovery->rules = rg_rules_hash(rules);
    return status;
}

static void on_view(struct rg_recovery *recovery, struct rg_group_event *event)
{
    int status;

    rg_view_destroy(recovery->pending);
    recovery->pending = event->view;
    event->view = NULL;
    reach(recovery, RG_PHASE_VIEW, event->epoch);
    status = make_rules(recovery);
    if (status)
        give_up(recovery, status);
    else
        rg_driver_view_ready(driver_of(recovery), recovery->comm->group,
                             event->epoch, recovery->rules);
}

/* ---- a new view in force ------------------------------------------------ */

/* The most ranks that share one device: their launches must fit together. */
static int view_sharers(const struct rg_view *view)
{
    int most = 1;

    for (int a = 0; a < view->nactive; a++) {
        const char *uuid = view->members[view->order[a]].info.device_uuid;
        int same = 0;

        for (int b = 0; b < view->nactive; b++)
            same += strcmp(uuid,
                           view->members[view->order[b]].info.device_uuid) == 0;
        most = same > most ? same : most;
    }
    return most;
}

/* What launches look at; before the word opens. */
static void publish(struct rg_recovery *recovery)
{
    struct rg_comm *comm = recovery->comm;

    rg_store_relaxed(&comm->sharers, (uint64_t)view_sharers(comm->view));
    rg_store_relaxed(&comm->backend, (uint64_t)comm->view->backend);
    if (recovery->joining)
        rg_store_relaxed(&comm->seq, comm->view->first_seq - 1);
}

static void opened(struct rg_recovery *recovery)
{
    struct rg_comm *comm = recovery->comm;
    const uint64_t epoch = comm->view->epoch;

    recovery->joining = 0;
    pthread_mutex_lock(&comm->lock);
    recovery->epoch = epoch;
    pthread_cond_broadcast(&recovery->changed);
    pthread_mutex_unlock(&comm->lock);
    reach(recovery, RG_PHASE_OPEN, epoch);
    notify(recovery, RG_NOTICE_VIEW, epoch, RG_OK, NULL);
}

/* Where this rank asked for something else than the group runs by. */
static void report_selection(const struct rg_recovery *recovery)
{
    const struct rg_comm *comm = recovery->comm;
    const char *own = comm->context->selection;

    if (recovery->joining && *own && strcmp(own, comm->view->policy))
        rg_log(RG_LOG_WARN, rank_of(recovery),
               "RG_POLICY and RG_ALGO differ from those in force: ignored");
}

/* Whether the plan that has been built is the group's, and as asked for. */
static int check_selection(const struct rg_recovery *recovery,
                           const struct rg_plan_input *input)
{
    const struct rg_comm *comm = recovery->comm;
    int status = RG_OK;

    if (comm->view->backend != RG_BACKEND_NEW)
        return RG_OK;
    /* Others run by what was said before the routes were known. */
    if (rg_rules_hash(comm->plan->rules) != recovery->rules) {
        rg_log(RG_LOG_ERROR, rank_of(recovery),
               "group %u: by this rank's routes other rules than the group's "
               "would apply",
               comm->group);
        return RG_EPOLICY;
    }
    /* What the group is started with must apply; later views have members and
     * routes that nobody has chosen. */
    if (comm->view->epoch == 1)
        status = rg_policy_fits(&comm->layout, comm->view->policy, input);
    if (status)
        return status;
    rg_comm_routes_report(comm, comm->view);
    rg_policy_report(&comm->layout, input);
    report_selection(recovery);
    return RG_OK;
}

static int view_open(struct rg_recovery *recovery)
{
    struct rg_comm *comm = recovery->comm;
    struct rg_plan_input input = rg_comm_plan_input(comm, comm->view);
    int status;

    input.selection = recovery->selection;
    rg_comm_routes_dense(comm, comm->view, comm->routes);
    pthread_mutex_lock(&comm->lock);
    status = rg_plan_build(&comm->layout, &input, comm->plan);
    if (status == RG_OK)
        rg_proxy_path_plan(comm, comm->plan);
    pthread_mutex_unlock(&comm->lock);
    if (status == RG_OK)
        status = check_selection(recovery, &input);
    if (status)
        return status;
    publish(recovery);
    status = rg_hold_open(comm, recovery->joining ? comm->view->first_seq - 1
                                                  : comm->held.claimed);
    if (status == RG_OK)
        rg_messages_settle(comm);
    return status;
}

/* Some member cannot be reached: the group decides what follows from that. */
static void unreachable(struct rg_recovery *recovery)
{
    recovery->finding = 0;
    rg_driver_report_unreachable(driver_of(recovery), recovery->comm->group,
                                 &recovery->slots);
    if (!recovery->joining)
        return;
    pthread_mutex_lock(&recovery->comm->lock);
    recovery->failed = RG_EFAILED;
    pthread_cond_broadcast(&recovery->changed);
    pthread_mutex_unlock(&recovery->comm->lock);
}

/* Goes on with a view that is decided, once the ways to all are found. */
static void find_and_open(struct rg_recovery *recovery)
{
    struct rg_comm *comm = recovery->comm;
    /* The legacy backend has connections of its own. */
    int status = comm->view->backend == RG_BACKEND_LEGACY
                     ? RG_OK
                     : rg_comm_routes_find(comm, comm->view, &recovery->slots);

    if (status == RG_EPENDING) {
        if (rg_clock_ns() > recovery->finding_limit)
            unreachable(recovery);
        return;
    }
    recovery->finding = 0;
    if (status == RG_EFAILED) {
        unreachable(recovery);
        return;
    }
    if (status == RG_OK)
        status = view_open(recovery);
    if (status == RG_OK)
        opened(recovery);
    else
        give_up(recovery, status == RG_ECLOSED ? RG_EISOLATED : status);
}

static void on_activate(struct rg_recovery *recovery, uint64_t epoch)
{
    struct rg_comm *comm = recovery->comm;
    int status;

    reach(recovery, RG_PHASE_ACTIVATE, epoch);
    pthread_mutex_lock(&comm->lock);
    rg_view_destroy(comm->view);
    comm->view = recovery->pending;
    recovery->pending = NULL;
    /* Also when a failure ends the view before it opens here. */
    if (comm->view->plan)
        recovery->planned = epoch;
    status = rg_ledger_enter(&recovery->ledger, comm->view);
    pthread_mutex_unlock(&comm->lock);
    if (status) {
        give_up(recovery, status);
        return;
    }
    rg_proxy_path_enter(comm, comm->view);
    recovery->finding = 1;
    recovery->finding_limit =
        rg_clock_after_ms(settings_of(recovery)->bootstrap_ms);
    find_and_open(recovery);
}

/* ---- events ------------------------------------------------------------- */

static void set_stopped(struct rg_recovery *recovery)
{
    pthread_mutex_lock(&recovery->comm->lock);
    recovery->stopped = recovery->comm->view->epoch;
    pthread_mutex_unlock(&recovery->comm->lock);
}

/*
 * Members that have failed stay until the caller lets them go (RG_MODE), so
 * the epoch ends in no other way: what waits in it, or will, is aborted. Also
 * when it is not open yet here.
 */
static void doom_epoch(struct rg_recovery *recovery, uint64_t epoch)
{
    struct rg_comm *comm = recovery->comm;

    if (!comm->view || comm->view->epoch != epoch)
        return;
    set_stopped(recovery);
    rg_hold_abort(comm);
}

static void on_notice(struct rg_recovery *recovery,
                      struct rg_group_event *event)
{
    if (event->status != 1)
        doom_epoch(recovery, event->epoch);
    notify(recovery, event->status == 1 ? RG_NOTICE_WAITING : RG_NOTICE_FAILED,
           event->epoch, RG_OK, &event->slots);
    rg_bitset_fini(&event->slots);
}

/* An error while a view is in force refuses a request, else it is the end. */
static void on_error(struct rg_recovery *recovery, int status)
{
    if (recovery->joining)
        close_down(recovery, status ? status : RG_EFAILED);
    else
        refuse(recovery, status ? status : RG_EFAILED);
}

static void on_event(struct rg_recovery *recovery, struct rg_group_event *event)
{
    switch (event->kind) {
    case RG_EVENT_PREPARE:
        on_prepare(recovery, event);
        break;
    case RG_EVENT_VIEW:
        on_view(recovery, event);
        break;
    case RG_EVENT_ACTIVATE:
        on_activate(recovery, event->epoch);
        break;
    case RG_EVENT_NOTICE:
        on_notice(recovery, event);
        break;
    case RG_EVENT_ISOLATED:
        close_down(recovery, event->status);
        break;
    case RG_EVENT_ERROR:
        on_error(recovery, event->status);
        break;
    default:
        break;
    }
    rg_view_destroy(event->view);
}

/* ---- failures ----------------------------------------------------------- */

static void report_stall(struct rg_recovery *recovery, uint64_t seq)
{
    struct rg_comm *comm = recovery->comm;

    rg_log(RG_LOG_WARN, rank_of(recovery),
           "group %u: seq %llu ran into its deadline", comm->group,
           (unsigned long long)seq);
    reach(recovery, RG_PHASE_STALLED, comm->view->epoch);
    rg_driver_report_stall(driver_of(recovery), comm->group, seq,
                           &recovery->slots);
}

/*
 * Aborted by a notice (RG_MODE): who waited, for whomever, is not to blame when
 * the change comes to ask who never began what others wait in.
 */
static void report_waiting(struct rg_recovery *recovery, uint64_t seq)
{
    if (!settings_of(recovery)->mode)
        return;
    rg_bitset_zero(&recovery->slots);
    rg_driver_report_stall(driver_of(recovery), recovery->comm->group, seq,
                           &recovery->slots);
}

static void own_failure(struct rg_recovery *recovery, uint64_t seq, int status)
{
    rg_log(RG_LOG_ERROR, rank_of(recovery),
           "group %u: seq %llu failed on this rank: %s", recovery->comm->group,
           (unsigned long long)seq, rg_status_string(status));
    give_up(recovery, RG_EFAILED);
}

/* The ranks in the mailbox's bitmap, as slots of the view they belong to. */
static int mailbox_slots(struct rg_recovery *recovery)
{
    const struct rg_comm *comm = recovery->comm;
    const struct rg_mailbox *mailbox = &comm->mapped->mailbox;
    int count = 0;

    rg_bitset_zero(&recovery->slots);
    for (uint32_t rank = 0; rank < comm->plan->nranks; rank++) {
        const uint64_t word = rg_load_relaxed(&mailbox->peers[rank / 64]);

        if (!(word >> (rank % 64) & 1))
            continue;
        rg_bitset_set(&recovery->slots, (int)comm->plan->routes[rank].slot);
        count++;
    }
    return count;
}

/*
 * A transfer beyond a region was refused: the invocation is in error, not the
 * route. The others wait in it, so the epoch ends for all; its successor has
 * the same members and routes.
 */
static void report_misuse(struct rg_recovery *recovery, uint64_t seq)
{
    struct rg_comm *comm = recovery->comm;

    rg_log(RG_LOG_ERROR, rank_of(recovery),
           "group %u: seq %llu: a transfer beyond the end of a region was "
           "refused; the invocation is aborted",
           comm->group, (unsigned long long)seq);
    rg_bitset_zero(&recovery->slots);
    rg_driver_report_unreachable(driver_of(recovery), comm->group,
                                 &recovery->slots);
}

/*
 * A wait that came too late, and a route that carries nothing, are matters for
 * the group. What failed by itself, with nobody to wait for, is this rank's own
 * fault.
 */
static void report_failure(struct rg_recovery *recovery)
{
    struct rg_comm *comm = recovery->comm;
    const struct rg_mailbox *mailbox = &comm->mapped->mailbox;
    const uint64_t reasons = rg_load_relaxed(&mailbox->reasons);
    const uint64_t seq = rg_load_relaxed(&mailbox->seq);

    if (reasons & 1ull << -RG_ETIMEDOUT && mailbox_slots(recovery))
        report_stall(recovery, seq);
    else if (reasons & 1ull << -RG_EABORTED)
        report_waiting(recovery, seq);
    else if (reasons & 1ull << -RG_EUNAVAILABLE && mailbox_slots(recovery))
        rg_driver_report_unreachable(driver_of(recovery), comm->group,
                                     &recovery->slots);
    else if (reasons & 1ull << -RG_EINVAL)
        report_misuse(recovery, seq);
    else
        own_failure(recovery, seq, RG_EFAILED);
}

/* The same of the legacy backend, whose waits may also lose a connection. */
static void look_at_legacy(struct rg_recovery *recovery)
{
    struct rg_comm *comm = recovery->comm;
    struct rg_legacy_failure failure;

    rg_legacy_path_failure(comm, &failure, &recovery->slots);
    if (failure.count == recovery->legacy_failure)
        return;
    recovery->legacy_failure = failure.count;
    set_stopped(recovery);
    if (failure.status == RG_ETIMEDOUT && rg_bitset_count(&recovery->slots))
        report_stall(recovery, failure.seq);
    else if (failure.status == RG_EFAILED && rg_bitset_count(&recovery->slots))
        rg_driver_report_unreachable(driver_of(recovery), comm->group,
                                     &recovery->slots);
    else if (failure.status == RG_EABORTED)
        report_waiting(recovery, failure.seq);
    else if (failure.status != RG_EUNAVAILABLE)
        own_failure(recovery, failure.seq, failure.status);
}

static void look_at_device(struct rg_recovery *recovery)
{
    struct rg_comm *comm = recovery->comm;
    const struct rg_mailbox *mailbox = &comm->mapped->mailbox;
    /* Pairs with the release at the safe point. */
    const uint64_t failure = rg_load_acquire(&mailbox->failure);

    if (failure != recovery->failure && comm->open) {
        recovery->failure = failure;
        set_stopped(recovery);
        report_failure(recovery);
    }
}

/* On either backend, somebody has waited for longer than its bound. */
static void look_at_patience(struct rg_recovery *recovery)
{
    const struct rg_comm *comm = recovery->comm;

    if (rg_load_relaxed(&comm->closed) ||
        !rg_load_acquire(&comm->mapped->mailbox.expired))
        return;
    rg_log(RG_LOG_ERROR, rank_of(recovery),
           "group %u: no new view for %llu ms (RG_PARK_MS)", comm->group,
           (unsigned long long)settings_of(recovery)->park_ms);
    give_up(recovery, RG_EISOLATED);
}

static void look_for_failures(struct rg_recovery *recovery)
{
    const struct rg_comm *comm = recovery->comm;

    if (rg_load_relaxed(&comm->closed))
        return;
    if (comm->open == RG_BACKEND_LEGACY)
        look_at_legacy(recovery);
    else
        look_at_device(recovery);
    look_at_patience(recovery);
}

/* ---- the thread --------------------------------------------------------- */

static int join(struct rg_recovery *recovery, int rejoin)
{
    struct rg_comm *comm = recovery->comm;
    const struct rg_context *context = comm->context;
    struct rg_join join = {.group = comm->group,
                           .capacity = context->config.capacity,
                           .first_seq = context->config.first_seq,
                           .rejoin = rejoin,
                           .policy = context->selection};
    const int status = rg_comm_info(comm, &join.info);

    if (status)
        return status;
    recovery->joining = 1;
    return rg_driver_join(context->driver, &join);
}

/* Back with a new incarnation; the user's thread has seen its streams end. */
static void rejoin(struct rg_recovery *recovery)
{
    struct rg_comm *comm = recovery->comm;
    int status;

    rg_driver_leave(driver_of(recovery), comm->group);
    recovery->promised = 0;
    rg_store_release(&comm->mapped->mailbox.expired, 0);
    forget_failures(recovery);
    pthread_mutex_lock(&comm->lock);
    recovery->rejoin = 0;
    recovery->failed = RG_OK;
    rg_store_release(&comm->closed, 0);
    pthread_mutex_unlock(&comm->lock);
    status = join(recovery, 1);
    if (status)
        closed(recovery, status);
}

/* The caller has waited in vain: nobody is to let this rank in any more. */
static void withdraw(struct rg_recovery *recovery)
{
    rg_driver_leave(driver_of(recovery), recovery->comm->group);
    closed(recovery, RG_EISOLATED);
}

/* 1: the thread is to end. */
static int take_requests(struct rg_recovery *recovery)
{
    int stop, back, withdrawn;

    pthread_mutex_lock(&recovery->comm->lock);
    stop = recovery->stop;
    back = recovery->rejoin;
    withdrawn = recovery->withdraw && !recovery->epoch;
    recovery->withdraw = 0;
    pthread_mutex_unlock(&recovery->comm->lock);
    if (back && !stop)
        rejoin(recovery);
    if (withdrawn && !stop)
        withdraw(recovery);
    return stop;
}

static void *worker_main(void *arg)
{
    struct rg_recovery *recovery = arg;
    struct rg_comm *comm = recovery->comm;
    struct rg_group_event event;

    rg_thread_name("recovery");
    while (!take_requests(recovery)) {
        const int wait_ms =
            recovery->finding ? WORKER_PROVE_MS : WORKER_POLL_MS;
        const int status =
            rg_driver_next(driver_of(recovery), comm->group, wait_ms, &event);

        if (status == RG_OK)
            on_event(recovery, &event);
        else if (status != RG_EPENDING) {
            /* Out for good, or the control plane has ended. */
            if (!rg_load_relaxed(&comm->closed))
                close_down(recovery, RG_EISOLATED);
            rg_clock_sleep_ns((uint64_t)wait_ms * NS_PER_MS);
        } else if (recovery->finding)
            find_and_open(recovery);
        look_for_failures(recovery);
    }
    rg_hold_abandon(comm);
    return NULL;
}

static void recovery_free(struct rg_recovery *recovery)
{
    rg_view_destroy(recovery->pending);
    rg_selection_destroy(recovery->selection);
    rg_ledger_fini(&recovery->ledger);
    rg_bitset_fini(&recovery->slots);
    pthread_cond_destroy(&recovery->changed);
    free(recovery);
}

int rg_recovery_create(struct rg_comm *comm, int back)
{
    struct rg_recovery *recovery = calloc(1, sizeof *recovery);
    int status;

    if (!recovery)
        return RG_ENOMEM;
    recovery->comm = comm;
    status = rg_cond_init(&recovery->changed);
    if (status) {
        free(recovery);
        return status;
    }
    status = rg_bitset_init(&recovery->slots, comm->context->config.capacity);
    if (status == RG_OK)
        status = join(recovery, back);
    if (status == RG_OK &&
        pthread_create(&recovery->thread, NULL, worker_main, recovery)) {
        rg_log(RG_LOG_ERROR, rank_of(recovery),
               "no thread for a communicator's recovery");
        rg_driver_leave(driver_of(recovery), comm->group);
        status = RG_ESYSTEM;
    }
    if (status) {
        recovery_free(recovery);
        return status;
    }
    comm->recovery = recovery;
    return RG_OK;
}

void rg_recovery_destroy(struct rg_recovery *recovery)
{
    if (!recovery)
        return;
    pthread_mutex_lock(&recovery->comm->lock);
    recovery->stop = 1;
    pthread_mutex_unlock(&recovery->comm->lock);
    pthread_join(recovery->thread, NULL);
    rg_driver_leave(driver_of(recovery), recovery->comm->group);
    recovery_free(recovery);
}
