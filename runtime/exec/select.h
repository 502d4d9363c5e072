/*
 * Selection: from the text that a view publishes to the rules of a plan.
 *
 * The text is made of overrides, "collective=algorithm[+Nch][;...]", of a
 * selection table (policy/table.h), of both, the overrides first, or of
 * nothing. For each type the sizes are given out in this order:
 *
 *   1. the last override that names the collective
 *   2. the table's rows for this rank count and type, else the built-in ones
 *   3. any algorithm that takes the rest
 *
 * What cannot run in a view, for its ranks, routes or workspace, is passed
 * over, and its sizes go to what follows. All members do that by the same
 * facts, and their rules have one hash.
 */
#ifndef RG_EXEC_SELECT_H
#define RG_EXEC_SELECT_H

#include "runtime/exec/plan_slot.h"

/*
 * A text that has been read, beside a device's built-in table. Views that say
 * the same need not read it again. destroy accepts null. RG_OK, RG_ENOMEM, or
 * RG_EPOLICY for a text that was not checked.
 */
int rg_selection_create(const char *text, enum rg_device_kind kind,
                        struct rg_selection **selection_out);
void rg_selection_destroy(struct rg_selection *selection);
/* Whether it is of this text; null is of none. */
int rg_selection_is(const struct rg_selection *selection, const char *text);

/* Whether the collective's algorithm of that index runs in the input's view. */
int rg_rules_can_run(const struct rg_layout *layout, int coll, int index,
                     const struct rg_plan_input *input);
/* RG_OK, or what rg_selection_create() says. */
int rg_rules_build(const struct rg_layout *layout,
                   const struct rg_plan_input *input,
                   struct rg_rules rules_out[RG_COLL_COUNT]);
/* Equal where the rules are. */
uint64_t rg_rules_hash(const struct rg_rules rules[RG_COLL_COUNT]);

/*
 * Checks a selection text against the algorithms and the workspace. RG_OK or
 * RG_EPOLICY (logged in one line, naming the part or the table's line).
 */
int rg_policy_check(const struct rg_layout *layout, const char *text);
/*
 * Whether what the text names can run under this view and these routes: RG_OK
 * or RG_EPOLICY (logged by the first rank).
 */
int rg_policy_fits(const struct rg_layout *layout, const char *text,
                   const struct rg_plan_input *input);
/* What of input->selection does not apply is said once, by the first rank. */
void rg_policy_report(const struct rg_layout *layout,
                      const struct rg_plan_input *input);
/*
 * Overrides and a table's text (each may be null) as one text with the table
 * in its canonical form, so that equal selections are equal texts. `file` is
 * for the log. Caller frees. RG_OK, RG_ENOMEM, RG_EPOLICY (logged).
 */
int rg_policy_compose(const char *overrides, const char *table,
                      const char *file, const struct rg_algo *const *algos,
                      char **text_out);
/* The same of a text of either form or both. */
int rg_policy_canonical(const char *text, const struct rg_algo *const *algos,
                        char **text_out);

#endif
