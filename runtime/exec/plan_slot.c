#include "runtime/exec/plan_slot.h"

#include <string.h>

#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/device/packet.h"
#include "runtime/device/share.h"
#include "runtime/exec/locality.h"
#include "runtime/exec/select.h"

/* ---- layout ------------------------------------------------------------- */

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

/* The first of the table that has the area of algorithm i: i, if none has. */
static int area_owner(const struct rg_algo *const *algos, int i)
{
    for (int k = 0; algos[i]->area && k < i; k++)
        if (algos[k]->area && strcmp(algos[k]->area, algos[i]->area) == 0)
            return k;
    return i;
}

static int area_count(const struct rg_algo *const *algos)
{
    int count = 0;

    for (int i = 0; algos[i]; i++)
        count += area_owner(algos, i) == i;
    return count;
}

/* Its place in the layout, for one that is there. */
static int index_of(const struct rg_layout *layout, const struct rg_algo *algo)
{
    int i = 0;

    while (layout->algo[algo->collective][i] != algo)
        i++;
    return i;
}

/* The next algorithm, in the area of an earlier one. */
static void layout_share(struct rg_layout *layout, const struct rg_algo *algo,
                         const struct rg_algo *owner)
{
    const int coll = (int)algo->collective, of = (int)owner->collective;
    const int index = layout->count[coll]++, at = index_of(layout, owner);

    layout->shape.budget = layout->budget[of][at];
    if (!algo->layout(&layout->shape, &layout->limits[coll][index]))
        layout->limits[coll][index] = (struct rg_limits){0};
    layout->algo[coll][index] = algo;
    layout->budget[coll][index] = layout->budget[of][at];
    layout->offset[coll][index] = layout->offset[of][at];
    layout->hash = rg_hash(layout->hash, algo->name, strlen(algo->name));
}

/* The next algorithm's area, within the budget; its size in bytes. */
static uint64_t layout_add(struct rg_layout *layout, const struct rg_algo *algo,
                           uint64_t budget)
{
    const int coll = (int)algo->collective;
    const int index = layout->count[coll];
    struct rg_limits *limits = &layout->limits[coll][index];
    uint64_t bytes;

    layout->shape.budget = budget / RG_AREA_ALIGN * RG_AREA_ALIGN;
    layout->budget[coll][index] = layout->shape.budget;
    bytes = algo->layout(&layout->shape, limits);
    if (!bytes)
        *limits = (struct rg_limits){0};
    layout->algo[coll][index] = algo;
    layout->offset[coll][index] = layout->bytes;
    layout->bytes += align_up(bytes, RG_AREA_ALIGN);
    layout->count[coll]++;
    layout->hash = rg_hash(layout->hash, algo->name, strlen(algo->name));
    layout->hash = rg_hash(layout->hash, &layout->bytes, sizeof layout->bytes);
    return align_up(bytes, RG_AREA_ALIGN);
}

int rg_layout_init(struct rg_layout *layout_out,
                   const struct rg_algo *const *algos, int capacity,
                   int max_channels, int generations, uint64_t share)
{
    const int count = area_count(algos);
    int added = 0;
    uint64_t left = share / (uint64_t)generations;

    memset(layout_out, 0, sizeof *layout_out);
    layout_out->hash = RG_HASH_INIT;
    layout_out->shape.capacity = capacity;
    layout_out->shape.max_channels = max_channels;
    if (left < (uint64_t)count * RG_AREA_ALIGN) {
        rg_log(RG_LOG_ERROR, -1,
               "a region share of %llu bytes is too small for %d workspace "
               "generations of %d areas",
               (unsigned long long)share, generations, count);
        return RG_ENOSPC;
    }
    if (count > RG_CLEAN_PARTS) {
        rg_log(RG_LOG_ERROR, -1, "more than %d areas", RG_CLEAN_PARTS);
        return RG_ENOSPC;
    }
    for (int i = 0; algos[i]; i++) {
        const int owner = area_owner(algos, i);

        if (owner == i)
            left -= layout_add(layout_out, algos[i],
                               left / (uint64_t)(count - added++));
        else
            layout_share(layout_out, algos[i], algos[owner]);
    }
    return RG_OK;
}

int rg_layout_find(const struct rg_layout *layout, int coll, const char *name)
{
    for (int i = 0; i < layout->count[coll]; i++)
        if (strcmp(layout->algo[coll][i]->name, name) == 0)
            return i;
    return -1;
}

/* ---- plan --------------------------------------------------------------- */

size_t rg_plan_bytes(int capacity)
{
    return sizeof(struct rg_plan) +
           (size_t)capacity *
               (sizeof(struct rg_route) + sizeof(struct rg_place));
}

int rg_plan_build(const struct rg_layout *layout,
                  const struct rg_plan_input *input, struct rg_plan *plan_out)
{
    const struct rg_view *view = input->view;

    memset(plan_out, 0, rg_plan_bytes(view->capacity));
    plan_out->epoch = view->epoch;
    plan_out->first_seq = view->first_seq;
    plan_out->rank = (uint32_t)input->rank;
    plan_out->nranks = (uint32_t)view->nactive;
    plan_out->capacity = (uint32_t)view->capacity;
    plan_out->max_channels = (uint32_t)layout->shape.max_channels;
    plan_out->workspace = input->workspace;
    memcpy(plan_out->offset, layout->offset, sizeof plan_out->offset);
    memcpy(plan_out->routes, input->routes,
           (size_t)view->nactive * sizeof *input->routes);
    rg_locality_build(view, input->node_ranks, plan_out);
    return rg_rules_build(layout, input, plan_out->rules);
}

/* The algorithm whose packets the small path sends, or -1. */
static int packet_algo(const struct rg_layout *layout)
{
    const int coll = RG_COLL_all_reduce;

    for (int i = 0; i < layout->count[coll]; i++)
        if (layout->algo[coll][i]->flags & RG_ALGO_PACKETS)
            return i;
    return -1;
}

/* Up to where the first rules for a type are all of one algorithm. */
static uint64_t led_by(const struct rg_rules *rules, int dtype, int index)
{
    uint64_t below = 0;

    for (uint64_t i = 0; i < rules->count; i++) {
        if (!(rules->rule[i].dtypes >> dtype & 1))
            continue;
        if (rules->rule[i].algo != (uint32_t)index)
            break;
        below = rules->rule[i].below;
    }
    return below;
}

/* The largest buffer up to which every type gives sizes to it first: the hot
 * line knows no types. */
static uint64_t led_max(const struct rg_rules *rules, int index)
{
    uint64_t below = UINT64_MAX;

    for (int dtype = 0; dtype < RG_DTYPE_COUNT; dtype++) {
        const uint64_t led = led_by(rules, dtype, index);

        below = led < below ? led : below;
    }
    return below ? below - 1 : 0;
}

static uint64_t packet_hot_max(const struct rg_plan *plan, int index)
{
    if (plan->nranks < 2 || plan->nranks > RG_HOT_PEERS)
        return 0;
    return led_max(&plan->rules[RG_COLL_all_reduce], index);
}

/*
 * Units of a block up to which a collective's rules give all types' sizes to
 * its first algorithm, if blocks of that go by the hot line.
 */
static uint64_t small_units(const struct rg_layout *layout,
                            const struct rg_plan *plan, int coll)
{
    const uint64_t blocks =
        rg_rule_blocks((enum rg_collective)coll, (int)plan->capacity);

    if (!layout->count[coll] || !(layout->algo[coll][0]->flags & RG_ALGO_SMALL))
        return 0;
    return led_max(&plan->rules[coll], 0) / blocks / RG_PACKET_PAYLOAD;
}

/* Bytes of the largest buffer that a rule gives to an algorithm; 0: none. */
static uint64_t bytes_used(const struct rg_layout *layout,
                           const struct rg_plan *plan, int coll, int index)
{
    const uint64_t most = layout->limits[coll][index].max_bytes;
    const struct rg_rules *rules = &plan->rules[coll];
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < rules->count; i++)
        if (rules->rule[i].algo == (uint32_t)index &&
            rules->rule[i].below - 1 > bytes)
            bytes = rules->rule[i].below - 1;
    return bytes < most ? bytes : most;
}

/* Packets of the largest buffer that goes by them; 0: none. */
static uint64_t packets_used(const struct rg_layout *layout,
                             const struct rg_plan *plan, int coll, int index)
{
    const uint64_t most = layout->limits[coll][index].max_bytes;
    uint64_t bytes = bytes_used(layout, plan, coll, index);

    /* Other collectives' small blocks may go by them (RG_HOT_LIST). */
    for (int other = 0; bytes && other < RG_COLL_COUNT; other++) {
        const uint64_t small =
            small_units(layout, plan, other) * RG_PACKET_PAYLOAD;

        bytes = small > bytes ? small : bytes;
    }
    bytes = bytes < most ? bytes : most;
    return (bytes + RG_PACKET_PAYLOAD - 1) / RG_PACKET_PAYLOAD;
}

/* 1: some size runs this algorithm; or a call does, without a rule. */
static int is_used(const struct rg_plan *plan, int coll, int index)
{
    const struct rg_rules *rules = &plan->rules[coll];

    if (coll >= RG_COLL_COUNT)
        return 1;
    for (uint64_t i = 0; i < rules->count; i++)
        if (rules->rule[i].algo == (uint32_t)index)
            return 1;
    return 0;
}

static struct rg_part part_of(const struct rg_layout *layout,
                              const struct rg_plan *plan, int coll, int index)
{
    const struct rg_limits *limits = &layout->limits[coll][index];
    struct rg_part part = {plan->workspace + layout->offset[coll][index],
                           align_up(limits->head, RG_PACKET_BYTES), 0, 1};

    if (limits->head_rate)
        part.bytes =
            align_up(limits->head - limits->head_rate *
                                        (limits->max_bytes -
                                         bytes_used(layout, plan, coll, index)),
                     RG_PACKET_BYTES);
    if (!(layout->algo[coll][index]->flags & RG_ALGO_PACKETS))
        return part;
    part.bytes = packets_used(layout, plan, coll, index) * RG_PACKET_BYTES;
    part.stride = limits->max_bytes / RG_PACKET_PAYLOAD * RG_PACKET_BYTES;
    part.count = 2 * (uint64_t)plan->capacity;
    return part;
}

/* A shared area is one part, of what most of it is used: how many there are. */
static int part_add(struct rg_part *parts, int count,
                    const struct rg_part *part)
{
    int i = 0;

    while (i < count && parts[i].offset != part->offset)
        i++;
    if (i == count)
        parts[count++] = *part;
    else if (part->bytes > parts[i].bytes)
        parts[i].bytes = part->bytes;
    return count;
}

int rg_plan_parts(const struct rg_layout *layout, const struct rg_plan *plan,
                  struct rg_part *parts_out)
{
    int count = 0;

    for (int coll = 0; coll < RG_COLL_AREAS; coll++)
        for (int i = 0; i < layout->count[coll]; i++) {
            const struct rg_part part = part_of(layout, plan, coll, i);

            if (part.bytes && is_used(plan, coll, i))
                count = part_add(parts_out, count, &part);
        }
    return count;
}

/* The code of the largest power of two that neither bound is below. */
static uint8_t size_code(uint64_t units, uint64_t slots)
{
    uint8_t size = 0;

    while (1ull << size <= units && 1ull << size <= slots)
        size++;
    return size;
}

/* By all_reduce's packets, where those go by the line. */
static void small_excerpt(const struct rg_layout *layout,
                          const struct rg_plan *plan,
                          struct rg_hot_plan *hot_out)
{
    const uint64_t slots = hot_out->packet_stride / RG_PACKET_BYTES;

    if (!hot_out->packet_max_bytes)
        return;
#define RG_X(name)                                                             \
    hot_out->size[RG_HOT_##name] =                                             \
        size_code(small_units(layout, plan, RG_COLL_##name), slots);
    RG_HOT_LIST(RG_X)
#undef RG_X
}

int rg_plan_is_hot(const struct rg_layout *layout, const struct rg_plan *plan,
                   uint64_t bytes)
{
    const int index = packet_algo(layout);

    return index >= 0 && bytes > 0 && bytes <= packet_hot_max(plan, index);
}

void rg_plan_excerpt(const struct rg_layout *layout, const struct rg_plan *plan,
                     uint8_t *region, struct rg_hot_plan *hot_out)
{
    const int index = packet_algo(layout);
    const int coll = RG_COLL_all_reduce;
    uint64_t area, stride;

    memset(hot_out, 0, sizeof *hot_out);
    hot_out->first_seq = plan->first_seq;
    hot_out->rank = (uint16_t)plan->rank;
    hot_out->nranks = (uint16_t)plan->nranks;
    if (index < 0)
        return;
    area = plan->workspace + layout->offset[coll][index];
    stride = layout->limits[coll][index].max_bytes / RG_PACKET_PAYLOAD *
             RG_PACKET_BYTES;
    hot_out->run = RG_RUN(coll, index, 1, plan->epoch);
    hot_out->packets = region + area;
    hot_out->packet_max_bytes = (uint32_t)packet_hot_max(plan, index);
    hot_out->packet_stride = (uint32_t)stride;
    hot_out->packet_half = (uint32_t)(stride * plan->capacity);
    small_excerpt(layout, plan, hot_out);
    for (uint32_t p = 0; p < plan->nranks && p < RG_HOT_PEERS; p++)
        hot_out->slot[p] = (uint16_t)plan->routes[p].slot;
    for (uint32_t p = 0; p < plan->nranks && p < RG_HOT_PEERS; p++)
        if (p != plan->rank && plan->routes[p].base)
            hot_out->inbox[p] =
                plan->routes[p].base + area + stride * plan->rank;
}
