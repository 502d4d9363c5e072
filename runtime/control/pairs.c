#include "runtime/control/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/status.h"

int rg_pairs_copy(const struct rg_pairs *pairs, struct rg_pairs *pairs_out)
{
    size_t bytes = (size_t)pairs->count * sizeof(*pairs->items);
    struct rg_pairs copy = {0};

    if (pairs->count) {
        copy.items = malloc(bytes);
        if (!copy.items)
            return RG_ENOMEM;
        memcpy(copy.items, pairs->items, bytes);
        copy.count = pairs->count;
    }
    *pairs_out = copy;
    return RG_OK;
}

void rg_pairs_fini(struct rg_pairs *pairs)
{
    free(pairs->items);
    *pairs = (struct rg_pairs){0};
}

static int compare(const void *left, const void *right)
{
    const struct rg_pair *a = left;
    const struct rg_pair *b = right;

    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to == b->to ? 0 : a->to < b->to ? -1 : 1;
}

uint64_t rg_pairs_find(const struct rg_pairs *pairs, int from, int to)
{
    const struct rg_pair key = {.from = from, .to = to};
    const struct rg_pair *found =
        pairs->count ? bsearch(&key, pairs->items, (size_t)pairs->count,
                               sizeof(*pairs->items), compare)
                     : NULL;

    return found ? found->count : 0;
}

int rg_pairs_are_sorted(const struct rg_pairs *pairs)
{
    for (int i = 1; i < pairs->count; i++)
        if (compare(&pairs->items[i - 1], &pairs->items[i]) >= 0)
            return 0;
    return 1;
}
