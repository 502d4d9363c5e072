/*
 * LL128: payload that carries its own arrival, for 8 bytes in 128.
 *
 * A batch is 8 lines of 128 bytes with 960 bytes of payload, sent and awaited
 * by one worker: a warp on CUDA, a thread on the emulated device. On CUDA each
 * line ends in a tag. Its eight lanes store it by one instruction, and a line
 * that is stored so to memory reached by NVLink, or of the same device, arrives
 * whole: whoever sees the tag sees the line. The PTX memory model does not
 * promise that. NCCL's protocol of this name rests on the same; a line that
 * does not would be wrong data to whoever checks results.
 * The emulated device has one tag a batch, released and acquired.
 *
 * Tags never come round, so nothing is cleaned but before an epoch.
 */
#ifndef RG_DEVICE_LL128_H
#define RG_DEVICE_LL128_H

#include "runtime/device/reduce.h"
#include "runtime/device/transfer.h"

enum {
    RG_LL128_BYTES = 1024,  /* of a batch's place */
    RG_LL128_PAYLOAD = 960, /* of a batch */
    RG_LL128_ROW = RG_LL128_BYTES / 2,
#if RG_ON_CUDA
    RG_LL128_VECS = 2 /* of a batch, what one thread holds */
#else
    RG_LL128_VECS = RG_LL128_PAYLOAD / sizeof(struct rg_vec)
#endif
};

/* What a thread holds of a batch. */
struct rg_ll128 {
    struct rg_vec v[RG_LL128_VECS];
};

/* The same on every device: a batch's tag is never 0. */
RG_FN uint64_t rg_ll128_tag(uint64_t cursor)
{
    return cursor << 1 | 1;
}

RG_FN uint64_t rg_ll128_batches(uint64_t bytes)
{
    return (bytes + RG_LL128_PAYLOAD - 1) / RG_LL128_PAYLOAD;
}

/* Part of a vector that is at an odd address, or not whole: out of line. */
RG_FN_COLD struct rg_vec rg_vec_load_part(const uint8_t *from, uint64_t left)
{
    struct rg_vec v = {0, 0};

    RG_ROLLED
    for (int i = left < sizeof v ? (int)left : (int)sizeof v; i-- > 0;) {
        v.high = v.high << 8 | v.low >> 56;
        v.low = v.low << 8 | from[i];
    }
    return v;
}

RG_FN_COLD void rg_vec_store_part(uint8_t *to, uint64_t left, struct rg_vec v)
{
    RG_ROLLED
    for (uint64_t i = 0; i < sizeof v && i < left; i++) {
        to[i] = (uint8_t)v.low;
        v.low = v.low >> 8 | v.high << 56;
        v.high >>= 8;
    }
}

#if RG_ON_CUDA

/* The first batch of a worker's, and how far it is to the next. */
RG_FN int rg_ll128_first(const struct rg_team *team)
{
    return team->index + team->thread / 32 * team->count;
}

RG_FN int rg_ll128_step(const struct rg_team *team)
{
    return team->threads / 32 * team->count;
}

/* The last lane of a line carries its tag, and one vector in two lines. */
RG_FN int rg_ll128_tags(const struct rg_team *team)
{
    return team->thread % 8 == 7;
}

/* Where a thread's vector lies in the payload. */
RG_FN uint64_t rg_ll128_at(const struct rg_team *team, int k)
{
    const int lane = team->thread % 32;
    const int at =
        rg_ll128_tags(team) ? 56 + lane / 8 : lane - lane / 8 + 28 * k;

    return (uint64_t)at * sizeof(struct rg_vec);
}

RG_FN int rg_ll128_has(const struct rg_team *team, int k)
{
    return k == 0 || !rg_ll128_tags(team);
}

RG_FN struct rg_vec rg_vec_load_any(const uint8_t *from, uint64_t left)
{
    if ((uint64_t)from % sizeof(struct rg_vec) == 0 &&
        left >= sizeof(struct rg_vec))
        return rg_vec_load(from);
    return rg_vec_load_part(from, left);
}

RG_FN void rg_vec_store_any(uint8_t *to, uint64_t left, struct rg_vec v)
{
    if ((uint64_t)to % sizeof(struct rg_vec) == 0 &&
        left >= sizeof(struct rg_vec))
        rg_vec_store(to, v);
    else
        rg_vec_store_part(to, left, v);
}

/* A batch of `left` bytes or more, from and to a user's buffer. */
RG_FN void rg_ll128_load(const struct rg_team *team, struct rg_ll128 *batch,
                         const uint8_t *from, uint64_t left)
{
    const struct rg_vec zero = {0, 0};

    RG_UNROLLED
    for (int k = 0; k < RG_LL128_VECS; k++) {
        const uint64_t at = rg_ll128_at(team, k);

        batch->v[k] = zero;
        if (rg_ll128_has(team, k) && at < left)
            batch->v[k] = rg_vec_load_any(from + at, left - at);
    }
}

RG_FN void rg_ll128_store(const struct rg_team *team,
                          const struct rg_ll128 *batch, uint8_t *to,
                          uint64_t left)
{
    RG_UNROLLED
    for (int k = 0; k < RG_LL128_VECS; k++) {
        const uint64_t at = rg_ll128_at(team, k);

        if (rg_ll128_has(team, k) && at < left)
            rg_vec_store_any(to + at, left - at, batch->v[k]);
    }
}

/* The whole warp. */
RG_FN void rg_ll128_send(const struct rg_team *team, uint8_t *place,
                         const struct rg_ll128 *batch, uint64_t tag)
{
    uint64_t *row =
        (uint64_t *)(void *)(place + team->thread % 32 * sizeof(struct rg_vec));
    uint64_t *next = row + RG_LL128_ROW / sizeof *row;

    if (rg_ll128_tags(team)) {
        rg_store_relaxed_pair(row, batch->v[0].low, tag);
        rg_store_relaxed_pair(next, batch->v[0].high, tag);
    } else {
        rg_store_relaxed_pair(row, batch->v[0].low, batch->v[0].high);
        rg_store_relaxed_pair(next, batch->v[1].low, batch->v[1].high);
    }
}

/* The whole warp: 1 when the batch is there, and has been read. */
RG_FN int rg_ll128_poll(const struct rg_team *team, const uint8_t *place,
                        uint64_t tag, struct rg_ll128 *batch)
{
    const uint64_t *row =
        (const uint64_t *)(const void *)(place + team->thread % 32 *
                                                     sizeof(struct rg_vec));
    uint64_t a, b, c, d;

    rg_load_relaxed_pair(row, &a, &b);
    rg_load_relaxed_pair(row + RG_LL128_ROW / sizeof *row, &c, &d);
    batch->v[0].low = a;
    batch->v[0].high = rg_ll128_tags(team) ? c : b;
    batch->v[1].low = c;
    batch->v[1].high = d;
    return __all_sync(~0u, !rg_ll128_tags(team) || (b == tag && d == tag));
}

/* 1 at all of the worker if it is at any. */
RG_FN int rg_ll128_any(int pred)
{
    return __any_sync(~0u, pred);
}

#else

RG_FN int rg_ll128_first(const struct rg_team *team)
{
    return team->index + team->thread * team->count;
}

RG_FN int rg_ll128_step(const struct rg_team *team)
{
    return team->threads * team->count;
}

RG_FN void rg_ll128_load(const struct rg_team *team, struct rg_ll128 *batch,
                         const uint8_t *from, uint64_t left)
{
    (void)team;
    if (left < RG_LL128_PAYLOAD)
        __builtin_memset(batch, 0, sizeof *batch);
    __builtin_memcpy(batch, from,
                     left < RG_LL128_PAYLOAD ? left : RG_LL128_PAYLOAD);
}

RG_FN void rg_ll128_store(const struct rg_team *team,
                          const struct rg_ll128 *batch, uint8_t *to,
                          uint64_t left)
{
    (void)team;
    __builtin_memcpy(to, batch,
                     left < RG_LL128_PAYLOAD ? left : RG_LL128_PAYLOAD);
}

RG_FN void rg_ll128_send(const struct rg_team *team, uint8_t *place,
                         const struct rg_ll128 *batch, uint64_t tag)
{
    (void)team;
    __builtin_memcpy(place, batch, sizeof *batch);
    /* Pairs with the acquire below. */
    rg_store_release((uint64_t *)(void *)(place + RG_LL128_PAYLOAD), tag);
}

RG_FN int rg_ll128_poll(const struct rg_team *team, const uint8_t *place,
                        uint64_t tag, struct rg_ll128 *batch)
{
    (void)team;
    if (rg_load_acquire(
            (const uint64_t *)(const void *)(place + RG_LL128_PAYLOAD)) != tag)
        return 0;
    __builtin_memcpy(batch, place, sizeof *batch);
    return 1;
}

RG_FN int rg_ll128_any(int pred)
{
    return pred;
}

#endif

/*
 * The part of a wait that is not over at once: 0 when the batch is there. Out
 * of line and by value, so that what waits lives in registers.
 */
RG_FN_COLD int rg_ll128_wait_long(struct rg_team team, struct rg_comm_dev *dev,
                                  int index, const uint8_t *place, uint64_t tag,
                                  int peer)
{
    struct rg_waiter waiter = RG_WAITER_INIT;
    struct rg_ll128 batch;
    const struct rg_call call = rg_call_waiting(&team, dev, index);
    int status = RG_OK;

    while (!rg_ll128_any(status != RG_OK)) {
        if (rg_ll128_poll(&team, place, tag, &batch))
            return 0;
        status = rg_wait_more(&call, &waiter);
    }
    if (rg_ll128_poll(&team, place, tag, &batch))
        return 0;
    if (status != RG_OK)
        rg_wait_failed(&call, status, peer);
    return 1;
}

enum { RG_LL128_POLLS = 16 }; /* before a wait counts as long */

/* Who waits, as a worker has it in registers: a copy of parts of its call. */
struct rg_ll128_worker {
    struct rg_team team;
    struct rg_comm_dev *dev;
    int index;
};

RG_FN struct rg_ll128_worker rg_ll128_worker_of(const struct rg_call *call)
{
    const struct rg_ll128_worker worker = {call->team, call->dev, call->index};

    return worker;
}

/* The whole worker waits for a peer's batch: 0, or 1 for failed. */
RG_FN int rg_ll128_wait(const struct rg_ll128_worker *worker,
                        const uint8_t *place, uint64_t tag, int peer,
                        struct rg_ll128 *batch)
{
    RG_ROLLED
    for (int polls = 0; !rg_ll128_poll(&worker->team, place, tag, batch);
         polls++)
        if (polls >= RG_LL128_POLLS &&
            rg_ll128_wait_long(worker->team, worker->dev, worker->index, place,
                               tag, peer))
            return 1;
    return 0;
}

/* ---- reductions ---------------------------------------------------------- */

struct rg_ll128_accum {
    struct rg_vec_accum v[RG_LL128_VECS];
};

/* A rank's batch into `acc`, in rank order; the first one sets it. */
RG_FN void rg_ll128_combine(enum rg_op op, struct rg_ll128_accum *acc,
                            const struct rg_ll128 *batch, int first)
{
    RG_UNROLLED
    for (int k = 0; k < RG_LL128_VECS; k++) {
        if (first)
            rg_accum_first(&acc->v[k], batch->v[k]);
        else
            rg_accum_next(&acc->v[k], op, batch->v[k]);
    }
}

/* The batch that `count` ranks have made. */
RG_FN struct rg_ll128
rg_ll128_finish(enum rg_op op, const struct rg_ll128_accum *acc, int count)
{
    struct rg_ll128 batch;

    RG_UNROLLED
    for (int k = 0; k < RG_LL128_VECS; k++)
        batch.v[k] = rg_accum_result(&acc->v[k], op, count);
    return batch;
}

#endif
