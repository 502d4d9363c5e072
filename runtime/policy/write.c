/* A table as text. */
#include "runtime/policy/rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/regroup.h"

enum { CELL_BYTES = 32 };

/* A text that grows up to a table's bound. */
struct sink {
    char *text;
    size_t bytes;
    int status;
};

static void put(struct sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put(struct sink *sink, const char *format, ...)
{
    const size_t room = RG_POLICY_MAX_BYTES + 1 - sink->bytes;
    va_list args;
    int length;

    if (sink->status)
        return;
    va_start(args, format);
    length = vsnprintf(sink->text + sink->bytes, room, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= room)
        sink->status = RG_ENOSPC;
    else
        sink->bytes += (size_t)length;
}

/* ---- cells -------------------------------------------------------------- */

static const char *cell_number(uint64_t value, char cell[CELL_BYTES])
{
    if (value)
        snprintf(cell, CELL_BYTES, "%llu", (unsigned long long)value);
    else
        strcpy(cell, "-");
    return cell;
}

static const char *cell_max(uint64_t value, char cell[CELL_BYTES])
{
    if (value == UINT64_MAX)
        strcpy(cell, "inf");
    else
        snprintf(cell, CELL_BYTES, "%llu", (unsigned long long)value);
    return cell;
}

/* The fewest digits that read back as the same number. */
static const char *cell_figure(double value, char cell[CELL_BYTES])
{
    strcpy(cell, "-");
    for (int digits = 1; value > 0 && digits <= 17; digits++) {
        snprintf(cell, CELL_BYTES, "%.*g", digits, value);
        if (strtod(cell, NULL) == value)
            break;
    }
    return cell;
}

static const char *cell_ranks(const struct rg_policy_row *row,
                              char cell[CELL_BYTES])
{
    if (row->min_ranks == row->max_ranks)
        snprintf(cell, CELL_BYTES, "%d", row->min_ranks);
    else
        snprintf(cell, CELL_BYTES, "%d-%d", row->min_ranks, row->max_ranks);
    return cell;
}

/* ---- lines -------------------------------------------------------------- */

#define COLUMNS "%-14s  %-5s  %-7s  %-10s  %-10s  %-14s  %-8s  %-8s  %-8s"

static void put_row(struct sink *sink, const struct rg_policy_row *row)
{
    char ranks[CELL_BYTES], max[CELL_BYTES], channels[CELL_BYTES];
    char chunk[CELL_BYTES], p50[CELL_BYTES], margin[CELL_BYTES];
    char min[CELL_BYTES];

    snprintf(min, sizeof min, "%llu", (unsigned long long)row->min);
    put(sink, COLUMNS "  %-8s  %-14s  %s\n",
        rg_collective_name(row->collective),
        row->dtype == RG_POLICY_ANY_DTYPE
            ? "any"
            : rg_dtype_name((enum rg_dtype)row->dtype),
        cell_ranks(row, ranks), min, cell_max(row->max, max), row->algorithm,
        cell_number(row->channels, channels), rg_protocol_name(row->protocol),
        cell_number(row->chunk, chunk), cell_figure(row->p50_us, p50),
        row->runner_up[0] ? row->runner_up : "-",
        cell_figure(row->margin, margin));
}

static void put_table(struct sink *sink, const struct rg_policy_table *table)
{
    put(sink, "regroup-policy %d\n", RG_POLICY_VERSION);
    for (int i = 0; i < table->note_count; i++)
        put(sink, "# provenance: %s\n", table->notes[i]);
    put(sink, "unit bytes-per-rank-buffer\ntopology %s\n", table->topology);
    put(sink, COLUMNS "  %-8s  %-14s  %s\n", "# collective", "dtype", "ranks",
        "min", "max", "algorithm", "channels", "protocol", "chunk", "p50_us",
        "runner_up", "margin");
    for (int i = 0; i < table->row_count; i++)
        put_row(sink, &table->rows[i]);
}

int rg_policy_write(const struct rg_policy_table *table, char **text_out)
{
    struct sink sink = {malloc(RG_POLICY_MAX_BYTES + 1), 0, RG_OK};

    if (!sink.text)
        return RG_ENOMEM;
    put_table(&sink, table);
    if (sink.status) {
        free(sink.text);
        return sink.status;
    }
    *text_out = sink.text;
    return RG_OK;
}
