/* The emulated device's table: memory, description, launches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/exec/emu/emu.h"

enum {
    EMU_MAX_TEAMS = 4,
    EMU_TEAM_BYTES = 1 << 20, /* a launch gets one more team for each */
    EMU_ALIGN = 256,
    EMU_TAIL_BYTES = 4096 /* behind a region; a page */
};

static int emu_count(void)
{
    return 1;
}

/* Process ids are unique in their namespace only. */
static uint64_t emu_process_identity(void)
{
    const pid_t pid = getpid();
    struct stat space;
    uint64_t hash = rg_hash(RG_HASH_INIT, &pid, sizeof pid);

    if (stat("/proc/self/ns/pid", &space) == 0)
        hash = rg_hash(hash, &space.st_ino, sizeof space.st_ino);
    return hash;
}

static int emu_open(const struct rg_device_config *config, void **device_out)
{
    struct emu_device *device = calloc(1, sizeof *device);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (!device)
        return RG_ENOMEM;
    device->config = *config;
    device->cores = cores > 0 ? (int)cores : 1;
    device->crowded = config->world_size * config->team_width > device->cores;
    device->max_teams = config->max_teams;
    if (!device->max_teams)
        device->max_teams =
            device->cores / (config->world_size * config->team_width);
    if (device->max_teams < 1)
        device->max_teams = 1;
    if (device->max_teams > EMU_MAX_TEAMS)
        device->max_teams = EMU_MAX_TEAMS;
    device->process = emu_process_identity();
    snprintf(device->host_id, sizeof device->host_id, "%s", config->host_id);
    *device_out = device;
    return RG_OK;
}

static void emu_close(void *device)
{
    free(device);
}

static int emu_info(void *opaque, struct rg_device_info *info_out)
{
    struct emu_device *device = opaque;

    memset(info_out, 0, sizeof *info_out);
    info_out->kind = RG_DEVICE_EMU;
    info_out->cores = device->cores;
    snprintf(info_out->name, sizeof info_out->name, "emu");
    snprintf(info_out->uuid, sizeof info_out->uuid, "emu-%ld-%d",
             (long)getpid(), device->config.world_rank);
    snprintf(info_out->driver, sizeof info_out->driver, "-");
    snprintf(info_out->host_id, sizeof info_out->host_id, "%s",
             device->host_id);
    return RG_OK;
}

/*
 * Behind a region: how many ranks of this process use the mapping. They are
 * threads and have it in common, so that a race is seen as one; it goes with
 * the last of them, for a rank may end without the others knowing.
 */
static size_t tail_offset(size_t bytes)
{
    return (bytes + EMU_TAIL_BYTES - 1) / EMU_TAIL_BYTES * EMU_TAIL_BYTES;
}

static uint64_t *region_users(void *base, size_t bytes)
{
    return (uint64_t *)(void *)((unsigned char *)base + tail_offset(bytes));
}

static size_t region_size(size_t bytes)
{
    return tail_offset(bytes) + EMU_TAIL_BYTES;
}

static void region_release(void *base, size_t bytes)
{
    /* Whoever unmaps it comes behind all that the others have done to it. */
    if (__atomic_sub_fetch(region_users(base, bytes), 1, __ATOMIC_ACQ_REL) == 0)
        munmap(base, region_size(bytes));
}

static int emu_region_create(void *device, size_t bytes, void **base_out,
                             int *fd_out)
{
    int fd = memfd_create("regroup-region", MFD_CLOEXEC);
    void *base;

    (void)device;
    if (fd < 0 || ftruncate(fd, (off_t)region_size(bytes))) {
        rg_log(RG_LOG_ERROR, -1, "no memory for a region of %zu bytes: %m",
               bytes);
        if (fd >= 0)
            close(fd);
        return RG_ENOMEM;
    }
    base = mmap(NULL, region_size(bytes), PROT_READ | PROT_WRITE, MAP_SHARED,
                fd, 0);
    if (base == MAP_FAILED) {
        close(fd);
        return RG_ENOMEM;
    }
    *region_users(base, bytes) = 1;
    *base_out = base;
    *fd_out = fd;
    return RG_OK;
}

static void emu_region_destroy(void *device, void *base, size_t bytes, int fd)
{
    (void)device;
    region_release(base, bytes);
    close(fd);
}

static int emu_needs_fd(void *device, const struct rg_region_key *key)
{
    return key->process != ((struct emu_device *)device)->process;
}

static int emu_region_map(void *device, const struct rg_region_key *key, int fd,
                          size_t bytes, void **base_out)
{
    void *base;

    if (!emu_needs_fd(device, key)) {
        base = (void *)(uintptr_t)key->base;
        __atomic_add_fetch(region_users(base, bytes), 1, __ATOMIC_RELAXED);
        *base_out = base;
        return RG_OK;
    }
    base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return RG_ENOMEM;
    *base_out = base;
    return RG_OK;
}

static void emu_region_unmap(void *device, const struct rg_region_key *key,
                             void *base, size_t bytes)
{
    if (emu_needs_fd(device, key))
        munmap(base, bytes);
    else
        region_release(base, bytes);
}

static int emu_copy(void *device, void *dst, const void *src, size_t bytes)
{
    (void)device;
    memcpy(dst, src, bytes);
    return RG_OK;
}

static int emu_copy_words(void *device, uint64_t *dst, const uint64_t *src,
                          size_t words)
{
    (void)device;
    for (size_t i = 0; i < words; i++)
        rg_store_relaxed(&dst[i], rg_load_relaxed(&src[i]));
    return RG_OK;
}

static uint64_t emu_process(void *device)
{
    return ((struct emu_device *)device)->process;
}

static int emu_alloc(void *device, size_t bytes, void **pointer_out)
{
    const size_t whole = (bytes + EMU_ALIGN) / EMU_ALIGN * EMU_ALIGN;

    (void)device;
    *pointer_out = aligned_alloc(EMU_ALIGN, whole);
    return *pointer_out ? RG_OK : RG_ENOMEM;
}

static void emu_free(void *device, void *pointer)
{
    (void)device;
    free(pointer);
}

static int emu_set(void *device, void *dst, int byte, size_t bytes)
{
    (void)device;
    memset(dst, byte, bytes);
    return RG_OK;
}

static int emu_host_alloc(void *device, size_t bytes, void **host_out,
                          void **device_out)
{
    int status = emu_alloc(device, bytes, host_out);

    if (status)
        return status;
    memset(*host_out, 0, bytes);
    *device_out = *host_out;
    return RG_OK;
}

static int emu_max_channels(void *device)
{
    (void)device;
    return EMU_MAX_TEAMS;
}

static int emu_channels(void *device)
{
    return ((struct emu_device *)device)->max_teams;
}

static void emu_geometry(void *opaque, enum rg_collective collective,
                         uint64_t bytes, int sharers,
                         struct rg_geometry *geometry_out)
{
    struct emu_device *device = opaque;
    const uint64_t wanted = bytes / EMU_TEAM_BYTES + 1;

    (void)collective;
    (void)sharers;
    geometry_out->teams =
        wanted < (uint64_t)device->max_teams ? (int)wanted : device->max_teams;
    geometry_out->threads = device->config.team_width;
    geometry_out->small = geometry_out->overlap = geometry_out->bare = 0;
}

/* A copy of what goes with the launch, for as long as it may run. */
static int keep_posts(struct rg_launch *launch)
{
    const size_t bytes = launch->nposts * sizeof *launch->posts;
    struct rg_post *posts;

    if (!bytes)
        return RG_OK;
    posts = malloc(bytes);
    if (posts)
        memcpy(posts, launch->posts, bytes);
    launch->posts = posts;
    return posts ? RG_OK : RG_ENOMEM;
}

static int emu_launch(void *stream, const struct rg_geometry *geometry,
                      const struct rg_entries *entries, enum rg_dtype dtype,
                      const struct rg_launch *launch)
{
    const struct rg_emu_entries *all = entries->emu[dtype];
    struct emu_work work;
    int status;

    if (!all)
        return RG_ENOTSUP;
    work.kind = EMU_WORK_LAUNCH;
    work.teams = geometry->teams;
    work.threads = geometry->threads;
    work.u.launch.entry = geometry->bare ? all->bare : all->op[launch->op];
    work.u.launch.launch = *launch;
    status = keep_posts(&work.u.launch.launch);
    if (status == RG_OK)
        status = emu_stream_post(stream, &work);
    if (status)
        emu_work_fini(&work);
    return status;
}

static int emu_kernel(void *stream, const struct rg_kernel *kernel, int teams,
                      const void *args, size_t bytes)
{
    struct emu_work work = {.kind = EMU_WORK_KERNEL};

    if (!kernel->emu)
        return RG_ENOTSUP;
    work.teams = teams ? teams : 1;
    work.u.kernel.run = kernel->emu;
    memcpy(work.u.kernel.args, args, bytes);
    return emu_stream_post(stream, &work);
}

struct emu_host_call {
    void (*run)(void *arg);
    void *arg;
};

static void emu_host_run(const void *args, int team, int teams)
{
    const struct emu_host_call *call = args;

    (void)team;
    (void)teams;
    call->run(call->arg);
}

static int emu_host_call(void *stream, void (*run)(void *arg), void *arg)
{
    const struct rg_kernel kernel = {.emu = emu_host_run};
    const struct emu_host_call call = {run, arg};

    return emu_kernel(stream, &kernel, 1, &call, sizeof call);
}

static int emu_copy_async(void *stream, void *dst, const void *src,
                          size_t bytes)
{
    (void)stream;
    (void)dst;
    (void)src;
    (void)bytes;
    return RG_ENOTSUP;
}

static int emu_help(void *opaque, const struct rg_help_args *args)
{
    const struct emu_device *device = opaque;
    struct rg_emu_team emu = {
        .now_ns = rg_clock_ns, .relax = emu_relax, .crowded = device->crowded};
    struct rg_team team = {.threads = 1, .count = 1, .emu = &emu};

    rg_help_emu(args, &team);
    return RG_OK;
}

static int emu_read_word(void *device, const uint64_t *word,
                         uint64_t *value_out)
{
    (void)device;
    *value_out = rg_load_relaxed(word);
    return RG_OK;
}

static const struct rg_memory_ops emu_memory = {
    .region_create = emu_region_create,
    .region_destroy = emu_region_destroy,
    .region_map = emu_region_map,
    .region_unmap = emu_region_unmap,
    .needs_fd = emu_needs_fd,
    .copy = emu_copy,
    .copy_words = emu_copy_words,
    .process = emu_process};

const struct rg_device_ops rg_device_emu = {
    .kind = RG_DEVICE_EMU,
    .count = emu_count,
    .open = emu_open,
    .close = emu_close,
    .info = emu_info,
    .memory = &emu_memory,
    .alloc = emu_alloc,
    .free = emu_free,
    .set = emu_set,
    .host_alloc = emu_host_alloc,
    .host_free = emu_free,
    .stream_create = emu_stream_create,
    .stream_destroy = emu_stream_destroy,
    .stream_synchronize = emu_stream_synchronize,
    .stream_query = emu_stream_query,
    .stream_follow = emu_stream_follow,
    .event_create = emu_event_create,
    .event_destroy = emu_event_destroy,
    .event_record = emu_event_record,
    .event_synchronize = emu_event_synchronize,
    .event_elapsed_us = emu_event_elapsed_us,
    .capture_begin = emu_capture_begin,
    .capture_end = emu_capture_end,
    .graph_launch = emu_graph_launch,
    .graph_destroy = emu_graph_destroy,
    .max_channels = emu_max_channels,
    .channels = emu_channels,
    .geometry = emu_geometry,
    .launch = emu_launch,
    .kernel = emu_kernel,
    .host_call = emu_host_call,
    .copy_async = emu_copy_async,
    .host_reads_device = 1,
    .help = emu_help,
    .read_word = emu_read_word,
};
