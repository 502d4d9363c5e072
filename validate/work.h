/* What all payloads begin with: which part of the program a worker plays. */
#ifndef RG_VALIDATE_WORK_H
#define RG_VALIDATE_WORK_H

#include <stdint.h>

enum rg_work_kind { RG_WORK_RECOVERY = 1, RG_WORK_SELECTION, RG_WORK_MESSAGES };

struct rg_work {
    int32_t kind; /* enum rg_work_kind */
    int32_t unused;
};

#endif
