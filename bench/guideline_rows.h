/* The rows of a run, and how they keep to the guidelines. */
#ifndef RG_BENCH_GUIDELINE_ROWS_H
#define RG_BENCH_GUIDELINE_ROWS_H

#include "bench/guideline.h"
#include "harness/report.h"

/* Zero-initialise; fini frees. */
struct guideline_rows {
    struct guideline_row *list;
    int n, room;
};
/* RG_OK or RG_ENOMEM. */
int guideline_rows_add(struct guideline_rows *rows, int sweep,
                       const struct rg_row *row);
void guideline_rows_fini(struct guideline_rows *rows);

/*
 * Violations as notes and as JSON objects of kind "guideline"; a rule that
 * could not be applied says so. Returns the number of violations.
 */
int guideline_rows_report(const struct guideline_rows *rows,
                          struct rg_report *report);

#endif
