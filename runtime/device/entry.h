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

enum {
    RG_OPEN_GRANTED = 1, /* else the launch may only close, or must leave */
    RG_OPEN_JOINED = 2,  /* it is claimed: it takes part in closing */
    RG_OPEN_PLAN = 4,    /* which plan */
    RG_OPEN_PARKED = 8   /* it had to wait: what was read before is old */
};

/* What a claim found. */
struct rg_claim {
    uint64_t word; /* the control word before this claim's add */
    uint64_t bits; /* RG_OPEN_* */
};

RG_FN uint64_t rg_claim_granted(uint64_t word)
{
    return RG_OPEN_GRANTED | RG_OPEN_JOINED |
           (word & RG_CONTROL_PLAN ? RG_OPEN_PLAN : 0);
}

/* Waits, bounded, until the control word is open or rewritten. One thread. */
RG_FN int rg_claim_park(struct rg_comm_dev *dev, const struct rg_team *team)
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

/* A claim that found the word held, with `word`. */
RG_FN_COLD struct rg_claim rg_claim_held(struct rg_comm_dev *dev,
                                         struct rg_team team, uint64_t word)
{
    const uint64_t add = team.count == 1 ? 1ull << RG_CONTROL_SEQ_SHIFT : 1;
    struct rg_claim claim = {word, RG_OPEN_PARKED};

    while (claim.word & RG_CONTROL_HELD) {
        if (claim.word & RG_CONTROL_INFLIGHT) {
            claim.bits |= rg_claim_granted(claim.word) & ~RG_OPEN_GRANTED;
            return claim;
        }
        if (rg_claim_park(dev, &team)) {
            /* The word is not opened before this launch has ended. */
            rg_add_relaxed_dev(&dev->hot.control, -add);
            return claim;
        }
        claim.word = rg_add_claim_dev(&dev->hot.control, add);
    }
    claim.bits |= rg_claim_granted(claim.word);
    return claim;
}

RG_FN const struct rg_rule *rg_rule_for(const struct rg_plan *plan,
                                        enum rg_collective collective,
                                        enum rg_dtype dtype, uint64_t bytes)
{
    const struct rg_rules *rules = &plan->rules[collective];
    uint64_t i = 0;

    while (i + 1 < rules->count && (bytes >= rules->rule[i].below ||
                                    !(rules->rule[i].dtypes >> dtype & 1)))
        i++;
    return &rules->rule[i];
}

/* A claimed launch as one team's thread sees it. */
struct rg_open {
    const struct rg_hot_line *hot; /* as it was when the claim was made */
    int plan;                      /* which plan: 0 or 1 */
    int granted, joined;
    uint64_t bits; /* all of it: RG_OPEN_* */
};

RG_FN struct rg_open rg_open_of(const struct rg_hot_line *hot, uint64_t bits)
{
    struct rg_open open;

    open.hot = hot;
    open.bits = bits;
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

/* A claim and the hot line on their way to a thread. */
struct rg_opening {
    uint64_t word;  /* of the line, this lane's */
    uint64_t claim; /* thread 0: what its add has found */
};

/*
 * The claim and the whole hot line in one wave: the first warp loads the line
 * while its first thread claims. What comes before rg_open_end() costs no time.
 */
RG_FN struct rg_opening rg_open_begin(const struct rg_launch *launch,
                                      const struct rg_team *team)
{
    const uint64_t add = team->count == 1 ? 1ull << RG_CONTROL_SEQ_SHIFT : 1;
    struct rg_opening opening = {0, 0};

    if (threadIdx.x < RG_HOT_WORDS)
        opening.word = rg_hot_word(launch->comm);
    if (threadIdx.x == 0)
        opening.claim = rg_add_claim_dev(&launch->comm->hot.control, add);
    return opening;
}

/*
 * 1: the word was held, or the line may be older than what the claim found.
 * Whoever opens the word has all of the line performed before the word can
 * change, so a line that shows the word as it was claimed is as new as that.
 */
RG_FN int rg_opening_is_rare(const struct rg_opening *opening)
{
    const uint64_t differs = opening->claim ^ opening->word;

    return ((differs & (RG_CONTROL_HELD | RG_CONTROL_PLAN)) |
            (opening->claim & RG_CONTROL_HELD)) != 0;
}

/* Every thread: the claim's rare ways, and the line once more. */
RG_FN_COLD uint64_t rg_open_rare(struct rg_comm_dev *dev, struct rg_team team,
                                 uint64_t claimed, uint64_t *line)
{
    __shared__ uint64_t bits;

    if (threadIdx.x == 0)
        bits = claimed & RG_CONTROL_HELD
                   ? rg_claim_held(dev, team, claimed).bits
                   : rg_claim_granted(claimed);
    __syncthreads();
    rg_load_acquire(&dev->hot.control);
    if (threadIdx.x < RG_HOT_WORDS)
        line[threadIdx.x] = rg_hot_word(dev);
    __syncthreads();
    return bits;
}

RG_FN struct rg_open rg_open_end(const struct rg_launch *launch,
                                 const struct rg_team *team,
                                 const struct rg_opening *opening)
{
    __shared__ uint64_t line[RG_HOT_WORDS];
    const struct rg_hot_line *hot =
        (const struct rg_hot_line *)(const void *)line;
    uint64_t word = opening->word, bits;

    /* In the line's place for the word every thread finds what was claimed,
     * with HELD where it has more to do. */
    if (threadIdx.x == 0)
        word = opening->claim |
               (rg_opening_is_rare(opening) ? RG_CONTROL_HELD : 0);
    if (threadIdx.x < RG_HOT_WORDS)
        line[threadIdx.x] = word;
    __syncthreads();
    bits = rg_claim_granted(hot->control);
    if (RG_RARE(hot->control & RG_CONTROL_HELD))
        bits = rg_open_rare(launch->comm, *team, opening->claim, line);
    return rg_open_of(hot, bits);
}

/*
 * A kernel's start. The next launch of the stream may be set up at once, and
 * nothing of the previous one is touched before it has ended: that is what
 * the two instructions say where launches overlap, and nothing elsewhere.
 * `alone`: the kernel is made for one team.
 */
RG_FN struct rg_team rg_team_here(const int alone)
{
    struct rg_team team;

    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    team.thread = (int)threadIdx.x;
    team.threads = (int)blockDim.x;
    team.index = alone ? 0 : (int)blockIdx.x;
    team.count = alone ? 1 : (int)gridDim.x;
    return team;
}

#else

/* One thread. */
RG_FN struct rg_claim rg_claim_word(struct rg_comm_dev *dev,
                                    const struct rg_team *team)
{
    const uint64_t add = team->count == 1 ? 1ull << RG_CONTROL_SEQ_SHIFT : 1;
    struct rg_claim claim;

    claim.word = rg_add_claim_dev(&dev->hot.control, add);
    if (RG_RARE(claim.word & RG_CONTROL_HELD))
        return rg_claim_held(dev, *team, claim.word);
    claim.bits = rg_claim_granted(claim.word);
    return claim;
}

struct rg_opening {
    uint64_t unused;
};

RG_FN struct rg_opening rg_open_begin(const struct rg_launch *launch,
                                      const struct rg_team *team)
{
    struct rg_opening opening = {0};

    (void)launch;
    (void)team;
    return opening;
}

RG_FN struct rg_open rg_open_end(const struct rg_launch *launch,
                                 struct rg_team *team,
                                 const struct rg_opening *opening)
{
    uint64_t bits = 0;

    (void)opening;
    if (team->thread == 0)
        bits = rg_claim_word(launch->comm, team).bits;
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
    call.index = open->plan;
    call.plan = 0;
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
RG_FN void rg_close_failed(struct rg_comm_dev *dev, uint64_t teams,
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

/* Every thread of the team that has found that the launch is to stop. */
RG_FN_COLD void rg_close_stopped(struct rg_comm_dev *dev, struct rg_team team,
                                 uint64_t seq, uint64_t epoch)
{
    if (team.thread == 0)
        rg_close_failed(dev, (uint64_t)team.count, seq, epoch);
    if (dev->parks)
        rg_keep_stopped(dev, &team);
}

/* One thread of a team of several: what its part in the end is. */
enum rg_close_part { RG_CLOSE_LEAVE = 0, RG_CLOSE_DONE, RG_CLOSE_STOPPED };

RG_FN enum rg_close_part rg_close_count(struct rg_comm_dev *dev, uint64_t teams,
                                        int failed)
{
    const uint64_t arrived = rg_close_arrive(dev, failed);
    const uint64_t failures = arrived >> RG_ARRIVED_FAILED_SHIFT;

    if ((uint32_t)arrived != teams)
        return RG_CLOSE_LEAVE;
    /* Pairs with the release of each team that failed; the store below would
     * break the sequence. */
    if (failures)
        rg_add_acq_rel_dev(&dev->arrived, 0);
    rg_store_relaxed(&dev->arrived, 0);
    return failures ? RG_CLOSE_STOPPED : RG_CLOSE_DONE;
}

/* Every thread of a team of several; `failed` is the same at all. */
RG_FN void rg_close_one_of(struct rg_call *call, const struct rg_open *open,
                           int failed, uint64_t run)
{
    const uint64_t teams = (uint64_t)call->team.count;
    enum rg_close_part part = RG_CLOSE_LEAVE;

    if (call->team.thread == 0)
        part = rg_close_count(call->dev, teams, failed);
    if (part == RG_CLOSE_DONE) {
        rg_close_done(call, open, run);
        rg_close_arrivals(call->dev, teams);
    }
    if (RG_RARE(rg_team_any(&call->team, part == RG_CLOSE_STOPPED)))
        rg_close_stopped(call->dev, call->team, call->seq,
                         open->hot->plan[open->plan].epoch);
}

/* Every thread of a joined team; `failed` may differ among them. */
RG_FN void rg_close(struct rg_call *call, const struct rg_open *open,
                    int failed, uint64_t run)
{
    failed = rg_team_any(&call->team, failed | call->refused);
    if (call->team.count > 1)
        rg_close_one_of(call, open, failed, run);
    else if (RG_RARE(failed))
        rg_close_stopped(call->dev, call->team, call->seq,
                         open->hot->plan[open->plan].epoch);
    else if (call->team.thread == 0)
        rg_close_done(call, open, run);
}

#endif
