/*
 * Where a host thread that serves a device should run, by hwloc: on the cores
 * of the NUMA node that the device is attached to, all of them; where that is
 * not known, and on the emulated device, of the node that the rank runs on. A
 * machine of one node has no such place.
 */
#ifndef RG_EXEC_NEARBY_H
#define RG_EXEC_NEARBY_H

#include <hwloc.h>
#include <sched.h>

/*
 * `own`: where the rank may run; `pci_bus` as in struct rg_device_info. 1 with
 * the place in cpus_out, which is whole nodes, as far as the system allows the
 * process their cores. 0: there is none, or the rank has been kept off it by
 * whoever bound it.
 */
int rg_nearby_choose(hwloc_topology_t topology, hwloc_const_cpuset_t own,
                     const char *pci_bus, hwloc_cpuset_t cpus_out);

/* The same of this machine and the calling thread. */
int rg_nearby_cpus(const char *pci_bus, cpu_set_t *cpus_out);

#endif
