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
    view->references = 1;
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
    if (view->nfaults) {
        copy->faults = calloc((size_t)view->nfaults, sizeof(*view->faults));
        if (!copy->faults)
            goto error;
        memcpy(copy->faults, view->faults,
               (size_t)view->nfaults * sizeof(*view->faults));
    }
    if (rg_pairs_copy(&view->pairs, &copy->pairs))
        goto error;
    owned = *copy;
    *copy = *view;
    copy->references = 1;
    copy->members = owned.members;
    copy->order = owned.order;
    copy->policy = owned.policy;
    copy->faults = owned.faults;
    copy->pairs = owned.pairs;
    memcpy(copy->members, view->members, slots * sizeof(*view->members));
    memcpy(copy->order, view->order, slots * sizeof(*view->order));
    return copy;
error:
    rg_view_destroy(copy);
    return NULL;
}

struct rg_view *rg_view_ref(struct rg_view *view)
{
    view->references++;
    return view;
}

void rg_view_destroy(struct rg_view *view)
{
    if (!view || --view->references > 0)
        return;
    free(view->policy);
    free(view->faults);
    rg_pairs_fini(&view->pairs);
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

int rg_view_is_active(const struct rg_view *view, int world_rank,
                      uint32_t incarnation)
{
    int slot = rg_view_slot_of(view, world_rank);

    return slot >= 0 && view->members[slot].status == RG_MEMBER_ACTIVE &&
           view->members[slot].incarnation == incarnation;
}

int rg_view_is_same(const struct rg_view *a, const struct rg_view *b)
{
    return a->epoch == b->epoch && a->term == b->term &&
           a->coordinator == b->coordinator && a->attempt == b->attempt;
}

int rg_view_has_quorum(const struct rg_view *view,
                       const struct rg_bitset *voters,
                       const struct rg_bitset *absent)
{
    int votes = 0;
    int missing = 0; /* neither voting nor absent */

    for (int rank = 0; rank < view->nactive; rank++) {
        int slot = view->order[rank];

        if (rg_bitset_test(voters, slot))
            votes++;
        else if (!rg_bitset_test(absent, slot))
            missing++;
    }
    if (!votes)
        return 0;
    return !missing || 2 * votes > view->nactive ||
           (2 * votes == view->nactive &&
            rg_bitset_test(voters, view->order[0]));
}

int rg_view_has_stragglers(const struct rg_view *view)
{
    for (int slot = 0; slot < view->capacity; slot++)
        if (view->members[slot].quarantine)
            return 1;
    return 0;
}

int rg_member_can_map(const struct rg_member *a, const struct rg_member *b)
{
    return a->info.capabilities & b->info.capabilities & RG_CAP_P2P &&
           strcmp(a->info.host_id, b->info.host_id) == 0;
}

int rg_view_add_fault(struct rg_view *view, int from, int to)
{
    size_t count = (size_t)view->nfaults;
    struct rg_link_fault *faults;

    for (int i = 0; i < view->nfaults; i++)
        if (view->faults[i].from == from && view->faults[i].to == to) {
            view->faults[i].count++;
            return RG_OK;
        }
    faults = realloc(view->faults, (count + 1) * sizeof(*faults));
    if (!faults)
        return RG_ENOMEM;
    faults[count] = (struct rg_link_fault){.from = from, .to = to, .count = 1};
    view->faults = faults;
    view->nfaults++;
    return RG_OK;
}

int rg_ballot_compare(const struct rg_ballot *a, const struct rg_ballot *b)
{
    if (a->term != b->term)
        return a->term < b->term ? -1 : 1;
    if (a->leader != b->leader)
        return a->leader > b->leader ? -1 : 1;
    return (a->attempt > b->attempt) - (a->attempt < b->attempt);
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
