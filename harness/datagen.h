/*
 * Inputs with a known result, and the check right behind the collective.
 *
 * An input depends on rank, index and iteration. Its values are shaped so that
 * the result is exact for every type and operation, in any order of the
 * reduction, for up to 64 ranks: integers take all their bits and wrap;
 * floating sums add the integers 1 to 3; averages have a divisible sum;
 * products multiply signed powers of two; min and max see small integers.
 * Beyond 64 ranks f16 and bf16 sums may round.
 *
 * Filling and checking run on the stream, in its order. Neither waits.
 */
#ifndef RG_HARNESS_DATAGEN_H
#define RG_HARNESS_DATAGEN_H

#include "runtime/regroup.h"

enum { RG_POISON_BYTE = 0xdb, RG_GUARD_BYTE = 0xa5 };

/* What a buffer holds; the same on every rank but for `rank`. */
struct rg_data {
    size_t count;
    enum rg_dtype dtype;
    enum rg_op op;
    int rank;
    int nranks;
    uint32_t iteration;
};

/*
 * Runs every kernel of this file once, on nothing. Before the first collective,
 * where ranks may share a device: a first launch may wait for all of it.
 */
int rg_datagen_warm(struct rg_stream *stream);

/* Writes this rank's input to `send`. RG_OK or a launch error. */
int rg_datagen_fill(struct rg_stream *stream, void *send,
                    const struct rg_data *data);
/* Writes RG_POISON_BYTE over the output, so that an unwritten one shows. */
int rg_datagen_poison(struct rg_stream *stream, void *recv, size_t bytes);

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
 * Launches the check of an all-reduce result against `data`, and of
 * RG_GUARD_BYTES on both sides of it when `guards` is not 0 (the block must
 * come from rg_buffers).
 */
int rg_checker_all_reduce(struct rg_checker *checker, struct rg_stream *stream,
                          const void *recv, const struct rg_data *data,
                          int guards);

enum rg_mismatch_kind {
    RG_MISMATCH_NONE = 0,
    RG_MISMATCH_VALUE,     /* none of the below explains it */
    RG_MISMATCH_MISSING,   /* `culprit`'s contribution is not in it */
    RG_MISMATCH_DOUBLED,   /* `culprit`'s contribution is in it twice */
    RG_MISMATCH_STALE,     /* `culprit`'s is of the iteration before */
    RG_MISMATCH_STALE_ALL, /* the whole result is of the iteration before */
    RG_MISMATCH_UNWRITTEN, /* still poison */
    RG_MISMATCH_GUARD      /* data is right, a guard byte is not */
};

/* What the checks since the last reset found. */
struct rg_finding {
    uint64_t wrong;             /* elements */
    uint64_t guards;            /* guard bytes overwritten */
    enum rg_mismatch_kind kind; /* of the first wrong element */
    int culprit;                /* rank, or -1 */
    struct rg_data data;        /* which check */
    uint64_t index;
    uint64_t expected; /* raw bits, low end */
    uint64_t got;
};
int rg_checker_read(struct rg_checker *checker, struct rg_finding *finding_out);

/*
 * "f32 sum iteration 3 index 7 of 9: expected 0x.. got 0x..: rank 2's
 * contribution is missing"; one line. data.rank is not part of a finding.
 */
const char *rg_finding_text(const struct rg_finding *finding, char *text,
                            size_t room);

#endif
