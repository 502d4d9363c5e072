#include "harness/buffers.h"

#include <stdlib.h>

#include "harness/datagen.h"

enum { BLOCK_ALIGN = 256 };

static size_t block_stride(size_t bytes)
{
    /* The tail is at least a guard wide behind any shift. */
    const size_t used = RG_GUARD_BYTES + bytes + BLOCK_ALIGN + RG_GUARD_BYTES;

    return (used + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
}

static int alloc_slab(struct rg_buffers *buffers, char **slab_out)
{
    void *slab = NULL;
    int status;

    if (buffers->source.alloc)
        status =
            buffers->source.alloc(buffers->source.arg, buffers->room, &slab);
    else
        status = rg_malloc(buffers->context, buffers->room, &slab);
    if (status == RG_OK)
        *slab_out = slab;
    return status;
}

static void free_slab(struct rg_buffers *buffers, char *slab)
{
    if (!slab)
        return;
    if (buffers->source.free)
        buffers->source.free(buffers->source.arg, slab);
    else
        rg_free(buffers->context, slab);
}

int rg_buffers_create(struct rg_context *context, size_t bytes, size_t shift,
                      int slots, const struct rg_buffer_source *source,
                      struct rg_buffers **buffers_out)
{
    struct rg_buffers *buffers;
    int status;

    if (shift >= BLOCK_ALIGN || slots < 1)
        return RG_EINVAL;
    buffers = calloc(1, sizeof *buffers);
    if (!buffers)
        return RG_ENOMEM;
    buffers->context = context;
    if (source)
        buffers->source = *source;
    buffers->room = block_stride(bytes) * (size_t)slots;
    status = alloc_slab(buffers, &buffers->send);
    if (status == RG_OK)
        status = alloc_slab(buffers, &buffers->recv);
    if (status == RG_OK)
        status = rg_buffers_resize(buffers, bytes, shift, slots);
    if (status != RG_OK)
        goto error;
    *buffers_out = buffers;
    return RG_OK;
error:
    rg_buffers_destroy(buffers);
    return status;
}

int rg_buffers_resize(struct rg_buffers *buffers, size_t bytes, size_t shift,
                      int slots)
{
    const size_t stride = block_stride(bytes);
    const size_t used = stride * (size_t)slots;
    int status;

    if (used > buffers->room)
        return RG_ENOSPC;
    buffers->bytes = bytes;
    buffers->shift = shift;
    buffers->slots = slots;
    buffers->stride = stride;
    status = rg_memset(buffers->context, buffers->send, RG_GUARD_BYTE, used);
    if (status == RG_OK)
        status =
            rg_memset(buffers->context, buffers->recv, RG_GUARD_BYTE, used);
    return status;
}

void rg_buffers_destroy(struct rg_buffers *buffers)
{
    if (!buffers)
        return;
    free_slab(buffers, buffers->recv);
    free_slab(buffers, buffers->send);
    free(buffers);
}

void *rg_buffers_send(const struct rg_buffers *buffers, int slot)
{
    return buffers->send + (size_t)slot * buffers->stride + RG_GUARD_BYTES +
           buffers->shift;
}

void *rg_buffers_recv(const struct rg_buffers *buffers, int slot)
{
    return buffers->recv + (size_t)slot * buffers->stride + RG_GUARD_BYTES +
           buffers->shift;
}

size_t rg_buffers_footprint(size_t bytes, int slots)
{
    return 2 * block_stride(bytes) * (size_t)slots;
}
