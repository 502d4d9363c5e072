/*
 * From a plan to its rule and algorithm: rg_algo_by_plan().
 *
 * Included once, by the collective's entry source, behind these definitions;
 * without them there is nothing in it:
 *
 *   RG_ALGO_LIST(X)     the algorithms in table order
 *   RG_ALGO_FN(name)    an algorithm's function: int (struct rg_call *,
 *                       enum rg_op), 0 or 1 for failed
 *   RG_ALGO_OPS(X)      the operations there are entries of
 *   RG_ALGO_COLL        the collective
 *   RG_ALGO_ALONE(call, op)  what a group of one rank does
 *
 * On CUDA each algorithm is compiled apart, once for each operation, so that it
 * has all registers: inlined into one kernel, they keep each other's in memory.
 * On the emulated device the operation is a variable.
 */
#ifndef RG_DEVICE_CHOOSE_H
#define RG_DEVICE_CHOOSE_H

#include "runtime/device/entry.h"
#include "runtime/device/transfer.h"

#ifdef RG_ALGO_LIST

#define RG_X(name) rg_algo_at_##name,
enum { RG_ALGO_LIST(RG_X) };
#undef RG_X

RG_FN int rg_algo_here(struct rg_call *call, enum rg_op op)
{
    switch (call->rule->algo) {
#define RG_X(name)                                                             \
    case rg_algo_at_##name:                                                    \
        return RG_ALGO_FN(name)(call, op);
        RG_ALGO_LIST(RG_X)
#undef RG_X
    default:
        return rg_fail(call, RG_EUNAVAILABLE, -1);
    }
}

/* What an invocation by the plan has found in it. */
struct rg_found {
    const struct rg_plan *plan;
    const struct rg_rule *rule;
    uint64_t run;
    int root;
    int runs; /* 0: it is over, with nothing done */
};

/* The plan in force; 0 from those that it aborted before they began here. */
RG_FN int rg_found_begins(struct rg_found *found,
                          const struct rg_launch *launch,
                          const struct rg_team *team,
                          const struct rg_open *open)
{
    found->plan = launch->comm->plan[open->plan];
    rg_plan_fetch(found->plan, RG_ALGO_COLL, team);
    return (int64_t)(open->hot.completed + 1 - found->plan->first_seq) >= 0;
}

/* The rule for a size. */
RG_FN void rg_found_rule(struct rg_found *found, enum rg_dtype dtype,
                         uint64_t bytes)
{
    found->rule = rg_rule_for(found->plan, RG_ALGO_COLL, dtype, bytes);
    found->run = RG_RUN(RG_ALGO_COLL, found->rule->algo, found->rule->channels,
                        found->plan->epoch);
    found->runs = 1;
}

RG_FN void rg_call_found(struct rg_call *call, const struct rg_found *found)
{
    call->plan = found->plan;
    call->rule = found->rule;
    call->root = found->root;
    if (found->rule)
        call->workspace = found->plan->workspace +
                          found->plan->offset[RG_ALGO_COLL][found->rule->algo];
}

#if RG_ON_CUDA

/* 1: the name ends so. */
RG_FN constexpr int rg_name_ends(const char *name, const char *end)
{
    int n = 0, m = 0;

    while (name[n])
        n++;
    while (end[m])
        m++;
    while (n > 0 && m > 0 && name[n - 1] == end[m - 1]) {
        n--;
        m--;
    }
    return m == 0;
}

#define RG_X(name)                                                             \
    template <int op>                                                          \
    RG_FN_APART int rg_algo_apart_##name(struct rg_call *call)                 \
    {                                                                          \
        if constexpr (!rg_name_ends(#name, "_ll128"))                          \
            return RG_ALGO_FN(name)(call, (enum rg_op)op);                     \
        return rg_fail(call, RG_EUNAVAILABLE, -1);                             \
    }
RG_ALGO_LIST(RG_X)
#undef RG_X

template <int op> RG_FN int rg_algo_of(struct rg_call *call)
{
    switch (call->rule->algo) {
#define RG_X(name)                                                             \
    case rg_algo_at_##name:                                                    \
        return rg_algo_apart_##name<op>(call);
        RG_ALGO_LIST(RG_X)
#undef RG_X
    default:
        return rg_fail(call, RG_EUNAVAILABLE, -1);
    }
}

/*
 * The operation is a constant, and so is `brief`: where an algorithm is only
 * for what is rare, it is inlined, which spares the compiler much work.
 */
RG_FN int rg_algo_run(struct rg_call *call, enum rg_op op, const int brief)
{
    if (brief)
        return rg_algo_here(call, op);
    switch (op) {
#define RG_X(op)                                                               \
    case RG_##op:                                                              \
        return rg_algo_of<RG_##op>(call);
        RG_ALGO_OPS(RG_X)
#undef RG_X
    default:
        RG_TRAP();
    }
}

/*
 * LL128's algorithms are short, and what a call takes to reach memory counts:
 * they are inlined, each with a call that stays in registers.
 */
RG_FN int rg_algo_is_light(const struct rg_found *found)
{
    switch (found->rule->algo) {
#define RG_X(name)                                                             \
    case rg_algo_at_##name:                                                    \
        return rg_name_ends(#name, "_ll128");
        RG_ALGO_LIST(RG_X)
#undef RG_X
    default:
        return 0;
    }
}

RG_FN int rg_algo_run_light(struct rg_call *call, enum rg_op op)
{
    switch (call->rule->algo) {
#define RG_X(name)                                                             \
    case rg_algo_at_##name:                                                    \
        if constexpr (rg_name_ends(#name, "_ll128"))                           \
            return RG_ALGO_FN(name)(call, op);                                 \
        break;
        RG_ALGO_LIST(RG_X)
#undef RG_X
    }
    return rg_fail(call, RG_EUNAVAILABLE, -1);
}

#else

RG_FN int rg_algo_is_light(const struct rg_found *found)
{
    (void)found;
    return 0;
}

RG_FN int rg_algo_run_light(struct rg_call *call, enum rg_op op)
{
    return rg_algo_here(call, op);
}

RG_FN int rg_algo_run(struct rg_call *call, enum rg_op op, const int brief)
{
    (void)brief;
    return rg_algo_here(call, op);
}

#endif

/* ---- a launch that goes by the plan -------------------------------------- */

/* 0, or 1 for failed. */
RG_FN int rg_algo_found(struct rg_call *call, enum rg_op op, const int brief,
                        const struct rg_found *found)
{
    rg_call_found(call, found);
    if (!found->runs)
        return 0;
    if (found->plan->nranks > 1)
        return rg_algo_run(call, op, brief);
    RG_ALGO_ALONE(call, op);
    return 0;
}

RG_FN void rg_algo_light(const struct rg_launch *launch,
                         const struct rg_team *team, const struct rg_open *open,
                         enum rg_op op, const struct rg_found *found)
{
    struct rg_call call = rg_call_of(launch, team, open);

    rg_call_found(&call, found);
    rg_close(&call, open, rg_algo_run_light(&call, op), found->run);
}

RG_FN void rg_algo_heavy(const struct rg_launch *launch,
                         const struct rg_team *team, const struct rg_open *open,
                         enum rg_op op, const int brief,
                         const struct rg_found *found)
{
    struct rg_call call = rg_call_of(launch, team, open);
    const int failed = open->granted ? rg_algo_found(&call, op, brief, found)
                                     : rg_fail(&call, RG_EABORTED, -1);

    rg_close(&call, open, failed, found->run);
}

/*
 * Every thread of a joined team; `found` is zero where the launch may only
 * close. Each way has a call of its own: one that calls are made with is in
 * memory.
 */
RG_FN void rg_algo_by_plan(const struct rg_launch *launch,
                           const struct rg_team *team,
                           const struct rg_open *open, enum rg_op op,
                           const int brief, const struct rg_found *found)
{
    if (!brief && found->runs && found->plan->nranks > 1 &&
        rg_algo_is_light(found))
        rg_algo_light(launch, team, open, op, found);
    else
        rg_algo_heavy(launch, team, open, op, brief, found);
}

#endif

#endif
