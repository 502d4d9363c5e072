/* Outcomes, as the user asks for them. */
#include "runtime/core/clock.h"
#include "runtime/core/cond.h"
#include "runtime/core/seq.h"
#include "runtime/device/word.h"
#include "runtime/recovery/recovery.h"

enum { OUTCOME_SLICE_MS = 100 };

static int closed_status(const struct rg_comm *comm)
{
    return -(int)rg_load_relaxed(&comm->closed);
}

/* What has completed here, if the device may be asked; else what was frozen. */
static int completed_here(struct rg_comm *comm, uint64_t *seq_out)
{
    *seq_out = 0;
    return closed_status(comm) ? RG_OK : rg_comm_completed(comm, seq_out);
}

static int find(struct rg_comm *comm, uint64_t seq, uint64_t completed,
                struct rg_outcome *outcome_out)
{
    uint64_t floor;
    int status;

    pthread_mutex_lock(&comm->lock);
    if (rg_driver_committed(comm->context->driver, comm->group,
                            comm->view->epoch, &floor))
        floor = comm->view->committed_seq;
    status = rg_ledger_find(&comm->recovery->ledger, seq, floor, completed,
                            outcome_out);
    pthread_mutex_unlock(&comm->lock);
    if (status && closed_status(comm))
        return closed_status(comm);
    return status;
}

int rg_comm_outcome(struct rg_comm *comm, uint64_t seq,
                    struct rg_outcome *outcome_out)
{
    uint64_t completed;
    int status;

    if (rg_seq_precedes(rg_load_relaxed(&comm->seq), seq))
        return RG_EINVAL;
    status = completed_here(comm, &completed);
    return status ? status : find(comm, seq, completed, outcome_out);
}

/* 1: a is to be told rather than b. */
static int is_worse(enum rg_outcome_state a, enum rg_outcome_state b)
{
    if (a == RG_OUTCOME_ABORTED || b == RG_OUTCOME_ABORTED)
        return a == RG_OUTCOME_ABORTED && b != RG_OUTCOME_ABORTED;
    return a < b;
}

int rg_comm_outcome_range(struct rg_comm *comm, uint64_t first, uint64_t last,
                          struct rg_outcome *outcome_out)
{
    struct rg_outcome worst, next;
    uint64_t completed;
    int status;

    if (rg_seq_precedes(last, first) ||
        rg_seq_precedes(rg_load_relaxed(&comm->seq), last))
        return RG_EINVAL;
    status = completed_here(comm, &completed);
    if (status == RG_OK)
        status = find(comm, first, completed, &worst);
    for (uint64_t seq = first; status == RG_OK && seq != last;) {
        status = find(comm, ++seq, completed, &next);
        if (status == RG_OK && is_worse(next.state, worst.state))
            worst = next;
    }
    if (status)
        return status;
    *outcome_out = worst;
    return RG_OK;
}

/* Until the worker has followed the group into its next view, or a while. */
static void wait_for_view(struct rg_comm *comm, uint64_t epoch)
{
    const uint64_t until = rg_clock_after_ms(OUTCOME_SLICE_MS);
    int late = 0;

    pthread_mutex_lock(&comm->lock);
    while (comm->view->epoch == epoch && !closed_status(comm) && !late)
        late = rg_cond_wait(&comm->recovery->changed, &comm->lock, until);
    pthread_mutex_unlock(&comm->lock);
}

/* Something has failed in the epoch, and the caller has to end it (RG_MODE). */
static int waits_for_caller(struct rg_comm *comm)
{
    int stopped;

    pthread_mutex_lock(&comm->lock);
    stopped = comm->recovery->stopped == comm->view->epoch;
    pthread_mutex_unlock(&comm->lock);
    return stopped && comm->context->settings.mode;
}

/* One try: RG_EPENDING when there is more to wait for. */
static int wait_once(struct rg_comm *comm, uint64_t seq,
                     struct rg_outcome *outcome_out)
{
    struct rg_driver *driver = comm->context->driver;
    struct rg_view_info view;
    uint64_t completed;
    int status = rg_comm_view(comm, &view);

    if (status == RG_OK)
        status = completed_here(comm, &completed);
    if (status == RG_OK)
        status = find(comm, seq, completed, outcome_out);
    if (status || outcome_out->state == RG_OUTCOME_COMMITTED ||
        outcome_out->state == RG_OUTCOME_ABORTED)
        return status;
    if (waits_for_caller(comm))
        return RG_EFAILED;
    rg_driver_progress(driver, comm->group, completed,
                       rg_load_relaxed(&comm->graphs) > 0, 1);
    status =
        rg_driver_wait_committed(driver, comm->group, seq, OUTCOME_SLICE_MS);
    if (status && status != RG_ETIMEDOUT)
        wait_for_view(comm, view.epoch);
    return RG_EPENDING;
}

int rg_comm_wait(struct rg_comm *comm, uint64_t seq,
                 struct rg_outcome *outcome_out)
{
    const uint64_t limit =
        rg_clock_after_ms(comm->context->settings.bootstrap_ms);
    int status;

    if (rg_seq_precedes(rg_load_relaxed(&comm->seq), seq))
        return RG_EINVAL;
    /* What is queued behind a failure may wait for the caller as well. */
    if (comm->last && !closed_status(comm) && !waits_for_caller(comm)) {
        status = rg_stream_synchronize(comm->last);
        if (status)
            return status;
    }
    while ((status = wait_once(comm, seq, outcome_out)) == RG_EPENDING)
        if (rg_clock_ns() > limit)
            return RG_ETIMEDOUT;
    return status;
}
