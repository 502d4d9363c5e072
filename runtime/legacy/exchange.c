#include <sched.h>
#include <string.h>

#include "runtime/core/clock.h"
#include "runtime/regroup.h"
#include "runtime/device/word.h"
#include "runtime/legacy/reduce.h"
#include "runtime/legacy/state.h"
#include "runtime/status.h"

enum {
    CREDIT_EVERY = RG_LEGACY_DEPTH / 2,
    COMPLETIONS = 32,
    SPIN_NS = 2000,    /* then yield */
    YIELD_NS = 200000, /* then sleep */
    SLEEP_NS = 50000,
    /* As in a device wait: who was stopped has not waited all that time. */
    LONGEST_GAP_NS = 100000000
};

/* ---- the layout of an area ---------------------------------------------- */

uint64_t rg_legacy_arrived_at(const struct rg_legacy *legacy, int world_rank)
{
    return legacy->area + (uint64_t)world_rank * sizeof(uint64_t);
}

static uint64_t credit_at(const struct rg_legacy *legacy, int world_rank)
{
    return legacy->area +
           (uint64_t)(legacy->size + world_rank) * sizeof(uint64_t);
}

uint64_t rg_legacy_slots_at(const struct rg_legacy *legacy, int world_rank)
{
    const uint64_t words =
        (2 * (uint64_t)legacy->size * sizeof(uint64_t) + 63) / 64 * 64;

    return legacy->area + words +
           (uint64_t)world_rank * RG_LEGACY_DEPTH * legacy->chunk_bytes;
}

static uint64_t read_word(const struct rg_legacy *legacy, uint64_t offset)
{
    /* Pairs with the release of the engine's signals. */
    return rg_load_acquire(
        (const uint64_t *)(const void *)(legacy->region + offset));
}

/* ---- moving ------------------------------------------------------------- */

static uint64_t chunk_of(const struct rg_legacy *legacy, uint64_t left)
{
    return left < legacy->chunk_bytes ? left : legacy->chunk_bytes;
}

static int own_world_rank(const struct rg_legacy *legacy)
{
    return legacy->world_rank[legacy->rank];
}

/* One chunk to a peer, if there is room. 1: it is on its way. */
static int send_chunk(struct rg_legacy *legacy, int rank, int *rc)
{
    struct rg_legacy_part *part = &legacy->exchange.parts[rank];
    const int peer = legacy->world_rank[rank], own = own_world_rank(legacy);
    struct rg_legacy_stream *stream = &legacy->streams[peer];
    const uint64_t slot = stream->issued % RG_LEGACY_DEPTH;
    struct rg_engine_command command = {
        .peer = peer,
        .generation = legacy->epoch,
        .offset = rg_legacy_slots_at(legacy, own) + slot * legacy->chunk_bytes,
        .source = part->send + part->sent,
        .bytes = chunk_of(legacy, part->send_bytes - part->sent),
        .signal = rg_legacy_arrived_at(legacy, own),
        .op = RG_SIGNAL_SET,
        .value = stream->issued + 1,
        .cookie = 1};

    if (part->sent == part->send_bytes ||
        stream->issued - read_word(legacy, credit_at(legacy, peer)) >=
            RG_LEGACY_DEPTH)
        return 0;
    *rc = rg_engine_submit(legacy->engine, &command);
    if (*rc)
        return 0;
    part->sent += command.bytes;
    stream->issued++;
    stream->open++;
    return 1;
}

/* The next chunk of a peer has been used up: its slot may be written again. */
static int release_chunk(struct rg_legacy *legacy, int peer)
{
    struct rg_legacy_stream *stream = &legacy->streams[peer];
    const struct rg_engine_command credit = {
        .peer = peer,
        .generation = legacy->epoch,
        .signal = credit_at(legacy, own_world_rank(legacy)),
        .op = RG_SIGNAL_SET,
        .value = ++stream->taken};

    if (stream->taken % CREDIT_EVERY)
        return RG_OK;
    return rg_engine_submit(legacy->engine, &credit);
}

/* The next chunk of a peer, or null when it has not arrived. */
static const unsigned char *next_chunk(const struct rg_legacy *legacy, int peer)
{
    const uint64_t taken = legacy->streams[peer].taken;

    if (read_word(legacy, rg_legacy_arrived_at(legacy, peer)) == taken)
        return NULL;
    return legacy->region + rg_legacy_slots_at(legacy, peer) +
           taken % RG_LEGACY_DEPTH * legacy->chunk_bytes;
}

static int receive_chunk(struct rg_legacy *legacy, int rank, int *rc)
{
    struct rg_legacy_part *part = &legacy->exchange.parts[rank];
    const int peer = legacy->world_rank[rank];
    const uint64_t bytes = chunk_of(legacy, part->recv_bytes - part->received);
    const unsigned char *chunk;

    if (!bytes)
        return 0;
    chunk = next_chunk(legacy, peer);
    if (!chunk)
        return 0;
    memcpy(part->recv + part->received, chunk, bytes);
    part->received += bytes;
    *rc = release_chunk(legacy, peer);
    return 1;
}

static int release_all(struct rg_legacy *legacy)
{
    int rc = RG_OK;

    for (int rank = 0; rank < legacy->nranks && !rc; rank++)
        if (rank != legacy->rank)
            rc = release_chunk(legacy, legacy->world_rank[rank]);
    return rc;
}

/* Once it is there from everybody: a chunk, reduced in the order of ranks. */
static int reduce_chunk(struct rg_legacy *legacy, int *rc)
{
    struct rg_legacy_exchange *exchange = &legacy->exchange;
    const uint64_t bytes =
        chunk_of(legacy, exchange->reduce_bytes - exchange->reduced);

    if (!bytes)
        return 0;
    for (int rank = 0; rank < legacy->nranks; rank++) {
        legacy->sources[rank] =
            rank == legacy->rank ? exchange->own + exchange->reduced
                                 : next_chunk(legacy, legacy->world_rank[rank]);
        if (!legacy->sources[rank])
            return 0;
    }
    rg_legacy_reduce(exchange->dtype, exchange->op,
                     exchange->dst + exchange->reduced, legacy->sources,
                     legacy->nranks, bytes / rg_dtype_size(exchange->dtype));
    exchange->reduced += bytes;
    *rc = release_all(legacy);
    return 1;
}

/* What a command's end says of the collective. */
static int take_completion(struct rg_legacy *legacy,
                           const struct rg_engine_completion *done)
{
    if (!done->cookie)
        return RG_OK; /* a credit: whoever waits for it says what is wrong */
    legacy->streams[done->peer].open--;
    if (done->status == RG_EFAILED)
        legacy->streams[done->peer].lost = 1;
    return done->status;
}

/* 1: something has moved. *rc becomes the first error. */
static int move(struct rg_legacy *legacy, int *rc)
{
    struct rg_engine_completion done[COMPLETIONS];
    int moved, count;

    for (int rank = 0; rank < legacy->nranks && !*rc; rank++)
        if (rank != legacy->rank)
            while (!*rc && send_chunk(legacy, rank, rc))
                ;
    count = rg_engine_poll(legacy->engine, done, COMPLETIONS);
    moved = count;
    for (int i = 0; i < count; i++) {
        const int status = take_completion(legacy, &done[i]);

        *rc = *rc ? *rc : status;
    }
    for (int rank = 0; rank < legacy->nranks && !*rc; rank++)
        if (rank != legacy->rank)
            moved |= receive_chunk(legacy, rank, rc);
    if (!*rc)
        moved |= reduce_chunk(legacy, rc);
    return moved;
}

/* ---- waiting ------------------------------------------------------------ */

/* Whether the exchange needs something of that rank. */
static int waits_for(const struct rg_legacy *legacy, int rank)
{
    const struct rg_legacy_exchange *exchange = &legacy->exchange;
    const struct rg_legacy_part *part = &exchange->parts[rank];
    const int peer = legacy->world_rank[rank];

    if (rank == legacy->rank)
        return 0;
    return part->sent < part->send_bytes || legacy->streams[peer].open ||
           part->received < part->recv_bytes ||
           (exchange->reduced < exchange->reduce_bytes &&
            !next_chunk(legacy, peer));
}

static int is_done(const struct rg_legacy *legacy)
{
    for (int rank = 0; rank < legacy->nranks; rank++)
        if (waits_for(legacy, rank))
            return 0;
    return legacy->exchange.reduced == legacy->exchange.reduce_bytes;
}

/* Kept: a connection may be on its way again when somebody asks. */
static int is_lost(struct rg_legacy *legacy, int rank)
{
    const int peer = legacy->world_rank[rank];

    if (!waits_for(legacy, rank) || !rg_engine_status(legacy->engine, peer))
        return 0;
    legacy->streams[peer].lost = 1;
    return 1;
}

static int is_aborted(const struct rg_legacy *legacy)
{
    return rg_load_acquire(&legacy->abort_epoch) >= legacy->epoch;
}

static void back_off(uint64_t waited_ns)
{
    if (waited_ns > YIELD_NS)
        rg_clock_sleep_ns(SLEEP_NS);
    else if (waited_ns > SPIN_NS)
        sched_yield();
}

/* Nothing moved: for how long, and is it worth while? */
static int wait_more(struct rg_legacy *legacy)
{
    const uint64_t now = rg_clock_ns();
    const uint64_t gap = now - legacy->looked_ns;

    legacy->looked_ns = now;
    legacy->waited_ns += gap < LONGEST_GAP_NS ? gap : LONGEST_GAP_NS;
    for (int rank = 0; rank < legacy->nranks; rank++)
        if (is_lost(legacy, rank))
            return RG_EFAILED;
    if (legacy->waited_ns > legacy->deadline_ns)
        return RG_ETIMEDOUT;
    back_off(legacy->waited_ns);
    return RG_OK;
}

void rg_legacy_exchange_reset(struct rg_legacy *legacy)
{
    struct rg_legacy_part *parts = legacy->exchange.parts;

    memset(&legacy->exchange, 0, sizeof(legacy->exchange));
    memset(parts, 0, (size_t)legacy->size * sizeof(*parts));
    legacy->exchange.parts = parts;
}

int rg_legacy_exchange_run(struct rg_legacy *legacy)
{
    int rc = RG_OK;

    legacy->waited_ns = 0;
    legacy->looked_ns = rg_clock_ns();
    for (;;) {
        if (is_aborted(legacy))
            return RG_EABORTED;
        if (move(legacy, &rc)) {
            legacy->waited_ns = 0;
            legacy->looked_ns = rg_clock_ns();
        } else if (!rc && !is_done(legacy)) {
            rc = wait_more(legacy);
        }
        if (rc || is_done(legacy))
            return rc;
    }
}

void rg_legacy_exchange_blame(const struct rg_legacy *legacy, int status,
                              struct rg_bitset *failed)
{
    if (status != RG_EFAILED && status != RG_ETIMEDOUT)
        return;
    for (int rank = 0; rank < legacy->nranks; rank++)
        if (status == RG_EFAILED
                ? legacy->streams[legacy->world_rank[rank]].lost
                : waits_for(legacy, rank))
            rg_bitset_set(failed, legacy->world_rank[rank]);
}

void rg_legacy_exchange_stop(struct rg_legacy *legacy)
{
    struct rg_engine_completion done[COMPLETIONS];

    rg_engine_cancel(legacy->engine);
    while (rg_engine_poll(legacy->engine, done, COMPLETIONS))
        ;
}
