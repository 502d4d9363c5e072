/*
 * What a tuning found: for people on standard output, for scripts in the raw
 * file, and as provenance in the table.
 */
#ifndef RG_BENCH_TUNE_REPORT_H
#define RG_BENCH_TUNE_REPORT_H

#include "bench/tune_policy.h"
#include "bench/tune_raw.h"
#include "bench/tune_search.h"
#include "harness/report.h"

/* Sizes with choice, noise and runner-up; crossovers; regret. */
void tune_report_print(struct rg_report *report,
                       const struct tune_config *config,
                       const struct tune_space *space,
                       const struct tune_result *result);

/*
 * JSON lines: "choice" a size, "crossover", "regret" a size held out, and
 * "tuned" at the end, with the largest budget in seconds that the samples had.
 * RG_OK or RG_ESYSTEM.
 */
int tune_report_raw(struct tune_raw *raw, const struct tune_config *config,
                    const struct tune_space *space,
                    const struct tune_result *result, uint64_t table_hash);

/* How it went, as provenance lines. RG_OK, or as rg_policy_add_note(). */
int tune_report_notes(struct rg_policy_table *table,
                      const struct tune_space *space,
                      const struct tune_result *result);

#endif
