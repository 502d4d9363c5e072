#include "runtime/exec/legacy_path.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/clock.h"
#include "runtime/core/cond.h"
#include "runtime/core/log.h"
#include "runtime/core/seq.h"
#include "runtime/device/word.h"
#include "runtime/legacy/legacy.h"

struct rg_legacy_path {
    struct rg_legacy *legacy;
    struct rg_comm *comm;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under lock. */
    int held;      /* by the worker, or by an invocation that failed */
    int changing;  /* by the worker: what is launched has no epoch yet */
    int left;      /* for good: nobody waits for a view */
    int running;   /* an invocation is in flight */
    uint64_t over; /* every seq up to here is of an epoch that has ended */
    uint64_t completed;
    struct rg_legacy_failure failure;
    struct rg_bitset waited_for; /* of the failure; world ranks */
    /* The view in force: by dense rank. Written while held. */
    int *slots; /* [capacity] */
    int *ranks; /* [capacity], world ranks */
    int nranks;
    uint64_t first_seq;
    /* Of the stream's order: one invocation at a time. */
    unsigned char *dense; /* active slots' blocks, back to back */
    size_t dense_bytes;
    void *stage[2]; /* copies of send and recv, pinned */
    size_t stage_bytes[2];
};

/* ---- life --------------------------------------------------------------- */

static int make_legacy(struct rg_legacy_path *path)
{
    const struct rg_context *context = path->comm->context;
    struct rg_legacy_config config = {
        .engine = {.rank = context->config.rank,
                   .size = context->config.size,
                   .host_id = context->host_id},
        .workspaces = (int)context->settings.workspaces,
        .deadline_ms = context->settings.deadline_ms};
    char address[RG_ADDRESS_BYTES];

    static_assert((int)RG_ENGINE_SECRET_BYTES == (int)RG_DRIVER_SECRET_BYTES,
                  "the engines' secret is the job's");
    rg_driver_identity(context->driver, config.engine.secret, address);
    config.engine.address = address;
    return rg_legacy_create(&config, &path->legacy);
}

int rg_legacy_path_create(struct rg_comm *comm)
{
    const size_t capacity = (size_t)comm->context->config.capacity;
    struct rg_legacy_path *path = calloc(1, sizeof *path);
    int status;

    if (!path)
        return RG_ENOMEM;
    path->comm = comm;
    path->held = path->changing = 1;
    path->over = comm->context->config.first_seq - 1;
    if (rg_cond_init_locked(&path->changed, &path->lock)) {
        free(path);
        return RG_ENOMEM;
    }
    comm->legacy = path;
    path->slots = calloc(capacity, sizeof *path->slots);
    path->ranks = calloc(capacity, sizeof *path->ranks);
    status = path->slots && path->ranks ? RG_OK : RG_ENOMEM;
    if (status == RG_OK)
        status = rg_bitset_init(&path->waited_for, comm->context->config.size);
    return status ? status : make_legacy(path);
}

void rg_legacy_path_destroy(struct rg_legacy_path *path)
{
    const struct rg_context *context;

    if (!path)
        return;
    context = path->comm->context;
    rg_legacy_destroy(path->legacy);
    for (int i = 0; i < 2; i++)
        if (path->stage[i])
            context->ops->host_free(context->device, path->stage[i]);
    rg_bitset_fini(&path->waited_for);
    free(path->slots);
    free(path->ranks);
    free(path->dense);
    pthread_cond_destroy(&path->changed);
    pthread_mutex_destroy(&path->lock);
    free(path);
}

void rg_legacy_path_card(const struct rg_legacy_path *path,
                         struct rg_engine_card *card_out)
{
    rg_legacy_get_card(path->legacy, card_out);
}

/* ---- one invocation ----------------------------------------------------- */

/* When somebody who waits from now on loses patience (RG_PARK_MS). */
static uint64_t park_end(const struct rg_legacy_path *path)
{
    return rg_clock_after_ms(path->comm->context->settings.park_ms);
}

/* As on the device: no view has come in time, so this rank is isolated. */
static void expire(const struct rg_legacy_path *path)
{
    rg_store_release(&path->comm->mapped->mailbox.expired, 1);
}

/*
 * The stream has come to this seq. 1: it is to run, once the path is open; 0:
 * its epoch has ended, or this rank's part in the group.
 */
static int begin(struct rg_legacy_path *path, uint64_t seq)
{
    const uint64_t end = park_end(path);
    int late = 0, runs;

    pthread_mutex_lock(&path->lock);
    while (path->held && rg_seq_precedes(path->over, seq) && !path->left &&
           !late)
        late = rg_cond_wait(&path->changed, &path->lock, end);
    runs = !path->held && rg_seq_precedes(path->over, seq);
    path->running |= runs;
    pthread_mutex_unlock(&path->lock);
    if (late)
        expire(path);
    return runs;
}

/*
 * What all members find alike, an old seq or a root that is gone, ends like
 * any other and only leaves its mark; what fails holds the path.
 */
static void end(struct rg_legacy_path *path, uint64_t seq, int status)
{
    const int old = rg_seq_precedes(seq, path->first_seq);
    const int alike = status == RG_EUNAVAILABLE || old;

    pthread_mutex_lock(&path->lock);
    path->running = 0;
    if (status == RG_OK || alike)
        path->completed = seq;
    else
        path->held = 1;
    if (status && !old) {
        path->failure.count++;
        path->failure.seq = seq;
        path->failure.status = status;
    }
    pthread_cond_broadcast(&path->changed);
    pthread_mutex_unlock(&path->lock);
}

static int by_slot(enum rg_collective collective, int of_send)
{
    switch (collective) {
    case RG_COLL_all_gather:
    case RG_COLL_gather:
        return !of_send;
    case RG_COLL_reduce_scatter:
    case RG_COLL_scatter:
        return of_send;
    case RG_COLL_all_to_all:
        return 1;
    default:
        return 0;
    }
}

static int dense_room(struct rg_legacy_path *path, size_t bytes)
{
    unsigned char *more;

    if (bytes <= path->dense_bytes)
        return RG_OK;
    more = realloc(path->dense, bytes);
    if (!more)
        return RG_ENOMEM;
    path->dense = more;
    path->dense_bytes = bytes;
    return RG_OK;
}

/* Blocks between their slots and their place among the active ones. */
static void pack(const struct rg_legacy_path *path, unsigned char *dense,
                 const unsigned char *blocks, size_t bytes)
{
    for (int rank = 0; rank < path->nranks; rank++)
        memcpy(dense + (size_t)rank * bytes,
               blocks + (size_t)path->slots[rank] * bytes, bytes);
}

static void unpack(const struct rg_legacy_path *path, unsigned char *blocks,
                   const unsigned char *dense, size_t bytes)
{
    for (int rank = 0; rank < path->nranks; rank++)
        memcpy(blocks + (size_t)path->slots[rank] * bytes,
               dense + (size_t)rank * bytes, bytes);
}

static int dense_rank(const struct rg_legacy_path *path, int slot)
{
    for (int rank = 0; rank < path->nranks; rank++)
        if (path->slots[rank] == slot)
            return rank;
    return -1;
}

/*
 * Where a slot is empty, buffers of one block a slot are packed first: the
 * blocks of empty slots are not read, and stay as they are.
 */
static int run_by_slot(struct rg_legacy_path *path,
                       const struct rg_legacy_call *call,
                       struct rg_legacy_op *op)
{
    const size_t block = call->count * rg_dtype_size(call->dtype);
    const size_t all = (size_t)path->nranks * block;
    const int send = by_slot(call->collective, 1);
    const int recv = by_slot(call->collective, 0);
    unsigned char *out;
    int status = dense_room(path, 2 * all);

    if (status)
        return status;
    out = path->dense + all;
    if (send && call->send) {
        pack(path, path->dense, op->send, block);
        op->send = path->dense;
    }
    if (!recv)
        return rg_legacy_run(path->legacy, op, &path->waited_for);
    op->recv = out;
    status = rg_legacy_run(path->legacy, op, &path->waited_for);
    if (status == RG_OK && call->recv)
        unpack(path, call->recv, out, block);
    return status;
}

static int run(struct rg_legacy_path *path, const struct rg_legacy_call *call,
               uint64_t seq)
{
    struct rg_legacy_op op = {.collective = call->collective,
                              .seq = seq,
                              .send = call->send,
                              .recv = call->recv,
                              .count = call->count,
                              .dtype = call->dtype,
                              .op = call->op,
                              .root = dense_rank(path, call->root)};
    const int whole = path->nranks == path->comm->context->config.capacity;

    rg_bitset_zero(&path->waited_for);
    if (!rg_collective_rooted(call->collective))
        op.root = 0;
    if (op.root < 0)
        return RG_EUNAVAILABLE;
    if (whole ||
        (!by_slot(call->collective, 0) && !by_slot(call->collective, 1)))
        return rg_legacy_run(path->legacy, &op, &path->waited_for);
    return run_by_slot(path, call, &op);
}

/* What the stream runs; owns itself. */
struct invocation {
    struct rg_legacy_path *path;
    uint64_t seq;
    struct rg_legacy_call call; /* with addresses that the host can use */
};

static void invoke(void *arg)
{
    struct invocation *invocation = arg;
    struct rg_legacy_path *path = invocation->path;
    const uint64_t seq = invocation->seq;

    if (begin(path, seq))
        end(path, seq,
            rg_seq_precedes(seq, path->first_seq)
                ? RG_EABORTED
                : run(path, &invocation->call, seq));
    free(invocation);
}

/* ---- launch ------------------------------------------------------------- */

/* Host memory of at least this size; the stream is idle when it grows. */
static int stage_room(struct rg_legacy_path *path, struct rg_stream *stream,
                      int which, size_t bytes)
{
    const struct rg_context *context = path->comm->context;
    void *unused; /* the address on the device */
    int status = RG_OK;

    if (bytes <= path->stage_bytes[which])
        return RG_OK;
    status = rg_stream_synchronize(stream);
    if (status)
        return status;
    if (path->stage[which])
        context->ops->host_free(context->device, path->stage[which]);
    path->stage[which] = NULL;
    path->stage_bytes[which] = 0;
    status = context->ops->host_alloc(context->device, bytes,
                                      &path->stage[which], &unused);
    if (status == RG_OK)
        path->stage_bytes[which] = bytes;
    return status;
}

/*
 * The output is copied in too: blocks of empty slots go back as they came. In
 * place, both are one buffer or parts of one; each is staged for itself.
 */
static int stage_in(struct rg_legacy_path *path, struct rg_stream *stream,
                    struct rg_legacy_call *call)
{
    const struct rg_device_ops *ops = path->comm->context->ops;
    const void *from[2] = {call->send, call->recv};
    const size_t bytes[2] = {call->send_bytes, call->recv_bytes};
    int status = RG_OK;

    for (int i = 0; i < 2 && status == RG_OK; i++) {
        if (!from[i] || !bytes[i])
            continue;
        status = stage_room(path, stream, i, bytes[i]);
        if (status == RG_OK)
            status = ops->copy_async(stream->native, path->stage[i], from[i],
                                     bytes[i]);
    }
    if (status)
        return status;
    call->send = call->send ? path->stage[0] : NULL;
    call->recv = call->recv ? path->stage[1] : NULL;
    return RG_OK;
}

/*
 * The claim, made at the launch: so whatever is queued when the epoch ends
 * belongs to it, and is aborted everywhere, also where the next view is of the
 * other backend. Who comes amidst a change waits here for its end, to see which
 * backend there is then: RG_EPENDING if it is not this one.
 */
static int claim(struct rg_legacy_path *path, uint64_t *seq_out)
{
    struct rg_comm *comm = path->comm;
    const uint64_t end = park_end(path);
    int late = 0, status = RG_OK;

    pthread_mutex_lock(&path->lock);
    while (path->changing && !path->left && !late)
        late = rg_cond_wait(&path->changed, &path->lock, end);
    if (path->changing)
        status = rg_comm_check(comm) ? rg_comm_check(comm) : RG_EISOLATED;
    else if (rg_load_relaxed(&comm->backend) != RG_BACKEND_LEGACY)
        status = RG_EPENDING;
    else
        rg_comm_count(comm, 1);
    *seq_out = rg_load_relaxed(&comm->seq);
    pthread_mutex_unlock(&path->lock);
    if (late)
        expire(path);
    return status;
}

int rg_legacy_path_launch(struct rg_comm *comm, struct rg_stream *stream,
                          const struct rg_legacy_call *call)
{
    const struct rg_device_ops *ops = comm->context->ops;
    struct invocation *invocation;
    int status;

    if (call->collective == RG_COLL_all_to_all_v)
        return RG_ENOTSUP;
    invocation = malloc(sizeof *invocation);
    status = invocation ? rg_comm_enter(comm, stream) : RG_ENOMEM;

    if (status)
        goto error;
    *invocation = (struct invocation){.path = comm->legacy, .call = *call};
    if (!ops->host_reads_device)
        status = stage_in(comm->legacy, stream, &invocation->call);
    if (status == RG_OK)
        status = claim(comm->legacy, &invocation->seq);
    if (status)
        goto error;
    status = ops->host_call(stream->native, invoke, invocation);
    if (status)
        goto error;
    if (ops->host_reads_device || !call->recv || !call->recv_bytes)
        return RG_OK;
    return ops->copy_async(stream->native, call->recv, comm->legacy->stage[1],
                           call->recv_bytes);
error:
    free(invocation);
    return status;
}

/* ---- the worker --------------------------------------------------------- */

void rg_legacy_path_abort(struct rg_comm *comm)
{
    rg_legacy_abort(comm->legacy->legacy, comm->view->epoch);
}

int rg_legacy_path_hold(struct rg_comm *comm, int timeout_ms)
{
    struct rg_legacy_path *path = comm->legacy;
    const uint64_t until = rg_clock_after_ms((uint64_t)timeout_ms);
    int late = 0;

    pthread_mutex_lock(&path->lock);
    path->held = path->changing = 1;
    while (path->running && !late)
        late = rg_cond_wait(&path->changed, &path->lock, until);
    comm->held.claimed = rg_load_relaxed(&comm->seq);
    comm->held.completed = path->completed;
    pthread_mutex_unlock(&path->lock);
    return late ? RG_ETIMEDOUT : RG_OK;
}

static int apply(struct rg_comm *comm)
{
    struct rg_legacy_path *path = comm->legacy;
    const struct rg_view *view = comm->view;
    const size_t n = (size_t)view->nactive;
    struct rg_engine_card *cards = calloc(n, sizeof *cards);
    struct rg_legacy_view next = {
        .epoch = view->epoch,
        .first_seq = view->first_seq,
        .workspace =
            (int)(view->workspace % comm->context->settings.workspaces),
        .nranks = view->nactive,
        .world_rank = path->ranks,
        .cards = cards};
    int status;

    if (!cards)
        return RG_ENOMEM;
    path->nranks = view->nactive;
    for (int rank = 0; rank < view->nactive; rank++) {
        const int slot = view->order[rank];

        path->slots[rank] = slot;
        path->ranks[rank] = view->members[slot].world_rank;
        if (path->ranks[rank] == comm->context->config.rank)
            next.rank = rank;
        memcpy(cards[rank].bytes,
               view->members[slot].info.card +
                   RG_CARD_LEGACY * sizeof cards[rank].bytes,
               sizeof cards[rank].bytes);
    }
    status = rg_legacy_apply(path->legacy, &next);
    free(cards);
    return status;
}

static void change_end(struct rg_legacy_path *path, uint64_t ended, int opens)
{
    pthread_mutex_lock(&path->lock);
    path->first_seq = path->comm->view->first_seq;
    path->over = path->completed = ended;
    path->held = !opens;
    path->changing = path->left = 0;
    pthread_cond_broadcast(&path->changed);
    pthread_mutex_unlock(&path->lock);
}

int rg_legacy_path_open(struct rg_comm *comm, uint64_t ended)
{
    const int status = apply(comm);

    if (status == RG_OK)
        change_end(comm->legacy, ended, 1);
    return status;
}

void rg_legacy_path_pass(struct rg_comm *comm, uint64_t ended)
{
    change_end(comm->legacy, ended, 0);
}

void rg_legacy_path_leave(struct rg_comm *comm)
{
    struct rg_legacy_path *path = comm->legacy;

    pthread_mutex_lock(&path->lock);
    path->held = path->changing = path->left = 1;
    pthread_cond_broadcast(&path->changed);
    pthread_mutex_unlock(&path->lock);
}

void rg_legacy_path_failure(struct rg_comm *comm,
                            struct rg_legacy_failure *failure_out,
                            struct rg_bitset *slots)
{
    struct rg_legacy_path *path = comm->legacy;

    pthread_mutex_lock(&path->lock);
    *failure_out = path->failure;
    if (slots) {
        rg_bitset_zero(slots);
        for (int rank = 0; rank < path->nranks && !path->running; rank++)
            if (rg_bitset_test(&path->waited_for, path->ranks[rank]))
                rg_bitset_set(slots, path->slots[rank]);
    }
    pthread_mutex_unlock(&path->lock);
}

uint64_t rg_legacy_path_completed(struct rg_comm *comm)
{
    struct rg_legacy_path *path = comm->legacy;
    uint64_t completed;

    pthread_mutex_lock(&path->lock);
    completed = path->completed;
    pthread_mutex_unlock(&path->lock);
    return completed;
}
