/* Fault plans: what they mean, what is refused and where, round trips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/fault_plan.h"

static const char example[] =
    "# a plan\n"
    "at seq 100 phase mid rank 2 kill          # SIGKILL\n"
    "at seq 100 phase start rank 1 stop 3s; at view 2 phase quiesce rank 0 "
    "kill\n"
    "\tat seq 50 link 0->3 drop\r\n"
    "at seq 50 link 0->3 delay 2ms jitter 1ms\n"
    "\n"
    "at replay 7 of graph A rank 3 error\n"
    "at time 1500ms rank 2 rejoin\n"
    ";; at seq 18446744073709551615 rank 7 exit\n"
    "at seq 4 phase mid link 2->1 break; at seq 5 rank 3 cut 4s\n"
    "at seq 6 rank 2 split 1500ms";

static struct rg_fault_plan *create(const char *text)
{
    struct rg_fault_plan *plan = NULL;

    assert_int_equal(rg_fault_plan_create(text, &plan, NULL), RG_OK);
    return plan;
}

static void reads_entries(void **state)
{
    struct rg_fault_plan *plan = create(example);
    const struct rg_fault *fault;

    (void)state;
    assert_int_equal(rg_fault_plan_size(plan), 11);
    fault = rg_fault_plan_entry(plan, 0);
    assert_int_equal(fault->trigger, RG_FAULT_AT_SEQ);
    assert_int_equal(fault->at, 100);
    assert_int_equal(fault->phase, RG_FAULT_IN_MID);
    assert_int_equal(fault->rank, 2);
    assert_int_equal(fault->to, -1);
    assert_int_equal(fault->action, RG_FAULT_KILL);
    fault = rg_fault_plan_entry(plan, 1);
    assert_int_equal(fault->action, RG_FAULT_STOP);
    assert_int_equal(fault->duration_ns, 3000000000);
    fault = rg_fault_plan_entry(plan, 2);
    assert_int_equal(fault->trigger, RG_FAULT_AT_VIEW);
    assert_int_equal(fault->phase, RG_FAULT_IN_QUIESCE);
    fault = rg_fault_plan_entry(plan, 3);
    assert_int_equal(fault->phase, RG_FAULT_IN_ANY);
    assert_int_equal(fault->rank, 0);
    assert_int_equal(fault->to, 3);
    assert_int_equal(fault->action, RG_FAULT_DROP);
    fault = rg_fault_plan_entry(plan, 4);
    assert_int_equal(fault->action, RG_FAULT_DELAY);
    assert_int_equal(fault->duration_ns, 2000000);
    assert_int_equal(fault->jitter_ns, 1000000);
    fault = rg_fault_plan_entry(plan, 5);
    assert_int_equal(fault->trigger, RG_FAULT_AT_REPLAY);
    assert_string_equal(fault->graph, "A");
    assert_int_equal(fault->action, RG_FAULT_ERROR);
    fault = rg_fault_plan_entry(plan, 6);
    assert_int_equal(fault->trigger, RG_FAULT_AT_TIME);
    assert_int_equal(fault->at, 1500000000);
    assert_int_equal(fault->action, RG_FAULT_REJOIN);
    fault = rg_fault_plan_entry(plan, 7);
    assert_true(fault->at == UINT64_MAX);
    assert_int_equal(fault->action, RG_FAULT_EXIT);
    fault = rg_fault_plan_entry(plan, 8);
    assert_int_equal(fault->action, RG_FAULT_BREAK);
    assert_int_equal(fault->rank, 2);
    assert_int_equal(fault->to, 1);
    fault = rg_fault_plan_entry(plan, 9);
    assert_int_equal(fault->action, RG_FAULT_CUT);
    assert_int_equal(fault->duration_ns, 4000000000);
    fault = rg_fault_plan_entry(plan, 10);
    assert_int_equal(fault->action, RG_FAULT_SPLIT);
    assert_int_equal(fault->duration_ns, 1500000000);
    rg_fault_plan_destroy(plan);
}

static void allows_nothing(void **state)
{
    static const char *const empty[] = {"", "\n\n", " # only this", ";;\t;"};

    (void)state;
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        struct rg_fault_plan *plan = create(empty[i]);

        assert_int_equal(rg_fault_plan_size(plan), 0);
        assert_int_equal(rg_fault_plan_missed(plan), -1);
        rg_fault_plan_destroy(plan);
    }
}

static void refuses_with_place_and_cause(void **state)
{
    static const struct {
        const char *text;
        int line, column;
        const char *cause;
    } bad[] = {
        {"on seq 1 rank 0 kill", 1, 1, "expected at, not 'on'"},
        {"at sequel 1 rank 0 kill", 1, 4, "seq, view, replay or time"},
        {"at seq x rank 0 kill", 1, 8, "a whole number"},
        {"at seq -1 rank 0 kill", 1, 8, "a whole number"},
        {"at seq 18446744073709551616 rank 0 kill", 1, 8, "a whole number"},
        {"at seq 1 phase middle rank 0 kill", 1, 16, "not 'middle'"},
        {"at seq 1 phase any rank 0 kill", 1, 16, "not 'any'"},
        {"at seq 1 phase mid phase mid rank 0 kill", 1, 20, "rank or link"},
        {"# fine\n  at seq 1 kill", 2, 12, "phase, rank or link"},
        {"at seq 1 rank 0", 1, 16, "not 'the end of the entry'"},
        {"at seq 1 rank 2147483648 kill", 1, 15, "a rank"},
        {"at seq 1 rank 0 drop", 1, 17, "kill, stop, exit, error, cut"},
        {"at seq 1 rank 0 none", 1, 17, "not 'none'"},
        {"at seq 1 rank 0 stop", 1, 21, "a duration"},
        {"at seq 1 rank 0 stop 3", 1, 22, "a duration"},
        {"at seq 1 rank 0 stop 3m", 1, 22, "a duration"},
        {"at seq 1 rank 0 stop s", 1, 22, "a duration"},
        {"at seq 1 rank 0 stop 18446744073709551615s", 1, 22, "584 years"},
        {"at seq 1 rank 0 cut", 1, 20, "a duration"},
        {"at seq 1 link 0->3 break 3s", 1, 26, "the end of the entry"},
        {"at seq 1 rank 0 kill 3s", 1, 22, "the end of the entry"},
        {"at seq 1 link 0-3 drop", 1, 15, "a link like 0->3"},
        {"at seq 1 link 0-> drop", 1, 15, "a link like 0->3"},
        {"at seq 1 link 0->3x drop", 1, 15, "a link like 0->3"},
        {"at seq 1 link 3->3 drop", 1, 15, "between two ranks"},
        {"at seq 1 link 0->3 kill", 1, 20, "drop, break"},
        {"at seq 1 link 0->3 delay", 1, 25, "a duration"},
        {"at seq 1 link 0->3 delay 1ms jitter", 1, 36, "a duration"},
        {"at replay 7 rank 3 kill", 1, 13, "expected of"},
        {"at replay 7 of graph rank 3 kill", 1, 27, "phase, rank or link"},
        {"at replay 7 of graph abcdefghijklmnop rank 3 kill", 1, 22, "15"},
        {"at time 5 rank 2 rejoin", 1, 9, "a duration"},
        {"at seq 1 rank 0 kill\n\nat seq 2 rank\x01 0 kill", 3, 10, "'rank?'"},
        {"at seq 1 rank 0 kill\nat seq 2 rank 0 kill; at seq 1 rank 0 kill", 2,
         23, "the same fault as in entry 1"},
        {"at seq 1 rank 0 stop 1s; at seq 1 rank 0 stop 2s", 1, 26, "same"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rg_fault_plan *plan = NULL;
        struct rg_fault_error error = {0};

        assert_int_equal(rg_fault_plan_create(bad[i].text, &plan, &error),
                         RG_ECONFIG);
        assert_null(plan);
        if (!strstr(error.cause, bad[i].cause) || error.line != bad[i].line ||
            error.column != bad[i].column)
            fail_msg("\"%s\": %d:%d: %s", bad[i].text, error.line, error.column,
                     error.cause);
    }
}

static void prints_what_it_read(void **state)
{
    struct rg_fault_plan *plan = create(example);
    struct rg_fault_plan *again;
    char text[1024], text2[1024], cut[16];
    int length = rg_fault_plan_print(plan, text, sizeof text);

    (void)state;
    assert_int_equal(length, strlen(text));
    again = create(text);
    assert_int_equal(rg_fault_plan_size(again), rg_fault_plan_size(plan));
    for (int i = 0; i < rg_fault_plan_size(plan); i++)
        assert_memory_equal(rg_fault_plan_entry(plan, i),
                            rg_fault_plan_entry(again, i),
                            sizeof(struct rg_fault));
    rg_fault_plan_print(again, text2, sizeof text2);
    assert_string_equal(text, text2);
    assert_non_null(strstr(text, "at time 1500ms rank 2 rejoin\n"));

    assert_int_equal(rg_fault_plan_print(plan, cut, sizeof cut), length);
    assert_int_equal(strlen(cut), sizeof cut - 1);
    assert_int_equal(rg_fault_plan_print(plan, NULL, 0), length);
    rg_fault_plan_destroy(again);
    rg_fault_plan_destroy(plan);
}

static void loads_files_and_texts(void **state)
{
    char path[] = "/tmp/test_fault_plan_XXXXXX";
    struct rg_fault_plan *plan;
    struct rg_fault_error error;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, example, strlen(example)), strlen(example));
    close(fd);
    assert_int_equal(rg_fault_plan_load(path, &plan, NULL), RG_OK);
    assert_int_equal(rg_fault_plan_size(plan), 11);
    rg_fault_plan_destroy(plan);
    unlink(path);
    assert_int_equal(rg_fault_plan_load("at seq 1 rank 0 kill", &plan, NULL),
                     RG_OK);
    assert_int_equal(rg_fault_plan_size(plan), 1);
    rg_fault_plan_destroy(plan);
    assert_int_equal(rg_fault_plan_load(path, &plan, &error), RG_ECONFIG);
}

static int due(struct rg_fault_plan *plan, int rank,
               enum rg_fault_trigger trigger, uint64_t at,
               enum rg_fault_phase phase, const char *graph)
{
    const struct rg_fault_moment moment = {trigger, phase, at, graph};

    return rg_fault_plan_due(plan, 0, rank, &moment);
}

static void finds_what_is_due(void **state)
{
    struct rg_fault_plan *plan = create(example);

    (void)state;
    assert_int_equal(due(plan, 2, RG_FAULT_AT_SEQ, 100, RG_FAULT_IN_MID, NULL),
                     0);
    assert_int_equal(
        due(plan, 2, RG_FAULT_AT_SEQ, 100, RG_FAULT_IN_START, NULL), -1);
    assert_int_equal(due(plan, 2, RG_FAULT_AT_SEQ, 101, RG_FAULT_IN_MID, NULL),
                     -1);
    assert_int_equal(due(plan, 1, RG_FAULT_AT_SEQ, 100, RG_FAULT_IN_MID, NULL),
                     -1);
    assert_int_equal(due(plan, 2, RG_FAULT_AT_VIEW, 100, RG_FAULT_IN_MID, NULL),
                     -1);
    /* no phase given: any */
    assert_int_equal(due(plan, 0, RG_FAULT_AT_SEQ, 50, RG_FAULT_IN_APPLY, NULL),
                     3);
    rg_fault_plan_count(plan, 3);
    assert_int_equal(due(plan, 0, RG_FAULT_AT_SEQ, 50, RG_FAULT_IN_APPLY, NULL),
                     4);
    assert_int_equal(due(plan, 3, RG_FAULT_AT_REPLAY, 7, RG_FAULT_IN_MID, "A"),
                     5);
    assert_int_equal(due(plan, 3, RG_FAULT_AT_REPLAY, 7, RG_FAULT_IN_MID, "B"),
                     -1);
    assert_int_equal(due(plan, 3, RG_FAULT_AT_REPLAY, 7, RG_FAULT_IN_MID, NULL),
                     -1);
    assert_int_equal(
        due(plan, 2, RG_FAULT_AT_TIME, 1499999999, RG_FAULT_IN_IDLE, NULL), -1);
    assert_int_equal(
        due(plan, 2, RG_FAULT_AT_TIME, 1500000001, RG_FAULT_IN_IDLE, NULL), 6);
    rg_fault_plan_destroy(plan);
}

static void counts_injections(void **state)
{
    struct rg_fault_plan *plan =
        create("at seq 1 rank 0 kill; at seq 2 rank 1 kill");

    (void)state;
    assert_int_equal(rg_fault_plan_missed(plan), 0);
    rg_fault_plan_count(plan, 0);
    rg_fault_plan_count(plan, 0);
    rg_fault_plan_count(plan, -1);
    rg_fault_plan_count(plan, 2);
    assert_int_equal(rg_fault_plan_entry(plan, 0)->injected, 2);
    assert_int_equal(rg_fault_plan_missed(plan), 1);
    rg_fault_plan_count(plan, 1);
    assert_int_equal(rg_fault_plan_missed(plan), -1);
    rg_fault_plan_destroy(plan);
}

/* xorshift: the same texts every time. */
static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* Overwrites, repeats or cuts out a few bytes. */
static void mutate(char *text, size_t room, uint32_t *seed)
{
    static const char bytes[] = "0123456789 \n;#->satmk\x7f\xff\r\t";

    for (int i = 1 + (int)(next_random(seed) % 4); i > 0; i--) {
        const size_t length = strlen(text);
        const size_t at = next_random(seed) % (length + 1);
        const size_t n = next_random(seed) % (length - at + 1);

        switch (next_random(seed) % 3) {
        case 0:
            if (at < length)
                text[at] = bytes[next_random(seed) % (sizeof bytes - 1)];
            break;
        case 1:
            if (length + n < room)
                memmove(text + at + n, text + at, length - at + 1);
            break;
        default:
            memmove(text + at, text + at + n, length - at - n + 1);
        }
    }
}

/* Whatever is accepted must print as something that reads the same; whatever
 * is refused must name a place inside the text. */
static void survives_mutations(void **state)
{
    uint32_t seed = 20240229;
    int accepted = 0;
    int refused = 0;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        char *text = calloc(1, 4096), printed[8192], again[8192];
        struct rg_fault_plan *plan = NULL;
        struct rg_fault_error error = {0};

        strcpy(text, example);
        mutate(text, 4096, &seed);
        if (rg_fault_plan_create(text, &plan, &error) == RG_OK) {
            rg_fault_plan_print(plan, printed, sizeof printed);
            rg_fault_plan_destroy(plan);
            plan = create(printed);
            rg_fault_plan_print(plan, again, sizeof again);
            rg_fault_plan_destroy(plan);
            assert_string_equal(printed, again);
            accepted++;
        } else {
            assert_in_range(error.line, 1, 1 + strlen(text));
            assert_in_range(error.column, 1, 1 + strlen(text));
            assert_true(error.cause[0] != '\0');
            refused++;
        }
        free(text);
    }
    assert_true(accepted > 500);
    assert_true(refused > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_entries),
        cmocka_unit_test(allows_nothing),
        cmocka_unit_test(refuses_with_place_and_cause),
        cmocka_unit_test(prints_what_it_read),
        cmocka_unit_test(loads_files_and_texts),
        cmocka_unit_test(finds_what_is_due),
        cmocka_unit_test(counts_injections),
        cmocka_unit_test(survives_mutations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
