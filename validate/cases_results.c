/*
 * results.*: one all-reduce after the other, compared with the oracle.
 *
 * results.all_reduce.<algorithm>.<type>.<op>.<size>.<layout>.<inputs> is a
 * pairwise array over all of these, or the product with --full; "auto" is the
 * built-in choice of algorithm. The other cases are about several invocations
 * at once and about calls that must be refused.
 */
#include <stdio.h>
#include <string.h>

#include "algos/algos.h"
#include "validate/pairwise.h"
#include "validate/trial.h"

/* A size class: so many bytes, rounded down, plus so many elements. */
struct size_class {
    const char *name;
    size_t bytes;
    int elements;
};

#define AROUND(name, bytes)                                                    \
    {name "-1", bytes, -1}, {name, bytes, 0},                                  \
    {                                                                          \
        name "+1", bytes, 1                                                    \
    }

/* Packets carry 4 or 8 bytes, flags cover lines and chunks of powers of two. */
static const struct size_class size_classes[] = {
    {"0", 0, 0},
    {"1e", 0, 1},
    {"3e", 0, 3},
    {"17e", 0, 17},
    AROUND("8", 8),
    AROUND("16", 16),
    AROUND("128", 128),
    AROUND("1K", 1 << 10),
    AROUND("4K", 4 << 10),
    AROUND("8K", 8 << 10),
    AROUND("32K", 32 << 10),
    AROUND("64K", 64 << 10),
    AROUND("256K", 256 << 10),
    AROUND("512K", 512 << 10),
    AROUND("1M", 1 << 20),
    {"large", 5000011, 0},
};

enum {
    NSIZES = sizeof(size_classes) / sizeof(size_classes[0]),
    SMALL = 64 << 10,   /* bytes up to which a case makes several rounds */
    SERVED = 128 << 10, /* bytes every algorithm serves, up to 8 ranks */
    ROUNDS = 3
};

/* Parameters of a row, in the order of the name. */
enum { P_ALGO, P_DTYPE, P_OP, P_SIZE, P_LAYOUT, P_INPUTS, NPARAMS };

static size_t class_count(const struct size_class *size, enum rg_dtype dtype)
{
    long count = (long)(size->bytes / rg_oracle_size(dtype)) + size->elements;

    return count > 0 ? (size_t)count : 0;
}

/* 1-based: parameter 0 is the built-in choice. */
static const char *algorithm_of(int value)
{
    return value > 0 ? rg_suite_algorithm(value - 1) : NULL;
}

static int row_allowed(const int *row, void *arg)
{
    (void)arg;
    if (row[P_INPUTS] == RG_INPUTS_EXACT)
        return 1;
    return row[P_DTYPE] >= RG_f16 && row[P_OP] != RG_min && row[P_OP] != RG_max;
}

/* The largest buffer any workspace allows the algorithm. */
static uint64_t most_bytes(const char *algorithm)
{
    const struct rg_shape roomy = {
        .capacity = 1, .max_channels = 1, .budget = UINT64_MAX};
    struct rg_limits limits = {0};

    for (int i = 0; rg_algos[i] != NULL; i++) {
        if (rg_algos[i]->collective == RG_COLL_all_reduce &&
            strcmp(rg_algos[i]->name, algorithm) == 0)
            rg_algos[i]->layout(&roomy, &limits);
    }
    return limits.max_bytes;
}

/*
 * The algorithm asked for must be the one that ran. One with a limit must
 * serve up to SERVED bytes; where the built-in choice takes over behind that
 * depends on the workspace.
 */
static void check_algorithm(struct rg_suite *suite, const struct rg_case *test,
                            size_t bytes, struct rg_case_result *result)
{
    struct rg_run_info run;
    uint64_t most;
    int same;

    if (test->algorithm == NULL ||
        rg_case_expect_ok(result, rg_comm_last_run(suite->comm, &run),
                          "rg_comm_last_run") != RG_OK)
        return;
    most = most_bytes(test->algorithm);
    same = strcmp(run.algorithm, test->algorithm) == 0;
    if (same ? bytes > most : most == UINT64_MAX || bytes <= SERVED)
        rg_case_fail(result, RG_EXIT_WRONG, "%s ran where %s was asked for",
                     run.algorithm, test->algorithm);
}

static void run_all_reduce(struct rg_suite *suite, const struct rg_case *test,
                           struct rg_case_result *result)
{
    const struct size_class *size = &size_classes[test->param[P_SIZE]];
    struct rg_trial_spec spec = {
        .dtype = (enum rg_dtype)test->param[P_DTYPE],
        .op = (enum rg_op)test->param[P_OP],
        .inputs = (enum rg_oracle_inputs)test->param[P_INPUTS],
        .layout = (enum rg_layout)test->param[P_LAYOUT],
    };
    struct rg_trial trial;
    int rounds = size->bytes <= SMALL ? ROUNDS : 1;

    spec.count = class_count(size, spec.dtype);
    if (rg_case_expect_ok(result, rg_trial_create(suite, &spec, &trial),
                          "memory for the case") != RG_OK)
        return;
    for (int i = 0; i < rounds && rg_case_can_go_on(result); i++)
        rg_trial_round(&trial, suite->options->seed + (uint64_t)i, result);
    if (spec.count > 0 && !result->failed)
        check_algorithm(suite, test, spec.count * rg_oracle_size(spec.dtype),
                        result);
    rg_trial_destroy(&trial);
}

static void name_row(struct rg_case *test)
{
    const int *p = test->param;

    snprintf(test->name, sizeof(test->name),
             "results.all_reduce.%s.%s.%s.%s.%s.%s",
             test->algorithm ? test->algorithm : "auto",
             rg_dtype_name((enum rg_dtype)p[P_DTYPE]),
             rg_op_name((enum rg_op)p[P_OP]), size_classes[p[P_SIZE]].name,
             rg_layout_name((enum rg_layout)p[P_LAYOUT]),
             p[P_INPUTS] == RG_INPUTS_EXACT ? "exact" : "rough");
}

static int add_rows(struct rg_case_list *list, const struct rg_rows *rows)
{
    int status = RG_OK;

    for (int i = 0; i < rows->nrows && status == RG_OK; i++) {
        struct rg_case test = {.run = run_all_reduce};

        memcpy(test.param, rg_rows_at(rows, i), sizeof(test.param));
        test.algorithm = algorithm_of(test.param[P_ALGO]);
        name_row(&test);
        status = rg_case_list_add(list, &test);
    }
    return status;
}

static int add_all_reduce(struct rg_case_list *list,
                          const struct rg_suite_options *options)
{
    int levels[NPARAMS] = {1,      RG_f8e4m3,       RG_avg + 1,
                           NSIZES, RG_LAYOUT_COUNT, 2};
    struct rg_rows product = {0};
    struct rg_rows array = {0};
    int status;

    _Static_assert((int)NPARAMS == (int)RG_CASE_PARAMS, "a row fits a case");
    while (rg_suite_algorithm(levels[P_ALGO] - 1) != NULL)
        levels[P_ALGO]++;
    status = rg_rows_product(levels, NPARAMS, row_allowed, NULL, &product);
    if (status == RG_OK && !options->full)
        status = rg_rows_pairwise(&product, options->seed, &array);
    if (status == RG_OK)
        status = add_rows(list, options->full ? &product : &array);
    rg_rows_fini(&array);
    rg_rows_fini(&product);
    return status;
}

/* ---- several at once ---------------------------------------------------- */

enum { NTRIALS = 8 };

/* Different types, operations and sizes from packets to many chunks. */
static const struct rg_trial_spec mixed[NTRIALS] = {
    {RG_f32, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 2},
    {RG_i64, RG_prod, RG_INPUTS_EXACT, RG_LAYOUT_IN, 40001},
    {RG_bf16, RG_avg, RG_INPUTS_EXACT, RG_LAYOUT_OUT_ODD, 517},
    {RG_u8, RG_max, RG_INPUTS_EXACT, RG_LAYOUT_SKEW, 100003},
    {RG_f64, RG_sum, RG_INPUTS_ROUGH, RG_LAYOUT_OUT, 1},
    {RG_f16, RG_sum, RG_INPUTS_ROUGH, RG_LAYOUT_IN_ODD, 70001},
    {RG_u16, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_ADJACENT, 4097},
    {RG_i32, RG_min, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 9},
};

static void destroy_trials(struct rg_trial *trials)
{
    for (int i = 0; i < NTRIALS; i++)
        rg_trial_destroy(&trials[i]);
}

/* Loaded trials, all of their own seed; none on failure. */
static int create_trials(struct rg_suite *suite, struct rg_trial *trials,
                         struct rg_case_result *result)
{
    int status = RG_OK;

    memset(trials, 0, NTRIALS * sizeof(*trials));
    for (int i = 0; i < NTRIALS && status == RG_OK; i++) {
        status = rg_trial_create(suite, &mixed[i], &trials[i]);
        if (status == RG_OK)
            status =
                rg_trial_load(&trials[i], suite->options->seed + (uint64_t)i);
    }
    if (status != RG_OK)
        destroy_trials(trials);
    return rg_case_expect_ok(result, status, "memory for the case");
}

/* Launches trial i on stream i % 2 of communicator i % ncomms, then checks. */
static void run_trials(struct rg_trial *trials, struct rg_comm **comms,
                       int ncomms, struct rg_stream **streams,
                       struct rg_case_result *result)
{
    for (int i = 0; i < NTRIALS; i++)
        rg_case_expect_ok(
            result,
            rg_trial_launch(&trials[i], comms[i % ncomms], streams[i % 2]),
            "rg_all_reduce");
    for (int i = 0; i < NTRIALS; i++)
        rg_case_synchronize(result, streams[i % 2], comms[i % ncomms]);
    for (int i = 0; i < NTRIALS; i++)
        rg_trial_check(&trials[i], result);
}

/* Two streams at once over one or several communicators. */
static void run_at_once(struct rg_suite *suite, const struct rg_case *test,
                        struct rg_case_result *result)
{
    enum { MAX_COMMS = 3 };
    struct rg_comm *comms[MAX_COMMS] = {suite->comm};
    struct rg_stream *streams[2] = {suite->stream};
    struct rg_trial trials[NTRIALS];
    int ncomms = test->param[0];
    int status = rg_stream_create(suite->context, &streams[1]);

    for (int i = 1; i < ncomms && status == RG_OK; i++)
        status = rg_comm_create(suite->context, &comms[i]);
    if (rg_case_expect_ok(result, status, "streams and communicators") ==
            RG_OK &&
        create_trials(suite, trials, result) == RG_OK) {
        run_trials(trials, comms, ncomms, streams, result);
        destroy_trials(trials);
    }
    rg_stream_destroy(streams[1]);
    for (int i = 1; i < ncomms; i++)
        rg_case_expect_ok(result, rg_comm_destroy(comms[i]), "rg_comm_destroy");
}

/* Many invocations queued on one stream before the first wait. */
static void run_queued(struct rg_suite *suite, const struct rg_case *test,
                       struct rg_case_result *result)
{
    struct rg_comm *comms[1] = {suite->comm};
    struct rg_stream *streams[2] = {suite->stream, suite->stream};
    struct rg_trial trials[NTRIALS];

    (void)test;
    if (create_trials(suite, trials, result) != RG_OK)
        return;
    run_trials(trials, comms, 1, streams, result);
    destroy_trials(trials);
}

/* The same where sequence numbers wrap; the last outcome is agreed on. */
static void run_wrap(struct rg_suite *suite, const struct rg_case *test,
                     struct rg_case_result *result)
{
    struct rg_outcome outcome = {.state = RG_OUTCOME_PENDING};
    uint64_t seq = 0;

    run_queued(suite, test, result);
    rg_case_expect_ok(result, rg_comm_seq(suite->comm, &seq), "rg_comm_seq");
    if (!result->failed)
        rg_case_expect_ok(result, rg_comm_wait(suite->comm, seq, &outcome),
                          "rg_comm_wait");
    if (outcome.state != RG_OUTCOME_COMMITTED)
        rg_case_fail(result, RG_EXIT_WRONG, "seq %llu is %s",
                     (unsigned long long)seq, rg_outcome_name(outcome.state));
}

/* ---- refusals ----------------------------------------------------------- */

/* Bad calls fail at once, take no seq and leave the communicator usable. */
static void run_refused(struct rg_suite *suite, const struct rg_case *test,
                        struct rg_case_result *result)
{
    static const struct {
        const char *what;
        long recv; /* offset from the input, elements */
        size_t count;
        int dtype;
        int op;
    } calls[] = {
        {"output one element into the input", 1, 16, RG_f32, RG_sum},
        {"input one element into the output", -1, 16, RG_f32, RG_sum},
        {"last element of the input is the output's", 15, 16, RG_f32, RG_sum},
        {"unknown type", 32, 16, RG_DTYPE_COUNT, RG_sum},
        {"unknown operation", 32, 16, RG_f32, RG_OP_COUNT},
    };
    struct rg_trial trial;
    float *send;

    if (rg_case_expect_ok(result, rg_trial_create(suite, &mixed[3], &trial),
                          "memory for the case") != RG_OK)
        return;
    send = (float *)(void *)trial.device + 64;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        int status =
            rg_all_reduce(send, send + calls[i].recv, calls[i].count,
                          (enum rg_dtype)calls[i].dtype,
                          (enum rg_op)calls[i].op, suite->comm, suite->stream);
        if (status != RG_EINVAL)
            rg_case_fail(result, RG_EXIT_WRONG, "%s: got '%s', not '%s'",
                         calls[i].what, rg_status_string(status),
                         rg_status_string(RG_EINVAL));
    }
    (void)test;
    rg_trial_round(&trial, suite->options->seed, result);
    rg_trial_destroy(&trial);
}

static int add_named(struct rg_case_list *list, const char *name,
                     rg_case_run *run, int param, uint64_t first_seq)
{
    struct rg_case test = {
        .run = run, .first_seq = first_seq, .param = {param}};

    snprintf(test.name, sizeof(test.name), "results.%s", name);
    return rg_case_list_add(list, &test);
}

int rg_cases_results(struct rg_case_list *list,
                     const struct rg_suite_options *options)
{
    int status = add_all_reduce(list, options);

    if (status == RG_OK)
        status = add_named(list, "two_streams", run_at_once, 1, 0);
    if (status == RG_OK)
        status = add_named(list, "communicators", run_at_once, 3, 0);
    if (status == RG_OK)
        status = add_named(list, "queued", run_queued, 0, 0);
    if (status == RG_OK)
        status = add_named(list, "refused", run_refused, 0, 0);
    if (status == RG_OK)
        status = add_named(list, "wrap_of_seqs", run_wrap, 0,
                           UINT64_MAX - NTRIALS / 2);
    return status;
}
