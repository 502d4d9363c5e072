/*
 * First-fit allocator of offsets in a region. It never touches the memory, so
 * ranks that make the same calls get the same offsets.
 */
#ifndef RG_TRANSFER_ARENA_H
#define RG_TRANSFER_ARENA_H

#include <stdint.h>

struct rg_arena_block {
    uint64_t offset;
    uint64_t bytes;
};

struct rg_arena {
    uint64_t bytes;
    struct rg_arena_block *used; /* ascending by offset; owned */
    int count;
    int room;
};

void rg_arena_init(struct rg_arena *arena, uint64_t bytes);
void rg_arena_fini(struct rg_arena *arena);
/* align is a power of two. RG_OK, RG_ENOSPC, RG_ENOMEM. */
int rg_arena_alloc(struct rg_arena *arena, uint64_t bytes, uint64_t align,
                   uint64_t *offset_out);
/* An offset that was not given out is ignored. */
void rg_arena_free(struct rg_arena *arena, uint64_t offset);

#endif
