#include "validate/messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algos/algos.h"
#include "harness/group.h"
#include "harness/verdict.h"
#include "harness/wait.h"
#include "validate/findings.h"

enum {
    WAIT_MS = 20000, /* for a change of the group */
    PACE_US = 1000,
    WORDS = 40000, /* of the largest message: several chunks */
    ROUNDS = 6,    /* between two things that happen */
    ROUNDS_LOST = 400,
    LONE_BYTES = 8 << 20,
    DEATH_NS = 3000000, /* into the rounds */
    LATE_MS = 300,      /* of a device wait, where a message is withheld */
    POISON = 0xee
};

struct messages {
    struct rg_worker *worker;
    const struct rg_job *job;
    const struct rg_messages_scenario *scenario;
    struct rg_findings findings; /* the report */
    struct rg_context *context;
    struct rg_comm *comm;
    struct rg_stream *stream;
    struct rg_graph *graph;
    uint32_t *send, *recv; /* [size][WORDS], device memory */
    uint32_t *host;        /* [WORDS] */
    int active[RG_MESSAGES_RANKS_MAX];
    /* By rank, which is the slot: whole messages so far. */
    uint64_t sent[RG_MESSAGES_RANKS_MAX], received[RG_MESSAGES_RANKS_MAX];
};

#define fail(self, ...) rg_findings_fail(&(self)->findings, __VA_ARGS__)

/* ---- findings ----------------------------------------------------------- */

static int go_on(const struct messages *self)
{
    return !self->findings.failed;
}

/* 1: it is. */
static int expect(struct messages *self, int status, int wanted,
                  const char *what)
{
    return rg_findings_expect(&self->findings, status, wanted, what);
}

static int ok(struct messages *self, int status, const char *what)
{
    return expect(self, status, RG_OK, what);
}

static void barrier(struct messages *self)
{
    if (go_on(self))
        ok(self, rg_comm_gather(self->comm, NULL, 0, NULL), "rg_comm_gather");
}

/* ---- messages ----------------------------------------------------------- */

static int is_peer(const struct messages *self, int rank)
{
    return rank != self->job->rank && self->active[rank];
}

/* One word, or up to WORDS: both ends say the same. */
static size_t words(int from, int to)
{
    const size_t kind = (size_t)(from * 3 + to * 5) % 4;

    return kind == 0 ? 1 : kind * WORDS / 3;
}

static uint32_t word(int from, int to, uint64_t number, size_t i)
{
    return (uint32_t)(number * 2654435761u) ^
           (uint32_t)(i * 40503u + (size_t)(from * 64 + to) * 69069u);
}

static uint32_t *block(uint32_t *buffer, int rank)
{
    return buffer + (size_t)rank * WORDS;
}

static void load(struct messages *self)
{
    const int me = self->job->rank;

    for (int to = 0; to < self->job->size && go_on(self); to++) {
        const size_t n = words(me, to);

        if (!is_peer(self, to))
            continue;
        for (size_t i = 0; i < n; i++)
            self->host[i] = word(me, to, self->sent[to], i);
        ok(self,
           rg_memcpy(self->context, block(self->send, to), self->host,
                     n * sizeof(*self->host)),
           "rg_memcpy");
        ok(self,
           rg_memset(self->context, block(self->recv, to), POISON,
                     WORDS * sizeof(*self->recv)),
           "rg_memset");
    }
}

/* A group of all messages to and from these ranks. */
static void post(struct messages *self)
{
    const int me = self->job->rank;

    if (!ok(self, rg_group_begin(self->comm, self->stream), "rg_group_begin"))
        return;
    for (int rank = 0; rank < self->job->size; rank++) {
        if (!is_peer(self, rank))
            continue;
        ok(self,
           rg_send(block(self->send, rank), words(me, rank), RG_u32, rank,
                   self->comm, self->stream),
           "rg_send");
        ok(self,
           rg_recv(block(self->recv, rank), words(rank, me), RG_u32, rank,
                   self->comm, self->stream),
           "rg_recv");
    }
    ok(self, rg_group_end(self->comm), "rg_group_end");
}

static void check(struct messages *self, int from)
{
    const int me = self->job->rank;
    const size_t n = words(from, me);

    if (!ok(self,
            rg_memcpy(self->context, self->host, block(self->recv, from),
                      WORDS * sizeof(*self->host)),
            "rg_memcpy"))
        return;
    for (size_t i = 0; i < WORDS; i++) {
        const uint32_t wanted = i < n ? word(from, me, self->received[from], i)
                                      : POISON * 0x01010101u;

        if (self->host[i] == wanted)
            continue;
        fail(self, "message %llu from rank %d, word %zu: %#x, not %#x",
             (unsigned long long)self->received[from], from, i, self->host[i],
             wanted);
        return;
    }
}

/* Who is there now: a message to somebody who is not has done nothing. */
static void look_around(struct messages *self)
{
    int members[RG_MESSAGES_RANKS_MAX];

    if (ok(self, rg_comm_members(self->comm, members), "rg_comm_members"))
        for (int rank = 0; rank < self->job->size; rank++)
            self->active[rank] = members[rank] >= 0;
}

/* 1: all messages have come; 0: it was stopped. */
static int round_of(struct messages *self)
{
    int error;

    load(self);
    if (go_on(self) && self->graph)
        ok(self, rg_graph_launch(self->graph, self->stream), "rg_graph_launch");
    else if (go_on(self))
        post(self);
    if (!go_on(self) ||
        !ok(self, rg_stream_synchronize(self->stream), "rg_stream_synchronize"))
        return 0;
    error = rg_comm_error(self->comm);
    if (error != RG_OK && error != RG_EUNAVAILABLE)
        return 0;
    if (error == RG_EUNAVAILABLE) {
        rg_comm_clear_error(self->comm);
        look_around(self);
    }
    for (int rank = 0; rank < self->job->size && go_on(self); rank++)
        if (is_peer(self, rank)) {
            check(self, rank);
            self->sent[rank]++;
            self->received[rank]++;
        }
    return go_on(self);
}

static void rounds(struct messages *self)
{
    for (int i = 0; i < ROUNDS && go_on(self); i++)
        if (!round_of(self) && go_on(self))
            fail(self, "a round amidst peace: %s",
                 rg_status_string(rg_comm_error(self->comm)));
}

static void capture(struct messages *self)
{
    if (!self->scenario->replay || !go_on(self) ||
        !ok(self, rg_graph_begin(self->stream), "rg_graph_begin"))
        return;
    post(self);
    ok(self, rg_graph_end(self->stream, &self->graph), "rg_graph_end");
}

/* ---- what is agreed ----------------------------------------------------- */

/* What one end of a pair counts, and what was agreed on. */
static int counts(struct messages *self, int rank, struct rg_messages *out)
{
    const uint64_t limit_ns = rg_now_ns() + WAIT_MS * UINT64_C(1000000);
    int status;

    while ((status = rg_comm_messages(self->comm, rank, out)) == RG_EPENDING &&
           rg_now_ns() < limit_ns)
        usleep(PACE_US);
    return ok(self, status, "rg_comm_messages");
}

/* Both ends of each pair say the same. */
static void compare(struct messages *self)
{
    struct {
        uint64_t sent[RG_MESSAGES_RANKS_MAX], received[RG_MESSAGES_RANKS_MAX];
    } mine, *all;
    struct rg_view_info view;
    int members[RG_MESSAGES_RANKS_MAX], n = 0;

    memcpy(mine.sent, self->sent, sizeof(mine.sent));
    memcpy(mine.received, self->received, sizeof(mine.received));
    if (!go_on(self) ||
        !ok(self, rg_comm_view(self->comm, &view), "rg_comm_view"))
        return;
    all = calloc((size_t)view.nranks, sizeof(*all));
    for (int rank = 0; rank < self->job->size; rank++)
        if (self->active[rank])
            members[n++] = rank;
    if (n != view.nranks)
        fail(self, "%d members, not %d", view.nranks, n);
    else if (ok(self, rg_comm_gather(self->comm, &mine, sizeof(mine), all),
                "rg_comm_gather"))
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++)
                if (all[a].sent[members[b]] != all[b].received[members[a]])
                    fail(self, "from rank %d to %d: %llu sent, %llu received",
                         members[a], members[b],
                         (unsigned long long)all[a].sent[members[b]],
                         (unsigned long long)all[b].received[members[a]]);
    free(all);
}

/*
 * Behind a change: the counts are what was agreed, which is all that had ended
 * here but for the last round, at most. Before the next launch.
 */
static void settle(struct messages *self)
{
    for (int rank = 0; rank < self->job->size && go_on(self); rank++) {
        struct rg_messages now;

        if (!is_peer(self, rank) || !counts(self, rank, &now))
            continue;
        if (now.sent != now.sent_agreed || now.received != now.received_agreed)
            fail(self, "rank %d: counts beyond what is agreed", rank);
        if (now.sent > self->sent[rank] || now.sent + 1 < self->sent[rank] ||
            now.received > self->received[rank] ||
            now.received + 1 < self->received[rank])
            fail(self, "rank %d: %llu and %llu are agreed of %llu and %llu",
                 rank, (unsigned long long)now.sent,
                 (unsigned long long)now.received,
                 (unsigned long long)self->sent[rank],
                 (unsigned long long)self->received[rank]);
        self->sent[rank] = now.sent;
        self->received[rank] = now.received;
    }
}

/* Without a change: all that was sent is counted, and no more. */
static void check_counts(struct messages *self)
{
    for (int rank = 0; rank < self->job->size && go_on(self); rank++) {
        struct rg_messages now;

        if (is_peer(self, rank) && counts(self, rank, &now) &&
            (now.sent != self->sent[rank] ||
             now.received != self->received[rank]))
            fail(self, "rank %d: %llu and %llu are counted of %llu and %llu",
                 rank, (unsigned long long)now.sent,
                 (unsigned long long)now.received,
                 (unsigned long long)self->sent[rank],
                 (unsigned long long)self->received[rank]);
    }
}

/* ---- the group ---------------------------------------------------------- */

static int make_context(struct messages *self)
{
    struct rg_context_config config;
    int status = rg_job_context_config(
        self->job, (enum rg_device_kind)self->scenario->device, &config);

    if (status != RG_OK)
        return status;
    config.algos = rg_algos;
    config.backend = RG_BACKEND_NEW;
    config.emu_team_width = self->scenario->team_width;
    config.emu_max_teams = self->scenario->teams;
    return rg_context_create(&config, &self->context);
}

static int enter_group(struct messages *self)
{
    const size_t bytes = (size_t)self->job->size * WORDS * sizeof(*self->send);

    for (int rank = 0; rank < self->job->size; rank++)
        self->active[rank] = 1;
    self->host = malloc(WORDS * sizeof(*self->host));
    return ok(self, self->host ? RG_OK : RG_ENOMEM, "memory") &&
           ok(self, make_context(self), "rg_context_create") &&
           ok(self, rg_comm_create(self->context, &self->comm),
              "rg_comm_create") &&
           ok(self, rg_stream_create(self->context, &self->stream),
              "rg_stream_create") &&
           ok(self, rg_malloc(self->context, bytes, (void **)&self->send),
              "rg_malloc") &&
           ok(self, rg_malloc(self->context, bytes, (void **)&self->recv),
              "rg_malloc");
}

/* Until another view is in force, of so many. */
static void await_view(struct messages *self, uint64_t epoch, int members)
{
    const uint64_t limit_ns = rg_now_ns() + WAIT_MS * UINT64_C(1000000);
    struct rg_view_info view = {0};

    while (go_on(self) && (view.epoch <= epoch || view.nranks != members)) {
        if (rg_now_ns() >= limit_ns)
            fail(self, "epoch %llu of %d members, not one behind %llu of %d",
                 (unsigned long long)view.epoch, view.nranks,
                 (unsigned long long)epoch, members);
        if (ok(self, rg_comm_view(self->comm, &view), "rg_comm_view"))
            usleep(PACE_US);
    }
    rg_comm_clear_error(self->comm);
}

static uint64_t epoch_of(struct messages *self)
{
    struct rg_view_info view = {0};

    if (go_on(self))
        ok(self, rg_comm_view(self->comm, &view), "rg_comm_view");
    return view.epoch;
}

/* ---- scripts ------------------------------------------------------------ */

/* A planned change, in which nothing is undone. */
static void change(struct messages *self)
{
    barrier(self);
    if (go_on(self))
        ok(self, rg_comm_admit(self->comm), "rg_comm_admit");
    check_counts(self);
    settle(self);
    compare(self);
    rounds(self);
    check_counts(self);
}

/* The least that it has exchanged with anybody. */
static uint64_t done(const struct messages *self)
{
    uint64_t least = UINT64_MAX;

    for (int rank = 0; rank < self->job->size; rank++)
        if (is_peer(self, rank) && self->sent[rank] < least)
            least = self->sent[rank];
    return least;
}

/* A round was stopped: when the group goes on, so does this rank, from what is
 * agreed. */
static void resume(struct messages *self, uint64_t epoch)
{
    await_view(self, epoch, self->job->size - 1);
    look_around(self);
    settle(self);
}

/* At the victim it does not return. */
static void die(struct messages *self)
{
    const struct rg_injection injection = {.action = RG_FAULT_KILL,
                                           .entry = -1,
                                           .rank = self->job->rank,
                                           .delay_ns = DEATH_NS};

    rg_worker_report(self->worker, &self->findings, sizeof(self->findings));
    if (ok(self, rg_worker_inject(self->worker, &injection), "injection"))
        while (round_of(self))
            continue;
}

/*
 * One message, of more than the pair's credits, that is received only once its
 * sender has gone on to something else; its ends give it different types.
 */
static void lone(struct messages *self)
{
    const int to = self->job->size - 1, me = self->job->rank;
    const uint32_t wanted = 0x5a5a5a5a;
    uint32_t last = 0;
    void *buffer = NULL;

    if (to == 0 || !go_on(self) ||
        !ok(self, rg_malloc(self->context, LONE_BYTES, &buffer), "rg_malloc"))
        return;
    ok(self, rg_memset(self->context, buffer, me ? 0 : 0x5a, LONE_BYTES),
       "rg_memset");
    if (me == 0 && go_on(self))
        ok(self,
           rg_send(buffer, LONE_BYTES / sizeof(last), RG_f32, to, self->comm,
                   self->stream),
           "rg_send");
    barrier(self);
    if (me == to && go_on(self))
        ok(self,
           rg_recv(buffer, LONE_BYTES, RG_u8, 0, self->comm, self->stream),
           "rg_recv");
    if (go_on(self) &&
        ok(self, rg_stream_synchronize(self->stream),
           "rg_stream_synchronize") &&
        ok(self, rg_comm_error(self->comm), "a lone message") &&
        ok(self,
           rg_memcpy(self->context, &last,
                     (char *)buffer + LONE_BYTES - sizeof(last), sizeof(last)),
           "rg_memcpy") &&
        (me == 0 || me == to) && last != wanted)
        fail(self, "a lone message ends in %#x", last);
    self->sent[to] += me == 0;
    self->received[0] += me == to;
    rg_free(self->context, buffer);
}

/* Rounds, so many that it dies amidst them. */
static void lose(struct messages *self, int victim)
{
    const uint64_t epoch = epoch_of(self);
    const uint64_t goal = done(self) + ROUNDS_LOST;

    barrier(self);
    if (self->job->rank == victim)
        die(self);
    while (go_on(self) && done(self) < goal)
        if (!round_of(self) && go_on(self))
            resume(self, epoch);
    if (go_on(self) && self->active[victim] && self->job->size > 2)
        fail(self, "rank %d has not died", victim);
    compare(self);
    rounds(self);
    check_counts(self);
}

/*
 * The first rank waits for one more message than the last one sends. That ends
 * at its deadline, the pair gets another route, and nobody is lost.
 */
static void withhold(struct messages *self)
{
    const int from = self->job->size - 1;
    const uint64_t epoch = epoch_of(self);

    barrier(self);
    if (self->job->rank == 0 && go_on(self) &&
        ok(self,
           rg_recv(block(self->recv, from), words(from, 0), RG_u32, from,
                   self->comm, self->stream),
           "rg_recv") &&
        ok(self, rg_stream_synchronize(self->stream), "rg_stream_synchronize"))
        expect(self, rg_comm_error(self->comm), RG_ETIMEDOUT,
               "a message that does not come");
    await_view(self, epoch, self->job->size);
    settle(self);
    compare(self);
    rounds(self);
    check_counts(self);
}

static void play(struct messages *self)
{
    const struct rg_messages_scenario *scenario = self->scenario;

    if (!enter_group(self))
        return;
    capture(self);
    rounds(self);
    lone(self);
    check_counts(self);
    change(self);
    if (scenario->withheld)
        withhold(self);
    if (scenario->victim >= 0)
        lose(self, scenario->victim);
    barrier(self);
}

int rg_messages_worker(struct rg_worker *worker)
{
    struct messages self = {.worker = worker, .job = rg_worker_job(worker)};
    char late[16];
    size_t bytes;

    self.scenario = rg_worker_scenario(worker, &bytes);
    snprintf(late, sizeof(late), "%d", LATE_MS);
    if (self.scenario->withheld)
        setenv("RG_DEADLINE_MS", late, 1);
    play(&self);
    rg_worker_report(worker, &self.findings, sizeof(self.findings));
    rg_group_leave(&(struct rg_group_parts){self.context,
                                            self.comm,
                                            self.stream,
                                            self.graph,
                                            {self.send, self.recv}});
    free(self.host);
    return RG_EXIT_PASS;
}
