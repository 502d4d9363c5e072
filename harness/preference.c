#include "harness/preference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/output.h"
#include "harness/verdict.h"

static const char *const variables[] = {
    "RG_PREFERRED_GPU_COLLECTIVE_BACKEND",
    "MOONCAKE_PG_PREFERRED_GPU_COLLECTIVE_BACKEND"};

enum { N_VARIABLES = sizeof(variables) / sizeof(variables[0]) };

enum rg_backend rg_preference(enum rg_backend flag)
{
    if (flag != RG_BACKEND_UNSET)
        return flag;
    for (int i = 0; i < N_VARIABLES; i++)
        if (getenv(variables[i]))
            return RG_BACKEND_UNSET;
    return RG_BACKEND_NEW;
}

const char *rg_preference_fault(char *text, size_t bytes)
{
    const char *said = NULL;

    for (int i = 0; i < N_VARIABLES; i++) {
        const char *value = getenv(variables[i]);

        if (!value)
            continue;
        if (strcmp(value, "legacy") != 0 && strcmp(value, "new") != 0) {
            snprintf(text, bytes, "%s is '%s': expected legacy or new",
                     variables[i], value);
            return text;
        }
        if (said && strcmp(said, value) != 0) {
            snprintf(text, bytes, "%s=%s contradicts %s=%s", variables[i],
                     value, variables[0], said);
            return text;
        }
        said = value;
    }
    return NULL;
}

int rg_preference_check(const struct rg_job *job)
{
    char text[256];
    const char *fault = rg_preference_fault(text, sizeof text);
    uint64_t *all;
    int first = 0;
    int status = rg_job_gather(job, fault != NULL, &all);

    while (status == RG_OK && first < job->size && !all[first])
        first++;
    free(all);
    if (status != RG_OK || first == job->size)
        return status;
    if (first == job->rank) {
        char who[32];

        snprintf(who, sizeof who, "rank %d", job->rank);
        rg_say(who, "%s", fault);
    }
    return RG_EXIT_USAGE;
}
