/*
 * The variables that say how others reach this host. With the argument "own"
 * prints the address instead: what follows from the interfaces is for
 * address.t, which makes some.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/core/address.h"
#include "runtime/status.h"

enum { ADDRESS_BYTES = 46 };

static void expect(const char *variable, const char *value, int status,
                   const char *address)
{
    char own[ADDRESS_BYTES] = "";

    setenv(variable, value, 1);
    assert_int_equal(rg_address_own(0, own, sizeof own), status);
    assert_string_equal(own, address);
    assert_true(rg_address_is_given());
    unsetenv(variable);
}

static void a_host_is_resolved(void **state)
{
    (void)state;
    expect("RG_CONTROL_HOST", "192.0.2.7", RG_OK, "192.0.2.7");
    expect("RG_CONTROL_HOST", "2001:db8::7", RG_OK, "2001:db8::7");
    expect("RG_CONTROL_HOST", "192.0.2.", RG_ECONFIG, "");
}

static void an_interface_is_found_by_its_name(void **state)
{
    (void)state;
    expect("RG_CONTROL_IFACE", "lo", RG_OK, "127.0.0.1");
    expect("RG_CONTROL_IFACE", "l", RG_ECONFIG, "");
    expect("RG_CONTROL_IFACE", "lo0", RG_ECONFIG, "");
}

static void an_interface_is_found_by_its_network(void **state)
{
    (void)state;
    expect("RG_CONTROL_IFACE", "127.0.0.0/8", RG_OK, "127.0.0.1");
    expect("RG_CONTROL_IFACE", "127.0.0.1/32", RG_OK, "127.0.0.1");
    expect("RG_CONTROL_IFACE", "127.0.0.0/31", RG_OK, "127.0.0.1");
    expect("RG_CONTROL_IFACE", "127.0.0.2/31", RG_ECONFIG, "");
    expect("RG_CONTROL_IFACE", "240.0.0.0/24", RG_ECONFIG, "");
}

static void a_malformed_network_is_refused(void **state)
{
    (void)state;
    expect("RG_CONTROL_IFACE", "127.0.0/8", RG_ECONFIG, "");
    expect("RG_CONTROL_IFACE", "127.0.0.0/", RG_ECONFIG, "");
    expect("RG_CONTROL_IFACE", "127.0.0.0/33", RG_ECONFIG, "");
    expect("RG_CONTROL_IFACE", "127.0.0.0/8x", RG_ECONFIG, "");
    expect("RG_CONTROL_IFACE", "::1/129", RG_ECONFIG, "");
    expect("RG_CONTROL_IFACE", "lo/8", RG_ECONFIG, "");
}

static void the_host_comes_first(void **state)
{
    (void)state;
    setenv("RG_CONTROL_IFACE", "lo", 1);
    expect("RG_CONTROL_HOST", "192.0.2.7", RG_OK, "192.0.2.7");
    unsetenv("RG_CONTROL_IFACE");
}

static void an_empty_variable_says_nothing(void **state)
{
    (void)state;
    setenv("RG_CONTROL_HOST", "", 1);
    setenv("RG_CONTROL_IFACE", "", 1);
    assert_false(rg_address_is_given());
    unsetenv("RG_CONTROL_HOST");
    unsetenv("RG_CONTROL_IFACE");
}

static int print_own(void)
{
    char own[ADDRESS_BYTES];

    if (rg_address_own(0, own, sizeof own))
        return 1;
    puts(own);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_is_resolved),
        cmocka_unit_test(an_interface_is_found_by_its_name),
        cmocka_unit_test(an_interface_is_found_by_its_network),
        cmocka_unit_test(a_malformed_network_is_refused),
        cmocka_unit_test(the_host_comes_first),
        cmocka_unit_test(an_empty_variable_says_nothing),
    };

    if (argc == 2 && strcmp(argv[1], "own") == 0)
        return print_own();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
