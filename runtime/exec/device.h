/*
 * The host's view of a device: one table of calls, implemented by exec/emu
 * and exec/cuda. Handles (`device`, `stream`, `event`, `graph`) belong to the
 * backend; whoever creates one destroys it.
 */
#ifndef RG_EXEC_DEVICE_H
#define RG_EXEC_DEVICE_H

#include "runtime/algo.h"
#include "runtime/device/help.h"
#include "runtime/device/plan.h"
#include "runtime/regroup.h"
#include "runtime/transfer/memory.h"

struct rg_device_config {
    int ordinal;
    int world_rank;
    int world_size;
    int team_width; /* emu: threads a team, >= 1 */
    int max_teams;  /* emu: teams a launch, 0: by cores */
    const char *host_id;
    const struct rg_algo *const *algos;
};

/* Grid and block of a launch: a pure function of collective, type, bytes. */
struct rg_geometry {
    int teams;
    int threads; /* a team */
    int small;   /* the entry made for one team and the hot line */
    int overlap; /* may be set up before the previous launch has ended */
    int bare;    /* the entry without what makes it recoverable */
};

struct rg_device_ops {
    enum rg_device_kind kind;
    int (*count)(void);
    /* RG_ENODEV: no such device. Everything that allocates or loads for
     * good happens here, before the first launch. */
    int (*open)(const struct rg_device_config *config, void **device_out);
    void (*close)(void *device);
    int (*info)(void *device, struct rg_device_info *info_out);
    const struct rg_memory_ops *memory;

    int (*alloc)(void *device, size_t bytes, void **pointer_out);
    void (*free)(void *device, void *pointer);
    int (*set)(void *device, void *dst, int byte, size_t bytes);
    /* Host memory that teams can read and write. */
    int (*host_alloc)(void *device, size_t bytes, void **host_out,
                      void **device_out);
    void (*host_free)(void *device, void *host);
    /* The same for page-aligned memory that exists. Null where teams can
     * anyway (host_reads_device). */
    int (*host_map)(void *device, void *host, size_t bytes, void **device_out);
    void (*host_unmap)(void *device, void *host);

    int (*stream_create)(void *device, void *native, void **stream_out);
    void (*stream_destroy)(void *stream);
    int (*stream_synchronize)(void *stream);
    int (*stream_query)(void *stream);
    /* Later work of `stream` waits for the present work of `after`. */
    int (*stream_follow)(void *stream, void *after);

    int (*event_create)(void *device, void **event_out);
    void (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_synchronize)(void *event);
    int (*event_elapsed_us)(void *begin, void *end, double *us_out);

    int (*capture_begin)(void *stream);
    int (*capture_end)(void *stream, void **graph_out);
    int (*graph_launch)(void *graph, void *stream);
    void (*graph_destroy)(void *graph);

    /* What a plan may count on: channels of the workspace layout. */
    int (*max_channels)(void *device);
    /* Channels of a rule that does not say how many. */
    int (*channels)(void *device);
    /* `sharers`: communicators that must fit on the device together. */
    void (*geometry)(void *device, enum rg_collective collective,
                     uint64_t bytes, int sharers,
                     struct rg_geometry *geometry_out);
    int (*launch)(void *stream, const struct rg_geometry *geometry,
                  const struct rg_entries *entries, enum rg_dtype dtype,
                  const struct rg_launch *launch);
    int (*kernel)(void *stream, const struct rg_kernel *kernel, int teams,
                  const void *args, size_t bytes);
    /*
     * A host function in the stream's order; it may block, and must not call
     * the device. Copies between host_alloc()'s and device memory, likewise.
     */
    int (*host_call)(void *stream, void (*run)(void *arg), void *arg);
    int (*copy_async)(void *stream, void *dst, const void *src, size_t bytes);
    int host_reads_device; /* 1: host functions may use device addresses */
    /*
     * The launch made to keep a word (device/keeper.h), beside all streams;
     * may return at once or when it has ended. For a helper thread, as
     * read_word, which reads a word that teams write.
     */
    int (*help)(void *device, const struct rg_help_args *args);
    int (*read_word)(void *device, const uint64_t *word, uint64_t *value_out);
};

extern const struct rg_device_ops rg_device_emu;
extern const struct rg_device_ops rg_device_cuda;

/* Those built in, null-terminated. */
extern const struct rg_device_ops *const rg_device_backends[];
/* The backend of a kind, or null when it is not built in. */
const struct rg_device_ops *rg_device_ops_of(enum rg_device_kind kind);

#endif
