#include "runtime/exec/plan_slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/device/share.h"
#include "runtime/device/packet.h"
#include "runtime/exec/locality.h"
#include "runtime/regroup.h"

/* ---- layout ------------------------------------------------------------- */

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

static int layout_count(const struct rg_algo *const *algos)
{
    int count = 0;

    while (algos[count])
        count++;
    return count;
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
    const int count = layout_count(algos);
    uint64_t left = share / (uint64_t)generations;

    memset(layout_out, 0, sizeof *layout_out);
    layout_out->hash = RG_HASH_INIT;
    layout_out->shape.capacity = capacity;
    layout_out->shape.max_channels = max_channels;
    if (left < (uint64_t)count * RG_AREA_ALIGN) {
        rg_log(RG_LOG_ERROR, -1,
               "a region share of %llu bytes is too small for %d workspace "
               "generations of %d algorithms",
               (unsigned long long)share, generations, count);
        return RG_ENOSPC;
    }
    if (count > RG_CLEAN_PARTS) {
        rg_log(RG_LOG_ERROR, -1, "more than %d algorithms", RG_CLEAN_PARTS);
        return RG_ENOSPC;
    }
    for (int i = 0; i < count; i++)
        left -= layout_add(layout_out, algos[i], left / (uint64_t)(count - i));
    return RG_OK;
}

/* ---- selection text ----------------------------------------------------- */

/* One part of a selection text. */
struct policy_part {
    char collective[RG_NAME_BYTES];
    char algorithm[RG_NAME_BYTES];
    unsigned channels; /* 0: not said */
};

/* The part at *text; moves *text behind it. 1, 0 at the end, or RG_EPOLICY. */
static int policy_next(const char **text, struct policy_part *part_out)
{
    const char *at = *text;
    char part[2 * RG_NAME_BYTES], digits[4] = "";
    size_t length;
    int fields, end = 0;

    at += strspn(at, "; ");
    if (!*at)
        return 0;
    length = strcspn(at, ";");
    memset(part_out, 0, sizeof *part_out);
    snprintf(part, sizeof part, "%.*s", (int)length, at);
    fields =
        sscanf(part, "%31[a-z_]=%31[a-z_]%n+%3[0-9]ch%n", part_out->collective,
               part_out->algorithm, &end, digits, &end);
    part_out->channels = (unsigned)atoi(digits);
    end += (int)strspn(part + end, " ");
    if (length >= sizeof part || fields < 2 || part[end] ||
        (fields == 3 && !part_out->channels)) {
        rg_log(RG_LOG_ERROR, -1,
               "policy \"%s\": expected "
               "collective=algorithm[+Nch]",
               part);
        return RG_EPOLICY;
    }
    *text = at + length;
    return 1;
}

static int layout_find(const struct rg_layout *layout, int coll,
                       const char *name)
{
    for (int i = 0; i < layout->count[coll]; i++)
        if (strcmp(layout->algo[coll][i]->name, name) == 0)
            return i;
    return -1;
}

static int collective_find(const char *name)
{
    for (int coll = 0; coll < RG_COLL_COUNT; coll++)
        if (strcmp(rg_collective_name(coll), name) == 0)
            return coll;
    return -1;
}

int rg_policy_check(const struct rg_layout *layout, const char *text)
{
    struct policy_part part;
    int more, coll;

    while ((more = policy_next(&text, &part)) > 0) {
        coll = collective_find(part.collective);
        if (coll >= 0 && layout_find(layout, coll, part.algorithm) >= 0 &&
            part.channels <= (unsigned)layout->shape.max_channels)
            continue;
        rg_log(RG_LOG_ERROR, -1, "policy: no algorithm %s=%s with %u channels",
               part.collective, part.algorithm, part.channels);
        return RG_EPOLICY;
    }
    return more;
}

/* The last part that names the collective: 1, or 0 for none. */
static int policy_lookup(const char *text, int coll,
                         struct policy_part *part_out)
{
    struct policy_part part;
    int found = 0;

    while (policy_next(&text, &part) > 0) {
        if (collective_find(part.collective) != coll)
            continue;
        *part_out = part;
        found = 1;
    }
    return found;
}

/* ---- rules -------------------------------------------------------------- */

/* The built-in choice: sizes below `below` use the algorithm. */
struct builtin {
    enum rg_device_kind kind;
    enum rg_collective collective;
    int max_ranks; /* the first entry that fits counts, size by size */
    uint64_t below;
    const char *algorithm;
};

/* From sweeps of all algorithms; results/ has them. */
static const struct builtin builtins[] = {
    {RG_DEVICE_EMU, RG_COLL_all_reduce, 2, 129, "oneshot_ll"},
    {RG_DEVICE_EMU, RG_COLL_all_reduce, 2, UINT64_MAX, "oneshot"},
    {RG_DEVICE_EMU, RG_COLL_all_reduce, 64, 65, "oneshot_ll"},
    {RG_DEVICE_EMU, RG_COLL_all_reduce, 64, 16385, "oneshot"},
    {RG_DEVICE_CUDA, RG_COLL_all_reduce, 2, 524289, "oneshot_ll"},
    {RG_DEVICE_CUDA, RG_COLL_all_reduce, 2, UINT64_MAX, "oneshot"},
    {RG_DEVICE_CUDA, RG_COLL_all_reduce, 64, 65537, "oneshot_ll"},
    {RG_DEVICE_CUDA, RG_COLL_all_reduce, 64, 524289, "oneshot"},
};

/*
 * A pipeline step, where the workspace has room for it; powers of two. On emu
 * it is one that leaves the writer's cache before the reader wants it, for
 * lines in another core's cache come late. On CUDA it is long enough for the
 * link not to feel the flags.
 */
static uint32_t chunk_of(enum rg_device_kind kind, uint64_t most)
{
    uint64_t chunk = kind == RG_DEVICE_CUDA ? 64 << 10 : 256 << 10;

    while (chunk > most && chunk > RG_GRAIN)
        chunk /= 2;
    return (uint32_t)(most ? chunk : 0);
}

static int all_direct(const struct rg_plan_input *input)
{
    for (int i = 0; i < input->view->nactive; i++)
        if (input->routes[i].kind != RG_ROUTE_P2P &&
            input->routes[i].kind != RG_ROUTE_SELF)
            return 0;
    return 1;
}

static int eligible(const struct rg_layout *layout, int coll, int index,
                    const struct rg_plan_input *input)
{
    const struct rg_algo *algo = layout->algo[coll][index];
    const int n = input->view->nactive;

    return layout->limits[coll][index].max_bytes > 0 && n >= algo->min_ranks &&
           n <= algo->max_ranks &&
           (!(algo->flags & RG_ALGO_DIRECT) || all_direct(input));
}

/* Adds a rule for the sizes that no earlier rule covers. */
static void rules_add(struct rg_rules *rules, const struct rg_layout *layout,
                      int coll, int index, uint64_t below, unsigned channels,
                      const struct rg_plan_input *input)
{
    const struct rg_limits *limits = &layout->limits[coll][index];
    const uint64_t covered =
        rules->count ? rules->rule[rules->count - 1].below : 0;
    struct rg_rule *rule = &rules->rule[rules->count];

    if (limits->max_bytes < UINT64_MAX && below > limits->max_bytes + 1)
        below = limits->max_bytes + 1;
    if (below <= covered || rules->count == RG_MAX_RULES)
        return;
    rule->below = below;
    rule->algo = (uint32_t)index;
    rule->channels = channels ? channels : (uint32_t)input->channels;
    rule->chunk = chunk_of(input->kind, limits->max_chunk);
    rule->unused = 0;
    rules->count++;
}

static void rules_builtin(struct rg_rules *rules,
                          const struct rg_layout *layout, int coll,
                          const struct rg_plan_input *input)
{
    const int rows = sizeof builtins / sizeof *builtins;
    int index;

    for (int i = 0; i < rows; i++) {
        if (builtins[i].kind != input->kind ||
            (int)builtins[i].collective != coll ||
            input->view->nactive > builtins[i].max_ranks)
            continue;
        index = layout_find(layout, coll, builtins[i].algorithm);
        if (index >= 0 && eligible(layout, coll, index, input))
            rules_add(rules, layout, coll, index, builtins[i].below, 0, input);
    }
    /* Any algorithm without a size limit takes the rest; the last is best. */
    for (index = layout->count[coll] - 1; index >= 0; index--)
        if (eligible(layout, coll, index, input))
            rules_add(rules, layout, coll, index, UINT64_MAX, 0, input);
}

/* The algorithm that a text chooses, or -1: none, or one that cannot run. */
static int policy_choice(const struct rg_layout *layout, const char *text,
                         int coll, const struct rg_plan_input *input,
                         struct policy_part *part_out)
{
    int index;

    if (!policy_lookup(text, coll, part_out))
        return -1;
    index = layout_find(layout, coll, part_out->algorithm);
    if (index >= 0 && eligible(layout, coll, index, input))
        return index;
    rg_log(RG_LOG_WARN, input->rank,
           "policy: %s=%s cannot run with %d ranks and these routes",
           part_out->collective, part_out->algorithm, input->view->nactive);
    return -1;
}

int rg_policy_fits(const struct rg_layout *layout, const char *text,
                   const struct rg_plan_input *input)
{
    struct policy_part part;

    for (int coll = 0; coll < RG_COLL_COUNT; coll++)
        if (policy_lookup(text, coll, &part) &&
            policy_choice(layout, text, coll, input, &part) < 0)
            return RG_EPOLICY;
    return RG_OK;
}

static void rules_resolve(struct rg_rules *rules,
                          const struct rg_layout *layout, int coll,
                          const struct rg_plan_input *input)
{
    struct policy_part part;
    const int index =
        policy_choice(layout, input->view->policy, coll, input, &part);

    memset(rules, 0, sizeof *rules);
    if (index >= 0)
        rules_add(rules, layout, coll, index, UINT64_MAX, part.channels, input);
    rules_builtin(rules, layout, coll, input);
}

/* ---- plan --------------------------------------------------------------- */

size_t rg_plan_bytes(int capacity)
{
    return sizeof(struct rg_plan) +
           (size_t)capacity *
               (sizeof(struct rg_route) + sizeof(struct rg_place));
}

void rg_plan_build(const struct rg_layout *layout,
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
    for (int coll = 0; coll < RG_COLL_COUNT; coll++)
        rules_resolve(&plan_out->rules[coll], layout, coll, input);
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

/* Packets go by the hot line as far as the first rule gives sizes to them. */
static uint64_t packet_hot_max(const struct rg_plan *plan, int index)
{
    const struct rg_rules *rules = &plan->rules[RG_COLL_all_reduce];

    if (plan->nranks < 2 || plan->nranks > RG_HOT_PEERS || !rules->count ||
        rules->rule[0].algo != (uint32_t)index)
        return 0;
    return rules->rule[0].below - 1;
}

/* Packets of the largest buffer that a rule gives to them; 0: none. */
static uint64_t packets_used(const struct rg_layout *layout,
                             const struct rg_plan *plan, int coll, int index)
{
    const uint64_t most = layout->limits[coll][index].max_bytes;
    const struct rg_rules *rules = &plan->rules[coll];
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < rules->count; i++)
        if (rules->rule[i].algo == (uint32_t)index)
            bytes = rules->rule[i].below - 1 < most ? rules->rule[i].below - 1
                                                    : most;
    return (bytes + RG_PACKET_PAYLOAD - 1) / RG_PACKET_PAYLOAD;
}

/* 1: some size runs this algorithm. */
static int is_ruled(const struct rg_plan *plan, int coll, int index)
{
    const struct rg_rules *rules = &plan->rules[coll];

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

    if (!(layout->algo[coll][index]->flags & RG_ALGO_PACKETS))
        return part;
    part.bytes = packets_used(layout, plan, coll, index) * RG_PACKET_BYTES;
    part.stride = limits->max_bytes / RG_PACKET_PAYLOAD * RG_PACKET_BYTES;
    part.count = 2 * (uint64_t)plan->capacity;
    return part;
}

int rg_plan_parts(const struct rg_layout *layout, const struct rg_plan *plan,
                  struct rg_part *parts_out)
{
    int count = 0;

    for (int coll = 0; coll < RG_COLL_COUNT; coll++)
        for (int i = 0; i < layout->count[coll]; i++) {
            if (!is_ruled(plan, coll, i))
                continue;
            parts_out[count] = part_of(layout, plan, coll, i);
            count += parts_out[count].bytes > 0;
        }
    return count;
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
    hot_out->epoch = plan->epoch;
    hot_out->first_seq = plan->first_seq;
    hot_out->rank = (uint16_t)plan->rank;
    hot_out->nranks = (uint16_t)plan->nranks;
    if (index < 0)
        return;
    area = plan->workspace + layout->offset[coll][index];
    stride = layout->limits[coll][index].max_bytes / RG_PACKET_PAYLOAD *
             RG_PACKET_BYTES;
    hot_out->packets = region + area;
    hot_out->packet_max_bytes = (uint32_t)packet_hot_max(plan, index);
    hot_out->packet_stride = (uint32_t)stride;
    hot_out->packet_half = (uint32_t)(stride * plan->capacity);
    for (uint32_t p = 0; p < plan->nranks && p < RG_HOT_PEERS; p++)
        if (p != plan->rank && plan->routes[p].base)
            hot_out->inbox[p] =
                plan->routes[p].base + area + stride * plan->rank;
}
