/*
 * Whatever the bytes: a text is refused with a cause, or it is a table that
 * survives being written, whose every size has the row that says so.
 * scripts/fuzz makes a libFuzzer of this; test_fuzz.c calls it.
 */
#include "runtime/policy/test/fuzz_table.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/policy/table.h"

#define HOLDS(condition)                                                       \
    do {                                                                       \
        if (!(condition))                                                      \
            abort();                                                           \
    } while (0)

static uint64_t any_size(const struct rg_shape *shape,
                         struct rg_limits *limits_out)
{
    *limits_out = (struct rg_limits){UINT64_MAX, 1 << 20, 0};
    return shape->budget;
}

static uint64_t small_sizes(const struct rg_shape *shape,
                            struct rg_limits *limits_out)
{
    *limits_out = (struct rg_limits){4096, 0, 0};
    return shape->budget;
}

static const struct rg_algo ring = {"ring", RG_COLL_all_reduce, 0,   1,
                                    64,     any_size,           NULL};
static const struct rg_algo tree = {"tree", RG_COLL_all_reduce, 0,   3,
                                    8,      any_size,           NULL};
static const struct rg_algo ring_ll = {"ring_ll", RG_COLL_all_reduce, 0,   1,
                                       64,        small_sizes,        NULL};
static const struct rg_algo gather = {"ring", RG_COLL_all_gather, 0,   1,
                                      64,     any_size,           NULL};
static const struct rg_algo *const algos[] = {&ring, &tree, &ring_ll, &gather,
                                              NULL};

/* The row that serves a size of its own type and ranks is the row itself. */
static void check_row(const struct rg_policy_table *table,
                      const struct rg_policy_row *row)
{
    const enum rg_dtype dtype =
        row->dtype == RG_POLICY_ANY_DTYPE ? RG_f32 : (enum rg_dtype)row->dtype;
    const struct rg_policy_row *first =
        rg_policy_find(table, row->collective, dtype, row->min_ranks, row->min);
    const struct rg_policy_row *last = rg_policy_find(
        table, row->collective, dtype, row->max_ranks, row->max - 1);

    HOLDS(first && last);
    HOLDS(row->dtype == RG_POLICY_ANY_DTYPE || (first == row && last == row));
    HOLDS(first->min <= row->min && row->min < first->max);
}

static void check_table(const struct rg_policy_table *table)
{
    struct rg_policy_error error;
    struct rg_policy_table *again;
    char *text, *text_again;

    HOLDS(rg_policy_write(table, &text) == RG_OK);
    HOLDS(rg_policy_parse(text, strlen(text), NULL, &again, &error) == RG_OK);
    HOLDS(rg_policy_write(again, &text_again) == RG_OK);
    HOLDS(!strcmp(text, text_again));
    HOLDS(again->row_count == table->row_count);
    for (int i = 0; i < table->row_count; i++) {
        HOLDS(table->rows[i].p50_us == again->rows[i].p50_us);
        HOLDS(table->rows[i].margin == again->rows[i].margin);
        check_row(table, &table->rows[i]);
    }
    rg_policy_destroy(again);
    free(text);
    free(text_again);
}

static void check_text(const uint8_t *data, size_t bytes,
                       const struct rg_algo *const *known)
{
    struct rg_policy_error error = {-1, ""};
    struct rg_policy_table *table = NULL;
    const int status =
        rg_policy_parse((const char *)data, bytes, known, &table, &error);

    HOLDS(status == RG_OK || status == RG_EPOLICY);
    HOLDS((status == RG_OK) == (table != NULL));
    HOLDS(status == RG_OK || (error.line >= 0 && error.text[0]));
    if (table)
        check_table(table);
    rg_policy_destroy(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    check_text(data, bytes, algos);
    check_text(data, bytes, NULL);
    return 0;
}
