#include "bench/tune_export.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "runtime/regroup.h"

struct writer {
    const struct rg_policy_table *table;
    FILE *file;
    void (*dropped)(void *arg, const char *line);
    void *arg;
};

static void drop(const struct writer *writer, const struct rg_policy_row *row,
                 const char *format, ...) __attribute__((format(printf, 3, 4)));

static void drop(const struct writer *writer, const struct rg_policy_row *row,
                 const char *format, ...)
{
    char line[256];
    va_list list;
    int n = snprintf(line, sizeof line, "line %d dropped: ", row->line);

    va_start(list, format);
    vsnprintf(line + n, sizeof line - (size_t)n, format, list);
    va_end(list);
    writer->dropped(writer->arg, line);
}

/* Neither format knows types, so one of each size is enough. */
static int is_written(const struct writer *writer,
                      const struct rg_policy_row *row)
{
    if (row->dtype == RG_POLICY_ANY_DTYPE)
        return 1;
    drop(writer, row, "the format has no types, and this is for %s only",
         rg_dtype_name((enum rg_dtype)row->dtype));
    return 0;
}

/* ---- Open MPI ----------------------------------------------------------- */

/*
 * coll/tuned numbers collectives in the order of MPI's own list, and the
 * algorithms of each: for all-reduce 3 is recursive doubling, 4 ring, 5 ring
 * in segments, 6 reduce-scatter with all-gather (Rabenseifner). 0 is its own
 * choice.
 */
struct ompi_name {
    const char *algorithm;
    int number;
};
static const struct ompi_name ompi_all_reduce[] = {
    {"doubling", 3}, {"ring", 4}, {"twoshot", 6}};
enum {
    OMPI_ALL_REDUCE = 2,
    OMPI_SEGMENTED_RING = 5,
    OMPI_NAMES = sizeof ompi_all_reduce / sizeof *ompi_all_reduce
};

static int ompi_number(const struct rg_policy_row *row)
{
    for (int i = 0; i < OMPI_NAMES; i++)
        if (strcmp(ompi_all_reduce[i].algorithm, row->algorithm) == 0)
            return row->chunk && ompi_all_reduce[i].number == 4
                       ? OMPI_SEGMENTED_RING
                       : ompi_all_reduce[i].number;
    return 0;
}

static int ompi_begins(const struct rg_policy_table *table, int i)
{
    const struct rg_policy_row *row = &table->rows[i];

    return row->collective == RG_COLL_all_reduce &&
           row->dtype == RG_POLICY_ANY_DTYPE && row->min == 0;
}

static int ompi_group_rows(const struct rg_policy_table *table, int first)
{
    int n = 0;

    while (
        first + n < table->row_count &&
        (n == 0 || (table->rows[first + n].min > 0 &&
                    table->rows[first + n].dtype == RG_POLICY_ANY_DTYPE &&
                    table->rows[first + n].collective == RG_COLL_all_reduce)))
        n++;
    return n;
}

/* "size algorithm fan-out segment": from this size up to the next line's. */
static void ompi_row(const struct writer *writer,
                     const struct rg_policy_row *row)
{
    const int number = ompi_number(row);

    if (!number)
        drop(writer, row, "Open MPI has no %s; it chooses itself",
             row->algorithm);
    else if (row->channels || row->protocol != RG_PROTOCOL_PLAIN)
        drop(writer, row,
             "channels and protocol, which Open MPI does not have");
    fprintf(writer->file, "%" PRIu64 " %d 0 %" PRIu64 "\n", row->min, number,
            number == OMPI_SEGMENTED_RING ? row->chunk : 0);
}

static void ompi_group(const struct writer *writer, int first)
{
    const struct rg_policy_row *row = &writer->table->rows[first];
    const int n = ompi_group_rows(writer->table, first);

    fprintf(writer->file, "%d # ranks, up to the next\n%d # sizes\n",
            row->min_ranks, n);
    for (int i = 0; i < n; i++)
        ompi_row(writer, row + i);
}

static void write_ompi(const struct writer *writer)
{
    const struct rg_policy_table *table = writer->table;
    int groups = 0;

    for (int i = 0; i < table->row_count; i++) {
        groups += ompi_begins(table, i);
        if (table->rows[i].collective != RG_COLL_all_reduce)
            drop(writer, &table->rows[i], "only all_reduce is mapped");
        else
            is_written(writer, &table->rows[i]);
    }
    fprintf(writer->file,
            "1 # collectives\n%d # all-reduce\n%d # rank counts\n",
            OMPI_ALL_REDUCE, groups);
    for (int i = 0; i < table->row_count; i++)
        if (ompi_begins(table, i))
            ompi_group(writer, i);
}

/* ---- NCCL --------------------------------------------------------------- */

static const char *nccl_collective(enum rg_collective collective)
{
    switch (collective) {
    case RG_COLL_all_reduce:
        return "allreduce";
    case RG_COLL_all_gather:
        return "allgather";
    case RG_COLL_reduce_scatter:
        return "reducescatter";
    case RG_COLL_broadcast:
        return "broadcast";
    case RG_COLL_reduce:
        return "reduce";
    default:
        return NULL;
    }
}

/* collective,min,max,algorithm,protocol,channels,nodes,ranks: max inclusive. */
static void nccl_row(const struct writer *writer,
                     const struct rg_policy_row *row)
{
    const uint64_t max =
        row->max == UINT64_MAX ? UINT64_MAX >> 1 : row->max - 1;

    for (int ranks = row->min_ranks; ranks <= row->max_ranks; ranks++)
        fprintf(writer->file,
                "%s,%" PRIu64 ",%" PRIu64 ",ring,%s,%d,-1,%d,-1,-1\n",
                nccl_collective(row->collective), row->min, max,
                row->protocol == RG_PROTOCOL_LL ? "ll" : "simple",
                row->channels ? (int)row->channels : -1, ranks);
}

static void write_nccl(const struct writer *writer)
{
    fprintf(writer->file,
            "# collective_type,min_bytes,max_bytes,algorithm,protocol,"
            "channels,nNodes,nRanks,numPipeOps,regBuff\n");
    for (int i = 0; i < writer->table->row_count; i++) {
        const struct rg_policy_row *row = &writer->table->rows[i];

        if (!nccl_collective(row->collective)) {
            drop(writer, row, "the format has no %s",
                 rg_collective_name(row->collective));
        } else if (strcmp(row->algorithm, "ring") != 0) {
            drop(writer, row, "NCCL has no %s; it chooses itself",
                 row->algorithm);
        } else if (is_written(writer, row)) {
            if (row->chunk)
                drop(writer, row, "the chunk, which the format does not have");
            nccl_row(writer, row);
        }
    }
}

void tune_export(const struct rg_policy_table *table, enum tune_format format,
                 FILE *file, void (*dropped)(void *arg, const char *line),
                 void *arg)
{
    const struct writer writer = {table, file, dropped, arg};

    if (format == TUNE_FORMAT_OMPI)
        write_ompi(&writer);
    else
        write_nccl(&writer);
}
