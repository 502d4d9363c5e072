#include "validate/trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/call.h"

enum {
    GUARD = 256, /* bytes; keeps what follows aligned */
    POISON = 0xd6,
    SHARE_MIN = 4096 /* elements from which ranks divide the comparison */
};

const char *rg_layout_name(enum rg_layout layout)
{
    static const char *const names[RG_LAYOUT_COUNT] = {
        [RG_LAYOUT_OUT] = "out",         [RG_LAYOUT_IN] = "in",
        [RG_LAYOUT_OUT_ODD] = "out_odd", [RG_LAYOUT_IN_ODD] = "in_odd",
        [RG_LAYOUT_SKEW] = "skew",       [RG_LAYOUT_ADJACENT] = "adjacent",
    };

    return names[layout];
}

/* ---- where what lies ---------------------------------------------------- */

static size_t element_bytes(const struct rg_trial *trial)
{
    return rg_oracle_size(trial->oracle.dtype);
}

static int rank_of(const struct rg_trial *trial)
{
    return trial->suite->job->rank;
}

static int is_v(const struct rg_trial *trial)
{
    return trial->spec.collective == RG_COLL_all_to_all_v;
}

static size_t round_up(size_t bytes)
{
    return (bytes + GUARD - 1) / GUARD * GUARD;
}

/* Elements of a buffer that holds so much; all_to_all_v: with all gaps. */
static size_t room(const struct rg_trial *trial, enum rg_extent extent)
{
    const size_t n = (size_t)trial->oracle.nranks;

    if (extent == RG_EXTENT_NOTHING)
        return 0;
    if (is_v(trial))
        return n * (trial->spec.count + 1);
    return trial->spec.count * (extent == RG_EXTENT_BLOCKS ? n : 1);
}

static size_t send_room(const struct rg_trial *trial)
{
    return room(trial, rg_call_sends(trial->spec.collective, 1));
}

static size_t recv_room(const struct rg_trial *trial)
{
    return room(trial, rg_call_receives(trial->spec.collective, 1));
}

static void place(struct rg_trial *trial)
{
    const enum rg_layout layout = trial->spec.layout;
    const int odd = layout == RG_LAYOUT_OUT_ODD || layout == RG_LAYOUT_IN_ODD;
    const int one = layout == RG_LAYOUT_IN || layout == RG_LAYOUT_IN_ODD;
    const size_t element = element_bytes(trial);
    const size_t send = send_room(trial) * element;
    const size_t recv = recv_room(trial) * element;
    size_t end;

    trial->send_at = GUARD;
    if (odd || layout == RG_LAYOUT_SKEW)
        trial->send_at += element;
    if (one)
        trial->recv_at = trial->send_at;
    else if (layout == RG_LAYOUT_ADJACENT)
        trial->recv_at = trial->send_at + send;
    else
        trial->recv_at =
            round_up(trial->send_at + send) + GUARD + (odd ? element : 0);
    end = trial->recv_at + (one && send > recv ? send : recv);
    trial->layout_at = round_up(end) + GUARD;
    trial->total = trial->layout_at + GUARD;
    if (is_v(trial))
        trial->total += 4 * (size_t)trial->oracle.nranks * sizeof(uint64_t);
}

static int is_in_place(const struct rg_trial *trial)
{
    return trial->send_at == trial->recv_at;
}

/* Where the call's buffers begin, in the block. */
static size_t call_send_at(const struct rg_trial *trial)
{
    const size_t offset = rg_call_send_offset(
        trial->spec.collective, trial->spec.count, rank_of(trial));

    return trial->send_at +
           (is_in_place(trial) ? offset * element_bytes(trial) : 0);
}

static size_t call_recv_at(const struct rg_trial *trial)
{
    const size_t offset = rg_call_recv_offset(
        trial->spec.collective, trial->spec.count, rank_of(trial));

    return trial->recv_at +
           (is_in_place(trial) ? offset * element_bytes(trial) : 0);
}

/* ---- all_to_all_v ------------------------------------------------------- */

/* Nothing, all there may be, or anything between. */
static size_t pair_count(const struct rg_trial *trial, int from, int to)
{
    uint64_t x = (trial->oracle.seed * 64 + (uint64_t)from) * 64 + (uint64_t)to;

    x = (x ^ x >> 31) * UINT64_C(0x7fb5d329728ea185);
    x = (x ^ x >> 27) * UINT64_C(0x81dadef4bc2dd44d);
    x ^= x >> 33;
    if (x % 4 == 0)
        return 0;
    return x % 4 == 1 ? trial->spec.count : x / 4 % (trial->spec.count + 1);
}

/* Behind the blocks of higher ranks, and a gap behind each. */
static size_t sent_at(const struct rg_trial *trial, int to)
{
    size_t at = 0;

    for (int other = trial->oracle.nranks - 1; other > to; other--)
        at += pair_count(trial, rank_of(trial), other) + 1;
    return at;
}

static size_t received_at(const struct rg_trial *trial, int from)
{
    size_t at = 0;

    for (int other = trial->oracle.nranks - 1; other > from; other--)
        at += pair_count(trial, other, rank_of(trial)) + 1;
    return at;
}

static void load_v(struct rg_trial *trial)
{
    const int n = trial->oracle.nranks, me = rank_of(trial);

    for (int other = 0; other < n; other++) {
        const uint64_t words[4] = {
            pair_count(trial, me, other), sent_at(trial, other),
            pair_count(trial, other, me), received_at(trial, other)};

        for (int i = 0; i < 4; i++)
            memcpy(trial->before + trial->layout_at +
                       (size_t)(i * n + other) * sizeof(words[i]),
                   &words[i], sizeof(words[i]));
        rg_oracle_fill(&trial->oracle, me, (size_t)other * trial->spec.count,
                       trial->before + trial->send_at +
                           words[1] * element_bytes(trial),
                       words[0]);
    }
}

/* ---- what must come out ------------------------------------------------- */

static void add_part(struct rg_trial *trial, size_t index, size_t count,
                     int from, size_t first)
{
    if (count > 0)
        trial->parts[trial->nparts++] = (struct rg_trial_part){
            call_recv_at(trial) + index * element_bytes(trial), count, from,
            first};
}

/* A block of each rank, which is what it has at `first`. */
static void add_each(struct rg_trial *trial, size_t first)
{
    const size_t count = trial->spec.count;

    for (int from = 0; from < trial->oracle.nranks; from++)
        add_part(trial, (size_t)from * count, count, from, first);
}

static void add_v(struct rg_trial *trial)
{
    const int me = rank_of(trial);

    for (int from = trial->oracle.nranks - 1; from >= 0; from--)
        add_part(trial, received_at(trial, from), pair_count(trial, from, me),
                 from, (size_t)me * trial->spec.count);
}

static void expect_parts(struct rg_trial *trial)
{
    const struct rg_trial_spec *spec = &trial->spec;
    const size_t own = (size_t)rank_of(trial) * spec->count;
    const int at_root = spec->root == rank_of(trial);

    trial->nparts = 0;
    switch (spec->collective) {
    case RG_COLL_all_reduce:
        add_part(trial, 0, spec->count, RG_ORACLE_ALL, 0);
        break;
    case RG_COLL_reduce:
        add_part(trial, 0, at_root ? spec->count : 0, RG_ORACLE_ALL, 0);
        break;
    case RG_COLL_reduce_scatter:
        add_part(trial, 0, spec->count, RG_ORACLE_ALL, own);
        break;
    case RG_COLL_broadcast:
        add_part(trial, 0, spec->count, spec->root, 0);
        break;
    case RG_COLL_scatter:
        add_part(trial, 0, spec->count, spec->root, own);
        break;
    case RG_COLL_all_gather:
        add_each(trial, 0);
        break;
    case RG_COLL_gather:
        if (at_root)
            add_each(trial, 0);
        break;
    case RG_COLL_all_to_all:
        add_each(trial, own);
        break;
    case RG_COLL_all_to_all_v:
        add_v(trial);
        break;
    case RG_COLL_sendrecv:
        add_part(trial, 0, spec->count,
                 (rank_of(trial) + trial->oracle.nranks - 1) %
                     trial->oracle.nranks,
                 0);
        break;
    default:
        break;
    }
}

/* ---- life --------------------------------------------------------------- */

int rg_trial_create(struct rg_suite *suite, const struct rg_trial_spec *spec,
                    struct rg_trial *trial_out)
{
    struct rg_trial trial = {.suite = suite, .spec = *spec};
    const int reduces = rg_collective_reduces(spec->collective);
    void *device = NULL;
    int status = RG_ENOMEM;

    trial.oracle.dtype = reduces ? spec->dtype : rg_oracle_moved(spec->dtype);
    trial.oracle.op = reduces ? spec->op : RG_sum;
    trial.oracle.inputs = spec->inputs;
    trial.oracle.nranks = suite->job->size;
    place(&trial);
    trial.before = malloc(trial.total);
    trial.after = malloc(trial.total);
    if (trial.before == NULL || trial.after == NULL)
        goto error;
    status = rg_malloc(suite->context, trial.total, &device);
    if (status != RG_OK)
        goto error;
    trial.device = device;
    *trial_out = trial;
    return RG_OK;
error:
    rg_trial_destroy(&trial);
    return status;
}

void rg_trial_destroy(struct rg_trial *trial)
{
    if (trial->device != NULL)
        rg_free(trial->suite->context, trial->device);
    free(trial->before);
    free(trial->after);
    memset(trial, 0, sizeof(*trial));
}

static int is_root(const struct rg_trial *trial)
{
    return !rg_collective_rooted(trial->spec.collective) ||
           trial->spec.root == rank_of(trial);
}

static void load_input(struct rg_trial *trial)
{
    const enum rg_extent extent =
        rg_call_sends(trial->spec.collective, is_root(trial));

    if (is_v(trial))
        load_v(trial);
    else
        rg_oracle_fill(&trial->oracle, rank_of(trial), 0,
                       trial->before + call_send_at(trial),
                       room(trial, extent));
}

int rg_trial_load(struct rg_trial *trial, uint64_t seed)
{
    trial->oracle.seed = seed;
    memset(trial->before, POISON, trial->total);
    load_input(trial);
    expect_parts(trial);
    return rg_memcpy(trial->suite->context, trial->device, trial->before,
                     trial->total);
}

/* A buffer that is not this rank's may be null. */
static unsigned char *buffer(const struct rg_trial *trial, size_t at,
                             enum rg_extent extent)
{
    return extent == RG_EXTENT_NOTHING && rank_of(trial) % 2
               ? NULL
               : trial->device + at;
}

int rg_trial_launch(struct rg_trial *trial, struct rg_comm *comm,
                    struct rg_stream *stream)
{
    const struct rg_trial_spec *spec = &trial->spec;
    const int root = is_root(trial);
    const struct rg_call call = {
        .collective = spec->collective,
        .send = buffer(trial, call_send_at(trial),
                       rg_call_sends(spec->collective, root)),
        .recv = buffer(trial, call_recv_at(trial),
                       rg_call_receives(spec->collective, root)),
        .count = spec->count,
        .dtype = spec->dtype,
        .op = spec->op,
        .root = spec->root,
    };

    if (rg_suite_plants(trial->suite, RG_PLANT_HANG))
        return RG_OK;
    while (rg_suite_plants(trial->suite, RG_PLANT_STALL))
        pause();
    if (is_v(trial))
        return rg_all_to_all_v(
            call.send, send_room(trial), call.recv, recv_room(trial),
            (const uint64_t *)(const void *)(trial->device + trial->layout_at),
            spec->count, spec->dtype, comm, stream);
    return rg_call_launch(&call, comm, stream);
}

/* ---- the check ---------------------------------------------------------- */

/* Wrong data for the self-test: the lowest bit of the middle element. */
static int flip(struct rg_trial *trial)
{
    const struct rg_trial_part *part = &trial->parts[0];
    unsigned char *at =
        trial->device + part->at + part->count / 2 * element_bytes(trial);
    unsigned char byte;
    int status = rg_memcpy(trial->suite->context, &byte, at, 1);

    byte ^= 1;
    if (status == RG_OK)
        status = rg_memcpy(trial->suite->context, at, &byte, 1);
    return status;
}

/* The first byte of [from, to) that changed. */
static void check_untouched(const struct rg_trial *trial, size_t from,
                            size_t to, struct rg_case_result *result)
{
    if (memcmp(trial->before + from, trial->after + from, to - from) == 0)
        return;
    while (trial->before[from] == trial->after[from])
        from++;
    rg_case_fail(result, RG_EXIT_WRONG,
                 "wrote outside the output: byte %td from its start "
                 "(input at %td, %zu elements a block) expected 0x%02x got "
                 "0x%02x",
                 (ptrdiff_t)from - (ptrdiff_t)call_recv_at(trial),
                 (ptrdiff_t)call_send_at(trial) -
                     (ptrdiff_t)call_recv_at(trial),
                 trial->spec.count, trial->before[from], trial->after[from]);
}

/* All but the parts of the output. */
static void check_rest(const struct rg_trial *trial,
                       struct rg_case_result *result)
{
    size_t from = 0;

    for (int i = 0; i < trial->nparts; i++) {
        check_untouched(trial, from, trial->parts[i].at, result);
        from =
            trial->parts[i].at + trial->parts[i].count * element_bytes(trial);
    }
    check_untouched(trial, from, trial->total, result);
}

/* The same bits at all ranks: long ones are compared in shares. */
static void share(const struct rg_trial *trial,
                  const struct rg_trial_part *part, size_t *begin_out,
                  size_t *end_out)
{
    const struct rg_job *job = trial->suite->job;

    *begin_out = 0;
    *end_out = part->count;
    if (trial->spec.collective != RG_COLL_all_reduce ||
        part->count < SHARE_MIN || trial->suite->check_all)
        return;
    *begin_out = part->count / (size_t)job->size * (size_t)job->rank;
    if (job->rank < job->size - 1)
        *end_out = *begin_out + part->count / (size_t)job->size;
}

static void check_part(const struct rg_trial *trial,
                       const struct rg_trial_part *part,
                       struct rg_case_result *result)
{
    const struct rg_oracle *oracle = &trial->oracle;
    const unsigned char *output = trial->after + part->at;
    struct rg_oracle_mismatch first;
    size_t begin, end, wrong;
    char expected[64], got[64], block[24] = "";

    share(trial, part, &begin, &end);
    wrong = rg_oracle_check(oracle, part->from, part->first, output, begin, end,
                            &first);
    if (trial->spec.collective == RG_COLL_all_reduce)
        rg_case_digest(result, output, part->count * element_bytes(trial));
    if (wrong == 0)
        return;
    rg_oracle_format(oracle->dtype, first.expected, expected, sizeof(expected));
    rg_oracle_format(oracle->dtype, first.got, got, sizeof(got));
    if (part->from != RG_ORACLE_ALL)
        snprintf(block, sizeof(block), "of rank %d's: ", part->from);
    rg_case_fail(result, RG_EXIT_WRONG,
                 "%sindex %zu of %zu: expected %s got %s; %zu wrong, "
                 "seed %" PRIu64,
                 block, first.index, part->count, expected, got, wrong,
                 oracle->seed);
}

void rg_trial_check(struct rg_trial *trial, struct rg_case_result *result)
{
    int status = RG_OK;

    /* A rank that did not call has no result to complain of. */
    if (rg_suite_plants(trial->suite, RG_PLANT_HANG))
        return;
    if (trial->nparts > 0 && rg_suite_plants(trial->suite, RG_PLANT_FLIP))
        status = flip(trial);
    if (status == RG_OK)
        status = rg_memcpy(trial->suite->context, trial->after, trial->device,
                           trial->total);
    if (rg_case_expect_ok(result, status, "rg_memcpy") != RG_OK)
        return;
    for (int i = 0; i < trial->nparts; i++)
        check_part(trial, &trial->parts[i], result);
    check_rest(trial, result);
}

void rg_trial_round(struct rg_trial *trial, uint64_t seed,
                    struct rg_case_result *result)
{
    struct rg_suite *suite = trial->suite;

    if (rg_case_expect_ok(result, rg_trial_load(trial, seed), "rg_memcpy") ||
        rg_case_expect_ok(result,
                          rg_trial_launch(trial, suite->comm, suite->stream),
                          "launch") ||
        rg_case_synchronize(result, suite->stream, suite->comm))
        return;
    rg_trial_check(trial, result);
}
