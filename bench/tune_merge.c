#include "bench/tune_merge.h"

#include <stdio.h>
#include <string.h>

#include "runtime/regroup.h"

/* ---- topologies --------------------------------------------------------- */

/* Without ":N" at its end. */
static void class_of(const struct rg_policy_table *table,
                     char class_out[RG_POLICY_TOPOLOGY_BYTES])
{
    char *colon;

    snprintf(class_out, RG_POLICY_TOPOLOGY_BYTES, "%s", table->topology);
    colon = strrchr(class_out, ':');
    if (colon && colon > class_out && colon[1] &&
        colon[1 + strspn(colon + 1, "0123456789")] == '\0')
        *colon = '\0';
}

static int check_class(const struct tune_source *first,
                       const struct tune_source *other, char *text_out,
                       size_t room)
{
    char a[RG_POLICY_TOPOLOGY_BYTES], b[RG_POLICY_TOPOLOGY_BYTES];

    class_of(first->table, a);
    class_of(other->table, b);
    if (strcmp(a, b) == 0)
        return RG_OK;
    snprintf(text_out, room, "'%s' is of topology %s, '%s' of %s", first->file,
             first->table->topology, other->file, other->table->topology);
    return RG_EPOLICY;
}

/* ---- rows --------------------------------------------------------------- */

static int overlap(const struct rg_policy_row *a, const struct rg_policy_row *b)
{
    return a->collective == b->collective && a->dtype == b->dtype &&
           a->min_ranks <= b->max_ranks && b->min_ranks <= a->max_ranks;
}

static int refuse_rows(const struct tune_source *a,
                       const struct rg_policy_row *x,
                       const struct tune_source *b,
                       const struct rg_policy_row *y, char *text_out,
                       size_t room)
{
    snprintf(text_out, room, "%s:%d and %s:%d both serve %s %s of %d ranks",
             a->file, x->line, b->file, y->line,
             rg_collective_name(x->collective),
             x->dtype == RG_POLICY_ANY_DTYPE
                 ? "any"
                 : rg_dtype_name((enum rg_dtype)x->dtype),
             x->min_ranks > y->min_ranks ? x->min_ranks : y->min_ranks);
    return RG_EPOLICY;
}

static int check_rows(const struct tune_source *a, const struct tune_source *b,
                      char *text_out, size_t room)
{
    for (int i = 0; i < a->table->row_count; i++)
        for (int k = 0; k < b->table->row_count; k++)
            if (overlap(&a->table->rows[i], &b->table->rows[k]))
                return refuse_rows(a, &a->table->rows[i], b, &b->table->rows[k],
                                   text_out, room);
    return RG_OK;
}

/* ---- all of it ---------------------------------------------------------- */

static int check(const struct tune_source *sources, int n, char *text_out,
                 size_t room)
{
    int status = RG_OK;

    for (int b = 1; b < n; b++)
        for (int a = 0; a < b && status == RG_OK; a++) {
            status = check_class(&sources[a], &sources[b], text_out, room);
            if (status == RG_OK)
                status = check_rows(&sources[a], &sources[b], text_out, room);
        }
    return status;
}

static int add_table(struct rg_policy_table *table,
                     const struct rg_policy_table *source)
{
    int status = RG_OK;

    for (int i = 0; i < source->note_count && status == RG_OK; i++)
        status = rg_policy_add_note(table, source->notes[i]);
    for (int i = 0; i < source->row_count && status == RG_OK; i++) {
        struct rg_policy_row row = source->rows[i];

        row.line = 0; /* of another text */
        status = rg_policy_add_row(table, &row);
    }
    return status;
}

int tune_merge(const struct tune_source *sources, int n,
               struct rg_policy_table **table_out, char *text_out, size_t room)
{
    char topology[RG_POLICY_TOPOLOGY_BYTES];
    struct rg_policy_table *table = NULL;
    int status = check(sources, n, text_out, room);

    if (status != RG_OK)
        return status;
    class_of(sources[0].table, topology);
    status = rg_policy_create(topology, &table);
    for (int i = 0; i < n && status == RG_OK; i++)
        status = add_table(table, sources[i].table);
    if (status == RG_OK) {
        *table_out = table;
        return RG_OK;
    }
    rg_policy_destroy(table);
    if (status != RG_ENOSPC)
        return status;
    snprintf(text_out, room, "more than %d rows or %d provenance lines",
             RG_POLICY_MAX_ROWS, RG_POLICY_MAX_NOTES);
    return RG_EPOLICY;
}
