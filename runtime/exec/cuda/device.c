/* The CUDA device's table: description, geometry, launches. */
#include "runtime/exec/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/device/mailbox.h"

enum {
    CUDA_SMALL_UNIT_BYTES = 8,
    CUDA_WARP = 32,
    CUDA_SMALL_THREADS = 1024,
    CUDA_PACKET_THREADS = 256,
    CUDA_LARGE_THREADS = 512,
    CUDA_CHANNELS = 64,
    CUDA_MAX_TEAMS = 2 * CUDA_CHANNELS
};

int cuda_check(const struct cuda_device *device, cudaError_t error,
               const char *what)
{
    if (error == cudaSuccess)
        return RG_OK;
    rg_log(RG_LOG_ERROR, device->config.world_rank, "%s failed: %s", what,
           cudaGetErrorString(error));
    return error == cudaErrorMemoryAllocation ? RG_ENOMEM : RG_ESYSTEM;
}

/*
 * Read by the driver when it starts, which the first call of CUDA is: ranks
 * that share a device need a hardware queue each, and a kernel loaded late
 * could wait for one that runs. A user's own values stay. A program with
 * threads sets them before it makes any.
 */
static void environment(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

static int cuda_count(void)
{
    int count = 0;

    environment();
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/* What a launch needs that is to end at once. */
struct warm {
    struct rg_comm_dev comm; /* held, and nobody waits for it */
    struct rg_comm_dev bare; /* for entries that do not look, and open it */
    struct rg_mailbox mailbox;
};

static int warm_launch(struct cuda_device *device, const void *kernel,
                       void *args)
{
    const dim3 one = {1, 1, 1}, block = {CUDA_WARP, 1, 1};
    void *list[1] = {args};

    return cuda_check(
        device, cudaLaunchKernel(kernel, one, block, list, 0, device->copies),
        "a first launch");
}

static int warm_entry(struct cuda_device *device,
                      const struct rg_cuda_entry *entry,
                      struct rg_post_launch *launch)
{
    const void *const kernels[] = {entry->warp, entry->small, entry->large};
    int status = RG_OK;

    for (int i = 0; i < 3 && status == RG_OK; i++)
        if (kernels[i])
            status = warm_launch(device, kernels[i], launch);
    return status;
}

static int warm_entries(struct cuda_device *device,
                        const struct rg_cuda_entries *entries,
                        struct warm *warm)
{
    struct rg_post_launch launch = {.launch.comm = &warm->comm};
    struct rg_post_launch bare = {.launch.comm = &warm->bare};
    int status = entries ? warm_entry(device, &entries->bare, &bare) : RG_OK;

    for (int o = 0; entries && o < RG_OP_COUNT && status == RG_OK; o++)
        status = warm_entry(device, &entries->op[o], &launch);
    return status;
}

static int warm_all(struct cuda_device *device, struct warm *warm)
{
    const struct rg_algo *const *algos = device->config.algos;
    /* A keeper's number that is taken. */
    struct rg_help_args help = {.comm = &warm->comm, .keepers = 1};
    int status = warm_launch(device, rg_help_cuda, &help);

    for (int i = 0; algos[i] && status == RG_OK; i++)
        for (int t = 0; t < RG_DTYPE_COUNT && status == RG_OK; t++)
            if (i == 0 || algos[i]->entries != algos[i - 1]->entries)
                status = warm_entries(device, algos[i]->entries->cuda[t], warm);
    return status;
}

/*
 * Runs every kernel once, on nothing: the first launch may load it, or have to
 * find more local memory for the whole device, and that could wait for ever for
 * another rank's kernel which waits for this rank.
 */
static int preload(struct cuda_device *device)
{
    struct warm here = {.comm = {.control = RG_CONTROL_HELD}}, *warm;
    int status = cuda_alloc(device, sizeof here, (void **)&warm);

    if (status)
        return status;
    here.comm.mailbox = &warm->mailbox;
    status = cuda_memory.copy(device, warm, &here, sizeof here);
    if (status == RG_OK)
        status = warm_all(device, warm);
    if (status == RG_OK)
        status = cuda_check(device, cudaStreamSynchronize(device->copies),
                            "the first launches");
    cuda_free(device, warm);
    return status;
}

static void cuda_close(void *opaque)
{
    struct cuda_device *device = opaque;

    if (device->copies)
        cudaStreamDestroy(device->copies);
    if (device->helps)
        cudaStreamDestroy(device->helps);
    free(device);
}

static int open_device(struct cuda_device *device)
{
    const int ordinal = device->config.ordinal;
    int status;

    if (ordinal < 0 || ordinal >= cuda_count()) {
        rg_log(RG_LOG_ERROR, device->config.world_rank,
               "there is no CUDA device %d here", ordinal);
        return RG_ENODEV;
    }
    status = cuda_check(device, cudaSetDevice(ordinal), "cudaSetDevice");
    if (status == RG_OK)
        status = cuda_check(
            device,
            cudaDeviceGetAttribute(&device->multiprocessors,
                                   cudaDevAttrMultiProcessorCount, ordinal),
            "cudaDeviceGetAttribute");
    if (status == RG_OK)
        status = cuda_check(
            device,
            cudaStreamCreateWithFlags(&device->copies, cudaStreamNonBlocking),
            "cudaStreamCreateWithFlags");
    if (status == RG_OK)
        status = cuda_check(
            device,
            cudaStreamCreateWithFlags(&device->helps, cudaStreamNonBlocking),
            "cudaStreamCreateWithFlags");
    if (status == RG_OK)
        status = cuda_driver_load(device);
    return status ? status : preload(device);
}

static int cuda_open(const struct rg_device_config *config, void **device_out)
{
    struct cuda_device *device = calloc(1, sizeof *device);
    int status;

    if (!device)
        return RG_ENOMEM;
    environment();
    device->config = *config;
    device->process = (uint64_t)getpid();
    snprintf(device->host_id, sizeof device->host_id, "%s", config->host_id);
    status = open_device(device);
    if (status) {
        cuda_close(device);
        return status;
    }
    *device_out = device;
    return RG_OK;
}

/* CUDA's own spelling, as nvidia-smi prints it. */
static void uuid_text(const cudaUUID_t *uuid, char *text, size_t bytes)
{
    const unsigned char *b = (const unsigned char *)uuid->bytes;

    snprintf(text, bytes,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
             "%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
             b[11], b[12], b[13], b[14], b[15]);
}

static int cuda_info(void *opaque, struct rg_device_info *info_out)
{
    struct cuda_device *device = opaque;
    struct cudaDeviceProp prop;
    int driver = 0, runtime = 0, khz = 0, status;

    status = cuda_check(device,
                        cudaGetDeviceProperties(&prop, device->config.ordinal),
                        "cudaGetDeviceProperties");
    if (status)
        return status;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, device->config.ordinal);
    memset(info_out, 0, sizeof *info_out);
    info_out->kind = RG_DEVICE_CUDA;
    info_out->ordinal = device->config.ordinal;
    info_out->cores = device->multiprocessors;
    info_out->clock_max_mhz = khz / 1000;
    snprintf(info_out->name, sizeof info_out->name, "%.63s", prop.name);
    uuid_text(&prop.uuid, info_out->uuid, sizeof info_out->uuid);
    snprintf(info_out->driver, sizeof info_out->driver, "%d.%d/%d.%d",
             driver / 1000, driver % 1000 / 10, runtime / 1000,
             runtime % 1000 / 10);
    cudaDeviceGetPCIBusId(info_out->pci_bus, sizeof info_out->pci_bus,
                          device->config.ordinal);
    snprintf(info_out->host_id, sizeof info_out->host_id, "%s",
             device->host_id);
    return RG_OK;
}

/* 64 pairs of teams, pushing and reducing. What is left of the device is free
 * for launches beside them, such as the one that keeps a word (device/help.h).
 */
static int cuda_max_channels(void *device)
{
    (void)device;
    return CUDA_CHANNELS;
}

static int clamp(uint64_t value, int low, int high)
{
    if (value < (uint64_t)low)
        return low;
    return value > (uint64_t)high ? high : (int)value;
}

/*
 * One block up to RG_SMALL_BYTES: a second one would cost a closing counter.
 * Then a packet of 8 bytes per thread, until the device is full; then large
 * blocks on all multiprocessors. Launches of all sharers must be resident
 * together, since each waits for the others.
 */
static void cuda_geometry(void *opaque, enum rg_collective collective,
                          uint64_t bytes, int sharers,
                          struct rg_geometry *geometry_out)
{
    const struct cuda_device *device = opaque;
    const uint64_t units =
        (bytes + CUDA_SMALL_UNIT_BYTES - 1) / CUDA_SMALL_UNIT_BYTES;
    const int most =
        clamp((uint64_t)(device->multiprocessors / sharers), 1, CUDA_MAX_TEAMS);
    const uint64_t warps = (units + CUDA_WARP - 1) / CUDA_WARP;

    (void)collective;
    geometry_out->bare = 0;
    geometry_out->small = bytes <= RG_SMALL_BYTES;
    geometry_out->overlap = sharers == 1;
    geometry_out->threads =
        geometry_out->small
            ? clamp(warps * CUDA_WARP, CUDA_WARP, CUDA_SMALL_THREADS)
        : units <= (uint64_t)most * CUDA_PACKET_THREADS ? CUDA_PACKET_THREADS
                                                        : CUDA_LARGE_THREADS;
    geometry_out->teams =
        geometry_out->small
            ? 1
            : clamp((units + CUDA_PACKET_THREADS - 1) / CUDA_PACKET_THREADS, 1,
                    most);
}

static const void *kernel_of(const struct rg_cuda_entry *entry,
                             const struct rg_geometry *geometry)
{
    if (!geometry->small)
        return entry->large;
    return geometry->threads == CUDA_WARP ? entry->warp : entry->small;
}

/*
 * Where launches may overlap, the next one is set up while this one runs; it
 * touches nothing before this one has ended (rg_team_here). Ranks that share
 * a device do without: a launch set up early could take the place of one that
 * this one waits for.
 */
static int cuda_launch(void *opaque, const struct rg_geometry *geometry,
                       const struct rg_entries *entries, enum rg_dtype dtype,
                       const struct rg_launch *launch)
{
    struct cuda_stream *stream = opaque;
    const struct rg_cuda_entries *all = entries->cuda[dtype];
    void *args[1] = {(void *)(uintptr_t)launch};
    cudaLaunchAttribute overlap = {
        .id = cudaLaunchAttributeProgrammaticStreamSerialization,
        .val.programmaticStreamSerializationAllowed = geometry->overlap};
    cudaLaunchConfig_t config = {
        .gridDim = {(unsigned)geometry->teams, 1, 1},
        .blockDim = {(unsigned)geometry->threads, 1, 1},
        .stream = stream->stream,
        .attrs = &overlap,
        .numAttrs = 1};
    const struct rg_cuda_entry *entry;
    const void *kernel;

    if (!all)
        return RG_ENOTSUP;
    entry = geometry->bare ? &all->bare : &all->op[launch->op];
    kernel = kernel_of(entry, geometry);
    if (!kernel)
        return RG_ENOTSUP;
    /* One kernel may serve all sizes. */
    if (kernel == entry->large && geometry->threads > CUDA_LARGE_THREADS)
        config.blockDim.x = CUDA_LARGE_THREADS;
    cudaSetDevice(stream->device->config.ordinal);
    return cuda_check(stream->device,
                      cudaLaunchKernelExC(&config, kernel, args), "a launch");
}

enum { CUDA_KERNEL_THREADS = 512 };

static int cuda_kernel(void *opaque, const struct rg_kernel *kernel, int teams,
                       const void *args, size_t bytes)
{
    struct cuda_stream *stream = opaque;
    const dim3 grid = {
        (unsigned)(teams ? teams : 2 * stream->device->multiprocessors), 1, 1};
    const dim3 block = {CUDA_KERNEL_THREADS, 1, 1};
    void *list[1] = {(void *)(uintptr_t)args};

    (void)bytes;
    if (!kernel->cuda)
        return RG_ENOTSUP;
    cudaSetDevice(stream->device->config.ordinal);
    return cuda_check(
        stream->device,
        cudaLaunchKernel(kernel->cuda, grid, block, list, 0, stream->stream),
        "a program's kernel");
}

static int cuda_host_call(void *opaque, void (*run)(void *arg), void *arg)
{
    struct cuda_stream *stream = opaque;

    cudaSetDevice(stream->device->config.ordinal);
    return cuda_check(stream->device,
                      cudaLaunchHostFunc(stream->stream, run, arg),
                      "cudaLaunchHostFunc");
}

static int cuda_copy_async(void *opaque, void *dst, const void *src,
                           size_t bytes)
{
    struct cuda_stream *stream = opaque;

    cudaSetDevice(stream->device->config.ordinal);
    return cuda_check(
        stream->device,
        cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream->stream),
        "cudaMemcpyAsync");
}

static int cuda_help(void *opaque, const struct rg_help_args *args)
{
    struct cuda_device *device = opaque;
    const dim3 one = {1, 1, 1}, block = {RG_HELP_THREADS, 1, 1};
    void *list[1] = {(void *)(uintptr_t)args};

    cudaSetDevice(device->config.ordinal);
    return cuda_check(
        device,
        cudaLaunchKernel(rg_help_cuda, one, block, list, 0, device->helps),
        "a launch that keeps a communicator");
}

static int cuda_read_word(void *device, const uint64_t *word,
                          uint64_t *value_out)
{
    return cuda_memory.copy(device, value_out, word, sizeof *word);
}

const struct rg_device_ops rg_device_cuda = {
    .kind = RG_DEVICE_CUDA,
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .info = cuda_info,
    .memory = &cuda_memory,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .set = cuda_set,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .host_map = cuda_host_map,
    .host_unmap = cuda_host_unmap,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .stream_synchronize = cuda_stream_synchronize,
    .stream_query = cuda_stream_query,
    .stream_follow = cuda_stream_follow,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .event_record = cuda_event_record,
    .event_synchronize = cuda_event_synchronize,
    .event_elapsed_us = cuda_event_elapsed_us,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .graph_launch = cuda_graph_launch,
    .graph_destroy = cuda_graph_destroy,
    .max_channels = cuda_max_channels,
    .channels = cuda_max_channels,
    .geometry = cuda_geometry,
    .launch = cuda_launch,
    .kernel = cuda_kernel,
    .host_call = cuda_host_call,
    .copy_async = cuda_copy_async,
    .help = cuda_help,
    .read_word = cuda_read_word,
};
