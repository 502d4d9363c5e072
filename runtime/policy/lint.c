/* The rules that a table's rows follow, one by one and among each other. */
#include "runtime/policy/rows.h"

#include <stdio.h>
#include <string.h>

#include "runtime/regroup.h"

/* More than any workspace: what an algorithm can do at best. */
static const uint64_t roomy = 1ull << 40;

static int line_of(const struct rg_policy_table *table, int index)
{
    return table->rows[index].line ? table->rows[index].line : index + 1;
}

/* ---- one row ------------------------------------------------------------ */

static const struct rg_algo *algo_of(const struct rg_algo *const *algos,
                                     const struct rg_policy_row *row)
{
    char name[RG_POLICY_NAME_BYTES];

    rg_policy_row_name(row, name);
    for (; *algos; algos++)
        if ((*algos)->collective == row->collective &&
            !strcmp((*algos)->name, name))
            return *algos;
    return NULL;
}

static int lint_name(const struct rg_policy_row *row, int line,
                     const struct rg_algo *algo,
                     struct rg_policy_error *error_out)
{
    const char *collective = rg_collective_name(row->collective);
    struct rg_policy_row split = *row;

    rg_policy_row_call(&split, row->algorithm);
    if (split.protocol != RG_PROTOCOL_PLAIN)
        return rg_policy_fail(
            error_out, line, "algorithm '%s': write '%s' with protocol %s",
            row->algorithm, split.algorithm, rg_protocol_name(split.protocol));
    if (!algo)
        return rg_policy_fail(
            error_out, line, "%s has no algorithm '%s' with protocol %s",
            collective, row->algorithm, rg_protocol_name(row->protocol));
    return RG_OK;
}

/* Whether the algorithm can do what the row asks for, in any workspace. */
static int lint_reach(const struct rg_policy_row *row, int line,
                      const struct rg_algo *algo,
                      struct rg_policy_error *error_out)
{
    const struct rg_shape shape = {row->max_ranks < 2 ? 2 : row->max_ranks, 1,
                                   roomy};
    struct rg_limits limits = {0};

    if (row->min_ranks < algo->min_ranks || row->max_ranks > algo->max_ranks)
        return rg_policy_fail(error_out, line,
                              "%s serves %d to %d ranks, not %d to %d",
                              algo->name, algo->min_ranks, algo->max_ranks,
                              row->min_ranks, row->max_ranks);
    if (!algo->layout(&shape, &limits))
        return RG_OK; /* says nothing of itself */
    if (limits.max_bytes < UINT64_MAX && row->max - 1 > limits.max_bytes)
        return rg_policy_fail(error_out, line,
                              "%s serves sizes up to %llu bytes: max is %llu "
                              "at most",
                              algo->name, (unsigned long long)limits.max_bytes,
                              (unsigned long long)limits.max_bytes + 1);
    if (row->chunk && !limits.max_chunk)
        return rg_policy_fail(error_out, line, "%s has no chunks", algo->name);
    return RG_OK;
}

static int lint_row(const struct rg_policy_table *table, int index,
                    const struct rg_algo *const *algos,
                    struct rg_policy_error *error_out)
{
    const struct rg_policy_row *row = &table->rows[index];
    const char *flaw = rg_policy_row_flaw(row);
    const int line = line_of(table, index);
    const struct rg_algo *algo;
    int status;

    if (flaw)
        return rg_policy_fail(error_out, line, "%s", flaw);
    if (!algos)
        return RG_OK;
    algo = algo_of(algos, row);
    status = lint_name(row, line, algo, error_out);
    return status ? status : lint_reach(row, line, algo, error_out);
}

/* ---- rows among each other ---------------------------------------------- */

/* The row begins a group: behind `last`, which ends one. */
static int lint_begin(const struct rg_policy_table *table, int index,
                      const struct rg_policy_row *last,
                      struct rg_policy_error *error_out)
{
    const struct rg_policy_row *row = &table->rows[index];
    const int line = line_of(table, index);

    if (row->min)
        return rg_policy_fail(error_out, line,
                              "gap: sizes 0 to %llu of this group have no row",
                              (unsigned long long)row->min - 1);
    if (last && last->collective == row->collective &&
        last->dtype == row->dtype && row->min_ranks <= last->max_ranks)
        return rg_policy_fail(
            error_out, line, "ranks %d-%d overlap ranks %d-%d above",
            row->min_ranks, row->max_ranks, last->min_ranks, last->max_ranks);
    return RG_OK;
}

static int lint_next(const struct rg_policy_row *row, int line,
                     const struct rg_policy_row *last,
                     struct rg_policy_error *error_out)
{
    if (row->min < last->max)
        return rg_policy_fail(error_out, line,
                              "overlap: the row above reaches up to %llu",
                              (unsigned long long)last->max);
    if (row->min > last->max)
        return rg_policy_fail(
            error_out, line, "gap: sizes %llu to %llu have no row",
            (unsigned long long)last->max, (unsigned long long)row->min - 1);
    return RG_OK;
}

static int lint_end(const struct rg_policy_table *table, int index,
                    struct rg_policy_error *error_out)
{
    if (table->rows[index].max == UINT64_MAX)
        return RG_OK;
    return rg_policy_fail(error_out, line_of(table, index),
                          "the last row of a group must reach up to inf");
}

static int lint_place(const struct rg_policy_table *table, int index,
                      struct rg_policy_error *error_out)
{
    const struct rg_policy_row *row = &table->rows[index];
    const struct rg_policy_row *last = index ? row - 1 : NULL;
    const int line = line_of(table, index);
    int status;

    if (last && rg_policy_row_order(last, row) > 0)
        return rg_policy_fail(error_out, line,
                              "out of order: rows go by collective, dtype (any "
                              "first), ranks, min");
    if (last && rg_policy_row_joins(last, row))
        return lint_next(row, line, last, error_out);
    status = last ? lint_end(table, index - 1, error_out) : RG_OK;
    return status ? status : lint_begin(table, index, last, error_out);
}

/* A plan has room for so many rules: seen where the row's ranks begin. */
static int lint_rules(const struct rg_policy_table *table, int index,
                      struct rg_policy_error *error_out)
{
    const struct rg_policy_row *row = &table->rows[index];
    int count = 0;

    for (int i = 0; i < table->row_count; i++)
        count += table->rows[i].collective == row->collective &&
                 table->rows[i].min_ranks <= row->min_ranks &&
                 table->rows[i].max_ranks >= row->min_ranks;
    if (count <= RG_POLICY_MAX_RULES)
        return RG_OK;
    return rg_policy_fail(error_out, line_of(table, index),
                          "%d rows of %s for %d ranks: at most %d", count,
                          rg_collective_name(row->collective), row->min_ranks,
                          RG_POLICY_MAX_RULES);
}

int rg_policy_lint(const struct rg_policy_table *table,
                   const struct rg_algo *const *algos,
                   struct rg_policy_error *error_out)
{
    int status = RG_OK;

    if (!table->row_count)
        return rg_policy_fail(error_out, 0, "no rows");
    for (int i = 0; status == RG_OK && i < table->row_count; i++) {
        status = lint_row(table, i, algos, error_out);
        if (status == RG_OK)
            status = lint_place(table, i, error_out);
    }
    if (status == RG_OK)
        status = lint_end(table, table->row_count - 1, error_out);
    for (int i = 0; status == RG_OK && i < table->row_count; i++)
        status = lint_rules(table, i, error_out);
    return status;
}
