/*
 * regroup: GPU collectives that regroup after a failure. The public API.
 *
 * Objects and their owners. A *context* is one rank of the job: its device,
 * its registered region and its control-plane thread. A *communicator* is a
 * group of ranks with one totally ordered sequence of invocations. *Streams*,
 * *graphs* and *events* mean what they mean in CUDA, on both devices. Whoever
 * creates an object destroys it; a context outlives all that it made.
 *
 * Threads. Ranks may be processes or threads of one process: there is no
 * global state. One thread at a time may use a context and its objects.
 *
 * Errors. Functions return RG_OK or a negative rg_status and set outputs only
 * on success. The first function to decide that something is an error logs it
 * once with its cause (RG_LOG=error|warn|info|debug, standard error).
 */
#ifndef RG_REGROUP_H
#define RG_REGROUP_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/status.h"
#include "runtime/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rg_context;
struct rg_comm;
struct rg_stream;
struct rg_graph;
struct rg_event;
struct rg_algo; /* runtime/algo.h; programs pass algos/algos.h's table */

/* ---- names -------------------------------------------------------------- */

/* A short English sentence for a status code; never null. */
const char *rg_status_string(int status);
/* Lower-case names as in the lists of types.h; "?" for a value out of range. */
const char *rg_dtype_name(enum rg_dtype dtype);
const char *rg_op_name(enum rg_op op);
const char *rg_collective_name(enum rg_collective collective);
const char *rg_route_name(enum rg_route_kind route);
/* The reverse: RG_OK, or RG_EINVAL for an unknown name (nothing logged). */
int rg_dtype_parse(const char *name, enum rg_dtype *dtype_out);
int rg_op_parse(const char *name, enum rg_op *op_out);
/* Bytes of one element; 0 for a value out of range. */
size_t rg_dtype_size(enum rg_dtype dtype);
/* 1: the operation is defined for the type: none is for f8e4m3 and f8e5m2,
 * band, bor and bxor are for integers only. 0 for a value out of range. */
int rg_op_fits(enum rg_op op, enum rg_dtype dtype);
/* 1: the collective combines what it moves, so it has an operation; 1: one
 * rank is its root. */
int rg_collective_reduces(enum rg_collective collective);
int rg_collective_rooted(enum rg_collective collective);

/* ---- context ------------------------------------------------------------ */

/*
 * The launcher's exchange of small blocks, used only inside
 * rg_context_create: every rank passes `bytes` bytes and gets size * bytes
 * back in rank order. Returns 0 or a negative rg_status. Over MPI it is
 * MPI_Allgather, between threads a barrier and a copy.
 */
struct rg_bootstrap {
    void *arg;
    int (*allgather)(void *arg, const void *in, void *out, size_t bytes);
};

/* How far a view change has come at this rank. */
enum rg_phase {
    RG_PHASE_STALLED = 0, /* a device wait ran into its deadline: reported */
    RG_PHASE_PREPARE,     /* the change has reached this rank */
    RG_PHASE_HELD,        /* nothing is in flight, the next workspace clean */
    RG_PHASE_VIEW,        /* the new view is known, provisionally */
    RG_PHASE_ACTIVATE,    /* it is decided */
    RG_PHASE_OPEN,        /* routes and plan are in force: launches run */
    RG_PHASE_CLOSED,      /* out of the group */
    RG_PHASE_COUNT
};
const char *rg_phase_name(enum rg_phase phase);

/*
 * Called by a communicator's own thread as each phase is reached, and before
 * the next one begins. Must not call the communicator.
 */
struct rg_probe {
    void (*reached)(void *arg, enum rg_phase phase, uint64_t epoch);
    void *arg;
};

/* Zero-initialise, then set what differs from the default (0 or null). */
struct rg_context_config {
    int rank; /* world rank, 0 .. size-1 */
    int size; /* world size, >= 1 */
    struct rg_bootstrap bootstrap;
    enum rg_device_kind device;
    int device_ordinal;                 /* CUDA device; ignored by emu */
    const struct rg_algo *const *algos; /* null-terminated, borrowed */
    enum rg_backend backend; /* UNSET: the preference variables decide */
    size_t region_bytes;     /* 0: RG_REGION_BYTES, else 640M; CUDA: 4G */
    int capacity;            /* slots of a group; 0: size */
    int emu_team_width;      /* threads a team on emu; 0: 1 */
    int emu_max_teams;       /* teams a launch on emu; 0: by cores */
    /*
     * What runs: overrides "all_reduce=ring+2ch;..." (null: RG_ALGO) on top of
     * the text of a selection table (null: of the file RG_POLICY; none: the
     * built-in one). Rank 0's are published; another rank's that differ are
     * reported and ignored.
     */
    const char *algo_override;
    const char *policy;
    uint64_t first_seq; /* seq of the first invocation; 0: 1 */
    struct rg_probe probe;
    /*
     * For a process started into a running job, in the place of one that has
     * ended: the ticket of any rank of it instead of the bootstrap, and which
     * process of this rank it is (the first was 1). Its communicators, made in
     * the order of all others', wait to be let in (rg_comm_admit).
     */
    const unsigned char *ticket;
    size_t ticket_bytes;
    uint32_t process;
};

/*
 * Collective over all `size` ranks. Starts the control thread, opens the
 * device, allocates the region. Returns RG_ENODEV when the device does not
 * exist, RG_ENOTSUP when it is not built in, RG_ECONFIG for a bad setting.
 */
int rg_context_create(const struct rg_context_config *config,
                      struct rg_context **context_out);
/* Accepts null. Every object made from the context must be gone. */
void rg_context_destroy(struct rg_context *context);

/*
 * What a process needs to enter this job: all addresses and the job's secret,
 * so keep it to yourself. Freed by the caller.
 */
int rg_context_ticket(struct rg_context *context, unsigned char **ticket_out,
                      size_t *bytes_out);

/*
 * For fault plans. drop: as long as `on`, this rank sends nothing to that
 * rank over the control plane. abandon: this rank's control plane ends
 * without a word, as if its process had died; destroy is all that is left. For
 * ranks that are threads, on CUDA only once the others are in a view without
 * it: they use its memory. (Emulated, that goes with its last user.)
 */
int rg_context_drop_link(struct rg_context *context, int world_rank, int on);
void rg_context_abandon(struct rg_context *context);

/* What a header line or a JSON "env" object wants to know of the device. */
struct rg_device_info {
    enum rg_device_kind kind;
    int ordinal;
    int cores;         /* multiprocessors, or host cores on emu */
    char name[64];     /* "emu", or the card's name */
    char uuid[48];     /* "GPU-...", or "emu-<pid>-<rank>" */
    char driver[32];   /* driver and runtime version, "-" on emu */
    char pci_bus[24];  /* "0000:1b:00.0", empty on emu */
    char host_id[64];  /* RG_HOST_ID or the derived identity */
    int clock_mhz;     /* current multiprocessor clock, 0: unknown */
    int clock_max_mhz; /* its maximum, 0: unknown */
};
int rg_context_device_info(const struct rg_context *context,
                           struct rg_device_info *info_out);

/* Devices of this kind in this process: >= 0, or a negative status. */
int rg_device_count(enum rg_device_kind kind);

/* ---- device memory ------------------------------------------------------ */

/* `bytes` of device memory, at least 256-byte aligned. */
int rg_malloc(struct rg_context *context, size_t bytes, void **pointer_out);
void rg_free(struct rg_context *context, void *pointer);
/* Copies between any two of host and device; returns when it is done. */
int rg_memcpy(struct rg_context *context, void *dst, const void *src,
              size_t bytes);
int rg_memset(struct rg_context *context, void *dst, int byte, size_t bytes);

/* ---- streams, events, graphs -------------------------------------------- */

int rg_stream_create(struct rg_context *context, struct rg_stream **stream_out);
/* Uses the caller's cudaStream_t (borrowed); RG_ENOTSUP on emu. */
int rg_stream_wrap(struct rg_context *context, void *native,
                   struct rg_stream **stream_out);
/* Waits for the stream's work, then frees it. Accepts null. */
void rg_stream_destroy(struct rg_stream *stream);
/* Waits until all work of the stream has ended. */
int rg_stream_synchronize(struct rg_stream *stream);
/* RG_OK when idle, RG_EPENDING when not. */
int rg_stream_query(struct rg_stream *stream);

int rg_event_create(struct rg_context *context, struct rg_event **event_out);
void rg_event_destroy(struct rg_event *event);
/* Marks this point of the stream. */
int rg_event_record(struct rg_event *event, struct rg_stream *stream);
int rg_event_synchronize(struct rg_event *event);
/* Microseconds between two recorded and reached events of one context. */
int rg_event_elapsed_us(struct rg_event *begin, struct rg_event *end,
                        double *us_out);

/*
 * Between begin and end, launches on the stream are recorded, not run. A
 * captured invocation takes its seq when it is replayed, not when captured.
 */
int rg_graph_begin(struct rg_stream *stream);
int rg_graph_end(struct rg_stream *stream, struct rg_graph **graph_out);
/* Replays in the stream's order; may be called any number of times. */
int rg_graph_launch(struct rg_graph *graph, struct rg_stream *stream);
void rg_graph_destroy(struct rg_graph *graph);

/*
 * A program's own device function, launched in stream order (used to fill and
 * to check buffers right behind a collective). `emu` runs `teams` times on
 * host threads with a copy of `args`; `cuda` is the address of a __global__
 * function that takes the same block by value as its one parameter. Where
 * ranks share a device, launch each once, on nothing, before the first
 * collective: a first launch may wait for the whole device.
 */
struct rg_kernel {
    void (*emu)(const void *args, int team, int teams);
    const void *cuda;
};
enum { RG_KERNEL_ARGS_MAX = 256 };
/* teams 0: a good default. RG_EINVAL: args_bytes above the maximum. */
int rg_kernel_launch(struct rg_stream *stream, const struct rg_kernel *kernel,
                     int teams, const void *args, size_t args_bytes);

/* ---- communicators ------------------------------------------------------ */

/*
 * Collective over the ranks of the context's job: all call it in the same
 * order. Returns once the first view is active and its routes, if the backend
 * needs any, are proved.
 * RG_ECLOSED: the rank that would have formed the group died; call again.
 */
int rg_comm_create(struct rg_context *context, struct rg_comm **comm_out);
/* RG_EBUSY while a graph captured from it is alive. Accepts null. */
int rg_comm_destroy(struct rg_comm *comm);

/* The active view as seen here. */
struct rg_view_info {
    uint64_t epoch;
    uint64_t term;
    uint64_t first_seq;
    uint64_t policy_hash;
    int slot;   /* this member's slot */
    int rank;   /* its dense rank among active slots */
    int nranks; /* active members */
    int capacity;
    enum rg_backend backend;
};
int rg_comm_view(struct rg_comm *comm, struct rg_view_info *info_out);
/*
 * The world rank in each slot that is active: world_rank[slot], -1 for the
 * others; `capacity` entries.
 */
int rg_comm_members(struct rg_comm *comm, int *world_rank_out);

/*
 * Puts a selection in force for the whole group: overrides such as
 * "all_reduce=ring" (algorithm by name, with "+Nch" for N channels), the text
 * of a selection table (runtime/policy/table.h), overrides followed by a table,
 * or "" for the built-in table. Collective, at a quiescent point, the same
 * text at every rank. A graph captured before follows it. RG_EPOLICY, and what
 * was in force stays so: the texts differ, or one line of the log says what is
 * wrong with this one.
 */
int rg_comm_set_policy(struct rg_comm *comm, const char *text);

/*
 * As far as an algorithm of the context's table can go in this communicator, by
 * its workspace and by the ranks and routes of the view in force; the same at
 * every rank. RG_EINVAL: not in the table.
 */
struct rg_comm_limits {
    uint64_t max_bytes; /* largest buffer; UINT64_MAX: any; 0: cannot run */
    uint64_t max_chunk; /* bytes of a pipeline step; 0: it has none */
    int max_channels;
};
int rg_comm_limits(struct rg_comm *comm, const struct rg_algo *algo,
                   struct rg_comm_limits *limits_out);

/*
 * By which route this rank reaches that one in the view that is in force here;
 * RG_ROUTE_NULL under the legacy backend, which uses none. RG_EINVAL: no member
 * of the view.
 */
int rg_comm_route(struct rg_comm *comm, int world_rank,
                  enum rg_route_kind *kind_out);

/*
 * What this rank's host proxy has sent to that rank for this communicator:
 * payload of puts, and all bytes with it (headers, signals, acknowledgements),
 * without what the network adds. Zeroes where it has sent nothing. RG_EINVAL:
 * no rank of the job.
 */
struct rg_traffic {
    uint64_t payload;
    uint64_t sent;
};
int rg_comm_traffic(struct rg_comm *comm, int world_rank,
                    struct rg_traffic *traffic_out);

/*
 * For fault plans: from now on this rank's teams find the route to that rank
 * unavailable, as far as they put by it, also teams of a launch under way; the
 * next view has another one, or none. On any thread. RG_EINVAL: no member of
 * the view.
 */
int rg_comm_break_route(struct rg_comm *comm, int world_rank);

/* What the last finished invocation was, read back from the device. */
struct rg_run_info {
    uint64_t seq;   /* 0: none has finished */
    uint64_t epoch; /* its low 32 bits */
    const char *algorithm;
    int channels;
    enum rg_route_kind route; /* of the peers; the slowest if they differ */
};
int rg_comm_last_run(struct rg_comm *comm, struct rg_run_info *info_out);

/*
 * RG_OK while every invocation so far has ended well here; else why the last
 * one that did not was stopped: RG_ETIMEDOUT, RG_EABORTED, RG_EFAILED,
 * RG_EUNAVAILABLE (a route carries nothing, or the view has no such root or
 * algorithm), RG_EINVAL (a transfer beyond the
 * end of a region; the routes stay). Out of the group: RG_EISOLATED,
 * RG_ECLOSED. Cheap: reads mapped memory. `clear` takes note of what has failed
 * so far.
 */
int rg_comm_error(struct rg_comm *comm);
void rg_comm_clear_error(struct rg_comm *comm);

/*
 * Host-side exchange over the control plane: `bytes` (at most 64 KiB, the same
 * everywhere) from each active member, in rank order; out holds nranks *
 * bytes. bytes 0 is a barrier. RG_EINVAL at all members: more than that at
 * one, or not the same. RG_ETIMEDOUT: not all have come in RG_BOOTSTRAP_MS.
 */
int rg_comm_gather(struct rg_comm *comm, const void *in, size_t bytes,
                   void *out);

/*
 * A one-rank report for a hang: phase, seq claimed and completed, epoch, plan,
 * signals, and whom it waits for; text of several lines, always terminated.
 */
int rg_comm_describe(struct rg_comm *comm, char *text, size_t bytes);

/* ---- outcomes ----------------------------------------------------------- */

/*
 * A launch says nothing about its outcome. When a member fails, the others
 * agree on which invocations all of them have completed (committed) and which
 * they have not (aborted: the output is undefined, an input out of place
 * intact), and go on in a new view. A seq belongs to one epoch, and its
 * outcome, once committed or aborted, is the same at every surviving member.
 */
enum rg_outcome_state {
    RG_OUTCOME_PENDING = 0,
    RG_OUTCOME_COMPLETED, /* here; may still be aborted for the group */
    RG_OUTCOME_COMMITTED, /* at every member */
    RG_OUTCOME_ABORTED
};
const char *rg_outcome_name(enum rg_outcome_state state);

enum {
    RG_SLOTS_MAX = 4096,
    RG_OUTCOME_EPOCHS = 128 /* whose outcomes are kept */
};

struct rg_outcome {
    enum rg_outcome_state state;
    uint64_t epoch; /* the seq's */
    int nparticipants;
    /* Slots active in that epoch, a bitmap. */
    uint64_t participants[RG_SLOTS_MAX / 64];
};

/*
 * The seq of the invocation launched or replayed last; before the first, the
 * one before. A member that joins later counts on from where the group is.
 */
int rg_comm_seq(struct rg_comm *comm, uint64_t *seq_out);
/*
 * RG_EINVAL: seq has not been launched here. RG_EUNAVAILABLE: it was decided
 * while this rank was not a member, or belongs to an epoch that
 * RG_OUTCOME_EPOCHS others have followed.
 */
int rg_comm_outcome(struct rg_comm *comm, uint64_t seq,
                    struct rg_outcome *outcome_out);
/*
 * One outcome for a whole step, first to last: aborted if any is (with the
 * epoch and participants of the first such), else pending, completed,
 * committed, whatever is least.
 */
int rg_comm_outcome_range(struct rg_comm *comm, uint64_t first, uint64_t last,
                          struct rg_outcome *outcome_out);
/*
 * Waits until seq is committed or aborted. RG_EISOLATED or RG_ECLOSED: out of
 * the group before that was known. RG_EFAILED: members have failed, or an
 * invocation has, and RG_MODE leaves it to the caller to ask for the change
 * that decides seq. RG_ETIMEDOUT: nothing for RG_BOOTSTRAP_MS.
 */
int rg_comm_wait(struct rg_comm *comm, uint64_t seq,
                 struct rg_outcome *outcome_out);

/* ---- membership --------------------------------------------------------- */

/*
 * Planned changes are collective over the active members, at a point where
 * nothing is in flight, and abort nothing. Those who are out learn it from
 * rg_comm_error(), a notice, or any call's status.
 */

/* Lets in all that wait; where nobody does, nothing but the epoch changes. */
int rg_comm_admit(struct rg_comm *comm);
/*
 * The members in these slots (the same list everywhere) leave the group in
 * order; with none of them active nothing but the epoch changes.
 */
int rg_comm_leave(struct rg_comm *comm, const int *slots, int count);
/*
 * Like leave, for members that have failed and of which nothing is heard: the
 * caller knows that their processes have ended or their hosts are gone, so
 * memory that they could write to may be used again.
 */
int rg_comm_vouch(struct rg_comm *comm, const int *slots, int count);
/*
 * At a rank that is out: asks to be let in as a new incarnation, and waits for
 * it, at most `timeout_ms` (RG_ETIMEDOUT). Its graphs go on working.
 */
int rg_comm_rejoin(struct rg_comm *comm, int timeout_ms);

enum rg_notice_kind {
    RG_NOTICE_VIEW = 1, /* `epoch` is in force */
    RG_NOTICE_WAITING,  /* `slots` wait to be let in */
    RG_NOTICE_FAILED,   /* `slots` have failed and are members (RG_MODE) */
    RG_NOTICE_CLOSED    /* out of the group, `status` says why */
};

enum { RG_NOTICES_MAX = 64 };

struct rg_notice {
    enum rg_notice_kind kind;
    uint64_t epoch;
    int status;
    uint64_t slots[RG_SLOTS_MAX / 64]; /* a bitmap */
};
/*
 * The next in a queue, which keeps the newest RG_NOTICES_MAX; each says what is
 * so, and so makes up for older ones of its kind. RG_EPENDING after timeout_ms
 * without one.
 */
int rg_comm_next_notice(struct rg_comm *comm, int timeout_ms,
                        struct rg_notice *notice_out);

/* ---- collectives -------------------------------------------------------- */

/*
 * recv[i] = op over all active ranks of send[i], i < count, in stream order.
 * send == recv is in place; a partial overlap is RG_EINVAL. Pointers are
 * device pointers aligned to the element. count 0 does nothing and takes no
 * seq. Integers wrap; avg of integers truncates the wrapped sum's quotient.
 * f16 and bf16 accumulate in f32 and round to nearest even: once at the end
 * (one-shot algorithms), or at each hop (ring). Every rank gets the same bits.
 */
int rg_all_reduce(const void *send, void *recv, size_t count,
                  enum rg_dtype dtype, enum rg_op op, struct rg_comm *comm,
                  struct rg_stream *stream);

/*
 * For measuring what being recoverable costs: a sum without claim, deadline
 * and latch. It may only be called where nothing can fail. RG_ENOTSUP: not a
 * size that goes by packets in one block; on emu, more than 8 bytes a thread.
 */
int rg_all_reduce_bare(const void *send, void *recv, size_t count,
                       enum rg_dtype dtype, struct rg_comm *comm,
                       struct rg_stream *stream);

/*
 * Blocks go by slot: a buffer said to hold blocks has `capacity` of them
 * (rg_view_info), `count` elements each, and block s is that of slot s. Blocks
 * of slots that are not active are not read, and stay as they are. In place,
 * the smaller buffer is the own slot's block of the larger one, or both are
 * one where they are equal; all_to_all is never in place. A buffer that only
 * the root has, or only the others, is ignored elsewhere and may be null there.
 * RG_EINVAL: an operation not defined for the type (rg_op_fits), a root that
 * is no slot. With a root that is not active nothing is moved, at any rank, and
 * rg_comm_error() says RG_EUNAVAILABLE. RG_ENOTSUP: no algorithm was given for it.
 *
 * all_gather: recv is blocks, block s = send of slot s.
 * reduce_scatter: send is blocks, recv = op over all ranks of the own block.
 * all_to_all: both are blocks, block s of recv = the own block of slot s's
 * send. A barrier ends when all have begun it.
 */
int rg_all_gather(const void *send, void *recv, size_t count,
                  enum rg_dtype dtype, struct rg_comm *comm,
                  struct rg_stream *stream);
int rg_reduce_scatter(const void *send, void *recv, size_t count,
                      enum rg_dtype dtype, enum rg_op op, struct rg_comm *comm,
                      struct rg_stream *stream);
int rg_all_to_all(const void *send, void *recv, size_t count,
                  enum rg_dtype dtype, struct rg_comm *comm,
                  struct rg_stream *stream);
int rg_barrier(struct rg_comm *comm, struct rg_stream *stream);

/*
 * The same with a root, which is a slot.
 *
 * broadcast: recv = send of the root; send is the root's.
 * reduce: recv = op over all ranks of send; recv is the root's.
 * gather: recv is blocks and the root's, block s = send of slot s.
 * scatter: send is blocks and the root's, recv = the own block of it.
 */
int rg_broadcast(const void *send, void *recv, size_t count,
                 enum rg_dtype dtype, int root, struct rg_comm *comm,
                 struct rg_stream *stream);
int rg_reduce(const void *send, void *recv, size_t count, enum rg_dtype dtype,
              enum rg_op op, int root, struct rg_comm *comm,
              struct rg_stream *stream);
int rg_gather(const void *send, void *recv, size_t count, enum rg_dtype dtype,
              int root, struct rg_comm *comm, struct rg_stream *stream);
int rg_scatter(const void *send, void *recv, size_t count, enum rg_dtype dtype,
               int root, struct rg_comm *comm, struct rg_stream *stream);

/*
 * all_to_all with a count and a place for each pair. `layout` is device memory
 * aligned to its words, 4 x capacity of them, read when the invocation runs, so
 * a captured one follows its content. For each slot s, in elements:
 *
 *   layout[s]                 how many go to s
 *   layout[capacity + s]      where in send they start
 *   layout[2 * capacity + s]  how many come from s: as many as s says go here
 *   layout[3 * capacity + s]  where in recv they start
 *
 * `most` is the same at all ranks, and no count is larger: what is beyond it
 * is not moved. send and recv hold send_count and recv_count elements in all;
 * nothing beyond these is touched, whatever the layout says.
 * RG_ENOTSUP: the legacy backend, which has none.
 */
int rg_all_to_all_v(const void *send, size_t send_count, void *recv,
                    size_t recv_count, const uint64_t *layout, size_t most,
                    enum rg_dtype dtype, struct rg_comm *comm,
                    struct rg_stream *stream);

/*
 * Messages between two members. The n-th that one sends to the other is the
 * n-th that the other receives from it, and both say how large it is, in
 * whatever type; one of nothing is none. `slot` is the other end's. A message
 * is no invocation of the group's: it has no seq, and no other rank need know
 * of it. Small ones may end before the other end has begun, large ones wait for
 * it, bounded like any wait.
 *
 * Between begin and end sends and receives are gathered, in the order of the
 * calls, at most RG_GROUP_MAX; end launches them on begin's stream, where all
 * make progress at once, however they wait for each other. Outside, each is a
 * launch of its own. A message to the own slot wants both ends in one group,
 * and what is received into overlaps with nothing else of the group. RG_EINVAL:
 * one of them was wrong, and end launches none; also a null stream or another
 * than begin's. RG_ENOTSUP: the legacy backend, which has none. With a slot
 * that is not active nothing is moved, and rg_comm_error() says
 * RG_EUNAVAILABLE.
 */
int rg_group_begin(struct rg_comm *comm, struct rg_stream *stream);
int rg_group_end(struct rg_comm *comm);
int rg_send(const void *send, size_t count, enum rg_dtype dtype, int slot,
            struct rg_comm *comm, struct rg_stream *stream);
int rg_recv(void *recv, size_t count, enum rg_dtype dtype, int slot,
            struct rg_comm *comm, struct rg_stream *stream);

/*
 * Messages between this rank and the member in a slot, since both are members.
 * In a change of views the two ends agree on those that have ended at both;
 * all others are undone at both, so that the counts may go back to what was
 * agreed. All messages of a launch end together. A rank of whose messages some
 * have been undone hears of it by rg_comm_error(), RG_EABORTED, and until
 * rg_comm_clear_error() its launches of messages end at once and do nothing:
 * clear, read the counts, and go on from there.
 */
struct rg_messages {
    uint64_t sent, received;               /* that have ended here */
    uint64_t sent_agreed, received_agreed; /* by the last change */
};
/* RG_EINVAL: no such slot. RG_EPENDING: a change of views is under way.
 * RG_EISOLATED, RG_ECLOSED: out of the group. */
int rg_comm_messages(struct rg_comm *comm, int slot,
                     struct rg_messages *messages_out);

/*
 * For measuring routes and holding them to their contract: an invocation that
 * moves data by the transfer service alone, into the peers' workspace. It is
 * claimed, bounded, aborted, replayed and decided like a collective; all ranks
 * ask for the same. `request` and `report` are device memory, laid out as the
 * table's algorithm for it says (algos/transfer/request.h); the launch is made
 * for `bytes`. RG_ENOTSUP: the table has none. RG_EUNAVAILABLE: the view is one
 * of the legacy backend, and there are no routes.
 */
int rg_transfer_probe(const void *request, void *report, size_t bytes,
                      struct rg_comm *comm, struct rg_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
