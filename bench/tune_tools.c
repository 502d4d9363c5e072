#include "bench/tune_tools.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algos/algos.h"
#include "bench/tune_export.h"
#include "bench/tune_merge.h"
#include "bench/tune_policy.h"
#include "harness/options.h"
#include "harness/output.h"
#include "harness/verdict.h"
#include "runtime/policy/table.h"
#include "runtime/regroup.h"

#define RG_COLLECTIVE_VALUE(name) "|" #name
#define COLLECTIVES               RG_COLLECTIVE_LIST(RG_COLLECTIVE_VALUE)

enum { FILES_MAX = 16 };

/* What all of them take; each has its own flags for it. */
struct tool_options {
    const char *files[FILES_MAX];
    int nfiles;
    int collective;
    int ranks;
    uint64_t bytes;
    int dtype;
    int format; /* enum tune_format */
    const char *output;
    const char *limit;
};

#define AT(field) offsetof(struct tool_options, field)

struct tool {
    struct rg_program program;
    int files; /* arguments that are not flags, at least */
    int most;  /* of them */
    int (*run)(const struct tool *tool, const struct tool_options *options);
};

/* ---- files -------------------------------------------------------------- */

/* RG_OK, or an error that has been printed. */
static int load(const struct tool *tool, const char *file,
                struct rg_policy_table **table_out)
{
    struct rg_policy_error error = {0, ""};
    char *text = NULL, line[512];
    size_t bytes;
    int status = rg_policy_read(file, &text, &bytes, &error);

    if (status == RG_OK)
        status = rg_policy_parse(text, bytes, rg_algos, table_out, &error);
    free(text);
    if (status == RG_EPOLICY) {
        rg_policy_error_print(&error, file, line, sizeof line);
        fprintf(stderr, "%s\n", line);
    } else if (status != RG_OK) {
        rg_say(tool->program.name, "%s", rg_status_string(status));
    }
    return status;
}

static void print_table(const char *file, const struct rg_policy_table *table)
{
    printf("%s: %d rows, topology %s, hash %016" PRIx64 "\n", file,
           table->row_count, table->topology, rg_policy_hash(table));
}

static const char *dtype_text(int dtype)
{
    return dtype == RG_POLICY_ANY_DTYPE ? "any"
                                        : rg_dtype_name((enum rg_dtype)dtype);
}

/* "4096" or "inf". */
static const char *bound_text(uint64_t bytes, char *text, size_t room)
{
    if (bytes == UINT64_MAX)
        return "inf";
    snprintf(text, room, "%" PRIu64, bytes);
    return text;
}

/* ---- lint --------------------------------------------------------------- */

static int run_lint(const struct tool *tool, const struct tool_options *options)
{
    struct rg_policy_table *table;

    if (load(tool, options->files[0], &table) != RG_OK)
        return RG_EXIT_USAGE;
    print_table(options->files[0], table);
    rg_policy_destroy(table);
    return RG_EXIT_PASS;
}

/* ---- explain ------------------------------------------------------------ */

static int has_own_rows(const struct rg_policy_table *table, int collective,
                        int dtype)
{
    for (int i = 0; i < table->row_count; i++)
        if ((int)table->rows[i].collective == collective &&
            table->rows[i].dtype == dtype)
            return 1;
    return 0;
}

static void print_choice(const struct rg_policy_row *row)
{
    char name[RG_POLICY_NAME_BYTES];

    rg_policy_row_name(row, name);
    printf("algorithm: %s\n", name);
    if (row->channels)
        printf("channels: %u\n", row->channels);
    else
        printf("channels: the device's own\n");
    if (row->chunk)
        printf("chunk: %" PRIu64 "\n", row->chunk);
    else
        printf("chunk: the device's own\n");
}

static void print_why(const struct rg_policy_table *table,
                      const struct tool_options *options,
                      const struct rg_policy_row *row)
{
    const int served = rg_policy_ranks(
        table, (enum rg_collective)options->collective, options->ranks);
    char max[32];

    printf("because: line %d serves [%" PRIu64 ", %s)\n", row->line, row->min,
           bound_text(row->max, max, sizeof max));
    if (row->dtype != RG_POLICY_ANY_DTYPE)
        printf("because: its rows are for %s, and come before those for any "
               "type\n",
               dtype_text(row->dtype));
    else
        printf("because: its rows are for any type, and %s has %s\n",
               dtype_text(options->dtype),
               has_own_rows(table, options->collective, options->dtype)
                   ? "none of its own for these ranks"
                   : "none of its own");
    if (served != options->ranks)
        printf("because: %d ranks have no rows, so those of %d serve them\n",
               options->ranks, served);
    else
        printf("because: its rows are for %d to %d ranks\n", row->min_ranks,
               row->max_ranks);
    if (row->p50_us > 0)
        printf("measured: %.3g us", row->p50_us);
    if (row->p50_us > 0 && row->margin > 0)
        printf("; next is %s, %.3f times that", row->runner_up, row->margin);
    if (row->p50_us > 0)
        putchar('\n');
}

static int run_explain(const struct tool *tool,
                       const struct tool_options *options)
{
    struct rg_policy_table *table;
    const struct rg_policy_row *row;

    if (options->ranks == 0 || options->bytes == UINT64_MAX) {
        rg_options_refuse(&tool->program, "--ranks and --bytes are needed");
        return RG_EXIT_USAGE;
    }
    if (load(tool, options->files[0], &table) != RG_OK)
        return RG_EXIT_USAGE;
    row = rg_policy_find(table, (enum rg_collective)options->collective,
                         (enum rg_dtype)options->dtype, options->ranks,
                         options->bytes);
    if (row) {
        print_choice(row);
        print_why(table, options, row);
    } else {
        rg_say(options->files[0], "no row of %s serves %d ranks",
               rg_collective_name((enum rg_collective)options->collective),
               options->ranks);
    }
    rg_policy_destroy(table);
    return row ? RG_EXIT_PASS : RG_EXIT_USAGE;
}

/* ---- diff --------------------------------------------------------------- */

/* "oneshot_ll+4ch+65536", or "nothing". */
static const char *choice_text(const struct rg_policy_row *row, char *text,
                               size_t room)
{
    char name[RG_POLICY_NAME_BYTES];
    int n;

    if (!row)
        return "nothing";
    rg_policy_row_name(row, name);
    n = snprintf(text, room, "%s", name);
    if (row->channels)
        n += snprintf(text + n, room - (size_t)n, "+%uch", row->channels);
    if (row->chunk)
        snprintf(text + n, room - (size_t)n, "+%" PRIu64, row->chunk);
    return text;
}

/* For one collective, type and rank count. */
struct comparison {
    const struct rg_policy_table *tables[2];
    enum rg_collective collective;
    enum rg_dtype dtype;
    const char *type; /* its name, or "any" for those without own rows */
    int ranks;
};

static const struct rg_policy_row *choice_of(const struct comparison *c, int t,
                                             uint64_t bytes)
{
    return rg_policy_find(c->tables[t], c->collective, c->dtype, c->ranks,
                          bytes);
}

static int compare_at(const struct comparison *c, uint64_t bytes,
                      uint64_t *next_out)
{
    char of_a[96], of_b[96], max[32];
    const struct rg_policy_row *a = choice_of(c, 0, bytes);
    const struct rg_policy_row *b = choice_of(c, 1, bytes);
    const char *choices[2] = {choice_text(a, of_a, sizeof of_a),
                              choice_text(b, of_b, sizeof of_b)};

    *next_out = a ? a->max : UINT64_MAX;
    if (b && b->max < *next_out)
        *next_out = b->max;
    if (strcmp(choices[0], choices[1]) == 0)
        return 0;
    printf("%s %s, %d ranks, [%" PRIu64 ", %s): %s | %s\n",
           rg_collective_name(c->collective), c->type, c->ranks, bytes,
           bound_text(*next_out, max, sizeof max), choices[0], choices[1]);
    return 1;
}

static int compare_sizes(const struct comparison *c)
{
    uint64_t bytes = 0, next;
    int differ = 0;

    do {
        differ |= compare_at(c, bytes, &next);
        bytes = next;
    } while (next < UINT64_MAX);
    return differ;
}

/* Whether rows of either begin to serve this many ranks. Where they end, those
 * of the nearest smaller count go on. */
static int ranks_begin(const struct comparison *c)
{
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < c->tables[t]->row_count; i++) {
            const struct rg_policy_row *row = &c->tables[t]->rows[i];

            if (row->collective == c->collective && row->min_ranks == c->ranks)
                return 1;
        }
    return 0;
}

/* Rank counts between two beginnings are served alike. */
static int compare_ranks(struct comparison *c)
{
    int differ = 0;

    for (c->ranks = 1; c->ranks <= RG_POLICY_MAX_RANKS; c->ranks++)
        if (ranks_begin(c))
            differ |= compare_sizes(c);
    return differ;
}

/* Types that have no rows of their own in either are compared once. */
static int compare_collective(struct comparison *c)
{
    int differ = 0, any = 0;

    for (int d = 0; d < RG_DTYPE_COUNT; d++) {
        const int own = has_own_rows(c->tables[0], c->collective, d) ||
                        has_own_rows(c->tables[1], c->collective, d);

        if (!own && any)
            continue;
        any |= !own;
        c->dtype = (enum rg_dtype)d;
        c->type = own ? rg_dtype_name(c->dtype) : "any";
        differ |= compare_ranks(c);
    }
    return differ;
}

static int run_diff(const struct tool *tool, const struct tool_options *options)
{
    struct rg_policy_table *a = NULL, *b = NULL;
    int code = RG_EXIT_USAGE;

    if (load(tool, options->files[0], &a) == RG_OK &&
        load(tool, options->files[1], &b) == RG_OK) {
        struct comparison c = {.tables = {a, b}};
        int differ = 0;

        for (int coll = 0; coll < RG_COLL_COUNT; coll++) {
            c.collective = (enum rg_collective)coll;
            differ |= compare_collective(&c);
        }
        code = differ ? RG_EXIT_WRONG : RG_EXIT_PASS;
    }
    rg_policy_destroy(a);
    rg_policy_destroy(b);
    return code;
}

/* ---- merge -------------------------------------------------------------- */

static int load_all(const struct tool *tool, const struct tool_options *options,
                    struct tune_source *sources)
{
    int status = RG_OK;

    for (int i = 0; i < options->nfiles && status == RG_OK; i++) {
        sources[i].file = options->files[i];
        status = load(tool, options->files[i], &sources[i].table);
    }
    return status;
}

static int merge_code(const struct tool *tool, int status)
{
    if (status == RG_OK)
        return RG_EXIT_PASS;
    /* What else there is has been said. */
    if (status == RG_ENOSPC || status == RG_ENOMEM)
        fprintf(stderr, "%s: %s\n", tool->program.name,
                status == RG_ENOSPC ? "the table gets too long"
                                    : rg_status_string(status));
    return status == RG_ESYSTEM || status == RG_ENOMEM ? RG_EXIT_ENVIRONMENT
                                                       : RG_EXIT_USAGE;
}

static int merge(const struct tool *tool, const struct tool_options *options,
                 const struct tune_source *sources)
{
    struct rg_policy_table *table = NULL;
    char text[512] = "";
    int status =
        tune_merge(sources, options->nfiles, &table, text, sizeof text);

    if (status == RG_EPOLICY)
        rg_say(tool->program.name, "%s", text);
    if (status == RG_OK)
        status = tune_policy_save(table, tool->program.name, options->output);
    if (status == RG_OK)
        print_table(options->output, table);
    rg_policy_destroy(table);
    return merge_code(tool, status);
}

static int run_merge(const struct tool *tool,
                     const struct tool_options *options)
{
    struct tune_source sources[FILES_MAX] = {{NULL, NULL}};
    int code = RG_EXIT_USAGE;

    if (!options->output || strlen(options->output) > 4000) {
        rg_options_refuse(&tool->program, options->output
                                              ? "the name of -o is too long"
                                              : "-o FILE is missing");
        return RG_EXIT_USAGE;
    }
    if (load_all(tool, options, sources) == RG_OK)
        code = merge(tool, options, sources);
    for (int i = 0; i < options->nfiles; i++)
        rg_policy_destroy(sources[i].table);
    return code;
}

/* ---- export ------------------------------------------------------------- */

static void say_dropped(void *arg, const char *line)
{
    fprintf(stderr, "%s: %s\n", (const char *)arg, line);
}

static int run_export(const struct tool *tool,
                      const struct tool_options *options)
{
    struct rg_policy_table *table;

    if (options->format < 0) {
        rg_options_refuse(&tool->program, "--format is needed");
        return RG_EXIT_USAGE;
    }
    if (load(tool, options->files[0], &table) != RG_OK)
        return RG_EXIT_USAGE;
    tune_export(table, (enum tune_format)options->format, stdout, say_dropped,
                (void *)tool->program.name);
    rg_policy_destroy(table);
    return RG_EXIT_PASS;
}

/* ---- plot --------------------------------------------------------------- */

static int run_plot(const struct tool *tool, const struct tool_options *options)
{
    const char *scripts = getenv("RG_SCRIPTS_DIR");
    char path[4096];
    const char *arguments[8] = {"plot-tune"};
    int n = 1;

    snprintf(path, sizeof path, "%s/plot-tune",
             scripts ? scripts : RG_TUNE_SCRIPTS);
    if (options->output) {
        arguments[n++] = "-o";
        arguments[n++] = options->output;
    }
    if (options->limit) {
        arguments[n++] = "--limit";
        arguments[n++] = options->limit;
    }
    arguments[n] = options->files[0];
    fflush(NULL);
    execv(path, (char *const *)arguments);
    rg_say(tool->program.name,
           "cannot run '%s' (RG_SCRIPTS_DIR says where it is)", path);
    return RG_EXIT_ENVIRONMENT;
}

/* ---- all of them -------------------------------------------------------- */

static const struct rg_option explain_flags[] = {
    {RG_OPTION_CHOICE, 0, "collective", AT(collective), COLLECTIVES, 0, 0,
     "NAME", "which collective (all_reduce)"},
    {RG_OPTION_INT, 0, "ranks", AT(ranks), NULL, 1, RG_POLICY_MAX_RANKS, "N",
     "of the group"},
    {RG_OPTION_SIZE, 0, "bytes", AT(bytes), NULL, 0, 0x1p62, "SIZE",
     "of a rank's buffer"},
    {RG_OPTION_CHOICE, 0, "dtype", AT(dtype), RG_OPTION_DTYPES, 0, 0, "TYPE",
     "data type (f32)"},
};

static const struct rg_option merge_flags[] = {
    {RG_OPTION_TEXT, 'o', "output", AT(output), NULL, 0, 0, "FILE",
     "the table of all"},
};

static const struct rg_option export_flags[] = {
    {RG_OPTION_CHOICE, 0, "format", AT(format), TUNE_FORMATS, 0, 0, "FORMAT",
     "whose"},
};

static const struct rg_option plot_flags[] = {
    {RG_OPTION_TEXT, 'o', "output", AT(output), NULL, 0, 0, "PREFIX",
     "writes PREFIX.png and PREFIX.svg (RAW without its ending)"},
    {RG_OPTION_TEXT, 0, "limit", AT(limit), NULL, 0, 0, "GBPS",
     "draws the hardware's bound: bus bandwidth in GB/s (1e9 bytes)"},
};

#define COUNT(flags) (int)(sizeof flags / sizeof *flags)

static const struct tool tools[] = {
    {{"rg_tune lint",
      "FILE: is it a table that can be used? Exit 0, or 2 and "
      "FILE:LINE: why not.",
      NULL, 0, NULL},
     1,
     1,
     run_lint},
    {{"rg_tune explain", "FILE: which row of the table serves a size, and why.",
      explain_flags, COUNT(explain_flags), NULL},
     1,
     1,
     run_explain},
    {{"rg_tune diff",
      "A B: where two tables choose differently. Exit 0 nowhere, 1 somewhere.",
      NULL, 0, NULL},
     2,
     2,
     run_diff},
    {{"rg_tune merge",
      "A B...: one table of several for different numbers of ranks.",
      merge_flags, COUNT(merge_flags), NULL},
     2,
     FILES_MAX,
     run_merge},
    {{"rg_tune export",
      "FILE: as another library's rules, on standard output; what these cannot "
      "say\nis told on standard error.",
      export_flags, COUNT(export_flags), NULL},
     1,
     1,
     run_export},
    {{"rg_tune plot", "RAW: draws the raw measurements of a tuning.",
      plot_flags, COUNT(plot_flags), NULL},
     1,
     1,
     run_plot},
};

static const struct tool *find(const char *word)
{
    for (int i = 0; i < COUNT(tools); i++)
        if (strcmp(strchr(tools[i].program.name, ' ') + 1, word) == 0)
            return &tools[i];
    return NULL;
}

int tune_tool_known(const char *word)
{
    return find(word) != NULL;
}

int tune_tool_main(int argc, char **argv)
{
    const struct tool *tool = find(argv[1]);
    struct tool_options options = {
        .bytes = UINT64_MAX, .dtype = RG_f32, .format = -1};
    enum rg_options_result result = RG_OPTIONS_RUN;
    int at = 2;

    for (; at < argc && at - 2 < tool->most && argv[at][0] != '-'; at++)
        options.files[options.nfiles++] = argv[at];
    /* The word before the first flag stands for the program's name. */
    result = rg_options_parse(&tool->program, argc - at + 1, argv + at - 1,
                              &options);
    if (result == RG_OPTIONS_RUN && options.nfiles < tool->files)
        result = rg_options_refuse(&tool->program, "%s (try --help)",
                                   tool->files == 1 ? "a file is needed"
                                                    : "two files are needed");
    if (result != RG_OPTIONS_RUN)
        return rg_options_exit(result);
    return rg_output_close(tool->run(tool, &options));
}
