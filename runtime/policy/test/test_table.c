/* Unit tests of the selection table: each error, round trip, bounds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "algos/algos.h"
#include "runtime/policy/default.h"
#include "runtime/policy/table.h"
#include "runtime/regroup.h"

enum { NOISE_BYTES = 10 << 20, LL_MAX = 4096 };

/* ---- toy algorithms ----------------------------------------------------- */

static uint64_t any_size(const struct rg_shape *shape,
                         struct rg_limits *limits_out)
{
    *limits_out = (struct rg_limits){UINT64_MAX, 1 << 20, 0};
    return shape->budget;
}

static uint64_t small_sizes(const struct rg_shape *shape,
                            struct rg_limits *limits_out)
{
    *limits_out = (struct rg_limits){LL_MAX, 0, 0};
    return shape->budget;
}

#define TOY(name, coll, least, most, layout)                                   \
    {                                                                          \
        name, RG_COLL_##coll, 0, least, most, layout, NULL                     \
    }

static const struct rg_algo ring = TOY("ring", all_reduce, 1, 64, any_size);
static const struct rg_algo tree = TOY("tree", all_reduce, 3, 8, any_size);
static const struct rg_algo ring_ll =
    TOY("ring_ll", all_reduce, 1, 64, small_sizes);
static const struct rg_algo gather = TOY("ring", all_gather, 1, 64, any_size);
static const struct rg_algo *const toys[] = {&ring, &tree, &ring_ll, &gather,
                                             NULL};

#define HEAD "regroup-policy 1\nunit bytes-per-rank-buffer\ntopology emu:4\n"
#define REST " - - - - - -\n"

static int parse(const char *text, struct rg_policy_table **table_out,
                 struct rg_policy_error *error_out)
{
    return rg_policy_parse(text, strlen(text), toys, table_out, error_out);
}

static struct rg_policy_table *parsed(const char *text)
{
    struct rg_policy_error error;
    struct rg_policy_table *table = NULL;

    if (parse(text, &table, &error))
        fail_msg("line %d: %s", error.line, error.text);
    return table;
}

/* ---- errors ------------------------------------------------------------- */

static const struct flawed {
    const char *text;
    int line;
    const char *cause;
} flawed[] = {
    {"", 1, "first line"},
    {"\n" HEAD, 1, "first line"},
    {"# x\nregroup-policy 1\n", 1, "first line"},
    {"unit bytes-per-rank-buffer\n", 1, "first line"},
    {"regroup-policy\n", 1, "first line"},
    {"regroup-policy 1 2\n", 1, "first line"},
    {"regroup-policy 2\n", 1, "version"},
    {"regroup-policy x\n", 1, "version"},
    {"regroup-policy 1\n", 0, "no line \"unit"},
    {"regroup-policy 1\nunit elements\n", 2, "unit must be"},
    {"regroup-policy 1\nunit\n", 2, "unit must be"},
    {"regroup-policy 1\nunit bytes-per-rank-buffer\n", 0, "no topology"},
    {"regroup-policy 1\ntopology a\nall_reduce any 1 0 inf ring" REST, 3,
     "before the line \"unit"},
    {"regroup-policy 1\nunit bytes-per-rank-buffer\n"
     "all_reduce any 1 0 inf ring" REST,
     3, "before the topology"},
    {"regroup-policy 1\ntopology a b\n", 2, "one word"},
    {"regroup-policy 1\ntopology a/b\n", 2, "one word"},
    {HEAD, 0, "no rows"},
    {HEAD "regroup-policy 1\n", 4, "second first line"},
    {HEAD "unit bytes-per-rank-buffer\n", 4, "second unit"},
    {HEAD "topology emu:4\n", 4, "second topology"},
    {HEAD "all_reduc any 1 0 inf ring" REST, 4, "collective 'all_reduc'"},
    {HEAD "all_reduce f23 1 0 inf ring" REST, 4, "dtype 'f23'"},
    {HEAD "all_reduce any 0 0 inf ring" REST, 4, "ranks"},
    {HEAD "all_reduce any 3-2 0 inf ring" REST, 4, "ranks"},
    {HEAD "all_reduce any 3- 0 inf ring" REST, 4, "ranks"},
    {HEAD "all_reduce any -3 0 inf ring" REST, 4, "ranks"},
    {HEAD "all_reduce any 2-3-4 0 inf ring" REST, 4, "ranks"},
    {HEAD "all_reduce any 65537 0 inf ring" REST, 4, "ranks"},
    {HEAD "all_reduce any 1 x inf ring" REST, 4, "min 'x'"},
    {HEAD "all_reduce any 1 -1 inf ring" REST, 4, "min '-1'"},
    {HEAD "all_reduce any 1 0 8k ring" REST, 4, "max '8k'"},
    {HEAD "all_reduce any 1 0 18446744073709551615 ring" REST, 4, "max '"},
    {HEAD "all_reduce any 1 0 18446744073709551616 ring" REST, 4, "max '"},
    {HEAD "all_reduce any 1 0 0 ring" REST, 4, "not below max"},
    {HEAD "all_reduce any 1 8 4 ring" REST, 4, "not below max"},
    {HEAD "all_reduce any 1 0 inf tre" REST, 4, "no algorithm 'tre'"},
    {HEAD "all_reduce any 1 0 inf r/ng" REST, 4, "algorithm 'r/ng'"},
    {HEAD "all_gather any 4 0 inf tree" REST, 4, "no algorithm 'tree'"},
    {HEAD "all_reduce any 1 0 inf ring_ll" REST, 4, "protocol ll"},
    {HEAD "all_reduce any 4 0 inf tree - ll - - - -\n", 4, "protocol ll"},
    {HEAD "all_reduce any 1 0 inf ring - simple - - - -\n", 4,
     "protocol 'simple'"},
    {HEAD "all_reduce any 1 0 inf ring - ll - - - -\n", 4, "up to 4096"},
    {HEAD "all_reduce any 1 0 4098 ring - ll - - - -\n", 4, "up to 4096"},
    {HEAD "all_reduce any 1 0 4097 ring - ll 16 - - -\n", 4, "no chunks"},
    {HEAD "all_reduce any 2 0 inf tree" REST, 4, "3 to 8 ranks"},
    {HEAD "all_reduce any 8-9 0 inf tree" REST, 4, "3 to 8 ranks"},
    {HEAD "all_reduce any 1 0 inf ring 0 - - - - -\n", 4, "channels '0'"},
    {HEAD "all_reduce any 1 0 inf ring 65 - - - - -\n", 4, "channels '65'"},
    {HEAD "all_reduce any 1 0 inf ring - - 0 - - -\n", 4, "chunk '0'"},
    {HEAD "all_reduce any 1 0 inf ring - - 24 - - -\n", 4, "multiple of 16"},
    {HEAD "all_reduce any 1 0 inf ring - - 1073741840 - - -\n", 4, "chunk '"},
    {HEAD "all_reduce any 1 0 inf ring - - - nan - -\n", 4, "p50_us 'nan'"},
    {HEAD "all_reduce any 1 0 inf ring - - - -1 - -\n", 4, "p50_us '-1'"},
    {HEAD "all_reduce any 1 0 inf ring - - - 1e999 - -\n", 4, "p50_us"},
    {HEAD "all_reduce any 1 0 inf ring - - - 0x1 - -\n", 4, "p50_us"},
    {HEAD "all_reduce any 1 0 inf ring - - - - a,b -\n", 4, "runner_up"},
    {HEAD "all_reduce any 1 0 inf ring - - - - - 1.1.1\n", 4, "margin"},
    {HEAD "all_reduce any 1 0 inf ring - - - - -\n", 4, "11 fields"},
    {HEAD "all_reduce any 1 0 inf ring - - - - - - -\n", 4, "more than 12"},
    {HEAD "all_reduce any 1 4 inf ring" REST, 4, "gap"},
    {HEAD "all_reduce any 1 0 4 ring" REST, 4, "up to inf"},
    {HEAD "all_reduce any 1 0 4 ring" REST "all_reduce any 2 0 inf ring" REST,
     4, "up to inf"},
    {HEAD "all_reduce any 1 0 4 ring" REST "all_reduce any 1 5 inf ring" REST,
     5, "gap: sizes 4 to 4"},
    {HEAD "all_reduce any 1 0 4 ring" REST "all_reduce any 1 3 inf ring" REST,
     5, "overlap"},
    {HEAD "all_reduce any 1 0 inf ring" REST "all_reduce any 1 0 inf ring" REST,
     5, "overlap"},
    {HEAD "all_reduce any 1 4 inf ring" REST "all_reduce any 1 0 4 ring" REST,
     4, "gap"},
    {HEAD "all_reduce any 1 0 4 ring" REST "all_reduce any 1 4 8 ring" REST
          "all_reduce any 1 2 inf ring" REST,
     6, "out of order"},
    {HEAD "all_reduce any 2 0 inf ring" REST "all_reduce any 1 0 inf ring" REST,
     5, "out of order"},
    {HEAD "all_reduce f32 1 0 inf ring" REST "all_reduce any 1 0 inf ring" REST,
     5, "out of order"},
    {HEAD "all_gather any 1 0 inf ring" REST "all_reduce any 1 0 inf ring" REST,
     5, "out of order"},
    {HEAD "all_reduce any 1-3 0 inf ring" REST
          "all_reduce any 3-4 0 inf ring" REST,
     5, "ranks 3-4 overlap"},
    {HEAD "all_reduce any 1 0 inf ring - - - - - -", 4, "cut off"},
    {HEAD "all_redu", 4, "collective 'all_redu'"},
    {HEAD "# provenance: half a comm", 4, "cut off"},
    {HEAD "all_reduce any 1 0 inf ring" REST "\r\n", 5, "byte 0x0d"},
    {HEAD "# \xc3\xa9\n", 4, "byte 0xc3"},
};

static void each_flaw_is_named_with_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof flawed / sizeof *flawed; i++) {
        struct rg_policy_error error = {-1, ""};
        struct rg_policy_table *table = NULL;

        if (parse(flawed[i].text, &table, &error) != RG_EPOLICY)
            fail_msg("was accepted:\n%s", flawed[i].text);
        if (error.line != flawed[i].line ||
            !strstr(error.text, flawed[i].cause))
            fail_msg("\"%s\" at %d, expected \"%s\" at %d:\n%s", error.text,
                     error.line, flawed[i].cause, flawed[i].line,
                     flawed[i].text);
        assert_null(table);
    }
}

static void an_error_is_one_line(void **state)
{
    const struct rg_policy_error in_line = {7, "gap"}, whole = {0, "no rows"};
    char line[64];

    (void)state;
    rg_policy_error_print(&in_line, "a.rgp", line, sizeof line);
    assert_string_equal(line, "a.rgp:7: gap");
    rg_policy_error_print(&whole, "a.rgp", line, sizeof line);
    assert_string_equal(line, "a.rgp: no rows");
}

static void expect_refusal(const char *text, size_t bytes, const char *cause)
{
    struct rg_policy_error error;
    struct rg_policy_table *table = NULL;

    assert_int_equal(rg_policy_parse(text, bytes, toys, &table, &error),
                     RG_EPOLICY);
    if (!strstr(error.text, cause))
        fail_msg("\"%s\", expected \"%s\"", error.text, cause);
}

static void a_zero_byte_is_noise(void **state)
{
    static const char text[] = HEAD "all_reduce any 1 0\0 inf ring" REST;
    static const char first[] = "\0" HEAD;

    (void)state;
    expect_refusal(text, sizeof text - 1, "byte 0x00");
    expect_refusal(first, sizeof first - 1, "byte 0x00");
}

static void noise_is_refused_whatever_its_size(void **state)
{
    char *noise = malloc(NOISE_BYTES);
    uint64_t word = 1;

    (void)state;
    assert_non_null(noise);
    for (size_t i = 0; i < NOISE_BYTES; i++) {
        word = word * 6364136223846793005ull + 1442695040888963407ull;
        noise[i] = (char)(word >> 56);
    }
    expect_refusal(noise, NOISE_BYTES, "larger than 65535");
    expect_refusal(noise, RG_POLICY_MAX_BYTES, "");
    memset(noise, 'a', NOISE_BYTES);
    expect_refusal(noise, RG_POLICY_MAX_BYTES, "a line of 65535 bytes");
    memset(noise, '\n', NOISE_BYTES);
    expect_refusal(noise, RG_POLICY_MAX_BYTES, "first line");
    free(noise);
}

/* ---- bounds of counts and lengths --------------------------------------- */

static char *grow(char *text, const char *format, int value)
{
    return text + sprintf(text, format, value, value);
}

static void expect(const char *text, const char *cause)
{
    if (cause)
        expect_refusal(text, strlen(text), cause);
    else
        rg_policy_destroy(parsed(text));
}

static void lines_and_rows_have_a_bound(void **state)
{
    char *text = malloc(2 * RG_POLICY_MAX_BYTES), *at;

    (void)state;
    for (int more = 0; more < 2; more++) {
        at = grow(text, HEAD "all_reduce any 1 0 inf ring" REST, 0);
        at = grow(at, "#%*d\n", RG_POLICY_MAX_LINE - 1 + more);
        expect(text, more ? "a line of 513 bytes" : NULL);
        at = grow(text, HEAD "all_reduce any 1 0 inf ring" REST, 0);
        for (int i = 0; i < RG_POLICY_MAX_NOTES + more; i++)
            at = grow(at, "# provenance: %d\n", i);
        expect(text, more ? "more than 256 provenance" : NULL);
        at = grow(text, HEAD, 0);
        for (int i = 0; i < RG_POLICY_MAX_RULES + more - 1; i++)
            at = at + sprintf(at, "all_reduce any 2 %d %d ring" REST, i, i + 1);
        at = grow(at, "all_reduce any 2 %d inf ring" REST,
                  RG_POLICY_MAX_RULES + more - 1);
        expect(text, more ? "17 rows of all_reduce for 2 ranks" : NULL);
    }
    at = grow(text, HEAD, 0);
    for (int i = 0; i <= RG_POLICY_MAX_ROWS; i++)
        at = grow(at, "all_reduce any %d 0 inf ring" REST, i + 1);
    expect(text, "more than 512 rows");
    free(text);
}

/* Rules of a type count with those of `any`: one plan holds them all. */
static void rules_are_counted_over_dtypes(void **state)
{
    char text[8192], *at = text;

    (void)state;
    at = grow(at, HEAD "all_reduce any 1-8 0 inf ring" REST, 0);
    for (int i = 0; i < 15; i++)
        at = at + sprintf(at, "all_reduce f32 4 %d %d ring" REST, i, i + 1);
    grow(at, "all_reduce f32 4 %d inf ring" REST, 15);
    expect(text, "17 rows of all_reduce for 4 ranks");
}

static void a_text_that_grows_when_written_is_refused(void **state)
{
    enum { NOTES = 64 };
    char *text = malloc(2 * RG_POLICY_MAX_BYTES), *at;

    (void)state;
    at = grow(text, "regroup-policy 1\nunit bytes-per-rank-buffer\n", 0);
    for (int i = 0; i < NOTES; i++)
        at = grow(at, "# provenance:%498d\n", i);
    at = grow(at, "topology a\n", 0);
    for (int i = 0; i < 500; i++)
        at = grow(at, "all_reduce any %d 0 inf ring - - - - - -\n", i + 1);
    assert_true(at - text <= RG_POLICY_MAX_BYTES);
    {
        struct rg_policy_error error;
        struct rg_policy_table *table;

        assert_int_equal(
            rg_policy_parse(text, strlen(text), NULL, &table, &error),
            RG_EPOLICY);
        assert_non_null(strstr(error.text, "when it is written"));
    }
    free(text);
}

/* ---- round trip --------------------------------------------------------- */

static void assert_rows_equal(const struct rg_policy_row *a,
                              const struct rg_policy_row *b)
{
    assert_int_equal(a->collective, b->collective);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->min_ranks, b->min_ranks);
    assert_int_equal(a->max_ranks, b->max_ranks);
    assert_true(a->min == b->min && a->max == b->max);
    assert_string_equal(a->algorithm, b->algorithm);
    assert_int_equal(a->protocol, b->protocol);
    assert_int_equal(a->channels, b->channels);
    assert_true(a->chunk == b->chunk);
    assert_true(a->p50_us == b->p50_us && a->margin == b->margin);
    assert_string_equal(a->runner_up, b->runner_up);
}

static void assert_tables_equal(const struct rg_policy_table *a,
                                const struct rg_policy_table *b)
{
    assert_string_equal(a->topology, b->topology);
    assert_int_equal(a->note_count, b->note_count);
    for (int i = 0; i < a->note_count; i++)
        assert_string_equal(a->notes[i], b->notes[i]);
    assert_int_equal(a->row_count, b->row_count);
    for (int i = 0; i < a->row_count; i++)
        assert_rows_equal(&a->rows[i], &b->rows[i]);
}

/* Written, parsed and written again, all is the same. */
static void assert_round_trip(const struct rg_policy_table *table)
{
    struct rg_policy_table *again;
    char *text, *text_again;

    assert_int_equal(rg_policy_write(table, &text), RG_OK);
    again = parsed(text);
    assert_tables_equal(table, again);
    assert_int_equal(rg_policy_write(again, &text_again), RG_OK);
    assert_string_equal(text, text_again);
    assert_true(rg_policy_hash(table) == rg_policy_hash(again));
    free(text);
    free(text_again);
    rg_policy_destroy(again);
}

static const char various[] =
    "regroup-policy 1   # version\n"
    "#provenance:  two\twords   \n"
    "# provenance: # and a mark\n"
    "# a comment that is not kept\n\n"
    "\tunit\tbytes-per-rank-buffer # what min and max count\n"
    "topology nvlink:8x2nodes\n"
    "all_reduce any 1-2 000 17 ring 1 ll - 2.7 twoshot 1.41 # x\n"
    "all_reduce any 1-2 17 18446744073709551614 ring 64 - 1073741824 "
    "0.1 - 3.3333333333333335\n"
    "all_reduce any 1-2 18446744073709551614 inf ring - - 16 1e-300 a.b:c-d "
    "1e300\n"
    "all_reduce any 3-3 0 inf tree" REST "all_reduce i8 1 0 inf ring" REST
    "all_reduce f64 1 0 inf ring - - - 0 - 0.0\n"
    "all_gather bf16 7-64 0 inf ring" REST;

static void a_table_survives_being_written(void **state)
{
    struct rg_policy_table *table = parsed(various);

    (void)state;
    assert_int_equal(table->note_count, 2);
    assert_string_equal(table->notes[0], "two words");
    assert_string_equal(table->notes[1], "# and a mark");
    assert_int_equal(table->row_count, 7);
    assert_string_equal(table->rows[0].runner_up, "twoshot");
    assert_int_equal(table->rows[0].line, 8);
    assert_round_trip(table);
    rg_policy_destroy(table);
}

static void the_hash_knows_the_content(void **state)
{
    struct rg_policy_table *table = parsed(various);
    const uint64_t hash = rg_policy_hash(table);

    (void)state;
    table->rows[1].channels = 63;
    assert_true(rg_policy_hash(table) != hash);
    table->rows[1].channels = 64;
    assert_true(rg_policy_hash(table) == hash);
    rg_policy_destroy(table);
}

/* What is added in any order stands in order. */
static void added_rows_find_their_place(void **state)
{
    struct rg_policy_table *given = parsed(various), *table;
    struct rg_policy_error error;
    struct rg_policy_row bad = given->rows[0];

    (void)state;
    assert_int_equal(rg_policy_create("two words", &table), RG_EINVAL);
    assert_int_equal(rg_policy_create(given->topology, &table), RG_OK);
    for (int i = 0; i < given->note_count; i++)
        assert_int_equal(rg_policy_add_note(table, given->notes[i]), RG_OK);
    for (int i = 0; i < given->row_count; i++)
        assert_int_equal(
            rg_policy_add_row(table, &given->rows[(i * 3 + 5) % 7]), RG_OK);
    assert_tables_equal(given, table);
    assert_int_equal(rg_policy_lint(table, toys, &error), RG_OK);
    bad.chunk = 8;
    assert_int_equal(rg_policy_add_row(table, &bad), RG_EINVAL);
    assert_int_equal(rg_policy_add_note(table, "two\nlines"), RG_EINVAL);
    bad = given->rows[1];
    assert_int_equal(rg_policy_add_row(table, &bad), RG_OK);
    assert_int_equal(rg_policy_lint(table, toys, &error), RG_EPOLICY);
    rg_policy_destroy(given);
    rg_policy_destroy(table);
}

/* ---- look-up ------------------------------------------------------------ */

static int row_at(const struct rg_policy_table *table, enum rg_dtype dtype,
                  int ranks, uint64_t bytes)
{
    const struct rg_policy_row *row =
        rg_policy_find(table, RG_COLL_all_reduce, dtype, ranks, bytes);

    return row ? (int)(row - table->rows) : -1;
}

static void rows_reach_from_bound_to_bound(void **state)
{
    struct rg_policy_table *table = parsed(various);
    const uint64_t high = UINT64_MAX - 1;

    (void)state;
    assert_int_equal(row_at(table, RG_f32, 2, 0), 0);
    assert_int_equal(row_at(table, RG_f32, 2, 16), 0);
    assert_int_equal(row_at(table, RG_f32, 2, 17), 1);
    assert_int_equal(row_at(table, RG_f32, 2, 18), 1);
    assert_int_equal(row_at(table, RG_f32, 2, high - 1), 1);
    assert_int_equal(row_at(table, RG_f32, 2, high), 2);
    assert_int_equal(row_at(table, RG_f32, 2, UINT64_MAX), 2);
    rg_policy_destroy(table);
}

static void a_type_of_its_own_comes_first(void **state)
{
    struct rg_policy_table *table = parsed(various);

    (void)state;
    assert_int_equal(row_at(table, RG_i8, 1, 5), 4);
    assert_int_equal(row_at(table, RG_f64, 1, 5), 5);
    assert_int_equal(row_at(table, RG_i8, 2, 5), 0);
    assert_null(rg_policy_find(table, RG_COLL_all_gather, RG_f32, 8, 5));
    assert_null(rg_policy_find(table, RG_COLL_broadcast, RG_f32, 2, 5));
    rg_policy_destroy(table);
}

static void the_nearest_smaller_rank_count_serves(void **state)
{
    struct rg_policy_table *table = parsed(various);

    (void)state;
    assert_int_equal(rg_policy_ranks(table, RG_COLL_all_reduce, 2), 2);
    assert_int_equal(rg_policy_ranks(table, RG_COLL_all_reduce, 3), 3);
    assert_int_equal(rg_policy_ranks(table, RG_COLL_all_reduce, 900), 3);
    assert_int_equal(rg_policy_ranks(table, RG_COLL_all_gather, 6), 0);
    assert_int_equal(rg_policy_ranks(table, RG_COLL_all_gather, 65), 64);
    assert_int_equal(row_at(table, RG_i8, 900, 5), 3);
    rg_policy_destroy(table);
}

/* ---- built-in tables and files ------------------------------------------ */

static void the_default_tables_suit_the_algorithms(void **state)
{
    (void)state;
    for (int nth = 0; nth < 4; nth++) {
        const char *text =
            rg_policy_default((enum rg_device_kind)(nth / 2), nth % 2);
        struct rg_policy_error error;
        struct rg_policy_table *table;
        char *written;

        if (rg_policy_parse(text, strlen(text), rg_algos, &table, &error))
            fail_msg("%d: line %d: %s", nth, error.line, error.text);
        assert_int_equal(rg_policy_write(table, &written), RG_OK);
        assert_string_equal(written, text);
        assert_true(row_at(table, RG_f32, 1, 8) >= 0);
        assert_int_equal(rg_policy_ranks(table, RG_COLL_all_reduce, 4096),
                         4096);
        free(written);
        rg_policy_destroy(table);
    }
}

static void files_are_read_up_to_a_bound(void **state)
{
    char path[] = "/tmp/rg-policy-XXXXXX";
    const int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    struct rg_policy_error error;
    char line[80];
    size_t bytes;
    char *text;

    (void)state;
    assert_non_null(file);
    for (int i = 0; i < RG_POLICY_MAX_BYTES; i++)
        fputc('x', file);
    fflush(file);
    assert_int_equal(rg_policy_read(path, &text, &bytes, &error), RG_OK);
    assert_int_equal(bytes, RG_POLICY_MAX_BYTES);
    assert_int_equal(strlen(text), bytes);
    free(text);
    fputc('x', file);
    fclose(file);
    assert_int_equal(rg_policy_read(path, &text, &bytes, &error), RG_EPOLICY);
    remove(path);
    assert_int_equal(rg_policy_read(path, &text, &bytes, &error), RG_EPOLICY);
    assert_int_equal(rg_policy_read("/", &text, &bytes, &error), RG_EPOLICY);
    assert_int_equal(rg_policy_read("/dev/zero", &text, &bytes, &error),
                     RG_EPOLICY);
    assert_string_equal(error.text, "is not a regular file");
    /* Nobody writes to it, so who waited would wait for ever. */
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(rg_policy_read(path, &text, &bytes, &error), RG_EPOLICY);
    remove(path);
    rg_policy_error_print(&error, "a\nb", line, sizeof line);
    assert_string_equal(line, "a\\nb: is not a regular file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_flaw_is_named_with_its_line),
        cmocka_unit_test(an_error_is_one_line),
        cmocka_unit_test(a_zero_byte_is_noise),
        cmocka_unit_test(noise_is_refused_whatever_its_size),
        cmocka_unit_test(lines_and_rows_have_a_bound),
        cmocka_unit_test(rules_are_counted_over_dtypes),
        cmocka_unit_test(a_text_that_grows_when_written_is_refused),
        cmocka_unit_test(a_table_survives_being_written),
        cmocka_unit_test(the_hash_knows_the_content),
        cmocka_unit_test(added_rows_find_their_place),
        cmocka_unit_test(rows_reach_from_bound_to_bound),
        cmocka_unit_test(a_type_of_its_own_comes_first),
        cmocka_unit_test(the_nearest_smaller_rank_count_serves),
        cmocka_unit_test(the_default_tables_suit_the_algorithms),
        cmocka_unit_test(files_are_read_up_to_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
