/* Unit tests of runtime/core: parsing, settings, names, sets, log, clock, cond.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>

#include <cmocka.h>

#include "runtime/core/bitset.h"
#include "runtime/core/clock.h"
#include "runtime/core/cond.h"
#include "runtime/core/env.h"
#include "runtime/core/escape.h"
#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/core/settings.h"
#include "runtime/regroup.h"

/* Runs `body` with standard error going to `text` (terminated). */
static void capture_stderr(void (*body)(void), char *text, size_t bytes)
{
    int ends[2];
    int saved = dup(STDERR_FILENO);
    ssize_t got;

    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    body();
    dup2(saved, STDERR_FILENO);
    close(saved);
    got = read(ends[0], text, bytes - 1);
    text[got > 0 ? got : 0] = '\0';
    close(ends[0]);
}

static void sizes_are_strict(void **state)
{
    static const char *const bad[] = {"",
                                      "K",
                                      "-1",
                                      "+1",
                                      "1KK",
                                      "1 K",
                                      " 1",
                                      "1B",
                                      "0x10",
                                      "4k5",
                                      "18446744073709551616",
                                      "99999999999T"};
    uint64_t value = 7;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(rg_parse_size(bad[i], &value), RG_EINVAL);
    assert_int_equal(rg_parse_u64("8K", &value), RG_EINVAL);
    assert_int_equal(value, 7);
    assert_int_equal(rg_parse_size("18446744073709551615", &value), RG_OK);
    assert_true(value == UINT64_MAX);
    assert_int_equal(rg_parse_size("4k", &value), RG_OK);
    assert_int_equal(value, 4096);
    assert_int_equal(rg_parse_size("2G", &value), RG_OK);
    assert_int_equal(value, 2ull << 30);
}

static void read_bad_variable(void)
{
    uint64_t value = 3;

    assert_int_equal(rg_env_u64("RG_TEST_VALUE", &value), RG_ECONFIG);
    assert_int_equal(value, 3);
}

static void environment_errors_name_the_variable(void **state)
{
    char text[256];
    uint64_t value = 5;
    int flag = 1;

    (void)state;
    setenv("RG_TEST_VALUE", "12x", 1);
    capture_stderr(read_bad_variable, text, sizeof(text));
    assert_string_equal(
        text, "regroup: RG_TEST_VALUE=12x is not an unsigned decimal number\n");
    setenv("RG_TEST_VALUE", "", 1);
    assert_int_equal(rg_env_u64("RG_TEST_VALUE", &value), RG_OK);
    assert_int_equal(value, 5);
    setenv("RG_TEST_VALUE", "Off", 1);
    assert_int_equal(rg_env_bool("RG_TEST_VALUE", &flag), RG_OK);
    assert_int_equal(flag, 0);
    unsetenv("RG_TEST_VALUE");
}

static void settings_take_defaults_then_environment(void **state)
{
    struct rg_settings settings;

    (void)state;
    unsetenv("RG_WINDOW_MS");
    setenv("RG_REGION_BYTES", "64M", 1);
    setenv("RG_DEADLINE_MS", "250", 1);
    assert_int_equal(rg_settings_load(&settings), RG_OK);
    assert_int_equal(settings.window_ms, 1000);
    assert_int_equal(settings.region_bytes, 64 << 20);
    assert_int_equal(settings.deadline_ms, 250);
    unsetenv("RG_REGION_BYTES");
    unsetenv("RG_DEADLINE_MS");
}

static void load_settings_expecting_error(void)
{
    struct rg_settings settings = {.window_ms = 1};

    assert_int_equal(rg_settings_load(&settings), RG_ECONFIG);
    assert_int_equal(settings.window_ms, 1);
}

static void settings_out_of_range_are_refused(void **state)
{
    static const char *const wrong[][2] = {
        {"RG_WORKSPACES", "1"},     {"RG_WORKSPACES", "9"},
        {"RG_WINDOW_MS", "0"},      {"RG_HEARTBEAT_MISS_MS", "200"},
        {"RG_PARK_MS", "86400001"}, {"RG_GATE_US", "fast"}};
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        setenv(wrong[i][0], wrong[i][1], 1);
        capture_stderr(load_settings_expecting_error, text, sizeof(text));
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
        unsetenv(wrong[i][0]);
    }
}

static void names_and_parsers_are_inverse(void **state)
{
    enum rg_dtype dtype = RG_i8;
    enum rg_op op = RG_sum;

    (void)state;
    for (int i = 0; i < RG_DTYPE_COUNT; i++) {
        assert_int_equal(
            rg_dtype_parse(rg_dtype_name((enum rg_dtype)i), &dtype), RG_OK);
        assert_int_equal(dtype, i);
    }
    for (int i = 0; i < RG_OP_COUNT; i++) {
        assert_int_equal(rg_op_parse(rg_op_name((enum rg_op)i), &op), RG_OK);
        assert_int_equal(op, i);
    }
    assert_int_equal(rg_dtype_parse("F32", &dtype), RG_EINVAL);
    assert_int_equal(rg_op_parse("", &op), RG_EINVAL);
    assert_int_equal(rg_dtype_size(RG_bf16), 2);
    assert_int_equal(rg_dtype_size(RG_f64), 8);
    assert_int_equal(rg_dtype_size(RG_DTYPE_COUNT), 0);
    assert_string_equal(rg_dtype_name(RG_DTYPE_COUNT), "?");
    assert_string_equal(rg_op_name((enum rg_op) - 1), "?");
    assert_string_equal(rg_collective_name(RG_COLL_all_reduce), "all_reduce");
    assert_string_equal(rg_collective_name(RG_COLL_transfer), "transfer");
    assert_string_equal(rg_collective_name(RG_COLL_AREAS), "?");
    assert_string_equal(rg_route_name(RG_ROUTE_SELF), "self");
    assert_string_equal(rg_route_name(RG_ROUTE_HOST), "host");
    assert_string_equal(rg_route_name(RG_ROUTE_COUNT), "?");
}

static void every_status_has_its_own_sentence(void **state)
{
    (void)state;
    for (int a = RG_ECLOSED; a <= RG_OK; a++) {
        assert_string_not_equal(rg_status_string(a), "unknown status");
        for (int b = RG_ECLOSED; b < a; b++)
            assert_string_not_equal(rg_status_string(a), rg_status_string(b));
    }
    assert_string_equal(rg_status_string(1), "unknown status");
}

static void bitset_walks_all_bits(void **state)
{
    static const int members[] = {0, 63, 64, 127, 4095};
    struct rg_bitset set = {0};
    struct rg_bitset copy = {0};
    int at = -1;

    (void)state;
    assert_int_equal(rg_bitset_init(&set, 4096), RG_OK);
    assert_int_equal(rg_bitset_init(&copy, 4096), RG_OK);
    assert_int_equal(rg_bitset_next(&set, 0), -1);
    for (int i = 0; i < 5; i++)
        rg_bitset_set(&set, members[i]);
    for (int i = 0; i < 5; i++) {
        at = rg_bitset_next(&set, at + 1);
        assert_int_equal(at, members[i]);
    }
    assert_int_equal(rg_bitset_next(&set, at + 1), -1);
    assert_int_equal(rg_bitset_count(&set), 5);
    rg_bitset_copy(&copy, &set);
    assert_true(rg_bitset_equal(&copy, &set));
    rg_bitset_clear(&copy, 64);
    assert_false(rg_bitset_test(&copy, 64));
    assert_false(rg_bitset_equal(&copy, &set));
    rg_bitset_zero(&set);
    assert_int_equal(rg_bitset_count(&set), 0);
    rg_bitset_fini(&set);
    rg_bitset_fini(&copy);
    rg_bitset_fini(&copy);
}

static void hash_matches_published_vectors(void **state)
{
    uint64_t whole = rg_hash(RG_HASH_INIT, "foobar", 6);
    uint64_t parts = rg_hash(RG_HASH_INIT, "foo", 3);

    (void)state;
    assert_true(rg_hash(RG_HASH_INIT, "", 0) == 0xcbf29ce484222325ull);
    assert_true(rg_hash(RG_HASH_INIT, "a", 1) == 0xaf63dc4c8601ec8cull);
    assert_true(whole == 0x85944171f73967e8ull);
    assert_true(rg_hash(parts, "bar", 3) == whole);
}

static void log_three_lines(void)
{
    char filler[3000];

    memset(filler, 'x', sizeof(filler));
    filler[sizeof(filler) - 1] = '\0';
    errno = ENOENT;
    rg_log(RG_LOG_WARN, 3, "number %d", 42);
    rg_log(RG_LOG_INFO, 3, "not at this level");
    assert_int_equal(errno, ENOENT);
    rg_log(RG_LOG_ERROR, -1, "%s", filler);
}

static void log_is_one_prefixed_line_a_call(void **state)
{
    static const char first[] = "regroup[3]: number 42\n";
    char text[4096];

    (void)state;
    setenv("RG_LOG", "warn", 1);
    capture_stderr(log_three_lines, text, sizeof(text));
    assert_memory_equal(text, first, strlen(first));
    assert_memory_equal(text + strlen(first), "regroup: xxx", 12);
    assert_int_equal(strlen(text + strlen(first)), 1023);
    assert_int_equal(text[strlen(text) - 1], '\n');
    unsetenv("RG_LOG");
}

static void log_a_name(void)
{
    rg_log(RG_LOG_ERROR, 3, "a\nname\x01");
}

static void a_name_stays_on_its_line(void **state)
{
    char text[16], line[4096];

    (void)state;
    assert_int_equal(rg_escape("a\n\tb\x7f\xc3\xa4", text, sizeof(text)), 12);
    assert_string_equal(text, "a\\n\\tb\\x7f\xc3\xa4");
    assert_int_equal(rg_escape("abc\n", text, 5), 3);
    assert_string_equal(text, "abc");
    assert_int_equal(rg_escape("", text, 1), 0);
    capture_stderr(log_a_name, line, sizeof(line));
    assert_string_equal(line, "regroup[3]: a\\nname\\x01\n");
}

static void sleeping_lasts_at_least_as_long(void **state)
{
    uint64_t begin = rg_clock_ns();

    (void)state;
    rg_clock_sleep_ns(2000000);
    assert_true(rg_clock_ns() - begin >= 2000000);
}

/* The same clock on both sides: another one's bound has passed, or never does.
 */
static void a_wait_lasts_until_its_time(void **state)
{
    const uint64_t until = rg_clock_after_ms(2);
    pthread_mutex_t lock;
    pthread_cond_t cond;

    (void)state;
    assert_int_equal(rg_cond_init_locked(&cond, &lock), RG_OK);
    pthread_mutex_lock(&lock);
    while (rg_cond_wait(&cond, &lock, until) == RG_OK)
        ;
    assert_true(rg_clock_ns() >= until);
    assert_int_equal(rg_cond_wait(&cond, &lock, until), RG_ETIMEDOUT);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&cond);
    pthread_mutex_destroy(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_strict),
        cmocka_unit_test(environment_errors_name_the_variable),
        cmocka_unit_test(settings_take_defaults_then_environment),
        cmocka_unit_test(settings_out_of_range_are_refused),
        cmocka_unit_test(names_and_parsers_are_inverse),
        cmocka_unit_test(every_status_has_its_own_sentence),
        cmocka_unit_test(bitset_walks_all_bits),
        cmocka_unit_test(hash_matches_published_vectors),
        cmocka_unit_test(log_is_one_prefixed_line_a_call),
        cmocka_unit_test(a_name_stays_on_its_line),
        cmocka_unit_test(sleeping_lasts_at_least_as_long),
        cmocka_unit_test(a_wait_lasts_until_its_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
