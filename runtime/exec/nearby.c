#include "runtime/exec/nearby.h"

#include <hwloc/glibc-sched.h>

/* What the device is attached to; null: it is not known. */
static hwloc_const_cpuset_t device_home(hwloc_topology_t topology,
                                        const char *pci_bus)
{
    hwloc_obj_t at = NULL;

    if (pci_bus[0])
        at = hwloc_get_pcidev_by_busidstring(topology, pci_bus);
    if (at)
        at = hwloc_get_non_io_ancestor_obj(topology, at);
    return at ? at->cpuset : NULL;
}

/* The nodes that have some of these cores, whole. */
static void add_nodes(hwloc_topology_t topology, hwloc_const_cpuset_t some,
                      hwloc_cpuset_t cpus)
{
    hwloc_obj_t node = NULL;

    while (
        (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)))
        if (hwloc_bitmap_intersects(node->cpuset, some))
            hwloc_bitmap_or(cpus, cpus, node->cpuset);
}

int rg_nearby_choose(hwloc_topology_t topology, hwloc_const_cpuset_t own,
                     const char *pci_bus, hwloc_cpuset_t cpus_out)
{
    const hwloc_const_cpuset_t allowed =
        hwloc_topology_get_allowed_cpuset(topology);
    const hwloc_const_cpuset_t home = device_home(topology, pci_bus);

    hwloc_bitmap_zero(cpus_out);
    add_nodes(topology, home ? home : own, cpus_out);
    hwloc_bitmap_and(cpus_out, cpus_out, allowed);
    return hwloc_bitmap_intersects(cpus_out, own) &&
           !hwloc_bitmap_isequal(cpus_out, allowed);
}

/* Null: it cannot be found out. Devices take longer. */
static hwloc_topology_t load(int with_devices)
{
    hwloc_topology_t topology;

    if (hwloc_topology_init(&topology) != 0)
        return NULL;
    if (with_devices)
        hwloc_topology_set_io_types_filter(topology,
                                           HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topology) == 0 &&
        hwloc_topology_is_thissystem(topology))
        return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

int rg_nearby_cpus(const char *pci_bus, cpu_set_t *cpus_out)
{
    hwloc_topology_t topology = load(pci_bus[0] != '\0');
    hwloc_bitmap_t own = hwloc_bitmap_alloc();
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    const int found =
        topology && own && cpus &&
        hwloc_get_cpubind(topology, own, HWLOC_CPUBIND_THREAD) == 0 &&
        rg_nearby_choose(topology, own, pci_bus, cpus) &&
        hwloc_cpuset_to_glibc_sched_affinity(topology, cpus, cpus_out,
                                             sizeof *cpus_out) == 0;

    hwloc_bitmap_free(cpus);
    hwloc_bitmap_free(own);
    if (topology)
        hwloc_topology_destroy(topology);
    return found;
}
