#include "harness/topo.h"

#include <hwloc.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN_CACHE_BYTES = 32 << 20 };

struct rg_topo {
    hwloc_topology_t hwloc;
};

int rg_topo_create(int with_devices, struct rg_topo **topo_out)
{
    struct rg_topo *topo = calloc(1, sizeof *topo);

    if (!topo)
        return RG_ENOMEM;
    if (hwloc_topology_init(&topo->hwloc) != 0)
        goto error;
    if (with_devices)
        hwloc_topology_set_io_types_filter(topo->hwloc,
                                           HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topo->hwloc) != 0)
        goto error;
    *topo_out = topo;
    return RG_OK;
error:
    rg_topo_destroy(topo);
    return RG_ESYSTEM;
}

void rg_topo_destroy(struct rg_topo *topo)
{
    if (!topo)
        return;
    if (topo->hwloc)
        hwloc_topology_destroy(topo->hwloc);
    free(topo);
}

size_t rg_topo_cache_bytes(const struct rg_topo *topo)
{
    size_t bytes = 0;

    for (int type = HWLOC_OBJ_L1CACHE; type <= HWLOC_OBJ_L5CACHE; type++) {
        const hwloc_obj_t cache =
            hwloc_get_obj_by_type(topo->hwloc, (hwloc_obj_type_t)type, 0);

        if (cache && cache->attr->cache.size > bytes)
            bytes = cache->attr->cache.size;
    }
    return bytes ? bytes : UNKNOWN_CACHE_BYTES;
}

/* Where the calling thread may run; all of the machine if unknown. */
static hwloc_bitmap_t thread_cpuset(const struct rg_topo *topo)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    const hwloc_const_bitmap_t all =
        hwloc_topology_get_allowed_cpuset(topo->hwloc);

    if (!set)
        return NULL;
    if (hwloc_get_cpubind(topo->hwloc, set, HWLOC_CPUBIND_THREAD) != 0)
        hwloc_bitmap_copy(set, all);
    hwloc_bitmap_and(set, set, all);
    return set;
}

int rg_topo_cores(const struct rg_topo *topo)
{
    hwloc_bitmap_t set = thread_cpuset(topo);
    const int cores = set ? hwloc_bitmap_weight(set) : 1;

    hwloc_bitmap_free(set);
    return cores > 0 ? cores : 1;
}

void rg_topo_bind(const struct rg_topo *topo, const struct rg_job *job)
{
    const hwloc_const_bitmap_t all =
        hwloc_topology_get_allowed_cpuset(topo->hwloc);
    hwloc_bitmap_t now = thread_cpuset(topo);
    hwloc_obj_t root = hwloc_get_root_obj(topo->hwloc);
    hwloc_cpuset_t *shares = NULL;

    if (!now || !hwloc_bitmap_isequal(now, all) ||
        job->local_size > hwloc_bitmap_weight(all))
        goto done;
    shares = calloc((size_t)job->local_size, sizeof *shares);
    if (!shares || hwloc_distrib(topo->hwloc, &root, 1, shares,
                                 (unsigned)job->local_size, INT_MAX, 0) != 0)
        goto done;
    hwloc_set_cpubind(topo->hwloc, shares[job->local_rank],
                      HWLOC_CPUBIND_THREAD);
    for (int i = 0; i < job->local_size; i++)
        hwloc_bitmap_free(shares[i]);
done:
    free(shares);
    hwloc_bitmap_free(now);
}

/* What the device is attached to; null if it is not known. */
static hwloc_obj_t device_home(const struct rg_topo *topo, const char *pci_bus)
{
    hwloc_obj_t device = NULL;

    if (pci_bus[0])
        device = hwloc_get_pcidev_by_busidstring(topo->hwloc, pci_bus);
    return device ? hwloc_get_non_io_ancestor_obj(topo->hwloc, device) : NULL;
}

void rg_topo_bind_near(const struct rg_topo *topo, const struct rg_job *job,
                       const char *pci_bus)
{
    const hwloc_const_bitmap_t all =
        hwloc_topology_get_allowed_cpuset(topo->hwloc);
    const hwloc_obj_t home = device_home(topo, pci_bus);
    hwloc_bitmap_t now = thread_cpuset(topo);
    hwloc_bitmap_t near = home ? hwloc_bitmap_dup(home->cpuset) : NULL;

    if (near)
        hwloc_bitmap_and(near, near, all);
    /* Ranks that are threads share the process, but not the device. */
    if (near && now && hwloc_bitmap_isequal(now, all) &&
        !hwloc_bitmap_iszero(near))
        hwloc_set_cpubind(topo->hwloc, near,
                          job->kind == RG_LAUNCH_LOCAL ? HWLOC_CPUBIND_THREAD
                                                       : HWLOC_CPUBIND_PROCESS);
    hwloc_bitmap_free(near);
    hwloc_bitmap_free(now);
}

/* ---- places ------------------------------------------------------------- */

static int only_node(const struct rg_topo *topo, hwloc_const_bitmap_t cpuset)
{
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    int node = -1;

    if (!nodes)
        return -1;
    hwloc_cpuset_to_nodeset(topo->hwloc, cpuset, nodes);
    if (hwloc_bitmap_weight(nodes) == 1)
        node = hwloc_bitmap_first(nodes);
    hwloc_bitmap_free(nodes);
    return node;
}

static int device_node(const struct rg_topo *topo, const char *pci_bus)
{
    const hwloc_obj_t home = device_home(topo, pci_bus);

    return home ? only_node(topo, home->cpuset) : -1;
}

static void set_text(char *text, size_t room, const char *from)
{
    snprintf(text, room, "%s", from);
}

static void cpuset_text(char *text, int room, hwloc_const_bitmap_t set)
{
    if (hwloc_bitmap_list_snprintf(text, (size_t)room, set) >= room)
        memcpy(text + room - 4, "...", 4);
}

void rg_topo_place(const struct rg_topo *topo, const struct rg_job *job,
                   const struct rg_device_info *info,
                   struct rg_place *place_out)
{
    hwloc_bitmap_t set = thread_cpuset(topo);

    memset(place_out, 0, sizeof *place_out);
    set_text(place_out->host, sizeof place_out->host, job->host);
    set_text(place_out->host_id, sizeof place_out->host_id, info->host_id);
    set_text(place_out->device, sizeof place_out->device, info->name);
    set_text(place_out->uuid, sizeof place_out->uuid, info->uuid);
    place_out->numa = -1;
    place_out->cores = 1;
    if (set) {
        cpuset_text(place_out->cpuset, sizeof place_out->cpuset, set);
        place_out->numa = only_node(topo, set);
        place_out->cores =
            hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topo->hwloc));
    }
    place_out->device_numa = device_node(topo, info->pci_bus);
    hwloc_bitmap_free(set);
}

/* ---- warnings ----------------------------------------------------------- */

struct speaker {
    void (*say)(void *arg, const char *line);
    void *arg;
    int lines;
};

static void warn(struct speaker *speaker, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void warn(struct speaker *speaker, const char *format, ...)
{
    char line[256];
    va_list list;

    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    speaker->say(speaker->arg, line);
    speaker->lines++;
}

/* How many ranks share rank i's host (or device); 0 if one before i does, so
 * that each is spoken of once. */
static int sharers(const struct rg_place *places, int n, int i, int device)
{
    int count = 0;

    for (int j = 0; j < n; j++) {
        const int same =
            device ? strcmp(places[j].uuid, places[i].uuid) == 0
                   : strcmp(places[j].host_id, places[i].host_id) == 0;

        if (same && j < i)
            return 0;
        count += same;
    }
    return count;
}

int rg_topo_warnings(const struct rg_place *places, int n,
                     enum rg_device_kind kind,
                     void (*say)(void *arg, const char *line), void *arg)
{
    struct speaker speaker = {say, arg, 0};

    for (int i = 0; i < n; i++) {
        const struct rg_place *place = &places[i];
        const int on_host = sharers(places, n, i, 0);
        const int on_device = sharers(places, n, i, 1);

        if (on_host > place->cores)
            warn(&speaker, "%d ranks share the %d cores of %s", on_host,
                 place->cores, place->host);
        if (kind == RG_DEVICE_CUDA && on_device > 1)
            warn(&speaker, "%d ranks share the device %s of %s", on_device,
                 place->uuid, place->host);
        if (place->numa >= 0 && place->device_numa >= 0 &&
            place->numa != place->device_numa)
            warn(&speaker, "rank %d runs on NUMA node %d, its device is on %d",
                 i, place->numa, place->device_numa);
    }
    return speaker.lines;
}
