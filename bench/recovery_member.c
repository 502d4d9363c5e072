/* A rank of recovery_perf: its group, its loop, and what it notices. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algos/algos.h"
#include "bench/recovery.h"
#include "harness/group.h"
#include "harness/preference.h"
#include "harness/wait.h"

enum { WAIT_MS = 60000 }; /* for the others, or for a fault to be noticed */
#define NS_PER_MS UINT64_C(1000000)

struct recovery_member {
    const struct recovery_plan *plan;
    const struct rg_job *job;
    struct rg_context *context;
    struct rg_comm *comm;
    struct rg_stream *stream;
    struct rg_graph *graph;
    size_t count;
    uint32_t *send; /* device memory */
    uint32_t *recv;
    uint32_t *host;
    int captures;
    uint64_t wrong;

    struct rg_view_info before; /* the view that the next fault ends */

    pthread_mutex_t lock; /* for all below: the probe has its own thread */
    pthread_cond_t reached;
    uint64_t epoch; /* phases of later ones are noticed */
    uint64_t phase_ns[RG_PHASE_COUNT];
};

/* One invocation, as this rank saw it. */
struct invocation {
    uint64_t seq;
    uint64_t decided_ns; /* its outcome is known here */
    struct rg_outcome outcome;
};

static uint64_t wait_limit(void)
{
    return rg_now_ns() + WAIT_MS * NS_PER_MS;
}

/* ---- phases ------------------------------------------------------------- */

/*
 * A change that begins again, because another rank failed meanwhile, is told
 * from its first beginning and by its last attempt.
 */
static void reached(void *arg, enum rg_phase phase, uint64_t epoch)
{
    struct recovery_member *self = arg;
    const uint64_t now = rg_now_ns();

    pthread_mutex_lock(&self->lock);
    if (epoch > self->epoch &&
        (phase != RG_PHASE_PREPARE || self->phase_ns[phase] == 0))
        self->phase_ns[phase] = now;
    pthread_cond_broadcast(&self->reached);
    pthread_mutex_unlock(&self->lock);
}

static void notice_from(struct recovery_member *self, uint64_t epoch)
{
    pthread_mutex_lock(&self->lock);
    self->epoch = epoch;
    memset(self->phase_ns, 0, sizeof self->phase_ns);
    pthread_mutex_unlock(&self->lock);
}

/* The group may have gone on before its thread here says that it has. */
static void take_phases(struct recovery_member *self, uint64_t *phase_ns)
{
    const uint64_t limit = wait_limit();
    int late = 0;

    pthread_mutex_lock(&self->lock);
    while (self->phase_ns[RG_PHASE_OPEN] == 0 && !late)
        late = rg_wait_until(&self->reached, &self->lock, limit);
    memcpy(phase_ns, self->phase_ns, sizeof self->phase_ns);
    pthread_mutex_unlock(&self->lock);
}

/* ---- invocations -------------------------------------------------------- */

static int launch(struct recovery_member *self)
{
    return rg_all_reduce(self->send, self->recv, self->count, RG_u32, RG_sum,
                         self->comm, self->stream);
}

static int capture(struct recovery_member *self)
{
    int status = rg_graph_begin(self->stream);

    if (status == RG_OK)
        status = launch(self);
    if (status == RG_OK)
        status = rg_graph_end(self->stream, &self->graph);
    self->captures++;
    return status;
}

/* Element i of a slot's input is this plus i. */
static uint32_t base_of(int slot, uint64_t seq)
{
    return (uint32_t)(slot + 1) * 2654435761u + (uint32_t)seq * 40503u;
}

static int load(struct recovery_member *self, uint64_t seq)
{
    struct rg_view_info view;
    uint32_t base;
    int status = rg_comm_view(self->comm, &view);

    if (status != RG_OK)
        return status;
    base = base_of(view.slot, seq);
    for (size_t i = 0; i < self->count; i++)
        self->host[i] = base + (uint32_t)i;
    return rg_memcpy(self->context, self->send, self->host,
                     self->count * sizeof *self->host);
}

/* What is committed must be the sum over exactly its participants. */
static int check(struct recovery_member *self, uint64_t seq,
                 const struct rg_outcome *outcome)
{
    uint32_t base = 0, n = 0;
    int status = rg_memcpy(self->context, self->host, self->recv,
                           self->count * sizeof *self->host);

    for (int slot = 0; slot < self->job->size; slot++) {
        if (outcome->participants[slot / 64] >> (slot % 64) & 1) {
            base += base_of(slot, seq);
            n++;
        }
    }
    for (size_t i = 0; status == RG_OK && i < self->count; i++)
        self->wrong += self->host[i] != base + n * (uint32_t)i;
    return status;
}

static int invoke(struct recovery_member *self, struct invocation *what)
{
    uint64_t last;
    int status = rg_comm_seq(self->comm, &last);

    if (status == RG_OK)
        status = load(self, last + 1);
    if (status == RG_OK)
        status = self->graph ? rg_graph_launch(self->graph, self->stream)
                             : launch(self);
    if (status == RG_OK)
        status = rg_stream_synchronize(self->stream);
    if (status == RG_OK)
        status = rg_comm_seq(self->comm, &what->seq);
    if (status == RG_OK)
        status = rg_comm_wait(self->comm, what->seq, &what->outcome);
    what->decided_ns = rg_now_ns();
    if (status == RG_OK && what->outcome.state == RG_OUTCOME_COMMITTED)
        status = check(self, last + 1, &what->outcome);
    return status;
}

int recovery_member_check(struct recovery_member *self)
{
    struct invocation what;
    const uint64_t wrong = self->wrong;
    int status = invoke(self, &what);

    if (status == RG_OK &&
        (what.outcome.state != RG_OUTCOME_COMMITTED || self->wrong != wrong))
        status = RG_EFAILED;
    return status;
}

/* ---- the loop ----------------------------------------------------------- */

static int make_stamp(struct recovery_member *self,
                      const struct invocation *first,
                      struct recovery_stamp *stamp_out)
{
    struct recovery_stamp stamp = {
        .tag = RECOVERY_TAG_STAMP,
        .captures = self->captures,
        .epoch = first->outcome.epoch,
        .committed_seq = first->seq,
        .wrong = self->wrong,
        .good_ns = first->decided_ns,
    };
    struct rg_view_info view;
    int status = rg_group_members(self->comm, &view, &stamp.members);

    if (status != RG_OK)
        return status;
    stamp.succeeded = view.term != self->before.term;
    take_phases(self, stamp.phase_ns);
    *stamp_out = stamp;
    return RG_OK;
}

int recovery_member_run(struct recovery_member *self, uint64_t until_ns,
                        struct recovery_stamp *stamp_out)
{
    const uint64_t limit_ns =
        wait_limit() + (uint64_t)self->plan->pause_ms * NS_PER_MS;
    struct invocation what;
    int status;

    do {
        const uint64_t now = rg_now_ns();

        if (now >= until_ns)
            return RG_EPENDING;
        if (now >= limit_ns)
            return RG_ETIMEDOUT;
        status = invoke(self, &what);
        if (status != RG_OK)
            return status;
    } while (what.outcome.state != RG_OUTCOME_COMMITTED ||
             what.outcome.epoch == self->before.epoch);
    return make_stamp(self, &what, stamp_out);
}

/*
 * Before all have met: one that is late behind it may find that the fault has
 * come already.
 */
int recovery_member_meet(struct recovery_member *self,
                         struct recovery_turn *turn)
{
    struct recovery_turn all[RECOVERY_RANKS_MAX];
    int status = rg_comm_view(self->comm, &self->before);

    if (status == RG_OK) {
        notice_from(self, self->before.epoch);
        status = rg_comm_gather(self->comm, turn, sizeof *turn, all);
    }
    for (int r = 0; status == RG_OK && r < self->before.nranks; r++)
        if (all[r].injection > turn->injection)
            *turn = all[r];
    return status;
}

int recovery_member_join(struct recovery_member *self)
{
    char none[1] = {0};

    return rg_comm_gather(self->comm, none, 0, none);
}

/* 1 when somebody waits to be let in, as far as this rank has heard. */
static int heard_of_waiting(struct recovery_member *self)
{
    struct rg_notice notice;
    int heard = 0;

    while (rg_comm_next_notice(self->comm, 0, &notice) == RG_OK) {
        if (notice.kind == RG_NOTICE_WAITING)
            heard = 1;
        else if (notice.kind == RG_NOTICE_VIEW)
            heard = 0; /* whoever waited has come in, or is told of again */
    }
    return heard;
}

/* Members decide on what all have heard, so that all admit at once. */
int recovery_member_complete(struct recovery_member *self)
{
    const uint64_t limit_ns = wait_limit();
    int heard[RECOVERY_RANKS_MAX];
    struct rg_view_info view;
    int status = rg_comm_view(self->comm, &view);

    while (status == RG_OK && view.nranks < self->job->size) {
        int mine = heard_of_waiting(self);
        int any = 0;

        if (rg_now_ns() >= limit_ns)
            return RG_ETIMEDOUT;
        status = rg_comm_gather(self->comm, &mine, sizeof mine, heard);
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

int recovery_member_rejoin(struct recovery_member *self)
{
    return rg_comm_rejoin(self->comm, WAIT_MS);
}

/* ---- life --------------------------------------------------------------- */

static int enter_group(struct recovery_member *self,
                       const struct recovery_member_config *config)
{
    struct rg_context_config context;
    int status = rg_job_context_config(
        self->job, (enum rg_device_kind)self->plan->device, &context);

    if (status != RG_OK)
        return status;
    context.backend = rg_preference((enum rg_backend)self->plan->backend);
    context.algos = rg_algos;
    context.probe = (struct rg_probe){reached, self};
    context.ticket = config->ticket;
    context.ticket_bytes = config->ticket_bytes;
    context.process = config->process;
    status = rg_context_create(&context, &self->context);
    if (status == RG_OK)
        status = rg_comm_create(self->context, &self->comm);
    if (status == RG_OK)
        status = rg_stream_create(self->context, &self->stream);
    return status;
}

static int make_buffers(struct recovery_member *self)
{
    const size_t bytes = self->count * sizeof *self->host;
    int status;

    self->host = malloc(bytes);
    if (!self->host)
        return RG_ENOMEM;
    status = rg_malloc(self->context, bytes, (void **)&self->send);
    if (status == RG_OK)
        status = rg_malloc(self->context, bytes, (void **)&self->recv);
    if (status == RG_OK && !self->plan->eager)
        status = capture(self);
    return status;
}

int recovery_member_create(const struct recovery_member_config *config,
                           struct recovery_member **member_out)
{
    struct recovery_member *self = calloc(1, sizeof *self);
    int status;

    if (!self)
        return RG_ENOMEM;
    self->plan = config->plan;
    self->job = config->job;
    self->count = config->plan->bytes / sizeof *self->host;
    pthread_mutex_init(&self->lock, NULL);
    status = rg_wait_init(&self->reached);
    if (status != RG_OK) {
        free(self);
        return status;
    }
    status = enter_group(self, config);
    if (status == RG_OK)
        status = make_buffers(self);
    if (status != RG_OK)
        goto error;
    *member_out = self;
    return RG_OK;
error:
    recovery_member_destroy(self);
    return status;
}

void recovery_member_destroy(struct recovery_member *self)
{
    if (!self)
        return;
    rg_group_leave(&(struct rg_group_parts){self->context,
                                            self->comm,
                                            self->stream,
                                            self->graph,
                                            {self->send, self->recv}});
    pthread_cond_destroy(&self->reached);
    pthread_mutex_destroy(&self->lock);
    free(self->host);
    free(self);
}

struct rg_context *recovery_member_context(const struct recovery_member *self)
{
    return self->context;
}

void recovery_member_describe(const struct recovery_member *self, char *text,
                              size_t bytes)
{
    if (!self || !self->comm || rg_comm_describe(self->comm, text, bytes))
        *text = '\0';
}

int recovery_member_hello(const struct recovery_member *self,
                          struct recovery_hello *hello_out)
{
    struct recovery_hello hello = {.tag = RECOVERY_TAG_HELLO};
    struct rg_view_info view;
    struct rg_topo *topo;
    int status = rg_comm_view(self->comm, &view);

    if (status == RG_OK)
        status = rg_context_device_info(self->context, &hello.info);
    if (status == RG_OK)
        status = rg_topo_create(self->plan->device == RG_DEVICE_CUDA, &topo);
    if (status != RG_OK)
        return status;
    rg_topo_place(topo, self->job, &hello.info, &hello.place);
    rg_topo_destroy(topo);
    hello.backend = (int32_t)view.backend;
    hello.policy_hash = view.policy_hash;
    *hello_out = hello;
    return RG_OK;
}
