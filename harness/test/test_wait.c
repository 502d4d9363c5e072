/* Unit tests of waiting until a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "harness/wait.h"
#include "runtime/status.h"

/* The same clock on both sides: another one's bound has passed, or never does.
 */
static void a_wait_lasts_until_its_time(void **state)
{
    const uint64_t until = rg_now_ns() + 2000000;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;

    (void)state;
    assert_int_equal(rg_wait_init(&cond), RG_OK);
    pthread_mutex_lock(&lock);
    while (rg_wait_until(&cond, &lock, until) == RG_OK)
        ;
    assert_true(rg_now_ns() >= until);
    assert_int_equal(rg_wait_until(&cond, &lock, until), RG_ETIMEDOUT);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&cond);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_lasts_until_its_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
