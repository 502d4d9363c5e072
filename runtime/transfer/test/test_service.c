/*
 * Unit tests of the transfer service and of route choice: two or three ranks
 * in one process over a toy device whose memory is the heap.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/status.h"
#include "runtime/transfer/route_table.h"

enum { RANKS = 3, REGION_BYTES = 16 << 10, SALT = 42 };

/* A rank's device; it counts what it is asked for. */
struct toy {
    uint64_t process;
    int regions;
    int maps, unmaps;
    int map_status; /* what region_map answers */
    int copy_status;
};

static int toy_region_create(void *device, size_t bytes, void **base_out,
                             int *fd_out)
{
    struct toy *toy = device;

    *base_out = calloc(1, bytes);
    *fd_out = -1;
    toy->regions++;
    return *base_out ? RG_OK : RG_ENOMEM;
}

static void toy_region_destroy(void *device, void *base, size_t bytes, int fd)
{
    struct toy *toy = device;

    (void)bytes;
    (void)fd;
    toy->regions--;
    free(base);
}

static int toy_needs_fd(void *device, const struct rg_region_key *key)
{
    return key->process != ((struct toy *)device)->process;
}

static int toy_region_map(void *device, const struct rg_region_key *key, int fd,
                          size_t bytes, void **base_out)
{
    struct toy *toy = device;

    assert_int_equal(bytes, REGION_BYTES);
    assert_int_equal(fd >= 0, toy_needs_fd(device, key));
    if (toy->map_status)
        return toy->map_status;
    toy->maps++;
    *base_out = (void *)(uintptr_t)key->base;
    return RG_OK;
}

static void toy_region_unmap(void *device, const struct rg_region_key *key,
                             void *base, size_t bytes)
{
    struct toy *toy = device;

    (void)bytes;
    assert_ptr_equal(base, (void *)(uintptr_t)key->base);
    toy->unmaps++;
}

static int toy_copy(void *device, void *dst, const void *src, size_t bytes)
{
    struct toy *toy = device;

    if (toy->copy_status)
        return toy->copy_status;
    memcpy(dst, src, bytes);
    return RG_OK;
}

static int toy_copy_words(void *device, uint64_t *dst, const uint64_t *src,
                          size_t words)
{
    return toy_copy(device, dst, src, words * sizeof *dst);
}

static uint64_t toy_process(void *device)
{
    return ((struct toy *)device)->process;
}

static const struct rg_memory_ops toy_ops = {.region_create = toy_region_create,
                                             .region_destroy =
                                                 toy_region_destroy,
                                             .region_map = toy_region_map,
                                             .region_unmap = toy_region_unmap,
                                             .needs_fd = toy_needs_fd,
                                             .copy = toy_copy,
                                             .copy_words = toy_copy_words,
                                             .process = toy_process};

struct world {
    struct toy toy[RANKS];
    struct rg_service *service[RANKS];
    int fetched; /* descriptor handed out last */
    int fetch_status;
};

static int world_fetch(void *arg, int world_rank, int *fd_out)
{
    struct world *world = arg;

    assert_in_range(world_rank, 0, RANKS - 1);
    if (world->fetch_status)
        return world->fetch_status;
    world->fetched = *fd_out = open("/dev/null", O_RDONLY);
    assert_true(world->fetched >= 0);
    return RG_OK;
}

static int setup(void **state)
{
    struct world *world = test_calloc(1, sizeof *world);

    for (int i = 0; i < RANKS; i++) {
        const struct rg_memory memory = {&toy_ops, &world->toy[i]};

        world->toy[i].process = 100;
        assert_int_equal(rg_service_create(&memory, i, RANKS, REGION_BYTES,
                                           &world->service[i]),
                         RG_OK);
    }
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    for (int i = 0; i < RANKS; i++) {
        rg_service_destroy(world->service[i]);
        assert_int_equal(world->toy[i].regions, 0);
        assert_int_equal(world->toy[i].maps, world->toy[i].unmaps);
    }
    test_free(world);
    return 0;
}

static struct rg_route_peer peer_of(const struct world *world, int rank)
{
    return (struct rg_route_peer){.world_rank = rank,
                                  .slot = 10 + rank,
                                  .direct = 1,
                                  .key = rg_service_key(world->service[rank])};
}

/* The route of rank `from` to `peer`; RG_OK is expected. */
static struct rg_route choose(struct world *world, int from,
                              const struct rg_route_peer *peer)
{
    const struct rg_fd_source source = {world_fetch, world};
    struct rg_route route;

    memset(&route, 0xff, sizeof route);
    assert_int_equal(
        rg_route_choose(world->service[from], peer, &source, &route), RG_OK);
    assert_int_equal(route.slot, peer->slot);
    return route;
}

static void connect_all(struct world *world)
{
    for (int from = 0; from < RANKS; from++)
        for (int to = 0; to < RANKS; to++) {
            const struct rg_route_peer peer = peer_of(world, to);

            choose(world, from, &peer);
        }
}

static void sign_all(struct world *world, uint64_t salt)
{
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(rg_service_proof_sign(world->service[i], salt), RG_OK);
}

static void proof_holds_both_ways(void **state)
{
    struct world *world = *state;

    connect_all(world);
    for (uint64_t salt = 1; salt <= 3; salt++) {
        sign_all(world, salt);
        for (int a = 0; a < RANKS; a++)
            for (int b = 0; b < RANKS; b++)
                assert_int_equal(
                    rg_service_proof_write(world->service[a], b, salt, salt),
                    1);
        for (int a = 0; a < RANKS; a++)
            for (int b = 0; b < RANKS; b++)
                assert_int_equal(
                    rg_service_proof_check(world->service[a], b, salt), 1);
    }
}

/* Only the writer's slot is judged, and every byte of it. */
static void a_corrupted_board_is_seen(void **state)
{
    struct world *world = *state;

    connect_all(world);
    sign_all(world, SALT);
    for (int byte = 0; byte < RG_PROOF_BYTES; byte++) {
        uint8_t *mark = world->service[1]->region + 1 * RG_PROOF_BYTES + byte;

        *mark ^= 1;
        assert_int_equal(
            rg_service_proof_write(world->service[0], 1, SALT, SALT), 0);
        *mark ^= 1;
    }
    assert_int_equal(rg_service_proof_check(world->service[1], 0, SALT), 0);
    assert_int_equal(rg_service_proof_write(world->service[0], 1, SALT, SALT),
                     1);
    for (int byte = 0; byte < RG_PROOF_BYTES; byte++) {
        uint8_t *written = world->service[1]->region + byte;

        *written ^= 0x80;
        assert_int_equal(rg_service_proof_check(world->service[1], 0, SALT), 0);
        *written ^= 0x80;
    }
    assert_int_equal(rg_service_proof_check(world->service[1], 0, SALT), 1);
}

static void a_wrong_salt_is_seen(void **state)
{
    struct world *world = *state;

    connect_all(world);
    sign_all(world, SALT);
    assert_int_equal(
        rg_service_proof_write(world->service[0], 1, SALT + 1, SALT + 1), 0);
    assert_int_equal(rg_service_proof_write(world->service[0], 1, SALT, SALT),
                     1);
    assert_int_equal(rg_service_proof_check(world->service[1], 0, SALT + 1), 0);
    /* What an earlier epoch left on the boards proves nothing. */
    sign_all(world, SALT + 1);
    assert_int_equal(rg_service_proof_check(world->service[1], 0, SALT + 1), 0);
}

/* Even where the peer has left its mark on that region, for its owner. */
static void a_mapping_of_the_wrong_region_is_seen(void **state)
{
    struct world *world = *state;
    struct rg_route_peer peer = peer_of(world, 2);

    connect_all(world);
    sign_all(world, SALT);
    assert_int_equal(rg_service_proof_write(world->service[1], 2, SALT, SALT),
                     1);
    peer.world_rank = 1;
    choose(world, 0, &peer);
    assert_int_equal(rg_service_proof_write(world->service[0], 1, SALT, SALT),
                     0);
}

static void a_mark_in_the_wrong_slot_is_seen(void **state)
{
    struct world *world = *state;
    uint8_t *board = world->service[1]->region;

    connect_all(world);
    sign_all(world, SALT);
    assert_int_equal(rg_service_proof_write(world->service[2], 1, SALT, SALT),
                     1);
    memcpy(board, board + 2 * RG_PROOF_BYTES, RG_PROOF_BYTES);
    assert_int_equal(rg_service_proof_check(world->service[1], 0, SALT), 0);
}

static void an_unmapped_peer_or_a_failing_copy_is_seen(void **state)
{
    struct world *world = *state;

    sign_all(world, SALT);
    assert_int_equal(rg_service_proof_write(world->service[0], 1, SALT, SALT),
                     0);
    connect_all(world);
    assert_int_equal(rg_service_proof_write(world->service[0], 1, SALT, SALT),
                     1);
    world->toy[0].copy_status = RG_ESYSTEM;
    world->toy[1].copy_status = RG_ESYSTEM;
    assert_int_equal(rg_service_proof_sign(world->service[0], SALT),
                     RG_ESYSTEM);
    assert_int_equal(rg_service_proof_write(world->service[0], 1, SALT, SALT),
                     0);
    assert_int_equal(rg_service_proof_check(world->service[1], 0, SALT), 0);
}

/* Only a new key maps again; the old mapping goes first. */
static void a_mapping_lasts_as_long_as_its_key(void **state)
{
    struct world *world = *state;
    struct rg_route_peer peer = peer_of(world, 1);

    assert_ptr_equal(choose(world, 0, &peer).base, world->service[1]->region);
    choose(world, 0, &peer);
    assert_int_equal(world->toy[0].maps, 1);
    peer.key = rg_service_key(world->service[2]);
    assert_ptr_equal(choose(world, 0, &peer).base, world->service[2]->region);
    assert_int_equal(world->toy[0].maps, 2);
    assert_int_equal(world->toy[0].unmaps, 1);
}

static void descriptors_are_fetched_for_other_processes_and_closed(void **state)
{
    struct world *world = *state;
    struct rg_route_peer peer;

    world->toy[1].process = 101;
    peer = peer_of(world, 1);
    assert_int_equal(choose(world, 0, &peer).kind, RG_ROUTE_P2P);
    assert_int_equal(fcntl(world->fetched, F_GETFD), -1);
    world->toy[2].process = 102;
    peer = peer_of(world, 2);
    world->toy[0].map_status = RG_ENOTSUP;
    assert_int_equal(choose(world, 0, &peer).kind, RG_ROUTE_NULL);
    assert_int_equal(fcntl(world->fetched, F_GETFD), -1);
    world->fetch_status = RG_ETIMEDOUT;
    assert_int_equal(choose(world, 0, &peer).kind, RG_ROUTE_NULL);
}

static void p2p_reaches_one_host_only(void **state)
{
    struct world *world = *state;
    struct rg_route_peer peer = peer_of(world, 1);
    struct rg_route route = choose(world, 0, &peer);

    assert_int_equal(route.kind, RG_ROUTE_P2P);
    assert_int_equal(route.bytes, REGION_BYTES);
    peer = peer_of(world, 2);
    peer.direct = 0;
    route = choose(world, 0, &peer);
    assert_int_equal(route.kind, RG_ROUTE_NULL);
    assert_null(route.base);
    assert_int_equal(route.bytes, 0);
    peer = peer_of(world, 0);
    route = choose(world, 0, &peer);
    assert_int_equal(route.kind, RG_ROUTE_SELF);
    assert_ptr_equal(route.base, world->service[0]->region);
}

static void switches_turn_a_route_off(void **state)
{
    static const char *const names[] = {"RG_DISABLE_P2P_ROUTE",
                                        "MOONCAKE_PG_DISABLE_P2P_ROUTE"};
    struct world *world = *state;
    const struct rg_fd_source source = {world_fetch, world};
    const struct rg_route_peer self = peer_of(world, 0);
    const struct rg_route_peer peer = peer_of(world, 1);
    struct rg_route route;
    int any;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(rg_route_is_on(RG_ROUTE_P2P, &any), RG_OK);
        assert_true(any);
        setenv(names[i], "1", 1);
        assert_int_equal(rg_route_is_on(RG_ROUTE_P2P, &any), RG_OK);
        assert_false(any);
        assert_int_equal(choose(world, 0, &peer).kind, RG_ROUTE_NULL);
        assert_int_equal(choose(world, 0, &self).kind, RG_ROUTE_SELF);
        setenv(names[i], "maybe", 1);
        assert_int_equal(rg_route_is_on(RG_ROUTE_P2P, &any), RG_ECONFIG);
        assert_int_equal(
            rg_route_choose(world->service[0], &peer, &source, &route),
            RG_ECONFIG);
        setenv(names[i], "off", 1);
        assert_int_equal(choose(world, 0, &peer).kind, RG_ROUTE_P2P);
        unsetenv(names[i]);
    }
}

static void a_region_too_small_for_the_board_is_refused(void **state)
{
    struct toy toy = {0};
    const struct rg_memory memory = {&toy_ops, &toy};
    struct rg_service *service = NULL;

    (void)state;
    assert_int_equal(rg_service_create(&memory, 0, RANKS,
                                       RANKS * RG_PROOF_BYTES - 1, &service),
                     RG_ENOSPC);
    assert_null(service);
    assert_int_equal(toy.regions, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(proof_holds_both_ways),
        TEST(a_corrupted_board_is_seen),
        TEST(a_wrong_salt_is_seen),
        TEST(a_mapping_of_the_wrong_region_is_seen),
        TEST(a_mark_in_the_wrong_slot_is_seen),
        TEST(an_unmapped_peer_or_a_failing_copy_is_seen),
        TEST(a_mapping_lasts_as_long_as_its_key),
        TEST(descriptors_are_fetched_for_other_processes_and_closed),
        TEST(p2p_reaches_one_host_only),
        TEST(switches_turn_a_route_off),
        cmocka_unit_test(a_region_too_small_for_the_board_is_refused),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
