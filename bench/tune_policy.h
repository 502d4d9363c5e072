/*
 * From candidates to the selection table (runtime/policy/table.h): the text
 * that selects one, and the table that a tuning ends in.
 */
#ifndef RG_BENCH_TUNE_POLICY_H
#define RG_BENCH_TUNE_POLICY_H

#include "bench/tune_search.h"
#include "runtime/policy/table.h"

enum { TUNE_POLICY_BYTES = 2048 };

/*
 * A text for rg_comm_set_policy that gives a candidate all sizes it can serve.
 * RG_OK; RG_ENOSPC: more than `room`; or what the table's functions say.
 */
int tune_policy_of(const struct tune_space *space, int candidate,
                   enum rg_collective collective, int ranks, char *text_out,
                   size_t room);

/* Adds the rows of a tuning for so many ranks. RG_OK, or as
 * rg_policy_add_row(). */
int tune_policy_rows(struct rg_policy_table *table,
                     const struct tune_space *space,
                     const struct tune_result *result,
                     enum rg_collective collective, int ranks);

/*
 * Writes the table to a file, whole or not at all. RG_OK; RG_EPOLICY: it is
 * unsound, RG_ESYSTEM: it cannot be written, each with one line of `program`'s
 * on standard error; RG_ENOMEM; RG_ENOSPC: it is too long.
 */
int tune_policy_save(const struct rg_policy_table *table, const char *program,
                     const char *path);

#endif
