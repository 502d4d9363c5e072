#include "harness/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/hosts.h"
#include "harness/hub.h"
#include "harness/process.h"
#include "harness/verdict.h"
#include "harness/wait.h"

enum {
    TIMERS_MAX = 64,
    MEET_MS = 60000,  /* for all supervisors to connect */
    GRACE_MS = 15000, /* past the deadline, for all to have ended theirs */
    EXIT_NO_EXEC = 127
};

#define NS_PER_MS UINT64_C(1000000)

enum timer_kind {
    DO_NOTHING = 0,
    DO_KILL,
    DO_STOP,
    DO_CONTINUE,
    DO_CUT,
    DO_HEAL,
    DO_START
};

/* What is to be done later. All but a start and a heal end with the life. */
struct timer {
    enum timer_kind kind;
    uint64_t at_ns;
    uint64_t asked_ns;
    uint32_t reply; /* whom to answer when it is done; 0: nobody */
    struct rg_injection injection;
};

/* The worker's process, or none. */
struct life {
    struct rg_process process;
    struct rg_wire wire;
    int number;       /* from 0 on; -1 before the first */
    int planned_kill; /* faults that were asked for and end it */
    int planned_exit;
    int hang; /* the deadline ends it */
    /* It waits for a ticket later than this one. */
    int waits_for_ticket;
    int ticket_known;
    uint32_t ticket_ask;
};

/* In front of each record; its data is padded to 8 bytes. */
struct record_head {
    uint32_t kind;
    int32_t life;
    uint64_t time_ns;
    uint64_t bytes;
};

struct rg_supervisor {
    const struct rg_job *job; /* borrowed */
    struct rg_self self;
    struct rg_hub *hub;     /* rank 0's, else null */
    struct rg_wire link;    /* to the hub */
    struct pollfd *entries; /* [3 + size] */
    int *ends;              /* [size]: workers that ended, of this scenario */

    /* Of the running scenario. */
    const struct rg_scenario *scenario; /* borrowed */
    struct rg_supervision *result;      /* borrowed; being filled */
    uint64_t deadline_ns;
    int overdue; /* the deadline has passed */
    int done;    /* the hub said so */
    int status;  /* the first failure of supervision itself */
    struct life life;
    struct timer timers[TIMERS_MAX];
    struct rg_fate fate;
    struct rg_bytes records;
    struct rg_bytes ticket;
    int ticket_number; /* 0: none yet */
    uint32_t restarts; /* asked for through the hub */
    int said_idle;
};

static int is_rank(const struct rg_supervisor *self, int rank)
{
    return rank >= 0 && rank < self->job->size;
}

static void note_failure(struct rg_supervisor *self, int status)
{
    if (status != RG_OK && self->status == RG_OK)
        self->status = status;
}

/* ---- records ------------------------------------------------------------ */

static size_t padding(size_t bytes)
{
    return -bytes & 7;
}

static void note(struct rg_supervisor *self, enum rg_record_kind kind,
                 const void *data, size_t bytes)
{
    const struct record_head head = {.kind = kind,
                                     .life = self->life.number,
                                     .time_ns = rg_now_ns(),
                                     .bytes = bytes};
    int status = rg_bytes_append(&self->records, &head, sizeof head);

    if (status == RG_OK)
        status = rg_bytes_append(&self->records, data, bytes);
    if (status == RG_OK)
        status = rg_bytes_append(&self->records, NULL, padding(bytes));
    note_failure(self, status);
}

static void note_fault(struct rg_supervisor *self,
                       const struct rg_injection *injection, uint64_t asked_ns,
                       uint64_t done_ns)
{
    const struct rg_injected injected = {.action = injection->action,
                                         .entry = injection->entry,
                                         .asked_ns = asked_ns,
                                         .done_ns = done_ns};

    note(self, RG_RECORD_FAULT, &injected, sizeof injected);
}

int rg_supervision_next(const struct rg_supervision *result, int rank,
                        size_t *cursor, struct rg_record *record_out)
{
    const struct rg_bytes *records = &result->ranks[rank].records;
    struct record_head head;

    if (records->used - *cursor < sizeof head)
        return 0;
    memcpy(&head, records->data + *cursor, sizeof head);
    *record_out = (struct rg_record){
        .kind = (enum rg_record_kind)head.kind,
        .life = head.life,
        .time_ns = head.time_ns,
        .bytes = head.bytes,
        .data = records->data + *cursor + sizeof head,
    };
    *cursor += sizeof head + head.bytes + padding(head.bytes);
    return 1;
}

int rg_supervision_code(const struct rg_supervision *result)
{
    int code = RG_EXIT_PASS;

    for (int r = 0; r < result->size; r++)
        code = rg_exit_worse(code, result->ranks[r].fate.code);
    return code;
}

void rg_supervision_count(const struct rg_supervision *result,
                          struct rg_fault_plan *plan)
{
    for (int r = 0; r < result->size; r++) {
        size_t cursor = 0;
        struct rg_record record;

        while (rg_supervision_next(result, r, &cursor, &record)) {
            const struct rg_injected *injected = record.data;

            if (record.kind == RG_RECORD_FAULT)
                rg_fault_plan_count(plan, injected->entry);
        }
    }
}

int rg_supervisor_play(const struct rg_job *job,
                       const struct rg_scenario *scenario,
                       struct rg_supervision *result_out)
{
    struct rg_supervisor *supervisor;
    int status = rg_supervisor_create(job, &supervisor);

    if (status != RG_OK)
        return status;
    status = rg_supervisor_run(supervisor, scenario, result_out);
    rg_supervisor_destroy(supervisor);
    return status;
}

void rg_supervision_fini(struct rg_supervision *result)
{
    for (int r = 0; r < result->size; r++)
        rg_bytes_fini(&result->ranks[r].records);
    free(result->ranks);
    *result = (struct rg_supervision){0};
}

/* ---- talking ------------------------------------------------------------ */

static void tell_hub(struct rg_supervisor *self, enum rg_frame_kind kind,
                     uint32_t id, const void *body, size_t bytes)
{
    const struct rg_frame head = {
        .bytes = (uint32_t)bytes, .kind = kind, .id = id};

    note_failure(self, rg_wire_send(&self->link, &head, body));
}

/* A worker that cannot be told has ended, which its process says. */
static void tell_worker(struct rg_supervisor *self, enum rg_frame_kind kind,
                        uint32_t id, int value, const void *body, size_t bytes)
{
    const struct rg_frame head = {
        .bytes = (uint32_t)bytes, .kind = kind, .id = id, .value = value};

    rg_wire_send(&self->life.wire, &head, body);
}

static void reply(struct rg_supervisor *self, uint32_t id, int status)
{
    if (id != 0)
        tell_worker(self, RG_FRAME_REPLY, id, status, NULL, 0);
}

/* ---- lives -------------------------------------------------------------- */

static int lives(const struct rg_supervisor *self)
{
    return self->life.process.pid > 0;
}

static void welcome(struct rg_supervisor *self)
{
    const struct rg_job *job = self->job;
    struct rg_welcome place = {.rank = job->rank,
                               .size = job->size,
                               .local_rank = job->local_rank,
                               .local_size = job->local_size,
                               .hosts = job->hosts};
    struct rg_bytes body = {0};
    int status;

    snprintf(place.host, sizeof place.host, "%s", job->host);
    status = rg_bytes_append(&body, &place, sizeof place);
    if (status == RG_OK)
        status = rg_bytes_append(&body, self->scenario->payload,
                                 self->scenario->bytes);
    note_failure(self, status);
    tell_worker(self, RG_FRAME_WELCOME, 0, self->life.number, body.data,
                body.used);
    rg_bytes_fini(&body);
}

static int outlives(const struct timer *timer)
{
    return timer->kind == DO_START || timer->kind == DO_HEAL;
}

/* The worker is gone: its last words are taken, `end` says how it was. */
static void bury(struct rg_supervisor *self, const struct rg_end *end, int code)
{
    note(self, RG_RECORD_END, end, sizeof *end);
    rg_wire_fini(&self->life.wire);
    for (int i = 0; i < TIMERS_MAX; i++)
        if (!outlives(&self->timers[i]))
            self->timers[i].kind = DO_NOTHING;
    self->fate.last = *end;
    self->fate.code = rg_exit_worse(self->fate.code, code);
    tell_hub(self, RG_FRAME_ABSENT, 0, NULL, 0);
}

static void give_life(struct rg_supervisor *self)
{
    const int number = self->life.number + 1;
    int ends[2];
    int status;

    self->life = (struct life){.number = number, .process = {.pidfd = -1}};
    rg_wire_init(&self->life.wire, -1);
    self->fate.lives++;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        bury(self, &(struct rg_end){.exit_code = -1}, RG_EXIT_ENVIRONMENT);
        return;
    }
    rg_wire_init(&self->life.wire, ends[0]);
    status = rg_process_start(&self->self, ends[1], &self->life.process);
    close(ends[1]);
    if (status == RG_OK)
        welcome(self);
    else
        bury(self, &(struct rg_end){.exit_code = -1}, RG_EXIT_ENVIRONMENT);
}

static int code_of(const struct rg_end *end)
{
    if (end->hang)
        return RG_EXIT_TIMEOUT;
    if (end->planned)
        return RG_EXIT_PASS;
    if (end->signal)
        return RG_EXIT_RECOVERY;
    return end->exit_code == EXIT_NO_EXEC ? RG_EXIT_ENVIRONMENT
                                          : end->exit_code;
}

static void serve_worker(struct rg_supervisor *self);

/* What it sent before it ended is all there by then. */
static void take_end(struct rg_supervisor *self)
{
    struct rg_end end;
    int wait;

    if (!lives(self) || rg_process_reap(&self->life.process, &wait) != RG_OK)
        return;
    serve_worker(self);
    end = (struct rg_end){
        .exit_code = WIFEXITED(wait) ? WEXITSTATUS(wait) : -1,
        .signal = WIFSIGNALED(wait) ? WTERMSIG(wait) : 0,
        .hang = self->life.hang,
    };
    end.planned = end.signal == SIGKILL
                      ? self->life.planned_kill
                      : !end.signal && self->life.planned_exit;
    bury(self, &end, code_of(&end));
}

static void kill_and_reap(struct rg_supervisor *self)
{
    int wait;

    if (!lives(self))
        return;
    rg_process_signal(&self->life.process, SIGKILL);
    while (rg_process_reap(&self->life.process, &wait) == RG_EPENDING) {
        struct pollfd entry = {.fd = self->life.process.pidfd,
                               .events = POLLIN};

        poll(&entry, 1, -1);
    }
}

/* ---- faults ------------------------------------------------------------- */

static void do_kill(struct rg_supervisor *self, const struct timer *timer)
{
    const uint64_t now = rg_now_ns();

    self->life.planned_kill = 1;
    rg_process_signal(&self->life.process, SIGKILL);
    note_fault(self, &timer->injection, timer->asked_ns, now);
}

static int set_timer(struct rg_supervisor *self, const struct timer *timer)
{
    for (int i = 0; i < TIMERS_MAX; i++) {
        if (self->timers[i].kind == DO_NOTHING) {
            self->timers[i] = *timer;
            return RG_OK;
        }
    }
    return RG_ENOSPC;
}

/* The answer to one that asked to be stopped waits until it goes on. */
static void do_stop(struct rg_supervisor *self, const struct timer *timer)
{
    const uint64_t now = rg_now_ns();
    struct timer next = *timer;

    next.kind = DO_CONTINUE;
    next.at_ns = now + timer->injection.duration_ns;
    if (set_timer(self, &next) != RG_OK) {
        reply(self, timer->reply, RG_ENOSPC);
        return;
    }
    rg_process_signal(&self->life.process, SIGSTOP);
    note_fault(self, &timer->injection, timer->asked_ns, now);
}

/* The host's cable; its own processes go on, this one, too. */
static void do_cut(struct rg_supervisor *self, const struct timer *timer)
{
    const char *verb =
        timer->injection.action == RG_FAULT_SPLIT ? "split" : "cut";
    struct timer next = *timer;
    int status;

    next.kind = DO_HEAL;
    next.at_ns = rg_now_ns() + timer->injection.duration_ns;
    status = set_timer(self, &next);
    if (status == RG_OK)
        status = rg_hosts_do(verb, self->job->host);
    if (status == RG_OK)
        note_fault(self, &timer->injection, timer->asked_ns, rg_now_ns());
    reply(self, timer->reply, status);
}

static void do_heal(struct rg_supervisor *self)
{
    note_failure(self, rg_hosts_do("heal", self->job->host));
}

static void do_start(struct rg_supervisor *self, const struct timer *timer)
{
    give_life(self);
    note_fault(self, &timer->injection, timer->asked_ns, rg_now_ns());
}

static void do_timer(struct rg_supervisor *self, const struct timer *timer)
{
    switch (timer->kind) {
    case DO_KILL:
        do_kill(self, timer);
        break;
    case DO_STOP:
        do_stop(self, timer);
        break;
    case DO_CONTINUE:
        rg_process_signal(&self->life.process, SIGCONT);
        reply(self, timer->reply, RG_OK);
        break;
    case DO_CUT:
        do_cut(self, timer);
        break;
    case DO_HEAL:
        do_heal(self);
        break;
    case DO_START:
        do_start(self, timer);
        break;
    case DO_NOTHING:
        break;
    }
}

/* A start waits for the end of the life before. */
static int can_fire(const struct rg_supervisor *self, const struct timer *timer)
{
    return timer->kind != DO_NOTHING &&
           (timer->kind != DO_START || !lives(self));
}

static void fire_timers(struct rg_supervisor *self)
{
    const uint64_t now = rg_now_ns();

    for (int i = 0; i < TIMERS_MAX; i++) {
        const struct timer timer = self->timers[i];

        if (!can_fire(self, &timer) || timer.at_ns > now)
            continue;
        self->timers[i].kind = DO_NOTHING;
        do_timer(self, &timer);
    }
}

static int schedule(struct rg_supervisor *self, enum timer_kind kind,
                    const struct rg_injection *injection, uint32_t reply_to)
{
    const uint64_t now = rg_now_ns();
    struct timer timer = {.kind = kind,
                          .asked_ns = now,
                          .at_ns = now + injection->delay_ns,
                          .injection = *injection};

    if (kind != DO_START && !lives(self))
        return RG_ECLOSED;
    if (injection->delay_ns == 0 && kind != DO_START) {
        timer.reply = reply_to;
        do_timer(self, &timer);
        return RG_EPENDING;
    }
    return set_timer(self, &timer);
}

/* RG_EPENDING: the answer comes later, or never to one that was killed. */
static int inject(struct rg_supervisor *self, uint32_t id,
                  const struct rg_injection *injection)
{
    const int own = injection->rank == self->job->rank;
    const uint64_t now = rg_now_ns();

    if (injection->action == RG_FAULT_REJOIN && !own) {
        if (!is_rank(self, injection->rank))
            return RG_EINVAL;
        tell_hub(self, RG_FRAME_RESTART, 0, injection, sizeof *injection);
        return RG_OK;
    }
    if (!own)
        return RG_EINVAL;
    switch (injection->action) {
    case RG_FAULT_KILL:
        return schedule(self, DO_KILL, injection, id);
    case RG_FAULT_STOP:
        return schedule(self, DO_STOP, injection, id);
    case RG_FAULT_CUT:
    case RG_FAULT_SPLIT:
        if (!rg_hosts_present())
            return RG_ENOTSUP;
        return schedule(self, DO_CUT, injection, id);
    case RG_FAULT_REJOIN:
        return schedule(self, DO_START, injection, id);
    case RG_FAULT_EXIT:
        self->life.planned_exit = 1;
        break;
    case RG_FAULT_ERROR:
    case RG_FAULT_DROP:
    case RG_FAULT_BREAK:
    case RG_FAULT_DELAY:
        break;
    default:
        return RG_EINVAL;
    }
    note_fault(self, injection, now, now);
    return RG_OK;
}

/* ---- what comes in ------------------------------------------------------ */

static void answer_ticket(struct rg_supervisor *self)
{
    struct life *life = &self->life;

    if (!life->waits_for_ticket || self->ticket_number <= life->ticket_known)
        return;
    life->waits_for_ticket = 0;
    tell_worker(self, RG_FRAME_REPLY, life->ticket_ask, self->ticket_number,
                self->ticket.data, self->ticket.used);
}

static void take_injection(struct rg_supervisor *self,
                           const struct rg_frame *head, const void *body)
{
    struct rg_injection injection;
    int status = RG_EPROTO;

    if (head->bytes == sizeof injection) {
        memcpy(&injection, body, sizeof injection);
        status = inject(self, head->id, &injection);
    }
    if (status != RG_EPENDING)
        reply(self, head->id, status);
}

/* Processes started anew enter the group by a ticket, not by exchange. */
static void take_share(struct rg_supervisor *self, const struct rg_frame *head,
                       const void *body)
{
    if (self->life.number > 0)
        reply(self, head->id, RG_ENOTSUP);
    else
        tell_hub(self, RG_FRAME_ALLGATHER, head->id, body, head->bytes);
}

static void take_from_worker(struct rg_supervisor *self,
                             const struct rg_frame *head, const void *body)
{
    switch (head->kind) {
    case RG_FRAME_ALLGATHER:
        take_share(self, head, body);
        break;
    case RG_FRAME_INJECT:
        take_injection(self, head, body);
        break;
    case RG_FRAME_GET_TICKET:
        self->life.waits_for_ticket = 1;
        self->life.ticket_known = head->value;
        self->life.ticket_ask = head->id;
        answer_ticket(self);
        break;
    case RG_FRAME_GET_ENDS:
        reply(self, head->id,
              is_rank(self, head->value) ? self->ends[head->value] : RG_EINVAL);
        break;
    case RG_FRAME_REPORT:
        note(self, RG_RECORD_REPORT, body, head->bytes);
        break;
    case RG_FRAME_EVENT:
        note(self, RG_RECORD_EVENT, body, head->bytes);
        break;
    case RG_FRAME_TICKET:
        tell_hub(self, RG_FRAME_TICKET, 0, body, head->bytes);
        break;
    default:
        note_failure(self, RG_EPROTO);
    }
}

static void serve_worker(struct rg_supervisor *self)
{
    struct rg_wire *wire = &self->life.wire;
    struct rg_frame head;
    const void *body;
    int status;

    rg_wire_flush(wire);
    while ((status = rg_wire_receive(wire, &head, &body)) == RG_OK)
        take_from_worker(self, &head, body);
    if (status == RG_ECLOSED)
        rg_wire_fini(wire);
    else if (status != RG_EPENDING)
        note_failure(self, status);
}

static void take_restart(struct rg_supervisor *self,
                         const struct rg_frame *head, const void *body)
{
    struct rg_injection injection;

    if (head->bytes != sizeof injection)
        return;
    memcpy(&injection, body, sizeof injection);
    self->restarts++;
    self->said_idle = 0;
    if (!self->overdue)
        schedule(self, DO_START, &injection, 0);
}

static void take_ticket(struct rg_supervisor *self, const struct rg_frame *head,
                        const void *body)
{
    note_failure(self, rg_bytes_set(&self->ticket, body, head->bytes));
    self->ticket_number = head->value;
    answer_ticket(self);
}

static void take_result(struct rg_supervisor *self, const struct rg_frame *head,
                        const void *body)
{
    struct rg_rank_supervision *rank;

    if (!is_rank(self, head->value) || head->bytes < sizeof rank->fate) {
        note_failure(self, RG_EPROTO);
        return;
    }
    rank = &self->result->ranks[head->value];
    memcpy(&rank->fate, body, sizeof rank->fate);
    note_failure(self, rg_bytes_set(&rank->records,
                                    (const char *)body + sizeof rank->fate,
                                    head->bytes - sizeof rank->fate));
}

static void take_from_hub(struct rg_supervisor *self,
                          const struct rg_frame *head, const void *body)
{
    switch (head->kind) {
    case RG_FRAME_GATHERED:
        tell_worker(self, RG_FRAME_REPLY, head->id, head->value, body,
                    head->bytes);
        break;
    case RG_FRAME_ABSENT:
        if (is_rank(self, head->value))
            self->ends[head->value]++;
        break;
    case RG_FRAME_TICKET:
        take_ticket(self, head, body);
        break;
    case RG_FRAME_RESTART:
        take_restart(self, head, body);
        break;
    case RG_FRAME_RESULT:
        take_result(self, head, body);
        break;
    case RG_FRAME_DONE:
        self->done = 1;
        note_failure(self, head->value);
        break;
    default:
        note_failure(self, RG_EPROTO);
    }
}

/* What lies behind the end of this scenario belongs to the next. */
static void serve_hub(struct rg_supervisor *self)
{
    struct rg_frame head;
    const void *body;
    int status = RG_EPENDING;

    for (int r = 0; self->hub && r < self->job->size; r++)
        rg_hub_serve(self->hub, r);
    rg_wire_flush(&self->link);
    while (!self->done &&
           (status = rg_wire_receive(&self->link, &head, &body)) == RG_OK)
        take_from_hub(self, &head, body);
    if (!self->done && status != RG_EPENDING)
        note_failure(self, status);
}

/* ---- a scenario --------------------------------------------------------- */

/* Tells the hub when no worker runs, none is to come, and the host is back. */
static void say_idle(struct rg_supervisor *self)
{
    struct rg_bytes body = {0};
    int status;

    if (self->said_idle || lives(self))
        return;
    for (int i = 0; i < TIMERS_MAX; i++)
        if (outlives(&self->timers[i]))
            return;
    self->said_idle = 1;
    status = rg_bytes_append(&body, &self->fate, sizeof self->fate);
    if (status == RG_OK)
        status = rg_bytes_append(&body, self->records.data, self->records.used);
    note_failure(self, status);
    tell_hub(self, RG_FRAME_IDLE, self->restarts, body.data, body.used);
    rg_bytes_fini(&body);
}

/* What is not to happen any more; no host stays unplugged. */
static void drop_timers(struct rg_supervisor *self)
{
    for (int i = 0; i < TIMERS_MAX; i++) {
        if (self->timers[i].kind == DO_HEAL)
            do_heal(self);
        self->timers[i].kind = DO_NOTHING;
    }
}

static void watch_deadline(struct rg_supervisor *self)
{
    const uint64_t now = rg_now_ns();

    if (now >= self->deadline_ns + GRACE_MS * NS_PER_MS)
        note_failure(self, RG_ETIMEDOUT);
    if (self->overdue || now < self->deadline_ns)
        return;
    self->overdue = 1;
    drop_timers(self);
    if (lives(self)) {
        self->life.hang = 1;
        rg_process_signal(&self->life.process, SIGKILL);
    }
}

static int next_wait_ms(const struct rg_supervisor *self)
{
    uint64_t next = self->deadline_ns;

    if (self->overdue)
        next += GRACE_MS * NS_PER_MS;
    for (int i = 0; i < TIMERS_MAX; i++)
        if (can_fire(self, &self->timers[i]) && self->timers[i].at_ns < next)
            next = self->timers[i].at_ns;
    return rg_ms_until(next);
}

static void poll_wire(struct pollfd *entry, const struct rg_wire *wire)
{
    *entry = (struct pollfd){.fd = wire->fd, .events = rg_wire_events(wire)};
}

static void wait_for_something(struct rg_supervisor *self)
{
    struct pollfd *entries = self->entries;
    nfds_t n = 3;

    poll_wire(&entries[0], &self->link);
    poll_wire(&entries[1], &self->life.wire);
    entries[2] =
        (struct pollfd){.fd = self->life.process.pidfd, .events = POLLIN};
    for (int r = 0; self->hub && r < self->job->size; r++)
        poll_wire(&entries[n++], rg_hub_wire(self->hub, r));
    poll(entries, n, next_wait_ms(self));
}

/* Rank 0 stays until all others know the end. */
static int is_over(struct rg_supervisor *self)
{
    return self->status != RG_OK ||
           (self->done && (!self->hub || rg_hub_is_quiet(self->hub)));
}

static void begin(struct rg_supervisor *self,
                  const struct rg_scenario *scenario,
                  struct rg_supervision *result)
{
    self->scenario = scenario;
    self->result = result;
    self->deadline_ns =
        rg_now_ns() + (uint64_t)scenario->deadline_ms * NS_PER_MS;
    self->overdue = 0;
    self->done = 0;
    self->status = RG_OK;
    self->life = (struct life){.number = -1};
    memset(self->timers, 0, sizeof self->timers);
    memset(self->ends, 0, (size_t)self->job->size * sizeof *self->ends);
    self->fate = (struct rg_fate){0};
    self->records.used = 0;
    self->ticket_number = 0;
    self->restarts = 0;
    self->said_idle = 0;
    if (self->hub)
        rg_hub_begin(self->hub);
}

int rg_supervisor_run(struct rg_supervisor *self,
                      const struct rg_scenario *scenario,
                      struct rg_supervision *result_out)
{
    struct rg_supervision result = {.size = self->job->size};

    result.ranks = calloc((size_t)result.size, sizeof *result.ranks);
    if (!result.ranks)
        return RG_ENOMEM;
    begin(self, scenario, &result);
    give_life(self);
    while (!is_over(self)) {
        serve_worker(self);
        take_end(self);
        fire_timers(self);
        watch_deadline(self);
        serve_hub(self);
        say_idle(self);
        if (!is_over(self))
            wait_for_something(self);
    }
    kill_and_reap(self);
    drop_timers(self);
    rg_wire_fini(&self->life.wire);
    if (self->status != RG_OK) {
        rg_supervision_fini(&result);
        return self->status;
    }
    *result_out = result;
    return RG_OK;
}

/* ---- the job ------------------------------------------------------------ */

/* Where the hub is, from rank 0 to all. */
static int find_hub(struct rg_supervisor *self, struct rg_hub_place *place_out)
{
    const struct rg_job *job = self->job;
    struct rg_hub_place mine = {0};
    struct rg_hub_place *all = calloc((size_t)job->size, sizeof *all);
    int status;

    if (job->rank == 0)
        rg_hub_create(job, &self->hub, &mine);
    if (!all)
        return RG_ENOMEM;
    status =
        job->bootstrap.allgather(job->bootstrap.arg, &mine, all, sizeof mine);
    if (status == RG_OK)
        status = all[0].status;
    if (status == RG_OK)
        *place_out = all[0];
    free(all);
    return status;
}

static int meet(struct rg_supervisor *self)
{
    const uint64_t deadline_ns = rg_now_ns() + MEET_MS * NS_PER_MS;
    struct rg_hub_place place;
    int status = find_hub(self, &place);

    if (status == RG_OK)
        status = rg_hub_connect(&place, self->job, &self->link);
    if (status == RG_OK && self->hub)
        status = rg_hub_accept(self->hub, deadline_ns);
    return status;
}

static int create(const struct rg_job *job, struct rg_supervisor **out)
{
    struct rg_supervisor *self = calloc(1, sizeof *self);
    int status;

    if (!self)
        return RG_ENOMEM;
    self->job = job;
    rg_wire_init(&self->link, -1);
    *out = self;
    self->entries = calloc(3 + (size_t)job->size, sizeof *self->entries);
    self->ends = calloc((size_t)job->size, sizeof *self->ends);
    status =
        self->entries && self->ends ? rg_self_init(&self->self) : RG_ENOMEM;
    return status;
}

/* The worst status of all ranks. */
static int agree(const struct rg_job *job, int status)
{
    const int worst = rg_job_agree(job, -status);

    return worst > 0 ? -worst : worst;
}

/* Ranks agree before each step in which they would wait for each other. */
int rg_supervisor_create(const struct rg_job *job,
                         struct rg_supervisor **supervisor_out)
{
    struct rg_supervisor *self = NULL;
    int status = agree(job, create(job, &self));

    if (status == RG_OK)
        status = agree(job, meet(self));
    if (status != RG_OK) {
        rg_supervisor_destroy(self);
        return status;
    }
    *supervisor_out = self;
    return RG_OK;
}

void rg_supervisor_destroy(struct rg_supervisor *self)
{
    if (!self)
        return;
    rg_hub_destroy(self->hub);
    rg_wire_fini(&self->link);
    rg_bytes_fini(&self->records);
    rg_bytes_fini(&self->ticket);
    rg_self_fini(&self->self);
    free(self->entries);
    free(self->ends);
    free(self);
}
