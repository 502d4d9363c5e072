#include "runtime/exec/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/device/share.h"
#include "runtime/exec/locality.h"
#include "runtime/policy/default.h"
#include "runtime/policy/table.h"
#include "runtime/regroup.h"

enum { SELECTION_MAX = 65536 }; /* what a control message carries */

#define BLANKS "; \t\n"

static_assert((int)RG_POLICY_MAX_CHANNELS == (int)RG_MAX_CHANNELS,
              "as on the device");
static_assert((int)RG_POLICY_MAX_RULES < (int)RG_MAX_RULES,
              "room for what the table leaves");

/* ---- overrides ---------------------------------------------------------- */

/* One part of the overrides. */
struct override {
    char collective[RG_POLICY_NAME_BYTES];
    char algorithm[RG_POLICY_NAME_BYTES];
    unsigned channels; /* 0: not said */
};

static const char table_mark[] = "regroup-policy";

/* Where the table begins in the text, else the text's end. */
static const char *table_in(const char *text)
{
    const char *at = text;

    while ((at = strstr(at, table_mark)) && at != text && at[-1] != '\n')
        at++;
    return at ? at : text + strlen(text);
}

/* Reads "collective=algorithm[+Nch]". */
static int override_read(const char *part, size_t length,
                         struct override *override_out)
{
    char copy[2 * RG_POLICY_NAME_BYTES], digits[4] = "";
    int fields, end = 0;

    memset(override_out, 0, sizeof *override_out);
    snprintf(copy, sizeof copy, "%.*s", (int)length, part);
    fields = sscanf(copy, "%31[a-z_]=%31[a-z0-9_]%n+%3[0-9]ch%n",
                    override_out->collective, override_out->algorithm, &end,
                    digits, &end);
    override_out->channels = (unsigned)atoi(digits);
    end += (int)strspn(copy + end, BLANKS);
    if (length < sizeof copy && fields >= 2 && !copy[end] &&
        (fields < 3 || override_out->channels))
        return RG_OK;
    rg_log(RG_LOG_ERROR, -1,
           "policy \"%s\": expected collective=algorithm[+Nch]", copy);
    return RG_EPOLICY;
}

/*
 * The override at *text, which is moved behind it. 1, 0 at the end or where
 * the table begins, or RG_EPOLICY.
 */
static int override_next(const char **text, struct override *override_out)
{
    const char *const end = table_in(*text);
    const char *at = *text + strspn(*text, BLANKS);
    size_t length;

    if (at >= end)
        return 0;
    length = strcspn(at, ";\n");
    *text = at + length;
    return override_read(at, length, override_out) ? RG_EPOLICY : 1;
}

static int collective_find(const char *name)
{
    for (int coll = 0; coll < RG_COLL_COUNT; coll++)
        if (strcmp(rg_collective_name((enum rg_collective)coll), name) == 0)
            return coll;
    return -1;
}

/* The last override that names the collective: 1, or 0 for none. */
static int override_lookup(const char *text, int coll,
                           struct override *override_out)
{
    struct override override;
    int found = 0;

    while (override_next(&text, &override) > 0) {
        if (collective_find(override.collective) != coll)
            continue;
        *override_out = override;
        found = 1;
    }
    return found;
}

static int override_refuse(const struct override *override)
{
    char channels[32] = "";

    if (override->channels)
        snprintf(channels, sizeof channels, " with %u channels",
                 override->channels);
    rg_log(RG_LOG_ERROR, -1, "policy: no algorithm %s=%s%s",
           override->collective, override->algorithm, channels);
    return RG_EPOLICY;
}

/* As far as no layout is needed: before anybody waits for this rank. */
static int overrides_known(const struct rg_algo *const *algos, const char *text)
{
    struct override override;
    int more, i;

    while ((more = override_next(&text, &override)) > 0) {
        const int coll = collective_find(override.collective);

        for (i = 0; algos[i] && ((int)algos[i]->collective != coll ||
                                 strcmp(algos[i]->name, override.algorithm));)
            i++;
        if (!algos[i])
            return override_refuse(&override);
    }
    return more;
}

static int overrides_check(const struct rg_layout *layout, const char *text)
{
    struct override override;
    int more, coll;

    while ((more = override_next(&text, &override)) > 0) {
        coll = collective_find(override.collective);
        if (coll >= 0 &&
            rg_layout_find(layout, coll, override.algorithm) >= 0 &&
            override.channels <= (unsigned)layout->shape.max_channels)
            continue;
        return override_refuse(&override);
    }
    return more;
}

/* ---- tables ------------------------------------------------------------- */

static int table_parse(const char *text, const char *file,
                       const struct rg_algo *const *algos,
                       struct rg_policy_table **table_out)
{
    struct rg_policy_error error;
    const int status =
        rg_policy_parse(text, strlen(text), algos, table_out, &error);
    char line[512];

    if (status != RG_EPOLICY)
        return status;
    rg_policy_error_print(&error, file, line, sizeof line);
    rg_log(RG_LOG_ERROR, -1, "%s", line);
    return status;
}

struct rg_selection {
    char *text;
    struct rg_policy_table *published;  /* null: the text has none */
    struct rg_policy_table *builtin[2]; /* [whether all pairs are direct] */
};

/* The text's table; null: it has none. Its names have been checked. */
static int table_of(const char *text, struct rg_policy_table **table_out)
{
    const char *table = table_in(text);

    *table_out = NULL;
    return *table ? table_parse(table, "policy", NULL, table_out) : RG_OK;
}

int rg_selection_create(const char *text, enum rg_device_kind kind,
                        struct rg_selection **selection_out)
{
    struct rg_selection *selection = calloc(1, sizeof *selection);
    int status = RG_ENOMEM;

    if (selection && (selection->text = strdup(text)))
        status = RG_OK;
    for (int direct = 0; status == RG_OK && direct < 2; direct++)
        status = table_parse(rg_policy_default(kind, direct), "built-in table",
                             NULL, &selection->builtin[direct]);
    if (status == RG_OK)
        status = table_of(text, &selection->published);
    if (status) {
        rg_selection_destroy(selection);
        return status;
    }
    *selection_out = selection;
    return RG_OK;
}

void rg_selection_destroy(struct rg_selection *selection)
{
    if (!selection)
        return;
    rg_policy_destroy(selection->published);
    rg_policy_destroy(selection->builtin[0]);
    rg_policy_destroy(selection->builtin[1]);
    free(selection->text);
    free(selection);
}

int rg_selection_is(const struct rg_selection *selection, const char *text)
{
    return selection && !strcmp(selection->text, text);
}

static int row_refuse(const struct rg_policy_row *row, const char *what,
                      uint64_t most)
{
    rg_log(RG_LOG_ERROR, -1,
           "policy:%d: the workspace has room for at most %llu %s", row->line,
           (unsigned long long)most, what);
    return RG_EPOLICY;
}

/* What the row asks for has to have room. */
static int row_check(const struct rg_layout *layout,
                     const struct rg_policy_row *row)
{
    char name[RG_POLICY_NAME_BYTES];
    const struct rg_limits *limits;
    int index;

    rg_policy_row_name(row, name);
    index = rg_layout_find(layout, (int)row->collective, name);
    if (index < 0) {
        rg_log(RG_LOG_ERROR, -1, "policy:%d: no algorithm '%s'", row->line,
               name);
        return RG_EPOLICY;
    }
    limits = &layout->limits[row->collective][index];
    if (limits->max_bytes < UINT64_MAX && row->max - 1 > limits->max_bytes)
        return row_refuse(row, "bytes", limits->max_bytes);
    if (row->channels > (unsigned)layout->shape.max_channels)
        return row_refuse(row, "channels",
                          (uint64_t)layout->shape.max_channels);
    if (row->chunk > limits->max_chunk)
        return row_refuse(row, "bytes of chunk", limits->max_chunk);
    return RG_OK;
}

/* The layout's algorithms as a program's table. */
static int table_check(const struct rg_layout *layout, const char *text)
{
    const char *at = table_in(text);
    const struct rg_algo *algos[RG_COLL_COUNT * RG_MAX_ALGOS + 1];
    struct rg_policy_table *table;
    int count = 0, status;

    if (!*at)
        return RG_OK;
    for (int coll = 0; coll < RG_COLL_COUNT; coll++)
        for (int i = 0; i < layout->count[coll]; i++)
            algos[count++] = layout->algo[coll][i];
    algos[count] = NULL;
    status = table_parse(at, "policy", algos, &table);
    if (status)
        return status;
    for (int i = 0; status == RG_OK && i < table->row_count; i++)
        status = row_check(layout, &table->rows[i]);
    rg_policy_destroy(table);
    return status;
}

int rg_policy_check(const struct rg_layout *layout, const char *text)
{
    const int status = overrides_check(layout, text);

    return status ? status : table_check(layout, text);
}

/* ---- one text ----------------------------------------------------------- */

static int join_texts(const char *overrides, size_t length, const char *table,
                      char **text_out)
{
    const size_t bytes = length + 1 + strlen(table) + 1;
    char *text;

    if (bytes > SELECTION_MAX) {
        rg_log(RG_LOG_ERROR, -1,
               "policy: overrides and table have more than "
               "%d bytes",
               SELECTION_MAX - 1);
        return RG_EPOLICY;
    }
    text = malloc(bytes);
    if (!text)
        return RG_ENOMEM;
    snprintf(text, bytes, "%.*s%s%s", (int)length, overrides,
             length && *table ? "\n" : "", table);
    *text_out = text;
    return RG_OK;
}

/* `length` bytes of overrides. */
static int compose(const char *overrides, size_t length, const char *table,
                   const char *file, const struct rg_algo *const *algos,
                   char **text_out)
{
    struct rg_policy_table *parsed;
    char *written;
    int status = overrides_known(algos, overrides);

    if (status)
        return status;
    if (!*table)
        return join_texts(overrides, length, "", text_out);
    status = table_parse(table, file, algos, &parsed);
    if (status)
        return status;
    status = rg_policy_write(parsed, &written);
    rg_policy_destroy(parsed);
    if (status)
        return status;
    while (length && strchr(BLANKS, overrides[length - 1]))
        length--;
    status = join_texts(overrides, length, written, text_out);
    free(written);
    return status;
}

int rg_policy_compose(const char *overrides, const char *table,
                      const char *file, const struct rg_algo *const *algos,
                      char **text_out)
{
    overrides = overrides ? overrides : "";
    return compose(overrides, strlen(overrides), table ? table : "", file,
                   algos, text_out);
}

int rg_policy_canonical(const char *text, const struct rg_algo *const *algos,
                        char **text_out)
{
    const char *table = table_in(text);

    return compose(text, (size_t)(table - text), table, "policy", algos,
                   text_out);
}

/* ---- what can run ------------------------------------------------------- */

int rg_rules_can_run(const struct rg_layout *layout, int coll, int index,
                     const struct rg_plan_input *input)
{
    const struct rg_algo *algo = layout->algo[coll][index];
    const int n = input->view->nactive;

    return layout->limits[coll][index].max_bytes > 0 && n >= algo->min_ranks &&
           n <= algo->max_ranks &&
           (!(algo->flags & RG_ALGO_DIRECT) ||
            rg_view_is_all_direct(input->view));
}

/* The algorithm of that name if it can run, or -1. */
static int choose(const struct rg_layout *layout, int coll, const char *name,
                  const struct rg_plan_input *input)
{
    const int index = rg_layout_find(layout, coll, name);

    return index >= 0 && rg_rules_can_run(layout, coll, index, input) ? index
                                                                      : -1;
}

static int unfit(const struct rg_plan_input *input, enum rg_log_level level,
                 int coll, const char *name)
{
    rg_log(level, input->rank,
           "policy: %s=%s cannot run with %d ranks and these routes",
           rg_collective_name((enum rg_collective)coll), name,
           input->view->nactive);
    return RG_EPOLICY;
}

static int override_fits(const struct rg_layout *layout, int coll,
                         const char *text, const struct rg_plan_input *input,
                         enum rg_log_level level)
{
    struct override override;

    return !override_lookup(text, coll, &override) ||
                   choose(layout, coll, override.algorithm, input) >= 0
               ? RG_OK
               : unfit(input, level, coll, override.algorithm);
}

static int row_serves(const struct rg_policy_row *row, int coll, int ranks)
{
    return (int)row->collective == coll && row->min_ranks <= ranks &&
           row->max_ranks >= ranks;
}

/* The rows that apply; also says so when they are those of fewer ranks. */
static int rows_fit(const struct rg_layout *layout, int coll,
                    const struct rg_policy_table *table,
                    const struct rg_plan_input *input, enum rg_log_level level)
{
    const int ranks = input->view->nactive;
    const int served = rg_policy_ranks(table, (enum rg_collective)coll, ranks);
    char name[RG_POLICY_NAME_BYTES];
    int status = RG_OK;

    if (served && served != ranks && level == RG_LOG_WARN)
        rg_log(level, input->rank,
               "policy: no rows of %s for %d ranks, those for %d apply",
               rg_collective_name((enum rg_collective)coll), ranks, served);
    for (int i = 0; i < table->row_count; i++) {
        if (!row_serves(&table->rows[i], coll, served))
            continue;
        rg_policy_row_name(&table->rows[i], name);
        if (choose(layout, coll, name, input) < 0 && status == RG_OK)
            status = unfit(input, level, coll, name);
    }
    return status;
}

static int all_fit(const struct rg_layout *layout, const char *text,
                   const struct rg_policy_table *table,
                   const struct rg_plan_input *input, enum rg_log_level level)
{
    int status = RG_OK;

    for (int coll = 0; status == RG_OK && coll < RG_COLL_COUNT; coll++) {
        status = override_fits(layout, coll, text, input, level);
        if (status == RG_OK && table)
            status = rows_fit(layout, coll, table, input, level);
    }
    return status;
}

int rg_policy_fits(const struct rg_layout *layout, const char *text,
                   const struct rg_plan_input *input)
{
    /* All ranks find the same. */
    const enum rg_log_level level = input->rank ? RG_LOG_DEBUG : RG_LOG_ERROR;
    struct rg_policy_table *table;
    int status = table_of(text, &table);

    if (status == RG_OK)
        status = all_fit(layout, text, table, input, level);
    rg_policy_destroy(table);
    return status;
}

void rg_policy_report(const struct rg_layout *layout,
                      const struct rg_plan_input *input)
{
    if (input->rank == 0)
        all_fit(layout, input->selection->text, input->selection->published,
                input, RG_LOG_WARN);
}

/* ---- the rules of one type ---------------------------------------------- */

/*
 * A pipeline step, where the workspace has room for it; powers of two. On emu
 * it is one that leaves the writer's cache before the reader wants it, for
 * lines in another core's cache come late. On CUDA it is long enough for the
 * link not to feel the flags.
 */
static uint32_t chunk_of(enum rg_device_kind kind, uint64_t most)
{
    uint64_t chunk = kind == RG_DEVICE_CUDA ? 64 << 10 : 256 << 10;

    while (chunk > most && chunk > RG_GRAIN)
        chunk /= 2;
    return (uint32_t)(most ? chunk : 0);
}

/* What a rule is made from. */
struct choice {
    int index;
    uint64_t below;
    unsigned channels; /* 0: the device's own number */
    uint64_t chunk;    /* 0: the device's own */
};

/* Rules of one collective for one type, in the making. */
struct list {
    const struct rg_layout *layout;
    const struct rg_plan_input *input;
    int coll;
    struct rg_rules rules;
};

/* Adds a rule for the sizes that no earlier rule covers. */
static void list_add(struct list *list, const struct choice *choice)
{
    const struct rg_limits *limits =
        &list->layout->limits[list->coll][choice->index];
    struct rg_rules *rules = &list->rules;
    const uint64_t covered =
        rules->count ? rules->rule[rules->count - 1].below : 0;
    uint64_t below = choice->below;
    struct rg_rule *rule = &rules->rule[rules->count];

    if (limits->max_bytes < UINT64_MAX && below > limits->max_bytes + 1)
        below = limits->max_bytes + 1;
    if (below <= covered || rules->count == RG_MAX_RULES)
        return;
    rule->below = below;
    rule->algo = (uint32_t)choice->index;
    rule->channels =
        choice->channels ? choice->channels : (uint32_t)list->input->channels;
    if (rule->channels > (uint32_t)list->layout->shape.max_channels)
        rule->channels = (uint32_t)list->layout->shape.max_channels;
    rule->chunk = choice->chunk && choice->chunk <= limits->max_chunk
                      ? (uint32_t)choice->chunk
                      : chunk_of(list->input->kind, limits->max_chunk);
    rules->count++;
}

static void list_override(struct list *list)
{
    struct override override;
    struct choice choice = {.below = UINT64_MAX};

    if (!override_lookup(list->input->view->policy, list->coll, &override))
        return;
    choice.index =
        choose(list->layout, list->coll, override.algorithm, list->input);
    choice.channels = override.channels;
    if (choice.index >= 0)
        list_add(list, &choice);
}

static void list_row(struct list *list, const struct rg_policy_row *row)
{
    struct choice choice = {0, row->max, row->channels, row->chunk};
    char name[RG_POLICY_NAME_BYTES];

    rg_policy_row_name(row, name);
    choice.index = choose(list->layout, list->coll, name, list->input);
    if (choice.index >= 0)
        list_add(list, &choice);
}

/* The table's rows of this class; how many there are. */
static int list_rows(struct list *list, const struct rg_policy_table *table,
                     int dtype)
{
    const int served = rg_policy_ranks(table, (enum rg_collective)list->coll,
                                       list->input->view->nactive);
    int count = 0;

    for (int i = 0; i < table->row_count; i++) {
        const struct rg_policy_row *row = &table->rows[i];

        if (row->dtype != dtype || !row_serves(row, list->coll, served))
            continue;
        list_row(list, row);
        count++;
    }
    return count;
}

static int list_table(struct list *list, const struct rg_policy_table *table,
                      int dtype)
{
    return table && (list_rows(list, table, dtype) ||
                     list_rows(list, table, RG_POLICY_ANY_DTYPE));
}

/* Any algorithm without a size limit takes the rest; the last is best. */
static void list_rest(struct list *list)
{
    struct choice choice = {.below = UINT64_MAX};

    for (choice.index = list->layout->count[list->coll] - 1; choice.index >= 0;
         choice.index--)
        if (rg_rules_can_run(list->layout, list->coll, choice.index,
                             list->input))
            list_add(list, &choice);
}

/* ---- the rules of all types --------------------------------------------- */

static int is_same(const struct rg_rules *a, const struct rg_rules *b)
{
    if (a->count != b->count)
        return 0;
    for (uint64_t i = 0; i < a->count; i++)
        if (a->rule[i].below != b->rule[i].below ||
            a->rule[i].algo != b->rule[i].algo ||
            a->rule[i].channels != b->rule[i].channels ||
            a->rule[i].chunk != b->rule[i].chunk)
            return 0;
    return 1;
}

/* Puts the rules of these types among the others, by size. 0: no room. */
static int merge(struct rg_rules *rules, const struct rg_rules *more,
                 uint32_t dtypes)
{
    if (rules->count + more->count > RG_MAX_RULES)
        return 0;
    for (uint64_t i = 0; i < more->count; i++) {
        uint64_t at = rules->count++;

        for (; at > 0 && rules->rule[at - 1].below > more->rule[i].below; at--)
            rules->rule[at] = rules->rule[at - 1];
        rules->rule[at] = more->rule[i];
        rules->rule[at].dtypes = dtypes;
    }
    return 1;
}

/*
 * All chunks of an algorithm have their places at the same distance; in an area
 * that others use, too, at one that does not depend on rules.
 */
static void space_out(const struct rg_layout *layout, int coll,
                      struct rg_rules *rules)
{
    for (uint64_t i = 0; i < rules->count; i++)
        if (layout->algo[coll][rules->rule[i].algo]->area)
            rules->rule[i].slot =
                (uint32_t)layout->limits[coll][rules->rule[i].algo].max_chunk;
    for (uint64_t i = 0; i < rules->count; i++)
        for (uint64_t j = 0; j < rules->count; j++)
            if (rules->rule[j].algo == rules->rule[i].algo &&
                rules->rule[j].chunk > rules->rule[i].slot)
                rules->rule[i].slot = rules->rule[j].chunk;
}

static struct rg_rules rules_of_type(const struct rg_layout *layout,
                                     const struct rg_plan_input *input,
                                     int coll, int dtype,
                                     const struct rg_selection *selection)
{
    struct list list = {.layout = layout, .input = input, .coll = coll};

    list_override(&list);
    if (!list_table(&list, selection->published, dtype))
        list_table(&list,
                   selection->builtin[rg_view_is_all_direct(input->view)],
                   dtype);
    list_rest(&list);
    return list.rules;
}

/* Types with the same rules share them. 0: more than a plan has room for. */
static int rules_of(const struct rg_layout *layout,
                    const struct rg_plan_input *input, int coll,
                    const struct rg_selection *selection,
                    struct rg_rules *rules_out)
{
    struct rg_rules typed[RG_DTYPE_COUNT];
    uint32_t done = 0;

    memset(rules_out, 0, sizeof *rules_out);
    for (int dtype = 0; dtype < RG_DTYPE_COUNT; dtype++)
        typed[dtype] = rules_of_type(layout, input, coll, dtype, selection);
    for (int dtype = 0; dtype < RG_DTYPE_COUNT; dtype++) {
        uint32_t dtypes = 0;

        for (int other = dtype; other < RG_DTYPE_COUNT; other++)
            if (is_same(&typed[dtype], &typed[other]))
                dtypes |= 1u << other;
        if (!(done & dtypes) && !merge(rules_out, &typed[dtype], dtypes))
            return 0;
        done |= dtypes;
    }
    space_out(layout, coll, rules_out);
    return 1;
}

static int build(const struct rg_layout *layout,
                 const struct rg_plan_input *input,
                 const struct rg_selection *selection,
                 struct rg_rules rules_out[RG_COLL_COUNT])
{
    for (int coll = 0; coll < RG_COLL_COUNT; coll++) {
        memset(&rules_out[coll], 0, sizeof *rules_out);
        if (layout->count[coll] &&
            !rules_of(layout, input, coll, selection, &rules_out[coll]))
            return RG_EPOLICY;
    }
    return RG_OK;
}

int rg_rules_build(const struct rg_layout *layout,
                   const struct rg_plan_input *input,
                   struct rg_rules rules_out[RG_COLL_COUNT])
{
    struct rg_selection *own = NULL;
    int status = input->selection ? RG_OK
                                  : rg_selection_create(input->view->policy,
                                                        input->kind, &own);

    if (status == RG_OK)
        status = build(layout, input, own ? own : input->selection, rules_out);
    rg_selection_destroy(own);
    return status;
}

uint64_t rg_rules_hash(const struct rg_rules rules[RG_COLL_COUNT])
{
    uint64_t hash = RG_HASH_INIT;

    for (int coll = 0; coll < RG_COLL_COUNT; coll++) {
        hash = rg_hash(hash, &rules[coll].count, sizeof rules[coll].count);
        hash = rg_hash(hash, rules[coll].rule,
                       rules[coll].count * sizeof *rules[coll].rule);
    }
    return hash;
}
