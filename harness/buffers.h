/*
 * Send and receive buffers of a sweep: `slots` pairs, each block with guard
 * bytes before and behind, so that iterations can rotate over more memory than
 * the last-level cache holds and every output of a graph replay can be kept.
 *
 *     | guard | shift | data ........ | guard + padding to 256 |   per block
 *
 * A buffer set belongs to one rank. In place, both pointers of a slot are its
 * receive block.
 */
#ifndef RG_HARNESS_BUFFERS_H
#define RG_HARNESS_BUFFERS_H

#include "runtime/regroup.h"

enum { RG_GUARD_BYTES = 256 };

/* Where memory comes from; null functions: rg_malloc and rg_free. */
struct rg_buffer_source {
    int (*alloc)(void *arg, size_t bytes, void **pointer_out);
    void (*free)(void *arg, void *pointer);
    void *arg;
};

struct rg_buffers {
    struct rg_context *context; /* borrowed */
    struct rg_buffer_source source;
    size_t bytes;  /* data of one block */
    size_t stride; /* between blocks */
    size_t shift;  /* data begins this far behind the guard */
    int slots;
    size_t room; /* bytes of each slab */
    char *send;  /* owned slabs, device memory */
    char *recv;
};

/*
 * `shift` (below 256) misaligns the data, e.g. by one element. `source` may be
 * null. Guards are filled, data is not. RG_ENOMEM when memory is exhausted.
 */
int rg_buffers_create(struct rg_context *context, size_t bytes, size_t shift,
                      int slots, const struct rg_buffer_source *source,
                      struct rg_buffers **buffers_out);
/*
 * Lays the same memory out anew, guards filled again. RG_ENOSPC when it does
 * not fit. Nothing may be in flight.
 */
int rg_buffers_resize(struct rg_buffers *buffers, size_t bytes, size_t shift,
                      int slots);
void rg_buffers_destroy(struct rg_buffers *buffers); /* accepts null */

void *rg_buffers_send(const struct rg_buffers *buffers, int slot);
void *rg_buffers_recv(const struct rg_buffers *buffers, int slot);
/* Bytes of device memory a set would take. */
size_t rg_buffers_footprint(size_t bytes, int slots);

#endif
