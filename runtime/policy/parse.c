/* Text to table, line by line. */
#include "runtime/policy/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/regroup.h"

enum { FIELDS = 12 };

struct parser {
    struct rg_policy_table *table;
    struct rg_policy_error *error;
    int line;
    int has_version, has_unit, has_topology;
    char text[RG_POLICY_MAX_LINE + 1]; /* the line, cut into fields */
    char *field[FIELDS + 1];
    int count;
};

#define FAIL(parser, ...)                                                      \
    rg_policy_fail((parser)->error, (parser)->line, __VA_ARGS__)

/* ---- fields ------------------------------------------------------------- */

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Cuts the line at blanks; more fields than there can be count as one more. */
static void cut(struct parser *parser)
{
    char *at = parser->text;

    for (parser->count = 0; parser->count <= FIELDS; parser->count++) {
        while (is_blank(*at))
            *at++ = 0;
        if (!*at)
            return;
        parser->field[parser->count] = at;
        while (*at && !is_blank(*at))
            at++;
    }
}

/* Digits only, below UINT64_MAX. */
static int read_number(const char *text, uint64_t *value_out)
{
    uint64_t value = 0;

    if (!*text)
        return RG_EINVAL;
    for (; *text; text++) {
        const uint64_t digit = (uint64_t)(*text - '0');

        if (*text < '0' || *text > '9' || value > (UINT64_MAX - digit - 1) / 10)
            return RG_EINVAL;
        value = value * 10 + digit;
    }
    *value_out = value;
    return RG_OK;
}

static int read_ranks(struct parser *parser, char *text,
                      struct rg_policy_row *row)
{
    char *dash = strchr(text, '-');
    uint64_t low, high;

    if (dash)
        *dash = 0;
    if (read_number(text, &low) || low > RG_POLICY_MAX_RANKS ||
        read_number(dash ? dash + 1 : text, &high) ||
        high > RG_POLICY_MAX_RANKS || low < 1 || low > high)
        return FAIL(parser, "ranks are a number or a range from 1 to %d",
                    RG_POLICY_MAX_RANKS);
    row->min_ranks = (int)low;
    row->max_ranks = (int)high;
    return RG_OK;
}

static int read_sizes(struct parser *parser, const char *min, const char *max,
                      struct rg_policy_row *row)
{
    row->max = UINT64_MAX;
    if (read_number(min, &row->min))
        return FAIL(parser, "min '%.40s' is no number of bytes", min);
    if (strcmp(max, "inf") && read_number(max, &row->max))
        return FAIL(parser, "max '%.40s' is no number of bytes, and not inf",
                    max);
    return RG_OK;
}

static int read_name(struct parser *parser, const char *what, const char *text,
                     char name[RG_POLICY_NAME_BYTES])
{
    if (!rg_policy_is_word(text, RG_POLICY_NAME_BYTES))
        return FAIL(parser, "%s '%.40s' is no name", what, text);
    strcpy(name, text);
    return RG_OK;
}

/* "-" or a number; 0 is not written as one. */
static int read_optional(struct parser *parser, const char *what,
                         const char *text, uint64_t most, uint64_t *value_out)
{
    *value_out = 0;
    if (!strcmp(text, "-"))
        return RG_OK;
    if (read_number(text, value_out) || !*value_out || *value_out > most)
        return FAIL(parser,
                    "%s '%.40s' is neither - nor a number from 1 to %llu", what,
                    text, (unsigned long long)most);
    return RG_OK;
}

static int read_figure(struct parser *parser, const char *what,
                       const char *text, double *value_out)
{
    char *end;

    *value_out = 0;
    if (!strcmp(text, "-"))
        return RG_OK;
    *value_out = strtod(text, &end);
    if (strspn(text, "0123456789.e+-") != strlen(text) || *end ||
        !isfinite(*value_out) || *value_out < 0 || end == text)
        return FAIL(parser, "%s '%.40s' is neither - nor a number", what, text);
    *value_out += 0.0; /* no negative zero */
    return RG_OK;
}

/* ---- rows --------------------------------------------------------------- */

static int read_collective(struct parser *parser, const char *text,
                           enum rg_collective *collective_out)
{
    for (int i = 0; i < RG_COLL_COUNT; i++)
        if (!strcmp(rg_collective_name((enum rg_collective)i), text)) {
            *collective_out = (enum rg_collective)i;
            return RG_OK;
        }
    return FAIL(parser, "unknown collective '%.40s'", text);
}

static int read_dtype(struct parser *parser, const char *text, int *dtype_out)
{
    enum rg_dtype dtype;

    *dtype_out = RG_POLICY_ANY_DTYPE;
    if (!strcmp(text, "any"))
        return RG_OK;
    if (rg_dtype_parse(text, &dtype))
        return FAIL(parser, "unknown dtype '%.40s'", text);
    *dtype_out = (int)dtype;
    return RG_OK;
}

static int read_protocol(struct parser *parser, const char *text,
                         enum rg_protocol *protocol_out)
{
    for (int p = 0; p < RG_PROTOCOL_COUNT; p++)
        if (!strcmp(text, rg_protocol_name((enum rg_protocol)p))) {
            *protocol_out = (enum rg_protocol)p;
            return RG_OK;
        }
    return FAIL(parser, "unknown protocol '%.40s': expected -, ll or ll128",
                text);
}

/* The columns that say where the row holds. */
static int read_domain(struct parser *parser, struct rg_policy_row *row)
{
    int status = read_collective(parser, parser->field[0], &row->collective);

    if (status == RG_OK)
        status = read_dtype(parser, parser->field[1], &row->dtype);
    if (status == RG_OK)
        status = read_ranks(parser, parser->field[2], row);
    if (status == RG_OK)
        status = read_sizes(parser, parser->field[3], parser->field[4], row);
    return status;
}

/* Those that say what is to run, and why. */
static int read_choice(struct parser *parser, struct rg_policy_row *row)
{
    uint64_t channels = 0;
    int status =
        read_name(parser, "algorithm", parser->field[5], row->algorithm);

    if (status == RG_OK)
        status = read_optional(parser, "channels", parser->field[6],
                               RG_POLICY_MAX_CHANNELS, &channels);
    row->channels = (unsigned)channels;
    if (status == RG_OK)
        status = read_protocol(parser, parser->field[7], &row->protocol);
    if (status == RG_OK)
        status = read_optional(parser, "chunk", parser->field[8], 1 << 30,
                               &row->chunk);
    if (status == RG_OK)
        status = read_figure(parser, "p50_us", parser->field[9], &row->p50_us);
    if (status == RG_OK && strcmp(parser->field[10], "-"))
        status =
            read_name(parser, "runner_up", parser->field[10], row->runner_up);
    if (status == RG_OK)
        status = read_figure(parser, "margin", parser->field[11], &row->margin);
    return status;
}

static int read_row(struct parser *parser)
{
    struct rg_policy_row row = {.line = parser->line};
    int status;

    if (!parser->has_unit)
        return FAIL(parser, "a row before the line \"unit "
                            "bytes-per-rank-buffer\"");
    if (!parser->has_topology)
        return FAIL(parser, "a row before the topology line");
    status = read_collective(parser, parser->field[0], &row.collective);
    if (status)
        return status;
    if (parser->count != FIELDS)
        return FAIL(parser, "%s%d fields: a row has %d",
                    parser->count > FIELDS ? "more than " : "",
                    parser->count > FIELDS ? FIELDS : parser->count, FIELDS);
    status = read_domain(parser, &row);
    if (status == RG_OK)
        status = read_choice(parser, &row);
    if (status)
        return status;
    status =
        rg_policy_row_insert(parser->table, parser->table->row_count, &row);
    return status == RG_ENOSPC
               ? FAIL(parser, "more than %d rows", RG_POLICY_MAX_ROWS)
               : status;
}

/* ---- the head ----------------------------------------------------------- */

static int read_version(struct parser *parser)
{
    uint64_t version;

    if (parser->count != 2 || strcmp(parser->field[0], "regroup-policy") ||
        parser->line != 1)
        return FAIL(parser, "the first line must be \"regroup-policy %d\"",
                    RG_POLICY_VERSION);
    if (read_number(parser->field[1], &version) || version != RG_POLICY_VERSION)
        return FAIL(parser, "version '%.40s': this reads version %d",
                    parser->field[1], RG_POLICY_VERSION);
    parser->has_version = 1;
    return RG_OK;
}

static int read_unit(struct parser *parser)
{
    if (parser->has_unit++)
        return FAIL(parser, "a second unit line");
    if (parser->count != 2 || strcmp(parser->field[1], "bytes-per-rank-buffer"))
        return FAIL(parser, "the unit must be bytes-per-rank-buffer");
    return RG_OK;
}

static int read_topology(struct parser *parser)
{
    if (parser->has_topology++)
        return FAIL(parser, "a second topology line");
    if (parser->count != 2 ||
        !rg_policy_is_word(parser->field[1], RG_POLICY_TOPOLOGY_BYTES))
        return FAIL(parser, "the topology must be one word of at most %d bytes",
                    RG_POLICY_TOPOLOGY_BYTES - 1);
    strcpy(parser->table->topology, parser->field[1]);
    return RG_OK;
}

/* ---- lines -------------------------------------------------------------- */

static int read_fields(struct parser *parser)
{
    const char *first = parser->field[0];

    if (!parser->has_version)
        return read_version(parser);
    if (!strcmp(first, "regroup-policy"))
        return FAIL(parser, "a second first line");
    if (!strcmp(first, "unit"))
        return read_unit(parser);
    if (!strcmp(first, "topology"))
        return read_topology(parser);
    return read_row(parser);
}

/* Keeps a provenance line's text. */
static int read_comment(struct parser *parser, char *text)
{
    static const char mark[] = "provenance:";
    size_t length;
    int status;

    text += strspn(text, " \t");
    if (strncmp(text, mark, sizeof mark - 1))
        return RG_OK;
    text += sizeof mark - 1;
    text += strspn(text, " \t");
    for (char *at = text; *at; at++)
        *at = *at == '\t' ? ' ' : *at;
    length = strlen(text);
    while (length > 0 && text[length - 1] == ' ')
        text[--length] = 0;
    status = length ? rg_policy_add_note(parser->table, text) : RG_OK;
    if (status == RG_EINVAL)
        return FAIL(parser, "a provenance line that is too long");
    return status == RG_ENOSPC ? FAIL(parser, "more than %d provenance lines",
                                      RG_POLICY_MAX_NOTES)
                               : status;
}

/* Copies the line, all of it printable. */
static int take_line(struct parser *parser, const char *line, size_t bytes)
{
    if (bytes > RG_POLICY_MAX_LINE)
        return FAIL(parser, "a line of %zu bytes: at most %d", bytes,
                    RG_POLICY_MAX_LINE);
    for (size_t i = 0; i < bytes; i++)
        if (line[i] != '\t' && (line[i] < ' ' || line[i] > '~'))
            return FAIL(parser, "byte 0x%02x: expected printable ASCII",
                        (unsigned char)line[i]);
    memcpy(parser->text, line, bytes);
    parser->text[bytes] = 0;
    return RG_OK;
}

static int read_line(struct parser *parser, const char *line, size_t bytes)
{
    int status = take_line(parser, line, bytes);
    char *comment;

    if (status)
        return status;
    comment = strchr(parser->text, '#');
    if (comment)
        *comment++ = 0;
    cut(parser);
    if (parser->count || !parser->has_version)
        return parser->count ? read_fields(parser) : read_version(parser);
    return comment ? read_comment(parser, comment) : RG_OK;
}

static int read_lines(struct parser *parser, const char *text, size_t bytes)
{
    const char *const end = text + bytes;
    int status = RG_OK;

    for (parser->line = 1; status == RG_OK && text < end; parser->line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;

        status = read_line(parser, text, (size_t)(stop - text));
        if (status == RG_OK && !newline)
            status =
                FAIL(parser, "the last line is cut off: it has no newline");
        text = stop + 1;
    }
    return status;
}

static int read_text(struct parser *parser, const char *text, size_t bytes)
{
    int status;

    if (bytes > RG_POLICY_MAX_BYTES)
        return FAIL(parser, "larger than %d bytes", RG_POLICY_MAX_BYTES);
    status = read_lines(parser, text, bytes);
    if (status)
        return status;
    parser->line = 0;
    if (!parser->has_version) {
        parser->line = 1;
        return read_version(parser);
    }
    if (!parser->has_unit)
        return FAIL(parser, "no line \"unit bytes-per-rank-buffer\"");
    return parser->has_topology ? RG_OK : FAIL(parser, "no topology line");
}

/* What it would be published as must have room too. */
static int check_written(struct parser *parser)
{
    char *text;
    const int status = rg_policy_write(parser->table, &text);

    if (status == RG_ENOSPC)
        return FAIL(parser, "larger than %d bytes when it is written",
                    RG_POLICY_MAX_BYTES);
    if (status == RG_OK)
        free(text);
    return status;
}

int rg_policy_parse(const char *text, size_t bytes,
                    const struct rg_algo *const *algos,
                    struct rg_policy_table **table_out,
                    struct rg_policy_error *error_out)
{
    struct parser parser = {.error = error_out};
    int status = rg_policy_create("any", &parser.table);

    if (status)
        return status;
    status = read_text(&parser, text, bytes);
    if (status == RG_OK)
        status = rg_policy_lint(parser.table, algos, error_out);
    if (status == RG_OK)
        status = check_written(&parser);
    if (status) {
        rg_policy_destroy(parser.table);
        return status;
    }
    *table_out = parser.table;
    return RG_OK;
}
