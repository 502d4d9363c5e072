#include "runtime/transfer/arena.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/status.h"

void rg_arena_init(struct rg_arena *arena, uint64_t bytes)
{
    memset(arena, 0, sizeof *arena);
    arena->bytes = bytes;
}

void rg_arena_fini(struct rg_arena *arena)
{
    free(arena->used);
    memset(arena, 0, sizeof *arena);
}

static int arena_grow(struct rg_arena *arena)
{
    const int room = arena->room ? 2 * arena->room : 16;
    struct rg_arena_block *used;

    if (arena->count < arena->room)
        return RG_OK;
    used = realloc(arena->used, (size_t)room * sizeof *used);
    if (!used)
        return RG_ENOMEM;
    arena->used = used;
    arena->room = room;
    return RG_OK;
}

int rg_arena_alloc(struct rg_arena *arena, uint64_t bytes, uint64_t align,
                   uint64_t *offset_out)
{
    uint64_t at = 0, limit;
    int i;

    if (arena_grow(arena))
        return RG_ENOMEM;
    for (i = 0; i <= arena->count; i++) {
        limit = i < arena->count ? arena->used[i].offset : arena->bytes;
        at = (at + align - 1) & ~(align - 1);
        if (at <= limit && bytes <= limit - at)
            break;
        if (i < arena->count)
            at = arena->used[i].offset + arena->used[i].bytes;
    }
    if (i > arena->count)
        return RG_ENOSPC;
    memmove(&arena->used[i + 1], &arena->used[i],
            (size_t)(arena->count - i) * sizeof *arena->used);
    arena->used[i] = (struct rg_arena_block){at, bytes};
    arena->count++;
    *offset_out = at;
    return RG_OK;
}

void rg_arena_free(struct rg_arena *arena, uint64_t offset)
{
    for (int i = 0; i < arena->count; i++) {
        if (arena->used[i].offset != offset)
            continue;
        arena->count--;
        memmove(&arena->used[i], &arena->used[i + 1],
                (size_t)(arena->count - i) * sizeof *arena->used);
        return;
    }
}
