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
 * in segments, 6 reduce-scatter with all-gather (Rabenseifner); for broadcast
 * and reduce 3 is a chain in segments; for a barrier 4 has log2 rounds (Bruck).
 * A linear one is what each rank does with each. 0 is its own choice.
 */
struct ompi_name {
    enum rg_collective collective;
    const char *algorithm;
    int number;
    int segmented; /* with a chunk */
};
static const struct ompi_name ompi_names[] = {
    {RG_COLL_all_reduce, "doubling", 3, 3},
    {RG_COLL_all_reduce, "ring", 4, 5},
    {RG_COLL_all_reduce, "twoshot", 6, 6},
    {RG_COLL_all_gather, "direct", 1, 1},
    {RG_COLL_all_gather, "ring", 4, 4},
    {RG_COLL_all_to_all, "direct", 1, 1},
    {RG_COLL_barrier, "direct", 1, 1},
    {RG_COLL_barrier, "dissemination", 4, 4},
    {RG_COLL_broadcast, "direct", 1, 1},
    {RG_COLL_broadcast, "chain", 3, 3},
    {RG_COLL_gather, "direct", 1, 1},
    {RG_COLL_reduce, "direct", 1, 1},
    {RG_COLL_reduce, "chain", 3, 3},
    {RG_COLL_scatter, "direct", 1, 1},
};

/* In the order of their numbers. */
static const struct ompi_collective {
    enum rg_collective collective;
    int number;
    const char *name;
} ompi_collectives[] = {
    {RG_COLL_all_gather, 0, "all-gather"},
    {RG_COLL_all_reduce, 2, "all-reduce"},
    {RG_COLL_all_to_all, 3, "all-to-all"},
    {RG_COLL_barrier, 6, "barrier"},
    {RG_COLL_broadcast, 7, "broadcast"},
    {RG_COLL_gather, 9, "gather"},
    {RG_COLL_reduce, 11, "reduce"},
    {RG_COLL_scatter, 15, "scatter"},
};

enum {
    OMPI_NAMES = sizeof ompi_names / sizeof *ompi_names,
    OMPI_COLLECTIVES = sizeof ompi_collectives / sizeof *ompi_collectives
};

static const struct ompi_name *ompi_find(const struct rg_policy_row *row)
{
    for (int i = 0; i < OMPI_NAMES; i++)
        if (ompi_names[i].collective == row->collective &&
            strcmp(ompi_names[i].algorithm, row->algorithm) == 0)
            return &ompi_names[i];
    return NULL;
}

static int ompi_begins(const struct rg_policy_row *row,
                       enum rg_collective collective)
{
    return row->collective == collective && row->dtype == RG_POLICY_ANY_DTYPE &&
           row->min == 0;
}

static int ompi_group_rows(const struct rg_policy_table *table, int first)
{
    const struct rg_policy_row *rows = table->rows;
    int n = 1;

    while (first + n < table->row_count && rows[first + n].min > 0 &&
           rows[first + n].dtype == RG_POLICY_ANY_DTYPE &&
           rows[first + n].collective == rows[first].collective)
        n++;
    return n;
}

/* "size algorithm fan-out segment": from this size up to the next line's. */
static void ompi_row(const struct writer *writer,
                     const struct rg_policy_row *row)
{
    const struct ompi_name *name = ompi_find(row);
    const int number = !name ? 0 : row->chunk ? name->segmented : name->number;
    const int in_segments =
        name && (number == 5 || strcmp(name->algorithm, "chain") == 0);

    if (!number)
        drop(writer, row, "Open MPI has no %s; it chooses itself",
             row->algorithm);
    else if (row->channels || row->protocol != RG_PROTOCOL_PLAIN)
        drop(writer, row,
             "channels and protocol, which Open MPI does not have");
    fprintf(writer->file, "%" PRIu64 " %d 0 %" PRIu64 "\n", row->min, number,
            in_segments ? row->chunk : 0);
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

static int ompi_groups(const struct rg_policy_table *table,
                       enum rg_collective collective)
{
    int n = 0;

    for (int i = 0; i < table->row_count; i++)
        n += ompi_begins(&table->rows[i], collective);
    return n;
}

static int ompi_maps(enum rg_collective collective)
{
    for (int i = 0; i < OMPI_COLLECTIVES; i++)
        if (ompi_collectives[i].collective == collective)
            return 1;
    return 0;
}

static void ompi_collective(const struct writer *writer,
                            const struct ompi_collective *collective)
{
    const struct rg_policy_table *table = writer->table;
    const int groups = ompi_groups(table, collective->collective);

    if (!groups)
        return;
    fprintf(writer->file, "%d # %s\n%d # rank counts\n", collective->number,
            collective->name, groups);
    for (int i = 0; i < table->row_count; i++)
        if (ompi_begins(&table->rows[i], collective->collective))
            ompi_group(writer, i);
}

static void write_ompi(const struct writer *writer)
{
    const struct rg_policy_table *table = writer->table;
    int n = 0;

    for (int i = 0; i < table->row_count; i++) {
        const struct rg_policy_row *row = &table->rows[i];

        if (!ompi_maps(row->collective))
            drop(writer, row, "%s is not mapped",
                 rg_collective_name(row->collective));
        else
            is_written(writer, row);
    }
    for (int i = 0; i < OMPI_COLLECTIVES; i++)
        n += ompi_groups(table, ompi_collectives[i].collective) > 0;
    fprintf(writer->file, "%d # collectives\n", n);
    for (int i = 0; i < OMPI_COLLECTIVES; i++)
        ompi_collective(writer, &ompi_collectives[i]);
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
                row->protocol == RG_PROTOCOL_PLAIN
                    ? "simple"
                    : rg_protocol_name(row->protocol),
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
