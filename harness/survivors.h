/*
 * What the ranks of a job do when one of them, a process of the launcher, has
 * died, or is stopped and was left behind: the job ends, for it can make no
 * context any more, and the lowest rank left says how.
 */
#ifndef RG_HARNESS_SURVIVORS_H
#define RG_HARNESS_SURVIVORS_H

#include <stddef.h>

#include "harness/report.h"
#include "runtime/regroup.h"

/*
 * 1: members of the communicator, which was made of all `size` ranks, are
 * gone. `text` names them, and the lowest rank left speaks in the report from
 * here on. A loss is noticed in many ways, some before the view without it:
 * `wait` says that there are signs of one, for which a view is waited.
 */
int rg_survivors(struct rg_comm *comm, int size, int wait,
                 struct rg_report *report, char *text, size_t bytes);

#endif
