/*
 * Self-consistency of measured rows: what a library could have had cheaper by
 * doing something else with the same effect. After the performance guidelines
 * of Traeff, Gropp and Thakur (Self-consistent MPI performance requirements,
 * 2007; IEEE TPDS 21(5), 2010).
 *
 *   next-larger  a size is not slower than the next larger one: padding
 *   any-larger   nor than any beyond that one
 *   split        all-reduce is not slower than reduce-scatter and all-gather
 *
 * A violation is beyond noise: the intervals of the medians lie apart, and the
 * medians by GUIDELINE_EFFECT. Rows without an interval are not judged.
 */
#ifndef RG_BENCH_GUIDELINE_H
#define RG_BENCH_GUIDELINE_H

#include <stdint.h>

#include "runtime/types.h"

#define GUIDELINE_EFFECT 0.02

struct guideline_row {
    int sweep; /* rows of one sweep are compared with each other */
    enum rg_collective collective;
    enum rg_dtype dtype;
    enum rg_op op;
    int inplace;
    uint64_t bytes; /* of a rank's buffer; in a sweep ascending */
    double p50_us;
    double ci_lo_us, ci_hi_us; /* NaN: too few samples */
};

enum guideline_rule {
    GUIDELINE_NEXT_LARGER = 0,
    GUIDELINE_ANY_LARGER,
    GUIDELINE_SPLIT,
    GUIDELINE_RULES
};
const char *guideline_name(enum guideline_rule rule);

/* What the row could have been instead. */
struct guideline_violation {
    enum guideline_rule rule;
    const struct guideline_row *row;
    const struct guideline_row *other; /* the larger size; split: the
                                          reduce-scatter */
    double other_us;                   /* split: both parts */
    double factor;                     /* row's median / that */
};

/*
 * Calls violated(arg, violation) for each. Returns how many rows the rule could
 * be applied to: 0 is "not measured".
 */
int guideline_check(
    const struct guideline_row *rows, int n, enum guideline_rule rule,
    void (*violated)(void *arg, const struct guideline_violation *), void *arg);

#endif
