#include "validate/trial.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static size_t trial_bytes(const struct rg_trial *trial)
{
    return trial->count * rg_oracle_size(trial->oracle.dtype);
}

static size_t round_up(size_t bytes)
{
    return (bytes + GUARD - 1) / GUARD * GUARD;
}

static void place(struct rg_trial *trial, enum rg_layout layout)
{
    size_t element = rg_oracle_size(trial->oracle.dtype);
    size_t bytes = trial_bytes(trial);
    int odd = layout == RG_LAYOUT_OUT_ODD || layout == RG_LAYOUT_IN_ODD;

    trial->send_at = GUARD;
    if (odd || layout == RG_LAYOUT_SKEW)
        trial->send_at += element;
    if (layout == RG_LAYOUT_IN || layout == RG_LAYOUT_IN_ODD)
        trial->recv_at = trial->send_at;
    else if (layout == RG_LAYOUT_ADJACENT)
        trial->recv_at = trial->send_at + bytes;
    else
        trial->recv_at =
            round_up(trial->send_at + bytes) + GUARD + (odd ? element : 0);
    trial->total = trial->recv_at + bytes + GUARD;
}

int rg_trial_create(struct rg_suite *suite, const struct rg_trial_spec *spec,
                    struct rg_trial *trial_out)
{
    struct rg_trial trial = {.suite = suite, .count = spec->count};
    void *device = NULL;
    int status = RG_ENOMEM;

    trial.oracle.dtype = spec->dtype;
    trial.oracle.op = spec->op;
    trial.oracle.inputs = spec->inputs;
    trial.oracle.nranks = suite->job->size;
    place(&trial, spec->layout);
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

int rg_trial_load(struct rg_trial *trial, uint64_t seed)
{
    trial->oracle.seed = seed;
    memset(trial->before, POISON, trial->total);
    rg_oracle_fill(&trial->oracle, trial->suite->job->rank,
                   trial->before + trial->send_at, trial->count);
    return rg_memcpy(trial->suite->context, trial->device, trial->before,
                     trial->total);
}

int rg_trial_launch(struct rg_trial *trial, struct rg_comm *comm,
                    struct rg_stream *stream)
{
    if (rg_suite_plants(trial->suite, RG_PLANT_HANG))
        return RG_OK;
    while (rg_suite_plants(trial->suite, RG_PLANT_STALL))
        pause();
    return rg_all_reduce(trial->device + trial->send_at,
                         trial->device + trial->recv_at, trial->count,
                         trial->oracle.dtype, trial->oracle.op, comm, stream);
}

/* Wrong data for the self-test: the lowest bit of the middle element. */
static int flip(struct rg_trial *trial)
{
    unsigned char *at = trial->device + trial->recv_at +
                        trial->count / 2 * rg_oracle_size(trial->oracle.dtype);
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
                 "(input at %td, output %zu bytes) expected 0x%02x got 0x%02x",
                 (ptrdiff_t)from - (ptrdiff_t)trial->recv_at,
                 (ptrdiff_t)trial->send_at - (ptrdiff_t)trial->recv_at,
                 trial_bytes(trial), trial->before[from], trial->after[from]);
}

static void check_output(const struct rg_trial *trial,
                         struct rg_case_result *result)
{
    const struct rg_job *job = trial->suite->job;
    const struct rg_oracle *oracle = &trial->oracle;
    const unsigned char *output = trial->after + trial->recv_at;
    struct rg_oracle_mismatch first;
    size_t begin = 0;
    size_t end = trial->count;
    size_t wrong;
    char expected[64], got[64];

    if (trial->count >= SHARE_MIN && !trial->suite->check_all) {
        begin = trial->count / (size_t)job->size * (size_t)job->rank;
        if (job->rank < job->size - 1)
            end = begin + trial->count / (size_t)job->size;
    }
    wrong = rg_oracle_check(oracle, output, begin, end, &first);
    rg_case_digest(result, output, trial_bytes(trial));
    if (wrong == 0)
        return;
    rg_oracle_format(oracle->dtype, first.expected, expected, sizeof(expected));
    rg_oracle_format(oracle->dtype, first.got, got, sizeof(got));
    rg_case_fail(result, RG_EXIT_WRONG,
                 "index %zu of %zu: expected %s got %s; %zu wrong, "
                 "seed %" PRIu64,
                 first.index, trial->count, expected, got, wrong, oracle->seed);
}

void rg_trial_check(struct rg_trial *trial, struct rg_case_result *result)
{
    size_t end = trial->recv_at + trial_bytes(trial);
    int status = RG_OK;

    /* A rank that did not call has no result to complain of. */
    if (rg_suite_plants(trial->suite, RG_PLANT_HANG))
        return;
    if (trial->count > 0 && rg_suite_plants(trial->suite, RG_PLANT_FLIP))
        status = flip(trial);
    if (status == RG_OK)
        status = rg_memcpy(trial->suite->context, trial->after, trial->device,
                           trial->total);
    if (rg_case_expect_ok(result, status, "rg_memcpy") != RG_OK)
        return;
    check_output(trial, result);
    check_untouched(trial, 0, trial->recv_at, result);
    check_untouched(trial, end, trial->total, result);
}

void rg_trial_round(struct rg_trial *trial, uint64_t seed,
                    struct rg_case_result *result)
{
    struct rg_suite *suite = trial->suite;

    if (rg_case_expect_ok(result, rg_trial_load(trial, seed), "rg_memcpy") ||
        rg_case_expect_ok(result,
                          rg_trial_launch(trial, suite->comm, suite->stream),
                          "rg_all_reduce") ||
        rg_case_synchronize(result, suite->stream, suite->comm))
        return;
    rg_trial_check(trial, result);
}
