/*
 * Where a rank runs, by hwloc: for the header, for warnings, for binding.
 * A topology belongs to the thread that made it.
 */
#ifndef RG_HARNESS_TOPO_H
#define RG_HARNESS_TOPO_H

#include <stddef.h>

#include "harness/launch.h"
#include "runtime/regroup.h"

struct rg_topo;
/*
 * with_devices: also finds where PCI devices sit, which takes longer. RG_OK or
 * RG_ESYSTEM.
 */
int rg_topo_create(int with_devices, struct rg_topo **topo_out);
void rg_topo_destroy(struct rg_topo *topo); /* accepts null */

/* Bytes of the last-level cache; a guess of 32 MiB where it is unknown. */
size_t rg_topo_cache_bytes(const struct rg_topo *topo);
/* Processing units this process may use. */
int rg_topo_cores(const struct rg_topo *topo);

/*
 * Binds the calling thread to one core of its own, by local rank, if there is
 * a core for each local rank and nobody has bound it yet. Best effort.
 */
void rg_topo_bind(const struct rg_topo *topo, const struct rg_job *job);

/*
 * Binds the process, with the threads that the runtime has started, to the
 * cores near its device, unless somebody has bound it; where ranks are threads,
 * the calling thread alone. Best effort, and nothing where it is not known.
 */
void rg_topo_bind_near(const struct rg_topo *topo, const struct rg_job *job,
                       const char *pci_bus);

/* A rank's place; plain data, exchanged by rg_comm_gather. */
struct rg_place {
    char host[64];
    char host_id[64];
    char device[64];
    char uuid[48];
    char cpuset[128]; /* list form, "0-3,8"; cut with "..." if longer */
    int numa;         /* of the calling thread, -1: several or unknown */
    int device_numa;  /* of the device, -1: unknown */
    int cores;
};
void rg_topo_place(const struct rg_topo *topo, const struct rg_job *job,
                   const struct rg_device_info *info,
                   struct rg_place *place_out);

/*
 * Calls say(arg, line) for each doubt about figures from these places: more
 * ranks than cores on a host, a shared GPU, a device far from its rank.
 * `kind` tells what the ranks run on. Returns the number of warnings.
 */
int rg_topo_warnings(const struct rg_place *places, int n,
                     enum rg_device_kind kind,
                     void (*say)(void *arg, const char *line), void *arg);

#endif
