/* Unit tests of the host's side of a held control word; a thread keeps. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/core/clock.h"
#include "runtime/device/word.h"
#include "runtime/exec/comm.h"
#include "runtime/exec/context.h"
#include "runtime/exec/hold.h"

enum { LINGER_NS = 50000000, NAP_NS = 100000 };

struct fixture {
    struct rg_context context;
    struct rg_comm comm;
    struct rg_comm_mapped mapped;
};

/* A keeper that takes one order and is then slow to leave. */
static void *keep(void *arg)
{
    struct rg_comm_mapped *mapped = arg;
    struct rg_mailbox *mailbox = &mapped->mailbox;

    while (rg_load_acquire(&mapped->orders.number) == 0)
        rg_clock_sleep_ns(NAP_NS);
    rg_store_release(&mailbox->done, 1);
    rg_clock_sleep_ns(LINGER_NS);
    rg_store_release(&mailbox->kept, 1);
    return NULL;
}

/* Else the next change would take the one that leaves for its own keeper. */
static void a_last_order_ends_when_the_keeper_has_gone(void **state)
{
    struct fixture *fixture = aligned_alloc(RG_LINE, sizeof *fixture);
    struct rg_mailbox *mailbox;
    pthread_t keeper;

    (void)state;
    assert_non_null(fixture);
    memset(fixture, 0, sizeof *fixture);
    fixture->context.settings.park_ms = 60000;
    fixture->comm.context = &fixture->context;
    fixture->comm.mapped = &fixture->mapped;
    mailbox = &fixture->mapped.mailbox;
    rg_store_release(&mailbox->keeping, 1);
    assert_int_equal(pthread_create(&keeper, NULL, keep, &fixture->mapped), 0);
    rg_hold_abandon(&fixture->comm);
    assert_int_equal(rg_load_relaxed(&fixture->mapped.orders.kind),
                     RG_ORDER_LEAVE);
    assert_int_equal(rg_load_acquire(&mailbox->kept), 1);
    pthread_join(keeper, NULL);
    free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_last_order_ends_when_the_keeper_has_gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
