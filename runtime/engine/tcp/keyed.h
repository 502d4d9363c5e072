/*
 * A keyed hash for the handshake: two SipHash-2-4 (Aumasson and Bernstein,
 * 2012) with the two halves of the job secret as keys.
 */
#ifndef RG_ENGINE_TCP_KEYED_H
#define RG_ENGINE_TCP_KEYED_H

#include <stddef.h>

enum { RG_KEYED_KEY_BYTES = 32, RG_KEYED_BYTES = 16 };

void rg_keyed_hash(const unsigned char key[RG_KEYED_KEY_BYTES],
                   const void *data, size_t bytes,
                   unsigned char hash_out[RG_KEYED_BYTES]);
/* 1 if equal; takes the same time wherever they differ. */
int rg_keyed_equal(const unsigned char a[RG_KEYED_BYTES],
                   const unsigned char b[RG_KEYED_BYTES]);

#endif
