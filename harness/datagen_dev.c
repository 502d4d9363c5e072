/*
 * Fill and check kernels: one source for the C compiler and for `nvcc -x cu`.
 *
 * Every value is a function of (index, rank, iteration); a check recomputes
 * all ranks' inputs of its element and reduces them. datagen.h says why that
 * is exact.
 */
#include "harness/datagen_dev.h"

#include "harness/datagen.h"
#include "runtime/device/dev.h"
#include "runtime/device/num.h"
#include "runtime/device/word.h"

/* ---- a thread's share --------------------------------------------------- */

struct span {
    uint64_t begin;
    uint64_t end;
    uint64_t step;
};

/* Neighbouring threads of a GPU take neighbouring elements; a host thread
 * takes a stretch of its own. */
RG_FN struct span span_of(uint64_t count, uint64_t me, uint64_t all)
{
    struct span span;

    if (RG_ON_CUDA) {
        span.begin = me;
        span.end = count;
        span.step = all;
    } else {
        span.begin = count / all * me + (me < count % all ? me : count % all);
        span.end = span.begin + count / all + (me < count % all);
        span.step = 1;
    }
    return span;
}

/* ---- inputs ------------------------------------------------------------- */

RG_FN uint32_t mix(uint64_t index, uint32_t rank, uint32_t iteration)
{
    uint32_t x = ((uint32_t)index ^ (uint32_t)(index >> 32)) * 0x9e3779b1u;

    x ^= (rank + 1) * 0x7feb352du;
    x += (iteration + 1) * 0x6c8e9cf5u;
    x = (x ^ x >> 15) * 0x846ca68bu;
    x = (x ^ x >> 13) * 0x58f38dedu;
    return x ^ x >> 16;
}

/*
 * All bits used; products of odd factors lose no information. Of an element
 * that is to be combined by and, a rank clears one bit, and sets one for or, so
 * that what others do seldom hides it.
 */
RG_FN uint64_t integer_input(enum rg_op op, int rank, uint64_t index,
                             uint32_t iteration, uint32_t bits)
{
    const uint32_t any = mix(index, (uint32_t)rank, iteration);
    const uint64_t value = any * 0x9e3779b97f4a7c15ull;

    switch (op) {
    case RG_prod:
        return value | 1;
    case RG_band:
        return ~(1ull << any % bits);
    case RG_bor:
        return 1ull << any % bits;
    default:
        return value;
    }
}

/* The same at all ranks: which one comes first for this element. */
RG_FN uint32_t turn(uint64_t index, uint32_t iteration)
{
    return mix(index, 0xfffffffeu, iteration);
}

/* 2 or 3, plus 1, minus 1 in pairs of neighbours, so that the mean is whole. */
RG_FN float average_input(int rank, int nranks, uint64_t index,
                          uint32_t iteration)
{
    const uint32_t first = turn(index, iteration);
    const uint32_t n = (uint32_t)nranks;
    const uint32_t place = ((first >> 1) % n + (uint32_t)rank) % n;
    const float mean = first & 1 ? 3.0f : 2.0f;

    if (place % 2)
        return mean - 1.0f;
    return place + 1 < n ? mean + 1.0f : mean;
}

/* 2 and 1/2 alternate at eight ranks, the rest is 1; signs vary. Partial
 * products in any order stay within 2^-4 .. 2^4. */
RG_FN float product_input(int rank, int nranks, uint64_t index,
                          uint32_t iteration)
{
    const uint32_t n = (uint32_t)nranks;
    const uint32_t place = (turn(index, iteration) % n + (uint32_t)rank) % n;
    const float size = place >= 8 ? 1.0f : place % 2 ? 0.5f : 2.0f;

    return mix(index, (uint32_t)rank, iteration) & 1 ? -size : size;
}

RG_FN float real_input(enum rg_op op, int rank, int nranks, uint64_t index,
                       uint32_t iteration)
{
    const uint32_t any = mix(index, (uint32_t)rank, iteration);

    switch (op) {
    case RG_sum:
        return (float)(1 + any % 3);
    case RG_avg:
        return average_input(rank, nranks, index, iteration);
    case RG_prod:
        return product_input(rank, nranks, index, iteration);
    default:
        return (float)(any % 201) - 100.0f;
    }
}

/* What may be wrong with one rank's contribution to a result. */
enum fault { FAULT_NONE, FAULT_MISSING, FAULT_DOUBLED, FAULT_STALE };

#define RG_X_INTEGER(name, storage, accumulator, wide)                         \
    RG_FN accumulator input_##name(const struct rg_pattern *p, int rank,       \
                                   uint64_t index, uint32_t iteration)         \
    {                                                                          \
        return (accumulator)integer_input((enum rg_op)p->op, rank, index,      \
                                          iteration, 8 * sizeof(storage));     \
    }
#define RG_X_REAL(name, storage, accumulator, wide)                            \
    RG_FN accumulator input_##name(const struct rg_pattern *p, int rank,       \
                                   uint64_t index, uint32_t iteration)         \
    {                                                                          \
        return (accumulator)real_input((enum rg_op)p->op, rank, p->nranks,     \
                                       index, iteration);                      \
    }
RG_NUM_INT_LIST(RG_X_INTEGER)
RG_NUM_FLOAT_LIST(RG_X_REAL)

#define POISON_WORD (0x0101010101010101ull * RG_POISON_BYTE)

/* Whose element i of the pattern is, if it is one rank's; and which of its. */
RG_FN int rank_of(const struct rg_pattern *p, uint64_t i)
{
    return p->from == RG_FROM_EACH ? (int)(i / p->block) : p->from;
}

RG_FN uint64_t index_of(const struct rg_pattern *p, uint64_t i)
{
    return p->first + (p->from == RG_FROM_EACH ? i % p->block : i);
}

#define RG_X(name, storage, accumulator, wide)                                 \
    RG_FN storage result_##name(const struct rg_pattern *p, uint64_t index,    \
                                enum fault fault, int culprit)                 \
    {                                                                          \
        const enum rg_op op = (enum rg_op)p->op;                               \
        accumulator total = 0;                                                 \
        int terms = 0;                                                         \
                                                                               \
        for (int r = 0; r < p->nranks; r++) {                                  \
            const int odd = r == culprit && fault != FAULT_NONE;               \
            const uint32_t iteration =                                         \
                p->iteration - (odd && fault == FAULT_STALE);                  \
            const accumulator term = input_##name(p, r, index, iteration);     \
                                                                               \
            if (odd && fault == FAULT_MISSING)                                 \
                continue;                                                      \
            total = terms++ ? rg_combine_##name(op, total, term) : term;       \
            if (odd && fault == FAULT_DOUBLED)                                 \
                total = rg_combine_##name(op, total, term);                    \
        }                                                                      \
        return rg_store_##name(rg_finish_##name(op, total, p->nranks));        \
    }                                                                          \
    RG_FN uint64_t bits_##name(storage value)                                  \
    {                                                                          \
        uint64_t bits = 0;                                                     \
        __builtin_memcpy(&bits, &value, sizeof value);                         \
        return bits;                                                           \
    }                                                                          \
    /* Element i of the pattern. */                                            \
    RG_FN uint64_t expected_##name(const struct rg_pattern *p, uint64_t i,     \
                                   enum fault fault, int culprit)              \
    {                                                                          \
        const int rank = rank_of(p, i);                                        \
        const uint32_t stale = fault == FAULT_STALE && culprit == rank;        \
                                                                               \
        if (p->from == RG_FROM_NOBODY)                                         \
            return POISON_WORD >> (64 - 8 * sizeof(storage));                  \
        if (p->from == RG_FROM_ALL)                                            \
            return bits_##name(                                                \
                result_##name(p, p->first + i, fault, culprit));               \
        return bits_##name(rg_store_##name(                                    \
            input_##name(p, rank, index_of(p, i), p->iteration - stale)));     \
    }
RG_NUM_INT_LIST(RG_X)
RG_NUM_FLOAT_LIST(RG_X)
#undef RG_X

/* ---- kernels ------------------------------------------------------------ */

#define RG_X(name, storage, accumulator, wide)                                 \
    RG_FN_COLD void fill_##name(const struct rg_fill_args *args,               \
                                struct span span)                              \
    {                                                                          \
        storage *out = (storage *)args->out;                                   \
                                                                               \
        for (uint64_t i = span.begin; i < span.end; i += span.step)            \
            out[i] = rg_store_##name(input_##name(&args->pattern, args->rank,  \
                                                  args->pattern.first + i,     \
                                                  args->pattern.iteration));   \
    }
RG_NUM_INT_LIST(RG_X)
RG_NUM_FLOAT_LIST(RG_X)
#undef RG_X

RG_FN void fill(const struct rg_fill_args *args, uint64_t me, uint64_t all)
{
    const struct span span = span_of(args->pattern.count, me, all);

    switch (args->pattern.as) {
#define RG_X(name, bytes)                                                      \
    case RG_##name:                                                            \
        fill_##name(args, span);                                               \
        break;
        RG_DTYPE_REDUCE_LIST(RG_X)
#undef RG_X
    }
}

RG_FN void poison(const struct rg_poison_args *args, uint64_t me, uint64_t all)
{
    const int whole = ((uintptr_t)args->out | args->bytes) % 8 == 0;
    const struct span span =
        span_of(whole ? args->bytes / 8 : args->bytes, me, all);

    for (uint64_t i = span.begin; i < span.end; i += span.step)
        if (whole)
            ((uint64_t *)args->out)[i] = args->word;
        else
            ((uint8_t *)args->out)[i] = (uint8_t)args->word;
}

/* A thread's own count, and its first wrong element. */
struct tally {
    uint64_t wrong;
    uint64_t index;
    uint64_t expected;
    uint64_t got;
};

#define RG_X(name, storage, accumulator, wide)                                 \
    RG_FN_COLD struct tally check_##name(const struct rg_check_args *args,     \
                                         struct span span)                     \
    {                                                                          \
        const storage *recv = (const storage *)args->recv;                     \
        struct tally tally = {0, 0, 0, 0};                                     \
                                                                               \
        for (uint64_t i = span.begin; i < span.end; i += span.step) {          \
            const uint64_t expected =                                          \
                expected_##name(&args->pattern, i, FAULT_NONE, 0);             \
            const uint64_t got = bits_##name(recv[i]);                         \
                                                                               \
            if (got == expected)                                               \
                continue;                                                      \
            if (tally.wrong++ == 0) {                                          \
                tally.index = i;                                               \
                tally.expected = expected;                                     \
                tally.got = got;                                               \
            }                                                                  \
        }                                                                      \
        return tally;                                                          \
    }
RG_NUM_INT_LIST(RG_X)
RG_NUM_FLOAT_LIST(RG_X)
#undef RG_X

RG_FN uint64_t check_guards(const struct rg_check_args *args, uint64_t me,
                            uint64_t all)
{
    const uint64_t side = args->guard_bytes;
    const uint8_t *data = (const uint8_t *)args->guarded;
    const uint8_t *behind = data + args->guarded_bytes;
    const struct span span = span_of(2 * side, me, all);
    uint64_t wrong = 0;

    for (uint64_t i = span.begin; i < span.end; i += span.step)
        wrong += (i < side ? *(data - 1 - i) : behind[i - side]) !=
                 (uint8_t)args->guard_byte;
    return wrong;
}

RG_FN void check(const struct rg_check_args *args, uint64_t me, uint64_t all)
{
    const struct span span = span_of(args->pattern.count, me, all);
    struct rg_check_words *words = args->words;
    const uint64_t guards = check_guards(args, me, all);
    struct tally tally = {0, 0, 0, 0};

    switch (args->pattern.as) {
#define RG_X(name, bytes)                                                      \
    case RG_##name:                                                            \
        tally = check_##name(args, span);                                      \
        break;
        RG_DTYPE_REDUCE_LIST(RG_X)
#undef RG_X
    }
    if (guards)
        rg_add_relaxed_dev(&words->guards, guards);
    if (tally.wrong && rg_add_relaxed_dev(&words->wrong, tally.wrong) == 0) {
        words->pattern = args->pattern;
        words->index = tally.index;
        words->expected = tally.expected;
        words->got = tally.got;
    }
}

/* ---- entries ------------------------------------------------------------ */

#if RG_ON_CUDA

#define RG_ENTRY(name)                                                         \
    static __global__ void name##_entry(const struct rg_##name##_args args)    \
    {                                                                          \
        name(&args, (uint64_t)blockIdx.x *blockDim.x + threadIdx.x,            \
             (uint64_t)gridDim.x * blockDim.x);                                \
    }
RG_ENTRY(fill)
RG_ENTRY(poison)
RG_ENTRY(check)

void rg_datagen_kernels_cuda(struct rg_datagen_kernels *kernels)
{
    kernels->fill.cuda = (const void *)fill_entry;
    kernels->poison.cuda = (const void *)poison_entry;
    kernels->check.cuda = (const void *)check_entry;
}

#else

#define RG_ENTRY(name)                                                         \
    static void name##_entry(const void *args, int team, int teams)            \
    {                                                                          \
        name((const struct rg_##name##_args *)args, (uint64_t)team,            \
             (uint64_t)teams);                                                 \
    }
RG_ENTRY(fill)
RG_ENTRY(poison)
RG_ENTRY(check)

void rg_datagen_kernels_emu(struct rg_datagen_kernels *kernels)
{
    kernels->fill.emu = fill_entry;
    kernels->poison.emu = poison_entry;
    kernels->check.emu = check_entry;
}

/* ---- explanation, on the host ------------------------------------------- */

RG_FN uint64_t element_bytes(int32_t dtype)
{
    switch (dtype) {
#define RG_X(name, bytes)                                                      \
    case RG_##name:                                                            \
        return bytes;
        RG_DTYPE_LIST(RG_X)
#undef RG_X
    }
    return 0;
}

/* What the wrong element would be if that were wrong with it. */
static uint64_t expected_bits(const struct rg_pattern *p, uint64_t i,
                              enum fault fault, int culprit)
{
    switch (p->as) {
#define RG_X(name, bytes)                                                      \
    case RG_##name:                                                            \
        return expected_##name(p, i, fault, culprit);
        RG_DTYPE_REDUCE_LIST(RG_X)
#undef RG_X
    }
    return 0;
}

static int explain_rank(const struct rg_check_words *words, int rank)
{
    static const struct {
        enum fault fault;
        int kind;
    } causes[] = {{FAULT_MISSING, RG_MISMATCH_MISSING},
                  {FAULT_DOUBLED, RG_MISMATCH_DOUBLED},
                  {FAULT_STALE, RG_MISMATCH_STALE}};

    for (int i = 0; i < 3; i++) {
        if (causes[i].fault == FAULT_MISSING && words->pattern.nranks == 1)
            continue;
        if (words->got ==
            expected_bits(&words->pattern, words->index, causes[i].fault, rank))
            return causes[i].kind;
    }
    return RG_MISMATCH_NONE;
}

static int explain_combined(const struct rg_check_words *words,
                            int *culprit_out)
{
    struct rg_pattern before = words->pattern;

    before.iteration--;
    if (words->got == expected_bits(&before, words->index, FAULT_NONE, 0))
        return RG_MISMATCH_STALE_ALL;
    for (int r = 0; r < words->pattern.nranks; r++) {
        const int kind = explain_rank(words, r);

        if (kind != RG_MISMATCH_NONE) {
            *culprit_out = r;
            return kind;
        }
    }
    return RG_MISMATCH_VALUE;
}

/* Of what one rank has sent. */
static int explain_moved(const struct rg_check_words *words, int *culprit_out)
{
    const int rank = rank_of(&words->pattern, words->index);
    struct rg_pattern other = words->pattern;

    if (words->got ==
        expected_bits(&words->pattern, words->index, FAULT_STALE, rank)) {
        *culprit_out = rank;
        return RG_MISMATCH_STALE;
    }
    other.first = index_of(&words->pattern, words->index);
    /* A byte says little of where it comes from. */
    for (other.from = 0; other.from < other.nranks; other.from++)
        if (element_bytes(other.as) > 1 &&
            words->got == expected_bits(&other, 0, FAULT_NONE, 0)) {
            *culprit_out = other.from;
            return RG_MISMATCH_OTHERS;
        }
    return RG_MISMATCH_VALUE;
}

int rg_datagen_explain(const struct rg_check_words *words, int *culprit_out)
{
    const uint64_t bits = 8 * element_bytes(words->pattern.as);

    *culprit_out = -1;
    if (words->pattern.from == RG_FROM_NOBODY)
        return RG_MISMATCH_TOUCHED;
    if (words->got == POISON_WORD >> (64 - bits))
        return RG_MISMATCH_UNWRITTEN;
    return words->pattern.from == RG_FROM_ALL
               ? explain_combined(words, culprit_out)
               : explain_moved(words, culprit_out);
}

#endif
