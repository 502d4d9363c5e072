#include "runtime/engine/tcp/keyed.h"

#include <stdint.h>
#include <string.h>

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void rounds(struct sip *s, int count)
{
    while (count--) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = rotate(s->v1, 13) ^ s->v0;
        s->v3 = rotate(s->v3, 16) ^ s->v2;
        s->v0 = rotate(s->v0, 32);
        s->v2 += s->v1;
        s->v0 += s->v3;
        s->v1 = rotate(s->v1, 17) ^ s->v2;
        s->v3 = rotate(s->v3, 21) ^ s->v0;
        s->v2 = rotate(s->v2, 32);
    }
}

static uint64_t load_le(const unsigned char *at, size_t bytes)
{
    uint64_t word = 0;

    for (size_t i = 0; i < bytes; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

static void absorb(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    rounds(s, 2);
    s->v0 ^= word;
}

static uint64_t siphash(const unsigned char key[16], const unsigned char *data,
                        size_t bytes)
{
    const uint64_t k0 = load_le(key, 8);
    const uint64_t k1 = load_le(key + 8, 8);
    struct sip s = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
                    k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
    size_t at = 0;

    for (; bytes - at >= 8; at += 8)
        absorb(&s, load_le(data + at, 8));
    absorb(&s, load_le(data + at, bytes - at) | (uint64_t)bytes << 56);
    s.v2 ^= 0xff;
    rounds(&s, 4);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

void rg_keyed_hash(const unsigned char key[RG_KEYED_KEY_BYTES],
                   const void *data, size_t bytes,
                   unsigned char hash_out[RG_KEYED_BYTES])
{
    for (int half = 0; half < 2; half++) {
        const uint64_t hash = siphash(key + 16 * half, data, bytes);

        for (int i = 0; i < 8; i++)
            hash_out[8 * half + i] = (unsigned char)(hash >> (8 * i));
    }
}

int rg_keyed_equal(const unsigned char a[RG_KEYED_BYTES],
                   const unsigned char b[RG_KEYED_BYTES])
{
    unsigned char different = 0;

    for (int i = 0; i < RG_KEYED_BYTES; i++)
        different |= a[i] ^ b[i];
    return !different;
}
