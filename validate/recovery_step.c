#include <stdio.h>
#include <string.h>

#include "harness/call.h"
#include "harness/wait.h"
#include "validate/recovery_member.h"

/* Votes and elements are counts below 2^16: sums of 64 are exact in f32. */
enum { VOTE_MAX = 1000 };

/* ---- elements ----------------------------------------------------------- */

size_t rg_recovery_bytes(const struct rg_recovery_scenario *scenario)
{
    return (size_t)scenario->count *
           rg_dtype_size((enum rg_dtype)scenario->dtype);
}

static uint32_t element(uint64_t salt, int slot, size_t i)
{
    const uint32_t mixed = ((uint32_t)salt ^ (uint32_t)i) * 2654435761u +
                           (uint32_t)(slot + 1) * 2246822519u;

    return (mixed ^ mixed >> 15) & 0xffff;
}

/* Other inputs for each seq, so that what an old one left is wrong. */
static uint64_t salt_of(const struct rg_recovery_member *self, uint64_t seq)
{
    return (self->scenario->seed * 31 + seq) * UINT64_C(0x9e3779b97f4a7c15) >>
           20;
}

static void put(const struct rg_recovery_member *self, size_t i, uint32_t value)
{
    const float real = (float)value;

    if (self->scenario->dtype == RG_f32)
        memcpy(self->host + i * sizeof(real), &real, sizeof(real));
    else
        memcpy(self->host + i * sizeof(value), &value, sizeof(value));
}

/* What no sum can be gives a value that no sum can be. */
static uint32_t get(const struct rg_recovery_member *self, size_t i)
{
    uint32_t value;
    float real;

    if (self->scenario->dtype != RG_f32) {
        memcpy(&value, self->host + i * sizeof(value), sizeof(value));
        return value;
    }
    memcpy(&real, self->host + i * sizeof(real), sizeof(real));
    if (!(real >= 0 && real < 16777216.0f) || real != (float)(uint32_t)real)
        return UINT32_MAX;
    return (uint32_t)real;
}

static int load_calls(struct rg_recovery_member *self, uint64_t seq)
{
    int status = RG_OK;

    for (int i = 0; i < self->ncalls && status == RG_OK; i++)
        status = rg_block_call_load(&self->calls[i],
                                    salt_of(self, seq) + (uint64_t)i);
    return status;
}

static int load(struct rg_recovery_member *self, uint64_t seq)
{
    const size_t count = (size_t)self->scenario->count;
    const uint64_t salt = salt_of(self, seq);

    for (size_t i = 0; i < RG_VOTE_COUNT; i++)
        put(self, i,
            self->votes[i] < VOTE_MAX ? (uint32_t)self->votes[i] : VOTE_MAX);
    for (size_t i = RG_VOTE_COUNT; i < count; i++)
        put(self, i, element(salt, self->job->rank, i));
    return rg_memcpy(self->context, self->send, self->host,
                     rg_recovery_bytes(self->scenario));
}

/* ---- collectives -------------------------------------------------------- */

/* In place where there is such a thing, for every other. */
static struct rg_block_call call_of(const struct rg_recovery_member *self,
                                    enum rg_collective collective)
{
    return (struct rg_block_call){.collective = collective,
                                  .dtype = RG_f32,
                                  .op = RG_sum,
                                  .in_place = rg_call_has_inplace(collective) &&
                                              collective % 2,
                                  .count = (size_t)self->scenario->block,
                                  .root = self->scenario->root};
}

int rg_recovery_calls_create(struct rg_recovery_member *self)
{
    const struct rg_blocks blocks = {
        .context = self->context,
        .comm = self->comm,
        .stream = self->stream,
        .device = (enum rg_device_kind)self->scenario->device,
        .slot = self->job->rank,
        .slots = self->job->size};
    int status = RG_OK;

    for (int c = 0; c < RG_COLL_COUNT && status == RG_OK; c++) {
        struct rg_block_call *call = &self->calls[self->ncalls];

        if (!(self->scenario->collectives >> c & 1))
            continue;
        *call = call_of(self, (enum rg_collective)c);
        status = rg_block_call_create(&blocks, call);
        self->ncalls += status == RG_OK;
    }
    return status;
}

void rg_recovery_calls_destroy(struct rg_recovery_member *self)
{
    while (self->ncalls > 0)
        rg_block_call_destroy(&self->calls[--self->ncalls]);
}

/* ---- transfer probes ---------------------------------------------------- */

int rg_recovery_probes_create(struct rg_recovery_member *self)
{
    static const struct rg_transfer_request requests[] = {
        [RG_PROBE_PUT] = {.lanes = 1, .turns = 12, .bytes = 600 << 10},
        [RG_PROBE_WAIT] = {.lanes = 1, .turns = 800, .bytes = 8},
        [RG_PROBE_FLUSH] = {.lanes = 8, .turns = 100, .bytes = 3001}};
    int status;

    if (!self->scenario->probe)
        return RG_OK;
    self->request = requests[self->scenario->probe];
    self->request.program = RG_TRANSFER_EXCHANGE;
    self->request.offset = 1;
    status = rg_probes_create(
        self->context, rg_transfer_source_bytes(&self->request), &self->probes);
    return status == RG_OK ? rg_probes_ask(&self->probes, &self->request)
                           : status;
}

/* All launches of the step at hand but the last, if there are more. */
static int has_probes(const struct rg_recovery_member *self)
{
    return self->scenario->probe && self->launches > 1;
}

/* Whatever has arrived, also in an epoch that has ended, was right. */
static int check_probes(struct rg_recovery_member *self,
                        struct rg_recovery_line *line)
{
    struct rg_transfer_report report;
    int status = rg_probes_read(&self->probes, &report);

    if (status != RG_OK)
        return status;
    line->wrong += report.wrong + report.spilled + report.signals != 0 ||
                   report.turns == 0;
    return RG_OK;
}

/* ---- the check ---------------------------------------------------------- */

/* What is committed must be the sum over exactly its participants. */
static int check(struct rg_recovery_member *self, uint64_t seq,
                 struct rg_recovery_line *line)
{
    const size_t count = (size_t)self->scenario->count;
    const uint64_t salt = salt_of(self, seq);
    int status = rg_memcpy(self->context, self->host, self->recv,
                           rg_recovery_bytes(self->scenario));

    if (status != RG_OK)
        return status;
    line->digest = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) {
        const uint32_t got = get(self, i);
        uint32_t want = 0;

        line->digest = (line->digest ^ got) * UINT64_C(0x100000001b3);
        for (uint64_t left = line->participants; left; left &= left - 1)
            want += element(salt, __builtin_ctzll(left), i);
        line->wrong += i >= RG_VOTE_COUNT && got != want;
    }
    for (size_t i = 0; i < RG_VOTE_COUNT; i++)
        self->counted[i] = get(self, i);
    return has_probes(self) ? check_probes(self, line) : RG_OK;
}

/* ---- launches ----------------------------------------------------------- */

/* The launch in this place of a step: its collectives come first. */
static int launch(struct rg_recovery_member *self, int place)
{
    if (place < self->ncalls)
        return rg_block_call_launch(&self->calls[place]);
    return rg_all_reduce(self->send, self->recv, (size_t)self->scenario->count,
                         (enum rg_dtype)self->scenario->dtype, RG_sum,
                         self->comm, self->stream);
}

static int launch_from(struct rg_recovery_member *self, int place)
{
    int status = RG_OK;

    for (; place <= self->ncalls && status == RG_OK; place++)
        status = launch(self, place);
    return status;
}

int rg_recovery_capture(struct rg_recovery_member *self)
{
    int status;

    if (!self->scenario->replay)
        return RG_OK;
    self->report->captures++;
    status = rg_graph_begin(self->stream);
    if (status == RG_OK)
        status = launch_from(self, 0);
    if (status == RG_OK)
        status = rg_graph_end(self->stream, &self->graph);
    return status;
}

/* The place of the step's first launch: what is left of one is not all of the
 * graph. */
static int first_place(const struct rg_recovery_member *self)
{
    return self->scenario->batch - self->launches;
}

static int launch_collectives(struct rg_recovery_member *self)
{
    const int place = first_place(self);

    return self->scenario->replay && place == 0
               ? rg_graph_launch(self->graph, self->stream)
               : launch_from(self, place);
}

/* All launches of a step have the last one's inputs: only it is looked at,
 * but for collectives. */
static int launch_all(struct rg_recovery_member *self)
{
    int status = RG_OK;

    if (self->ncalls > 0)
        return launch_collectives(self);
    for (int i = 0; i < self->launches && status == RG_OK; i++)
        if (has_probes(self) && i + 1 < self->launches)
            status = rg_probes_launch(&self->probes, &self->request, self->comm,
                                      self->stream);
        else
            status = self->scenario->replay
                         ? rg_graph_launch(self->graph, self->stream)
                         : launch(self, 0);
    return status;
}

/* Those that are committed, also where the step is not: each by those who
 * took part in it. */
static void check_calls(struct rg_recovery_member *self,
                        struct rg_recovery_line *lines)
{
    const int first = first_place(self);
    char text[200];

    for (int place = first; place < self->ncalls; place++) {
        struct rg_recovery_line *line = &lines[place - first];

        if (line->state != RG_OUTCOME_COMMITTED ||
            rg_block_call_check(&self->calls[place], line->participants, text,
                                sizeof(text)) == RG_OK)
            continue;
        line->wrong++;
        fprintf(stderr, "rank %d: seq %llu, members %#llx: %s\n",
                self->job->rank, (unsigned long long)line->seq,
                (unsigned long long)line->participants, text);
    }
}

/* ---- outcomes ----------------------------------------------------------- */

static int take_outcome(struct rg_recovery_member *self, uint64_t seq,
                        struct rg_recovery_line *line_out)
{
    struct rg_outcome outcome;
    int status = rg_comm_wait(self->comm, seq, &outcome);

    if (status == RG_OK)
        *line_out = (struct rg_recovery_line){
            .seq = seq,
            .epoch = outcome.epoch,
            .participants = outcome.participants[0],
            .state = (int32_t)outcome.state,
        };
    return status;
}

/* A whole step is committed if all of it is, else aborted. */
static int check_range(struct rg_recovery_member *self,
                       const struct rg_recovery_line *lines, int n)
{
    enum rg_outcome_state worst = RG_OUTCOME_COMMITTED;
    struct rg_outcome outcome;
    int status = rg_comm_outcome_range(self->comm, lines[0].seq,
                                       lines[n - 1].seq, &outcome);

    for (int i = 0; i < n; i++)
        if (lines[i].state == RG_OUTCOME_ABORTED)
            worst = RG_OUTCOME_ABORTED;
    if (status == RG_OK && outcome.state != worst)
        self->lines[self->report->lines - 1].wrong++;
    return status;
}

static int try_outcomes(struct rg_recovery_member *self, uint64_t first)
{
    const int n = self->launches;
    struct rg_recovery_line *lines = &self->lines[self->report->lines];
    int status = RG_OK;

    for (int i = 0; i < n && status == RG_OK; i++)
        status = take_outcome(self, first + (uint64_t)i, &lines[i]);
    if (status != RG_OK)
        return status;
    self->report->lines += n;
    check_calls(self, lines);
    status = check_range(self, lines, n);
    self->aborted = lines[n - 1].state == RG_OUTCOME_ABORTED;
    if (status != RG_OK || self->aborted)
        return status;
    return check(self, lines[n - 1].seq, &lines[n - 1]);
}

/* What has completed may have to wait for a change that this rank asks for. */
static int take_outcomes(struct rg_recovery_member *self, uint64_t first)
{
    int status = try_outcomes(self, first);

    if (status != RG_EFAILED || !self->scenario->mode)
        return status;
    status = rg_recovery_remove_failed(self);
    return status == RG_OK ? try_outcomes(self, first) : status;
}

static void note_committed(struct rg_recovery_member *self)
{
    const struct rg_recovery_line *line = &self->lines[self->report->lines - 1];

    if (line->epoch != self->epoch) {
        self->steps_in_epoch = 0;
        rg_worker_event(self->worker, "committed", line->seq);
    }
    self->steps_in_epoch++;
    self->epoch = line->epoch;
    if (self->first_epoch == 0)
        self->first_epoch = line->epoch;
    self->participants = line->participants;
}

/* ---- a step ------------------------------------------------------------- */

static int expect_seq(struct rg_recovery_member *self, uint64_t expected)
{
    uint64_t seq;
    int status = rg_comm_seq(self->comm, &seq);

    if (status != RG_OK || seq == expected)
        return status;
    fprintf(stderr, "rank %d: at seq %llu instead of %llu\n", self->job->rank,
            (unsigned long long)seq, (unsigned long long)expected);
    return RG_EPROTO;
}

/* By its own deadline, or by the notice of who has failed. */
static int has_failed(struct rg_recovery_member *self)
{
    const int error = rg_comm_error(self->comm);

    return error == RG_ETIMEDOUT || error == RG_EABORTED || error == RG_EFAILED;
}

/*
 * A step ends where the seq is a multiple of the batch: who is let in while the
 * others are in the midst of one, by a change that a failure began, does what
 * is left of it and so what they do.
 */
int rg_recovery_step(struct rg_recovery_member *self)
{
    const uint64_t batch = (uint64_t)self->scenario->batch;
    uint64_t before, first, last, begin_ns;
    int status = rg_comm_seq(self->comm, &before);

    if (status != RG_OK)
        return status;
    first = before + 1;
    last = before + batch - before % batch;
    self->launches = (int)(last - before);
    status = load(self, last);
    if (status == RG_OK)
        status = load_calls(self, last);
    rg_recovery_at(self, RG_FAULT_IN_START, first);
    rg_recovery_mid_begin(self, first);
    begin_ns = rg_now_ns();
    if (status == RG_OK)
        status = launch_all(self);
    if (status == RG_OK)
        status = rg_stream_synchronize(self->stream);
    self->launch_ns = rg_now_ns() - begin_ns;
    rg_recovery_mid_end(self);
    rg_recovery_at(self, RG_FAULT_IN_COMPLETE, first);
    if (status == RG_OK)
        status = expect_seq(self, last);
    if (status == RG_OK && self->scenario->mode && has_failed(self))
        status = rg_recovery_remove_failed(self);
    if (status == RG_OK)
        status = take_outcomes(self, first);
    if (status == RG_OK && !self->aborted)
        note_committed(self);
    rg_recovery_at(self, RG_FAULT_IN_IDLE, first);
    return status;
}
