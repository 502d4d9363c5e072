/*
 * The frame of a collective whose invocations all go by the plan: what
 * entry.h has, the switch over the algorithms, and the entries of one type.
 *
 * Included once, by the collective's entry source, behind these definitions;
 * without them there is nothing in it:
 *
 *   RG_FRAME          the collective's name, as in RG_COLLECTIVE_LIST
 *   RG_FRAME_LIST(X)  its algorithms in table order
 *   RG_FRAME_REDUCES  1: an entry for each operation of the type; 0: one entry
 *   <frame>_<name>(struct rg_call *, enum rg_op)  the algorithms: 0, or 1 for
 *                     failed; the operation of collectives that have none
 *                     means nothing
 *   <frame>_alone(struct rg_call *, enum rg_op)   for a group of one rank
 *   RG_FRAME_SMALL    1: it is one of RG_HOT_LIST, and small blocks go by the
 *                     hot line, as its first algorithm does, by
 *   <frame>_small(struct rg_call *, enum rg_op, const struct rg_hot *)
 *                     0, or 1 for failed
 *   <frame>_try(const struct rg_launch *, struct rg_team *, enum rg_op,
 *               uint64_t *claim_out)
 *                     with a unit a thread: 0, or 1 for not over yet
 */
#ifndef RG_DEVICE_FRAME_H
#define RG_DEVICE_FRAME_H

#include "runtime/device/elem.h"
#include "runtime/device/entry.h"

#ifdef RG_FRAME

#define RG_FRAME_NAME(tail) RG_CAT(RG_FRAME, tail)
#define RG_FRAME_COLL       RG_CAT(RG_COLL_, RG_FRAME)

#if RG_FRAME_REDUCES
#define RG_FRAME_BUILT(X)       RG_BUILT_LIST(X)
#define RG_FRAME_TABLE(NONE, X) RG_TABLE_LIST(NONE, X)
#else
#define RG_FRAME_BUILT(X)       X(sum)
#define RG_FRAME_TABLE(NONE, X) X(sum)
#endif

#define RG_ALGO_LIST(X)         RG_FRAME_LIST(X)
#define RG_ALGO_FN(name)        RG_FRAME_NAME(_##name)
#define RG_ALGO_OPS(X)          RG_FRAME_BUILT(X)
#define RG_ALGO_COLL            RG_FRAME_COLL
#define RG_ALGO_ALONE(call, op) RG_FRAME_NAME(_alone)(call, op)
#include "runtime/device/choose.h"

RG_FN int rg_frame_rooted(enum rg_collective collective)
{
    return collective == RG_COLL_broadcast || collective == RG_COLL_reduce ||
           collective == RG_COLL_gather || collective == RG_COLL_scatter;
}

/*
 * What the view cannot serve at any rank ends at all alike, with nothing done
 * and a note for the host.
 */
RG_FN void rg_frame_decline(const struct rg_comm_dev *dev,
                            const struct rg_team *team)
{
    uint64_t *declined = &dev->mailbox->declined;

    if (team->index == 0 && team->thread == 0)
        rg_store_relaxed(declined, rg_load_relaxed(declined) + 1);
}

/* The plan's rule for this size. */
RG_FN struct rg_found rg_frame_find(const struct rg_launch *launch,
                                    const struct rg_team *team,
                                    const struct rg_open *open)
{
    struct rg_found found = {0, 0, 0, 0, 0};

    if (!open->granted || !rg_found_begins(&found, launch, team, open))
        return found;
    if (rg_frame_rooted(RG_FRAME_COLL))
        found.root = rg_plan_rank(found.plan, launch->root);
    if (found.root < 0 || !found.plan->rules[RG_FRAME_COLL].count)
        rg_frame_decline(launch->comm, team);
    else
        rg_found_rule(&found, (enum rg_dtype)launch->dtype,
                      launch->count * sizeof(rg_elem) *
                          rg_rule_blocks(RG_FRAME_COLL, (int)launch->slots));
    return found;
}

/* Of an invocation by the hot line, but for the epoch. */
#define RG_FRAME_SMALL_RUN(teams) RG_RUN(RG_FRAME_COLL, 0, teams, 0)

/* By the hot line, if it serves the size: the same at all ranks. 1: it did. */
RG_FN int rg_frame_by_line(const struct rg_launch *launch,
                           const struct rg_team *team,
                           const struct rg_open *open, enum rg_op op)
{
#if RG_FRAME_SMALL
    const uint64_t units = rg_hot_units(&open->hot, RG_CAT(RG_HOT_, RG_FRAME));
    struct rg_call call;

    if (!open->granted ||
        launch->count * sizeof(rg_elem) > units * RG_PACKET_PAYLOAD)
        return 0;
    call = rg_call_of(launch, team, open);
    rg_close(&call, open, RG_FRAME_NAME(_small)(&call, op, &open->hot),
             RG_FRAME_SMALL_RUN(call.team.count) | (uint32_t)open->hot.run);
    return 1;
#else
    (void)launch;
    (void)team;
    (void)open;
    (void)op;
    return 0;
#endif
}

RG_FN_SHARED void rg_frame_any(const struct rg_launch *launch,
                               const struct rg_team *team,
                               const struct rg_open *open, enum rg_op op,
                               const int brief)
{
    struct rg_found found;

    if (rg_frame_by_line(launch, team, open, op))
        return;
    found = rg_frame_find(launch, team, open);
    rg_algo_by_plan(launch, team, open, op, brief, &found);
}

RG_FN void rg_frame_entry(const struct rg_launch *launch, struct rg_team *team,
                          enum rg_op op)
{
    const struct rg_opening opening = rg_open_begin(launch->comm, team);
    const struct rg_open open = rg_open_end(launch->comm, team, &opening);

    if (open.joined)
        rg_frame_any(launch, team, &open, op, 0);
}

#if RG_FRAME_SMALL

/* What a launch of one team has left undone, by the claim that it has made. */
RG_FN_COLD void rg_frame_rare(const struct rg_launch *launch,
                              struct rg_team team, uint64_t claim,
                              enum rg_op op)
{
    struct rg_open open;

    /* Said once more, for it is compiled apart from where they are set. */
    team.index = 0;
    team.count = 1;
    team.brief = 1;
    open = rg_open_rare(launch->comm, &team, claim);
    if (open.joined)
        rg_frame_any(launch, &team, &open, op, 1);
}

/* 1: each thread has a unit at most. */
RG_FN int rg_frame_is_small(const struct rg_launch *launch,
                            const struct rg_team *team)
{
    return launch->count * sizeof(rg_elem) <=
           (uint64_t)team->threads * RG_PACKET_PAYLOAD;
}

/* The entry of one team: all that is rare is out of line. */
RG_FN void rg_frame_small(const struct rg_launch *launch, struct rg_team *team,
                          enum rg_op op)
{
    uint64_t claim;

    if (!rg_frame_is_small(launch, team))
        claim = rg_claim(launch->comm, team);
    else if (!RG_FRAME_NAME(_try)(launch, team, op, &claim))
        return;
    rg_frame_rare(launch, *team, claim, op);
}

#endif

#if RG_ON_CUDA

enum { RG_FRAME_THREADS = 512, RG_FRAME_SMALL_THREADS = 1024 };

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

#if RG_FRAME_SMALL

#define RG_FRAME_SMALL_SYMBOL(op) RG_CAT(RG_FRAME_SYMBOL(op), _small)
#define RG_X(op)                                                               \
    static __global__ void __launch_bounds__(RG_FRAME_SMALL_THREADS, 1)        \
        RG_FRAME_SMALL_SYMBOL(op)(                                             \
            const __grid_constant__ struct rg_launch launch)                   \
    {                                                                          \
        struct rg_team team = rg_team_here(1, 0);                              \
        rg_frame_small(&launch, &team, RG_##op);                               \
    }
RG_FRAME_BUILT(RG_X)
#undef RG_X
#else
/* One kernel serves every launch. */
#define RG_FRAME_SMALL_SYMBOL(op) RG_FRAME_SYMBOL(op)
#endif

#define RG_NONE(op) {nullptr, nullptr, nullptr},
#define RG_X(op)                                                               \
    {(const void *)RG_FRAME_SMALL_SYMBOL(op),                                  \
     (const void *)RG_FRAME_SMALL_SYMBOL(op),                                  \
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

#if RG_FRAME_SMALL
RG_FN void rg_frame_run(const struct rg_launch *launch, struct rg_team *team,
                        enum rg_op op)
{
    if (team->count == 1 && rg_frame_is_small(launch, team))
        rg_frame_small(launch, team, op);
    else
        rg_frame_entry(launch, team, op);
}
#define RG_FRAME_RUN rg_frame_run
#else
#define RG_FRAME_RUN rg_frame_entry
#endif

#define RG_X(op)                                                               \
    static void RG_FRAME_NAME(_run_##op)(const struct rg_launch *launch,       \
                                         struct rg_team *team)                 \
    {                                                                          \
        RG_FRAME_RUN(launch, team, RG_##op);                                   \
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

#endif
