#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/verdict.h"
#include "harness/wait.h"
#include "validate/recovery_member.h"

/* ---- the plan ----------------------------------------------------------- */

static int ends_a_life(const struct rg_fault *fault)
{
    return fault->action == RG_FAULT_KILL || fault->action == RG_FAULT_EXIT ||
           fault->action == RG_FAULT_ERROR;
}

/*
 * What the rank's earlier processes have seen to, up to their ends, is counted;
 * what is behind this one's end is for later ones, also where it is due before:
 * views may run ahead of a plan that counts two for a death and the return.
 */
static void share_with_other_lives(struct rg_recovery_member *self)
{
    struct rg_fault_plan *plan = self->faults.plan;
    int lives = rg_worker_life(self->worker);
    int i = 0;

    for (; i < rg_fault_plan_size(plan) && lives >= 0; i++) {
        const struct rg_fault *fault = rg_fault_plan_entry(plan, i);

        if (fault->rank != self->job->rank)
            continue;
        if (lives > 0)
            rg_fault_plan_count(plan, i);
        lives -= ends_a_life(fault);
    }
    self->faults.end = i;
}

int rg_recovery_faults_create(struct rg_recovery_member *self)
{
    int status =
        rg_fault_plan_create(self->scenario->plan, &self->faults.plan, NULL);

    if (status != RG_OK)
        return status;
    pthread_mutex_init(&self->faults.lock, NULL);
    share_with_other_lives(self);
    return RG_OK;
}

void rg_recovery_faults_destroy(struct rg_recovery_member *self)
{
    if (self->faults.plan == NULL)
        return;
    pthread_mutex_destroy(&self->faults.lock);
    rg_fault_plan_destroy(self->faults.plan);
    self->faults.plan = NULL;
}

/* Takes the next entry that is due for `rank`; -1: none. */
static int take_due(struct rg_recovery_member *self, int rank,
                    const struct rg_fault_moment *moment,
                    struct rg_fault *fault_out)
{
    struct rg_recovery_faults *faults = &self->faults;
    int entry;

    pthread_mutex_lock(&faults->lock);
    entry = rg_fault_plan_due(faults->plan, 0, rank, moment);
    if (moment->trigger == RG_FAULT_AT_VIEW && rank == self->job->rank &&
        entry >= faults->end)
        entry = -1;
    if (entry >= 0) {
        *fault_out = *rg_fault_plan_entry(faults->plan, entry);
        rg_fault_plan_count(faults->plan, entry);
    }
    pthread_mutex_unlock(&faults->lock);
    return entry;
}

/* ---- committing --------------------------------------------------------- */

static void commit(struct rg_recovery_member *self,
                   const struct rg_fault *fault, int entry)
{
    const struct rg_injection injection = {
        .action = fault->action,
        .entry = entry,
        .rank = fault->rank,
        .duration_ns = fault->duration_ns,
    };

    int status = rg_worker_inject(self->worker, &injection);

    if (fault->action == RG_FAULT_EXIT)
        _exit(RG_EXIT_PASS);
    if (fault->action == RG_FAULT_DROP) {
        self->faults.dropped |= UINT64_C(1) << fault->to;
        rg_context_drop_link(self->context, fault->to, 1);
    }
    if (fault->action == RG_FAULT_BREAK && status == RG_OK)
        status = rg_comm_break_route(self->comm, fault->to);
    if (fault->action == RG_FAULT_ERROR) {
        self->faults.abandoned = 1;
        rg_context_abandon(self->context);
    }
    if (status != RG_OK)
        rg_worker_event(self->worker, "fault refused", (uint64_t)-status);
}

static void commit_due(struct rg_recovery_member *self, int rank,
                       const struct rg_fault_moment *moment)
{
    struct rg_fault fault;
    int entry;

    while ((entry = take_due(self, rank, moment, &fault)) >= 0)
        commit(self, &fault, entry);
}

void rg_recovery_heal(struct rg_recovery_member *self, uint64_t ranks)
{
    const uint64_t healed = self->faults.dropped & ranks;

    for (int rank = 0; rank < self->job->size; rank++)
        if (healed >> rank & 1)
            rg_context_drop_link(self->context, rank, 0);
    self->faults.dropped &= ~healed;
}

/* ---- moments ------------------------------------------------------------ */

/* Ranks without a process have their new ones asked for by the lowest. */
static int speaks_for(const struct rg_recovery_member *self, int rank)
{
    const uint64_t members = self->participants;
    const uint64_t own = UINT64_C(1) << self->job->rank;

    if (rank == self->job->rank)
        return 1;
    return (members & own) && !(members & (own - 1)) && !(members >> rank & 1);
}

static int is_rejoin(const struct rg_recovery_member *self, int entry)
{
    return rg_fault_plan_entry(self->faults.plan, entry)->action ==
           RG_FAULT_REJOIN;
}

/* Of absent ranks only what brings them back. */
static void commit_moment(struct rg_recovery_member *self,
                          const struct rg_fault_moment *moment)
{
    commit_due(self, self->job->rank, moment);
    for (int rank = 0; rank < self->job->size; rank++) {
        int entry;

        if (rank == self->job->rank || !speaks_for(self, rank))
            continue;
        pthread_mutex_lock(&self->faults.lock);
        entry = rg_fault_plan_due(self->faults.plan, 0, rank, moment);
        pthread_mutex_unlock(&self->faults.lock);
        if (entry >= 0 && is_rejoin(self, entry))
            commit_due(self, rank, moment);
    }
}

/* The group is complete, and has been for some steps, the last one too. */
static int is_settled(const struct rg_recovery_member *self)
{
    enum { SETTLED = 3 };

    return !self->aborted &&
           __builtin_popcountll(self->participants) == self->job->size &&
           self->steps_in_epoch >= SETTLED;
}

/*
 * Of a settled group. A plan counts two views for a death and the return; where
 * the others hear of a death by the new process that comes, as between hosts,
 * both come in one. Every process, the first of each rank too, has published
 * one ticket.
 */
static uint64_t views_so_far(struct rg_recovery_member *self)
{
    uint64_t views = self->epoch;
    int published = 0;
    void *ticket;
    size_t bytes;

    if (rg_worker_ticket(self->worker, 0, 1000, &ticket, &bytes, &published) ==
        RG_OK)
        free(ticket);
    if (published > self->job->size)
        views = 1 + 2 * (uint64_t)(published - self->job->size);
    return views > self->epoch ? views : self->epoch;
}

/* A settled group's view serves as all views up to it. */
static void at_idle_view(struct rg_recovery_member *self)
{
    const uint64_t views = is_settled(self) ? views_so_far(self) : 0;

    for (uint64_t epoch = 1; epoch <= views; epoch++)
        commit_moment(self,
                      &(struct rg_fault_moment){RG_FAULT_AT_VIEW,
                                                RG_FAULT_IN_IDLE, epoch, NULL});
}

/* The n-th invocation is, when it is replayed, also the n-th replay. */
void rg_recovery_at(struct rg_recovery_member *self, enum rg_fault_phase phase,
                    uint64_t seq)
{
    const uint64_t elapsed_ns = rg_now_ns() - self->scenario->begin_ns;

    commit_moment(self,
                  &(struct rg_fault_moment){RG_FAULT_AT_SEQ, phase, seq, NULL});
    if (self->scenario->replay)
        commit_moment(self, &(struct rg_fault_moment){RG_FAULT_AT_REPLAY, phase,
                                                      seq, "A"});
    commit_moment(self, &(struct rg_fault_moment){RG_FAULT_AT_TIME, phase,
                                                  elapsed_ns, NULL});
    if (phase == RG_FAULT_IN_IDLE)
        at_idle_view(self);
}

void rg_recovery_probe(void *member, enum rg_phase phase, uint64_t epoch)
{
    static const enum rg_fault_phase in[RG_PHASE_COUNT] = {
        [RG_PHASE_PREPARE] = RG_FAULT_IN_QUIESCE,
        [RG_PHASE_HELD] = RG_FAULT_IN_PARKED,
        [RG_PHASE_ACTIVATE] = RG_FAULT_IN_APPLY,
    };
    struct rg_recovery_member *self = member;

    rg_worker_event(self->worker, rg_phase_name(phase), epoch);
    if (in[phase] != RG_FAULT_IN_ANY)
        commit_due(self, self->job->rank,
                   &(struct rg_fault_moment){RG_FAULT_AT_VIEW, in[phase], epoch,
                                             NULL});
}

/* ---- in the midst of a launch ------------------------------------------- */

/* Somewhere within the time that the last launch took. */
static uint64_t mid_delay_ns(const struct rg_recovery_member *self)
{
    const uint64_t mixed =
        (self->scenario->seed + (uint64_t)self->faults.mid_entry * 977 + 1) *
        UINT64_C(0x9e3779b97f4a7c15);

    return self->launch_ns ? (mixed >> 20) % self->launch_ns : 0;
}

/* Says whether the launch was still under way when it asked. */
static void *mid_main(void *arg)
{
    struct rg_recovery_member *self = arg;
    struct rg_recovery_faults *faults = &self->faults;
    uint64_t begin_ns;
    uint64_t at;

    while (__atomic_load_n(&faults->launched, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    begin_ns = rg_now_ns();
    do {
        at = __atomic_load_n(&faults->launched, __ATOMIC_ACQUIRE);
    } while (at == 1 && rg_now_ns() - begin_ns < mid_delay_ns(self));
    rg_worker_event(self->worker, at == 1 ? "mid" : "mid: too late", at);
    commit(self, &faults->mid_fault, faults->mid_entry);
    return NULL;
}

static int take_mid(struct rg_recovery_member *self, uint64_t seq)
{
    const int own = self->job->rank;
    struct rg_fault_moment moment = {RG_FAULT_AT_SEQ, RG_FAULT_IN_MID, seq,
                                     NULL};
    int entry = take_due(self, own, &moment, &self->faults.mid_fault);
    uint64_t views;

    if (entry < 0 && self->scenario->replay) {
        moment.trigger = RG_FAULT_AT_REPLAY;
        moment.graph = "A";
        entry = take_due(self, own, &moment, &self->faults.mid_fault);
    }
    moment =
        (struct rg_fault_moment){RG_FAULT_AT_VIEW, RG_FAULT_IN_MID, 1, NULL};
    views = entry < 0 && is_settled(self) ? views_so_far(self) : 0;
    for (; entry < 0 && moment.at <= views; moment.at++)
        entry = take_due(self, own, &moment, &self->faults.mid_fault);
    return entry;
}

void rg_recovery_mid_begin(struct rg_recovery_member *self, uint64_t seq)
{
    struct rg_recovery_faults *faults = &self->faults;

    faults->mid_entry = take_mid(self, seq);
    if (faults->mid_entry < 0)
        return;
    faults->launched = 0;
    faults->mid_armed =
        pthread_create(&faults->mid_thread, NULL, mid_main, self) == 0;
    __atomic_store_n(&faults->launched, 1, __ATOMIC_RELEASE);
}

void rg_recovery_mid_end(struct rg_recovery_member *self)
{
    struct rg_recovery_faults *faults = &self->faults;

    if (!faults->mid_armed)
        return;
    __atomic_store_n(&faults->launched, 2, __ATOMIC_RELEASE);
    pthread_join(faults->mid_thread, NULL);
    faults->mid_armed = 0;
}

/* ---- what is to come ---------------------------------------------------- */

int rg_recovery_pending(struct rg_recovery_member *self, uint64_t seq)
{
    int pending = 0;

    pthread_mutex_lock(&self->faults.lock);
    for (int i = 0; i < rg_fault_plan_size(self->faults.plan); i++) {
        const struct rg_fault *fault =
            rg_fault_plan_entry(self->faults.plan, i);
        const int by_count = fault->trigger == RG_FAULT_AT_SEQ ||
                             fault->trigger == RG_FAULT_AT_REPLAY;

        if (fault->injected || (by_count && fault->at < seq))
            continue;
        pending +=
            fault->rank == self->job->rank ||
            (fault->action == RG_FAULT_REJOIN && speaks_for(self, fault->rank));
    }
    pthread_mutex_unlock(&self->faults.lock);
    return pending;
}
