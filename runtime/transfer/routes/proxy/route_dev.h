/*
 * Host proxy route, device side: payload goes into a stage, then a command
 * into the lane's FIFO (device/proxy.h). The caller has checked the bounds.
 */
#ifndef RG_ROUTE_PROXY_DEV_H
#define RG_ROUTE_PROXY_DEV_H

#include "runtime/device/call.h"
#include "runtime/device/copy.h"
#include "runtime/device/proxy.h"
#include "runtime/device/route.h"

/* Where a command goes, and what comes behind its payload. */
struct rg_proxy_target {
    uint64_t queue;  /* the route's */
    int peer;        /* dense rank */
    int lane;        /* of the FIFO */
    uint64_t signal; /* offset, or none */
    enum rg_signal_op op;
    uint64_t value;
};

RG_FN struct rg_proxy_fifo *rg_proxy_of(const struct rg_call *call)
{
    return call->dev->plan[call->index]->proxy;
}

RG_FN struct rg_proxy_target rg_proxy_target(const struct rg_call *call,
                                             const struct rg_route *route,
                                             int peer, int lane)
{
    const struct rg_proxy_target target = {
        route->queue,  peer,          lane % (int)rg_proxy_of(call)->lanes,
        RG_PROXY_NONE, RG_SIGNAL_SET, 0};

    return target;
}

/* One thread. 0, or 1 for failed; so are those below. */
RG_FN int rg_proxy_post(struct rg_call *call,
                        const struct rg_proxy_target *target, uint64_t offset,
                        uint64_t stage, uint64_t bytes)
{
    struct rg_proxy_lane *lane = &rg_proxy_of(call)->lane[target->lane];
    const uint64_t index =
        rg_add_relaxed_dev(&call->dev->proxy_heads[target->lane].commands, 1);
    struct rg_proxy_command *command = &lane->command[index % RG_PROXY_DEPTH];

    if (rg_wait_word(call, &lane->taken, index + 1 - RG_PROXY_DEPTH, -1))
        return 1;
    rg_store_relaxed(&command->offset, offset);
    rg_store_relaxed(&command->bytes, bytes);
    rg_store_relaxed(&command->stage, stage);
    rg_store_relaxed(&command->signal, target->signal);
    rg_store_relaxed(&command->value, target->value);
    rg_store_relaxed(&command->op, target->op == RG_SIGNAL_ADD ? RG_SIGNAL_ADD
                                                               : RG_SIGNAL_SET);
    rg_store_relaxed(&command->peer, target->queue);
    /* Pairs with the worker's acquire; behind all that the team has stored. */
    rg_store_release(&command->turn, index + 1);
#if !RG_ON_CUDA
    if (target->signal != RG_PROXY_NONE && target->op != RG_SIGNAL_CREDIT)
        rg_store_relaxed(&rg_proxy_of(call)->urgent, 1);
#endif
    return 0;
}

/* One thread: the lane's next stage, free to be written, or none. */
RG_FN uint64_t rg_proxy_stage(struct rg_call *call,
                              const struct rg_proxy_target *target)
{
    struct rg_proxy_lane *lane = &rg_proxy_of(call)->lane[target->lane];
    const uint64_t index =
        rg_add_relaxed_dev(&call->dev->proxy_heads[target->lane].stages, 1);
    const uint64_t stage = index % RG_PROXY_STAGES;

    if (rg_wait_word(call, &lane->given[stage], index / RG_PROXY_STAGES,
                     (int)rg_load_relaxed(&lane->waits_for[stage])))
        return RG_PROXY_NONE;
    rg_store_relaxed(&lane->waits_for[stage], (uint64_t)target->peer);
    return stage;
}

/* Every thread: payload of at most a stage. */
RG_FN int rg_proxy_piece(struct rg_call *call,
                         const struct rg_proxy_target *target, uint64_t offset,
                         const uint8_t *src, uint64_t bytes)
{
    const struct rg_proxy_fifo *fifo = rg_proxy_of(call);
    uint64_t stage = 0;
    int failed = 0;

    if (call->team.thread == 0)
        stage = rg_proxy_stage(call, target);
    stage = rg_team_share_word(&call->team, stage);
    if (stage == RG_PROXY_NONE)
        return 1;
    rg_team_copy(&call->team,
                 fifo->stages +
                     ((uint64_t)target->lane * RG_PROXY_STAGES + stage) *
                         RG_PROXY_STAGE_BYTES,
                 src, bytes);
    rg_team_barrier(&call->team);
    if (call->team.thread == 0)
        failed = rg_proxy_post(call, target, offset, stage, bytes);
    return rg_team_any(&call->team, failed);
}

/* Every thread. The signal goes with the last piece. */
RG_FN_COLD int rg_proxy_pieces(struct rg_call *call,
                               const struct rg_proxy_target *target,
                               uint64_t offset, const uint8_t *src,
                               uint64_t bytes)
{
    const uint64_t most = RG_PROXY_STAGE_BYTES;
    struct rg_proxy_target piece = *target;
    uint64_t n;

    piece.signal = RG_PROXY_NONE;
    for (uint64_t done = 0; done < bytes; done += n) {
        n = bytes - done < most ? bytes - done : most;
        if (n == bytes - done)
            piece.signal = target->signal;
        if (rg_proxy_piece(call, &piece, offset + done, src + done, n))
            return 1;
    }
    return 0;
}

RG_FN_COLD int rg_proxy_word(struct rg_call *call,
                             const struct rg_proxy_target *target)
{
    return rg_proxy_post(call, target, 0, RG_PROXY_NONE, 0);
}

/*
 * The two below hand a copy of the call to a function of its own, so that
 * other routes neither hold its registers nor keep the call in memory for it.
 */

/* Every thread. `target` names a signal or none; bytes > 0. */
RG_FN int rg_proxy_put(struct rg_call *call,
                       const struct rg_proxy_target *target, uint64_t offset,
                       const void *src, uint64_t bytes)
{
    struct rg_call copy = *call;
    const struct rg_proxy_target to = *target;
    const int failed =
        rg_proxy_pieces(&copy, &to, offset, (const uint8_t *)src, bytes);

    call->team = copy.team;
    return failed;
}

/* One thread. */
RG_FN int rg_proxy_signal(const struct rg_call *call,
                          const struct rg_proxy_target *target)
{
    struct rg_call copy = *call;
    const struct rg_proxy_target to = *target;

    return rg_proxy_word(&copy, &to);
}

#endif
