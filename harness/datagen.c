#include "harness/datagen.h"

#include <config.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/buffers.h"
#include "harness/datagen_dev.h"

struct rg_checker {
    struct rg_context *context;   /* borrowed */
    struct rg_check_words *words; /* device memory, owned */
};

static struct rg_datagen_kernels kernels_of_build(void)
{
    struct rg_datagen_kernels kernels = {
        {NULL, NULL}, {NULL, NULL}, {NULL, NULL}};

#define RG_X(device) rg_datagen_kernels_##device(&kernels);
    RG_BUILT_DEVICE_LIST(RG_X)
#undef RG_X
    return kernels;
}

/* ---- where what lies ---------------------------------------------------- */

/* As which type elements are made: what is only moved is but bits. */
static enum rg_dtype made_as(const struct rg_data *data)
{
    if (rg_collective_reduces(data->collective))
        return data->dtype;
    switch (rg_dtype_size(data->dtype)) {
    case 1:
        return RG_u8;
    case 2:
        return RG_u16;
    case 4:
        return RG_u32;
    default:
        return RG_u64;
    }
}

static struct rg_pattern pattern_of(const struct rg_data *data)
{
    return (struct rg_pattern){
        .count = data->count,
        .block = data->count ? data->count : 1,
        .from = RG_FROM_ALL,
        .as = (int32_t)made_as(data),
        .op = (int32_t)(rg_collective_reduces(data->collective) ? data->op
                                                                : RG_sum),
        .nranks = data->nranks,
        .iteration = data->iteration,
        .dtype = (int32_t)data->dtype,
        .collective = (int32_t)data->collective,
        .number = -1,
    };
}

static struct rg_spread spread_of(const struct rg_data *data)
{
    return (struct rg_spread){data->seed, data->count, data->nranks,
                              data->rank};
}

static int at_root(const struct rg_data *data)
{
    return !rg_collective_rooted(data->collective) || data->root == data->rank;
}

static enum rg_extent sends(const struct rg_data *data)
{
    return rg_call_sends(data->collective, at_root(data));
}

static enum rg_extent receives(const struct rg_data *data)
{
    return rg_call_receives(data->collective, at_root(data));
}

struct rg_call rg_data_call(const struct rg_data *data, void *send, void *recv)
{
    const size_t size = rg_dtype_size(data->dtype);
    char *const from = data->inplace ? recv : send, *const to = recv;
    const size_t from_at = rg_call_send_offset(data->collective, data->count,
                                               data->rank),
                 to_at = rg_call_recv_offset(data->collective, data->count,
                                             data->rank);

    return (struct rg_call){
        .collective = data->collective,
        .send = from + (data->inplace ? from_at * size : 0),
        .recv = to + (data->inplace ? to_at * size : 0),
        .count = data->count,
        .dtype = data->dtype,
        .op = data->op,
        .root = data->root,
    };
}

/* Bytes of the block of rg_buffers that the output is in. */
static size_t output_bytes(const struct rg_data *data)
{
    const struct rg_spread spread = spread_of(data);
    const size_t size = rg_dtype_size(data->dtype);
    /* Also where it is not this rank's. */
    const enum rg_extent extent = rg_call_receives(data->collective, 1);

    if (data->collective == RG_COLL_all_to_all_v)
        return size * rg_spread_received(&spread, data->nranks, data->rank);
    if (data->inplace)
        return size * data->count *
               (size_t)rg_call_blocks(data->collective, data->nranks);
    return size * data->count *
           (extent == RG_EXTENT_BLOCKS ? (size_t)data->nranks : extent);
}

/* ---- inputs ------------------------------------------------------------- */

static int fill(struct rg_stream *stream, void *out, const struct rg_data *data,
                const struct rg_pattern *pattern)
{
    const struct rg_datagen_kernels kernels = kernels_of_build();
    const struct rg_fill_args args = {out, *pattern, data->rank};

    return rg_kernel_launch(stream, &kernels.fill, 0, &args, sizeof args);
}

/* What goes to a rank has its indices, however much that is. */
static int fill_v(struct rg_stream *stream, char *out,
                  const struct rg_data *data)
{
    const struct rg_spread spread = spread_of(data);
    struct rg_pattern pattern = pattern_of(data);
    int status = RG_OK;

    for (int to = 0; status == RG_OK && to < data->nranks; to++) {
        pattern.count = rg_spread_count(&spread, data->rank, to);
        pattern.first = (uint64_t)to * data->count;
        if (pattern.count)
            status = fill(stream,
                          out + rg_dtype_size(data->dtype) *
                                    rg_spread_sent(&spread, data->rank, to),
                          data, &pattern);
    }
    return status;
}

static int fill_input(struct rg_stream *stream, void *out,
                      const struct rg_data *data)
{
    struct rg_pattern pattern = pattern_of(data);

    if (data->collective == RG_COLL_all_to_all_v)
        return fill_v(stream, out, data);
    if (sends(data) == RG_EXTENT_BLOCKS)
        pattern.count *= (uint64_t)data->nranks;
    return sends(data) == RG_EXTENT_NOTHING ? RG_OK
                                            : fill(stream, out, data, &pattern);
}

static int poison(struct rg_stream *stream, void *recv, size_t bytes)
{
    const struct rg_datagen_kernels kernels = kernels_of_build();
    const struct rg_poison_args args = {recv, bytes,
                                        0x0101010101010101ull * RG_POISON_BYTE};

    return rg_kernel_launch(stream, &kernels.poison, 0, &args, sizeof args);
}

int rg_datagen_load(struct rg_stream *stream, void *send, void *recv,
                    const struct rg_data *data)
{
    const struct rg_call call = rg_data_call(data, send, recv);
    const size_t bytes = output_bytes(data);
    int status = RG_OK;

    if (bytes && !(data->inplace && sends(data) == receives(data)))
        status = poison(stream, recv, bytes);
    return status == RG_OK ? fill_input(stream, (void *)call.send, data)
                           : status;
}

int rg_datagen_warm(struct rg_stream *stream)
{
    const struct rg_datagen_kernels kernels = kernels_of_build();
    const struct rg_fill_args fill = {0};
    const struct rg_poison_args poison = {0};
    const struct rg_check_args check = {0};
    int status = rg_kernel_launch(stream, &kernels.fill, 1, &fill, sizeof fill);

    if (status == RG_OK)
        status = rg_kernel_launch(stream, &kernels.poison, 1, &poison,
                                  sizeof poison);
    if (status == RG_OK)
        status =
            rg_kernel_launch(stream, &kernels.check, 1, &check, sizeof check);
    return status == RG_OK ? rg_stream_synchronize(stream) : status;
}

int rg_checker_create(struct rg_context *context,
                      struct rg_checker **checker_out)
{
    struct rg_checker *checker = calloc(1, sizeof *checker);
    void *words = NULL;
    int status;

    if (!checker)
        return RG_ENOMEM;
    checker->context = context;
    status = rg_malloc(context, sizeof *checker->words, &words);
    if (status != RG_OK)
        goto error;
    checker->words = words;
    status = rg_checker_reset(checker);
    if (status != RG_OK)
        goto error;
    *checker_out = checker;
    return RG_OK;
error:
    rg_checker_destroy(checker);
    return status;
}

void rg_checker_destroy(struct rg_checker *checker)
{
    if (!checker)
        return;
    if (checker->words)
        rg_free(checker->context, checker->words);
    free(checker);
}

int rg_checker_reset(struct rg_checker *checker)
{
    return rg_memset(checker->context, checker->words, 0,
                     sizeof *checker->words);
}

/* ---- results ------------------------------------------------------------ */

/* What the output is, if it is one of equal blocks, or of one. */
static struct rg_pattern wanted(const struct rg_data *data)
{
    struct rg_pattern pattern = pattern_of(data);
    const uint64_t own = (uint64_t)data->rank * data->count;

    switch (data->collective) {
    case RG_COLL_all_gather:
    case RG_COLL_gather:
        pattern.from = RG_FROM_EACH;
        pattern.count *= (uint64_t)data->nranks;
        break;
    case RG_COLL_all_to_all:
        pattern.from = RG_FROM_EACH;
        pattern.count *= (uint64_t)data->nranks;
        pattern.first = own;
        break;
    case RG_COLL_reduce_scatter:
        pattern.first = own;
        break;
    case RG_COLL_scatter:
        pattern.from = data->root;
        pattern.first = own;
        break;
    case RG_COLL_broadcast:
        pattern.from = data->root;
        break;
    case RG_COLL_sendrecv:
        pattern.from = (data->rank + data->nranks - 1) % data->nranks;
        break;
    default:
        break;
    }
    return pattern;
}

static int check(struct rg_checker *checker, struct rg_stream *stream,
                 const struct rg_data *data, const void *at, const void *recv,
                 const struct rg_pattern *pattern, int guards)
{
    const struct rg_datagen_kernels kernels = kernels_of_build();
    const struct rg_check_args args = {
        .recv = at,
        .pattern = *pattern,
        .guarded = recv,
        .guarded_bytes = output_bytes(data),
        .guard_bytes = guards ? RG_GUARD_BYTES : 0,
        .guard_byte = RG_GUARD_BYTE,
        .words = checker->words,
    };

    return rg_kernel_launch(stream, &kernels.check, 0, &args, sizeof args);
}

static int check_v(struct rg_checker *checker, struct rg_stream *stream,
                   const char *recv, const struct rg_data *data)
{
    const struct rg_spread spread = spread_of(data);
    struct rg_pattern pattern = pattern_of(data);
    int status = RG_OK;

    pattern.first = (uint64_t)data->rank * data->count;
    for (int from = 0; status == RG_OK && from < data->nranks; from++) {
        pattern.from = pattern.number = from;
        pattern.count = rg_spread_count(&spread, from, data->rank);
        status = check(checker, stream, data,
                       recv + rg_dtype_size(data->dtype) *
                                  rg_spread_received(&spread, from, data->rank),
                       recv, &pattern, from == 0);
    }
    return status;
}

/* This rank has no output: what it gave is there still, or poison. */
static int check_untouched(struct rg_checker *checker, struct rg_stream *stream,
                           const struct rg_call *call, const void *recv,
                           const struct rg_data *data)
{
    struct rg_pattern pattern = pattern_of(data);
    const void *at = recv;

    if (data->inplace) {
        pattern.from = data->rank;
        at = call->send;
    } else {
        pattern.from = RG_FROM_NOBODY;
        pattern.count = output_bytes(data) / rg_dtype_size(data->dtype);
    }
    return check(checker, stream, data, at, recv, &pattern, 1);
}

/*
 * In place, who is not the root has room for all blocks, and only the own one
 * is in use.
 */
static int check_around(struct rg_checker *checker, struct rg_stream *stream,
                        const char *recv, const struct rg_data *data)
{
    const size_t block = data->count * rg_dtype_size(data->dtype);
    struct rg_pattern pattern = pattern_of(data);
    int status;

    if (!data->inplace || at_root(data) ||
        rg_call_blocks(data->collective, data->nranks) < 2)
        return RG_OK;
    pattern.from = RG_FROM_NOBODY;
    pattern.count = (uint64_t)data->rank * data->count;
    status = check(checker, stream, data, recv, recv, &pattern, 0);
    pattern.count = (uint64_t)(data->nranks - 1 - data->rank) * data->count;
    if (status == RG_OK)
        status =
            check(checker, stream, data,
                  recv + (size_t)(data->rank + 1) * block, recv, &pattern, 0);
    return status;
}

int rg_checker_check(struct rg_checker *checker, struct rg_stream *stream,
                     void *send, void *recv, const struct rg_data *data)
{
    const struct rg_call call = rg_data_call(data, send, recv);
    const struct rg_pattern pattern = wanted(data);
    int status;

    if (data->collective == RG_COLL_barrier)
        return RG_OK;
    if (data->collective == RG_COLL_all_to_all_v)
        return check_v(checker, stream, recv, data);
    status = check_around(checker, stream, recv, data);
    if (status != RG_OK)
        return status;
    if (receives(data) == RG_EXTENT_NOTHING)
        return check_untouched(checker, stream, &call, recv, data);
    return check(checker, stream, data, call.recv, recv, &pattern, 1);
}

static struct rg_finding finding_of(const struct rg_check_words *words)
{
    const struct rg_pattern *p = &words->pattern;
    const int each = p->from == RG_FROM_EACH;

    return (struct rg_finding){
        .wrong = words->wrong,
        .guards = words->guards,
        .kind = words->guards ? RG_MISMATCH_GUARD : RG_MISMATCH_NONE,
        .data = {.count = each ? p->block : p->count,
                 .dtype = (enum rg_dtype)p->dtype,
                 .op = (enum rg_op)p->op,
                 .nranks = p->nranks,
                 .iteration = p->iteration,
                 .collective = (enum rg_collective)p->collective},
        .block = each ? (int)(words->index / p->block) : p->number,
        .index = each ? words->index % p->block : words->index,
        .expected = words->expected,
        .got = words->got,
    };
}

int rg_checker_read(struct rg_checker *checker, struct rg_finding *finding_out)
{
    struct rg_check_words words;
    int culprit = -1;
    int status;

    status = rg_memcpy(checker->context, &words, checker->words, sizeof words);
    if (status != RG_OK)
        return status;
    *finding_out = finding_of(&words);
    if (words.wrong)
        finding_out->kind =
            (enum rg_mismatch_kind)rg_datagen_explain(&words, &culprit);
    finding_out->culprit = culprit;
    return RG_OK;
}

static const char *kind_text(enum rg_mismatch_kind kind)
{
    switch (kind) {
    case RG_MISMATCH_MISSING:
        return "missing";
    case RG_MISMATCH_DOUBLED:
        return "doubled";
    case RG_MISMATCH_STALE:
        return "stale";
    case RG_MISMATCH_STALE_ALL:
        return "the whole result is stale";
    case RG_MISMATCH_UNWRITTEN:
        return "never written";
    case RG_MISMATCH_TOUCHED:
        return "nothing was to be written there";
    default:
        return "unexplained";
    }
}

static void cause_text(const struct rg_finding *finding, char *text,
                       size_t room)
{
    if (finding->kind == RG_MISMATCH_OTHERS)
        snprintf(text, room, "that is rank %d's", finding->culprit);
    else if (finding->culprit >= 0)
        snprintf(text, room, "rank %d's contribution is %s", finding->culprit,
                 kind_text(finding->kind));
    else
        snprintf(text, room, "%s", kind_text(finding->kind));
}

const char *rg_finding_text(const struct rg_finding *finding, char *text,
                            size_t room)
{
    const struct rg_data *data = &finding->data;
    char cause[80], op[16] = "", block[24] = "";

    if (finding->kind == RG_MISMATCH_NONE) {
        snprintf(text, room, "nothing wrong");
        return text;
    }
    if (finding->kind == RG_MISMATCH_GUARD) {
        snprintf(text, room, "%" PRIu64 " guard bytes overwritten",
                 finding->guards);
        return text;
    }
    if (rg_collective_reduces(data->collective))
        snprintf(op, sizeof op, " %s", rg_op_name(data->op));
    if (finding->block >= 0)
        snprintf(block, sizeof block, " block %d", finding->block);
    cause_text(finding, cause, sizeof cause);
    snprintf(text, room,
             "%s %s%s iteration %" PRIu32 "%s index %" PRIu64 " of %zu: "
             "expected 0x%" PRIx64 " got 0x%" PRIx64 ": %s",
             rg_collective_name(data->collective), rg_dtype_name(data->dtype),
             op, data->iteration, block, finding->index, data->count,
             finding->expected, finding->got, cause);
    return text;
}
