#include "runtime/exec/hold.h"

#include <stdlib.h>

#include "runtime/core/clock.h"
#include "runtime/core/cond.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/device/word.h"
#include "runtime/exec/legacy_path.h"
#include "runtime/exec/messages.h"

enum {
    HOLD_SPINS = 200,    /* polls before the first nap */
    HOLD_NAP_NS = 20000, /* between polls */
    NS_PER_MS = 1000000
};

struct rg_helper {
    struct rg_comm *comm;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int stop;         /* under lock, as what follows */
    int wanted;       /* a launch is asked for */
    uint64_t epoch;   /* whose word it is to hold */
    uint64_t keepers; /* that there have been before it */
    uint64_t claimed; /* progress reported last */
};

/* ---- waiting ------------------------------------------------------------ */

/* A poll that failed; spins at first, since most answers come at once. */
static int hold_pause(uint64_t *polls, uint64_t limit_ns)
{
    if (++*polls < HOLD_SPINS)
        return RG_OK;
    rg_clock_sleep_ns(HOLD_NAP_NS);
    return rg_clock_ns() > limit_ns ? RG_ETIMEDOUT : RG_OK;
}

/* ---- helper thread ------------------------------------------------------ */

/*
 * Heartbeats carry what has completed. It is looked at only while something
 * launched is not known to have, so an idle rank leaves its device alone.
 */
static void helper_report(struct rg_helper *helper)
{
    struct rg_comm *comm = helper->comm;
    const uint64_t seq = rg_load_relaxed(&comm->seq);
    uint64_t completed;

    if (helper->claimed == seq || rg_load_relaxed(&comm->closed) ||
        rg_comm_completed(comm, &completed))
        return;
    helper->claimed = completed;
    rg_driver_progress(comm->context->driver, comm->group, completed,
                       rg_load_relaxed(&comm->graphs) > 0, 0);
}

/* Under the lock: waits for a request or a heartbeat's time. 1: a request. */
static int helper_wait(struct rg_helper *helper)
{
    const uint64_t until =
        rg_clock_after_ms(helper->comm->context->settings.heartbeat_ms);
    int late = 0;

    while (!helper->wanted && !helper->stop && !late)
        late = rg_cond_wait(&helper->changed, &helper->lock, until);
    return helper->wanted;
}

static void *helper_main(void *arg)
{
    struct rg_helper *helper = arg;
    struct rg_context *context = helper->comm->context;

    rg_thread_name("helper");
    pthread_mutex_lock(&helper->lock);
    while (!helper->stop) {
        const int wanted = helper_wait(helper);
        const struct rg_help_args args = {.comm = helper->comm->dev,
                                          .epoch = helper->epoch,
                                          .keepers = helper->keepers};

        helper->wanted = 0;
        pthread_mutex_unlock(&helper->lock);
        if (wanted)
            context->ops->help(context->device, &args);
        else
            helper_report(helper);
        pthread_mutex_lock(&helper->lock);
    }
    pthread_mutex_unlock(&helper->lock);
    return NULL;
}

int rg_helper_create(struct rg_comm *comm)
{
    struct rg_helper *helper = calloc(1, sizeof *helper);

    if (!helper)
        return RG_ENOMEM;
    helper->comm = comm;
    if (rg_cond_init_locked(&helper->changed, &helper->lock)) {
        free(helper);
        return RG_ENOMEM;
    }
    if (pthread_create(&helper->thread, NULL, helper_main, helper)) {
        rg_log(RG_LOG_ERROR, comm->context->config.rank,
               "no thread for a communicator's helper");
        pthread_cond_destroy(&helper->changed);
        pthread_mutex_destroy(&helper->lock);
        free(helper);
        return RG_ESYSTEM;
    }
    comm->helper = helper;
    return RG_OK;
}

void rg_helper_destroy(struct rg_helper *helper)
{
    if (!helper)
        return;
    pthread_mutex_lock(&helper->lock);
    helper->stop = 1;
    pthread_cond_signal(&helper->changed);
    pthread_mutex_unlock(&helper->lock);
    pthread_join(helper->thread, NULL);
    pthread_cond_destroy(&helper->changed);
    pthread_mutex_destroy(&helper->lock);
    free(helper);
}

/* Nobody keeps now. */
static void helper_call(struct rg_comm *comm, uint64_t epoch)
{
    struct rg_helper *helper = comm->helper;

    pthread_mutex_lock(&helper->lock);
    helper->wanted = 1;
    helper->epoch = epoch;
    helper->keepers = rg_load_acquire(&comm->mapped->mailbox.kept);
    pthread_cond_broadcast(&helper->changed);
    pthread_mutex_unlock(&helper->lock);
}

/* ---- waiting for the device --------------------------------------------- */

/* Pairs with the keeper's releases, of its coming and of its going. */
static int is_kept(const struct rg_comm *comm)
{
    const struct rg_mailbox *mailbox = &comm->mapped->mailbox;
    const uint64_t kept = rg_load_acquire(&mailbox->kept);

    return rg_load_acquire(&mailbox->keeping) != kept;
}

static int wait_kept(struct rg_comm *comm, uint64_t limit_ns)
{
    uint64_t polls = 0;
    int status = RG_OK;

    while (status == RG_OK && !is_kept(comm))
        status = hold_pause(&polls, limit_ns);
    return status;
}

/* An order that a keeper left undone is not the next one's. */
static void forget_orders(struct rg_comm *comm)
{
    rg_store_release(&comm->mapped->orders.number,
                     rg_load_acquire(&comm->mapped->mailbox.done));
}

/* ---- orders ------------------------------------------------------------- */

void rg_hold_abort(struct rg_comm *comm)
{
    rg_legacy_path_abort(comm);
    rg_store_release(&comm->mapped->abort_epoch, comm->view->epoch);
}

int rg_hold_begin(struct rg_comm *comm, int timeout_ms)
{
    const struct rg_mailbox *mailbox = &comm->mapped->mailbox;
    int status;

    if (comm->open == RG_BACKEND_UNSET)
        return RG_OK;
    rg_hold_abort(comm);
    if (comm->open == RG_BACKEND_LEGACY) {
        status = rg_legacy_path_hold(comm, timeout_ms);
        if (status == RG_OK)
            comm->open = RG_BACKEND_UNSET;
        return status;
    }
    if (!is_kept(comm)) {
        forget_orders(comm);
        helper_call(comm, comm->view->epoch);
    }
    status = wait_kept(comm, rg_clock_after_ms((uint64_t)timeout_ms));
    if (status)
        return status;
    comm->held.claimed = rg_load_relaxed(&mailbox->claimed);
    comm->held.completed = rg_load_relaxed(&mailbox->completed);
    comm->open = RG_BACKEND_UNSET;
    return RG_OK;
}

static int hold_keep(struct rg_comm *comm)
{
    if (is_kept(comm))
        return RG_OK;
    forget_orders(comm);
    helper_call(comm, 0);
    return wait_kept(comm, rg_clock_after_ms(comm->context->settings.park_ms));
}

/* A keeper that still leaves would be taken for the one of the next change. */
static int wait_left(struct rg_comm *comm, uint64_t limit_ns)
{
    uint64_t polls = 0;
    int status = RG_OK;

    while (status == RG_OK && is_kept(comm))
        status = hold_pause(&polls, limit_ns);
    return status;
}

/* Hands out the order that is written, and waits for it and, if it is the
 * keeper's last, for its going. */
static int hold_order(struct rg_comm *comm, enum rg_order_kind kind)
{
    struct rg_orders *orders = &comm->mapped->orders;
    const struct rg_mailbox *mailbox = &comm->mapped->mailbox;
    const uint64_t number = rg_load_relaxed(&orders->number) + 1;
    const uint64_t limit = rg_clock_after_ms(comm->context->settings.park_ms);
    uint64_t polls = 0;
    int status = RG_OK;

    rg_store_relaxed(&orders->kind, kind);
    rg_store_release(&orders->number, number);
    while (rg_load_acquire(&mailbox->done) != number && status == RG_OK) {
        status = hold_pause(&polls, limit);
        if (status == RG_OK && !is_kept(comm) &&
            rg_load_acquire(&mailbox->done) != number)
            status = RG_ECLOSED;
    }
    if (status == RG_OK && kind != RG_ORDER_CLEAN)
        status = wait_left(comm, limit);
    if (status)
        rg_log(RG_LOG_ERROR, comm->context->config.rank,
               "group %u: nobody keeps the communicator any more (RG_PARK_MS)",
               comm->group);
    return status;
}

static void write_words(uint64_t *to, const void *from, size_t bytes)
{
    const uint64_t *words = from;

    for (size_t i = 0; i < bytes / sizeof *words; i++)
        rg_store_relaxed(&to[i], words[i]);
}

/* What others may have left in this generation. */
static struct rg_litter *litter_of(struct rg_comm *comm, uint32_t generation)
{
    return &comm->litter[generation % comm->context->settings.workspaces];
}

static int order_clean(struct rg_comm *comm, const struct rg_litter *litter)
{
    struct rg_orders *orders = &comm->mapped->orders;
    int status = hold_keep(comm);

    if (status)
        return status;
    write_words((uint64_t *)(void *)orders->part, litter->part,
                (size_t)litter->count * sizeof *litter->part);
    rg_store_relaxed(&orders->nparts, (uint64_t)litter->count);
    return hold_order(comm, RG_ORDER_CLEAN);
}

int rg_hold_clean(struct rg_comm *comm, uint32_t generation)
{
    struct rg_litter *litter = litter_of(comm, generation);
    const int status = litter->count ? order_clean(comm, litter) : RG_OK;

    if (status)
        return status;
    /* Others may write to it, whether or not it is ever used here; and how
     * much, if it is not, nobody knows here. */
    litter->count = 1;
    litter->part[0] = (struct rg_part){rg_comm_workspace(comm, generation),
                                       comm->layout.bytes, 0, 1};
    return RG_OK;
}

static void write_plan(struct rg_comm *comm, uint64_t ended)
{
    struct rg_orders *orders = &comm->mapped->orders;
    const size_t bytes = rg_plan_bytes(comm->context->config.capacity);
    struct rg_hot_plan hot;

    rg_plan_excerpt(&comm->layout, comm->plan, comm->context->service->region,
                    &hot);
    /* Packets of a generation are counted from its start. */
    hot.packet_cursor = comm->plan->first_seq - 1;
    write_words((uint64_t *)(void *)&orders->hot, &hot, sizeof hot);
    write_words((uint64_t *)(void *)(orders + 1), comm->plan, bytes);
    rg_store_relaxed(&orders->plan_bytes, bytes);
    rg_store_relaxed(&orders->index, (uint64_t)!comm->plan_index);
    rg_store_relaxed(&orders->ended, ended);
    rg_store_relaxed(&orders->undone, rg_messages_undone(comm));
    rg_store_relaxed(&orders->park_ns,
                     comm->context->settings.park_ms * NS_PER_MS);
}

/* The device's word stays held: graphs captured before end at once. */
static int open_legacy(struct rg_comm *comm, uint64_t ended)
{
    int status = is_kept(comm) ? hold_order(comm, RG_ORDER_LEAVE) : RG_OK;

    if (status == RG_OK)
        status = rg_legacy_path_open(comm, ended);
    if (status == RG_OK)
        comm->open = RG_BACKEND_LEGACY;
    return status;
}

int rg_hold_open(struct rg_comm *comm, uint64_t ended)
{
    struct rg_litter *litter;
    int status;

    if (comm->view->backend == RG_BACKEND_LEGACY)
        return open_legacy(comm, ended);
    status = hold_keep(comm);
    if (status)
        return status;
    litter = litter_of(comm, comm->view->workspace);
    litter->count = rg_plan_parts(&comm->layout, comm->plan, litter->part);
    write_plan(comm, ended);
    status = hold_order(comm, RG_ORDER_OPEN);
    if (status)
        return status;
    comm->plan_index = !comm->plan_index;
    comm->open = RG_BACKEND_NEW;
    rg_legacy_path_pass(comm, ended);
    return RG_OK;
}

int rg_hold_leave(struct rg_comm *comm)
{
    const int status = hold_keep(comm);

    rg_legacy_path_leave(comm);
    return status ? status : hold_order(comm, RG_ORDER_LEAVE);
}

void rg_hold_abandon(struct rg_comm *comm)
{
    if (is_kept(comm))
        hold_order(comm, RG_ORDER_LEAVE);
}
