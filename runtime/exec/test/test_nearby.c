/* The choice of cores near a device, on machines made up for hwloc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/exec/nearby.h"

/* Two packages of a node with four cores. */
#define TWO_NODES "package:2 [numa] core:4 pu:1"

static hwloc_topology_t machine(const char *description)
{
    hwloc_topology_t topology;

    assert_int_equal(hwloc_topology_init(&topology), 0);
    /* So that a test may say what is allowed. */
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    assert_int_equal(hwloc_topology_set_synthetic(topology, description), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    return topology;
}

static hwloc_bitmap_t cores(const char *list)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_int_equal(hwloc_bitmap_list_sscanf(set, list), 0);
    return set;
}

/* `expected` null: no place. */
static void expect(hwloc_topology_t topology, const char *own,
                   const char *pci_bus, const char *expected)
{
    hwloc_bitmap_t rank = cores(own);
    hwloc_bitmap_t chosen = hwloc_bitmap_alloc();
    char text[64];

    assert_int_equal(rg_nearby_choose(topology, rank, pci_bus, chosen),
                     expected != NULL);
    hwloc_bitmap_list_snprintf(text, sizeof text, chosen);
    if (expected)
        assert_string_equal(text, expected);
    hwloc_bitmap_free(chosen);
    hwloc_bitmap_free(rank);
}

static void the_place_is_the_node_of_the_rank(void **state)
{
    hwloc_topology_t topology = machine(TWO_NODES);

    (void)state;
    expect(topology, "0", "", "0-3");
    expect(topology, "6", "", "4-7");
    expect(topology, "4-7", "", "4-7");
    expect(topology, "3-4", "", NULL);
    expect(topology, "0-7", "", NULL);
    hwloc_topology_destroy(topology);
}

static void a_machine_of_one_node_has_none(void **state)
{
    hwloc_topology_t topology = machine("package:1 [numa] core:4 pu:2");

    (void)state;
    expect(topology, "0", "", NULL);
    expect(topology, "0-7", "", NULL);
    hwloc_topology_destroy(topology);
}

static void cores_that_are_not_allowed_are_left_out(void **state)
{
    hwloc_topology_t topology = machine(TWO_NODES);
    hwloc_bitmap_t allowed = cores("0-5");

    (void)state;
    assert_int_equal(
        hwloc_topology_allow(topology, allowed, NULL, HWLOC_ALLOW_FLAG_CUSTOM),
        0);
    expect(topology, "4", "", "4-5");
    expect(topology, "1", "", "0-3");
    hwloc_bitmap_zero(allowed);
    hwloc_bitmap_set_range(allowed, 4, 7);
    assert_int_equal(
        hwloc_topology_allow(topology, allowed, NULL, HWLOC_ALLOW_FLAG_CUSTOM),
        0);
    expect(topology, "4", "", NULL);
    hwloc_bitmap_free(allowed);
    hwloc_topology_destroy(topology);
}

/* ---- devices, which no synthetic machine has ----------------------------- */

#define NODE_SETS(mask, node)                                                  \
    " cpuset=\"" mask "\" complete_cpuset=\"" mask "\" nodeset=\"" node        \
    "\" complete_nodeset=\"" node "\""
#define CORE(index, mask, node)                                                \
    "<object type=\"PU\" os_index=\"" index "\"" NODE_SETS(mask, node) "/>"
#define DEVICE(bus)                                                            \
    "<object type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" "                 \
    "bridge_pci=\"0000:[" bus "-" bus "]\"><object type=\"PCIDev\" "           \
    "pci_busid=\"0000:" bus ":00.0\" "                                         \
    "pci_type=\"0302 [10de:2330] [10de:16c1] a1\" "                            \
    "pci_link_speed=\"0.000000\"/></object>"
#define PACKAGE(index, mask, node, inside)                                     \
    "<object type=\"Package\" os_index=\"" index "\"" NODE_SETS(               \
        mask, node) ">"                                                        \
                    "<object type=\"NUMANode\" os_index=\"" index              \
                    "\"" NODE_SETS(mask, node) " local_memory=\"1\"/>" inside  \
                                               "</object>"

/* Two nodes of two cores, a device at each. */
static const char with_devices[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
    "<topology version=\"2.0\"><object type=\"Machine\" os_index=\"0\""
    " allowed_cpuset=\"0xf\" allowed_nodeset=\"0x3\"" NODE_SETS(
        "0xf", "0x3") ">" PACKAGE("0", "0x3", "0x1",
                                  CORE("0", "0x1", "0x1")
                                      CORE("1", "0x2", "0x1") DEVICE("01"))
        PACKAGE("1", "0xc", "0x2",
                CORE("2", "0x4", "0x2") CORE("3", "0x8", "0x2")
                    DEVICE("02")) "</object></topology>\n";

static void the_place_is_the_node_of_the_device(void **state)
{
    hwloc_topology_t topology;

    (void)state;
    assert_int_equal(hwloc_topology_init(&topology), 0);
    hwloc_topology_set_io_types_filter(topology,
                                       HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    assert_int_equal(hwloc_topology_set_xmlbuffer(topology, with_devices,
                                                  sizeof with_devices),
                     0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    expect(topology, "0-3", "0000:01:00.0", "0-1");
    expect(topology, "0-3", "0000:02:00.0", "2-3");
    expect(topology, "3", "0000:02:00.0", "2-3");
    /* Bound elsewhere, or at no device that is known. */
    expect(topology, "0-1", "0000:02:00.0", NULL);
    expect(topology, "0-3", "0000:03:00.0", NULL);
    expect(topology, "0", "0000:03:00.0", "0-1");
    hwloc_topology_destroy(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_place_is_the_node_of_the_rank),
        cmocka_unit_test(a_machine_of_one_node_has_none),
        cmocka_unit_test(cores_that_are_not_allowed_are_left_out),
        cmocka_unit_test(the_place_is_the_node_of_the_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
