/* Memory of the CUDA device: regions peers can map, and plain allocations. */
#include <string.h>
#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/exec/cuda/cuda.h"

int cuda_driver_load(struct cuda_device *device)
{
    enum cudaDriverEntryPointQueryResult found;
    cudaError_t error;

#define RG_X(field, name, version)                                             \
    error = cudaGetDriverEntryPointByVersion(                                  \
        #name, (void **)&device->driver.field, version, cudaEnableDefault,     \
        &found);                                                               \
    if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) {        \
        rg_log(RG_LOG_ERROR, device->config.world_rank,                        \
               "the CUDA driver has no " #name);                               \
        return RG_ENOTSUP;                                                     \
    }
    CUDA_DRIVER_LIST(RG_X)
#undef RG_X
    return RG_OK;
}

static int driver_check(const struct cuda_device *device, CUresult result,
                        const char *what)
{
    if (result == CUDA_SUCCESS)
        return RG_OK;
    rg_log(RG_LOG_ERROR, device->config.world_rank, "%s failed: CUresult %d",
           what, (int)result);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? RG_ENOMEM : RG_ESYSTEM;
}

static CUmemAllocationProp region_prop(const struct cuda_device *device)
{
    CUmemAllocationProp prop;

    memset(&prop, 0, sizeof prop);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device->config.ordinal;
    return prop;
}

/* Every rank rounds alike: the granularity of one device model. */
static int region_round(const struct cuda_device *device, size_t bytes,
                        size_t *whole_out)
{
    const CUmemAllocationProp prop = region_prop(device);
    size_t grain = 0;
    int status =
        driver_check(device,
                     device->driver.granularity(
                         &grain, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                     "cuMemGetAllocationGranularity");

    if (status)
        return status;
    *whole_out = (bytes + grain - 1) / grain * grain;
    return RG_OK;
}

/* Maps a handle for loads and stores of this device. */
static int region_attach(const struct cuda_device *device,
                         CUmemGenericAllocationHandle handle, size_t whole,
                         void **base_out)
{
    const struct cuda_driver *driver = &device->driver;
    CUmemAccessDesc access;
    CUdeviceptr address = 0;
    int status;

    memset(&access, 0, sizeof access);
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device->config.ordinal;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    status =
        driver_check(device, driver->address_reserve(&address, whole, 0, 0, 0),
                     "cuMemAddressReserve");
    if (status)
        return status;
    status = driver_check(device, driver->map(address, whole, 0, handle, 0),
                          "cuMemMap");
    if (status)
        goto error_map;
    status =
        driver_check(device, driver->set_access(address, whole, &access, 1),
                     "cuMemSetAccess");
    if (status)
        goto error_access;
    *base_out = (void *)(uintptr_t)address;
    return RG_OK;
error_access:
    driver->unmap(address, whole);
error_map:
    driver->address_free(address, whole);
    return status;
}

static void region_detach(const struct cuda_device *device, void *base,
                          size_t whole)
{
    const CUdeviceptr address = (CUdeviceptr)(uintptr_t)base;

    device->driver.unmap(address, whole);
    device->driver.address_free(address, whole);
}

static int region_create(void *opaque, size_t bytes, void **base_out,
                         int *fd_out)
{
    struct cuda_device *device = opaque;
    const CUmemAllocationProp prop = region_prop(device);
    CUmemGenericAllocationHandle handle;
    size_t whole;
    int fd = -1, status;

    cudaSetDevice(device->config.ordinal);
    status = region_round(device, bytes, &whole);
    if (status)
        return status;
    status = driver_check(
        device, device->driver.create(&handle, whole, &prop, 0), "cuMemCreate");
    if (status)
        return status;
    status = driver_check(
        device,
        device->driver.export_handle(
            &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "cuMemExportToShareableHandle");
    if (status == RG_OK)
        status = region_attach(device, handle, whole, base_out);
    device->driver.release(handle);
    if (status == RG_OK)
        status = cuda_set(device, *base_out, 0, bytes);
    if (status) {
        if (fd >= 0)
            close(fd);
        return status;
    }
    *fd_out = fd;
    return RG_OK;
}

static void region_destroy(void *opaque, void *base, size_t bytes, int fd)
{
    struct cuda_device *device = opaque;
    size_t whole;

    cudaSetDevice(device->config.ordinal);
    if (region_round(device, bytes, &whole) == RG_OK)
        region_detach(device, base, whole);
    close(fd);
}

static int needs_fd(void *device, const struct rg_region_key *key)
{
    (void)device;
    (void)key;
    return 1;
}

static int region_map(void *opaque, const struct rg_region_key *key, int fd,
                      size_t bytes, void **base_out)
{
    struct cuda_device *device = opaque;
    CUmemGenericAllocationHandle handle;
    size_t whole;
    int status;

    (void)key;
    cudaSetDevice(device->config.ordinal);
    status = region_round(device, bytes, &whole);
    if (status)
        return status;
    status = driver_check(
        device,
        device->driver.import_handle(&handle, (void *)(uintptr_t)fd,
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        "cuMemImportFromShareableHandle");
    if (status)
        return status;
    status = region_attach(device, handle, whole, base_out);
    device->driver.release(handle);
    return status;
}

static void region_unmap(void *opaque, const struct rg_region_key *key,
                         void *base, size_t bytes)
{
    struct cuda_device *device = opaque;
    size_t whole;

    (void)key;
    cudaSetDevice(device->config.ordinal);
    if (region_round(device, bytes, &whole) == RG_OK)
        region_detach(device, base, whole);
}

static int copy(void *opaque, void *dst, const void *src, size_t bytes)
{
    struct cuda_device *device = opaque;
    cudaError_t error;

    cudaSetDevice(device->config.ordinal);
    error = cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, device->copies);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(device->copies);
    return cuda_check(device, error, "a copy");
}

/* Copies of aligned words are whole words. */
static int copy_words(void *device, uint64_t *dst, const uint64_t *src,
                      size_t words)
{
    return copy(device, dst, src, words * sizeof *dst);
}

static uint64_t process(void *device)
{
    return ((struct cuda_device *)device)->process;
}

const struct rg_memory_ops cuda_memory = {.region_create = region_create,
                                          .region_destroy = region_destroy,
                                          .region_map = region_map,
                                          .region_unmap = region_unmap,
                                          .needs_fd = needs_fd,
                                          .copy = copy,
                                          .copy_words = copy_words,
                                          .process = process};

int cuda_alloc(void *opaque, size_t bytes, void **pointer_out)
{
    struct cuda_device *device = opaque;

    cudaSetDevice(device->config.ordinal);
    return cuda_check(device, cudaMalloc(pointer_out, bytes ? bytes : 1),
                      "cudaMalloc");
}

void cuda_free(void *opaque, void *pointer)
{
    struct cuda_device *device = opaque;

    cudaSetDevice(device->config.ordinal);
    cudaFree(pointer);
}

int cuda_set(void *opaque, void *dst, int byte, size_t bytes)
{
    struct cuda_device *device = opaque;
    cudaError_t error;

    cudaSetDevice(device->config.ordinal);
    error = cudaMemsetAsync(dst, byte, bytes, device->copies);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(device->copies);
    return cuda_check(device, error, "a memset");
}

int cuda_host_alloc(void *opaque, size_t bytes, void **host_out,
                    void **device_out)
{
    struct cuda_device *device = opaque;
    cudaError_t error;

    cudaSetDevice(device->config.ordinal);
    error = cudaHostAlloc(host_out, bytes,
                          cudaHostAllocMapped | cudaHostAllocPortable);
    if (error == cudaSuccess)
        error = cudaHostGetDevicePointer(device_out, *host_out, 0);
    if (error == cudaSuccess)
        memset(*host_out, 0, bytes);
    return cuda_check(device, error, "cudaHostAlloc");
}

void cuda_host_free(void *opaque, void *host)
{
    struct cuda_device *device = opaque;

    cudaSetDevice(device->config.ordinal);
    cudaFreeHost(host);
}

/* The engine made it, so that peers of this host can map it. */
int cuda_host_map(void *opaque, void *host, size_t bytes, void **device_out)
{
    struct cuda_device *device = opaque;
    cudaError_t error;

    cudaSetDevice(device->config.ordinal);
    error = cudaHostRegister(host, bytes,
                             cudaHostRegisterMapped | cudaHostRegisterPortable);
    if (error == cudaSuccess)
        error = cudaHostGetDevicePointer(device_out, host, 0);
    return cuda_check(device, error, "cudaHostRegister");
}

void cuda_host_unmap(void *opaque, void *host)
{
    struct cuda_device *device = opaque;

    cudaSetDevice(device->config.ordinal);
    cudaHostUnregister(host);
}
