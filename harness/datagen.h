/*
 * Inputs with a known result, and the check right behind the collective.
 *
 * An input depends on rank, index in the rank's whole buffer, and iteration.
 * Its values are shaped so that the result is exact for every type and
 * operation, in any order of the reduction, for up to 64 ranks: integers take
 * all their bits and wrap, but for and and or differ in a bit a rank; floating
 * sums add the integers 1 to 3; averages have a divisible sum; products
 * multiply signed powers of two; min and max see small integers. Beyond 64
 * ranks f16 and bf16 sums may round. What is only moved takes all its bits,
 * whatever the type.
 *
 * Filling and checking run on the stream, in its order. Neither waits.
 */
#ifndef RG_HARNESS_DATAGEN_H
#define RG_HARNESS_DATAGEN_H

#include "harness/call.h"
#include "runtime/regroup.h"

enum { RG_POISON_BYTE = 0xdb, RG_GUARD_BYTE = 0xa5 };

/* What buffers hold; the same on every rank but for `rank`. */
struct rg_data {
    size_t count; /* elements of a block */
    enum rg_dtype dtype;
    enum rg_op op;
    int rank;
    int nranks;
    uint32_t iteration;
    enum rg_collective collective;
    int root;
    int inplace;   /* both buffers are in that for the output */
    uint64_t seed; /* of an all_to_all_v's counts */
};

/*
 * Runs every kernel of this file once, on nothing. Before the first collective,
 * where ranks may share a device: a first launch may wait for all of it.
 */
int rg_datagen_warm(struct rg_stream *stream);

/* The call on two blocks of rg_buffers; without layout. */
struct rg_call rg_data_call(const struct rg_data *data, void *send, void *recv);
/*
 * Writes this rank's input, and RG_POISON_BYTE over the rest of the output, so
 * that what is not written shows. RG_OK or a launch error.
 */
int rg_datagen_load(struct rg_stream *stream, void *send, void *recv,
                    const struct rg_data *data);

/*
 * Collects what checks find, in device memory; one for any number of checks.
 * Belongs to one rank; reset and read wait for nothing: synchronise first.
 */
struct rg_checker;
int rg_checker_create(struct rg_context *context,
                      struct rg_checker **checker_out);
void rg_checker_destroy(struct rg_checker *checker); /* accepts null */
int rg_checker_reset(struct rg_checker *checker);

/*
 * Launches the check of a result against `data`, and of RG_GUARD_BYTES on both
 * sides of the output: the blocks are those of rg_buffers that were loaded.
 * An output that a rank does not have is to be as it was loaded.
 */
int rg_checker_check(struct rg_checker *checker, struct rg_stream *stream,
                     void *send, void *recv, const struct rg_data *data);

enum rg_mismatch_kind {
    RG_MISMATCH_NONE = 0,
    RG_MISMATCH_VALUE,     /* none of the below explains it */
    RG_MISMATCH_MISSING,   /* `culprit`'s contribution is not in it */
    RG_MISMATCH_DOUBLED,   /* `culprit`'s contribution is in it twice */
    RG_MISMATCH_STALE,     /* `culprit`'s is of the iteration before */
    RG_MISMATCH_STALE_ALL, /* the whole result is of the iteration before */
    RG_MISMATCH_UNWRITTEN, /* still poison */
    RG_MISMATCH_OTHERS,    /* what `culprit` has in that place */
    RG_MISMATCH_TOUCHED,   /* nothing was to be written there */
    RG_MISMATCH_GUARD      /* data is right, a guard byte is not */
};

/* What the checks since the last reset found. */
struct rg_finding {
    uint64_t wrong;             /* elements */
    uint64_t guards;            /* guard bytes overwritten */
    enum rg_mismatch_kind kind; /* of the first wrong element */
    int culprit;                /* rank, or -1 */
    struct rg_data data;        /* which check */
    int block;                  /* whose, or -1: there is one block */
    uint64_t index;             /* in the block */
    uint64_t expected;          /* raw bits, low end */
    uint64_t got;
};
int rg_checker_read(struct rg_checker *checker, struct rg_finding *finding_out);

/*
 * "all_reduce f32 sum iteration 3 index 7 of 9: expected 0x.. got 0x..: rank
 * 2's contribution is missing"; "all_gather f32 iteration 3 block 1 index ..."
 * One line. data.rank, root and inplace are not part of a finding.
 */
const char *rg_finding_text(const struct rg_finding *finding, char *text,
                            size_t room);

#endif
