/*
 * What the transfer service needs of a device: memory that other ranks can
 * map. Implemented by exec/emu and exec/cuda.
 */
#ifndef RG_TRANSFER_MEMORY_H
#define RG_TRANSFER_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* A region as its owner describes it to the other ranks. */
struct rg_region_key {
    uint64_t process; /* identity of the owner's process on its host */
    uint64_t base;    /* where the owner sees it */
};

struct rg_memory_ops {
    /* Zeroed memory at *base_out; *fd_out (owned) lets a peer map it. */
    int (*region_create)(void *device, size_t bytes, void **base_out,
                         int *fd_out);
    void (*region_destroy)(void *device, void *base, size_t bytes, int fd);
    /*
     * Maps a peer's region. `fd` (borrowed) is -1 when needs_fd says it is
     * not needed. Valid after the exporter's death.
     */
    int (*region_map)(void *device, const struct rg_region_key *key, int fd,
                      size_t bytes, void **base_out);
    void (*region_unmap)(void *device, const struct rg_region_key *key,
                         void *base, size_t bytes);
    int (*needs_fd)(void *device, const struct rg_region_key *key);
    /* Any two of host and device memory; returns when it is done. */
    int (*copy)(void *device, void *dst, const void *src, size_t bytes);
    /* The same for words that a rank may read while another writes them: each
     * is read or written as a whole. */
    int (*copy_words)(void *device, uint64_t *dst, const uint64_t *src,
                      size_t words);
    uint64_t (*process)(void *device); /* this process's identity */
};

struct rg_memory {
    const struct rg_memory_ops *ops;
    void *device; /* borrowed */
};

#endif
