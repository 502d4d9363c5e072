/*
 * The frame around every invocation: claim, choose, run, close.
 *
 *   claim    one atomic add on the control word: state, plan index, seq
 *   choose   the hot line serves the size, or the plan's rule for it names
 *            algorithm and channels
 *   run      the algorithm, over this team's channels
 *   close    the last team to arrive is alone: it advances `completed`, or,
 *            if any team latched a failure, it is at the safe point: it
 *            holds the control word, writes the mailbox and, as a rule, keeps
 *            the word (keeper.h) until a new plan is in force
 *
 * A seq below the plan's first_seq was aborted for the group before it was
 * launched here: it ends at once and touches no peer.
 *
 * Messages between two ranks are no invocation of the group's: they have no
 * seq. Their launch is claimed, bounded and stopped alike, by a field of the
 * word of its own.
 */
#ifndef RG_DEVICE_ENTRY_H
#define RG_DEVICE_ENTRY_H

#include "runtime/device/hot.h"
#include "runtime/device/keeper.h"

enum {
    RG_OPEN_GRANTED = 1, /* else the launch may only close, or must leave */
    RG_OPEN_JOINED = 2,  /* it is claimed: it takes part in closing */
    RG_OPEN_PLAN = 4     /* which plan */
};

RG_FN uint64_t rg_claim_granted(uint64_t word)
{
    return RG_OPEN_GRANTED | RG_OPEN_JOINED |
           (word & RG_CONTROL_PLAN ? RG_OPEN_PLAN : 0);
}

/* A launch of one team adds its seq, one of several an arrival for each. */
RG_FN uint64_t rg_claim_add(const struct rg_team *team)
{
    return team->count == 1 ? 1ull << RG_CONTROL_SEQ_SHIFT : 1;
}

/*
 * Every thread; the word as thread 0's add has found it. On CUDA it is known
 * to thread 0 only, and not waited for before it is used.
 */
RG_FN uint64_t rg_claim(struct rg_comm_dev *dev, struct rg_team *team)
{
    uint64_t word =
        rg_add_claim_dev(&dev->control, rg_claim_add(team), team->thread);

#if !RG_ON_CUDA
    word = rg_team_share_word(team, word);
#endif
    return word;
}

/*
 * A launch by the hot line claims once its push is on the way: then the answer
 * comes while the packets do (hot.h). A host thread, whose turn may end between
 * any two loads, claims first.
 */
RG_FN uint64_t rg_claim_first(struct rg_comm_dev *dev, struct rg_team *team)
{
    return RG_ON_CUDA ? 0 : rg_claim(dev, team);
}

RG_FN uint64_t rg_claim_behind(struct rg_comm_dev *dev, struct rg_team *team,
                               uint64_t first)
{
    return RG_ON_CUDA ? rg_claim(dev, team) : first;
}

/* 1: the launch is claimed, and `hot` is of the plan in force. */
RG_FN int rg_claim_proves(uint64_t word, const struct rg_hot *hot,
                          const struct rg_team *team)
{
    const uint64_t others = team->count == 1 ? 0 : RG_CONTROL_ARRIVALS;

    return hot->whole & (((word ^ rg_hot_claim(hot)) & ~others) == 0);
}

/* The same, as far as this thread of a team knows its claim: no branch. */
RG_FN int rg_claim_proves_here(uint64_t word, const struct rg_hot *hot,
                               const struct rg_team *team)
{
    return hot->whole &
           ((team->thread != 0) | rg_claim_proves(word, hot, team));
}

/* Waits, bounded, until the control word is open or rewritten. One thread. */
RG_FN int rg_claim_park(struct rg_comm_dev *dev, const struct rg_team *team)
{
    struct rg_waiter waiter = RG_WAITER_INIT;

    while (rg_load_acquire(&dev->control) & RG_CONTROL_HELD)
        if (rg_waiter_pause(team, &waiter) > rg_load_acquire(&dev->park_ns)) {
            if (rg_load_relaxed(&dev->park_ns))
                rg_store_release(&dev->mailbox->expired, 1);
            return RG_EUNAVAILABLE;
        }
    return RG_OK;
}

/* One thread, whose claim by `add` found `word`, held: RG_OPEN_*. */
RG_FN uint64_t rg_claim_held(struct rg_comm_dev *dev,
                             const struct rg_team *team, uint64_t word,
                             uint64_t add)
{
    while (word & RG_CONTROL_HELD) {
        if (word & RG_CONTROL_INFLIGHT)
            return rg_claim_granted(word) & ~(uint64_t)RG_OPEN_GRANTED;
        if (rg_claim_park(dev, team)) {
            /* The word is not opened before this launch has ended. */
            rg_add_relaxed_dev(&dev->control, -add);
            return 0;
        }
        word = rg_add_claim_dev(&dev->control, add, 0);
    }
    return rg_claim_granted(word);
}

/* A launch as one team's thread sees it, once its claim is known. */
struct rg_open {
    struct rg_hot hot; /* of the plan in force, if it is joined */
    int plan;          /* which plan: 0 or 1 */
    int granted, joined;
};

RG_FN struct rg_open rg_open_of(const struct rg_hot *hot, uint64_t bits)
{
    struct rg_open open;

    open.hot = *hot;
    open.plan = (bits & RG_OPEN_PLAN) != 0;
    open.granted = (bits & RG_OPEN_GRANTED) != 0;
    open.joined = (bits & RG_OPEN_JOINED) != 0;
    return open;
}

/*
 * Every thread, where the claim and the line do not go together: the word was
 * held, or the line is older than what the claim found. Whoever opens the word
 * has written the line before.
 */
RG_FN_COLD struct rg_open rg_open_out_of_line(struct rg_comm_dev *dev,
                                              struct rg_team *team,
                                              uint64_t word, uint64_t add)
{
    uint64_t bits = 0;
    struct rg_hot hot;

    if (team->thread == 0)
        bits = word & RG_CONTROL_HELD ? rg_claim_held(dev, team, word, add)
                                      : rg_claim_granted(word);
    bits = rg_team_share_word(team, bits);
    rg_load_acquire(&dev->control);
    hot = rg_hot_read(&dev->hot);
    return rg_open_of(&hot, bits);
}

/* By a copy, so that the team itself need not be in memory. */
RG_FN struct rg_open rg_open_by(struct rg_comm_dev *dev, struct rg_team *team,
                                uint64_t word, uint64_t add)
{
    struct rg_team copy = *team;
    const struct rg_open open = rg_open_out_of_line(dev, &copy, word, add);

#if !RG_ON_CUDA
    team->barriers = copy.barriers;
#endif
    return open;
}

RG_FN struct rg_open rg_open_rare(struct rg_comm_dev *dev, struct rg_team *team,
                                  uint64_t word)
{
    return rg_open_by(dev, team, word, rg_claim_add(team));
}

/* Every thread of a launch of messages. */
RG_FN struct rg_open rg_open_messages(struct rg_comm_dev *dev,
                                      struct rg_team *team)
{
    const uint64_t word =
        rg_add_claim_dev(&dev->control, RG_CONTROL_MESSENGER, team->thread);

    return rg_open_by(dev, team, word, RG_CONTROL_MESSENGER);
}

#if RG_ON_CUDA

enum {
    RG_LINE_WORDS = RG_LINE / 8,
    /* The line's words that carry a mark: packets, cursor, ranks, blocks,
       inbox. */
    RG_LINE_MARKED = 0xffa9
};

/* What the first warp of a block hands to the others. */
struct rg_hot_shared {
    struct rg_hot_line line;
    uint64_t claim;
    uint64_t whole;
};

/* This thread's word of the hot line, on its way. */
RG_FN uint64_t rg_hot_word(const struct rg_comm_dev *dev)
{
    return threadIdx.x < RG_LINE_WORDS
               ? rg_load_relaxed((const uint64_t *)(const void *)&dev->hot +
                                 threadIdx.x)
               : 0;
}

/* Every thread of a block. `claim` is thread 0's, and may be left out: 0. */
RG_FN struct rg_hot rg_hot_share(struct rg_hot_shared *shared, uint64_t word,
                                 uint64_t claim)
{
    struct rg_hot hot;

    if (threadIdx.x < 32) {
        const uint32_t marks =
            __ballot_sync(~0u, (int)(word & 1)) & RG_LINE_MARKED;

        if (threadIdx.x < RG_LINE_WORDS)
            ((uint64_t *)(void *)&shared->line)[threadIdx.x] = word;
        if (threadIdx.x == 0) {
            shared->claim = claim;
            shared->whole = !marks || marks == RG_LINE_MARKED;
        }
    }
    __syncthreads();
    hot = rg_hot_read_shared(&shared->line);
    hot.whole = (int)shared->whole;
    return hot;
}

/* Every thread of a launch of one team: the line as it is just now. */
RG_FN struct rg_hot rg_hot_take(const struct rg_comm_dev *dev,
                                const struct rg_team *team)
{
    __shared__ struct rg_hot_shared shared;

    if (team->warp)
        return rg_hot_read_warp(&dev->hot);
    return rg_hot_share(&shared, rg_hot_word(dev), 0);
}

/* A claim and the hot line on their way to a thread. */
struct rg_opening {
    uint64_t claim, word;
};

RG_FN struct rg_opening rg_open_begin(struct rg_comm_dev *dev,
                                      struct rg_team *team)
{
    const struct rg_opening opening = {rg_claim(dev, team), rg_hot_word(dev)};

    if (team->thread == 0)
        rg_prefetch(dev->plan);
    return opening;
}

RG_FN struct rg_open rg_open_end(struct rg_comm_dev *dev, struct rg_team *team,
                                 const struct rg_opening *opening)
{
    __shared__ struct rg_hot_shared shared;
    const struct rg_hot hot =
        rg_hot_share(&shared, opening->word, opening->claim);

    if (RG_RARE(!rg_claim_proves(shared.claim, &hot, team)))
        return rg_open_rare(dev, team, opening->claim);
    return rg_open_of(&hot, rg_claim_granted(shared.claim));
}

/*
 * A kernel's start. The next launch of the stream may be set up at once, and
 * nothing of the previous one is touched before it has ended: that is what
 * the two instructions say where launches overlap, and nothing elsewhere.
 * `alone`, `warp`: the kernel is made for one team, for one warp.
 */
RG_FN struct rg_team rg_team_here(const int alone, const int warp)
{
    struct rg_team team;

    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    team.thread = (int)threadIdx.x;
    team.threads = warp ? 32 : (int)blockDim.x;
    team.index = alone ? 0 : (int)blockIdx.x;
    team.count = alone ? 1 : (int)gridDim.x;
    team.warp = warp;
    team.brief = alone;
    return team;
}

#else

RG_FN struct rg_hot rg_hot_take(const struct rg_comm_dev *dev,
                                const struct rg_team *team)
{
    (void)team;
    return rg_hot_read(&dev->hot);
}

struct rg_opening {
    uint64_t claim;
};

RG_FN struct rg_opening rg_open_begin(struct rg_comm_dev *dev,
                                      struct rg_team *team)
{
    const struct rg_opening opening = {rg_claim(dev, team)};

    return opening;
}

RG_FN struct rg_open rg_open_end(struct rg_comm_dev *dev, struct rg_team *team,
                                 const struct rg_opening *opening)
{
    const struct rg_hot hot = rg_hot_read(&dev->hot);

    if (RG_RARE(!rg_claim_proves(opening->claim, &hot, team)))
        return rg_open_rare(dev, team, opening->claim);
    return rg_open_of(&hot, rg_claim_granted(opening->claim));
}

#endif

/*
 * Every thread. What an invocation by the plan reads of it, one load depending
 * on the other, is fetched in one wave.
 */
RG_FN void rg_plan_fetch(const struct rg_plan *plan,
                         enum rg_collective collective,
                         const struct rg_team *team)
{
#if RG_ON_CUDA
    const int line = team->thread;
    const uint8_t *at = (const uint8_t *)plan + line * RG_LINE;

    if (line >= 12)
        return;
    if (line >= 8) /* four lines of routes */
        at = (const uint8_t *)plan->routes + (line - 8) * RG_LINE;
    else if (line >= 3) /* five of rules */
        at = (const uint8_t *)&plan->rules[collective] + (line - 3) * RG_LINE;
    else if (line == 2)
        at = (const uint8_t *)plan->offset[collective];
    rg_prefetch(at);
#else
    (void)plan;
    (void)collective;
    (void)team;
#endif
}

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
    call.seq = open->hot.completed + 1;
    call.packet_cursor = open->hot.cursor;
    call.send = (const uint8_t *)launch->send;
    call.recv = (uint8_t *)launch->recv;
    call.count = launch->count;
    call.root = 0;
    call.launch = launch;
    call.step = 0;
    call.refused = 0;
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

/* What turns a launch's arrivals into its seq, and what takes messengers off.
 */
RG_FN uint64_t rg_close_claim(uint64_t teams)
{
    return (1ull << RG_CONTROL_SEQ_SHIFT) - teams;
}

RG_FN uint64_t rg_close_messengers(uint64_t teams)
{
    return -(teams * RG_CONTROL_MESSENGER);
}

/* Adds one of these to the word; alone, and last of all teams. */
RG_FN void rg_close_arrivals(struct rg_comm_dev *dev, uint64_t add)
{
    const uint64_t word = rg_add_relaxed_dev(&dev->control, add);

    /* Held meanwhile: nobody is in flight any more. Releases the report. */
    if (word & RG_CONTROL_INFLIGHT)
        rg_add_acq_rel_dev(&dev->control, -RG_CONTROL_INFLIGHT);
}

/*
 * The safe point: one thread, after every team of the launch has stopped. `add`
 * is what ends its claim: 0, if that is a seq already.
 */
RG_FN void rg_close_failed(struct rg_comm_dev *dev, uint64_t add, uint64_t seq,
                           uint64_t epoch)
{
    rg_store_relaxed(&dev->frozen, seq);
    rg_or_acq_rel_dev(&dev->control, RG_CONTROL_HELD);
    /* Before anybody else may keep, and open the word. */
    rg_close_report(dev, seq, epoch);
    if (add)
        rg_close_arrivals(dev, add);
    /* Pairs with the acquire of a launch made to keep. */
    rg_store_release(&dev->stopped, seq);
}

/*
 * Before a round of tags starts, the half used now is cleaned: it is next
 * written two packet invocations on, by ranks that need the next one of this
 * rank first. Alone, so nobody still polls it.
 */
RG_FN void rg_close_packets(const struct rg_hot *hot)
{
    uint64_t *half =
        (uint64_t *)(void *)(hot->packets + (hot->cursor & 1) * hot->half);

    for (uint64_t i = 0; i < hot->half / sizeof *half; i++)
        rg_store_relaxed(&half[i], 0);
}

/* One thread of the team that closes the launch; it did not fail. */
RG_FN void rg_close_done(const struct rg_call *call, const struct rg_open *open,
                         uint64_t run)
{
    struct rg_comm_dev *dev = call->dev;

    if (call->packet_cursor != open->hot.cursor) {
        if (rg_packet_tag_wraps(open->hot.cursor))
            rg_close_packets(&open->hot);
        rg_store_relaxed(&dev->hot.cursor,
                         rg_hot_cursor(call->packet_cursor, open->hot.mark));
    }
    if (call->plan && call->seq + 1 == call->plan->first_seq)
        rg_store_relaxed(&dev->hot.sizes, dev->hot_sizes);
    if (run)
        rg_store_relaxed(&dev->hot.run, run);
    /* Seen with the end of the launch, like the outputs it stands for. */
    rg_store_relaxed(&dev->hot.completed, call->seq);
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
                                 uint64_t seq, int plan, uint64_t add)
{
    const uint64_t keepers = rg_load_relaxed(&dev->keepers);

    if (team.thread == 0)
        rg_close_failed(dev, add, seq,
                        rg_load_relaxed(&dev->plan[plan]->epoch));
    if (dev->parks)
        rg_keep_stopped(dev, &team, keepers);
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
        rg_close_arrivals(call->dev, rg_close_claim(teams));
    }
    if (RG_RARE(rg_team_any(&call->team, part == RG_CLOSE_STOPPED)))
        rg_close_stopped(call->dev, call->team, call->seq, open->plan,
                         rg_close_claim(teams));
}

/* Every thread: 1 if any has failed; what is urgent has gone. */
RG_FN int rg_close_meet(struct rg_call *call, const struct rg_open *open,
                        int failed)
{
    failed = rg_team_any(&call->team, failed | call->refused);
#if RG_ON_CUDA
    (void)open;
#else
    if (call->team.thread == 0)
        rg_proxy_drive(call->dev->plan[open->plan]->proxy, RG_DRIVE_DONE);
#endif
    return failed;
}

/* Every thread of a joined team; `failed` may differ among them. */
RG_FN void rg_close(struct rg_call *call, const struct rg_open *open,
                    int failed, uint64_t run)
{
    failed = rg_close_meet(call, open, failed);
    if (call->team.count > 1)
        rg_close_one_of(call, open, failed, run);
    else if (RG_RARE(failed))
        rg_close_stopped(call->dev, call->team, call->seq, open->plan, 0);
    else if (call->team.thread == 0)
        rg_close_done(call, open, run);
}

/* ---- messages ------------------------------------------------------------ */

/* One thread: the launch's messages have ended here, with those who are there.
 */
RG_FN void rg_close_counted(const struct rg_call *call, uint64_t run)
{
    const struct rg_launch *launch = call->launch;
    uint64_t *counts = call->dev->messages;

    /* It has done nothing. */
    if (!call->plan)
        return;
    for (uint64_t m = 0; m < launch->nposts; m++) {
        const struct rg_post *message = &launch->posts[m];
        const uint64_t at = RG_MESSAGES_OF(message->slot) + message->kind;

        if (message->kind != RG_POST_COPY &&
            rg_plan_rank(call->plan, message->slot) >= 0)
            rg_store_relaxed(&counts[at], rg_load_relaxed(&counts[at]) + 1);
    }
    rg_store_relaxed(&call->dev->hot.run, run);
}

/* The same at all teams: the caller does not know yet of what was undone. */
RG_FN int rg_messages_are_undone(const struct rg_comm_dev *dev)
{
    const uint64_t undone = rg_load_relaxed(&dev->undone);

    return undone && rg_load_relaxed(dev->noted) < undone;
}

/* As rg_close(), of a launch of messages: it ends without a seq. */
RG_FN void rg_close_messages(struct rg_call *call, const struct rg_open *open,
                             int failed, uint64_t run)
{
    const uint64_t teams = (uint64_t)call->team.count;
    enum rg_close_part part = RG_CLOSE_LEAVE;

    failed = rg_close_meet(call, open, failed);
    if (call->team.thread == 0)
        part = rg_close_count(call->dev, teams, failed);
    if (part == RG_CLOSE_DONE) {
        rg_close_counted(call, run);
        rg_close_arrivals(call->dev, rg_close_messengers(teams));
    }
    if (RG_RARE(rg_team_any(&call->team, part == RG_CLOSE_STOPPED)))
        rg_close_stopped(call->dev, call->team, call->seq, open->plan,
                         rg_close_messengers(teams));
}

#endif
