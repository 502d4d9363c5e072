/*
 * The selection table as other libraries' rules, as far as they have
 * algorithms of the kind.
 */
#ifndef RG_BENCH_TUNE_EXPORT_H
#define RG_BENCH_TUNE_EXPORT_H

#include <stdio.h>

#include "runtime/policy/table.h"

#define TUNE_FORMATS "|ompi|nccl-csv"

enum tune_format {
    TUNE_FORMAT_OMPI = 0, /* a file for coll_tuned_dynamic_rules_filename */
    TUNE_FORMAT_NCCL_CSV  /* the configuration of NCCL's example tuner */
};

/*
 * Writes the rules; calls dropped(arg, line) for each row, or part of one, that
 * the format cannot say. Rows of the type f32, or of any, are what is written:
 * neither format tells types apart.
 */
void tune_export(const struct rg_policy_table *table, enum tune_format format,
                 FILE *file, void (*dropped)(void *arg, const char *line),
                 void *arg);

#endif
