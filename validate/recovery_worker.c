#include "validate/recovery.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algos/algos.h"
#include "harness/verdict.h"
#include "harness/wire.h"
#include "harness/worker.h"

/* For a rank that shall come back. */
enum { WAIT_MS = 30000 };

/* A kill in the middle of an invocation comes so long after its launch. */
#define MID_NS UINT64_C(150000)

struct member {
    struct rg_worker *worker;
    const struct rg_job *job;
    const struct rg_recovery_scenario *scenario;
    pthread_mutex_t lock; /* of the plan: the probe has its own thread */
    struct rg_fault_plan *plan;

    struct rg_context *context;
    struct rg_comm *comm;
    struct rg_stream *stream;
    struct rg_graph *graph;
    uint32_t *send; /* device memory */
    uint32_t *recv;
    uint32_t *host;
    struct rg_recovery_report *report;
    void *ticket; /* that this process came with */
};

/* ---- faults ------------------------------------------------------------- */

/* Takes the next entry that is due; -1: none. */
static int take_due(struct member *self, const struct rg_fault_moment *moment,
                    struct rg_fault *fault_out)
{
    int entry;

    pthread_mutex_lock(&self->lock);
    entry = rg_fault_plan_due(self->plan, 0, self->job->rank, moment);
    if (entry >= 0) {
        *fault_out = *rg_fault_plan_entry(self->plan, entry);
        rg_fault_plan_count(self->plan, entry);
    }
    pthread_mutex_unlock(&self->lock);
    return entry;
}

static void commit_fault(struct member *self, const struct rg_fault *fault,
                         int entry)
{
    const int mid = fault->phase == RG_FAULT_IN_MID;
    const struct rg_injection injection = {
        .action = fault->action,
        .entry = entry,
        .rank = fault->rank,
        .delay_ns = mid ? MID_NS : 0,
        .duration_ns = fault->duration_ns,
    };

    rg_worker_inject(self->worker, &injection);
    if (fault->action == RG_FAULT_EXIT)
        _exit(RG_EXIT_PASS);
    if (fault->action == RG_FAULT_DROP)
        rg_context_drop_link(self->context, fault->to, 1);
}

/* Returns whether a fault was due. */
static int reach(struct member *self, enum rg_fault_trigger trigger,
                 enum rg_fault_phase phase, uint64_t at)
{
    const struct rg_fault_moment moment = {trigger, phase, at, "A"};
    struct rg_fault fault;
    int any = 0;
    int entry;

    while ((entry = take_due(self, &moment, &fault)) >= 0) {
        commit_fault(self, &fault, entry);
        any = 1;
    }
    return any;
}

/* The n-th invocation is, when it is replayed, also the n-th replay. */
static int reach_invocation(struct member *self, enum rg_fault_phase phase,
                            int n)
{
    int any = reach(self, RG_FAULT_AT_SEQ, phase, (uint64_t)n);

    if (self->scenario->replay)
        any |= reach(self, RG_FAULT_AT_REPLAY, phase, (uint64_t)n);
    return any;
}

/* On the communicator's own thread. */
static void reached(void *arg, enum rg_phase phase, uint64_t epoch)
{
    static const enum rg_fault_phase in[RG_PHASE_COUNT] = {
        [RG_PHASE_PREPARE] = RG_FAULT_IN_QUIESCE,
        [RG_PHASE_HELD] = RG_FAULT_IN_PARKED,
        [RG_PHASE_ACTIVATE] = RG_FAULT_IN_APPLY,
    };
    struct member *self = arg;

    rg_worker_event(self->worker, rg_phase_name(phase), epoch);
    if (in[phase] != RG_FAULT_IN_ANY)
        reach(self, RG_FAULT_AT_VIEW, in[phase], epoch);
}

/* ---- the group ---------------------------------------------------------- */

static void set_timeouts(int stall_ms)
{
    char text[16];

    if (stall_ms == 0)
        return;
    snprintf(text, sizeof(text), "%d", stall_ms);
    setenv("RG_DEADLINE_MS", text, 1);
    setenv("RG_HEARTBEAT_MISS_MS", text, 1);
}

/* So that a process started anew can find the group. */
static int publish_ticket(struct member *self)
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
static int take_ticket(struct member *self, struct rg_context_config *config)
{
    const int life = rg_worker_life(self->worker);
    void *ticket;
    int number;
    int status;

    if (life == 0)
        return RG_OK;
    status = rg_worker_ticket(self->worker, 0, WAIT_MS, &ticket,
                              &config->ticket_bytes, &number);
    if (status != RG_OK)
        return status;
    self->ticket = ticket;
    config->ticket = ticket;
    config->process = (uint32_t)life + 1;
    return RG_OK;
}

static int enter_group(struct member *self)
{
    struct rg_context_config config;
    int status = rg_job_context_config(
        self->job, (enum rg_device_kind)self->scenario->device, &config);

    if (status == RG_OK)
        status = take_ticket(self, &config);
    if (status != RG_OK)
        return status;
    config.algos = rg_algos;
    config.emu_team_width = self->scenario->team_width;
    config.emu_max_teams = self->scenario->teams;
    config.probe = (struct rg_probe){reached, self};
    reach(self, RG_FAULT_AT_SEQ, RG_FAULT_IN_BOOTSTRAP, 0);
    status = rg_context_create(&config, &self->context);
    if (status == RG_OK)
        status = rg_comm_create(self->context, &self->comm);
    if (status == RG_OK)
        status = rg_stream_create(self->context, &self->stream);
    return status == RG_OK ? publish_ticket(self) : status;
}

static int launch(struct member *self)
{
    return rg_all_reduce(self->send, self->recv, (size_t)self->scenario->count,
                         RG_u32, RG_sum, self->comm, self->stream);
}

static int capture(struct member *self)
{
    int status = rg_graph_begin(self->stream);

    if (status == RG_OK)
        status = launch(self);
    if (status == RG_OK)
        status = rg_graph_end(self->stream, &self->graph);
    self->report->captures++;
    return status;
}

static int make_buffers(struct member *self)
{
    const size_t bytes = (size_t)self->scenario->count * sizeof(uint32_t);
    int status;

    self->host = malloc(bytes);
    self->report =
        calloc(1, sizeof(*self->report) + (size_t)self->scenario->invocations *
                                              sizeof(struct rg_recovery_line));
    if (self->host == NULL || self->report == NULL)
        return RG_ENOMEM;
    status = rg_malloc(self->context, bytes, (void **)&self->send);
    if (status == RG_OK)
        status = rg_malloc(self->context, bytes, (void **)&self->recv);
    if (status == RG_OK && self->scenario->replay)
        status = capture(self);
    return status;
}

/* Frees in the order of use; a group that changes does not hinder it. */
static void leave_group(struct member *self)
{
    rg_graph_destroy(self->graph);
    rg_stream_destroy(self->stream);
    if (self->context != NULL) {
        rg_free(self->context, self->send);
        rg_free(self->context, self->recv);
    }
    rg_comm_destroy(self->comm);
    rg_context_destroy(self->context);
    free(self->ticket);
    free(self->host);
    free(self->report);
}

/* ---- invocations -------------------------------------------------------- */

static uint32_t element(int rank, int n, size_t i)
{
    return (uint32_t)(rank + 1) * 2654435761u + (uint32_t)n * 40503u +
           (uint32_t)i;
}

static int load(struct member *self, int n)
{
    const size_t count = (size_t)self->scenario->count;

    for (size_t i = 0; i < count; i++)
        self->host[i] = element(self->job->rank, n, i);
    return rg_memcpy(self->context, self->send, self->host,
                     count * sizeof(uint32_t));
}

/* What is committed must be the sum over exactly its participants. */
static int check(struct member *self, int n, struct rg_recovery_line *line)
{
    const size_t count = (size_t)self->scenario->count;
    int status = rg_memcpy(self->context, self->host, self->recv,
                           count * sizeof(uint32_t));

    if (status != RG_OK)
        return status;
    line->digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) {
        uint32_t want = 0;

        for (int r = 0; r < self->job->size; r++)
            if (line->participants >> r & 1)
                want += element(r, n, i);
        line->wrong += self->host[i] != want;
        line->digest = (line->digest ^ self->host[i]) * UINT64_C(0x100000001b3);
    }
    return RG_OK;
}

static int take_outcome(struct member *self, int n,
                        struct rg_recovery_line *line)
{
    struct rg_outcome outcome;
    int status = rg_comm_seq(self->comm, &line->seq);

    if (status == RG_OK)
        status = rg_comm_wait(self->comm, line->seq, &outcome);
    if (status != RG_OK)
        return status;
    line->epoch = outcome.epoch;
    line->participants = outcome.participants[0];
    line->state = (int32_t)outcome.state;
    return outcome.state == RG_OUTCOME_COMMITTED ? check(self, n, line) : RG_OK;
}

static int invoke(struct member *self, int n, struct rg_recovery_line *line)
{
    int dying;
    int status = load(self, n);

    reach_invocation(self, RG_FAULT_IN_START, n);
    dying = reach_invocation(self, RG_FAULT_IN_MID, n);
    if (status == RG_OK)
        status = self->scenario->replay
                     ? rg_graph_launch(self->graph, self->stream)
                     : launch(self);
    if (status == RG_OK)
        status = rg_stream_synchronize(self->stream);
    if (dying)
        usleep((useconds_t)(MID_NS / 1000));
    reach_invocation(self, RG_FAULT_IN_COMPLETE, n);
    if (status == RG_OK)
        status = take_outcome(self, n, line);
    reach_invocation(self, RG_FAULT_IN_IDLE, n);
    return status;
}

/* 1 when somebody waits to be let in, as far as this rank has heard. */
static int heard_of_waiting(struct member *self)
{
    struct rg_notice notice;
    int heard = 0;

    while (rg_comm_next_notice(self->comm, 0, &notice) == RG_OK)
        heard |= notice.kind == RG_NOTICE_WAITING;
    return heard;
}

/*
 * Lets the missing rank in. Members go round together and decide on what all
 * have said, so that all call rg_comm_admit() in the same round.
 */
static int complete_group(struct member *self)
{
    const uint64_t deadline_ns = rg_now_ns() + WAIT_MS * UINT64_C(1000000);
    int heard[RG_RECOVERY_RANKS_MAX];
    struct rg_view_info view;
    int status = rg_comm_view(self->comm, &view);

    while (status == RG_OK && view.nranks < self->job->size) {
        int mine = heard_of_waiting(self);
        int any = 0;

        if (rg_now_ns() >= deadline_ns)
            return RG_ETIMEDOUT;
        status = rg_comm_gather(self->comm, &mine, sizeof(mine), heard);
        for (int r = 0; status == RG_OK && r < view.nranks; r++)
            any |= heard[r];
        if (status == RG_OK && any)
            status = rg_comm_admit(self->comm);
        else
            usleep(1000);
        if (status == RG_OK)
            status = rg_comm_view(self->comm, &view);
    }
    return status;
}

/* 1 behind an invocation where the group waits for a rank to come back. */
static int waits_behind(const struct member *self, int n)
{
    return n % RG_RECOVERY_ROUND == RG_RECOVERY_ADMIT &&
           n / RG_RECOVERY_ROUND < self->scenario->rejoins;
}

/* A rank that comes back goes on where the group is. */
static int run_invocations(struct member *self)
{
    struct rg_recovery_line *lines =
        (struct rg_recovery_line *)(self->report + 1);
    uint64_t epoch = 0;
    uint64_t last;
    int status = rg_comm_seq(self->comm, &last);

    for (int n = (int)last + 1;
         n <= self->scenario->invocations && status == RG_OK; n++) {
        struct rg_recovery_line *line = &lines[n - 1];

        status = invoke(self, n, line);
        if (status != RG_OK)
            break;
        self->report->lines = n;
        if (line->state == RG_OUTCOME_COMMITTED && line->epoch != epoch) {
            epoch = line->epoch;
            rg_worker_event(self->worker, "good", epoch);
        }
        if (waits_behind(self, n))
            status = complete_group(self);
    }
    return status;
}

static int describe_group(struct member *self)
{
    int ranks[RG_RECOVERY_RANKS_MAX];
    struct rg_view_info view;
    int status = rg_comm_view(self->comm, &view);

    if (status == RG_OK)
        status = rg_comm_members(self->comm, ranks);
    if (status != RG_OK)
        return status;
    self->report->epoch = view.epoch;
    for (int slot = 0; slot < view.capacity; slot++)
        if (ranks[slot] >= 0)
            self->report->members |= UINT64_C(1) << ranks[slot];
    return RG_OK;
}

/* The end is common, so that nobody who leaves looks like one who failed. */
static int finish(struct member *self)
{
    char none[1];
    int status = rg_comm_gather(self->comm, none, 0, none);

    return status == RG_OK ? describe_group(self) : status;
}

static int send_report(struct member *self)
{
    return rg_worker_report(self->worker, self->report,
                            sizeof(*self->report) +
                                (size_t)self->report->lines *
                                    sizeof(struct rg_recovery_line));
}

static int is_out(int status)
{
    return status == RG_EISOLATED || status == RG_ECLOSED;
}

/* Being out of the group is for the supervisors to judge. */
static int be_member(struct member *self)
{
    int status = enter_group(self);

    if (status == RG_OK)
        status = make_buffers(self);
    if (status != RG_OK)
        return status;
    status = run_invocations(self);
    if (status == RG_OK)
        status = finish(self);
    if (is_out(status)) {
        self->report->status = status;
        status = RG_OK;
    }
    return status == RG_OK ? send_report(self) : status;
}

int rg_recovery_worker(void)
{
    struct member self = {.lock = PTHREAD_MUTEX_INITIALIZER};
    size_t bytes;
    int status = rg_worker_open(&self.worker);

    if (status == RG_OK) {
        self.job = rg_worker_job(self.worker);
        self.scenario = rg_worker_scenario(self.worker, &bytes);
        set_timeouts(self.scenario->stall_ms);
        status = rg_fault_plan_create(self.scenario->plan, &self.plan, NULL);
    }
    if (status == RG_OK)
        status = be_member(&self);
    if (status != RG_OK)
        fprintf(stderr, "rank %d: %s\n", self.job ? self.job->rank : -1,
                rg_status_string(status));
    leave_group(&self);
    rg_fault_plan_destroy(self.plan);
    rg_worker_close(self.worker);
    return rg_exit_of_status(status);
}
