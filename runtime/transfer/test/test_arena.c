/* Unit tests of the region's allocator of offsets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/status.h"
#include "runtime/transfer/arena.h"

enum { ARENA_BYTES = 64 << 10 };

static uint64_t take(struct rg_arena *arena, uint64_t bytes, uint64_t align)
{
    uint64_t offset = UINT64_MAX;

    assert_int_equal(rg_arena_alloc(arena, bytes, align, &offset), RG_OK);
    assert_int_equal(offset % align, 0);
    assert_true(offset + bytes <= arena->bytes);
    return offset;
}

static void the_first_hole_that_fits_is_taken(void **state)
{
    struct rg_arena arena;

    (void)state;
    rg_arena_init(&arena, ARENA_BYTES);
    assert_int_equal(take(&arena, 1000, 1), 0);
    assert_int_equal(take(&arena, 200, 1), 1000);
    assert_int_equal(take(&arena, 3000, 1), 1200);
    assert_int_equal(take(&arena, 8, 1), 4200);
    rg_arena_free(&arena, 0);
    rg_arena_free(&arena, 1200);
    assert_int_equal(take(&arena, 1001, 1), 1200);
    assert_int_equal(take(&arena, 1000, 1), 0);
    assert_int_equal(take(&arena, 1999, 1), 2201);
    assert_int_equal(take(&arena, 1, 1), 4208);
    rg_arena_fini(&arena);
}

/* The padding in front of an aligned block counts against a hole. */
static void alignment_is_kept_inside_holes(void **state)
{
    struct rg_arena arena;

    (void)state;
    rg_arena_init(&arena, ARENA_BYTES);
    take(&arena, 1, 1);
    assert_int_equal(take(&arena, 100, 4096), 4096);
    assert_int_equal(take(&arena, 256, 256), 256);
    assert_int_equal(take(&arena, 3584, 512), 512);
    assert_int_equal(take(&arena, 1, 256), 4352);
    rg_arena_fini(&arena);
}

static void a_full_arena_says_so_and_stays_as_it_is(void **state)
{
    struct rg_arena arena;
    uint64_t offset = 77, first;

    (void)state;
    rg_arena_init(&arena, 4096);
    assert_int_equal(rg_arena_alloc(&arena, 4097, 1, &offset), RG_ENOSPC);
    assert_int_equal(rg_arena_alloc(&arena, UINT64_MAX, 1, &offset), RG_ENOSPC);
    first = take(&arena, 4095, 1);
    assert_int_equal(rg_arena_alloc(&arena, 1, 4096, &offset), RG_ENOSPC);
    assert_int_equal(offset, 77);
    assert_int_equal(take(&arena, 1, 1), 4095);
    assert_int_equal(rg_arena_alloc(&arena, 1, 1, &offset), RG_ENOSPC);
    rg_arena_free(&arena, 5); /* was not given out */
    assert_int_equal(rg_arena_alloc(&arena, 1, 1, &offset), RG_ENOSPC);
    rg_arena_free(&arena, first);
    assert_int_equal(take(&arena, 4095, 1), 0);
    rg_arena_fini(&arena);
}

static int blocks_overlap(const struct rg_arena *arena)
{
    for (int i = 1; i < arena->count; i++)
        if (arena->used[i - 1].offset + arena->used[i - 1].bytes >
            arena->used[i].offset)
            return 1;
    return 0;
}

/* Two ranks, the same random calls: the same answers, never an overlap. */
static void the_same_calls_give_the_same_offsets(void **state)
{
    struct rg_arena a, b;
    uint64_t held[64] = {0}, there, random = 1;
    int refused = 0, count = 0, status;

    (void)state;
    rg_arena_init(&a, ARENA_BYTES);
    rg_arena_init(&b, ARENA_BYTES);
    for (int i = 0; i < 5000; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        if (count == 64 || (count && random >> 63)) {
            const int which = (int)((random >> 32) % (unsigned)count);

            rg_arena_free(&a, held[which]);
            rg_arena_free(&b, held[which]);
            held[which] = held[--count];
            continue;
        }
        status = rg_arena_alloc(&a, 1 + (random >> 33) % 4000,
                                1ull << (random >> 50) % 10, &held[count]);
        assert_int_equal(rg_arena_alloc(&b, 1 + (random >> 33) % 4000,
                                        1ull << (random >> 50) % 10, &there),
                         status);
        refused += status == RG_ENOSPC;
        if (status)
            continue;
        assert_int_equal(held[count++], there);
        assert_false(blocks_overlap(&a));
    }
    assert_true(refused > 0);
    assert_int_equal(a.count, count);
    rg_arena_fini(&a);
    rg_arena_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_hole_that_fits_is_taken),
        cmocka_unit_test(alignment_is_kept_inside_holes),
        cmocka_unit_test(a_full_arena_says_so_and_stays_as_it_is),
        cmocka_unit_test(the_same_calls_give_the_same_offsets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
