/*
 * Which ranks of a view are near each other, for algorithms that keep traffic
 * within a node. Every member derives it from the view alone and one setting
 * that all share, so all have the same nodes in the same order.
 */
#ifndef RG_EXEC_LOCALITY_H
#define RG_EXEC_LOCALITY_H

#include "runtime/control/view.h"
#include "runtime/device/plan.h"

/*
 * Sets the plan's nodes, widest and places; its capacity must be the view's.
 * node_ranks: slots [k x node_ranks, (k+1) x node_ranks) are a node; 0: slots
 * whose members have the same host_id are.
 */
void rg_locality_build(const struct rg_view *view, uint64_t node_ranks,
                       struct rg_plan *plan_out);

/*
 * What the view's facts say: whether both map each other's region. All members
 * agree on it.
 */
int rg_view_is_direct(const struct rg_view *view, int slot, int other);
/* The same for each pair of the view. */
int rg_view_is_all_direct(const struct rg_view *view);

#endif
