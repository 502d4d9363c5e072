/*
 * All-reduce entries of one data type (-DRG_ENTRY_DTYPE), for the device of
 * the compiler at hand: the frame, the switch over the algorithms, and one
 * entry per operation.
 */
#include "algos/all_reduce/all_reduce.h"
#include "algos/all_reduce/all_reduce_oneshot.c"
#include "algos/all_reduce/all_reduce_oneshot_ll.c"
#include "algos/all_reduce/all_reduce_ring.c"
#include "runtime/device/entry.h"

/* One rank: the result is the input, whatever the operation. */
RG_FN void all_reduce_alone(struct rg_call *call)
{
    uint64_t begin, end;

    rg_share_elems(call->count, call->team.index, call->team.count, &begin,
                   &end);
    if (call->send != call->recv)
        rg_team_copy(&call->team, (rg_elem *)call->recv + begin,
                     (const rg_elem *)call->send + begin,
                     (end - begin) * sizeof(rg_elem));
}

RG_FN int all_reduce_switch(struct rg_call *call, enum rg_op op)
{
    switch (call->rule->algo) {
#define RG_X(name)                                                             \
    case RG_ALL_REDUCE_##name:                                                 \
        return all_reduce_##name(call, op);
        RG_ALL_REDUCE_LIST(RG_X)
#undef RG_X
    default:
        return rg_fail(call, RG_EUNAVAILABLE, -1);
    }
}

/* The plan's algorithm for this size, any number of teams. */
RG_FN int all_reduce_planned(struct rg_call *call, enum rg_op op,
                             uint64_t *run_out)
{
    const struct rg_plan *plan = call->dev->plan[call->index];
    const uint64_t bytes = call->count * sizeof(rg_elem);

    call->plan = plan;
    call->rule = rg_rule_for(plan, RG_COLL_all_reduce,
                             RG_CAT(RG_, RG_ENTRY_DTYPE), bytes);
    call->workspace =
        plan->workspace + plan->offset[RG_COLL_all_reduce][call->rule->algo];
    *run_out = RG_RUN(call->rule->algo, call->rule->channels, plan->epoch);
    if (plan->nranks > 1)
        return all_reduce_switch(call, op);
    all_reduce_alone(call);
    return 0;
}

/* Whatever the claim and the size ask for. Every thread. */
RG_FN void all_reduce_any(const struct rg_open *open, struct rg_call *call,
                          enum rg_op op, const struct all_reduce_packets *ahead)
{
    const struct rg_hot_plan *hot = &open->hot->plan[open->plan];
    uint64_t run = 0;
    int failed = 0;

    if (!open->granted) {
        failed = rg_fail(call, RG_EABORTED, -1);
    } else if ((int64_t)(call->seq - hot->first_seq) < 0) {
        /* Aborted for the group before it was launched here. */
    } else if (call->count * sizeof(rg_elem) <= hot->packet_max_bytes) {
        run = RG_RUN(RG_ALL_REDUCE_oneshot_ll, call->team.count, hot->epoch);
        failed = all_reduce_packets_hot(call, op, hot, ahead);
    } else {
        failed = all_reduce_planned(call, op, &run);
    }
    rg_close(call, open, failed, run);
}

/* The same out of line, for a kernel that is made for packets. */
RG_FN_COLD void all_reduce_other(const struct rg_launch *launch,
                                 struct rg_team team, uint64_t bits,
                                 enum rg_op op)
{
    const struct rg_open open = rg_open_of(&launch->comm->hot, bits);
    const struct all_reduce_packets ahead =
        all_reduce_packets_ahead(&team, launch->send, launch->count);
    struct rg_call call = rg_call_of(launch, &team, &open);

    all_reduce_any(&open, &call, op, &ahead);
}

RG_FN void all_reduce_entry(const struct rg_launch *launch,
                            struct rg_team *team, enum rg_op op)
{
    const struct rg_opening opening = rg_open_begin(launch, team);
    const struct all_reduce_packets ahead =
        all_reduce_packets_ahead(team, launch->send, launch->count);
    const struct rg_open open = rg_open_end(launch, team, &opening);
    struct rg_call call;

    if (!open.joined)
        return;
    call = rg_call_of(launch, team, &open);
    all_reduce_any(&open, &call, op, &ahead);
}

/* 1: it runs now, and by the packets of the hot line. */
RG_FN int all_reduce_is_hot(const struct rg_open *open,
                            const struct rg_call *call,
                            const struct rg_hot_plan *hot)
{
    return open->granted && (int64_t)(call->seq - hot->first_seq) >= 0 &&
           call->count * sizeof(rg_elem) <= hot->packet_max_bytes;
}

/*
 * The entry of small sizes: one team, and nothing in the way of packets. A
 * small invocation takes as long as its instructions are many, so all that is
 * rare is in functions of its own.
 */
RG_FN void all_reduce_small_entry(const struct rg_launch *launch,
                                  struct rg_team *team, enum rg_op op)
{
    const struct rg_opening opening = rg_open_begin(launch, team);
    const struct all_reduce_packets ahead =
        all_reduce_packets_ahead(team, launch->send, launch->count);
    const struct rg_open open = rg_open_end(launch, team, &opening);
    const struct rg_hot_plan *hot = &open.hot->plan[open.plan];
    struct rg_call call;

    if (!open.joined)
        return;
    call = rg_call_of(launch, team, &open);
    if (RG_RARE(!all_reduce_is_hot(&open, &call, hot))) {
        all_reduce_other(launch, *team, open.bits, op);
        return;
    }
    rg_close(&call, &open, all_reduce_packets_hot(&call, op, hot, &ahead),
             RG_RUN(RG_ALL_REDUCE_oneshot_ll, 1, hot->epoch));
}

/* What a benchmark compares the entry with; sizes of the hot path only. */
RG_FN void all_reduce_bare(const struct rg_launch *launch, struct rg_team *team)
{
    const struct all_reduce_packets ahead =
        all_reduce_packets_ahead(team, launch->send, launch->count);
    const struct rg_open open = rg_open_bare(launch);
    const struct rg_hot_plan *hot = &open.hot->plan[open.plan];
    struct rg_call call = rg_call_of(launch, team, &open);

    call.unbounded = 1;
    all_reduce_packets_hot(&call, RG_sum, hot, &ahead);
    rg_close_bare(&call, &open,
                  RG_RUN(RG_ALL_REDUCE_oneshot_ll, 1, hot->epoch));
}

#if RG_ON_CUDA

enum { RG_SMALL_THREADS = 1024, RG_LARGE_THREADS = 512 };

#define RG_X(op)                                                               \
    static __global__ void __launch_bounds__(RG_SMALL_THREADS, 1)              \
        RG_CAT(RG_CAT(all_reduce_small_, RG_ENTRY_DTYPE),                      \
               _##op)(const __grid_constant__ struct rg_launch launch)         \
    {                                                                          \
        struct rg_team team = rg_team_here(1);                                 \
        all_reduce_small_entry(&launch, &team, RG_##op);                       \
    }                                                                          \
    static __global__ void __launch_bounds__(RG_LARGE_THREADS, 1)              \
        RG_CAT(RG_CAT(all_reduce_large_, RG_ENTRY_DTYPE),                      \
               _##op)(const __grid_constant__ struct rg_launch launch)         \
    {                                                                          \
        struct rg_team team = rg_team_here(0);                                 \
        all_reduce_entry(&launch, &team, RG_##op);                             \
    }
RG_OP_LIST(RG_X)
#undef RG_X

static __global__ void __launch_bounds__(RG_SMALL_THREADS, 1)
    RG_CAT(all_reduce_bare_,
           RG_ENTRY_DTYPE)(const __grid_constant__ struct rg_launch launch)
{
    struct rg_team team = rg_team_here(1);
    all_reduce_bare(&launch, &team);
}

#define RG_X(op)                                                               \
    {(const void *)RG_CAT(RG_CAT(all_reduce_small_, RG_ENTRY_DTYPE), _##op),   \
     (const void *)RG_CAT(RG_CAT(all_reduce_large_, RG_ENTRY_DTYPE), _##op),   \
     RG_##op == RG_sum                                                         \
         ? (const void *)RG_CAT(all_reduce_bare_, RG_ENTRY_DTYPE)              \
         : nullptr},
extern "C" {
extern const struct rg_cuda_entry RG_CAT(rg_all_reduce_cuda_,
                                         RG_ENTRY_DTYPE)[RG_OP_COUNT];
const struct rg_cuda_entry RG_CAT(rg_all_reduce_cuda_,
                                  RG_ENTRY_DTYPE)[RG_OP_COUNT] = {
    RG_OP_LIST(RG_X)};
}
#undef RG_X

#else

#define RG_X(op)                                                               \
    static void RG_CAT(all_reduce_, op)(const struct rg_launch *launch,        \
                                        struct rg_team *team)                  \
    {                                                                          \
        all_reduce_entry(launch, team, RG_##op);                               \
    }
RG_OP_LIST(RG_X)
#undef RG_X

#define RG_X(op) RG_CAT(all_reduce_, op),
extern const rg_emu_entry RG_CAT(rg_all_reduce_emu_,
                                 RG_ENTRY_DTYPE)[RG_OP_COUNT];
const rg_emu_entry RG_CAT(rg_all_reduce_emu_,
                          RG_ENTRY_DTYPE)[RG_OP_COUNT] = {RG_OP_LIST(RG_X)};
#undef RG_X

extern void RG_CAT(rg_all_reduce_bare_,
                   RG_ENTRY_DTYPE)(const struct rg_launch *launch,
                                   struct rg_team *team);
void RG_CAT(rg_all_reduce_bare_, RG_ENTRY_DTYPE)(const struct rg_launch *launch,
                                                 struct rg_team *team)
{
    all_reduce_bare(launch, team);
}

#endif
