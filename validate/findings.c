#include "validate/findings.h"

#include <stdarg.h>
#include <stdio.h>

void rg_findings_fail(struct rg_findings *findings, const char *format, ...)
{
    va_list list;

    if (findings->failed)
        return;
    findings->failed = 1;
    va_start(list, format);
    vsnprintf(findings->text, sizeof(findings->text), format, list);
    va_end(list);
}

int rg_findings_expect(struct rg_findings *findings, int status, int wanted,
                       const char *what)
{
    if (status != wanted)
        rg_findings_fail(findings, "%s: %s; should be: %s", what,
                         rg_status_string(status), rg_status_string(wanted));
    return status == wanted;
}

void rg_findings_judge_fate(const struct rg_fate *fate, int rank,
                            struct rg_case_result *result)
{
    if (fate->code != RG_EXIT_PASS)
        rg_case_fail(result, (enum rg_exit)fate->code,
                     "rank %d: its process ended with exit code %d, signal "
                     "%d%s",
                     rank, fate->last.exit_code, fate->last.signal,
                     fate->last.hang ? ", past the deadline" : "");
}
