/* What the module's files share. */
#ifndef RG_POLICY_ROWS_H
#define RG_POLICY_ROWS_H

#include "runtime/policy/table.h"

/* Fills in the error; always RG_EPOLICY. */
int rg_policy_fail(struct rg_policy_error *error_out, int line,
                   const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Below, at or above 0 as row a stands before, with or behind row b. */
int rg_policy_row_order(const struct rg_policy_row *a,
                        const struct rg_policy_row *b);
/* The same group: collective, dtype and rank range. */
int rg_policy_row_joins(const struct rg_policy_row *a,
                        const struct rg_policy_row *b);
/* Puts a copy of the row at an index. RG_OK, RG_ENOSPC or RG_ENOMEM. */
int rg_policy_row_insert(struct rg_policy_table *table, int index,
                         const struct rg_policy_row *row);

/* A word of letters, digits, "_", "-", "." and ":" that fits the bytes. */
int rg_policy_is_word(const char *text, size_t bytes);

/* What is wrong with the values of one row, null: nothing. */
const char *rg_policy_row_flaw(const struct rg_policy_row *row);

#endif
