/*
 * results.*: one invocation after the other, compared with the oracle.
 *
 * results.<collective>.<algorithm>.<type>.<op>.<size>.<layout>.<inputs> and,
 * where there is a root, .<root>: a pairwise array over all of these for
 * all-reduce, and one for the other collectives together, of fewer types and
 * sizes; the products of all with --full. "auto" is the built-in choice of
 * algorithm. A size is that of a block. The other cases are about several
 * invocations at once, about barriers, and about calls that must be refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algos/algos.h"
#include "harness/call.h"
#include "harness/wait.h"
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

/*
 * Parameters of a row, in the order of the name. P_ALGO counts the pairs of
 * collective and algorithm of the array that the row is of.
 */
enum {
    P_ALGO,
    P_DTYPE,
    P_OP,
    P_SIZE,
    P_LAYOUT,
    P_INPUTS,
    P_ROOT, /* the last slot is the root */
    NPARAMS
};

/* A case with trials of many types wants all of them built. */
#define X(name, unused) | RG_TYPE_BIT(RG_##name)
enum { EVERY_TYPE = 0 RG_DTYPE_REDUCE_LIST(X) };
#undef X

/* What an array is about. */
struct subject {
    enum rg_collective collective;
    const char *algorithm; /* null: the built-in choice */
};
enum { NSUBJECTS_MAX = 128 };
struct array {
    struct subject subjects[NSUBJECTS_MAX];
    int nsubjects;
    int full;
};

/* Of the array of the others, unless --full: an element of each size, and what
 * is built for a type of its own. */
static const enum rg_dtype few_moved[] = {RG_f8e4m3, RG_bf16, RG_i32, RG_f64};
static const enum rg_dtype few_reduced[] = {RG_i8,   RG_u16, RG_i64,
                                            RG_bf16, RG_f16, RG_f32};
static const char *const few_sizes[] = {"0",    "1e", "17e",   "128+1",
                                        "1K-1", "8K", "64K+1", "256K"};

static int is_among(const enum rg_dtype *list, size_t n, int dtype)
{
    for (size_t i = 0; i < n; i++)
        if ((int)list[i] == dtype)
            return 1;
    return 0;
}

static int is_few_size(int size)
{
    for (size_t i = 0; i < sizeof(few_sizes) / sizeof(few_sizes[0]); i++)
        if (strcmp(few_sizes[i], size_classes[size].name) == 0)
            return 1;
    return 0;
}

static int is_few(const int *row, int reduces)
{
    if (!is_few_size(row[P_SIZE]))
        return 0;
    return reduces
               ? is_among(few_reduced,
                          sizeof(few_reduced) / sizeof(few_reduced[0]),
                          row[P_DTYPE])
               : is_among(few_moved, sizeof(few_moved) / sizeof(few_moved[0]),
                          row[P_DTYPE]);
}

static size_t class_count(const struct size_class *size, enum rg_dtype dtype)
{
    long count = (long)(size->bytes / rg_oracle_size(dtype)) + size->elements;

    return count > 0 ? (size_t)count : 0;
}

/* What is only moved has no operation, and one kind of inputs. */
static int inputs_allowed(const int *row, int reduces)
{
    if (!reduces)
        return row[P_OP] == 0 && row[P_INPUTS] == RG_INPUTS_EXACT;
    if (!rg_op_fits((enum rg_op)row[P_OP], (enum rg_dtype)row[P_DTYPE]))
        return 0;
    if (row[P_INPUTS] == RG_INPUTS_EXACT)
        return 1;
    return row[P_DTYPE] >= RG_f16 && row[P_OP] != RG_min && row[P_OP] != RG_max;
}

static int row_allowed(const int *row, void *arg)
{
    const struct array *array = arg;
    const enum rg_collective collective =
        array->subjects[row[P_ALGO]].collective;
    const int reduces = rg_collective_reduces(collective);
    const int in_place =
        row[P_LAYOUT] == RG_LAYOUT_IN || row[P_LAYOUT] == RG_LAYOUT_IN_ODD;

    if (in_place && !rg_call_has_inplace(collective))
        return 0;
    if (row[P_ROOT] && !rg_collective_rooted(collective))
        return 0;
    return inputs_allowed(row, reduces) &&
           (array->full || collective == RG_COLL_all_reduce ||
            is_few(row, reduces));
}

/* The largest buffer any workspace allows the algorithm. */
static uint64_t most_bytes(enum rg_collective collective, const char *algorithm)
{
    const struct rg_shape roomy = {
        .capacity = 1, .max_channels = 1, .budget = UINT64_MAX};
    struct rg_limits limits = {0};

    for (int i = 0; rg_algos[i] != NULL; i++) {
        if (rg_algos[i]->collective == collective &&
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
    most = most_bytes(test->collective, test->algorithm);
    same = strcmp(run.algorithm, test->algorithm) == 0;
    if (same ? bytes > most : most == UINT64_MAX || bytes <= SERVED)
        rg_case_fail(result, RG_EXIT_WRONG, "%s ran where %s was asked for",
                     run.algorithm, test->algorithm);
}

static struct rg_trial_spec spec_of(const struct rg_suite *suite,
                                    const struct rg_case *test)
{
    const struct size_class *size = &size_classes[test->param[P_SIZE]];
    struct rg_trial_spec spec = {
        .dtype = (enum rg_dtype)test->param[P_DTYPE],
        .op = (enum rg_op)test->param[P_OP],
        .inputs = (enum rg_oracle_inputs)test->param[P_INPUTS],
        .layout = (enum rg_layout)test->param[P_LAYOUT],
        .collective = test->collective,
        .root = test->param[P_ROOT] ? suite->job->size - 1 : 0,
    };

    spec.count = class_count(size, spec.dtype);
    return spec;
}

static void run_row(struct rg_suite *suite, const struct rg_case *test,
                    struct rg_case_result *result)
{
    const struct rg_trial_spec spec = spec_of(suite, test);
    struct rg_trial trial;
    int rounds = size_classes[test->param[P_SIZE]].bytes <= SMALL ? ROUNDS : 1;

    if (rg_case_expect_ok(result, rg_trial_create(suite, &spec, &trial),
                          "memory for the case") != RG_OK)
        return;
    for (int i = 0; i < rounds && rg_case_can_go_on(result); i++)
        rg_trial_round(&trial, suite->options->seed + (uint64_t)i, result);
    if (spec.count > 0 && !result->failed)
        check_algorithm(
            suite, test,
            spec.count * rg_oracle_size(spec.dtype) *
                (size_t)rg_call_blocks(spec.collective, suite->job->size),
            result);
    rg_trial_destroy(&trial);
}

static void name_row(struct rg_case *test)
{
    const int *p = test->param;

    snprintf(test->name, sizeof(test->name), "results.%s.%s.%s.%s.%s.%s.%s%s",
             rg_collective_name(test->collective),
             test->algorithm ? test->algorithm : "auto",
             rg_dtype_name((enum rg_dtype)p[P_DTYPE]),
             rg_collective_reduces(test->collective)
                 ? rg_op_name((enum rg_op)p[P_OP])
                 : "none",
             size_classes[p[P_SIZE]].name,
             rg_layout_name((enum rg_layout)p[P_LAYOUT]),
             p[P_INPUTS] == RG_INPUTS_EXACT ? "exact" : "rough",
             !rg_collective_rooted(test->collective) ? ""
             : p[P_ROOT]                             ? ".last"
                                                     : ".first");
}

static int add_rows(struct rg_case_list *list, const struct array *array,
                    const struct rg_rows *rows)
{
    int status = RG_OK;

    for (int i = 0; i < rows->nrows && status == RG_OK; i++) {
        struct rg_case test = {.run = run_row};

        memcpy(test.param, rg_rows_at(rows, i), sizeof(test.param));
        test.collective = array->subjects[test.param[P_ALGO]].collective;
        test.algorithm = array->subjects[test.param[P_ALGO]].algorithm;
        if (rg_collective_reduces(test.collective))
            test.reduced = RG_TYPE_BIT(test.param[P_DTYPE]);
        name_row(&test);
        status = rg_case_list_add(list, &test);
    }
    return status;
}

/* The built-in choice of the collective, and each algorithm it has. */
static void add_subjects(struct array *array, enum rg_collective collective)
{
    const char *algorithm = NULL;
    int n = 0;

    do {
        if (array->nsubjects < NSUBJECTS_MAX)
            array->subjects[array->nsubjects++] =
                (struct subject){collective, algorithm};
        algorithm = rg_suite_algorithm(collective, n++);
    } while (algorithm != NULL);
}

static int add_array(struct rg_case_list *list, struct array *array,
                     const struct rg_suite_options *options)
{
    const int levels[NPARAMS] = {array->nsubjects,
                                 RG_DTYPE_COUNT,
                                 RG_OP_COUNT,
                                 NSIZES,
                                 RG_LAYOUT_COUNT,
                                 2,
                                 2};
    struct rg_rows product = {0};
    struct rg_rows rows = {0};
    int status;

    _Static_assert((int)NPARAMS == (int)RG_CASE_PARAMS, "a row fits a case");
    array->full = options->full;
    status = rg_rows_product(levels, NPARAMS, row_allowed, array, &product);
    if (status == RG_OK && !options->full)
        status = rg_rows_pairwise(&product, options->seed, &rows);
    if (status == RG_OK)
        status = add_rows(list, array, options->full ? &product : &rows);
    rg_rows_fini(&rows);
    rg_rows_fini(&product);
    return status;
}

static int add_all_reduce(struct rg_case_list *list,
                          const struct rg_suite_options *options)
{
    struct array array = {.nsubjects = 0};

    add_subjects(&array, RG_COLL_all_reduce);
    return add_array(list, &array, options);
}

static int add_others(struct rg_case_list *list,
                      const struct rg_suite_options *options)
{
    struct array array = {.nsubjects = 0};

    for (int c = 0; c < RG_COLL_COUNT; c++)
        if (c != RG_COLL_all_reduce && c != RG_COLL_barrier)
            add_subjects(&array, (enum rg_collective)c);
    return add_array(list, &array, options);
}

/* ---- barriers ----------------------------------------------------------- */

enum { LATE_US = 5000 };

/* When this rank began a barrier and when it ended, of one that `late` begins
 * last. */
static void time_barrier(struct rg_suite *suite, int late, uint64_t *times_out,
                         struct rg_case_result *result)
{
    if (suite->job->rank == late)
        usleep(LATE_US);
    times_out[0] = rg_now_ns();
    rg_case_expect_ok(result, rg_barrier(suite->comm, suite->stream),
                      "rg_barrier");
    rg_case_synchronize(result, suite->stream, suite->comm);
    times_out[1] = rg_now_ns();
}

/* On one host, where clocks are one, nobody's ends before the last begins. */
static void judge_barrier(const struct rg_suite *suite, uint64_t (*times)[2],
                          struct rg_case_result *result)
{
    const int size = suite->job->size;
    const uint64_t end = times[suite->job->rank][1];

    for (int rank = 0; rank < size && suite->job->hosts <= 1; rank++)
        if (end < times[rank][0])
            rg_case_fail(result, RG_EXIT_WRONG,
                         "a barrier ended %llu us before rank %d began it",
                         (unsigned long long)(times[rank][0] - end) / 1000,
                         rank);
}

/* All go through all rounds, whatever one of them has seen. */
static void run_barrier(struct rg_suite *suite, const struct rg_case *test,
                        struct rg_case_result *result)
{
    const int size = suite->job->size;
    uint64_t(*times)[2] = calloc((size_t)size, sizeof(*times));
    int status = times != NULL ? RG_OK : RG_ENOMEM;
    uint64_t mine[2];

    for (int late = 0; late < size && status == RG_OK; late++) {
        time_barrier(suite, late, mine, result);
        status = rg_comm_gather(suite->comm, mine, sizeof(mine), times);
        if (status == RG_OK)
            judge_barrier(suite, times, result);
    }
    rg_case_expect_ok(result, status, "the ranks' times are not known");
    if (!result->failed)
        check_algorithm(suite, test, 0, result);
    free(times);
}

static int add_barriers(struct rg_case_list *list)
{
    const char *algorithm = NULL;
    int n = 0, status = RG_OK;

    do {
        struct rg_case test = {.run = run_barrier,
                               .collective = RG_COLL_barrier,
                               .algorithm = algorithm};

        snprintf(test.name, sizeof(test.name), "results.barrier.%s",
                 algorithm ? algorithm : "auto");
        status = rg_case_list_add(list, &test);
        algorithm = rg_suite_algorithm(RG_COLL_barrier, n++);
    } while (algorithm != NULL && status == RG_OK);
    return status;
}

/* ---- several at once ---------------------------------------------------- */

enum { NTRIALS = 16 };

/* Different collectives, types, operations, and sizes from packets to many
 * chunks; those that there are here. */
static const struct rg_trial_spec mixed[NTRIALS] = {
    {RG_f32, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 2, RG_COLL_all_reduce, 0},
    {RG_u64, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 501, RG_COLL_all_gather,
     0},
    {RG_i64, RG_prod, RG_INPUTS_EXACT, RG_LAYOUT_IN, 40001, RG_COLL_all_reduce,
     0},
    {RG_i16, RG_bxor, RG_INPUTS_EXACT, RG_LAYOUT_IN, 3001,
     RG_COLL_reduce_scatter, 0},
    {RG_bf16, RG_avg, RG_INPUTS_EXACT, RG_LAYOUT_OUT_ODD, 517,
     RG_COLL_all_reduce, 0},
    {RG_f8e5m2, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_IN, 70001, RG_COLL_broadcast,
     0},
    {RG_u8, RG_max, RG_INPUTS_EXACT, RG_LAYOUT_SKEW, 100003, RG_COLL_all_reduce,
     0},
    {RG_f32, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 1, RG_COLL_all_to_all, 0},
    {RG_f64, RG_sum, RG_INPUTS_ROUGH, RG_LAYOUT_OUT, 1, RG_COLL_all_reduce, 0},
    {RG_u32, RG_min, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 1009, RG_COLL_reduce, 0},
    {RG_f16, RG_sum, RG_INPUTS_ROUGH, RG_LAYOUT_IN_ODD, 70001,
     RG_COLL_all_reduce, 0},
    {RG_u16, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 9001, RG_COLL_gather, 0},
    {RG_u16, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_ADJACENT, 4097,
     RG_COLL_all_reduce, 0},
    {RG_f64, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT_ODD, 33, RG_COLL_scatter,
     0},
    {RG_i32, RG_min, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 9, RG_COLL_all_reduce, 0},
    {RG_i8, RG_sum, RG_INPUTS_EXACT, RG_LAYOUT_OUT, 20001, RG_COLL_all_to_all_v,
     0},
};

static void destroy_trials(struct rg_trial *trials)
{
    for (int i = 0; i < NTRIALS; i++)
        rg_trial_destroy(&trials[i]);
}

static int is_there(const struct rg_trial *trial)
{
    return trial->device != NULL;
}

/* Loaded trials, all of their own seed; none on failure. */
static int create_trials(struct rg_suite *suite, struct rg_trial *trials,
                         struct rg_case_result *result)
{
    int status = RG_OK;

    memset(trials, 0, NTRIALS * sizeof(*trials));
    for (int i = 0; i < NTRIALS && status == RG_OK; i++) {
        if (!rg_suite_runs(suite, mixed[i].collective, NULL))
            continue;
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
        if (is_there(&trials[i]))
            rg_case_expect_ok(
                result,
                rg_trial_launch(&trials[i], comms[i % ncomms], streams[i % 2]),
                rg_collective_name(mixed[i].collective));
    for (int i = 0; i < NTRIALS; i++)
        rg_case_synchronize(result, streams[i % 2], comms[i % ncomms]);
    for (int i = 0; i < NTRIALS; i++)
        if (is_there(&trials[i]))
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

/* A call that there must not be. Buffers are offsets from the trial's memory,
 * in elements; of a block of COUNT where the case says so. */
enum { COUNT = 16, NO_BUFFER = -1000, OWN_BLOCK = -1001 };

struct refused {
    const char *what;
    int send, recv;
    int collective; /* -1: any */
    int dtype;
    int op;
    int root; /* -2: one behind the last slot */
};

static const struct refused refused_calls[] = {
    {"output one element into the input", 0, 1, -1, RG_f32, RG_sum, 0},
    {"input one element into the output", 1, 0, -1, RG_f32, RG_sum, 0},
    {"last element of the input is the output's", 0, COUNT - 1, -1, RG_f32,
     RG_sum, 0},
    {"unknown type", 0, 512, -1, RG_DTYPE_COUNT, RG_sum, 0},
    {"a type not defined for the operation", 0, 512, -1, RG_f8e4m3, RG_sum, 0},
    {"an operation not defined for the type", 0, 512, -1, RG_f32, RG_band, 0},
    {"unknown operation", 0, 512, -1, RG_f32, RG_OP_COUNT, 0},
    {"no input", NO_BUFFER, 512, -1, RG_f32, RG_sum, 0},
    {"no output", 0, NO_BUFFER, -1, RG_f32, RG_sum, 0},
    {"a negative root", 0, 512, -1, RG_f32, RG_sum, -1},
    {"a root behind the last", 0, 512, -1, RG_f32, RG_sum, -2},
    {"one buffer", 0, 0, RG_COLL_all_to_all, RG_f32, RG_sum, 0},
    {"the first block as input", 0, 0, RG_COLL_all_gather, RG_f32, RG_sum, 0},
    {"the first block as output", 0, 0, RG_COLL_reduce_scatter, RG_f32, RG_sum,
     0},
};

/* Whether it is refused at this rank. The root has all that there is. */
static int is_refused(const struct rg_suite *suite, const struct refused *call,
                      enum rg_collective collective)
{
    const int at_root =
        !rg_collective_rooted(collective) || suite->job->rank == call->root;
    const int sends = rg_call_sends(collective, at_root) != RG_EXTENT_NOTHING;
    const int receives =
        rg_call_receives(collective, at_root) != RG_EXTENT_NOTHING;
    const int reduces = rg_collective_reduces(collective);

    if (call->root < 0)
        return rg_collective_rooted(collective);
    if (call->dtype == RG_DTYPE_COUNT)
        return 1;
    if (call->dtype == RG_f8e4m3 || call->op != RG_sum)
        return reduces;
    if (call->send == NO_BUFFER)
        return sends;
    if (call->recv == NO_BUFFER)
        return receives;
    /* In its own place, that block is in place. */
    if (call->collective >= 0 && collective != RG_COLL_all_to_all)
        return suite->job->rank != 0;
    return sends && receives;
}

static int applies(const struct refused *call, enum rg_collective collective)
{
    return call->collective < 0 ? 1 : call->collective == (int)collective;
}

/* Bad calls fail at once, and take no seq. */
static void refuse(struct rg_suite *suite, const struct refused *call,
                   enum rg_collective collective, float *memory,
                   struct rg_case_result *result)
{
    const struct rg_call bad = {
        .collective = collective,
        .send = call->send == NO_BUFFER ? NULL : memory + call->send,
        .recv = call->recv == NO_BUFFER ? NULL : memory + call->recv,
        .count = COUNT,
        .dtype = (enum rg_dtype)call->dtype,
        .op = (enum rg_op)call->op,
        .root = call->root == -2 ? suite->job->size : call->root};
    int status;

    if (!applies(call, collective) || !is_refused(suite, call, collective))
        return;
    status = rg_call_launch(&bad, suite->comm, suite->stream);
    if (status != RG_EINVAL)
        rg_case_fail(result, RG_EXIT_WRONG, "%s: got '%s', not '%s'",
                     call->what, rg_status_string(status),
                     rg_status_string(RG_EINVAL));
}

/* The communicator stays usable. */
static void run_refused(struct rg_suite *suite, const struct rg_case *test,
                        struct rg_case_result *result)
{
    const enum rg_collective collective = (enum rg_collective)test->param[0];
    struct rg_trial trial;
    uint64_t before = 0, after = 0;

    if (rg_case_expect_ok(result, rg_trial_create(suite, &mixed[6], &trial),
                          "memory for the case") != RG_OK)
        return;
    rg_case_expect_ok(result, rg_comm_seq(suite->comm, &before), "rg_comm_seq");
    for (size_t i = 0; i < sizeof(refused_calls) / sizeof(refused_calls[0]);
         i++)
        refuse(suite, &refused_calls[i], collective,
               (float *)(void *)trial.device + 64, result);
    rg_case_expect_ok(result, rg_comm_seq(suite->comm, &after), "rg_comm_seq");
    if (before != after)
        rg_case_fail(result, RG_EXIT_WRONG, "%llu seqs for refused calls",
                     (unsigned long long)(after - before));
    rg_trial_round(&trial, suite->options->seed, result);
    rg_trial_destroy(&trial);
}

/* Of each collective but those whose buffers have sizes of their own. */
static int add_refused(struct rg_case_list *list)
{
    int status = RG_OK;

    for (int c = 0; c < RG_COLL_COUNT && status == RG_OK; c++) {
        struct rg_case test = {
            .run = run_refused, .reduced = EVERY_TYPE, .param = {c}};

        if (c == RG_COLL_barrier || c == RG_COLL_all_to_all_v)
            continue;
        snprintf(test.name, sizeof(test.name), "results.refused.%s",
                 rg_collective_name((enum rg_collective)c));
        status = rg_case_list_add(list, &test);
    }
    return status;
}

static int add_named(struct rg_case_list *list, const char *name,
                     rg_case_run *run, int param, uint64_t first_seq)
{
    struct rg_case test = {.run = run,
                           .first_seq = first_seq,
                           .reduced = EVERY_TYPE,
                           .param = {param}};

    snprintf(test.name, sizeof(test.name), "results.%s", name);
    return rg_case_list_add(list, &test);
}

int rg_cases_results(struct rg_case_list *list,
                     const struct rg_suite_options *options)
{
    int status = add_all_reduce(list, options);

    if (status == RG_OK)
        status = add_others(list, options);
    if (status == RG_OK)
        status = add_barriers(list);
    if (status == RG_OK)
        status = add_named(list, "two_streams", run_at_once, 1, 0);
    if (status == RG_OK)
        status = add_named(list, "communicators", run_at_once, 3, 0);
    if (status == RG_OK)
        status = add_named(list, "queued", run_queued, 0, 0);
    if (status == RG_OK)
        status = add_refused(list);
    if (status == RG_OK)
        status = add_named(list, "wrap_of_seqs", run_wrap, 0,
                           UINT64_MAX - NTRIALS / 2);
    return status;
}
