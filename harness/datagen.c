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

static struct rg_pattern pattern_of(const struct rg_data *data)
{
    return (struct rg_pattern){
        .count = data->count,
        .dtype = (int32_t)data->dtype,
        .op = (int32_t)data->op,
        .nranks = data->nranks,
        .iteration = data->iteration,
    };
}

int rg_datagen_fill(struct rg_stream *stream, void *send,
                    const struct rg_data *data)
{
    const struct rg_datagen_kernels kernels = kernels_of_build();
    const struct rg_fill_args args = {send, pattern_of(data), data->rank};

    return rg_kernel_launch(stream, &kernels.fill, 0, &args, sizeof args);
}

int rg_datagen_poison(struct rg_stream *stream, void *recv, size_t bytes)
{
    const struct rg_datagen_kernels kernels = kernels_of_build();
    const struct rg_poison_args args = {recv, bytes,
                                        0x0101010101010101ull * RG_POISON_BYTE};

    return rg_kernel_launch(stream, &kernels.poison, 0, &args, sizeof args);
}

int rg_datagen_warm(struct rg_stream *stream)
{
    const struct rg_datagen_kernels kernels = kernels_of_build();
    const struct rg_fill_args fill = {0};
    const struct rg_poison_args poison = {0};
    const struct rg_check_args check = {0};
    int status =
        rg_kernel_launch(stream, &kernels.fill, 1, &fill, sizeof fill);

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

int rg_checker_all_reduce(struct rg_checker *checker, struct rg_stream *stream,
                          const void *recv, const struct rg_data *data,
                          int guards)
{
    const struct rg_datagen_kernels kernels = kernels_of_build();
    const struct rg_check_args args = {
        .recv = recv,
        .pattern = pattern_of(data),
        .guard_bytes = guards ? RG_GUARD_BYTES : 0,
        .guard_byte = RG_GUARD_BYTE,
        .words = checker->words,
    };

    return rg_kernel_launch(stream, &kernels.check, 0, &args, sizeof args);
}

int rg_checker_read(struct rg_checker *checker, struct rg_finding *finding_out)
{
    struct rg_check_words words;
    int culprit = -1;
    int status;

    status = rg_memcpy(checker->context, &words, checker->words, sizeof words);
    if (status != RG_OK)
        return status;
    *finding_out = (struct rg_finding){
        .wrong = words.wrong,
        .guards = words.guards,
        .kind = words.guards ? RG_MISMATCH_GUARD : RG_MISMATCH_NONE,
        .data = {.count = words.pattern.count,
                 .dtype = (enum rg_dtype)words.pattern.dtype,
                 .op = (enum rg_op)words.pattern.op,
                 .nranks = words.pattern.nranks,
                 .iteration = words.pattern.iteration},
        .index = words.index,
        .expected = words.expected,
        .got = words.got,
    };
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
    default:
        return "unexplained";
    }
}

const char *rg_finding_text(const struct rg_finding *finding, char *text,
                            size_t room)
{
    char cause[64];

    if (finding->kind == RG_MISMATCH_NONE)
        snprintf(text, room, "nothing wrong");
    else if (finding->kind == RG_MISMATCH_GUARD)
        snprintf(text, room, "%" PRIu64 " guard bytes overwritten",
                 finding->guards);
    else {
        if (finding->culprit >= 0)
            snprintf(cause, sizeof cause, "rank %d's contribution is %s",
                     finding->culprit, kind_text(finding->kind));
        else
            snprintf(cause, sizeof cause, "%s", kind_text(finding->kind));
        snprintf(text, room,
                 "%s %s iteration %" PRIu32 " index %" PRIu64 " of %zu: "
                 "expected 0x%" PRIx64 " got 0x%" PRIx64 ": %s",
                 rg_dtype_name(finding->data.dtype),
                 rg_op_name(finding->data.op), finding->data.iteration,
                 finding->index, finding->data.count, finding->expected,
                 finding->got, cause);
    }
    return text;
}
