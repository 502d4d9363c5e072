#include "runtime/control/view.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/core/hash.h"
#include "runtime/status.h"

struct rg_view *rg_view_create(uint32_t group, int capacity)
{
    struct rg_view *view = calloc(1, sizeof(*view));

    if (!view)
        return NULL;
    view->group = group;
    view->capacity = capacity;
    view->members = calloc((size_t)capacity, sizeof(*view->members));
    view->order = calloc((size_t)capacity, sizeof(*view->order));
    if (!view->members || !view->order || rg_view_set_policy(view, ""))
        goto error;
    for (int slot = 0; slot < capacity; slot++)
        view->members[slot].world_rank = -1;
    return view;
error:
    rg_view_destroy(view);
    return NULL;
}

struct rg_view *rg_view_clone(const struct rg_view *view)
{
    size_t slots = (size_t)view->capacity;
    struct rg_view *copy = rg_view_create(view->group, view->capacity);
    struct rg_view owned;

    if (!copy || rg_view_set_policy(copy, view->policy))
        goto error;
    owned = *copy;
    *copy = *view;
    copy->members = owned.members;
    copy->order = owned.order;
    copy->policy = owned.policy;
    memcpy(copy->members, view->members, slots * sizeof(*view->members));
    memcpy(copy->order, view->order, slots * sizeof(*view->order));
    return copy;
error:
    rg_view_destroy(copy);
    return NULL;
}

void rg_view_destroy(struct rg_view *view)
{
    if (!view)
        return;
    free(view->policy);
    free(view->order);
    free(view->members);
    free(view);
}

void rg_view_reorder(struct rg_view *view)
{
    view->nactive = 0;
    for (int slot = 0; slot < view->capacity; slot++)
        if (view->members[slot].status == RG_MEMBER_ACTIVE)
            view->order[view->nactive++] = slot;
}

static int holds(const struct rg_view *view, int slot, int world_rank)
{
    const struct rg_member *member = &view->members[slot];

    return member->status != RG_MEMBER_NONE && member->world_rank == world_rank;
}

int rg_view_slot_of(const struct rg_view *view, int world_rank)
{
    /* The ranks of the launch sit in the slot of their own number. */
    if (world_rank >= 0 && world_rank < view->capacity &&
        holds(view, world_rank, world_rank))
        return world_rank;
    for (int slot = 0; slot < view->capacity; slot++)
        if (holds(view, slot, world_rank))
            return slot;
    return -1;
}

int rg_view_rank_of(const struct rg_view *view, int slot)
{
    int low = 0;
    int high = view->nactive;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (view->order[middle] < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low < view->nactive && view->order[low] == slot ? low : -1;
}

int rg_view_set_policy(struct rg_view *view, const char *policy)
{
    char *copy = strdup(policy);

    if (!copy)
        return RG_ENOMEM;
    free(view->policy);
    view->policy = copy;
    view->policy_hash = rg_hash(RG_HASH_INIT, copy, strlen(copy));
    return RG_OK;
}
