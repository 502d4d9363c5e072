#include "runtime/policy/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/escape.h"
#include "runtime/core/hash.h"

int rg_policy_fail(struct rg_policy_error *error_out, int line,
                   const char *format, ...)
{
    va_list args;

    error_out->line = line;
    va_start(args, format);
    vsnprintf(error_out->text, sizeof error_out->text, format, args);
    va_end(args);
    return RG_EPOLICY;
}

void rg_policy_error_print(const struct rg_policy_error *error,
                           const char *file, char *line_out, size_t bytes)
{
    size_t used = rg_escape(file, line_out, bytes);

    if (error->line > 0)
        snprintf(line_out + used, bytes - used, ":%d: %s", error->line,
                 error->text);
    else
        snprintf(line_out + used, bytes - used, ": %s", error->text);
}

/* ---- rows --------------------------------------------------------------- */

static int order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

int rg_policy_row_order(const struct rg_policy_row *a,
                        const struct rg_policy_row *b)
{
    int order = order_of(a->collective, b->collective);

    if (!order)
        order = (a->dtype > b->dtype) - (a->dtype < b->dtype);
    if (!order)
        order = order_of((uint64_t)a->min_ranks, (uint64_t)b->min_ranks);
    if (!order)
        order = order_of((uint64_t)a->max_ranks, (uint64_t)b->max_ranks);
    return order ? order : order_of(a->min, b->min);
}

int rg_policy_row_joins(const struct rg_policy_row *a,
                        const struct rg_policy_row *b)
{
    return a->collective == b->collective && a->dtype == b->dtype &&
           a->min_ranks == b->min_ranks && a->max_ranks == b->max_ranks;
}

int rg_policy_is_word(const char *text, size_t bytes)
{
    size_t length = 0;

    for (; length < bytes && text[length]; length++) {
        const char c = text[length];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
            !(c >= '0' && c <= '9') && !strchr("_-.:", c))
            return 0;
    }
    return length > 0 && length < bytes;
}

static int is_figure(double value)
{
    return isfinite(value) && value >= 0;
}

static const char *flaw_of_choice(const struct rg_policy_row *row)
{
    if (!rg_policy_is_word(row->algorithm, sizeof row->algorithm) ||
        !strcmp(row->algorithm, "-"))
        return "the algorithm has no name";
    if (!rg_protocol_name(row->protocol))
        return "unknown protocol";
    if (row->channels > RG_POLICY_MAX_CHANNELS)
        return "channels are - or 1 to 64";
    if (row->chunk % 16 || row->chunk > 1 << 30)
        return "a chunk is - or a multiple of 16 bytes up to 1 GiB";
    if (row->runner_up[0] &&
        (!rg_policy_is_word(row->runner_up, sizeof row->runner_up) ||
         !strcmp(row->runner_up, "-")))
        return "the runner-up is - or a name";
    if (!is_figure(row->p50_us) || !is_figure(row->margin))
        return "p50_us and margin are - or numbers from 0";
    return NULL;
}

const char *rg_policy_row_flaw(const struct rg_policy_row *row)
{
    if ((int)row->collective < 0 || row->collective >= RG_COLL_COUNT)
        return "unknown collective";
    if (row->dtype < RG_POLICY_ANY_DTYPE || row->dtype >= RG_DTYPE_COUNT)
        return "unknown dtype";
    if (row->min_ranks < 1 || row->max_ranks < row->min_ranks ||
        row->max_ranks > RG_POLICY_MAX_RANKS)
        return "ranks are a number or a range from 1 to 65536";
    if (row->min >= row->max)
        return "min is not below max";
    return flaw_of_choice(row);
}

const char *rg_protocol_name(enum rg_protocol protocol)
{
    static const char *const names[RG_PROTOCOL_COUNT] = {"-", "ll", "ll128"};

    return (unsigned)protocol < RG_PROTOCOL_COUNT ? names[protocol] : NULL;
}

void rg_policy_row_name(const struct rg_policy_row *row,
                        char name_out[RG_POLICY_NAME_BYTES])
{
    const int plain = row->protocol == RG_PROTOCOL_PLAIN;
    const char *tail = plain ? "" : rg_protocol_name(row->protocol);
    const size_t room = RG_POLICY_NAME_BYTES - 2 - strlen(tail);

    snprintf(name_out, RG_POLICY_NAME_BYTES, "%.*s%s%s", (int)room,
             row->algorithm, plain ? "" : "_", tail);
}

void rg_policy_row_call(struct rg_policy_row *row, const char *name)
{
    const char *tail = strrchr(name, '_');
    size_t length = strlen(name);

    row->protocol = RG_PROTOCOL_PLAIN;
    for (int p = 1; tail && tail > name && p < RG_PROTOCOL_COUNT; p++)
        if (!strcmp(tail + 1, rg_protocol_name((enum rg_protocol)p))) {
            row->protocol = (enum rg_protocol)p;
            length = (size_t)(tail - name);
        }
    snprintf(row->algorithm, sizeof row->algorithm, "%.*s", (int)length, name);
}

/* ---- tables ------------------------------------------------------------- */

int rg_policy_create(const char *topology, struct rg_policy_table **table_out)
{
    struct rg_policy_table *table;

    if (!rg_policy_is_word(topology, RG_POLICY_TOPOLOGY_BYTES))
        return RG_EINVAL;
    table = calloc(1, sizeof *table);
    if (!table)
        return RG_ENOMEM;
    snprintf(table->topology, sizeof table->topology, "%s", topology);
    *table_out = table;
    return RG_OK;
}

void rg_policy_destroy(struct rg_policy_table *table)
{
    if (!table)
        return;
    for (int i = 0; i < table->note_count; i++)
        free(table->notes[i]);
    free(table->notes);
    free(table->rows);
    free(table);
}

static int is_note(const char *note)
{
    const size_t length = strlen(note);

    for (size_t i = 0; i < length; i++)
        if (note[i] < ' ' || note[i] > '~')
            return 0;
    return length > 0 &&
           length + sizeof "# provenance: " <= (size_t)RG_POLICY_MAX_LINE + 1 &&
           note[0] != ' ' && note[length - 1] != ' ';
}

int rg_policy_add_note(struct rg_policy_table *table, const char *note)
{
    char **notes, *copy;

    if (!is_note(note))
        return RG_EINVAL;
    if (table->note_count == RG_POLICY_MAX_NOTES)
        return RG_ENOSPC;
    notes =
        realloc(table->notes, (size_t)(table->note_count + 1) * sizeof *notes);
    if (!notes)
        return RG_ENOMEM;
    table->notes = notes;
    copy = strdup(note);
    if (!copy)
        return RG_ENOMEM;
    notes[table->note_count++] = copy;
    return RG_OK;
}

int rg_policy_row_insert(struct rg_policy_table *table, int index,
                         const struct rg_policy_row *row)
{
    struct rg_policy_row *rows;

    if (table->row_count == RG_POLICY_MAX_ROWS)
        return RG_ENOSPC;
    rows = realloc(table->rows, (size_t)(table->row_count + 1) * sizeof *rows);
    if (!rows)
        return RG_ENOMEM;
    table->rows = rows;
    memmove(rows + index + 1, rows + index,
            (size_t)(table->row_count - index) * sizeof *rows);
    rows[index] = *row;
    table->row_count++;
    return RG_OK;
}

int rg_policy_add_row(struct rg_policy_table *table,
                      const struct rg_policy_row *row)
{
    int at = table->row_count;

    if (rg_policy_row_flaw(row))
        return RG_EINVAL;
    while (at > 0 && rg_policy_row_order(&table->rows[at - 1], row) > 0)
        at--;
    return rg_policy_row_insert(table, at, row);
}

uint64_t rg_policy_hash(const struct rg_policy_table *table)
{
    uint64_t hash = 0;
    char *text;

    if (rg_policy_write(table, &text))
        return 0;
    hash = rg_hash(RG_HASH_INIT, text, strlen(text));
    free(text);
    return hash;
}

/* ---- look-up ------------------------------------------------------------ */

static int row_serves(const struct rg_policy_row *row,
                      enum rg_collective collective, int ranks)
{
    return row->collective == collective && row->min_ranks <= ranks &&
           ranks <= row->max_ranks;
}

int rg_policy_ranks(const struct rg_policy_table *table,
                    enum rg_collective collective, int ranks)
{
    int nearest = 0;

    for (int i = 0; i < table->row_count; i++) {
        const struct rg_policy_row *row = &table->rows[i];

        if (row_serves(row, collective, ranks))
            return ranks;
        if (row->collective == collective && row->max_ranks < ranks &&
            row->max_ranks > nearest)
            nearest = row->max_ranks;
    }
    return nearest;
}

static const struct rg_policy_row *
find_typed(const struct rg_policy_table *table, enum rg_collective collective,
           int dtype, int ranks, uint64_t bytes)
{
    for (int i = 0; i < table->row_count; i++) {
        const struct rg_policy_row *row = &table->rows[i];

        if (row_serves(row, collective, ranks) && row->dtype == dtype &&
            row->min <= bytes && (bytes < row->max || row->max == UINT64_MAX))
            return row;
    }
    return NULL;
}

const struct rg_policy_row *rg_policy_find(const struct rg_policy_table *table,
                                           enum rg_collective collective,
                                           enum rg_dtype dtype, int ranks,
                                           uint64_t bytes)
{
    const int served = rg_policy_ranks(table, collective, ranks);
    const struct rg_policy_row *row =
        find_typed(table, collective, (int)dtype, served, bytes);

    return row ? row
               : find_typed(table, collective, RG_POLICY_ANY_DTYPE, served,
                            bytes);
}

/* ---- files -------------------------------------------------------------- */

/* Opens nothing that could be waited for, or had no end. */
static FILE *open_file(const char *path, struct rg_policy_error *error_out)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat place;
    FILE *file = NULL;

    if (fd < 0 || fstat(fd, &place) != 0)
        rg_policy_fail(error_out, 0, "cannot be opened: %s", strerror(errno));
    else if (S_ISDIR(place.st_mode))
        rg_policy_fail(error_out, 0, "cannot be read: %s", strerror(EISDIR));
    else if (!S_ISREG(place.st_mode))
        rg_policy_fail(error_out, 0, "is not a regular file");
    else if (!(file = fdopen(fd, "rb")))
        rg_policy_fail(error_out, 0, "cannot be opened: %s", strerror(errno));
    if (!file && fd >= 0)
        close(fd);
    return file;
}

int rg_policy_read(const char *path, char **text_out, size_t *bytes_out,
                   struct rg_policy_error *error_out)
{
    const size_t room = RG_POLICY_MAX_BYTES + 1;
    FILE *file = open_file(path, error_out);
    char *text = file ? malloc(room + 1) : NULL;
    size_t bytes = text ? fread(text, 1, room, file) : 0;
    int status = RG_OK;

    if (!file)
        return RG_EPOLICY;
    if (ferror(file))
        status = rg_policy_fail(error_out, 0, "cannot be read");
    else if (!text)
        status = RG_ENOMEM;
    else if (bytes == room)
        status = rg_policy_fail(error_out, 0, "larger than %d bytes",
                                RG_POLICY_MAX_BYTES);
    fclose(file);
    if (status) {
        free(text);
        return status;
    }
    text[bytes] = 0;
    *text_out = text;
    *bytes_out = bytes;
    return RG_OK;
}
