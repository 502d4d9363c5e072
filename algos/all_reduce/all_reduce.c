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
    const struct rg_plan *plan = call->plan;
    const uint64_t bytes = call->count * sizeof(rg_elem);

    call->rule = rg_rule_for(plan, RG_COLL_all_reduce, bytes);
    call->workspace =
        plan->workspace + plan->offset[RG_COLL_all_reduce][call->rule->algo];
    *run_out = RG_RUN(call->rule->algo, call->rule->channels, plan->epoch);
    if (plan->nranks > 1)
        return all_reduce_switch(call, op);
    all_reduce_alone(call);
    return 0;
}

/* The plan's way, out of line: the hot path stays short and in registers. */
RG_FN_COLD int all_reduce_planned_cold(const struct rg_call *call,
                                       enum rg_op op, uint64_t *run_out,
                                       uint64_t *packet_cursor_out)
{
    struct rg_call copy = *call;
    const int failed = all_reduce_planned(&copy, op, run_out);

    *packet_cursor_out = copy.packet_cursor;
    return failed | copy.refused;
}

/*
 * Sizes that the hot line's plan gives to packets take the hot path.
 * `hot_only`: the caller's kernel is made for it, others go out of line.
 */
RG_FN int all_reduce_run(struct rg_call *call, enum rg_op op,
                         const struct rg_hot_plan *hot,
                         const struct all_reduce_packets *ahead,
                         const int hot_only, uint64_t *run_out)
{
    if (call->count * sizeof(rg_elem) <= hot->packet_max_bytes) {
        *run_out =
            RG_RUN(RG_ALL_REDUCE_oneshot_ll, call->team.count, hot->epoch);
        return all_reduce_packets_hot(call, op, hot, ahead);
    }
    if (hot_only) {
        const struct rg_call copy = *call;
        uint64_t cursor;
        const int failed = all_reduce_planned_cold(&copy, op, run_out, &cursor);

        call->packet_cursor = cursor;
        return failed;
    }
    return all_reduce_planned(call, op, run_out);
}

RG_FN void all_reduce_entry(const struct rg_launch *launch,
                            struct rg_team *team, enum rg_op op,
                            const int hot_only)
{
    const struct all_reduce_packets ahead =
        all_reduce_packets_ahead(team, launch->send, launch->count);
    const struct rg_open open = rg_open(launch, team);
    const struct rg_hot_plan *hot = &open.hot->plan[open.plan];
    struct rg_call call;
    uint64_t run = 0;
    int failed = 0;

    if (!open.joined)
        return;
    call = rg_call_of(launch, team, &open);
    if (!open.granted)
        failed = rg_fail(&call, RG_EABORTED, -1);
    else if ((int64_t)(call.seq - hot->first_seq) >= 0)
        failed = all_reduce_run(&call, op, hot, &ahead, hot_only, &run);
    rg_close(&call, &open, failed, run);
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
        struct rg_team team = rg_team_here();                                  \
        all_reduce_entry(&launch, &team, RG_##op, 1);                          \
    }                                                                          \
    static __global__ void __launch_bounds__(RG_LARGE_THREADS, 1)              \
        RG_CAT(RG_CAT(all_reduce_large_, RG_ENTRY_DTYPE),                      \
               _##op)(const __grid_constant__ struct rg_launch launch)         \
    {                                                                          \
        struct rg_team team = rg_team_here();                                  \
        all_reduce_entry(&launch, &team, RG_##op, 0);                          \
    }
RG_OP_LIST(RG_X)
#undef RG_X

static __global__ void __launch_bounds__(RG_SMALL_THREADS, 1)
    RG_CAT(all_reduce_bare_,
           RG_ENTRY_DTYPE)(const __grid_constant__ struct rg_launch launch)
{
    struct rg_team team = rg_team_here();
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
        all_reduce_entry(launch, team, RG_##op, 0);                            \
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
