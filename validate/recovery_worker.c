#include "validate/recovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algos/algos.h"
#include "harness/group.h"
#include "harness/preference.h"
#include "harness/verdict.h"
#include "harness/wait.h"
#include "validate/recovery_member.h"

enum {
    TICKET_MS = 30000, /* for the group to tell how to enter it */
    RETURN_MS = 30000, /* for the group to let a rank in again */
    NOTICE_MS = 5000,  /* for the name of who has failed (RG_MODE) */
    PACE_MS = 2        /* a step, while all that is left is to wait */
};

/* ---- the group ---------------------------------------------------------- */

/* "NAME=VALUE;..." into the environment, before anything reads it. */
static void apply_settings(const char *settings)
{
    char text[RG_RECOVERY_SETTINGS_MAX];
    char *rest = text;
    char *setting;

    snprintf(text, sizeof(text), "%s", settings);
    while ((setting = strsep(&rest, ";")) != NULL) {
        char *value = strchr(setting, '=');

        if (value == NULL)
            continue;
        *value = '\0';
        setenv(setting, value + 1, 1);
    }
}

/* So that a process started anew can find the group. */
static int publish_ticket(struct rg_recovery_member *self)
{
    unsigned char *ticket;
    size_t bytes;
    int status = rg_context_ticket(self->context, &ticket, &bytes);

    if (status != RG_OK)
        return status;
    status = rg_worker_publish(self->worker, ticket, bytes);
    free(ticket);
    return status;
}

/* A process started anew brings a ticket instead of the exchange. */
static int take_ticket(struct rg_recovery_member *self,
                       struct rg_context_config *config, void **ticket_out)
{
    const int life = rg_worker_life(self->worker);
    int number;
    int status;

    *ticket_out = NULL;
    if (life == 0)
        return RG_OK;
    status = rg_worker_ticket(self->worker, 0, TICKET_MS, ticket_out,
                              &config->ticket_bytes, &number);
    if (status != RG_OK)
        return status;
    config->ticket = *ticket_out;
    config->process = (uint32_t)life + 1;
    return RG_OK;
}

static int make_context(struct rg_recovery_member *self)
{
    struct rg_context_config config;
    void *ticket = NULL;
    int status = rg_job_context_config(
        self->job, (enum rg_device_kind)self->scenario->device, &config);

    if (status == RG_OK)
        status = take_ticket(self, &config, &ticket);
    if (status != RG_OK)
        return status;
    config.backend = rg_preference((enum rg_backend)self->scenario->backend);
    config.algos = self->scenario->probe ? rg_algos_with_probes : rg_algos;
    config.emu_team_width = self->scenario->team_width;
    config.emu_max_teams = self->scenario->teams;
    config.probe = (struct rg_probe){rg_recovery_probe, self};
    status = rg_context_create(&config, &self->context);
    free(ticket);
    return status;
}

/* To every member of the view; to others RG_ROUTE_NULL. */
static void note_routes(struct rg_recovery_member *self, uint8_t *routes_out)
{
    for (int rank = 0; rank < self->job->size; rank++) {
        enum rg_route_kind kind = RG_ROUTE_NULL;

        rg_comm_route(self->comm, rank, &kind);
        routes_out[rank] = (uint8_t)kind;
    }
}

/* Bootstrap moments: 0 before there is a context, 1 behind it. */
static int enter_group(struct rg_recovery_member *self)
{
    const size_t bytes = rg_recovery_bytes(self->scenario);
    int status;

    rg_recovery_at(self, RG_FAULT_IN_BOOTSTRAP, 0);
    status = make_context(self);
    if (status == RG_OK)
        rg_recovery_at(self, RG_FAULT_IN_BOOTSTRAP, 1);
    if (status == RG_OK)
        status = rg_comm_create(self->context, &self->comm);
    if (status == RG_OK)
        note_routes(self, self->report->first_routes);
    if (status == RG_OK)
        status = publish_ticket(self);
    if (status == RG_OK)
        status = rg_stream_create(self->context, &self->stream);
    if (status == RG_OK)
        status = rg_malloc(self->context, bytes, (void **)&self->send);
    if (status == RG_OK)
        status = rg_malloc(self->context, bytes, (void **)&self->recv);
    if (status == RG_OK)
        status = rg_recovery_probes_create(self);
    if (status == RG_OK)
        status = rg_recovery_calls_create(self);
    return status == RG_OK ? rg_recovery_capture(self) : status;
}

/* ---- changes of the group ----------------------------------------------- */

static int is_out(int status)
{
    return status == RG_EISOLATED || status == RG_ECLOSED;
}

/*
 * A change that was asked for and did not come to be is asked for again, by
 * all, when a later step says that it is still wanted.
 */
static int or_later(int status)
{
    return is_out(status) || status == RG_ETIMEDOUT ? status : RG_OK;
}

static int admit(struct rg_recovery_member *self)
{
    const int status = rg_comm_admit(self->comm);

    self->report->admits += status == RG_OK;
    return or_later(status);
}

static int let_leave(struct rg_recovery_member *self, int slot)
{
    const int status = rg_comm_leave(self->comm, &slot, 1);

    self->report->leaves += status == RG_OK;
    return or_later(status);
}

/* Ranks that are members no more and are not to be again. */
static uint64_t lost_for_good(const struct rg_recovery_member *self)
{
    return ~(self->participants | self->scenario->members) &
           ~(UINT64_MAX << (self->job->size - 1) << 1);
}

/*
 * While one that was left behind may still act, nobody is let in. On another
 * host nothing says that its process has ended but its supervisor.
 */
static int has_to_vouch(struct rg_recovery_member *self)
{
    const uint64_t lost = lost_for_good(self);
    int ends;

    if (self->participants == self->scenario->members ||
        (lost & ~self->vouched) == 0)
        return 0;
    for (int rank = 0; rank < self->job->size; rank++)
        if (lost >> rank & 1 &&
            (rg_worker_ends(self->worker, rank, &ends) != RG_OK || ends == 0))
            return 0;
    return 1;
}

/* This, too, lets in who waits. */
static int vouch(struct rg_recovery_member *self)
{
    const uint64_t lost = lost_for_good(self);
    int slots[RG_RECOVERY_RANKS_MAX];
    int status;
    int n = 0;

    for (int slot = 0; slot < RG_RECOVERY_RANKS_MAX; slot++)
        if (lost >> slot & 1)
            slots[n++] = slot;
    status = rg_comm_vouch(self->comm, slots, n);
    if (status == RG_OK)
        self->vouched |= lost;
    self->report->admits += status == RG_OK;
    return or_later(status);
}

/* Takes all notices; whether anybody waits to be let in now. */
static void hear_notices(struct rg_recovery_member *self, int timeout_ms)
{
    struct rg_notice notice;

    while (rg_comm_next_notice(self->comm, timeout_ms, &notice) == RG_OK) {
        if (notice.kind == RG_NOTICE_WAITING)
            self->votes[RG_VOTE_ADMIT] = 1;
        else if (notice.kind == RG_NOTICE_FAILED)
            self->failed = notice.slots[0];
        else if (notice.kind == RG_NOTICE_VIEW)
            self->votes[RG_VOTE_ADMIT] = self->failed = 0;
        timeout_ms = 0;
    }
}

int rg_recovery_remove_failed(struct rg_recovery_member *self)
{
    const uint64_t deadline_ns = rg_now_ns() + NOTICE_MS * UINT64_C(1000000);
    int slots[RG_RECOVERY_RANKS_MAX];
    int n = 0;

    while (!self->failed && rg_now_ns() < deadline_ns)
        hear_notices(self, PACE_MS);
    if (!self->failed)
        return RG_ETIMEDOUT;
    rg_comm_clear_error(self->comm);
    for (int slot = 0; slot < RG_RECOVERY_RANKS_MAX; slot++)
        if (self->failed >> slot & 1)
            slots[n++] = slot;
    return or_later(self->scenario->mode == 2
                        ? rg_comm_leave(self->comm, slots, n)
                        : rg_comm_admit(self->comm));
}

/* Out of the group: asks to be let in again, over links that work. */
static int come_back(struct rg_recovery_member *self, int reason)
{
    int status = reason;

    if (self->scenario->comes_back && !self->faults.abandoned) {
        rg_worker_event(self->worker, "out", (uint64_t)-reason);
        rg_recovery_heal(self, UINT64_MAX);
        status = rg_comm_rejoin(self->comm, RETURN_MS);
    }
    if (status != RG_OK) {
        self->report->status = status;
        return status;
    }
    rg_worker_event(self->worker, "back", 0);
    self->report->returns++;
    self->participants = 0;
    self->votes[RG_VOTE_ADMIT] = 0;
    return RG_OK;
}

/* ---- steps -------------------------------------------------------------- */

static uint64_t seq_of(const struct rg_recovery_member *self)
{
    return self->lines[self->report->lines - 1].seq;
}

static int is_complete(const struct rg_recovery_member *self)
{
    return seq_of(self) >= (uint64_t)self->scenario->steps &&
           self->participants == self->scenario->members &&
           !self->counted[RG_VOTE_ADMIT] && !self->counted[RG_VOTE_PENDING];
}

/*
 * As all members decide it: by what is committed. One step may be committed
 * by the change that removes a member, so it takes several of one view.
 */
static int is_last(struct rg_recovery_member *self)
{
    enum { SETTLED = 3 };

    if (!is_complete(self) || self->steps_in_epoch == 1)
        self->settled = 0;
    self->settled += is_complete(self);
    return self->settled == SETTLED || self->counted[RG_VOTE_LATE];
}

/* Every so many steps of the complete group the next rank leaves. */
static int leaves_now(const struct rg_recovery_member *self)
{
    const uint64_t churn = (uint64_t)self->scenario->churn;

    return churn && self->participants == self->scenario->members &&
           seq_of(self) < (uint64_t)self->scenario->steps &&
           (uint64_t)self->steps_in_epoch == churn;
}

static void vote(struct rg_recovery_member *self)
{
    const uint64_t elapsed_ns = rg_now_ns() - self->scenario->begin_ns;
    const int room = RG_RECOVERY_LINES_MAX - self->report->lines;

    self->votes[RG_VOTE_LATE] =
        elapsed_ns > (uint64_t)self->scenario->limit_ms * 1000000 ||
        room < 4 * self->scenario->batch;
    self->votes[RG_VOTE_VOUCH] = (uint64_t)has_to_vouch(self);
    self->votes[RG_VOTE_PENDING] =
        (uint64_t)rg_recovery_pending(self, seq_of(self) + 1);
}

/* What all members do behind a step that is committed. */
static int follow_votes(struct rg_recovery_member *self)
{
    const int size = self->job->size;

    rg_recovery_heal(self,
                     self->scenario->comes_back ? ~self->participants : 0);
    if (self->counted[RG_VOTE_VOUCH] ==
        (uint64_t)__builtin_popcountll(self->participants))
        return vouch(self);
    if (self->counted[RG_VOTE_ADMIT])
        return admit(self);
    if (leaves_now(self))
        return let_leave(self, (int)(self->epoch / 2) % size);
    return RG_OK;
}

/* All memory that the group will use has been touched. */
static int is_warm(const struct rg_recovery_member *self)
{
    const uint64_t warm = (uint64_t)self->scenario->warm;

    return warm && self->epoch >= self->first_epoch + warm &&
           self->steps_in_epoch == 2 &&
           self->participants == self->scenario->members;
}

/* One step and what follows; *last_out: it was the last. */
static int go_on(struct rg_recovery_member *self, int *last_out)
{
    int status = rg_recovery_step(self);

    if (status != RG_OK || self->aborted)
        return status;
    if (is_warm(self) && self->report->warm.threads == 0)
        rg_census_take(&self->report->warm);
    if (is_last(self)) {
        *last_out = 1;
        return RG_OK;
    }
    status = follow_votes(self);
    hear_notices(self,
                 seq_of(self) < (uint64_t)self->scenario->steps ? 0 : PACE_MS);
    vote(self);
    return status;
}

/* RG_OK also when it is out for good: that is for the supervisors to judge. */
static int take_steps(struct rg_recovery_member *self)
{
    int status = RG_OK;
    int last = 0;

    while (status == RG_OK && !last) {
        status = go_on(self, &last);
        if (is_out(status) && come_back(self, status) == RG_OK)
            status = RG_OK;
    }
    return self->report->status != RG_OK ? RG_OK : status;
}

/* ---- the report --------------------------------------------------------- */

static int describe_group(struct rg_recovery_member *self)
{
    struct rg_view_info view;
    uint64_t members;
    int status = rg_group_members(self->comm, &view, &members);

    if (status != RG_OK)
        return status;
    self->report->epoch = view.epoch;
    self->report->backend = (int32_t)view.backend;
    self->report->members = members;
    note_routes(self, self->report->routes);
    return RG_OK;
}

/* The end is common, so that nobody who leaves looks like one who failed. */
static int finish(struct rg_recovery_member *self)
{
    char none[1];
    int status;

    if (self->report->status != RG_OK)
        return RG_OK;
    status = rg_comm_gather(self->comm, none, 0, none);
    if (status == RG_OK)
        status = describe_group(self);
    if (self->report->warm.threads != 0)
        rg_census_settle(&self->report->warm, &self->report->end);
    return status;
}

static int be_member(struct rg_recovery_member *self)
{
    int status;

    rg_census_take(&self->report->before);
    status = enter_group(self);
    if (status == RG_OK)
        status = take_steps(self);
    if (status == RG_OK)
        status = finish(self);
    rg_recovery_calls_destroy(self);
    rg_group_leave(&(struct rg_group_parts){
        self->context,
        self->comm,
        self->stream,
        self->graph,
        {self->send, self->recv, self->probes.memory}});
    rg_census_settle(&self->report->before, &self->report->after);
    /* CUDA keeps what it has opened for a context until the process ends. */
    if (self->scenario->device == RG_DEVICE_CUDA) {
        self->report->before.descriptors = self->report->after.descriptors;
        self->report->before.shared = self->report->after.shared;
    }
    if (status != RG_OK)
        return status;
    return rg_worker_report(self->worker, self->report,
                            sizeof(*self->report) +
                                (size_t)self->report->lines *
                                    sizeof(*self->lines));
}

/* ---- the process -------------------------------------------------------- */

static int prepare(struct rg_recovery_member *self)
{
    size_t bytes;

    self->job = rg_worker_job(self->worker);
    self->scenario = rg_worker_scenario(self->worker, &bytes);
    apply_settings(self->scenario->settings);
    self->host = malloc(rg_recovery_bytes(self->scenario));
    self->report = calloc(1, sizeof(*self->report) +
                                 RG_RECOVERY_LINES_MAX * sizeof(*self->lines));
    if (self->host == NULL || self->report == NULL)
        return RG_ENOMEM;
    self->lines = (struct rg_recovery_line *)(self->report + 1);
    return rg_recovery_faults_create(self);
}

int rg_recovery_worker(struct rg_worker *worker)
{
    struct rg_recovery_member self = {.worker = worker};
    int status = prepare(&self);

    if (status == RG_OK)
        status = be_member(&self);
    if (status != RG_OK)
        fprintf(stderr, "rank %d: %s\n", self.job->rank,
                rg_status_string(status));
    rg_recovery_faults_destroy(&self);
    free(self.report);
    free(self.host);
    return rg_exit_of_status(status);
}
