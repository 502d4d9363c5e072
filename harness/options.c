#include "harness/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/input.h"
#include "harness/launch.h"
#include "harness/output.h"
#include "harness/verdict.h"

enum {
    NAME_WIDTH = 26,
    /* Until a launcher has ended who is left: also one that waits for others
     * to have said what they found. */
    ALONE_S = 5
};

enum rg_options_result rg_options_refuse(const struct rg_program *program,
                                         const char *format, ...)
{
    char line[512];
    va_list list;

    /* Mostly all ranks are told the same: rank 0 says it, and a launcher ends
     * the others. Who is left here alone says it, too. */
    if (rg_launch_env_rank() != 0)
        sleep(ALONE_S);
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    rg_say(program->name, "%s", line);
    return RG_OPTIONS_USAGE;
}

void rg_options_command(const char *program, int argc, char **argv, char *text,
                        size_t room)
{
    size_t used = (size_t)snprintf(text, room, "%s", program);

    for (int i = 1; i < argc && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, " %s", argv[i]);
}

int rg_options_exit(enum rg_options_result result)
{
    return result == RG_OPTIONS_HELP ? rg_output_close(RG_EXIT_PASS)
                                     : RG_EXIT_USAGE;
}

int rg_options_size(const char *text, uint64_t *value_out)
{
    static const char suffixes[] = "KMG";
    const char *suffix;
    char *end;
    uint64_t value;
    int shift = 0;

    if (text[0] < '0' || text[0] > '9')
        return RG_EINVAL;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (*end) {
        suffix = strchr(suffixes, *end & ~0x20);
        if (!suffix || end[1])
            return RG_EINVAL;
        shift = 10 * (int)(suffix - suffixes + 1);
    }
    if (errno || value > UINT64_MAX >> shift)
        return RG_EINVAL;
    *value_out = value << shift;
    return RG_OK;
}

const char *rg_options_size_text(uint64_t bytes, char *text, size_t room)
{
    static const char suffixes[] = " KMG";
    int unit = 0;

    while (unit < 3 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, room, "%" PRIu64 "%.1s", bytes, unit ? suffixes + unit : "");
    return text;
}

int rg_options_file(const char *path, char **text_out)
{
    enum { TEXT_MAX = 1 << 20 };
    FILE *file = rg_input_open(path);
    char *text = file ? malloc(TEXT_MAX) : NULL;
    size_t n;

    if (!text)
        goto error;
    n = fread(text, 1, TEXT_MAX - 1, file);
    if (ferror(file) || !feof(file))
        goto error;
    text[n] = 0;
    fclose(file);
    *text_out = text;
    return RG_OK;
error:
    free(text);
    if (file)
        fclose(file);
    return RG_EINVAL;
}

/* ---- values ------------------------------------------------------------- */

/* The index of text[0..length) in "|a|b", or -1. */
static int find_word(const char *values, const char *text, size_t length)
{
    int index = 0;

    for (; *values; index++) {
        const size_t n = strcspn(values + 1, "|");

        if (n == length && memcmp(values + 1, text, n) == 0)
            return index;
        values += 1 + n;
    }
    return -1;
}

static int count_words(const char *values)
{
    int n = 0;

    for (; *values; values++)
        n += *values == '|';
    return n;
}

static int parse_int(const struct rg_option *option, const char *text,
                     int *value_out)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (end == text || *end || errno || value < INT32_MIN || value > INT32_MAX)
        return RG_EINVAL;
    if (option->min < option->max &&
        ((double)value < option->min || (double)value > option->max))
        return RG_EINVAL;
    *value_out = (int)value;
    return RG_OK;
}

static int parse_size(const struct rg_option *option, const char *text,
                      uint64_t *value_out)
{
    uint64_t value;

    if (rg_options_size(text, &value) != RG_OK ||
        (option->min < option->max &&
         ((double)value < option->min || (double)value > option->max)))
        return RG_EINVAL;
    *value_out = value;
    return RG_OK;
}

static int parse_real(const struct rg_option *option, const char *text,
                      double *value_out)
{
    char *end;
    double value;

    errno = 0;
    value = strtod(text, &end);
    if (end == text || *end || errno)
        return RG_EINVAL;
    if (option->min < option->max &&
        !(value >= option->min && value <= option->max))
        return RG_EINVAL;
    *value_out = value;
    return RG_OK;
}

static int parse_choice(const struct rg_option *option, const char *text,
                        int *value_out)
{
    const int index = find_word(option->values, text, strlen(text));

    if (index < 0)
        return RG_EINVAL;
    *value_out = index;
    return RG_OK;
}

static int parse_set(const struct rg_option *option, const char *text,
                     uint32_t *value_out)
{
    uint32_t set = 0;

    if (strcmp(text, "all") == 0) {
        *value_out = (1u << count_words(option->values)) - 1;
        return RG_OK;
    }
    for (;;) {
        const size_t n = strcspn(text, ",");
        const int index = find_word(option->values, text, n);

        if (index < 0)
            return RG_EINVAL;
        set |= 1u << index;
        if (!text[n])
            break;
        text += n + 1;
    }
    *value_out = set;
    return RG_OK;
}

static int parse_value(const struct rg_option *option, const char *text,
                       void *field)
{
    switch (option->kind) {
    case RG_OPTION_INT:
        return parse_int(option, text, field);
    case RG_OPTION_SIZE:
        return parse_size(option, text, field);
    case RG_OPTION_REAL:
        return parse_real(option, text, field);
    case RG_OPTION_CHOICE:
        return parse_choice(option, text, field);
    case RG_OPTION_SET:
        return parse_set(option, text, field);
    case RG_OPTION_TEXT:
        *(const char **)field = text;
        return RG_OK;
    default:
        return RG_EINVAL;
    }
}

/* ---- help --------------------------------------------------------------- */

static void print_words(const char *values)
{
    for (values++; *values; values++)
        putchar(*values == '|' ? ' ' : *values);
}

static void print_option(const struct rg_option *option)
{
    char left[64];
    int n = 0;

    if (option->letter)
        n += snprintf(left, sizeof left, "-%c", option->letter);
    if (option->name)
        n += snprintf(left + n, sizeof left - (size_t)n, "%s--%s",
                      n ? ", " : "", option->name);
    if (option->kind != RG_OPTION_FLAG)
        snprintf(left + n, sizeof left - (size_t)n, " %s", option->metavar);
    printf("  %-*s %s", NAME_WIDTH, left, option->help);
    if (option->values) {
        printf("%s: ", option->kind == RG_OPTION_SET ? "; list or all of" : "");
        print_words(option->values);
    }
    putchar('\n');
}

static void print_help(const struct rg_program *program)
{
    if (rg_launch_env_rank() != 0)
        return;
    printf("Usage: %s [FLAG]...\n%s\n\n", program->name, program->summary);
    for (int i = 0; i < program->noptions; i++)
        print_option(&program->options[i]);
    printf("  %-*s %s\n", NAME_WIDTH, "--help", "print this");
    if (program->notes)
        printf("\n%s", program->notes);
}

/* ---- parsing ------------------------------------------------------------ */

struct scan {
    const struct rg_program *program;
    char **next; /* the word after the current one; ends with null */
    uint64_t seen;
    void *values;
};

static const struct rg_option *find_option(const struct rg_program *program,
                                           const char *word)
{
    const int is_long = word[1] == '-';
    const size_t length = is_long ? strcspn(word + 2, "=") : 1;

    for (int i = 0; i < program->noptions; i++) {
        const struct rg_option *option = &program->options[i];

        if (is_long ? option->name && strlen(option->name) == length &&
                          memcmp(option->name, word + 2, length) == 0
                    : word[1] && option->letter == word[1])
            return option;
    }
    return NULL;
}

/* The value attached to the word, or null: "-b8" or "--min=8". */
static const char *attached_value(const char *word)
{
    const char *sign;

    if (word[1] != '-')
        return word[2] ? word + 2 : NULL;
    sign = strchr(word, '=');
    return sign ? sign + 1 : NULL;
}

static enum rg_options_result refuse_value(const struct rg_program *program,
                                           const struct rg_option *option,
                                           const char *word, const char *value)
{
    char range[64] = "";

    if (option->min < option->max)
        snprintf(range, sizeof range, " (%.20g to %.20g)", option->min,
                 option->max);
    return rg_options_refuse(program, "bad value '%s' for flag '%.*s'%s", value,
                             (int)strcspn(word, "="), word, range);
}

static enum rg_options_result take_word(struct scan *scan, const char *word)
{
    const struct rg_option *option =
        word[0] == '-' ? find_option(scan->program, word) : NULL;
    const char *value;
    void *field;
    uint64_t bit;

    if (!option)
        return rg_options_refuse(scan->program, "unknown %s '%s' (try --help)",
                                 word[0] == '-' ? "flag" : "argument", word);
    bit = 1ull << (option - scan->program->options);
    if (scan->seen & bit)
        return rg_options_refuse(scan->program, "flag '%s' given twice", word);
    scan->seen |= bit;
    field = (char *)scan->values + option->offset;
    value = attached_value(word);
    if (option->kind == RG_OPTION_FLAG) {
        if (value)
            return rg_options_refuse(scan->program, "flag '%s' takes no value",
                                     word);
        *(int *)field = 1;
        return RG_OPTIONS_RUN;
    }
    if (!value && *scan->next)
        value = *scan->next++;
    if (!value)
        return rg_options_refuse(scan->program, "flag '%s' needs a value",
                                 word);
    if (parse_value(option, value, field) != RG_OK)
        return refuse_value(scan->program, option, word, value);
    return RG_OPTIONS_RUN;
}

enum rg_options_result rg_options_parse(const struct rg_program *program,
                                        int argc, char **argv, void *values)
{
    struct scan scan = {program, argv + (argc > 0), 0, values};
    enum rg_options_result result = RG_OPTIONS_RUN;

    while (result == RG_OPTIONS_RUN && *scan.next) {
        const char *word = *scan.next++;

        if (strcmp(word, "--help") == 0) {
            print_help(program);
            return RG_OPTIONS_HELP;
        }
        result = take_word(&scan, word);
    }
    return result;
}
