#include "bench/tune_policy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algos/algos.h"
#include "harness/output.h"
#include "runtime/regroup.h"

/* The name's base and protocol; everything else is for any size and rank. */
static struct rg_policy_row row_of(const struct tune_space *space,
                                   int candidate, enum rg_collective collective,
                                   int ranks)
{
    const struct tune_candidate *c = &space->list[candidate];
    struct rg_policy_row row = {.collective = collective,
                                .dtype = RG_POLICY_ANY_DTYPE,
                                .min_ranks = ranks,
                                .max_ranks = ranks,
                                .max = UINT64_MAX,
                                .channels = c->channels,
                                .chunk = c->chunk};

    rg_policy_row_call(&row, space->bases[c->base].algo->name);
    return row;
}

/* ---- one candidate ------------------------------------------------------ */

static int unlimited(const struct tune_space *space)
{
    int base = 0;

    while (base < space->nbases && space->bases[base].max_bytes < UINT64_MAX)
        base++;
    return base < space->nbases ? base : -1;
}

static int add_one(struct rg_policy_table *table,
                   const struct tune_space *space, int candidate,
                   enum rg_collective collective, int ranks)
{
    struct rg_policy_row row = row_of(space, candidate, collective, ranks);
    const uint64_t most = space->list[candidate].max_bytes;
    const int rest = unlimited(space);
    int status;

    if (most == UINT64_MAX)
        return rg_policy_add_row(table, &row);
    row.max = most + 1;
    status = rg_policy_add_row(table, &row);
    if (status != RG_OK || rest < 0)
        return status == RG_OK ? RG_EINVAL : status;
    row = row_of(space, rest, collective, ranks);
    row.min = most + 1;
    return rg_policy_add_row(table, &row);
}

static int copy_text(const struct rg_policy_table *table, char *text_out,
                     size_t room)
{
    char *text;
    int status = rg_policy_write(table, &text);

    if (status != RG_OK)
        return status;
    if (strlen(text) < room)
        strcpy(text_out, text);
    else
        status = RG_ENOSPC;
    free(text);
    return status;
}

int tune_policy_of(const struct tune_space *space, int candidate,
                   enum rg_collective collective, int ranks, char *text_out,
                   size_t room)
{
    const struct tune_candidate *c = &space->list[candidate];
    struct rg_policy_table *table;
    int status;

    if (!c->chunk) {
        snprintf(text_out, room, c->channels ? "%s=%s+%uch" : "%s=%s",
                 rg_collective_name(collective),
                 space->bases[c->base].algo->name, c->channels);
        return RG_OK;
    }
    status = rg_policy_create("any", &table);
    if (status != RG_OK)
        return status;
    status = add_one(table, space, candidate, collective, ranks);
    if (status == RG_OK)
        status = copy_text(table, text_out, room);
    rg_policy_destroy(table);
    return status;
}

/* ---- the table ---------------------------------------------------------- */

/* Four digits: more are noise. */
static double rounded(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.4g", value);
    return atof(text);
}

/* A row shows the figures of the size in the middle of those swept in it. */
static void take_figures(const struct tune_space *space,
                         const struct tune_result *result,
                         struct rg_policy_row *row)
{
    int first = -1, last = -1;
    const struct tune_point *point;

    for (int i = 0; i < result->npoints; i++) {
        if (result->points[i].bytes < row->min ||
            result->points[i].bytes >= row->max)
            continue;
        first = first < 0 ? i : first;
        last = i;
    }
    if (first < 0)
        return;
    point = &result->points[(first + last) / 2];
    if (isfinite(point->p50_us))
        row->p50_us = rounded(point->p50_us);
    if (point->runner_up < 0 || !isfinite(point->margin))
        return;
    snprintf(row->runner_up, sizeof row->runner_up, "%s",
             space->list[point->runner_up].name);
    for (char *sign = row->runner_up; (sign = strchr(sign, '+'));)
        *sign = ':'; /* the table's words have no "+" */
    row->margin = rounded(point->margin);
}

int tune_policy_rows(struct rg_policy_table *table,
                     const struct tune_space *space,
                     const struct tune_result *result,
                     enum rg_collective collective, int ranks)
{
    int status = RG_OK;

    for (int k = 0; k < result->nsegments && status == RG_OK; k++) {
        struct rg_policy_row row =
            row_of(space, result->segments[k].candidate, collective, ranks);

        row.min = result->segments[k].from;
        if (k + 1 < result->nsegments)
            row.max = result->segments[k + 1].from;
        take_figures(space, result, &row);
        status = rg_policy_add_row(table, &row);
    }
    return status;
}

/* ---- the file ----------------------------------------------------------- */

/* A new file takes the name. */
static int write_file(const char *program, const char *path, const char *text)
{
    const char *fault = rg_output_fault(path, RG_OUTPUT_NEW);
    char temporary[4096];
    FILE *file;
    int failed;

    if (fault) {
        rg_say(program, "cannot write '%s': %s", path, fault);
        return RG_ESYSTEM;
    }
    snprintf(temporary, sizeof temporary, "%s.new", path);
    file = fopen(temporary, "w");
    if (file) {
        failed = fputs(text, file) == EOF;
        failed |= fclose(file) != 0;
        if (!failed && rename(temporary, path) == 0)
            return RG_OK;
        failed = errno;
        unlink(temporary);
        errno = failed;
    }
    rg_say(program, "cannot write '%s': %s", path, strerror(errno));
    return RG_ESYSTEM;
}

int tune_policy_save(const struct rg_policy_table *table, const char *program,
                     const char *path)
{
    struct rg_policy_error error;
    char *text;
    int status = rg_policy_lint(table, rg_algos, &error);

    if (status != RG_OK) {
        rg_say(program, "row %d: %s", error.line, error.text);
        return status;
    }
    status = rg_policy_write(table, &text);
    if (status != RG_OK)
        return status;
    status = write_file(program, path, text);
    free(text);
    return status;
}
