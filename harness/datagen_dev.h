/*
 * The blocks that datagen.c hands to the kernels of datagen_dev.c, and what a
 * check leaves in device memory. Compiled by both compilers.
 */
#ifndef RG_HARNESS_DATAGEN_DEV_H
#define RG_HARNESS_DATAGEN_DEV_H

#include <stdint.h>

#include "runtime/regroup.h"

/* Where elements come from, if not from one rank. */
enum rg_from {
    RG_FROM_ALL = -1,   /* combined from all ranks' */
    RG_FROM_EACH = -2,  /* a block of each in turn */
    RG_FROM_NOBODY = -3 /* they are to be poison still */
};

/* Neighbouring elements of a buffer. */
struct rg_pattern {
    uint64_t count;
    uint64_t first; /* index of the first in its sender's buffer */
    uint64_t block; /* RG_FROM_EACH: elements of a block */
    int32_t from;   /* a rank, or enum rg_from */
    int32_t as;     /* enum rg_dtype: what elements are made and compared as */
    int32_t op;     /* enum rg_op */
    int32_t nranks;
    uint32_t iteration;
    int32_t dtype;      /* enum rg_dtype; for who reads of a mismatch */
    int32_t collective; /* enum rg_collective; the same */
    int32_t number;     /* of the block they are, -1: see `from` */
};

struct rg_fill_args {
    void *out;
    struct rg_pattern pattern;
    int32_t rank;
};

struct rg_poison_args {
    void *out;
    uint64_t bytes;
    uint64_t word; /* the poison byte, eight times */
};

/* All zero before the first check. */
struct rg_check_words {
    uint64_t wrong;
    uint64_t guards;
    /* Written once, by whoever found the first wrong element. */
    struct rg_pattern pattern;
    uint64_t index;
    uint64_t expected;
    uint64_t got;
};

struct rg_check_args {
    const void *recv;
    struct rg_pattern pattern;
    const void *guarded; /* the buffer that the guards are around */
    uint64_t guarded_bytes;
    uint32_t guard_bytes; /* on each side, 0: do not look */
    uint32_t guard_byte;
    struct rg_check_words *words;
};

struct rg_datagen_kernels {
    struct rg_kernel fill;
    struct rg_kernel poison;
    struct rg_kernel check;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Each device's object fills in its half. */
void rg_datagen_kernels_emu(struct rg_datagen_kernels *kernels);
void rg_datagen_kernels_cuda(struct rg_datagen_kernels *kernels);

/* On the host: what explains the first wrong element, and whose fault. */
int rg_datagen_explain(const struct rg_check_words *words, int *culprit_out);

#ifdef __cplusplus
}
#endif

#endif
