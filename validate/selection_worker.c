#include "validate/selection.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algos/algos.h"
#include "harness/call.h"
#include "harness/group.h"
#include "harness/verdict.h"
#include "harness/wait.h"
#include "validate/blocks.h"

enum {
    WAIT_MS = 20000, /* for a change of the group */
    PACE_MS = 1,
    SETTLED_ROUND = 100,
    COUNT = 1001 /* of what is captured */
};

/* A line of the group's coordinator. */
static const char fall_back[] = "falls back to the legacy backend";

struct selection {
    struct rg_worker *worker;
    const struct rg_job *job;
    const struct rg_selection_scenario *scenario;
    struct rg_selection_report report;
    int log; /* where standard error goes */
    off_t log_from;
    struct rg_context *context;
    struct rg_comm *comm;
    struct rg_stream *stream;
    struct rg_graph *graph;
    uint32_t *send, *recv; /* of the graph; device memory */
    uint64_t rounds;
};

#define fail(self, ...) rg_findings_fail(&(self)->report.findings, __VA_ARGS__)

/* ---- findings ----------------------------------------------------------- */

static int go_on(const struct selection *self)
{
    return !self->report.findings.failed;
}

/* 1: it is. */
static int expect(struct selection *self, int status, int wanted,
                  const char *what)
{
    return rg_findings_expect(&self->report.findings, status, wanted, what);
}

/* ---- standard error ----------------------------------------------------- */

void rg_selection_log_path(int supervisor, int rank, char *path, size_t bytes)
{
    const char *folder = getenv("TMPDIR");

    snprintf(path, bytes, "%s/rg_validate-%d-%d.log",
             folder != NULL && *folder != '\0' ? folder : "/tmp", supervisor,
             rank);
}

/* Behind what earlier processes of this rank have said. */
static int catch_log(struct selection *self)
{
    char path[256];

    rg_selection_log_path((int)getppid(), self->job->rank, path, sizeof(path));
    self->log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (self->log < 0 || dup2(self->log, STDERR_FILENO) < 0)
        return RG_ESYSTEM;
    self->log_from = lseek(self->log, 0, SEEK_END);
    return RG_OK;
}

/* In all that this process has said so far. */
static int count_warnings(const struct selection *self)
{
    const off_t bytes = lseek(self->log, 0, SEEK_END) - self->log_from;
    char *text = bytes > 0 ? calloc(1, (size_t)bytes + 1) : NULL;
    const char *at = text;
    int n = 0;

    if (text != NULL &&
        pread(self->log, text, (size_t)bytes, self->log_from) != bytes)
        at = NULL;
    while (at != NULL && (at = strstr(at, fall_back)) != NULL) {
        at += sizeof(fall_back) - 1;
        n++;
    }
    free(text);
    return n;
}

static void report(struct selection *self)
{
    self->report.warnings = count_warnings(self);
    rg_worker_report(self->worker, &self->report, sizeof(self->report));
}

/* ---- wishes ------------------------------------------------------------- */

static enum rg_wish wish_of(const struct selection *self, int rank, int life)
{
    return life ? RG_WISH_LEGACY : (enum rg_wish)self->scenario->wishes[rank];
}

static void set_wish(const struct selection *self, enum rg_wish wish)
{
    static const char *const names[] = {
        "RG_PREFERRED_GPU_COLLECTIVE_BACKEND",
        "MOONCAKE_PG_PREFERRED_GPU_COLLECTIVE_BACKEND"};
    const char *name = names[self->job->rank & 1];

    unsetenv(names[0]);
    unsetenv(names[1]);
    if (wish == RG_WISH_BOTH) {
        setenv(names[0], "new", 1);
        setenv(names[1], "legacy", 1);
    } else if (wish != RG_WISH_NONE) {
        setenv(name,
               wish == RG_WISH_NEW      ? "new"
               : wish == RG_WISH_LEGACY ? "legacy"
                                        : "fast",
               1);
    }
    if (self->scenario->no_route) {
        setenv("RG_DISABLE_P2P_ROUTE", "1", 1);
        setenv("RG_DISABLE_HOST_PROXY_ROUTE", "1", 1);
    }
    setenv("RG_LOG", "warn", 1);
}

/* New only if all that are active wish for it and can. */
static enum rg_backend wanted_backend(const struct selection *self,
                                      uint64_t active, int victim_life)
{
    if (self->scenario->no_route)
        return RG_BACKEND_LEGACY;
    for (int rank = 0; rank < self->job->size; rank++) {
        const int life = rank == self->scenario->victim ? victim_life : 0;

        if ((active >> rank & 1) && wish_of(self, rank, life) != RG_WISH_NEW)
            return RG_BACKEND_LEGACY;
    }
    return RG_BACKEND_NEW;
}

/* ---- the group ---------------------------------------------------------- */

static int is_victim(const struct selection *self)
{
    return self->job->rank == self->scenario->victim;
}

static uint64_t all_ranks(const struct selection *self)
{
    return self->job->size == 64 ? UINT64_MAX
                                 : (UINT64_C(1) << self->job->size) - 1;
}

/* -1: nobody less. */
static uint64_t without(uint64_t ranks, int rank)
{
    return rank < 0 ? ranks : ranks & ~(UINT64_C(1) << rank);
}

static int make_context(struct selection *self)
{
    const int life = rg_worker_life(self->worker);
    struct rg_context_config config;
    void *ticket = NULL;
    int number;
    int status = rg_job_context_config(
        self->job, (enum rg_device_kind)self->scenario->device, &config);

    if (status == RG_OK && life > 0)
        status = rg_worker_ticket(self->worker, 0, WAIT_MS, &ticket,
                                  &config.ticket_bytes, &number);
    if (status != RG_OK)
        return status;
    config.algos = rg_algos;
    config.backend = RG_BACKEND_UNSET;
    config.emu_team_width = self->scenario->team_width;
    config.emu_max_teams = self->scenario->teams;
    config.ticket = ticket;
    config.process = life > 0 ? (uint32_t)life + 1 : 0;
    status = rg_context_create(&config, &self->context);
    free(ticket);
    return status;
}

/* From now on the victim's new process can find the group. */
static void publish_ticket(struct selection *self)
{
    unsigned char *ticket;
    size_t bytes;

    if (!go_on(self) ||
        !expect(self, rg_context_ticket(self->context, &ticket, &bytes), RG_OK,
                "rg_context_ticket"))
        return;
    expect(self, rg_worker_publish(self->worker, ticket, bytes), RG_OK,
           "ticket");
    free(ticket);
}

/* 1: this rank is in. */
static int enter_group(struct selection *self)
{
    const size_t bytes = COUNT * sizeof(*self->send);

    return expect(self, make_context(self), RG_OK, "rg_context_create") &&
           expect(self, rg_comm_create(self->context, &self->comm), RG_OK,
                  "rg_comm_create") &&
           expect(self, rg_stream_create(self->context, &self->stream), RG_OK,
                  "rg_stream_create") &&
           expect(self, rg_malloc(self->context, bytes, (void **)&self->send),
                  RG_OK, "rg_malloc") &&
           expect(self, rg_malloc(self->context, bytes, (void **)&self->recv),
                  RG_OK, "rg_malloc");
}

static void barrier(struct selection *self)
{
    char none[1] = "";

    if (go_on(self))
        expect(self, rg_comm_gather(self->comm, none, 0, none), RG_OK,
               "rg_comm_gather");
}

/* Until so many are members. */
static void await_members(struct selection *self, int n)
{
    const uint64_t limit_ns = rg_now_ns() + WAIT_MS * UINT64_C(1000000);
    struct rg_view_info view = {0};

    while (go_on(self) && view.nranks != n) {
        if (rg_now_ns() >= limit_ns)
            fail(self, "%d members instead of %d", view.nranks, n);
        if (expect(self, rg_comm_view(self->comm, &view), RG_OK,
                   "rg_comm_view") &&
            view.nranks != n)
            usleep(PACE_MS * 1000);
    }
}

static void expect_view(struct selection *self, uint64_t active,
                        enum rg_backend backend)
{
    struct rg_view_info view;

    if (!go_on(self) ||
        !expect(self, rg_comm_view(self->comm, &view), RG_OK, "rg_comm_view"))
        return;
    if (view.nranks != __builtin_popcountll(active))
        fail(self, "%d members in epoch %llu instead of %d", view.nranks,
             (unsigned long long)view.epoch, __builtin_popcountll(active));
    if (view.backend != backend)
        fail(self, "the %s backend in epoch %llu",
             view.backend == RG_BACKEND_NEW ? "new" : "legacy",
             (unsigned long long)view.epoch);
}

/* ---- collectives -------------------------------------------------------- */

static struct rg_blocks blocks_of(struct selection *self, uint64_t active)
{
    return (struct rg_blocks){
        .context = self->context,
        .comm = self->comm,
        .stream = self->stream,
        .device = (enum rg_device_kind)self->scenario->device,
        .slot = self->job->rank,
        .slots = self->job->size,
        .active = active,
        .seed = self->scenario->seed * 97 + ++self->rounds,
    };
}

static void check_collectives(struct selection *self, uint64_t active)
{
    const struct rg_blocks blocks = blocks_of(self, active);
    char text[160] = "memory for the collectives";

    if (go_on(self) && rg_blocks_check(&blocks, text, sizeof(text)) != RG_OK)
        fail(self, "members %#llx: %s", (unsigned long long)active, text);
}

/* By the graph, if this rank has one. */
static void check_reduce(struct selection *self, uint64_t active)
{
    const struct rg_blocks blocks = blocks_of(self, active);
    char text[160] = "memory for the collectives";

    if (go_on(self) &&
        rg_blocks_reduce(&blocks, self->send, self->recv, COUNT, self->graph,
                         text, sizeof(text)) != RG_OK)
        fail(self, "members %#llx: %s%s", (unsigned long long)active,
             self->graph ? "replay: " : "", text);
}

/* A root that is gone leaves an error behind, and nothing else. */
static void check_dead_root(struct selection *self, int root)
{
    for (int c = 0; c < RG_COLL_COUNT && go_on(self); c++) {
        const struct rg_call call = {.collective = (enum rg_collective)c,
                                     .send = self->send,
                                     .recv = self->recv,
                                     .count = COUNT / (size_t)self->job->size,
                                     .dtype = RG_u32,
                                     .op = RG_sum,
                                     .root = root};
        int status;

        if (!rg_collective_rooted(call.collective))
            continue;
        status = rg_call_launch(&call, self->comm, self->stream);
        if (status == RG_ENOTSUP)
            continue;
        if (expect(self, status, RG_OK, rg_collective_name(call.collective)) &&
            expect(self, rg_stream_synchronize(self->stream), RG_OK,
                   "rg_stream_synchronize"))
            expect(self, rg_comm_error(self->comm), RG_EUNAVAILABLE,
                   "a root that is gone");
        rg_comm_clear_error(self->comm);
    }
}

static void capture(struct selection *self, int wanted)
{
    int status;

    if (!go_on(self) ||
        !expect(self, rg_graph_begin(self->stream), RG_OK, "rg_graph_begin"))
        return;
    status = rg_all_reduce(self->send, self->recv, COUNT, RG_u32, RG_sum,
                           self->comm, self->stream);
    expect(self, status, wanted, "rg_all_reduce in capture");
    expect(self, rg_graph_end(self->stream, &self->graph), RG_OK,
           "rg_graph_end");
}

/* ---- deaths and returns ------------------------------------------------- */

static void inject(struct selection *self, enum rg_fault_action action)
{
    const struct rg_injection injection = {
        .action = (int32_t)action, .entry = -1, .rank = self->job->rank};

    expect(self, rg_worker_inject(self->worker, &injection), RG_OK,
           "injection");
}

/* Whatever becomes of them, they are as many at all members. */
static void launch_queue(struct selection *self)
{
    for (int i = 0; i < self->scenario->queue && go_on(self); i++)
        expect(self,
               rg_all_reduce(self->send, self->recv, COUNT, RG_u32, RG_sum,
                             self->comm, self->stream),
               RG_OK, "a launch amidst a death");
}

/* At the victim it does not return. */
static void lose_victim(struct selection *self, int comes_back)
{
    barrier(self);
    if (is_victim(self)) {
        report(self);
        if (comes_back)
            inject(self, RG_FAULT_REJOIN);
        inject(self, RG_FAULT_KILL);
    }
    launch_queue(self);
    await_members(self, self->job->size - 1);
    if (self->scenario->queue && go_on(self) &&
        expect(self, rg_stream_synchronize(self->stream), RG_OK,
               "rg_stream_synchronize"))
        rg_comm_clear_error(self->comm);
}

/* Members go on together when they have heard that all of these wait. */
static void await_joiners(struct selection *self, uint64_t slots)
{
    const uint64_t limit_ns = rg_now_ns() + WAIT_MS * UINT64_C(1000000);
    uint64_t heard[RG_SELECTION_RANKS_MAX];
    uint64_t mine = 0;
    uint64_t known = 0;

    while (go_on(self) && (known & slots) != slots) {
        struct rg_notice notice;
        struct rg_view_info view;

        while (rg_comm_next_notice(self->comm, PACE_MS, &notice) == RG_OK)
            if (notice.kind == RG_NOTICE_WAITING)
                mine |= notice.slots[0];
        if (rg_now_ns() >= limit_ns)
            fail(self, "of %#llx only %#llx wait to be let in",
                 (unsigned long long)slots, (unsigned long long)known);
        if (!expect(self, rg_comm_view(self->comm, &view), RG_OK,
                    "rg_comm_view") ||
            !expect(self,
                    rg_comm_gather(self->comm, &mine, sizeof(mine), heard),
                    RG_OK, "rg_comm_gather"))
            return;
        for (int rank = 0; rank < view.nranks; rank++)
            known |= heard[rank];
    }
}

static void admit(struct selection *self)
{
    if (go_on(self))
        expect(self, rg_comm_admit(self->comm), RG_OK, "rg_comm_admit");
}

/* ---- scripts ------------------------------------------------------------ */

static void play_collectives(struct selection *self)
{
    const uint64_t all = all_ranks(self);
    const uint64_t left = without(all, self->scenario->victim);
    const enum rg_backend backend = wanted_backend(self, all, 0);

    if (!enter_group(self))
        return;
    expect_view(self, all, backend);
    check_collectives(self, all);
    capture(self, backend == RG_BACKEND_NEW ? RG_OK : RG_EBACKEND);
    rg_graph_destroy(self->graph);
    self->graph = NULL;
    check_reduce(self, all);
    if (self->scenario->victim >= 0) {
        lose_victim(self, 0);
        expect_view(self, left, wanted_backend(self, left, 0));
        check_collectives(self, left);
        check_dead_root(self, self->scenario->victim);
        check_reduce(self, left);
    }
    barrier(self);
}

static void play_refused(struct selection *self)
{
    expect(self, make_context(self), RG_ECONFIG, "rg_context_create");
}

/* A group of the new backend with graphs does not let it in. */
static void play_join_refused(struct selection *self)
{
    const uint64_t all = all_ranks(self);
    const uint64_t left = without(all, self->scenario->victim);

    if (rg_worker_life(self->worker) > 0) {
        if (expect(self, make_context(self), RG_OK, "rg_context_create"))
            expect(self, rg_comm_create(self->context, &self->comm),
                   RG_EBACKEND, "rg_comm_create");
        return;
    }
    if (!enter_group(self))
        return;
    expect_view(self, all, RG_BACKEND_NEW);
    capture(self, RG_OK);
    check_reduce(self, all);
    publish_ticket(self);
    lose_victim(self, 1);
    await_joiners(self, all & ~left);
    admit(self);
    expect_view(self, left, RG_BACKEND_NEW);
    check_reduce(self, left);
    barrier(self);
}

/* Behind the victim's return, and that of the rank with the graph. */
static void settle_on_legacy(struct selection *self)
{
    const uint64_t all = all_ranks(self);

    await_members(self, self->job->size);
    expect_view(self, all, RG_BACKEND_LEGACY);
    /* So that who has just come counts as the others do. */
    self->rounds = SETTLED_ROUND;
    if (self->graph != NULL)
        expect(self, rg_graph_launch(self->graph, self->stream),
               RG_EUNAVAILABLE, "replay on the legacy backend");
    rg_graph_destroy(self->graph);
    self->graph = NULL;
    check_collectives(self, all);
    barrier(self);
}

/* The rank with the graph leaves in order, and asks to be let in again. */
static void let_holder_leave(struct selection *self, int holder)
{
    const int is_holder = self->job->rank == holder;
    const int status =
        go_on(self) ? rg_comm_leave(self->comm, &holder, 1) : RG_OK;

    if (!is_holder)
        expect(self, status, RG_OK, "rg_comm_leave");
    else if (go_on(self))
        expect(self, rg_comm_rejoin(self->comm, WAIT_MS), RG_OK,
               "rg_comm_rejoin");
}

/*
 * The others have no graphs: they let the victim's new process in, and turn
 * to the legacy backend. Whoever comes back with a graph cannot replay it.
 */
static void play_join(struct selection *self)
{
    const uint64_t all = all_ranks(self);
    const uint64_t left = without(all, self->scenario->victim);
    const int holder = self->scenario->victim ? self->scenario->victim - 1
                                              : self->job->size - 1;

    if (!enter_group(self))
        return;
    if (rg_worker_life(self->worker) > 0) {
        settle_on_legacy(self);
        return;
    }
    expect_view(self, all, RG_BACKEND_NEW);
    if (self->job->rank == holder)
        capture(self, RG_OK);
    check_reduce(self, all);
    lose_victim(self, 1);
    let_holder_leave(self, holder);
    if (self->job->rank != holder) {
        /* Graphs of members, also of one that is about to leave, are in the
         * way of who prefers legacy. */
        publish_ticket(self);
        await_joiners(self, all & ~without(left, holder));
        admit(self);
    }
    settle_on_legacy(self);
}

/* ---- the process -------------------------------------------------------- */

static void play(struct selection *self)
{
    static void (*const scripts[])(struct selection *) = {
        [RG_SELECTION_COLLECTIVES] = play_collectives,
        [RG_SELECTION_REFUSED] = play_refused,
        [RG_SELECTION_JOIN_REFUSED] = play_join_refused,
        [RG_SELECTION_JOIN] = play_join,
    };

    scripts[self->scenario->script](self);
}

int rg_selection_worker(struct rg_worker *worker)
{
    struct selection self = {.worker = worker, .job = rg_worker_job(worker)};
    size_t bytes;

    self.scenario = rg_worker_scenario(worker, &bytes);
    set_wish(&self, wish_of(&self, self.job->rank, rg_worker_life(worker)));
    if (catch_log(&self) != RG_OK)
        return RG_EXIT_ENVIRONMENT;
    play(&self);
    report(&self);
    rg_group_leave(&(struct rg_group_parts){self.context,
                                            self.comm,
                                            self.stream,
                                            self.graph,
                                            {self.send, self.recv}});
    close(self.log);
    return RG_EXIT_PASS;
}
