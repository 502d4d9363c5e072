#include "runtime/exec/locality.h"

#include <string.h>

static int same_node(const struct rg_view *view, uint64_t node_ranks, int a,
                     int b)
{
    const int slot_a = view->order[a], slot_b = view->order[b];

    if (node_ranks)
        return (uint64_t)slot_a / node_ranks == (uint64_t)slot_b / node_ranks;
    return strcmp(view->members[slot_a].info.host_id,
                  view->members[slot_b].info.host_id) == 0;
}

/* The lowest rank of `rank`'s node, looked for among those below first. */
static int first_of(const struct rg_view *view, uint64_t node_ranks,
                    const struct rg_place *places, int rank)
{
    for (int r = rank - 1; r >= 0; r--)
        if (places[r].local == 0 && same_node(view, node_ranks, r, rank))
            return r;
    return rank;
}

void rg_locality_build(const struct rg_view *view, uint64_t node_ranks,
                       struct rg_plan *plan_out)
{
    struct rg_place *places =
        (struct rg_place *)(void *)(plan_out->routes + plan_out->capacity);

    plan_out->nodes = plan_out->widest = 0;
    /* A node's lowest rank counts its ranks; the others are told at the end. */
    for (int r = 0; r < view->nactive; r++) {
        const int first = first_of(view, node_ranks, places, r);

        if (first == r)
            places[r] = (struct rg_place){.node = plan_out->nodes++};
        places[r].node = places[first].node;
        places[r].local = places[first].size++;
        if (places[first].size > plan_out->widest)
            plan_out->widest = places[first].size;
    }
    for (int r = 0; r < view->nactive; r++)
        places[r].size = places[first_of(view, node_ranks, places, r)].size;
}

static int has_fault(const struct rg_view *view, int slot, int other)
{
    for (int i = 0; i < view->nfaults; i++)
        if ((view->faults[i].from == slot && view->faults[i].to == other) ||
            (view->faults[i].from == other && view->faults[i].to == slot))
            return 1;
    return 0;
}

int rg_view_is_all_direct(const struct rg_view *view)
{
    for (int rank = 1; rank < view->nactive; rank++)
        if (!rg_member_can_map(&view->members[view->order[rank]],
                               &view->members[view->order[0]]))
            return 0;
    for (int i = 0; i < view->nfaults; i++)
        if (rg_view_rank_of(view, view->faults[i].from) >= 0 &&
            rg_view_rank_of(view, view->faults[i].to) >= 0)
            return 0;
    return 1;
}

/* On CUDA all that comes in lies in one place: in the region, or in the host
 * segment. */
int rg_view_is_direct(const struct rg_view *view, int slot, int other)
{
    if (slot == other)
        return 1;
    if (view->members[slot].info.device_kind == RG_DEVICE_CUDA)
        return rg_view_is_all_direct(view);
    return rg_member_can_map(&view->members[slot], &view->members[other]) &&
           !has_fault(view, slot, other);
}
