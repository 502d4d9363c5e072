#include "bench/guideline_rows.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "harness/options.h"

int guideline_rows_add(struct guideline_rows *rows, int sweep,
                       const struct rg_row *row)
{
    if (rows->n == rows->room) {
        const int room = rows->room ? 2 * rows->room : 64;
        struct guideline_row *grown =
            realloc(rows->list, (size_t)room * sizeof *grown);

        if (!grown)
            return RG_ENOMEM;
        rows->list = grown;
        rows->room = room;
    }
    rows->list[rows->n++] = (struct guideline_row){sweep,
                                                   row->collective,
                                                   row->dtype,
                                                   row->op,
                                                   row->inplace,
                                                   row->bytes,
                                                   row->time.p50_us,
                                                   row->time.ci_lo_us,
                                                   row->time.ci_hi_us};
    return RG_OK;
}

void guideline_rows_fini(struct guideline_rows *rows)
{
    free(rows->list);
    memset(rows, 0, sizeof *rows);
}

/* ---- report ------------------------------------------------------------- */

struct count {
    struct rg_report *report;
    int violations;
};

static void write_violation(struct rg_report *report,
                            const struct guideline_violation *v)
{
    rg_report_json(
        report,
        json_pack(
            "{s:s,s:s,s:b,s:s,s:s,s:s,s:b,s:I,s:f,s:f,s:s,s:I,s:f,s:f}", "kind",
            "guideline", "rule", guideline_name(v->rule), "measured", 1,
            "collective", rg_collective_name(v->row->collective), "dtype",
            rg_dtype_name(v->row->dtype), "op", rg_op_name(v->row->op),
            "inplace", v->row->inplace, "bytes", (json_int_t)v->row->bytes,
            "p50_us", v->row->p50_us, "ci_lo_us", v->row->ci_lo_us,
            "other_collective", rg_collective_name(v->other->collective),
            "other_bytes", (json_int_t)v->other->bytes, "other_p50_us",
            v->other_us, "factor", v->factor));
}

static void take_violation(void *arg, const struct guideline_violation *v)
{
    struct count *count = arg;
    char size[32], other[32];

    count->violations++;
    rg_report_note(
        count->report,
        "guideline %s: %s %s %s, %s: %s takes %.2f us (at least %.2f); %s%s "
        "takes %.2f us: %.2f times that",
        guideline_name(v->rule), rg_collective_name(v->row->collective),
        rg_dtype_name(v->row->dtype), rg_op_name(v->row->op),
        v->row->inplace ? "in place" : "out of place",
        rg_options_size_text(v->row->bytes, size, sizeof size), v->row->p50_us,
        v->row->ci_lo_us,
        v->rule == GUIDELINE_SPLIT ? "reduce-scatter and all-gather of " : "",
        rg_options_size_text(v->other->bytes, other, sizeof other), v->other_us,
        v->factor);
    write_violation(count->report, v);
}

static void say_not_measured(struct rg_report *report, enum guideline_rule rule)
{
    rg_report_note(report, "guideline %s: not measured", guideline_name(rule));
    rg_report_json(report,
                   json_pack("{s:s,s:s,s:b}", "kind", "guideline", "rule",
                             guideline_name(rule), "measured", 0));
}

int guideline_rows_report(const struct guideline_rows *rows,
                          struct rg_report *report)
{
    struct count count = {report, 0};

    for (int r = 0; r < GUIDELINE_RULES; r++) {
        const enum guideline_rule rule = (enum guideline_rule)r;
        const int before = count.violations;
        const int applied =
            guideline_check(rows->list, rows->n, rule, take_violation, &count);

        if (applied == 0)
            say_not_measured(report, rule);
        else
            rg_report_note(report, "guideline %s: %d of %d rows violate it",
                           guideline_name(rule), count.violations - before,
                           applied);
    }
    return count.violations;
}
