/*
 * The CUDA device: host side, over the CUDA runtime and, for shareable
 * memory, driver entry points fetched at run time (the driver library is not
 * linked, so that programs start on machines without a GPU).
 *
 * Streams do not block on the legacy default stream; copies go through a
 * stream of the device's own. After the first launch nothing here calls a
 * function that synchronises the device implicitly, memory release apart.
 */
#ifndef RG_EXEC_CUDA_H
#define RG_EXEC_CUDA_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "runtime/exec/device.h"

/* Driver entry points: X(field, name, version). */
#define CUDA_DRIVER_LIST(X)                                                    \
    X(address_reserve, cuMemAddressReserve, 10020)                             \
    X(address_free, cuMemAddressFree, 10020)                                   \
    X(create, cuMemCreate, 10020)                                              \
    X(release, cuMemRelease, 10020)                                            \
    X(map, cuMemMap, 10020)                                                    \
    X(unmap, cuMemUnmap, 10020)                                                \
    X(set_access, cuMemSetAccess, 10020)                                       \
    X(export_handle, cuMemExportToShareableHandle, 10020)                      \
    X(import_handle, cuMemImportFromShareableHandle, 10020)                    \
    X(granularity, cuMemGetAllocationGranularity, 10020)

struct cuda_driver {
#define RG_X(field, name, version) PFN_##name##_v##version field;
    CUDA_DRIVER_LIST(RG_X)
#undef RG_X
};

struct cuda_device {
    struct rg_device_config config;
    struct cuda_driver driver;
    cudaStream_t copies;
    cudaStream_t helps; /* launches that keep a held word */
    uint64_t process;
    int multiprocessors;
    char host_id[64];
};

struct cuda_stream {
    struct cuda_device *device;
    cudaStream_t stream;
    int owned;
};

struct cuda_event {
    struct cuda_device *device;
    cudaEvent_t event;
};

struct cuda_graph {
    struct cuda_device *device;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
};

/* Maps a failed call to RG_ESYSTEM or RG_ENOMEM and logs it; 0: no error. */
int cuda_check(const struct cuda_device *device, cudaError_t error,
               const char *what);

/* memory.c */
extern const struct rg_memory_ops cuda_memory;
int cuda_driver_load(struct cuda_device *device);
int cuda_alloc(void *device, size_t bytes, void **pointer_out);
void cuda_free(void *device, void *pointer);
int cuda_set(void *device, void *dst, int byte, size_t bytes);
int cuda_host_alloc(void *device, size_t bytes, void **host_out,
                    void **device_out);
void cuda_host_free(void *device, void *host);
int cuda_host_map(void *device, void *host, size_t bytes, void **device_out);
void cuda_host_unmap(void *device, void *host);

/* stream.c */
int cuda_stream_create(void *device, void *native, void **stream_out);
void cuda_stream_destroy(void *stream);
int cuda_stream_synchronize(void *stream);
int cuda_stream_query(void *stream);
int cuda_stream_follow(void *stream, void *after);
int cuda_event_create(void *device, void **event_out);
void cuda_event_destroy(void *event);
int cuda_event_record(void *event, void *stream);
int cuda_event_synchronize(void *event);
int cuda_event_elapsed_us(void *begin, void *end, double *us_out);
int cuda_capture_begin(void *stream);
int cuda_capture_end(void *stream, void **graph_out);
int cuda_graph_launch(void *graph, void *stream);
void cuda_graph_destroy(void *graph);

#endif
