/*
 * The frame of a collective whose invocations all go by the plan: what
 * entry.h has, the switch over the algorithms, and the entries of one type.
 *
 * Included once, by the collective's entry source, behind these definitions:
 *
 *   RG_FRAME          the collective's name, as in RG_COLLECTIVE_LIST
 *   RG_FRAME_LIST(X)  its algorithms in table order
 *   RG_FRAME_REDUCES  1: an entry for each operation of the type; 0: one entry
 *   <frame>_<name>(struct rg_call *, enum rg_op)  the algorithms: 0, or 1 for
 *                     failed; the operation of collectives that have none
 *                     means nothing
 *   <frame>_alone(struct rg_call *, enum rg_op)   for a group of one rank
 */
#ifndef RG_DEVICE_FRAME_H
#define RG_DEVICE_FRAME_H

#include "runtime/device/elem.h"
#include "runtime/device/entry.h"

#define RG_FRAME_NAME(tail) RG_CAT(RG_FRAME, tail)
#define RG_FRAME_COLL       RG_CAT(RG_COLL_, RG_FRAME)

#define RG_X(name) RG_FRAME_NAME(_is_##name),
enum { RG_FRAME_LIST(RG_X) };
#undef RG_X

/* The dense rank in a slot; -1: the slot is not active. */
RG_FN int rg_frame_rank(const struct rg_plan *plan, uint32_t slot)
{
    for (int r = 0; r < (int)plan->nranks; r++)
        if (plan->routes[r].slot == slot)
            return r;
    return -1;
}

RG_FN int rg_frame_rooted(enum rg_collective collective)
{
    return collective == RG_COLL_broadcast || collective == RG_COLL_reduce ||
           collective == RG_COLL_gather || collective == RG_COLL_scatter;
}

RG_FN int rg_frame_switch(struct rg_call *call, enum rg_op op)
{
    switch (call->rule->algo) {
#define RG_X(name)                                                             \
    case RG_FRAME_NAME(_is_##name):                                            \
        return RG_FRAME_NAME(_##name)(call, op);
        RG_FRAME_LIST(RG_X)
#undef RG_X
    default:
        return rg_fail(call, RG_EUNAVAILABLE, -1);
    }
}

/*
 * What the view cannot serve at any rank ends at all alike, with nothing done
 * and a note for the host.
 */
RG_FN void rg_frame_decline(const struct rg_call *call)
{
    uint64_t *declined = &call->dev->mailbox->declined;

    if (call->team.index == 0 && call->team.thread == 0)
        rg_store_relaxed(declined, rg_load_relaxed(declined) + 1);
}

/* The plan's algorithm for this size. 0, or 1 for failed. */
RG_FN int rg_frame_planned(struct rg_call *call, enum rg_op op,
                           uint64_t *run_out)
{
    const struct rg_launch *launch = call->launch;
    const struct rg_plan *plan = call->dev->plan[call->index];

    call->plan = plan;
    /* Aborted for the group before it was launched here. */
    if ((int64_t)(call->seq - plan->first_seq) < 0)
        return 0;
    if (rg_frame_rooted(RG_FRAME_COLL))
        call->root = rg_frame_rank(plan, launch->root);
    if (call->root < 0 || !plan->rules[RG_FRAME_COLL].count) {
        rg_frame_decline(call);
        return 0;
    }
    call->rule =
        rg_rule_for(plan, RG_FRAME_COLL, (enum rg_dtype)launch->dtype,
                    call->count * sizeof(rg_elem) *
                        rg_rule_blocks(RG_FRAME_COLL, (int)launch->slots));
    call->workspace =
        plan->workspace + plan->offset[RG_FRAME_COLL][call->rule->algo];
    *run_out = RG_RUN(RG_FRAME_COLL, call->rule->algo, call->rule->channels,
                      plan->epoch);
    if (plan->nranks > 1)
        return rg_frame_switch(call, op);
    RG_FRAME_NAME(_alone)(call, op);
    return 0;
}

RG_FN void rg_frame_entry(const struct rg_launch *launch, struct rg_team *team,
                          enum rg_op op)
{
    const struct rg_opening opening = rg_open_begin(launch->comm, team);
    const struct rg_open open = rg_open_end(launch->comm, team, &opening);
    struct rg_call call;
    uint64_t run = 0;
    int failed;

    if (!open.joined)
        return;
    call = rg_call_of(launch, team, &open);
    failed = open.granted ? rg_frame_planned(&call, op, &run)
                          : rg_fail(&call, RG_EABORTED, -1);
    rg_close(&call, &open, failed, run);
}

#if RG_FRAME_REDUCES
#define RG_FRAME_BUILT(X)       RG_BUILT_LIST(X)
#define RG_FRAME_TABLE(NONE, X) RG_TABLE_LIST(NONE, X)
#else
#define RG_FRAME_BUILT(X)       X(sum)
#define RG_FRAME_TABLE(NONE, X) X(sum)
#endif

#if RG_ON_CUDA

enum { RG_FRAME_THREADS = 512 };

#define RG_FRAME_SYMBOL(op)                                                    \
    RG_CAT(RG_FRAME_NAME(_), RG_CAT(RG_CAT(RG_ENTRY_DTYPE, _), op))
#define RG_X(op)                                                               \
    static __global__ void __launch_bounds__(RG_FRAME_THREADS, 1)              \
        RG_FRAME_SYMBOL(op)(const __grid_constant__ struct rg_launch launch)   \
    {                                                                          \
        struct rg_team team = rg_team_here(0, 0);                              \
        rg_frame_entry(&launch, &team, RG_##op);                               \
    }
RG_FRAME_BUILT(RG_X)
#undef RG_X

/* One kernel serves every launch. */
#define RG_NONE(op) {nullptr, nullptr, nullptr},
#define RG_X(op)                                                               \
    {(const void *)RG_FRAME_SYMBOL(op), (const void *)RG_FRAME_SYMBOL(op),     \
     (const void *)RG_FRAME_SYMBOL(op)},
#define RG_ENTRIES_HERE                                                        \
    RG_CAT(rg_, RG_CAT(RG_FRAME_NAME(_cuda_), RG_ENTRY_DTYPE))
extern "C" {
extern const struct rg_cuda_entries RG_ENTRIES_HERE;
const struct rg_cuda_entries RG_ENTRIES_HERE = {{RG_FRAME_TABLE(RG_NONE, RG_X)},
                                                {nullptr, nullptr, nullptr}};
}
#undef RG_X
#undef RG_NONE

#else

#define RG_X(op)                                                               \
    static void RG_FRAME_NAME(_run_##op)(const struct rg_launch *launch,       \
                                         struct rg_team *team)                 \
    {                                                                          \
        rg_frame_entry(launch, team, RG_##op);                                 \
    }
RG_FRAME_BUILT(RG_X)
#undef RG_X

#define RG_NONE(op) NULL,
#define RG_X(op)    RG_FRAME_NAME(_run_##op),
#define RG_ENTRIES_HERE                                                        \
    RG_CAT(rg_, RG_CAT(RG_FRAME_NAME(_emu_), RG_ENTRY_DTYPE))
extern const struct rg_emu_entries RG_ENTRIES_HERE;
const struct rg_emu_entries RG_ENTRIES_HERE = {{RG_FRAME_TABLE(RG_NONE, RG_X)},
                                               NULL};
#undef RG_X
#undef RG_NONE

#endif

#endif
