#include "bench/tune_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "bench/tune_stats.h"
#include "harness/options.h"

static const char *name_of(const struct tune_space *space, int candidate)
{
    return candidate < 0 ? "-" : space->list[candidate].name;
}

static const char *confirmed_text(int confirmed)
{
    return confirmed > 0    ? "confirmed"
           : confirmed == 0 ? "contradicted by new launches"
                            : "not confirmed: no time";
}

/* ---- for people --------------------------------------------------------- */

/* A percentage, or "-" for NaN. */
static const char *percent(double value, char *text, size_t room)
{
    if (isnan(value))
        return "-";
    snprintf(text, room, "%.1f%%", 100 * value);
    return text;
}

static void print_point(struct rg_report *report,
                        const struct tune_space *space,
                        const struct tune_point *point)
{
    char size[32], noise[16], margin[16];

    rg_report_note(report, "%8s  %-24s %11.2f %8s  %-24s %8s %s %3d",
                   rg_options_size_text(point->bytes, size, sizeof size),
                   name_of(space, point->chosen), point->p50_us,
                   percent(point->noise, noise, sizeof noise),
                   name_of(space, point->runner_up),
                   percent(point->margin - 1, margin, sizeof margin),
                   point->counts ? "yes" : "no ", point->launches);
}

static void print_regret(struct rg_report *report,
                         const struct tune_result *result)
{
    if (result->nheld == 0) {
        rg_report_note(report, "regret: no size was held out");
        return;
    }
    rg_report_note(report,
                   "regret (chosen / best) at %d sizes held out: median %.3f, "
                   "worst %.3f",
                   result->nheld, result->regret_p50, result->regret_max);
}

void tune_report_print(struct rg_report *report,
                       const struct tune_config *config,
                       const struct tune_space *space,
                       const struct tune_result *result)
{
    rg_report_note(
        report,
        "a sample is a launch's median; noise is the largest spread of "
        "a candidate's; "
        "a loss counts from %.0f %% and p <= %.2f (rank sums)",
        100 * TUNE_EFFECT, TUNE_ALPHA);
    rg_report_note(report, "%8s  %-24s %11s %8s  %-24s %8s %s %s", "size",
                   "chosen", "p50 us", "noise", "runner-up", "slower", "cnt",
                   "launches");
    for (int i = 0; i < result->npoints; i++)
        print_point(report, space, &result->points[i]);
    for (int k = 0; k < result->ncrossovers; k++) {
        const struct tune_crossover *c = &result->crossovers[k];

        rg_report_note(
            report, "crossover: %s up to %" PRIu64 ", %s from %" PRIu64 ", %s",
            name_of(space, c->former), c->low, name_of(space, c->latter),
            c->high, confirmed_text(c->confirmed));
    }
    print_regret(report, result);
    if (result->left_out || result->unlaunched)
        rg_report_note(report,
                       "the budget left out %d sizes, and some launches of %d",
                       result->left_out, result->unlaunched);
    rg_report_note(report, "%.1f s of a budget of %g s", result->spent_s,
                   config->budget_s);
}

/* ---- for scripts -------------------------------------------------------- */

static json_t *real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *name_json(const struct tune_space *space, int candidate)
{
    return candidate < 0 ? json_null()
                         : json_string(space->list[candidate].name);
}

static json_t *choice_json(const struct tune_space *space,
                           const struct tune_point *point)
{
    return json_pack("{s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:b,s:i}", "kind", "choice",
                     "bytes", (json_int_t)point->bytes, "candidate",
                     name_json(space, point->chosen), "p50_us",
                     real_json(point->p50_us), "noise", real_json(point->noise),
                     "runner_up", name_json(space, point->runner_up), "margin",
                     real_json(point->margin), "counts", point->counts,
                     "launches", point->launches);
}

static json_t *crossover_json(const struct tune_space *space,
                              const struct tune_crossover *c)
{
    return json_pack("{s:s,s:I,s:I,s:o,s:o,s:o}", "kind", "crossover", "low",
                     (json_int_t)c->low, "bound", (json_int_t)c->high, "former",
                     name_json(space, c->former), "latter",
                     name_json(space, c->latter), "confirmed",
                     c->confirmed < 0 ? json_null()
                                      : json_boolean(c->confirmed));
}

static json_t *regret_json(const struct tune_space *space,
                           const struct tune_held *held)
{
    return json_pack("{s:s,s:I,s:o,s:o,s:o,s:i}", "kind", "regret", "bytes",
                     (json_int_t)held->bytes, "candidate",
                     name_json(space, held->chosen), "best",
                     name_json(space, held->best), "regret",
                     real_json(held->regret), "launches", held->launches);
}

static json_t *end_json(const struct tune_raw *raw,
                        const struct tune_config *config,
                        const struct tune_result *result, uint64_t table_hash)
{
    return json_pack(
        "{s:s,s:i,s:o,s:o,s:i,s:o,s:o,s:o,s:f}", "kind", "tuned", "samples",
        tune_raw_count(raw), "samples_hash",
        json_sprintf("%016" PRIx64, tune_raw_hash(raw)), "table_hash",
        json_sprintf("%016" PRIx64, table_hash), "held_out", result->nheld,
        "regret_p50", real_json(result->regret_p50), "regret_max",
        real_json(result->regret_max), "spent_s", real_json(result->spent_s),
        "budget_s", fmax(config->budget_s, tune_raw_budget_s(raw)));
}

int tune_report_raw(struct tune_raw *raw, const struct tune_config *config,
                    const struct tune_space *space,
                    const struct tune_result *result, uint64_t table_hash)
{
    int status = RG_OK;

    for (int i = 0; i < result->npoints && status == RG_OK; i++)
        status = tune_raw_result(raw, choice_json(space, &result->points[i]));
    for (int i = 0; i < result->ncrossovers && status == RG_OK; i++)
        status =
            tune_raw_result(raw, crossover_json(space, &result->crossovers[i]));
    for (int i = 0; i < result->nheld && status == RG_OK; i++)
        status = tune_raw_result(raw, regret_json(space, &result->held[i]));
    return status == RG_OK
               ? tune_raw_result(raw, end_json(raw, config, result, table_hash))
               : status;
}

/* ---- for the table ------------------------------------------------------ */

static int add_note(struct rg_policy_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int add_note(struct rg_policy_table *table, const char *format, ...)
{
    char line[400];
    va_list list;

    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    return rg_policy_add_note(table, line);
}

/* "8:0.5% 16:1.2% ...": the noise of each size, in lines of this many. */
static int add_noise(struct rg_policy_table *table,
                     const struct tune_result *result)
{
    enum { A_LINE = 12 };
    int status = RG_OK;

    for (int i = 0; i < result->npoints && status == RG_OK; i += A_LINE) {
        char line[A_LINE * 24] = "";
        size_t used = 0;

        for (int k = i; k < i + A_LINE && k < result->npoints; k++) {
            const struct tune_point *point = &result->points[k];
            char size[32], noise[16];

            used += (size_t)snprintf(
                line + used, sizeof line - used, " %s:%s",
                rg_options_size_text(point->bytes, size, sizeof size),
                percent(point->noise, noise, sizeof noise));
        }
        status = add_note(table, "noise of launch medians%s", line);
    }
    return status;
}

int tune_report_notes(struct rg_policy_table *table,
                      const struct tune_space *space,
                      const struct tune_result *result)
{
    int status = add_noise(table, result);

    for (int k = 0; k < result->ncrossovers && status == RG_OK; k++) {
        const struct tune_crossover *c = &result->crossovers[k];

        status = add_note(table,
                          "crossover %s to %s in %" PRIu64 "..%" PRIu64 ": %s",
                          name_of(space, c->former), name_of(space, c->latter),
                          c->low, c->high, confirmed_text(c->confirmed));
    }
    if (status == RG_OK && result->nheld > 0)
        status =
            add_note(table,
                     "regret at %d sizes held out: median %.3f, worst "
                     "%.3f",
                     result->nheld, result->regret_p50, result->regret_max);
    if (status == RG_OK && (result->left_out || result->unlaunched))
        status =
            add_note(table, "budget left out %d sizes, and some launches of %d",
                     result->left_out, result->unlaunched);
    return status;
}
