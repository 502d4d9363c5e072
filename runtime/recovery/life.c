/* Communicators as the user makes, changes and ends them. */
#include <stdlib.h>
#include <string.h>

#include "runtime/core/clock.h"
#include "runtime/core/cond.h"
#include "runtime/core/log.h"
#include "runtime/device/word.h"
#include "runtime/exec/hold.h"
#include "runtime/exec/select.h"
#include "runtime/recovery/recovery.h"

/* ---- waiting for the worker --------------------------------------------- */

static int wait_changed(struct rg_comm *comm, uint64_t limit_ns)
{
    return rg_cond_wait(&comm->recovery->changed, &comm->lock, limit_ns);
}

/* Until a view is in force after a join. */
static int wait_joined(struct rg_comm *comm, uint64_t timeout_ms)
{
    const struct rg_recovery *recovery = comm->recovery;
    const uint64_t limit = rg_clock_after_ms(timeout_ms);
    int status = RG_OK;

    pthread_mutex_lock(&comm->lock);
    while (status == RG_OK && !recovery->epoch && !recovery->failed)
        status = wait_changed(comm, limit);
    if (status == RG_OK && !recovery->epoch)
        status = recovery->failed;
    pthread_mutex_unlock(&comm->lock);
    return status;
}

/* The answer to a request made when `epoch` and `refusals` were so. */
static int wait_answered(struct rg_comm *comm, uint64_t epoch,
                         uint64_t refusals)
{
    const struct rg_recovery *recovery = comm->recovery;
    const uint64_t limit =
        rg_clock_after_ms(comm->context->settings.bootstrap_ms);
    int status = RG_OK;

    pthread_mutex_lock(&comm->lock);
    while (status == RG_OK && recovery->refusals == refusals &&
           !recovery->failed &&
           !(recovery->epoch > epoch && recovery->planned > epoch))
        status = wait_changed(comm, limit);
    if (status == RG_OK && recovery->refusals != refusals)
        status = recovery->refusal;
    else if (status == RG_OK)
        status = recovery->failed;
    pthread_mutex_unlock(&comm->lock);
    return status;
}

/* ---- life --------------------------------------------------------------- */

/* A member that could not make the communicator has left: so have all. */
static int all_have_come(struct rg_comm *comm)
{
    int status = RG_OK;

    pthread_mutex_lock(&comm->lock);
    for (int slot = 0; slot < comm->view->capacity && status == RG_OK; slot++)
        if (comm->view->members[slot].status == RG_MEMBER_LEFT)
            status = RG_EFAILED;
    pthread_mutex_unlock(&comm->lock);
    return status;
}

int rg_comm_create(struct rg_context *context, struct rg_comm **comm_out)
{
    const int rejoin = context->config.ticket != NULL;
    struct rg_comm *comm;
    int status = rg_comm_make(context, &comm);

    if (status)
        return status;
    status = rg_recovery_create(comm, rejoin);
    if (status == RG_OK)
        status = wait_joined(comm, context->settings.bootstrap_ms);
    if (status == RG_OK && !rejoin)
        status = all_have_come(comm);
    if (status) {
        /* Why a selection is refused has been said. */
        rg_log(status == RG_EPOLICY ? RG_LOG_DEBUG : RG_LOG_ERROR,
               context->config.rank, "communicator %u could not be made: %s",
               comm->group, rg_status_string(status));
        rg_recovery_destroy(comm->recovery);
        rg_comm_unmake(comm);
        return status;
    }
    *comm_out = comm;
    return RG_OK;
}

int rg_comm_destroy(struct rg_comm *comm)
{
    if (!comm)
        return RG_OK;
    if (rg_load_relaxed(&comm->graphs))
        return RG_EBUSY;
    if (comm->last)
        rg_stream_synchronize(comm->last);
    /* A peer may still return a credit: no memory goes before all are here. */
    if (!rg_load_relaxed(&comm->closed))
        rg_comm_gather(comm, NULL, 0, NULL);
    rg_recovery_destroy(comm->recovery);
    rg_comm_unmake(comm);
    return RG_OK;
}

/* ---- planned changes ---------------------------------------------------- */

/* Quiet on this rank; then what a request's answer is to be told by. */
static int change_begin(struct rg_comm *comm, uint64_t *epoch_out,
                        uint64_t *refusals_out)
{
    int status = RG_OK, stopped;

    pthread_mutex_lock(&comm->lock);
    stopped = comm->recovery->stopped == comm->view->epoch;
    pthread_mutex_unlock(&comm->lock);
    /* Behind a failure the stream waits for this very change. */
    if (comm->last && !stopped)
        status = rg_stream_synchronize(comm->last);
    if (status)
        return status;
    if (rg_load_relaxed(&comm->closed))
        return -(int)rg_load_relaxed(&comm->closed);
    pthread_mutex_lock(&comm->lock);
    *epoch_out = comm->recovery->epoch;
    *refusals_out = comm->recovery->refusals;
    pthread_mutex_unlock(&comm->lock);
    return RG_OK;
}

static int policy_fits(struct rg_comm *comm, const char *text)
{
    struct rg_plan_input input;
    int status = rg_policy_check(&comm->layout, text);

    if (status)
        return status;
    pthread_mutex_lock(&comm->lock);
    input = rg_comm_plan_input(comm, comm->view);
    status = rg_policy_fits(&comm->layout, text, &input);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

static int propose_policy(struct rg_comm *comm, const char *text)
{
    uint64_t epoch, refusals;
    int status = policy_fits(comm, text);

    if (status == RG_OK)
        status = change_begin(comm, &epoch, &refusals);
    if (status == RG_OK)
        status =
            rg_driver_propose_policy(comm->context->driver, comm->group, text);
    return status ? status : wait_answered(comm, epoch, refusals);
}

int rg_comm_set_policy(struct rg_comm *comm, const char *text)
{
    char *canonical;
    int status =
        rg_policy_canonical(text, comm->context->config.algos, &canonical);

    if (status)
        return status;
    status = propose_policy(comm, canonical);
    free(canonical);
    return status;
}

static int change_members(struct rg_comm *comm, const int *slots, int count,
                          int vouch)
{
    const int capacity = comm->context->config.capacity;
    struct rg_bitset leavers;
    uint64_t epoch, refusals;
    int status;

    for (int i = 0; i < count; i++)
        if (slots[i] < 0 || slots[i] >= capacity)
            return RG_EINVAL;
    if (rg_bitset_init(&leavers, capacity))
        return RG_ENOMEM;
    for (int i = 0; i < count; i++)
        rg_bitset_set(&leavers, slots[i]);
    status = change_begin(comm, &epoch, &refusals);
    if (status == RG_OK)
        status = rg_driver_change(comm->context->driver, comm->group, &leavers,
                                  vouch);
    if (status == RG_OK)
        status = wait_answered(comm, epoch, refusals);
    rg_bitset_fini(&leavers);
    return status;
}

int rg_comm_admit(struct rg_comm *comm)
{
    return change_members(comm, NULL, 0, 0);
}

int rg_comm_leave(struct rg_comm *comm, const int *slots, int count)
{
    return change_members(comm, slots, count, 0);
}

int rg_comm_vouch(struct rg_comm *comm, const int *slots, int count)
{
    return change_members(comm, slots, count, 1);
}

/* Takes the request back, unless it was granted in the last moment. */
static int stop_waiting(struct rg_comm *comm)
{
    const struct rg_recovery *recovery = comm->recovery;
    const uint64_t limit =
        rg_clock_after_ms(comm->context->settings.bootstrap_ms);
    int status = RG_OK;

    pthread_mutex_lock(&comm->lock);
    comm->recovery->withdraw = 1;
    while (status == RG_OK && !recovery->epoch && !recovery->failed)
        status = wait_changed(comm, limit);
    if (status == RG_OK && !recovery->epoch)
        status = RG_ETIMEDOUT;
    pthread_mutex_unlock(&comm->lock);
    return status;
}

int rg_comm_rejoin(struct rg_comm *comm, int timeout_ms)
{
    int status = comm->last ? rg_stream_synchronize(comm->last) : RG_OK;

    if (status)
        return status;
    if (!rg_load_relaxed(&comm->closed))
        return RG_EBUSY;
    pthread_mutex_lock(&comm->lock);
    comm->recovery->rejoin = 1;
    comm->recovery->failed = RG_OK;
    pthread_mutex_unlock(&comm->lock);
    status = wait_joined(comm, timeout_ms > 0 ? (uint64_t)timeout_ms : 0);
    return status == RG_ETIMEDOUT ? stop_waiting(comm) : status;
}

/* ---- notices ------------------------------------------------------------ */

int rg_comm_next_notice(struct rg_comm *comm, int timeout_ms,
                        struct rg_notice *notice_out)
{
    struct rg_recovery *recovery = comm->recovery;
    const uint64_t limit =
        rg_clock_after_ms(timeout_ms > 0 ? (uint64_t)timeout_ms : 0);
    struct rg_notice notice;
    int status = RG_OK, found;

    pthread_mutex_lock(&comm->lock);
    while (!(found = rg_notices_pop(&recovery->notices, &notice)) &&
           status == RG_OK)
        status = wait_changed(comm, limit);
    pthread_mutex_unlock(&comm->lock);
    if (!found)
        return RG_EPENDING;
    *notice_out = notice;
    return RG_OK;
}
