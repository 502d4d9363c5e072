/*
 * The frame around every invocation: claim, choose, run, close.
 *
 *   claim    one atomic add on the control word: state, plan index, seq
 *   choose   the plan's rule for the size names algorithm and channels
 *   run      the algorithm, over this team's channels
 *   close    the last team to arrive is alone: it advances `completed`, or,
 *            if any team latched a failure, it is at the safe point: it
 *            holds the control word, writes the mailbox and, as a rule, keeps
 *            the word (keeper.h) until a new plan is in force
 *
 * A seq below the plan's first_seq was aborted for the group before it was
 * launched here: it ends at once and touches no peer.
 */
#ifndef RG_DEVICE_ENTRY_H
#define RG_DEVICE_ENTRY_H

#include "runtime/device/call.h"
#include "runtime/device/keeper.h"

/* What a claim found. `word` is the control word before this claim's add. */
struct rg_claim {
    uint64_t word;
    int granted; /* 0: the launch may only close, or must leave */
    int joined;  /* the launch is claimed: it takes part in closing */
};

/* Waits, bounded, until the control word is open or rewritten. One thread. */
RG_FN_COLD int rg_claim_park(struct rg_comm_dev *dev,
                             const struct rg_team *team)
{
    struct rg_waiter waiter = RG_WAITER_INIT;

    while (rg_load_acquire(&dev->hot.control) & RG_CONTROL_HELD)
        if (rg_waiter_pause(team, &waiter) > rg_load_acquire(&dev->park_ns)) {
            if (rg_load_relaxed(&dev->park_ns))
                rg_store_release(&dev->mailbox->expired, 1);
            return RG_EUNAVAILABLE;
        }
    return RG_OK;
}

/* One thread. Says whether it had to wait: what was read before is old. */
RG_FN struct rg_claim rg_claim_word(struct rg_comm_dev *dev,
                                    struct rg_team *team, int *parked_out)
{
    const uint64_t add = team->count == 1 ? 1ull << RG_CONTROL_SEQ_SHIFT : 1;
    struct rg_claim claim = {0, 0, 0};

    *parked_out = 0;
    for (;;) {
        claim.word = rg_add_claim_dev(&dev->hot.control, add);
        if (!(claim.word & RG_CONTROL_HELD)) {
            claim.granted = claim.joined = 1;
            return claim;
        }
        if (claim.word & RG_CONTROL_INFLIGHT) {
            claim.joined = 1;
            return claim;
        }
        *parked_out = 1;
        if (rg_claim_park(dev, team)) {
            /* The word is not opened before this launch has ended. */
            rg_add_relaxed_dev(&dev->hot.control, -add);
            return claim;
        }
    }
}

RG_FN const struct rg_rule *rg_rule_for(const struct rg_plan *plan,
                                        enum rg_collective collective,
                                        uint64_t bytes)
{
    const struct rg_rules *rules = &plan->rules[collective];
    uint64_t i = 0;

    while (i + 1 < rules->count && bytes >= rules->rule[i].below)
        i++;
    return &rules->rule[i];
}

/* A claimed launch as one team's thread sees it. */
struct rg_open {
    const struct rg_hot_line *hot; /* as it was when the claim was made */
    int plan;                      /* which plan: 0 or 1 */
    int granted, joined;
};

enum { RG_OPEN_GRANTED = 1, RG_OPEN_JOINED = 2, RG_OPEN_PLAN = 4 };

RG_FN uint64_t rg_open_bits(const struct rg_claim *claim)
{
    return (claim->granted ? RG_OPEN_GRANTED : 0) |
           (claim->joined ? RG_OPEN_JOINED : 0) |
           (claim->word & RG_CONTROL_PLAN ? RG_OPEN_PLAN : 0);
}

RG_FN struct rg_open rg_open_of(const struct rg_hot_line *hot, uint64_t bits)
{
    struct rg_open open;

    open.hot = hot;
    open.plan = (bits & RG_OPEN_PLAN) != 0;
    open.granted = (bits & RG_OPEN_GRANTED) != 0;
    open.joined = (bits & RG_OPEN_JOINED) != 0;
    return open;
}

#if RG_ON_CUDA

enum { RG_HOT_WORDS = 32 }; /* 256 bytes: one load of one warp */

/* Each lane of the first warp fetches a word of the hot line. */
RG_FN uint64_t rg_hot_word(const struct rg_comm_dev *dev)
{
    return rg_load_relaxed((const uint64_t *)(const void *)&dev->hot +
                           threadIdx.x);
}

/*
 * Whether a line, fetched while the claim was under way, may be older than
 * what the claim found. Whoever opens the word has all of the line performed
 * before the word can change, so a line that shows the word as it was claimed
 * is as new as the claim.
 */
RG_FN int rg_hot_is_old(uint64_t control, const struct rg_claim *claim)
{
    return claim->granted &&
           ((control ^ claim->word) & (RG_CONTROL_HELD | RG_CONTROL_PLAN)) != 0;
}

/*
 * The claim and the whole hot line in one wave: the first warp loads the line
 * while its first thread claims. An old line is fetched again.
 */
RG_FN struct rg_open rg_open(const struct rg_launch *launch,
                             struct rg_team *team)
{
    __shared__ uint64_t line[RG_HOT_WORDS];
    __shared__ uint64_t bits;

    if (threadIdx.x < RG_HOT_WORDS) {
        uint64_t word = rg_hot_word(launch->comm);
        int again = 0;

        if (threadIdx.x == 0) {
            const struct rg_claim claim =
                rg_claim_word(launch->comm, team, &again);
            bits = rg_open_bits(&claim);
            again |= rg_hot_is_old(word, &claim);
            if (again)
                rg_load_acquire(&launch->comm->hot.control);
        }
        if (__shfl_sync(0xffffffffu, again, 0)) {
            __syncwarp();
            word = rg_hot_word(launch->comm);
        }
        line[threadIdx.x] = word;
    }
    __syncthreads();
    return rg_open_of((const struct rg_hot_line *)(const void *)line, bits);
}

/*
 * A kernel's start. The next launch of the stream may be set up at once, and
 * nothing of the previous one is touched before it has ended: that is what
 * the two instructions say where launches overlap, and nothing elsewhere.
 */
RG_FN struct rg_team rg_team_here(void)
{
    struct rg_team team;

    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    team.thread = (int)threadIdx.x;
    team.threads = (int)blockDim.x;
    team.index = (int)blockIdx.x;
    team.count = (int)gridDim.x;
    return team;
}

#else

RG_FN struct rg_open rg_open(const struct rg_launch *launch,
                             struct rg_team *team)
{
    uint64_t bits = 0;
    int parked;

    if (team->thread == 0) {
        const struct rg_claim claim =
            rg_claim_word(launch->comm, team, &parked);
        bits = rg_open_bits(&claim);
    }
    return rg_open_of(&launch->comm->hot, rg_team_share_word(team, bits));
}

#endif

RG_FN struct rg_call rg_call_of(const struct rg_launch *launch,
                                const struct rg_team *team,
                                const struct rg_open *open)
{
    struct rg_call call;

    call.team = *team;
    call.dev = launch->comm;
    call.plan = launch->comm->plan[open->plan];
    call.rule = 0;
    call.workspace = 0;
    call.seq = open->hot->completed + 1;
    call.packet_cursor = open->hot->plan[open->plan].packet_cursor;
    call.send = (const uint8_t *)launch->send;
    call.recv = (uint8_t *)launch->recv;
    call.count = launch->count;
    call.step = 0;
    call.refused = 0;
    call.unbounded = 0;
    return call;
}

/* Reports the latch, and clears it for the next invocation. Alone. */
RG_FN void rg_close_report(struct rg_comm_dev *dev, uint64_t seq,
                           uint64_t epoch)
{
    struct rg_mailbox *mailbox = dev->mailbox;
    const uint64_t generation = rg_load_relaxed(&mailbox->failure) + 1;

    rg_store_relaxed(&mailbox->seq, seq);
    rg_store_relaxed(&mailbox->epoch, epoch);
    rg_store_relaxed(&mailbox->reasons, rg_load_relaxed(&dev->latch.reasons));
    rg_store_relaxed(&mailbox->step, rg_load_relaxed(&dev->latch.step));
    rg_store_relaxed(&dev->latch.reasons, 0);
    for (int i = 0; i < RG_MAX_SLOTS / 64; i++) {
        rg_store_relaxed(&mailbox->peers[i],
                         rg_load_relaxed(&dev->latch.peers[i]));
        rg_store_relaxed(&dev->latch.peers[i], 0);
    }
    /* Pairs with the host's acquire load of the failure generation. */
    rg_store_release(&mailbox->failure, generation);
}

/* Turns a launch's arrivals into its seq; alone, and last of all teams. */
RG_FN void rg_close_arrivals(struct rg_comm_dev *dev, uint64_t teams)
{
    const uint64_t word = rg_add_relaxed_dev(
        &dev->hot.control, (1ull << RG_CONTROL_SEQ_SHIFT) - teams);

    /* Held meanwhile: nobody is in flight any more. */
    if (word & RG_CONTROL_INFLIGHT)
        rg_add_acq_rel_dev(&dev->hot.control, -RG_CONTROL_INFLIGHT);
}

/* The safe point: one thread, after every team of the launch has stopped. */
RG_FN_COLD void rg_close_failed(struct rg_comm_dev *dev, uint64_t teams,
                                uint64_t seq, uint64_t epoch)
{
    rg_store_relaxed(&dev->frozen, seq);
    rg_or_acq_rel_dev(&dev->hot.control, RG_CONTROL_HELD);
    if (teams > 1)
        rg_close_arrivals(dev, teams);
    /* Pairs with the acquire of a launch made to keep. */
    rg_store_release(&dev->stopped, seq);
    rg_close_report(dev, seq, epoch);
}

/*
 * Before a round of tags starts, the half used now is cleaned: it is next
 * written two packet invocations on, by ranks that need the next one of this
 * rank first. Alone, so nobody still polls it.
 */
RG_FN void rg_close_packets(const struct rg_hot_plan *hot, uint64_t cursor)
{
    uint64_t *half =
        (uint64_t *)(void *)(hot->packets + (cursor & 1) * hot->packet_half);

    for (uint64_t i = 0; i < hot->packet_half / sizeof *half; i++)
        rg_store_relaxed(&half[i], 0);
}

/* One thread of the team that closes the launch; it did not fail. */
RG_FN void rg_close_done(const struct rg_call *call, const struct rg_open *open,
                         uint64_t run)
{
    struct rg_comm_dev *dev = call->dev;
    const uint64_t cursor = open->hot->plan[open->plan].packet_cursor;

    if (call->packet_cursor != cursor) {
        if (rg_packet_tag_wraps(cursor))
            rg_close_packets(&open->hot->plan[open->plan], cursor);
        rg_store_relaxed(&dev->hot.plan[open->plan].packet_cursor,
                         call->packet_cursor);
    }
    if (run)
        rg_store_relaxed(&dev->hot.run, run);
    /* Seen with the end of the launch, like the outputs it stands for. */
    rg_store_relaxed(&dev->hot.completed, call->seq);
}

/*
 * The frame without all that makes an invocation recoverable: no claim, no
 * deadline, no latch. It leaves the words as a launch of one team does, and is
 * there so that a benchmark can tell what the rest of this file costs.
 */
RG_FN struct rg_open rg_open_bare(const struct rg_launch *launch)
{
    const struct rg_hot_line *hot = &launch->comm->hot;
    uint64_t control;

#if RG_ON_CUDA
    __shared__ uint64_t line[RG_HOT_WORDS];

    if (threadIdx.x < RG_HOT_WORDS)
        line[threadIdx.x] = rg_hot_word(launch->comm);
    __syncthreads();
    hot = (const struct rg_hot_line *)(const void *)line;
    control = hot->control;
#else
    control = rg_load_acquire(&hot->control);
#endif
    return rg_open_of(hot, RG_OPEN_GRANTED | RG_OPEN_JOINED |
                               (control & RG_CONTROL_PLAN ? RG_OPEN_PLAN : 0));
}

RG_FN void rg_close_bare(const struct rg_call *call, const struct rg_open *open,
                         uint64_t run)
{
    if (call->team.thread != 0)
        return;
    rg_store_relaxed(&call->dev->hot.control,
                     open->hot->control + (1ull << RG_CONTROL_SEQ_SHIFT));
    rg_close_done(call, open, run);
}

enum { RG_ARRIVED_FAILED_SHIFT = 32 };

/*
 * Counts a team in; teams so far, and how many of them failed, above. Only a
 * failure has something to hand over: its latch entries, released here and
 * acquired by the last team. The rest is ordered by the launch's end.
 */
RG_FN uint64_t rg_close_arrive(struct rg_comm_dev *dev, int failed)
{
    const uint64_t one = 1 + ((uint64_t)failed << RG_ARRIVED_FAILED_SHIFT);

    return one + (failed ? rg_add_acq_rel_dev(&dev->arrived, one)
                         : rg_add_arrival_dev(&dev->arrived, one));
}

/* One thread of a joined team: 1 when the launch ended at the safe point. */
RG_FN int rg_close_team(struct rg_call *call, const struct rg_open *open,
                        int failed, uint64_t run)
{
    struct rg_comm_dev *dev = call->dev;
    const uint64_t teams = (uint64_t)call->team.count;
    uint64_t failures = failed != 0;

    if (teams > 1) {
        const uint64_t arrived = rg_close_arrive(dev, failed);

        if ((uint32_t)arrived != teams)
            return 0;
        failures = arrived >> RG_ARRIVED_FAILED_SHIFT;
        /* Pairs with the release of each team that failed; the store below
         * would break the sequence. */
        if (failures)
            rg_add_acq_rel_dev(&dev->arrived, 0);
        rg_store_relaxed(&dev->arrived, 0);
    }
    if (failures) {
        rg_close_failed(dev, teams, call->seq, call->plan->epoch);
        return 1;
    }
    rg_close_done(call, open, run);
    if (teams > 1)
        rg_close_arrivals(dev, teams);
    return 0;
}

/* Every thread of a joined team; `failed` may differ among them. */
RG_FN void rg_close(struct rg_call *call, const struct rg_open *open,
                    int failed, uint64_t run)
{
    int stopped = rg_team_any(&call->team, failed | call->refused);

    /* A team of several knows after a barrier what its one thread has found;
     * where the launch is one team, it is what all know already. */
    if (call->team.thread == 0)
        stopped = rg_close_team(call, open, stopped, run);
    if (call->team.count > 1)
        stopped = rg_team_any(&call->team, call->team.thread == 0 && stopped);
    if (stopped && call->dev->parks)
        rg_keep_stopped(call->dev, call->team);
}

#endif
