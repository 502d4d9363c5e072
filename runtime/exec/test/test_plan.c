/* Unit tests of workspace layouts, selection rules and plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/device/entry.h"
#include "runtime/device/packet.h"
#include "runtime/exec/plan_slot.h"
#include "runtime/exec/select.h"
#include "runtime/regroup.h"
#include "runtime/status.h"

enum {
    CAPACITY = 16,
    MAX_CHANNELS = 8,
    GENERATIONS = 3,
    CHANNELS = 4,
    PACKET_MAX = 64 << 10,
    WHOLE_MAX = 256 << 10
};

#define COLL RG_COLL_all_reduce

#define SHARE       (64ull << 20)
#define REGION_BASE ((uint8_t *)0x100000)

/* ---- toy algorithms ----------------------------------------------------- */

static uint64_t packets_layout(const struct rg_shape *shape,
                               struct rg_limits *limits_out)
{
    *limits_out = (struct rg_limits){PACKET_MAX, 0, 0};
    return (uint64_t)shape->capacity * PACKET_MAX * 2 + 17;
}

static uint64_t whole_layout(const struct rg_shape *shape,
                             struct rg_limits *limits_out)
{
    *limits_out = (struct rg_limits){WHOLE_MAX, 0, 64};
    return shape->budget;
}

static uint64_t chunks_layout(const struct rg_shape *shape,
                              struct rg_limits *limits_out)
{
    *limits_out = (struct rg_limits){UINT64_MAX, 48 << 10, 100};
    return shape->budget - 1;
}

static uint64_t no_layout(const struct rg_shape *shape,
                          struct rg_limits *limits_out)
{
    (void)shape;
    *limits_out = (struct rg_limits){1 << 20, 0, 0};
    return 0;
}

static const struct rg_entries no_entries;

#define TOY(name, flags, least, most, layout)                                  \
    {                                                                          \
        name, RG_COLL_all_reduce, flags, least, most, layout, &no_entries      \
    }

static const struct rg_algo whole =
    TOY("oneshot", RG_ALGO_DIRECT, 2, 4, whole_layout);
static const struct rg_algo packets =
    TOY("oneshot_ll", RG_ALGO_DIRECT | RG_ALGO_PACKETS, 2, 12, packets_layout);
static const struct rg_algo chunks = TOY("ring", 0, 1, 4096, chunks_layout);
static const struct rg_algo never = TOY("never", 0, 1, 4096, no_layout);

enum { WHOLE, PACKETS, NEVER, CHUNKS, ALGOS };
static const struct rg_algo *const table[] = {&whole, &packets, &never, &chunks,
                                              NULL};

/* ---- the world ---------------------------------------------------------- */

struct world {
    struct rg_layout layout;
    struct rg_view *view;
    struct rg_route routes[CAPACITY];
    struct rg_plan_input input;
    struct rg_plan *plan;
};

static int setup(void **state)
{
    struct world *world = test_calloc(1, sizeof *world);

    assert_int_equal(rg_layout_init(&world->layout, table, CAPACITY,
                                    MAX_CHANNELS, GENERATIONS, SHARE),
                     RG_OK);
    world->plan = test_malloc(rg_plan_bytes(CAPACITY));
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    rg_view_destroy(world->view);
    test_free(world->plan);
    test_free(world);
    return 0;
}

/* Rank 1 of n ranks, all reached directly, under a selection text. */
static int build(struct world *world, int n, const char *policy)
{
    rg_view_destroy(world->view);
    world->view = rg_view_create(1, CAPACITY);
    assert_non_null(world->view);
    for (int i = 0; i < n; i++) {
        world->view->members[i].status = RG_MEMBER_ACTIVE;
        world->view->members[i].info.capabilities = RG_CAP_P2P;
        world->routes[i] =
            (struct rg_route){.kind = i == 1 ? RG_ROUTE_SELF : RG_ROUTE_P2P,
                              .base = REGION_BASE + i * SHARE,
                              .bytes = SHARE};
    }
    rg_view_reorder(world->view);
    world->view->epoch = 7;
    world->view->first_seq = 30;
    assert_int_equal(rg_view_set_policy(world->view, policy), RG_OK);
    world->input = (struct rg_plan_input){.view = world->view,
                                          .routes = world->routes,
                                          .rank = 1,
                                          .kind = RG_DEVICE_EMU,
                                          .channels = CHANNELS,
                                          .workspace = 8192};
    assert_int_equal(rg_plan_build(&world->layout, &world->input, world->plan),
                     RG_OK);
    return rg_policy_fits(&world->layout, policy, &world->input);
}

static const struct rg_rule *rule_at(const struct world *world, uint64_t bytes)
{
    return rg_rule_for(world->plan, COLL, RG_f32, bytes);
}

/* ---- layout ------------------------------------------------------------- */

static void areas_are_disjoint_and_within_the_share(void **state)
{
    const struct world *world = *state;
    const struct rg_layout *layout = &world->layout;
    struct rg_shape shape = layout->shape;
    uint64_t left = SHARE / GENERATIONS;

    assert_int_equal(layout->count[COLL], ALGOS);
    for (int i = 0; i < ALGOS; i++) {
        struct rg_limits limits;
        const uint64_t begin = layout->offset[COLL][i];
        const uint64_t next =
            i + 1 < ALGOS ? layout->offset[COLL][i + 1] : layout->bytes;

        assert_ptr_equal(layout->algo[COLL][i], table[i]);
        assert_int_equal(begin % RG_AREA_ALIGN, 0);
        shape.budget =
            left / (uint64_t)(ALGOS - i) / RG_AREA_ALIGN * RG_AREA_ALIGN;
        assert_true(begin + table[i]->layout(&shape, &limits) <= next);
        assert_int_equal(limits.max_bytes > 0 && i != NEVER,
                         layout->limits[COLL][i].max_bytes > 0);
        left -= next - begin;
    }
    assert_true(layout->bytes * GENERATIONS <= SHARE);
}

/* PACKETS wants a part of its part, NEVER nothing: the last has their rest. */
static void what_an_algorithm_leaves_goes_to_those_behind(void **state)
{
    const struct world *world = *state;
    const uint64_t even = SHARE / GENERATIONS / ALGOS;
    const uint64_t wanted =
        world->layout.offset[COLL][NEVER] - world->layout.offset[COLL][PACKETS];

    assert_true(wanted < even);
    assert_true(world->layout.bytes - world->layout.offset[COLL][CHUNKS] +
                    ALGOS * RG_AREA_ALIGN >
                3 * even - wanted);
}

static uint64_t hash_of(const struct rg_algo *const *algos, uint64_t share)
{
    struct rg_layout layout;

    assert_int_equal(rg_layout_init(&layout, algos, CAPACITY, MAX_CHANNELS,
                                    GENERATIONS, share),
                     RG_OK);
    return layout.hash;
}

static void the_hash_knows_algorithms_and_places(void **state)
{
    const struct world *world = *state;
    const uint64_t hash = world->layout.hash;
    const struct rg_algo *swapped[] = {&packets, &whole, &never, &chunks, NULL};
    const struct rg_algo *fewer[] = {&whole, &packets, &chunks, NULL};
    const struct rg_algo *renamed[] = {&whole, &packets, &never, NULL, NULL};
    struct rg_algo other = chunks;

    other.name = "rang";
    renamed[CHUNKS] = &other;
    assert_true(hash_of(table, SHARE) == hash);
    assert_true(hash_of(table, SHARE / 2) != hash);
    assert_true(hash_of(swapped, SHARE) != hash);
    assert_true(hash_of(fewer, SHARE) != hash);
    assert_true(hash_of(renamed, SHARE) != hash);
}

static void a_share_without_room_is_refused(void **state)
{
    const uint64_t least = (uint64_t)ALGOS * GENERATIONS * RG_AREA_ALIGN;
    struct rg_layout layout;

    (void)state;
    assert_int_equal(rg_layout_init(&layout, table, CAPACITY, MAX_CHANNELS,
                                    GENERATIONS, least - 1),
                     RG_ENOSPC);
    assert_int_equal(rg_layout_init(&layout, table, CAPACITY, MAX_CHANNELS,
                                    GENERATIONS, least),
                     RG_OK);
}

/* ---- rules -------------------------------------------------------------- */

/* Ascending, to the end, each within its algorithm's limit and ranks. */
static void check_rules(const struct world *world, int n)
{
    const struct rg_rules *rules = &world->plan->rules[COLL];
    uint64_t covered = 0;

    assert_in_range(rules->count, 1, RG_MAX_RULES);
    for (uint64_t i = 0; i < rules->count; i++) {
        const struct rg_rule *rule = &rules->rule[i];
        const struct rg_limits *limits =
            &world->layout.limits[COLL][rule->algo];

        assert_true(rule->below > covered);
        covered = rule->below;
        assert_int_not_equal(rule->algo, NEVER);
        assert_in_range(n, table[rule->algo]->min_ranks,
                        table[rule->algo]->max_ranks);
        assert_true(limits->max_bytes == UINT64_MAX ||
                    rule->below - 1 <= limits->max_bytes);
        assert_true(rule->chunk <= limits->max_chunk);
        assert_in_range(rule->channels, 1, MAX_CHANNELS);
    }
    assert_true(covered == UINT64_MAX);
}

static void builtin_rules_cover_every_size(void **state)
{
    struct world *world = *state;

    for (int n = 1; n <= CAPACITY; n++) {
        assert_int_equal(build(world, n, ""), RG_OK);
        check_rules(world, n);
        assert_int_equal(rule_at(world, 8)->algo,
                         n == 1 || n > 12 ? CHUNKS : PACKETS);
        assert_int_equal(rule_at(world, 1 << 30)->algo, CHUNKS);
        assert_int_equal(rule_at(world, 8)->channels, CHANNELS);
    }
    assert_int_equal(world->plan->rules[RG_COLL_broadcast].count, 0);
}

/* Beyond the limit of the algorithm asked for the built-in choice goes on. */
static void an_override_reaches_as_far_as_its_limit(void **state)
{
    struct world *world = *state;

    assert_int_equal(build(world, 4, "all_reduce=oneshot+3ch"), RG_OK);
    check_rules(world, 4);
    assert_int_equal(rule_at(world, 0)->algo, WHOLE);
    assert_int_equal(rule_at(world, WHOLE_MAX)->algo, WHOLE);
    assert_int_equal(rule_at(world, WHOLE_MAX)->channels, 3);
    assert_int_equal(rule_at(world, WHOLE_MAX + 1)->algo, CHUNKS);
    assert_int_equal(rule_at(world, WHOLE_MAX + 1)->channels, CHANNELS);
    assert_int_equal(build(world, 4, "all_reduce=ring"), RG_OK);
    assert_int_equal(world->plan->rules[COLL].count, 1);
    assert_int_equal(rule_at(world, 8)->algo, CHUNKS);
    /* The largest power of two within the limit of 48 KiB. */
    assert_int_equal(rule_at(world, 8)->chunk, 32 << 10);
}

static void the_last_part_for_a_collective_counts(void **state)
{
    struct world *world = *state;

    assert_int_equal(
        build(world, 2, "all_reduce=ring; all_reduce=oneshot+2ch;"), RG_OK);
    assert_int_equal(rule_at(world, 8)->algo, WHOLE);
    assert_int_equal(rule_at(world, 8)->channels, 2);
}

static void a_policy_that_cannot_run_is_refused(void **state)
{
    struct world *world = *state;

    assert_int_equal(build(world, 5, "all_reduce=oneshot"), RG_EPOLICY);
    assert_int_equal(build(world, 1, "all_reduce=oneshot_ll"), RG_EPOLICY);
    assert_int_equal(build(world, 2, "all_reduce=never"), RG_EPOLICY);
    assert_int_equal(build(world, 2, "all_reduce=tree"), RG_EPOLICY);
    /* A plan made all the same has the built-in rules. */
    assert_int_not_equal(rule_at(world, 8)->algo, NEVER);
}

/* What the group has agreed on may not fit any more once members are gone. */
static void a_plan_ignores_what_cannot_run(void **state)
{
    struct world *world = *state;
    uint32_t choice;

    assert_int_equal(build(world, 5, ""), RG_OK);
    choice = rule_at(world, 8)->algo;
    assert_int_equal(build(world, 5, "all_reduce=oneshot"), RG_EPOLICY);
    assert_int_equal(rule_at(world, 8)->algo, choice);
}

/* One peer without direct route takes the direct algorithms from all. */
static void direct_algorithms_need_every_route(void **state)
{
    struct world *world = *state;

    assert_int_equal(build(world, 3, ""), RG_OK);
    world->view->members[2].info.capabilities = RG_CAP_PROXY;
    assert_int_equal(rg_plan_build(&world->layout, &world->input, world->plan),
                     RG_OK);
    assert_int_equal(rule_at(world, 8)->algo, CHUNKS);
    assert_int_equal(
        rg_policy_fits(&world->layout, "all_reduce=oneshot", &world->input),
        RG_EPOLICY);
}

static void malformed_policies_are_refused(void **state)
{
    static const char *const bad[] = {
        "all_reduce",
        "all_reduce=",
        "=ring",
        "all_reduce=tree",
        "all_scatter=ring",
        "broadcast=ring",
        "all_reduce=Ring",
        "all_reduce=ring+",
        "all_reduce=ring+ch",
        "all_reduce=ring+9ch",
        "all_reduce=ring+-1ch",
        "all_reduce=ring+2",
        "all_reduce=ring+2x",
        "all_reduce=ring+2chx",
        "all_reduce=ring ring",
        "all_reduce=ring+0ch",
        "all_reduce=ring +2ch",
        "all_reduce=ring,2",
        "all_reduce=ring;x",
        "all_reduce=ringringringringringringringringringring"};
    static const char *const good[] = {
        "", ";", "all_reduce=ring", " all_reduce=ring+8ch ;",
        "all_reduce=oneshot;all_reduce=ring+1ch"};
    const struct world *world = *state;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (rg_policy_check(&world->layout, bad[i]) != RG_EPOLICY)
            fail_msg("\"%s\" was accepted", bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (rg_policy_check(&world->layout, good[i]) != RG_OK)
            fail_msg("\"%s\" was refused", good[i]);
}

/* ---- tables ------------------------------------------------------------- */

#define HEAD "regroup-policy 1\nunit bytes-per-rank-buffer\ntopology emu:4\n"
#define REST " - - -\n"

static const char typed[] =
    HEAD "all_reduce any 2-4 0 4097 oneshot - ll -" REST
         "all_reduce any 2-4 4097 65536 oneshot 2 - -" REST
         "all_reduce any 2-4 65536 inf ring 3 - 16384" REST
         "all_reduce f32 4 0 1000 oneshot - ll -" REST
         "all_reduce f32 4 1000 inf ring - - 4096" REST;

static void expect_rule(const struct world *world, enum rg_dtype dtype,
                        uint64_t bytes, struct rg_rule rule)
{
    const struct rg_rule *found = rg_rule_for(world->plan, COLL, dtype, bytes);

    assert_int_equal(found->algo, rule.algo);
    assert_int_equal(found->channels, rule.channels);
    assert_int_equal(found->chunk, rule.chunk);
    assert_int_equal(found->slot, rule.slot);
}

static void a_table_is_followed_from_bound_to_bound(void **state)
{
    const struct rg_rule ll = {.algo = PACKETS, .channels = CHANNELS};
    const struct rg_rule oneshot = {.algo = WHOLE, .channels = 2};
    const struct rg_rule ring = {
        .algo = CHUNKS, .channels = 3, .chunk = 16384, .slot = 16384};
    const struct rg_rule ring_f32 = {
        .algo = CHUNKS, .channels = CHANNELS, .chunk = 4096, .slot = 16384};
    struct world *world = *state;

    assert_int_equal(build(world, 4, typed), RG_OK);
    expect_rule(world, RG_i8, 0, ll);
    expect_rule(world, RG_i8, 4096, ll);
    expect_rule(world, RG_i8, 4097, oneshot);
    expect_rule(world, RG_f64, 65535, oneshot);
    expect_rule(world, RG_f64, 65536, ring);
    expect_rule(world, RG_i8, 1ull << 50, ring);
    expect_rule(world, RG_f32, 999, ll);
    expect_rule(world, RG_f32, 1000, ring_f32);
    expect_rule(world, RG_f32, 1ull << 50, ring_f32);
    /* The f32 rows are for 4 ranks only. */
    assert_int_equal(build(world, 3, typed), RG_OK);
    expect_rule(world, RG_f32, 1000, ll);
}

static struct rg_hot_plan excerpt(const struct world *world);

static void the_hot_line_knows_no_types(void **state)
{
    struct world *world = *state;

    assert_int_equal(build(world, 4, typed), RG_OK);
    assert_int_equal(excerpt(world).packet_max_bytes, 999);
    assert_true(rg_plan_is_hot(&world->layout, world->plan, 999));
    assert_false(rg_plan_is_hot(&world->layout, world->plan, 1000));
    assert_int_equal(build(world, 3, typed), RG_OK);
    assert_int_equal(excerpt(world).packet_max_bytes, 4096);
    assert_int_equal(build(world, 3,
                           HEAD "all_reduce any 3 0 inf ring - - -" REST
                                "all_reduce f32 3 0 9 oneshot - ll -" REST
                                "all_reduce f32 3 9 inf ring - - -" REST),
                     RG_OK);
    assert_int_equal(excerpt(world).packet_max_bytes, 0);
}

static void overrides_come_before_the_table(void **state)
{
    struct world *world = *state;
    char text[1024];

    snprintf(text, sizeof text, "all_reduce=oneshot+1ch\n%s", typed);
    assert_int_equal(build(world, 4, text), RG_OK);
    assert_int_equal(rule_at(world, WHOLE_MAX)->algo, WHOLE);
    assert_int_equal(rule_at(world, WHOLE_MAX)->channels, 1);
    assert_int_equal(rule_at(world, WHOLE_MAX + 1)->algo, CHUNKS);
    assert_int_equal(rule_at(world, WHOLE_MAX + 1)->chunk, 4096);
}

static void ranks_without_rows_use_those_of_fewer(void **state)
{
    struct world *world = *state;

    assert_int_equal(build(world, 9, typed), RG_EPOLICY);
    assert_int_equal(rule_at(world, 2000)->chunk, 4096);
    assert_int_equal(build(world, 1, typed), RG_OK);
    assert_int_equal(rule_at(world, 2000)->algo, CHUNKS);
    assert_int_equal(rule_at(world, 2000)->chunk, 32 << 10);
}

static void tables_without_room_are_refused(void **state)
{
    static const char *const bad[] = {
        HEAD "all_reduce any 2 0 inf ring 9 - -" REST,
        HEAD "all_reduce any 2 0 inf ring - - 49168" REST,
        HEAD "all_reduce any 2 0 inf oneshot - - -" REST,
        HEAD "all_reduce any 2 0 inf ring - ll -" REST,
        HEAD "all_reduce any 2 0 inf tree - - -" REST,
        HEAD "all_reduce any 2 0 4096 ring - - -" REST,
        "all_reduce=tree\n" HEAD "all_reduce any 2 0 inf ring - - -" REST,
        "unit bytes-per-rank-buffer\n"};
    static const char *const good[] = {
        HEAD "all_reduce any 2 0 inf ring 8 - 49152" REST,
        "all_reduce=ring;\n" HEAD "all_reduce any 2 0 inf ring - - -" REST};
    const struct world *world = *state;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (rg_policy_check(&world->layout, bad[i]) != RG_EPOLICY)
            fail_msg("\"%s\" was accepted", bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (rg_policy_check(&world->layout, good[i]) != RG_OK)
            fail_msg("\"%s\" was refused", good[i]);
}

static void equal_selections_are_equal_texts(void **state)
{
    static const char spaced[] =
        "all_reduce=ring; \n"
        "regroup-policy  1 # x\nunit bytes-per-rank-buffer\ntopology a\n"
        "all_reduce any 2  0 inf   ring - - - - - -\n";
    char *once, *twice, *composed;

    (void)state;
    assert_int_equal(rg_policy_canonical(spaced, table, &once), RG_OK);
    assert_int_equal(rg_policy_canonical(once, table, &twice), RG_OK);
    assert_string_not_equal(once, spaced);
    assert_string_equal(once, twice);
    assert_int_equal(rg_policy_compose("all_reduce=ring",
                                       strchr(spaced, '\n') + 1, "f", table,
                                       &composed),
                     RG_OK);
    assert_string_equal(composed, once);
    free(once);
    free(twice);
    free(composed);
    assert_int_equal(rg_policy_canonical(HEAD, table, &once), RG_EPOLICY);
    assert_int_equal(rg_policy_canonical("", table, &once), RG_OK);
    assert_string_equal(once, "");
    free(once);
}

static uint64_t hash_at(struct world *world, int rank, int channels)
{
    struct rg_rules rules[RG_COLL_COUNT];

    world->input.rank = rank;
    world->input.channels = channels;
    assert_int_equal(rg_rules_build(&world->layout, &world->input, rules),
                     RG_OK);
    return rg_rules_hash(rules);
}

static void the_rules_hash_is_the_groups(void **state)
{
    struct world *world = *state;
    uint64_t hash;

    assert_int_equal(build(world, 4, typed), RG_OK);
    hash = hash_at(world, 0, CHANNELS);
    assert_true(hash_at(world, 1, CHANNELS) == hash);
    assert_true(hash_at(world, 1, CHANNELS + 1) != hash);
    world->input.routes = NULL;
    assert_true(hash_at(world, 2, CHANNELS) == hash);
    assert_int_equal(build(world, 4, ""), RG_OK);
    assert_true(hash_at(world, 0, CHANNELS) != hash);
}

static void a_text_read_once_gives_the_same_rules(void **state)
{
    struct world *world = *state;
    struct rg_selection *selection;
    uint64_t hash;

    assert_int_equal(build(world, 4, typed), RG_OK);
    hash = hash_at(world, 0, CHANNELS);
    assert_int_equal(rg_selection_create(typed, RG_DEVICE_EMU, &selection),
                     RG_OK);
    assert_true(rg_selection_is(selection, typed));
    assert_false(rg_selection_is(selection, ""));
    assert_false(rg_selection_is(NULL, ""));
    /* The text of the view is not looked at any more. */
    assert_int_equal(build(world, 4, ""), RG_OK);
    world->input.selection = selection;
    assert_true(hash_at(world, 0, CHANNELS) == hash);
    rg_selection_destroy(selection);
    assert_int_equal(rg_selection_create(HEAD, RG_DEVICE_EMU, &selection),
                     RG_EPOLICY);
}

/* ---- plan --------------------------------------------------------------- */

static void a_plan_says_what_the_view_says(void **state)
{
    struct world *world = *state;

    assert_int_equal(build(world, 3, ""), RG_OK);
    assert_int_equal(world->plan->epoch, 7);
    assert_int_equal(world->plan->first_seq, 30);
    assert_int_equal(world->plan->rank, 1);
    assert_int_equal(world->plan->nranks, 3);
    assert_int_equal(world->plan->capacity, CAPACITY);
    assert_int_equal(world->plan->max_channels, MAX_CHANNELS);
    assert_int_equal(world->plan->workspace, 8192);
    assert_memory_equal(world->plan->offset, world->layout.offset,
                        sizeof world->plan->offset);
    assert_memory_equal(world->plan->routes, world->routes,
                        3 * sizeof(struct rg_route));
}

/* Only what a rule names has run; of packets only what a rule reaches. */
static void litter_is_what_the_rules_name(void **state)
{
    struct world *world = *state;
    struct rg_part parts[RG_CLEAN_PARTS];
    const uint64_t *offset = world->layout.offset[COLL];

    assert_int_equal(build(world, 4, "all_reduce=ring"), RG_OK);
    assert_int_equal(rg_plan_parts(&world->layout, world->plan, parts), 1);
    assert_int_equal(parts[0].offset, 8192 + offset[CHUNKS]);
    assert_int_equal(parts[0].bytes, 112); /* 100, in whole packets */
    assert_int_equal(build(world, 4, "all_reduce=oneshot"), RG_OK);
    assert_int_equal(rg_plan_parts(&world->layout, world->plan, parts), 2);
    assert_int_equal(parts[0].offset, 8192 + offset[WHOLE]);
    assert_int_equal(parts[1].offset, 8192 + offset[CHUNKS]);
    assert_int_equal(build(world, 4, "all_reduce=oneshot_ll"), RG_OK);
    rg_plan_parts(&world->layout, world->plan, parts);
    assert_int_equal(parts[0].offset, 8192 + offset[PACKETS]);
    assert_int_equal(parts[0].bytes,
                     PACKET_MAX / RG_PACKET_PAYLOAD * RG_PACKET_BYTES);
    assert_int_equal(parts[0].count, 2 * CAPACITY);
}

/* What is called by itself has no rule: it may have run in any epoch. No
 * selection can name it. */
static void a_probe_is_litter_without_a_rule(void **state)
{
    static const struct rg_algo probe = {
        "transfer", RG_COLL_transfer, 0, 1, 4096, whole_layout, &no_entries};
    static const struct rg_algo *const algos[] = {&chunks, &probe, NULL};
    struct world *world = *state;
    struct rg_part parts[RG_CLEAN_PARTS];

    assert_int_equal(rg_layout_init(&world->layout, algos, CAPACITY,
                                    MAX_CHANNELS, GENERATIONS, SHARE),
                     RG_OK);
    assert_int_equal(build(world, 4, ""), RG_OK);
    assert_int_equal(rg_plan_parts(&world->layout, world->plan, parts), 2);
    assert_int_equal(parts[1].offset,
                     8192 + world->layout.offset[RG_COLL_transfer][0]);
    assert_int_equal(parts[1].bytes, 64);
    assert_int_equal(rg_policy_check(&world->layout, "transfer=transfer"),
                     RG_EPOLICY);
}

static struct rg_hot_plan excerpt(const struct world *world)
{
    struct rg_hot_plan hot;

    rg_plan_excerpt(&world->layout, world->plan, REGION_BASE + SHARE, &hot);
    return hot;
}

static void the_hot_line_knows_where_packets_go(void **state)
{
    struct world *world = *state;
    struct rg_hot_plan hot;
    uint64_t area, stride = PACKET_MAX / RG_PACKET_PAYLOAD * RG_PACKET_BYTES;

    assert_int_equal(build(world, RG_HOT_PEERS, ""), RG_OK);
    hot = excerpt(world);
    area = 8192 + world->layout.offset[COLL][PACKETS];
    assert_int_equal(hot.run, RG_RUN(COLL, PACKETS, 1, 7));
    assert_int_equal(hot.first_seq, 30);
    assert_int_equal(hot.rank, 1);
    assert_int_equal(hot.nranks, RG_HOT_PEERS);
    assert_int_equal(hot.packet_max_bytes,
                     world->plan->rules[COLL].rule[0].below - 1);
    assert_int_equal(hot.packet_stride, stride);
    assert_int_equal(hot.packet_half, stride * CAPACITY);
    assert_ptr_equal(hot.packets, REGION_BASE + SHARE + area);
    for (int p = 0; p < RG_HOT_PEERS; p++)
        assert_ptr_equal(hot.inbox[p],
                         p == 1 ? NULL
                                : REGION_BASE + p * SHARE + area + stride);
}

static void packets_go_by_the_hot_line_if_small_sizes_do(void **state)
{
    struct world *world = *state;

    assert_int_equal(build(world, RG_HOT_PEERS + 1, ""), RG_OK);
    assert_int_equal(rule_at(world, 8)->algo, PACKETS);
    assert_int_equal(excerpt(world).packet_max_bytes, 0);
    assert_int_equal(build(world, 2, "all_reduce=ring"), RG_OK);
    assert_int_equal(excerpt(world).packet_max_bytes, 0);
    assert_int_equal(build(world, 1, ""), RG_OK);
    assert_int_equal(excerpt(world).packet_max_bytes, 0);
    assert_int_equal(build(world, 2, "all_reduce=oneshot_ll"), RG_OK);
    assert_int_equal(excerpt(world).packet_max_bytes, PACKET_MAX);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(areas_are_disjoint_and_within_the_share),
        TEST(what_an_algorithm_leaves_goes_to_those_behind),
        TEST(the_hash_knows_algorithms_and_places),
        TEST(a_share_without_room_is_refused),
        TEST(builtin_rules_cover_every_size),
        TEST(an_override_reaches_as_far_as_its_limit),
        TEST(the_last_part_for_a_collective_counts),
        TEST(a_policy_that_cannot_run_is_refused),
        TEST(a_plan_ignores_what_cannot_run),
        TEST(direct_algorithms_need_every_route),
        TEST(malformed_policies_are_refused),
        TEST(a_table_is_followed_from_bound_to_bound),
        TEST(the_hot_line_knows_no_types),
        TEST(overrides_come_before_the_table),
        TEST(ranks_without_rows_use_those_of_fewer),
        TEST(tables_without_room_are_refused),
        TEST(equal_selections_are_equal_texts),
        TEST(the_rules_hash_is_the_groups),
        TEST(a_text_read_once_gives_the_same_rules),
        TEST(a_plan_says_what_the_view_says),
        TEST(litter_is_what_the_rules_name),
        TEST(a_probe_is_litter_without_a_rule),
        TEST(the_hot_line_knows_where_packets_go),
        TEST(packets_go_by_the_hot_line_if_small_sizes_do),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
