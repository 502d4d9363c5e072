/*
 * Who fails when, in what kind of process, and how the log comes together.
 *
 * A victim that is really killed or stopped is a worker (harness/supervisor.h)
 * of a job of supervisors; its log is what the supervisors recorded. A victim
 * that falls silent is a rank like all others, and each injection has a group
 * of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/recovery.h"
#include "harness/supervisor.h"
#include "harness/verdict.h"
#include "harness/wait.h"
#include "harness/watchdog.h"
#include "harness/worker.h"

enum { TICKET_MS = 30000 };
#define NS_PER_MS UINT64_C(1000000)

/* ---- workers ------------------------------------------------------------ */

struct worker {
    struct rg_worker *wire;
    const struct rg_job *job;
    const struct recovery_plan *plan;
    struct recovery_member *member;
    void *ticket; /* that this process came with */
    /* For whoever wonders why it ended. */
    int injection;
    const char *step;
};

static void begin_step(struct worker *self, int injection, const char *step)
{
    self->injection = injection;
    self->step = step;
}

int recovery_worker_present(void)
{
    return rg_worker_present();
}

static void set_timeout(const char *variable, int ms)
{
    char text[16];

    snprintf(text, sizeof text, "%d", ms > 0 ? ms : 1);
    setenv(variable, text, 1);
}

/* Before there are other threads. */
static void set_timeouts(const struct recovery_plan *plan)
{
    if (plan->deadline_ms) {
        set_timeout("RG_DEADLINE_MS", plan->deadline_ms);
        set_timeout("RG_HEARTBEAT_MISS_MS", plan->deadline_ms);
        set_timeout("RG_HEARTBEAT_MS", plan->deadline_ms / 20);
    }
    if (plan->window_ms)
        set_timeout("RG_WINDOW_MS", plan->window_ms);
}

/* So that a process started anew can find the group. */
static int publish_ticket(struct worker *self)
{
    unsigned char *ticket;
    size_t bytes;
    int status = rg_context_ticket(recovery_member_context(self->member),
                                   &ticket, &bytes);

    if (status != RG_OK)
        return status;
    status = rg_worker_publish(self->wire, ticket, bytes);
    free(ticket);
    return status;
}

static int report_hello(struct worker *self)
{
    struct recovery_hello hello;
    int status = recovery_member_hello(self->member, &hello);

    return status == RG_OK ? rg_worker_report(self->wire, &hello, sizeof hello)
                           : status;
}

static int enter(struct worker *self)
{
    const int life = rg_worker_life(self->wire);
    struct recovery_member_config config = {
        .plan = self->plan, .job = self->job, .process = (uint32_t)life + 1};
    int number;
    int status = RG_OK;

    if (life > 0)
        status = rg_worker_ticket(self->wire, 0, TICKET_MS, &self->ticket,
                                  &config.ticket_bytes, &number);
    config.ticket = self->ticket;
    if (status == RG_OK)
        status = recovery_member_create(&config, &self->member);
    if (status == RG_OK)
        status = publish_ticket(self);
    return status == RG_OK && life == 0 ? report_hello(self) : status;
}

/* The supervisor notes when it did it, under the injection's number. */
static int inject(struct worker *self, int injection)
{
    const int stop = self->plan->fault == RECOVERY_STOP;
    const struct rg_injection fault = {
        .action = stop ? RG_FAULT_STOP : RG_FAULT_KILL,
        .entry = injection,
        .rank = self->job->rank,
        .delay_ns = recovery_delay_ns(self->plan, injection),
        .duration_ns = stop ? recovery_stop_ns(self->plan) : 0,
    };

    return rg_worker_inject(self->wire, &fault);
}

/* Nothing disturbs the survivors before all of them have gone on. */
static int bring_back(struct worker *self, int victim)
{
    const struct rg_injection fault = {
        .action = RG_FAULT_REJOIN, .entry = -1, .rank = victim};
    int status;

    begin_step(self, self->injection, "all have gone on");
    status = recovery_member_join(self->member);
    if (status == RG_OK && self->plan->fault == RECOVERY_KILL &&
        self->job->rank == (victim == 0))
        status = rg_worker_inject(self->wire, &fault);
    if (status != RG_OK)
        return status;
    begin_step(self, self->injection, "the victim is let in");
    return recovery_member_complete(self->member);
}

/* One that was stopped finds itself out of the group. */
static int come_back(struct worker *self, struct recovery_turn *turn)
{
    *turn = (struct recovery_turn){-1, -1};
    begin_step(self, self->injection, "it is let in again");
    return recovery_member_rejoin(self->member);
}

static int take_turn(struct worker *self, struct recovery_turn *turn)
{
    const int victim = recovery_victim(self->plan, turn, self->job->size);
    struct recovery_stamp stamp;
    int status = RG_OK;

    begin_step(self, turn->injection, "the group goes on");
    if (victim == self->job->rank)
        status = inject(self, turn->injection);
    if (status == RG_OK)
        status = recovery_member_run(self->member, UINT64_MAX, &stamp);
    if (victim == self->job->rank &&
        (status == RG_EISOLATED || status == RG_ECLOSED))
        return come_back(self, turn);
    if (status != RG_OK)
        return status;
    stamp.injection = turn->injection;
    status = rg_worker_report(self->wire, &stamp, sizeof stamp);
    if (status == RG_OK)
        status = bring_back(self, victim);
    recovery_turn_next(turn, victim);
    return status;
}

static int take_turns(struct worker *self)
{
    struct recovery_turn turn = {0, 0};
    int status;

    if (rg_worker_life(self->wire) > 0)
        turn = (struct recovery_turn){-1, -1};
    status = recovery_member_meet(self->member, &turn);
    while (status == RG_OK && turn.injection < self->plan->injections) {
        status = take_turn(self, &turn);
        if (status != RG_OK)
            break;
        begin_step(self, self->injection, "all meet");
        status = recovery_member_meet(self->member, &turn);
    }
    if (status != RG_OK)
        return status;
    begin_step(self, self->injection, "the last result is right");
    return recovery_member_check(self->member);
}

static void explain(const struct worker *self, int status)
{
    char text[2048];

    recovery_member_describe(self->member, text, sizeof text);
    fprintf(stderr, "rank %d: injection %d, until %s: %s\n%s",
            self->job ? self->job->rank : -1, self->injection + 1, self->step,
            rg_status_string(status), text);
}

int recovery_worker_main(void)
{
    struct worker self = {.step = "all have begun"};
    size_t bytes;
    int status = rg_worker_open(&self.wire);

    if (status == RG_OK) {
        self.job = rg_worker_job(self.wire);
        self.plan = rg_worker_scenario(self.wire, &bytes);
        set_timeouts(self.plan);
        status = enter(&self);
    }
    if (status == RG_OK)
        status = take_turns(&self);
    if (status != RG_OK && !rg_status_is_told(status))
        explain(&self, status);
    recovery_member_destroy(self.member);
    free(self.ticket);
    rg_worker_close(self.wire);
    return rg_exit_of_status(status);
}

/* ---- the log of supervisors --------------------------------------------- */

static struct recovery_stamp *stamp_at(const struct recovery_log *log,
                                       int injection, int rank)
{
    return &log->stamps[(size_t)injection * (size_t)log->size + (size_t)rank];
}

static void take_report(struct recovery_log *log, int rank,
                        const struct rg_record *record)
{
    const struct recovery_hello *hello = record->data;
    const struct recovery_stamp *stamp = record->data;

    if (record->bytes == sizeof *hello && hello->tag == RECOVERY_TAG_HELLO)
        log->hellos[rank] = *hello;
    else if (record->bytes == sizeof *stamp &&
             stamp->tag == RECOVERY_TAG_STAMP && stamp->injection >= 0 &&
             stamp->injection < log->injections)
        *stamp_at(log, stamp->injection, rank) = *stamp;
}

static void take_fault(struct recovery_log *log, int rank,
                       const struct rg_record *record)
{
    const struct rg_injected *fault = record->data;

    if (fault->entry >= 0 && fault->entry < log->injections)
        log->hits[fault->entry] = (struct recovery_hit){rank, fault->done_ns};
}

static void take_records(struct recovery_log *log,
                         const struct rg_supervision *supervision)
{
    for (int rank = 0; rank < supervision->size; rank++) {
        struct rg_record record;
        size_t cursor = 0;

        while (rg_supervision_next(supervision, rank, &cursor, &record)) {
            if (record.kind == RG_RECORD_REPORT)
                take_report(log, rank, &record);
            else if (record.kind == RG_RECORD_FAULT)
                take_fault(log, rank, &record);
        }
    }
    log->code = rg_supervision_code(supervision);
}

static int play_supervised(const struct rg_job *job,
                           const struct recovery_plan *plan,
                           struct recovery_log *log)
{
    const struct rg_scenario scenario = {.payload = plan,
                                         .bytes = sizeof *plan,
                                         .deadline_ms = plan->timeout_s * 1000};
    struct rg_supervision supervision;
    struct rg_supervisor *supervisor;
    int status = rg_supervisor_create(job, &supervisor);

    if (status != RG_OK)
        return status;
    status = rg_supervisor_run(supervisor, &scenario, &supervision);
    if (status == RG_OK) {
        take_records(log, &supervision);
        rg_supervision_fini(&supervision);
    }
    rg_supervisor_destroy(supervisor);
    return status;
}

/* ---- the log of ranks that only fall silent ----------------------------- */

/* What ranks tell each other after an injection. */
struct share {
    int32_t status;
    struct recovery_hit hit;
    struct recovery_hello hello;
    struct recovery_stamp stamp;
};

static int fall_silent(struct recovery_member *member, uint64_t delay_ns,
                       struct share *share)
{
    const int status =
        recovery_member_run(member, rg_now_ns() + delay_ns, &share->stamp);

    if (status != RG_EPENDING)
        return status == RG_OK ? RG_EFAILED : status;
    share->hit.time_ns = rg_now_ns();
    rg_context_abandon(recovery_member_context(member));
    return RG_OK;
}

static int take_soft_turn(struct recovery_member *member,
                          const struct rg_job *job,
                          const struct recovery_plan *plan, int injection,
                          struct share *share)
{
    struct recovery_turn turn = {injection, 0};
    const int victim = recovery_victim(plan, &turn, job->size);
    int status = recovery_member_hello(member, &share->hello);

    if (status == RG_OK)
        status = recovery_member_meet(member, &turn);
    share->hit.victim = victim;
    if (status == RG_OK && victim == job->rank)
        return fall_silent(member, recovery_delay_ns(plan, injection), share);
    if (status == RG_OK)
        status = recovery_member_run(member, UINT64_MAX, &share->stamp);
    share->stamp.injection = injection;
    return status;
}

/* RG_OK, or the status of the first rank that failed. */
static int take_shares(struct recovery_log *log, int injection,
                       const struct share *shares)
{
    const int victim = shares[0].hit.victim;

    for (int r = 0; r < log->size; r++)
        if (shares[r].status != RG_OK)
            return shares[r].status;
    for (int r = 0; r < log->size; r++) {
        log->hellos[r] = shares[r].hello;
        if (r != victim)
            *stamp_at(log, injection, r) = shares[r].stamp;
    }
    log->hits[injection] = shares[victim].hit;
    return RG_OK;
}

/* The victim's memory stays until nobody can use it any more. */
static int play_soft_turn(const struct rg_job *job,
                          const struct recovery_plan *plan, int injection,
                          struct share *shares, struct recovery_log *log)
{
    const struct recovery_member_config config = {.plan = plan, .job = job};
    struct recovery_member *member = NULL;
    struct share mine = {0};
    int status;

    mine.status = recovery_member_create(&config, &member);
    if (mine.status == RG_OK)
        mine.status = take_soft_turn(member, job, plan, injection, &mine);
    status = job->bootstrap.allgather(job->bootstrap.arg, &mine, shares,
                                      sizeof mine);
    recovery_member_destroy(member);
    return status == RG_OK ? take_shares(log, injection, shares) : status;
}

static int play_soft(const struct rg_job *job, const struct recovery_plan *plan,
                     struct recovery_log *log)
{
    struct share *shares = calloc((size_t)job->size, sizeof *shares);
    struct rg_watchdog *dog;
    int status;

    if (!shares)
        return RG_ENOMEM;
    status = rg_watchdog_create(job->rank, plan->timeout_s, &dog);
    for (int i = 0; status == RG_OK && i < plan->injections; i++)
        status = play_soft_turn(job, plan, i, shares, log);
    rg_watchdog_destroy(dog);
    free(shares);
    log->code = rg_exit_of_status(status);
    return RG_OK;
}

/* ---- the log ------------------------------------------------------------ */

static int log_init(struct recovery_log *log, int size, int injections)
{
    const size_t n = (size_t)injections;

    *log = (struct recovery_log){.size = size, .injections = injections};
    log->hellos = calloc((size_t)size, sizeof *log->hellos);
    log->hits = calloc(n, sizeof *log->hits);
    log->stamps = calloc(n * (size_t)size, sizeof *log->stamps);
    if (!log->hellos || !log->hits || !log->stamps) {
        recovery_log_fini(log);
        return RG_ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        log->hits[i].victim = -1;
    return RG_OK;
}

void recovery_log_fini(struct recovery_log *log)
{
    free(log->hellos);
    free(log->hits);
    free(log->stamps);
    memset(log, 0, sizeof *log);
}

int recovery_play(const struct rg_job *job, const struct recovery_plan *plan,
                  struct recovery_log *log_out)
{
    struct recovery_log log;
    int status = log_init(&log, job->size, plan->injections);

    if (status == RG_OK)
        status = plan->fault == RECOVERY_SOFT
                     ? play_soft(job, plan, &log)
                     : play_supervised(job, plan, &log);
    if (status == RG_OK)
        *log_out = log;
    else
        recovery_log_fini(&log);
    return status;
}
