/*
 * One invocation under test: a problem of the oracle, and the memory of one
 * rank's part in it. Everything outside the output must be as it was before
 * the call: the input, and guard bytes around and between the buffers.
 *
 *     | guard | send | guard | recv | guard | layout | guard |
 *
 * is one block of device memory. Buffers are as large at all ranks, also where
 * they are not a rank's own; every other such rank passes null. In place, the
 * smaller buffer is the own block of the larger one. What an all_to_all_v sends
 * to whom changes with each load; its blocks lie in reverse order, with gaps.
 *
 * Used as: create, then any number of rounds of load, launch (or a replay of
 * a graph that captured the launch), synchronise, check.
 */
#ifndef RG_VALIDATE_TRIAL_H
#define RG_VALIDATE_TRIAL_H

#include "validate/oracle.h"
#include "validate/suite.h"

enum rg_layout {
    RG_LAYOUT_OUT = 0,  /* two buffers, both aligned */
    RG_LAYOUT_IN,       /* in place */
    RG_LAYOUT_OUT_ODD,  /* both begin one element off an aligned address */
    RG_LAYOUT_IN_ODD,   /* in place, one element off */
    RG_LAYOUT_SKEW,     /* only the input is one element off */
    RG_LAYOUT_ADJACENT, /* the output begins where the input ends */
    RG_LAYOUT_COUNT
};
const char *rg_layout_name(enum rg_layout layout);

struct rg_trial_spec {
    enum rg_dtype dtype;
    enum rg_op op;
    enum rg_oracle_inputs inputs;
    enum rg_layout layout;
    size_t count; /* elements of a block; of all_to_all_v for a pair at most */
    enum rg_collective collective;
    int root;
};

/* A stretch of the output, in order. */
struct rg_trial_part {
    size_t at; /* in the block */
    size_t count;
    int from;     /* a rank, or RG_ORACLE_ALL */
    size_t first; /* index there */
};

struct rg_trial {
    struct rg_suite *suite; /* borrowed, with its context */
    struct rg_trial_spec spec;
    struct rg_oracle oracle; /* its type is that in which data is compared */
    size_t send_at;          /* offsets in the block; in place the same */
    size_t recv_at;
    size_t layout_at;
    size_t total;
    struct rg_trial_part parts[RG_ORACLE_MAX_RANKS];
    int nparts;
    unsigned char *device; /* the block; owned */
    unsigned char *before; /* what it was loaded with; owned */
    unsigned char *after;  /* what was read back; owned */
};

/* RG_OK, RG_ENOMEM, or what rg_malloc returned. */
int rg_trial_create(struct rg_suite *suite, const struct rg_trial_spec *spec,
                    struct rg_trial *trial_out);
void rg_trial_destroy(struct rg_trial *trial); /* accepts a zeroed one */

/* Inputs of the seed into the block, poison everywhere else. */
int rg_trial_load(struct rg_trial *trial, uint64_t seed);
/* The collective, in the stream's order. */
int rg_trial_launch(struct rg_trial *trial, struct rg_comm *comm,
                    struct rg_stream *stream);
/*
 * Reads the block back and compares it. Long outputs are compared in shares,
 * one a rank: the digest in the result shows that all ranks hold the same
 * bits (suite->check_all compares all).
 */
void rg_trial_check(struct rg_trial *trial, struct rg_case_result *result);

/* load, launch, synchronise and check on the suite's own communicator. */
void rg_trial_round(struct rg_trial *trial, uint64_t seed,
                    struct rg_case_result *result);

#endif
