/* Unit tests of how a view's ranks are grouped into nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/exec/locality.h"
#include "runtime/exec/plan_slot.h"

enum { CAPACITY = 9 };

struct world {
    struct rg_view *view;
    struct rg_plan *plan;
};

static int setup(void **state)
{
    struct world *world = test_calloc(1, sizeof *world);

    world->view = rg_view_create(1, CAPACITY);
    assert_non_null(world->view);
    world->plan = test_calloc(1, rg_plan_bytes(CAPACITY));
    world->plan->capacity = CAPACITY;
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

/* Slot i is on host hosts[i]; a '-' is a slot without a member. */
static void build(struct world *world, const char *hosts, uint64_t node_ranks)
{
    for (int i = 0; i < CAPACITY; i++)
        world->view->members[i].status = RG_MEMBER_NONE;
    for (int i = 0; hosts[i]; i++) {
        struct rg_member *member = &world->view->members[i];

        member->status = hosts[i] == '-' ? RG_MEMBER_FAILED : RG_MEMBER_ACTIVE;
        snprintf(member->info.host_id, sizeof member->info.host_id, "host-%c",
                 hosts[i]);
    }
    rg_view_reorder(world->view);
    memset(world->plan, 0, rg_plan_bytes(CAPACITY));
    world->plan->capacity = CAPACITY;
    rg_locality_build(world->view, node_ranks, world->plan);
}

/* Per rank a digit: its node, its number in it, the node's ranks. */
static void check(const struct world *world, const char *node,
                  const char *local, const char *size)
{
    const struct rg_place *places = rg_plan_places(world->plan);
    uint32_t nodes = 0, widest = 0;

    assert_int_equal(world->view->nactive, strlen(node));
    for (int r = 0; node[r]; r++) {
        assert_int_equal(places[r].node, node[r] - '0');
        assert_int_equal(places[r].local, local[r] - '0');
        assert_int_equal(places[r].size, size[r] - '0');
        nodes = places[r].node + 1 > nodes ? places[r].node + 1 : nodes;
        widest = places[r].size > widest ? places[r].size : widest;
    }
    assert_int_equal(world->plan->nodes, nodes);
    assert_int_equal(world->plan->widest, widest);
}

static void ranks_of_a_host_are_a_node(void **state)
{
    build(*state, "aabbb", 0);
    check(*state, "00111", "01012", "22333");
    build(*state, "aaaaaaaaa", 0);
    check(*state, "000000000", "012345678", "999999999");
    build(*state, "abcdefghi", 0);
    check(*state, "012345678", "000000000", "111111111");
}

static void nodes_need_not_be_neighbours(void **state)
{
    build(*state, "abcabcab", 0);
    check(*state, "01201201", "00011122", "33233233");
}

/* Ranks are dense: who has died is in no node, and a node may be gone. */
static void nodes_shrink_with_their_members(void **state)
{
    build(*state, "a-bb-c-ad", 0);
    check(*state, "011203", "001010", "222121");
}

static void a_setting_groups_slots_and_not_ranks(void **state)
{
    build(*state, "abcdefgh", 3);
    check(*state, "00011122", "01201201", "33333322");
    build(*state, "a--defg", 3);
    check(*state, "01112", "00120", "13331");
    build(*state, "abcd", 1);
    check(*state, "0123", "0000", "1111");
    build(*state, "abcd", 100);
    check(*state, "0000", "0123", "4444");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(ranks_of_a_host_are_a_node),
        TEST(nodes_need_not_be_neighbours),
        TEST(nodes_shrink_with_their_members),
        TEST(a_setting_groups_slots_and_not_ranks),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
