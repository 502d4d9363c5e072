/*
 * What a communicator's device side and its host say to each other while the
 * control word is held. Both blocks lie in mapped host memory; each has one
 * writer.
 *
 * While the word is held one team, the *keeper*, carries out the host's orders
 * (keeper.h). It is the last team of an invocation that failed, at its safe
 * point, or a launch made for the purpose when there is none.
 *
 *   host                                  keeper
 *                                   <--   claimed, completed; keeping + 1
 *     CLEAN(parts), number + 1      -->
 *                                   <--   done = number
 *     OPEN(plan), number + 1        -->
 *                                   <--   done = number, the word is open
 *                                   <--   kept = keeping
 *
 * Every arrow is a release store that an acquire load on the other side waits
 * for; the last one too, so that a keeper that still leaves is not taken for
 * the next one.
 */
#ifndef RG_DEVICE_MAILBOX_H
#define RG_DEVICE_MAILBOX_H

#include "runtime/device/plan.h"

struct rg_mailbox {
    /* The last failure; `failure`, their number, is written last. */
    uint64_t failure;
    uint64_t seq;
    uint64_t epoch;
    uint64_t reasons; /* as in the latch */
    uint64_t step;
    uint64_t peers[RG_MAX_SLOTS / 64]; /* ranks waited for, as a bitmap */
    /* The keeper: how many there have been, and what is frozen. */
    uint64_t keeping;
    uint64_t claimed;   /* every seq up to here has been claimed, and ended */
    uint64_t completed; /* every seq up to here has completed */
    uint64_t done;      /* the last order carried out */
    uint64_t kept;      /* keepers that have left */
    uint64_t expired;   /* 1: somebody has waited for longer than its bound */
    uint64_t declined;  /* invocations that no rank could run, so far */
};

enum rg_order_kind {
    RG_ORDER_NONE = 0,
    RG_ORDER_CLEAN, /* zero parts of the region */
    RG_ORDER_OPEN,  /* take the plan, open the word, leave */
    RG_ORDER_LEAVE  /* leave it held: every later launch ends at once */
};

/* `count` blocks of the region, `stride` apart; all multiples of 16. */
struct rg_part {
    uint64_t offset;
    uint64_t bytes; /* of a block */
    uint64_t stride;
    uint64_t count;
};

enum { RG_CLEAN_PARTS = 32 };

/* The orders. A plan lies behind it, as rg_orders_plan() says. */
struct rg_orders {
    uint64_t number; /* of this order, written last; the first is 1 */
    uint64_t kind;   /* enum rg_order_kind */
    uint64_t nparts; /* CLEAN */
    struct rg_part part[RG_CLEAN_PARTS];
    uint64_t index;      /* OPEN: which plan is to be in force, 0 or 1 */
    uint64_t ended;      /* every seq up to here is over */
    uint64_t park_ns;    /* of later launches that find the word held */
    uint64_t undone;     /* OPEN: as in the device block (plan.h) */
    uint64_t plan_bytes; /* a multiple of 8 */
    struct rg_hot_plan hot;
};

RG_FN const uint64_t *rg_orders_plan(const struct rg_orders *orders)
{
    return (const uint64_t *)(const void *)(orders + 1);
}

#endif
