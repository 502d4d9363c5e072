#include "runtime/core/hash.h"

uint64_t rg_hash(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;

    for (size_t i = 0; i < bytes; i++) {
        hash ^= byte[i];
        hash *= 0x100000001b3ull;
    }
    return hash;
}
