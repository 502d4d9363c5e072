/* Flags: values, sets, sizes, and what must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/input.h"
#include "harness/options.h"
#include "harness/output.h"
#include "runtime/status.h"

struct values {
    uint64_t size;
    int number;
    int flag;
    int choice;
    uint32_t set;
    double real;
    const char *text;
};

#define AT(field) offsetof(struct values, field)

static const struct rg_option table[] = {
    {RG_OPTION_SIZE, 'b', "bytes", AT(size), NULL, 0, 0, "S", ""},
    {RG_OPTION_INT, 'n', NULL, AT(number), NULL, 1, 10, "N", ""},
    {RG_OPTION_FLAG, 'q', "quiet", AT(flag), NULL, 0, 0, "", ""},
    {RG_OPTION_CHOICE, 0, "color", AT(choice), "|red|green", 0, 0, "C", ""},
    {RG_OPTION_SET, 'd', "types", AT(set), RG_OPTION_DTYPES, 0, 0, "T", ""},
    {RG_OPTION_REAL, 0, "ratio", AT(real), NULL, 0.5, 2, "X", ""},
    {RG_OPTION_TEXT, 'o', "out", AT(text), NULL, 0, 0, "F", ""},
    {RG_OPTION_SIZE, 's', "small", AT(size), NULL, 4, 4096, "S", ""},
};

static const struct rg_program program = {"test", "", table, 8, NULL};

static struct values values;

/* Parses words that end with null; the program's name comes first. */
static enum rg_options_result parse(const char *first, ...)
{
    char *argv[16] = {(char *)"test", (char *)first};
    int argc = 1;
    va_list list;

    va_start(list, first);
    while (argv[argc])
        argv[++argc] = va_arg(list, char *);
    va_end(list);
    values = (struct values){.number = 3};
    return rg_options_parse(&program, argc, argv, &values);
}

static void takes_values(void **state)
{
    (void)state;
    assert_int_equal(parse(NULL), RG_OPTIONS_RUN);
    assert_int_equal(values.number, 3);
    assert_int_equal(parse("-b8K", "-n", "10", "-q", NULL), RG_OPTIONS_RUN);
    assert_int_equal(values.size, 8192);
    assert_int_equal(values.number, 10);
    assert_int_equal(values.flag, 1);
    assert_int_equal(
        parse("--bytes=1G", "--color", "green", "--ratio=1.5", "-o-", NULL),
        RG_OPTIONS_RUN);
    assert_int_equal(values.size, 1u << 30);
    assert_int_equal(values.choice, 1);
    assert_true(values.real == 1.5);
    assert_string_equal(values.text, "-");
}

static void takes_sets(void **state)
{
    (void)state;
    assert_int_equal(parse("-d", "f32,i8", NULL), RG_OPTIONS_RUN);
    assert_int_equal(values.set, 1u << RG_f32 | 1u << RG_i8);
    assert_int_equal(parse("--types=all", NULL), RG_OPTIONS_RUN);
    assert_int_equal(values.set, (1u << RG_DTYPE_COUNT) - 1);
}

static void refuses(void **state)
{
    (void)state;
    assert_int_equal(parse("--nothing", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("--byte", "8", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("-", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("word", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("-n", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("-n", "0", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("-n", "11", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("-n", "3x", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("-n3", "-n3", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("--quiet=1", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("--color", "blue", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("-d", "f32,", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("-d", "", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("--ratio", "nan", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("-b", "1T", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("-s", "4K", NULL), RG_OPTIONS_RUN);
    assert_int_equal(parse("-s", "4097", NULL), RG_OPTIONS_USAGE);
    assert_int_equal(parse("-s", "3", NULL), RG_OPTIONS_USAGE);
}

/* In a folder of its own, as the working directory. */
static void looks_at_outputs(void **state)
{
    char folder[] = "/tmp/test-options-XXXXXX", path[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    snprintf(path, sizeof path, "%s/./new", folder);
    assert_null(rg_output_fault("new", RG_OUTPUT_NEW));
    assert_null(rg_output_fault(path, RG_OUTPUT_FILE));
    assert_non_null(rg_output_fault("missing/new", RG_OUTPUT_FILE));
    assert_non_null(rg_output_fault("", RG_OUTPUT_FILE));
    assert_non_null(rg_output_fault(folder, RG_OUTPUT_STREAM));
    assert_null(rg_output_fault("/dev/null", RG_OUTPUT_STREAM));
    assert_non_null(rg_output_fault("/dev/null", RG_OUTPUT_FILE));
    assert_non_null(rg_output_fault("/dev/null", RG_OUTPUT_NEW));
    assert_true(rg_output_is_same("new", path)); /* yet to be made */
    assert_false(rg_output_is_same("new", "other"));
    assert_false(rg_output_is_same("new", NULL));
    assert_int_equal(symlink("there", "link"), 0);
    fclose(fopen("there", "w"));
    assert_true(rg_output_is_same("there", "link"));
    assert_null(rg_output_fault("there", RG_OUTPUT_NEW));
    remove("there");
    remove("link");
    assert_int_equal(chdir("/"), 0);
    rmdir(folder);
}

static void reads_regular_files_alone(void **state)
{
    char path[] = "/tmp/test-options-XXXXXX";
    FILE *file;

    (void)state;
    close(mkstemp(path));
    file = rg_input_open(path);
    assert_non_null(file);
    fclose(file);
    remove(path);
    assert_null(rg_input_open(path));
    assert_null(rg_input_open("/"));
    assert_null(rg_input_open("/dev/zero"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(rg_input_open(path));
    remove(path);
}

static void reads_sizes(void **state)
{
    uint64_t size = 7;
    char text[32];

    (void)state;
    assert_int_equal(rg_options_size("0", &size), RG_OK);
    assert_int_equal(size, 0);
    assert_int_equal(rg_options_size("3m", &size), RG_OK);
    assert_int_equal(size, 3 << 20);
    assert_int_equal(rg_options_size("-1", &size), RG_EINVAL);
    assert_int_equal(rg_options_size("8KB", &size), RG_EINVAL);
    assert_int_equal(rg_options_size("99999999999G", &size), RG_EINVAL);
    assert_int_equal(rg_options_size("18446744073709551616", &size), RG_EINVAL);
    assert_string_equal(rg_options_size_text(0, text, sizeof text), "0");
    assert_string_equal(rg_options_size_text(1000, text, sizeof text), "1000");
    assert_string_equal(rg_options_size_text(65536, text, sizeof text), "64K");
    assert_string_equal(rg_options_size_text(3ull << 40, text, sizeof text),
                        "3072G");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_values),
        cmocka_unit_test(takes_sets),
        cmocka_unit_test(refuses),
        cmocka_unit_test(looks_at_outputs),
        cmocka_unit_test(reads_regular_files_alone),
        cmocka_unit_test(reads_sizes)};

    /* The refused lines are the program's users' business, not the log's. */
    if (!freopen("/dev/null", "w", stderr))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
