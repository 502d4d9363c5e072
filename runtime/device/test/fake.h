/*
 * One rank's device side for tests: a communicator of FAKE_RANKS ranks whose
 * regions are arrays, and a clock that moves with each failed poll. A hook
 * called at each poll plays whatever else happens in the world meanwhile.
 */
#ifndef RG_DEVICE_TEST_FAKE_H
#define RG_DEVICE_TEST_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/device/mailbox.h"
#include "runtime/device/call.h"

enum {
    FAKE_RANKS = 3,
    FAKE_WORDS = 512, /* of a region */
    FAKE_BYTES = FAKE_WORDS * 8,
    FAKE_EPOCH = 5
};

struct fake {
    struct rg_emu_team emu;
    struct rg_comm_dev dev;
    struct rg_mailbox mailbox;
    struct {
        struct rg_orders orders;
        uint64_t plan[(sizeof(struct rg_plan) +
                       FAKE_RANKS * sizeof(struct rg_route)) /
                      8];
    } mapped;
    uint64_t abort_epoch;
    uint64_t region[FAKE_RANKS][FAKE_WORDS];
    struct rg_plan *plan[2]; /* owned */
    struct rg_call call;
    uint64_t now;  /* ns */
    uint64_t step; /* ns a failed poll takes */
    uint64_t polls;
    void (*hook)(struct fake *fake);
};

/* Clock and relax have no argument for it: the fake a thread works with. */
static _Thread_local struct fake *fake_here;

static uint64_t fake_now_ns(void)
{
    return fake_here->now;
}

static void fake_relax(uint64_t polls, int crowded)
{
    (void)polls;
    (void)crowded;
    fake_here->now += fake_here->step;
    fake_here->polls++;
    if (fake_here->hook)
        fake_here->hook(fake_here);
}

static struct rg_plan *fake_plan(struct fake *fake)
{
    struct rg_plan *plan =
        test_calloc(1, sizeof *plan + FAKE_RANKS * sizeof(struct rg_route));

    plan->epoch = FAKE_EPOCH;
    plan->first_seq = 1;
    plan->nranks = FAKE_RANKS;
    plan->landing = (uint8_t *)fake->region[0];
    for (int i = 0; i < FAKE_RANKS; i++)
        plan->routes[i] =
            (struct rg_route){.kind = i ? RG_ROUTE_P2P : RG_ROUTE_SELF,
                              .base = (uint8_t *)fake->region[i],
                              .bytes = FAKE_BYTES};
    return plan;
}

static int fake_setup(void **state)
{
    struct fake *fake = aligned_alloc(RG_LINE, sizeof *fake);

    assert_non_null(fake);
    memset(fake, 0, sizeof *fake);
    fake_here = fake;
    fake->now = fake->step = 1000;
    fake->emu.now_ns = fake_now_ns;
    fake->emu.relax = fake_relax;
    fake->dev.deadline_ns = 10000000;
    fake->dev.gate_ns = 20000;
    fake->dev.park_ns = fake->dev.keep_ns = 5000000;
    fake->dev.region = (uint8_t *)fake->region[0];
    fake->dev.region_bytes = FAKE_BYTES;
    fake->dev.abort_epoch = &fake->abort_epoch;
    fake->dev.mailbox = &fake->mailbox;
    fake->dev.orders = &fake->mapped.orders;
    for (int i = 0; i < 2; i++)
        fake->dev.plan[i] = fake->plan[i] = fake_plan(fake);
    fake->call.team =
        (struct rg_team){.threads = 1, .count = 1, .emu = &fake->emu};
    fake->call.dev = &fake->dev;
    fake->call.plan = fake->plan[0];
    *state = fake;
    return 0;
}

static int fake_teardown(void **state)
{
    struct fake *fake = *state;

    for (int i = 0; i < 2; i++)
        test_free(fake->plan[i]);
    free(fake);
    return 0;
}

/* Puts the plan's mark on the hot line. */
static inline void fake_mark(struct fake *fake, uint64_t mark)
{
    struct rg_hot_line *line = &fake->dev.hot;

    line->packets = (line->packets & ~1ull) | mark;
    line->cursor = (line->cursor & ~1ull) | mark;
    line->ranks = (line->ranks & ~1ull) | mark;
    line->blocks = (line->blocks & ~1ull) | mark;
    for (int p = 0; p < RG_HOT_PEERS; p++)
        line->inbox[p] = (line->inbox[p] & ~1ull) | mark;
}

#define FAKE_TEST(name)                                                        \
    cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

#endif
