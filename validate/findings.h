/* What a worker that plays a script has found: the first thing that is not as
 * it should be. Part of its report. */
#ifndef RG_VALIDATE_FINDINGS_H
#define RG_VALIDATE_FINDINGS_H

#include <stdint.h>

#include "harness/supervision.h"
#include "validate/suite.h"

struct rg_findings {
    int32_t failed;
    char text[200]; /* the first failure */
};

/* Keeps the first. */
void rg_findings_fail(struct rg_findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* 1: the status is as wanted; else that is a failure. */
int rg_findings_expect(struct rg_findings *findings, int status, int wanted,
                       const char *what);

/* The supervisor's side: how the processes of a rank have ended. */
void rg_findings_judge_fate(const struct rg_fate *fate, int rank,
                            struct rg_case_result *result);

#endif
