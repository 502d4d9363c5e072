/*
 * From a rule to its algorithm: rg_algo_run(call, op, brief).
 *
 * Included once, by the collective's entry source, behind these definitions;
 * without them there is nothing in it:
 *
 *   RG_ALGO_LIST(X)     the algorithms in table order
 *   RG_ALGO_FN(name)    an algorithm's function: int (struct rg_call *,
 *                       enum rg_op), 0 or 1 for failed
 *   RG_ALGO_OPS(X)      the operations there are entries of
 *
 * On CUDA each algorithm is compiled apart, once for each operation, so that it
 * has all registers: inlined into one kernel, they keep each other's in memory.
 * On the emulated device the operation is a variable.
 */
#ifndef RG_DEVICE_CHOOSE_H
#define RG_DEVICE_CHOOSE_H

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

#if RG_ON_CUDA

#define RG_X(name)                                                             \
    template <int op>                                                          \
    RG_FN_APART int rg_algo_apart_##name(struct rg_call *call)                 \
    {                                                                          \
        return RG_ALGO_FN(name)(call, (enum rg_op)op);                         \
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

#else

RG_FN int rg_algo_run(struct rg_call *call, enum rg_op op, const int brief)
{
    (void)brief;
    return rg_algo_here(call, op);
}

#endif

#endif

#endif
