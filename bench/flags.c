#include "bench/flags.h"

#include <stdlib.h>
#include <string.h>

#include "harness/peer.h"
#include "harness/preference.h"

#define AT(field) offsetof(struct perf_options, field)

/* Larger buffers are a slip of the hand: no device has a pebibyte. */
#define MOST_BYTES (1ull << 50)
/* A size that has not been given. */
#define UNSET UINT64_MAX

static const struct rg_option table[] = {
    {RG_OPTION_SIZE, 'b', "min", AT(min_bytes), NULL, 0, 0, "SIZE",
     "smallest buffer of a rank in bytes (8)"},
    {RG_OPTION_SIZE, 'e', "max", AT(max_bytes), NULL, 0, 0, "SIZE",
     "largest buffer (64M)"},
    {RG_OPTION_SIZE, 'i', "step", AT(step_bytes), NULL, 0, 0, "SIZE",
     "add this from size to size"},
    {RG_OPTION_INT, 'f', "factor", AT(factor), NULL, 2, 1 << 20, "N",
     "multiply by this from size to size (2)"},
    {RG_OPTION_INT, 'n', "iters", AT(iterations), NULL, 1, 1e8, "N",
     "samples at most (1000)"},
    {RG_OPTION_INT, 'w', "warmup", AT(warmup), NULL, 0, 1e6, "N",
     "invocations before the first sample (5)"},
    {RG_OPTION_INT, 'c', "check", AT(check), NULL, 0, 1e6, "N",
     "check results: 0 no, 1 all, N every Nth block (1)"},
    {RG_OPTION_SET, 'd', "dtype", AT(dtypes), RG_OPTION_DTYPES, 0, 0, "TYPE",
     "data types (f32)"},
    {RG_OPTION_SET, 'o', "op", AT(ops), RG_OPTION_OPS, 0, 0, "OP",
     "operations (sum)"},
    {RG_OPTION_TEXT, 'r', "root", AT(root_text), NULL, 0, 0, "N|all",
     "the root, or each rank in turn (0)"},
    {RG_OPTION_SIZE, 0, "seed", AT(seed), NULL, 0, 0, "N",
     "of the counts of all_to_all_v (1)"},
    {RG_OPTION_INT, 'z', "blocking", AT(blocking), NULL, 0, 1, "0|1",
     "wait for each invocation: --mode latency"},
    {RG_OPTION_INT, 'G', "graph", AT(graph), NULL, 0, 1000, "N",
     "capture N invocations in a graph and replay it (0: no graph)"},
    {RG_OPTION_INT, 'a', "average", AT(merge), NULL, 0, 3, "N",
     "merge over ranks: 0 rank 0, 1 mean, 2 min, 3 max (3)"},
    {RG_OPTION_INT, 'T', "timeout", AT(timeout_s), NULL, 0, 1e6, "SECONDS",
     "end when there is no progress for so long (300; 0: never)"},
    {RG_OPTION_TEXT, 'J', "json", AT(json), NULL, 0, 0, "FILE",
     "write JSON lines"},
    {RG_OPTION_SIZE, 'C', "cache-cutoff", AT(cache_cutoff), NULL, 0, 0, "SIZE",
     "--cache auto is cold above this (1M)"},
    {RG_OPTION_CHOICE, 0, "cache", AT(cache), "|auto|cold|hot", 0, 0, "STATE",
     "rotate over more than the last-level cache, or not"},
    {RG_OPTION_CHOICE, 0, "device", AT(device), "|emu|cuda", 0, 0, "DEVICE",
     "where ranks run (emu)"},
    {RG_OPTION_CHOICE, 0, "backend", AT(backend), RG_PREFERENCE_VALUES, 0, 0,
     "BACKEND",
     "which backend to ask for (what the preference variables say, else new)"},
    {RG_OPTION_TEXT, 0, "algo", AT(algo), NULL, 0, 0, "NAME|all",
     "use this algorithm, NAME+Nch with N channels"},
    {RG_OPTION_TEXT, 0, "policy", AT(policy), NULL, 0, 0, "FILE",
     "use this selection table"},
    {RG_OPTION_SET, 0, "compare", AT(compare), RG_PEER_NAMES, 0, 0, "PEER",
     "measure peers on the same buffers in the same run"},
    {RG_OPTION_CHOICE, 0, "mode", AT(mode), "|auto|throughput|latency", 0, 0,
     "MODE", "back to back, or wait for each invocation (throughput)"},
    RG_OPTIONS_LAUNCH(struct perf_options),
    {RG_OPTION_TEXT, 0, "fault", AT(fault), NULL, 0, 0, "PLAN",
     "inject faults (not available)"},
    {RG_OPTION_REAL, 0, "min-ratio", AT(min_ratio), NULL, 1e-9, 1e9, "X",
     "fail (exit 5) when a peer's time / ours is below X"},
    {RG_OPTION_FLAG, 0, "guidelines", AT(guidelines), NULL, 0, 0, NULL,
     "say where rows are slower than what could stand in for them"},
    {RG_OPTION_INT, 0, "max-violations", AT(max_violations), NULL, 0, 1e6, "N",
     "fail (exit 5) when more rows than this violate a guideline"},
    {RG_OPTION_TEXT, 0, "limit", AT(limit), NULL, 0, 0, "FILE",
     "draw the hardware bound (not available)"},
    {RG_OPTION_REAL, 0, "max-time", AT(max_seconds), NULL, 1e-3, 1e6, "SECONDS",
     "per figure (1)"},
};

static const char notes[] =
    "Sizes take the suffixes K, M, G (powers of 1024). GB/s are 1e9 bytes.\n"
    "\n"
    "Exit codes: 0 pass; 1 wrong data; 2 usage or configuration; 3 no device\n"
    "or peer library; 4 timeout or hang; 5 gate missed; 6 recovery failed;\n"
    "77 nothing could run.\n";

/* What the collective has no use for. */
static enum rg_options_result misfit(const struct rg_program *program,
                                     enum rg_collective collective,
                                     const struct perf_options *options)
{
    const char *name = rg_collective_name(collective);

    if (options->ops && !rg_collective_reduces(collective))
        return rg_options_refuse(program, "-o: %s has no operation", name);
    if (options->root_text && !rg_collective_rooted(collective))
        return rg_options_refuse(program, "-r: %s has no root", name);
    if (options->seed != UNSET && collective != RG_COLL_all_to_all_v)
        return rg_options_refuse(program, "--seed is for all_to_all_v");
    if (collective == RG_COLL_barrier &&
        (options->dtypes || options->min_bytes != UNSET ||
         options->max_bytes != UNSET || options->step_bytes || options->factor))
        return rg_options_refuse(program,
                                 "-b, -e, -i, -f and -d: %s has no data", name);
    return RG_OPTIONS_RUN;
}

/* A type that is asked for by name is to have one of the operations. */
static enum rg_options_result unfit(const struct rg_program *program,
                                    const struct perf_options *options)
{
    const uint32_t all = (1u << RG_DTYPE_COUNT) - 1;

    for (int d = 0; d < RG_DTYPE_COUNT && options->dtypes != all; d++) {
        int fits = !(options->dtypes & 1u << d);

        for (int o = 0; o < RG_OP_COUNT; o++)
            fits |= options->ops & 1u << o &&
                    rg_op_fits((enum rg_op)o, (enum rg_dtype)d);
        if (!fits)
            return rg_options_refuse(program,
                                     "no operation of -o is defined for %s",
                                     rg_dtype_name((enum rg_dtype)d));
    }
    return RG_OPTIONS_RUN;
}

static enum rg_options_result read_root(const struct rg_program *program,
                                        struct perf_options *options)
{
    const char *text = options->root_text;
    char *end;
    long root;

    if (!text)
        return RG_OPTIONS_RUN;
    options->root = -1;
    if (strcmp(text, "all") == 0)
        return RG_OPTIONS_RUN;
    root = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || root > RG_SLOTS_MAX)
        return rg_options_refuse(program, "bad value '%s' for flag '-r'", text);
    options->root = (int)root;
    return RG_OPTIONS_RUN;
}

static enum rg_options_result contradiction(const struct rg_program *program,
                                            const struct perf_options *options)
{
    if (options->max_bytes > MOST_BYTES)
        return rg_options_refuse(program, "no buffer is as large as -e");
    if (options->min_bytes > options->max_bytes)
        return rg_options_refuse(program, "-b is larger than -e");
    if (options->step_bytes && options->factor)
        return rg_options_refuse(program, "-i and -f contradict each other");
    if (options->algo && options->policy)
        return rg_options_refuse(program,
                                 "--algo and --policy contradict each other");
    if (options->blocking && options->mode == PERF_THROUGHPUT)
        return rg_options_refuse(
            program, "-z 1 and --mode throughput contradict each other");
    if (options->backend == RG_BACKEND_LEGACY &&
        (options->graph || options->algo || options->policy))
        return rg_options_refuse(
            program, "-G, --algo and --policy are not for --backend legacy");
    if (options->graph && (options->blocking || options->mode == PERF_LATENCY))
        return rg_options_refuse(
            program, "-G leaves nothing to wait for between invocations");
    if (options->min_ratio > 0 && !options->compare)
        return rg_options_refuse(program, "--min-ratio needs --compare");
    if (options->max_violations >= 0 && !options->guidelines)
        return rg_options_refuse(program,
                                 "--max-violations needs --guidelines");
    if (options->launch.ranks && options->launch.kind == RG_LAUNCH_MPI)
        return rg_options_refuse(
            program, "--ranks is for --launch local; mpirun -n says it else");
    if (options->fault)
        return rg_options_refuse(program, "--fault is not available");
    if (options->limit)
        return rg_options_refuse(program, "--limit is not available");
    return RG_OPTIONS_RUN;
}

/* What is left open is settled by the collective and the other flags. */
static void settle(struct perf_options *options, enum rg_collective collective)
{
    const uint32_t mpi = 1; /* the first name of RG_PEER_NAMES */

    if (!options->dtypes)
        options->dtypes = 1u << RG_f32;
    if (!options->ops)
        options->ops = 1u << RG_sum;
    if (options->seed == UNSET)
        options->seed = 1;
    if (options->min_bytes == UNSET)
        options->min_bytes = 8;
    if (options->max_bytes == UNSET)
        options->max_bytes = 64 << 20;
    if (collective == RG_COLL_barrier)
        options->min_bytes = options->max_bytes = 0;
    if (options->mode == PERF_AUTO)
        options->mode = options->blocking ? PERF_LATENCY : PERF_THROUGHPUT;
    if (!options->step_bytes && !options->factor)
        options->factor = 2;
    if (options->launch.kind == RG_LAUNCH_AUTO && !options->launch.ranks &&
        options->compare & mpi)
        options->launch.kind = RG_LAUNCH_MPI;
}

enum rg_options_result perf_options_parse(const char *name, const char *summary,
                                          enum rg_collective collective,
                                          int argc, char **argv,
                                          struct perf_options *options_out)
{
    const struct rg_program program = {
        name, summary, table, (int)(sizeof table / sizeof *table), notes};
    struct perf_options options = {
        .min_bytes = UNSET,
        .max_bytes = UNSET,
        .seed = UNSET,
        .iterations = 1000,
        .warmup = 5,
        .check = 1,
        .merge = RG_MERGE_MAX,
        .timeout_s = 300,
        .cache_cutoff = 1 << 20,
        .max_seconds = 1,
        .max_violations = -1,
    };
    enum rg_options_result result =
        rg_options_parse(&program, argc, argv, &options);

    if (result == RG_OPTIONS_RUN)
        result = misfit(&program, collective, &options);
    if (result == RG_OPTIONS_RUN)
        result = read_root(&program, &options);
    if (result != RG_OPTIONS_RUN)
        return result;
    settle(&options, collective);
    result = contradiction(&program, &options);
    if (result == RG_OPTIONS_RUN && rg_collective_reduces(collective))
        result = unfit(&program, &options);
    if (result != RG_OPTIONS_RUN)
        return result;
    *options_out = options;
    return RG_OPTIONS_RUN;
}

uint64_t perf_options_next(const struct perf_options *options, uint64_t bytes)
{
    if (options->step_bytes)
        return bytes + options->step_bytes;
    return bytes ? bytes * (uint64_t)options->factor : 8;
}
