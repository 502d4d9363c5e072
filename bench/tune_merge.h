/*
 * One selection table of several: those of one kind of machine, each for its
 * own numbers of ranks.
 */
#ifndef RG_BENCH_TUNE_MERGE_H
#define RG_BENCH_TUNE_MERGE_H

#include <stddef.h>

#include "runtime/policy/table.h"

struct tune_source {
    const char *file; /* for messages */
    struct rg_policy_table *table;
};

/*
 * The rows and the provenance of n sound tables, 1 at least; provenance in the
 * order of the tables. The topology is theirs without the number of ranks
 * ("emu" for "emu:2" and "emu:4"), and must be the same. RG_OK; RG_ENOMEM;
 * RG_EPOLICY with one line in `text_out`: two tables have rows of one
 * collective and type for the same ranks, or are of different topologies, or
 * all are more than a table holds. The caller destroys *table_out.
 */
int tune_merge(const struct tune_source *sources, int n,
               struct rg_policy_table **table_out, char *text_out, size_t room);

#endif
