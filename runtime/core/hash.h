/*
 * 64-bit FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv): agreement checks on
 * tables and plans. Not for security.
 */
#ifndef RG_CORE_HASH_H
#define RG_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define RG_HASH_INIT 0xcbf29ce484222325ull

/* Continues `hash` (start with RG_HASH_INIT) over bytes. */
uint64_t rg_hash(uint64_t hash, const void *data, size_t bytes);

#endif
