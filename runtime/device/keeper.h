/*
 * The keeper's side of mailbox.h, and how a launch made to keep becomes it.
 *
 * Two may want to keep: a team that stopped at its safe point, and such a
 * launch. Whoever sets HELD freezes the claimed seq (plan.h). The launch then
 * waits until that seq has ended: if it completed, nobody else keeps, and the
 * launch does; if it stopped at a safe point, the team there keeps where
 * `parks` says so. Messages have no seq that tells how they ended: behind them
 * both may want to, and the first one does. A launch may come so late that
 * others have kept and opened the word since it was asked for; so keepers are
 * numbered, and the number that it was asked to be is then taken.
 */
#ifndef RG_DEVICE_KEEPER_H
#define RG_DEVICE_KEEPER_H

#include "runtime/device/call.h"
#include "runtime/device/copy.h"
#include "runtime/device/help.h"
#include "runtime/device/hot.h"
#include "runtime/device/mailbox.h"

/* ---- orders ------------------------------------------------------------- */

/* Waits, bounded, for the order behind `done`: its kind, or NONE. One thread.
 */
RG_FN uint64_t rg_keep_next(struct rg_comm_dev *dev, const struct rg_team *team,
                            uint64_t done)
{
    struct rg_waiter waiter = RG_WAITER_INIT;

    /* Pairs with the host's release of the number. */
    while (rg_load_acquire(&dev->orders->number) == done)
        if (rg_waiter_pause(team, &waiter) > dev->keep_ns)
            return RG_ORDER_NONE;
    return rg_load_relaxed(&dev->orders->kind);
}

/* Every thread. The next generation's memory, before any peer may write it. */
RG_FN void rg_keep_clean(struct rg_comm_dev *dev, struct rg_team *team)
{
    const struct rg_orders *orders = dev->orders;
    const uint64_t nparts = rg_load_relaxed(&orders->nparts);

    for (uint64_t i = 0; i < nparts; i++) {
        const struct rg_part *part = &orders->part[i];
        const uint64_t offset = rg_load_relaxed(&part->offset);
        const uint64_t bytes = rg_load_relaxed(&part->bytes);
        const uint64_t stride = rg_load_relaxed(&part->stride);
        const uint64_t count = rg_load_relaxed(&part->count);

        for (uint64_t k = 0; k < count; k++) {
            rg_team_zero(team, dev->region + offset + k * stride, bytes);
            if (dev->segment)
                rg_team_zero(team, dev->segment + offset + k * stride, bytes);
        }
    }
}

/* Every thread. Tells the host how many messages have ended, or starts anew. */
RG_FN void rg_keep_count(const struct rg_comm_dev *dev,
                         const struct rg_team *team, int tells)
{
    const uint64_t words = RG_MESSAGES_OF(dev->slots);

    for (uint64_t i = (uint64_t)team->thread; i < words;
         i += (uint64_t)team->threads)
        if (tells)
            rg_store_relaxed(&dev->told[i], rg_load_relaxed(&dev->messages[i]));
        else
            rg_store_relaxed(&dev->messages[i], 0);
}

/* Every thread. Copies the plan into the idle slot, then opens the word. */
RG_FN void rg_keep_open(struct rg_comm_dev *dev, struct rg_team *team)
{
    const struct rg_orders *orders = dev->orders;
    const uint64_t index = rg_load_relaxed(&orders->index);
    const uint64_t ended = rg_load_relaxed(&orders->ended);
    const uint64_t words = rg_load_relaxed(&orders->plan_bytes) / 8;
    uint64_t *plan = (uint64_t *)(void *)dev->plan[index];
    const uint64_t *from = (const uint64_t *)(const void *)&orders->hot;
    struct rg_hot_plan hot;

    for (uint64_t i = (uint64_t)team->thread; i < words;
         i += (uint64_t)team->threads)
        plan[i] = rg_load_relaxed(&rg_orders_plan(orders)[i]);
    rg_keep_count(dev, team, 0);
    rg_team_barrier(team);
    if (team->thread != 0)
        return;
    for (int lane = 0; lane < RG_LANES; lane++) {
        rg_store_relaxed(&dev->proxy_heads[lane].commands, 0);
        rg_store_relaxed(&dev->proxy_heads[lane].stages, 0);
    }
    for (uint64_t i = 0; i < sizeof hot / 8; i++)
        ((uint64_t *)(void *)&hot)[i] = rg_load_relaxed(&from[i]);
    rg_hot_write(dev, &hot, index, ended);
    rg_store_relaxed(&dev->park_ns, rg_load_relaxed(&orders->park_ns));
    rg_store_relaxed(&dev->undone, rg_load_relaxed(&orders->undone));
    /* Pairs with the claim; the barrier put every thread's part before it. */
    rg_store_release(&dev->control, (ended & RG_CONTROL_SEQ_MASK)
                                            << RG_CONTROL_SEQ_SHIFT |
                                        (index ? RG_CONTROL_PLAN : 0));
}

/* One thread. What was frozen is over; who comes later does not wait. */
RG_FN void rg_keep_abandon(struct rg_comm_dev *dev, int expired)
{
    rg_store_relaxed(&dev->hot.completed, rg_load_relaxed(&dev->frozen));
    rg_store_release(&dev->park_ns, 0);
    if (expired)
        rg_store_release(&dev->mailbox->expired, 1);
}

/*
 * Every thread of the one team that keeps; the word is held and what was
 * claimed has ended. Leaves after OPEN or LEAVE, or when no order came for as
 * long as keep_ns: then the word stays held.
 */
RG_FN void rg_keep(struct rg_comm_dev *dev, struct rg_team *team)
{
    struct rg_mailbox *mailbox = dev->mailbox;
    const uint64_t keeping = rg_load_relaxed(&dev->keepers);
    uint64_t done = rg_load_relaxed(&mailbox->done), kind;

    rg_keep_count(dev, team, 1);
    rg_team_barrier(team);
    if (team->thread == 0) {
        rg_store_relaxed(&mailbox->claimed, rg_load_relaxed(&dev->frozen));
        rg_store_relaxed(&mailbox->completed,
                         rg_load_relaxed(&dev->hot.completed));
        rg_store_release(&mailbox->keeping, keeping);
    }
    do {
        kind = team->thread == 0 ? rg_keep_next(dev, team, done) : 0;
        kind = rg_team_share_word(team, kind);
        if (kind == RG_ORDER_CLEAN)
            rg_keep_clean(dev, team);
        else if (kind == RG_ORDER_OPEN)
            rg_keep_open(dev, team);
        else if (team->thread == 0)
            rg_keep_abandon(dev, kind == RG_ORDER_NONE);
        rg_team_barrier(team);
        done++;
        if (team->thread == 0 && kind != RG_ORDER_NONE)
            rg_store_release(&mailbox->done, done);
    } while (kind == RG_ORDER_CLEAN);
    if (team->thread == 0)
        rg_store_release(&mailbox->kept, keeping);
}

/* One thread. 1: its team is the keeper that comes after `keepers` others. */
RG_FN int rg_keep_claim(struct rg_comm_dev *dev, uint64_t keepers)
{
    return rg_cas_acq_rel_dev(&dev->keepers, keepers, keepers + 1) == keepers;
}

/*
 * Every thread of a team at the safe point. `keepers`, thread 0's: how many
 * there had been while the launch was still in flight, when nobody could claim.
 */
RG_FN void rg_keep_stopped(struct rg_comm_dev *dev, struct rg_team *team,
                           uint64_t keepers)
{
    if (rg_team_share_word(team,
                           team->thread == 0 && rg_keep_claim(dev, keepers)))
        rg_keep(dev, team);
}

/* ---- a launch made to keep ---------------------------------------------- */

/* The seq that a word, found with HELD clear, has claimed, in all its bits. */
RG_FN uint64_t rg_hold_claimed(const struct rg_comm_dev *dev, uint64_t word)
{
    const uint64_t low =
        (word >> RG_CONTROL_SEQ_SHIFT) + ((word & RG_CONTROL_ARRIVALS) != 0);
    const uint64_t completed = rg_load_relaxed(&dev->hot.completed);

    return completed + ((low - completed) & RG_CONTROL_SEQ_MASK);
}

/*
 * One thread. Sets HELD if the epoch in force is still `epoch`; 0 if not, else
 * what is frozen is in `frozen`. The compare and swap fails for an opening in
 * between, since that flips the index.
 */
RG_FN int rg_hold_word(struct rg_comm_dev *dev, uint64_t epoch)
{
    uint64_t word = rg_load_acquire(&dev->control);

    while (!(word & RG_CONTROL_HELD)) {
        const int index = (word & RG_CONTROL_PLAN) != 0;
        const uint64_t held =
            word | RG_CONTROL_HELD |
            (word & (RG_CONTROL_ARRIVALS | RG_CONTROL_MESSENGERS)
                 ? RG_CONTROL_INFLIGHT
                 : 0);
        uint64_t seen;

        if (rg_load_relaxed(&dev->plan[index]->epoch) != epoch)
            return 0;
        seen = rg_cas_acq_rel_dev(&dev->control, word, held);
        if (seen == word)
            rg_store_relaxed(&dev->frozen, rg_hold_claimed(dev, word));
        word = seen == word ? held : seen;
    }
    return 1;
}

/* One thread. 1: the team of this thread is to keep. */
RG_FN int rg_hold(struct rg_comm_dev *dev, const struct rg_team *team,
                  uint64_t epoch, uint64_t keepers)
{
    struct rg_waiter waiter = RG_WAITER_INIT;
    uint64_t frozen;

    if (!rg_hold_word(dev, epoch))
        return 0;
    frozen = rg_load_relaxed(&dev->frozen);
    do {
        /* Pairs with the release of the last team in flight. */
        if (rg_load_acquire(&dev->control) & RG_CONTROL_INFLIGHT)
            continue;
        /* Messages may also have stopped: who claims first then keeps. */
        if (rg_load_relaxed(&dev->hot.completed) == frozen)
            return rg_keep_claim(dev, keepers);
        /* Pairs with the release at the safe point. */
        if (rg_load_acquire(&dev->stopped) == frozen)
            return !dev->parks && rg_keep_claim(dev, keepers);
    } while (rg_waiter_pause(team, &waiter) <= dev->keep_ns);
    return 0;
}

/* Every thread of a launch that helps. */
RG_FN void rg_help(const struct rg_help_args *args, struct rg_team *team)
{
    struct rg_comm_dev *dev = args->comm;

    if (rg_team_share_word(team,
                           team->thread == 0 &&
                               rg_hold(dev, team, args->epoch, args->keepers)))
        rg_keep(dev, team);
}

#endif
