/*
 * Which backend a program asks for: the one of its flag --backend, else what
 * the preference variables of the runtime say, else new.
 */
#ifndef RG_HARNESS_PREFERENCE_H
#define RG_HARNESS_PREFERENCE_H

#include "harness/launch.h"

/* `values` of a RG_OPTION_CHOICE whose index is an enum rg_backend. */
#define RG_PREFERENCE_VALUES "|auto|legacy|new"

/*
 * For struct rg_context_config. UNSET stands for auto; it is returned where
 * one of the variables is set, so that the runtime reads them.
 */
enum rg_backend rg_preference(enum rg_backend flag);

/*
 * What is wrong with the variables of this process, in one line without an
 * end; null: nothing.
 */
const char *rg_preference_fault(char *text, size_t bytes);

/*
 * Collective. Where variables are wrong, the lowest such rank prints one line,
 * and all ranks get RG_EXIT_USAGE. Else 0, or a negative status.
 */
int rg_preference_check(const struct rg_job *job);

#endif
