/*
 * One team's part in one invocation: what an algorithm is handed, and the
 * bounded wait everything else is built on.
 *
 * A wait is cheap while it is short: it only polls. Once it has lasted longer
 * than a gate it looks, at most once a gate, at the latch (another team of
 * this invocation failed) and at the abort word in mapped host memory (the
 * epoch is to end). It gives up when its own waiting exceeds the budget. Time
 * in which the process did not run is not waiting: a gap between two looks
 * counts as RG_GAP_NS at most, and the word is read once more after expiry.
 */
#ifndef RG_DEVICE_CALL_H
#define RG_DEVICE_CALL_H

#include "runtime/device/plan.h"
#include "runtime/device/proxy.h"
#include "runtime/device/signal.h"
#include "runtime/device/team.h"
#include "runtime/status.h"

enum {
    RG_GAP_NS = 100000000,
    RG_LOOK_POLLS = 16,
    RG_TIRED_POLLS = 256 /* of a crowded host's team that drives the proxy */
};

struct rg_call {
    struct rg_team team;
    struct rg_comm_dev *dev;
    int index; /* of the plan in force, 0 or 1 */
    /* Where no packets are sent: to read it takes a load of its own. */
    const struct rg_plan *plan;
    const struct rg_rule *rule;
    uint64_t workspace; /* offset of the algorithm's area in every region */
    uint64_t seq;
    uint64_t packet_cursor;
    const uint8_t *send;
    uint8_t *recv;
    uint64_t count; /* elements */
    int root;       /* dense rank, where the collective has one */
    const struct rg_launch *launch;
    uint64_t step; /* where the algorithm is, for reports */
    int refused;   /* this thread had a signal refused */
};

/* As much of a call as waits need, for those that have it in registers. */
RG_FN struct rg_call rg_call_waiting(const struct rg_team *team,
                                     struct rg_comm_dev *dev, int index)
{
    struct rg_call call;

    call.team = *team;
    call.dev = dev;
    call.index = index;
    call.step = 0;
    return call;
}

struct rg_waiter {
    uint64_t polls;
    uint64_t looked; /* time of the last look, 0: none yet */
    uint64_t waited; /* accounted so far, ns */
};

#define RG_WAITER_INIT                                                         \
    {                                                                          \
        0, 0, 0                                                                \
    }

/* Adds the time since the last look to what has been waited. */
RG_FN void rg_waiter_look(const struct rg_team *team, struct rg_waiter *waiter)
{
    const uint64_t now = rg_team_now_ns(team);
    const uint64_t gap = waiter->looked ? now - waiter->looked : 0;

    waiter->looked = now;
    waiter->waited += gap < RG_GAP_NS ? gap : RG_GAP_NS;
}

/* Called after a failed poll of a wait that is not in a hurry: ns so far. */
RG_FN uint64_t rg_waiter_pause(const struct rg_team *team,
                               struct rg_waiter *waiter)
{
#if !RG_ON_CUDA
    team->emu->relax(waiter->polls, team->emu->crowded);
#endif
    waiter->polls++;
    rg_waiter_look(team, waiter);
    return waiter->waited;
}

/* Records why this team cannot go on; peer -1: nobody in particular. */
RG_FN_COLD void rg_latch_failure(struct rg_comm_dev *dev, int status, int peer,
                                 uint64_t step)
{
    if (peer >= 0)
        rg_or_relaxed_dev(&dev->latch.peers[peer / 64], 1ull << (peer % 64));
    rg_store_relaxed(&dev->latch.step, step);
    rg_or_relaxed_dev(&dev->latch.reasons, 1ull << -status);
}

/* The look past the gate: 0 to go on, or a negative status. */
RG_FN int rg_wait_look(const struct rg_call *call, struct rg_waiter *waiter)
{
    const struct rg_comm_dev *dev = call->dev;

    if (waiter->looked &&
        rg_team_now_ns(&call->team) - waiter->looked < dev->gate_ns)
        return RG_OK;
    rg_waiter_look(&call->team, waiter);
    if (waiter->waited < dev->gate_ns)
        return RG_OK;
    if (rg_load_relaxed(&dev->latch.reasons))
        return RG_EFAILED;
    if (rg_load_relaxed(dev->abort_epoch) >= dev->plan[call->index]->epoch)
        return RG_EABORTED;
    return waiter->waited > dev->deadline_ns ? RG_ETIMEDOUT : RG_OK;
}

#if !RG_ON_CUDA
/* Between two polls: does the proxy's work, and lets others have the core. */
RG_FN void rg_wait_host(const struct rg_call *call, uint64_t polls)
{
    const int crowded = call->team.emu->crowded;
    const enum rg_drive why = !crowded                 ? RG_DRIVE_WAITS
                              : polls < RG_TIRED_POLLS ? RG_DRIVE_CROWDED
                                                       : RG_DRIVE_TIRED;

    if (!rg_proxy_drive(call->dev->plan[call->index]->proxy, why))
        call->team.emu->relax(polls, crowded);
}
#endif

/*
 * Called after a failed poll: 0 to poll again, or a negative status. On a
 * crowded host a poll may take as long as all others' turns do, so each is
 * followed by a look.
 */
RG_FN int rg_wait_more(const struct rg_call *call, struct rg_waiter *waiter)
{
    int looks = ++waiter->polls % RG_LOOK_POLLS == 0;

#if !RG_ON_CUDA
    rg_wait_host(call, waiter->polls - 1);
    looks |= call->team.emu->crowded;
#endif
    return looks ? rg_wait_look(call, waiter) : RG_OK;
}

/* A wait for `peer` ends with `status`; only lateness is held against it. */
RG_FN int rg_wait_failed(const struct rg_call *call, int status, int peer)
{
    rg_latch_failure(call->dev, status, status == RG_ETIMEDOUT ? peer : -1,
                     call->step);
    return 1;
}

/* One thread's wait for one local word, and what it says by then; transfer.h
 * has those of teams. */
RG_FN int rg_wait_says(const struct rg_call *call, const uint64_t *word,
                       uint64_t value, int peer, uint64_t *says_out)
{
    struct rg_waiter waiter = RG_WAITER_INIT;
    int status;

    /* Pairs with the release store of the peer's signal. */
    while (!rg_signal_reached(*says_out = rg_load_acquire(word), value)) {
        status = rg_wait_more(call, &waiter);
        if (status == RG_OK)
            continue;
        *says_out = rg_load_acquire(word);
        return rg_signal_reached(*says_out, value)
                   ? 0
                   : rg_wait_failed(call, status, peer);
    }
    return 0;
}

RG_FN int rg_wait_word(const struct rg_call *call, const uint64_t *word,
                       uint64_t value, int peer)
{
    uint64_t says;

    return rg_wait_says(call, word, value, peer, &says);
}

#endif
