/*
 * Words that several ranks or teams see: acquire loads, release stores,
 * relaxed accesses, additions, and 128-bit low-latency packets.
 *
 * Scope is the system (all GPUs of the host and its CPUs) unless a name says
 * `_dev`: then it is one device. Sources: PTX ISA 8.3, memory consistency
 * model; C11 atomics. Host code has no stand-alone fences: every release
 * is a store and every acquire a load, so that ThreadSanitizer sees the pairs.
 */
#ifndef RG_DEVICE_WORD_H
#define RG_DEVICE_WORD_H

#include "runtime/device/dev.h"

/* A low-latency packet: 8 payload bytes and their tag in 16 bytes. */
enum { RG_PACKET_BYTES = 16, RG_PACKET_PAYLOAD = 8 };

#if RG_ON_CUDA

RG_FN void rg_prefetch(const void *at)
{
    asm volatile("prefetch.global.L1 [%0];" ::"l"(at));
}

RG_FN uint64_t rg_load_acquire(const uint64_t *word)
{
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
                 : "=l"(value)
                 : "l"(word)
                 : "memory");
    return value;
}

RG_FN uint64_t rg_load_relaxed(const uint64_t *word)
{
    uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
                 : "=l"(value)
                 : "l"(word)
                 : "memory");
    return value;
}

RG_FN void rg_store_release(uint64_t *word, uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value)
                 : "memory");
}

RG_FN void rg_store_relaxed(uint64_t *word, uint64_t value)
{
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value)
                 : "memory");
}

/*
 * What was read before has been used, so that nothing is left to order: the
 * loads are over once the values they gave have been stored elsewhere.
 */
RG_FN void rg_store_credit(uint64_t *word, uint64_t value)
{
    rg_store_relaxed(word, value);
}

/* Two words, 16-byte aligned, in one access; each is atomic, the two are not.
 */
RG_FN void rg_load_relaxed_pair(const uint64_t *words, uint64_t *first_out,
                                uint64_t *second_out)
{
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(*first_out), "=l"(*second_out)
                 : "l"(words)
                 : "memory");
}

RG_FN void rg_store_relaxed_pair(uint64_t *words, uint64_t first,
                                 uint64_t second)
{
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(words),
                 "l"(first), "l"(second)
                 : "memory");
}

/* Two release stores for the price of one: the fence covers both. */
RG_FN void rg_store_release_both(uint64_t *word, uint64_t *other,
                                 uint64_t value)
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    rg_store_relaxed(word, value);
    rg_store_relaxed(other, value);
}

RG_FN uint64_t rg_add_release(uint64_t *word, uint64_t value)
{
    uint64_t old;
    asm volatile("atom.add.release.sys.global.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(word), "l"(value)
                 : "memory");
    return old;
}

RG_FN uint64_t rg_add_relaxed_dev(uint64_t *word, uint64_t value)
{
    uint64_t old;
    asm volatile("atom.add.relaxed.gpu.global.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(word), "l"(value)
                 : "memory");
    return old;
}

/* Counts a team in at a launch's end, which orders all but the count. */
RG_FN uint64_t rg_add_arrival_dev(uint64_t *word, uint64_t value)
{
    return rg_add_relaxed_dev(word, value);
}

/*
 * A claim by thread 0 of a team; 0 at the others. Its answer orders nothing
 * here (hot.h). An address that differs with the thread keeps the
 * assembler from gathering the adds of a warp into one, whose answer it would
 * wait for.
 */
RG_FN uint64_t rg_add_claim_dev(uint64_t *word, uint64_t value, int thread)
{
    uint64_t old = 0;
    asm volatile("{\n\t.reg .pred p;\n\tsetp.eq.s32 p, %3, 0;\n\t"
                 "@p atom.add.relaxed.gpu.global.u64 %0, [%1], %2;\n\t}"
                 : "+l"(old)
                 : "l"(word + thread), "l"(value), "r"(thread)
                 : "memory");
    return old;
}

RG_FN uint64_t rg_add_acq_rel_dev(uint64_t *word, uint64_t value)
{
    uint64_t old;
    asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(word), "l"(value)
                 : "memory");
    return old;
}

RG_FN uint64_t rg_cas_acq_rel_dev(uint64_t *word, uint64_t expected,
                                  uint64_t desired)
{
    uint64_t old;
    asm volatile("atom.cas.acq_rel.gpu.global.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(word), "l"(expected), "l"(desired)
                 : "memory");
    return old;
}

RG_FN uint64_t rg_or_acq_rel_dev(uint64_t *word, uint64_t value)
{
    uint64_t old;
    asm volatile("atom.or.acq_rel.gpu.global.b64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(word), "l"(value)
                 : "memory");
    return old;
}

RG_FN uint64_t rg_or_relaxed_dev(uint64_t *word, uint64_t value)
{
    uint64_t old;
    asm volatile("atom.or.relaxed.gpu.global.b64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(word), "l"(value)
                 : "memory");
    return old;
}

/*
 * One 128-bit scalar access moves payload and tag together (PTX 8.3, sm_70;
 * a vector access would not be single-copy atomic).
 */
RG_FN void rg_packet_store(void *packet, uint64_t payload, uint64_t tag)
{
    asm volatile("{\n\t.reg .b128 p;\n\tmov.b128 p, {%1, %2};\n\t"
                 "st.relaxed.sys.global.b128 [%0], p;\n\t}" ::"l"(packet),
                 "l"(payload), "l"(tag)
                 : "memory");
}

/* 1 when the packet carries `tag`; then *payload is its payload. */
RG_FN int rg_packet_load(const void *packet, uint64_t tag, uint64_t *payload)
{
    uint64_t seen;
    asm volatile("{\n\t.reg .b128 p;\n\t"
                 "ld.relaxed.sys.global.b128 p, [%2];\n\t"
                 "mov.b128 {%0, %1}, p;\n\t}"
                 : "=l"(*payload), "=l"(seen)
                 : "l"(packet)
                 : "memory");
    return seen == tag;
}

/* Every 64-bit value but 0 is a tag; this one is the hot line's word | 1. */
RG_FN uint64_t rg_packet_tag(uint64_t cursor)
{
    return cursor << 1 | 1;
}

/* Tags never come round within a generation. */
RG_FN int rg_packet_tag_wraps(uint64_t cursor)
{
    (void)cursor;
    return 0;
}

#else

RG_FN uint64_t rg_load_acquire(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

RG_FN uint64_t rg_load_relaxed(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

RG_FN void rg_store_release(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

RG_FN void rg_store_relaxed(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

RG_FN void rg_store_credit(uint64_t *word, uint64_t value)
{
    rg_store_release(word, value);
}

RG_FN void rg_load_relaxed_pair(const uint64_t *words, uint64_t *first_out,
                                uint64_t *second_out)
{
    *first_out = rg_load_relaxed(words);
    *second_out = rg_load_relaxed(words + 1);
}

RG_FN void rg_store_relaxed_pair(uint64_t *words, uint64_t first,
                                 uint64_t second)
{
    rg_store_relaxed(words, first);
    rg_store_relaxed(words + 1, second);
}

RG_FN void rg_store_release_both(uint64_t *word, uint64_t *other,
                                 uint64_t value)
{
    rg_store_release(word, value);
    rg_store_release(other, value);
}

RG_FN uint64_t rg_add_release(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
}

RG_FN uint64_t rg_add_relaxed_dev(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

RG_FN uint64_t rg_add_acq_rel_dev(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}

/* Host threads have read what the last of them writes before all have left. */
RG_FN uint64_t rg_add_arrival_dev(uint64_t *word, uint64_t value)
{
    return rg_add_acq_rel_dev(word, value);
}

/* Pairs with the release that opened the word. */
RG_FN uint64_t rg_add_claim_dev(uint64_t *word, uint64_t value, int thread)
{
    return thread ? 0 : __atomic_fetch_add(word, value, __ATOMIC_ACQUIRE);
}

RG_FN uint64_t rg_cas_acq_rel_dev(uint64_t *word, uint64_t expected,
                                  uint64_t desired)
{
    __atomic_compare_exchange_n(word, &expected, desired, 0, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    return expected;
}

RG_FN uint64_t rg_or_acq_rel_dev(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_or(word, value, __ATOMIC_ACQ_REL);
}

RG_FN uint64_t rg_or_relaxed_dev(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_or(word, value, __ATOMIC_RELAXED);
}

/* Here a packet is two words of 4 payload bytes and a 32-bit tag each. */
RG_FN void rg_packet_store(void *packet, uint64_t payload, uint64_t tag)
{
    uint64_t *word = (uint64_t *)packet;

    rg_store_relaxed(word, payload << 32 | tag);
    rg_store_relaxed(word + 1, (payload >> 32) << 32 | tag);
}

RG_FN int rg_packet_load(const void *packet, uint64_t tag, uint64_t *payload)
{
    const uint64_t *word = (const uint64_t *)packet;
    const uint64_t low = rg_load_relaxed(word);
    const uint64_t high = rg_load_relaxed(word + 1);

    *payload = low >> 32 | (high >> 32) << 32;
    return (uint32_t)low == tag && (uint32_t)high == tag;
}

/* Tags are 1 .. 2^32-1: 0 is memory never written. */
#define RG_PACKET_TAGS 0xffffffffull

RG_FN uint64_t rg_packet_tag(uint64_t cursor)
{
    return cursor % RG_PACKET_TAGS + 1;
}

/*
 * 1 when the next use of this cursor's slots, two cursors on, starts a new
 * round of tags: the slots must be cleaned first, or a packet written a whole
 * round ago could pass for a new one.
 */
RG_FN int rg_packet_tag_wraps(uint64_t cursor)
{
    return cursor % RG_PACKET_TAGS >= RG_PACKET_TAGS - 2;
}

#endif

#endif
