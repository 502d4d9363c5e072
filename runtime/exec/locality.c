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
