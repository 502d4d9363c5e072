#include "harness/fault_plan.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/input.h"

enum { FILE_BYTES_MAX = 1 << 20 };

struct rg_fault_plan {
    struct rg_fault *faults;
    int n;
    int room;
};

static const char *const triggers[] = {"none",   "seq",  "view",
                                       "replay", "time", NULL};
static const char *const phases[] = {
    "any",     "start", "mid",  "complete",  "parked",
    "quiesce", "apply", "idle", "bootstrap", NULL};
static const char *const actions[] = {"none",  "kill",  "stop",  "exit",
                                      "error", "cut",   "split", "rejoin",
                                      "drop",  "break", "delay", NULL};
static const struct unit {
    const char *name;
    uint64_t ns;
} units[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};

enum { N_UNITS = sizeof units / sizeof *units };

const char *rg_fault_phase_name(enum rg_fault_phase phase)
{
    return phases[phase];
}

const char *rg_fault_action_name(enum rg_fault_action action)
{
    return actions[action];
}

/* ---- words -------------------------------------------------------------- */

/* The next word of the text, and where it stands. */
struct reader {
    const char *at;
    const char *line_start;
    int line;
    const char *word; /* not terminated */
    int length;       /* 0: the entry ends here */
    struct rg_fault_error *error;
};

/* Notes the first cause at the current word. */
static int refuse(struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int refuse(struct reader *reader, const char *format, ...)
{
    va_list arguments;

    reader->error->line = reader->line;
    reader->error->column = (int)(reader->word - reader->line_start) + 1;
    va_start(arguments, format);
    vsnprintf(reader->error->cause, sizeof reader->error->cause, format,
              arguments);
    va_end(arguments);
    return RG_ECONFIG;
}

static int ends_entry(char c)
{
    return c == '\0' || c == '\n' || c == ';' || c == '#';
}

static void next_word(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\r')
        reader->at++;
    reader->word = reader->at;
    while (!ends_entry(*reader->at) && !strchr(" \t\r", *reader->at))
        reader->at++;
    reader->length = (int)(reader->at - reader->word);
}

/* From the end of an entry to the first word behind it. 0: the text ends. */
static int next_entry(struct reader *reader)
{
    while (reader->length == 0) {
        if (*reader->at == '#')
            reader->at += strcspn(reader->at, "\n");
        if (*reader->at == '\0')
            return 0;
        if (*reader->at++ == '\n') {
            reader->line++;
            reader->line_start = reader->at;
        }
        next_word(reader);
    }
    return 1;
}

static int is_word(const struct reader *reader, const char *name)
{
    return strlen(name) == (size_t)reader->length &&
           memcmp(name, reader->word, (size_t)reader->length) == 0;
}

/* A word for a message: cut, and nothing that spoils a terminal. */
static const char *shown(const struct reader *reader, char text[32])
{
    int n = reader->length < 31 ? reader->length : 31;

    if (n == 0)
        return "the end of the entry";
    for (int i = 0; i < n; i++)
        text[i] =
            isprint((unsigned char)reader->word[i]) ? reader->word[i] : '?';
    text[n] = '\0';
    return text;
}

static int refuse_word(struct reader *reader, const char *wanted)
{
    char text[32];

    return refuse(reader, "expected %s, not '%s'", wanted, shown(reader, text));
}

static int expect(struct reader *reader, const char *name)
{
    if (!is_word(reader, name))
        return refuse_word(reader, name);
    next_word(reader);
    return RG_OK;
}

/* A name of a list, from its second on; the first is never written. */
static int read_name(struct reader *reader, const char *const *names,
                     const char *wanted, int *index_out)
{
    for (int i = 1; names[i]; i++) {
        if (is_word(reader, names[i])) {
            next_word(reader);
            *index_out = i;
            return RG_OK;
        }
    }
    return refuse_word(reader, wanted);
}

/* Digits from *at up to `end`; leaves *at behind them. */
static int read_digits(const char **at, const char *end, uint64_t *number_out)
{
    const char *start = *at;
    uint64_t number = 0;

    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        const unsigned digit = (unsigned)(**at - '0');

        if (number > (UINT64_MAX - digit) / 10)
            return RG_ECONFIG;
        number = number * 10 + digit;
    }
    *number_out = number;
    return *at > start ? RG_OK : RG_ECONFIG;
}

static int read_number(struct reader *reader, uint64_t *number_out)
{
    const char *at = reader->word;
    const char *end = reader->word + reader->length;

    if (read_digits(&at, end, number_out) != RG_OK || at != end)
        return refuse_word(reader, "a whole number");
    next_word(reader);
    return RG_OK;
}

static int read_duration(struct reader *reader, uint64_t *ns_out)
{
    const char *at = reader->word;
    const char *end = reader->word + reader->length;
    uint64_t number;

    if (read_digits(&at, end, &number) != RG_OK)
        return refuse_word(reader, "a duration like 3s or 20ms");
    for (int i = 0; i < N_UNITS; i++) {
        if (strlen(units[i].name) != (size_t)(end - at) ||
            memcmp(units[i].name, at, (size_t)(end - at)) != 0)
            continue;
        if (number > UINT64_MAX / units[i].ns)
            return refuse_word(reader, "a duration below 584 years");
        next_word(reader);
        *ns_out = number * units[i].ns;
        return RG_OK;
    }
    return refuse_word(reader, "a duration like 3s or 20ms");
}

/* ---- entries ------------------------------------------------------------ */

static int read_graph(struct reader *reader, struct rg_fault *fault)
{
    int status = expect(reader, "of");

    if (status == RG_OK)
        status = expect(reader, "graph");
    if (status != RG_OK)
        return status;
    if (reader->length == 0 || reader->length >= (int)sizeof fault->graph)
        return refuse_word(reader, "a graph's name of at most 15 bytes");
    memcpy(fault->graph, reader->word, (size_t)reader->length);
    next_word(reader);
    return RG_OK;
}

static int read_trigger(struct reader *reader, struct rg_fault *fault)
{
    int trigger;
    int status = expect(reader, "at");

    if (status == RG_OK)
        status =
            read_name(reader, triggers, "seq, view, replay or time", &trigger);
    if (status != RG_OK)
        return status;
    fault->trigger = (enum rg_fault_trigger)trigger;
    if (trigger == RG_FAULT_AT_TIME)
        return read_duration(reader, &fault->at);
    status = read_number(reader, &fault->at);
    if (status == RG_OK && trigger == RG_FAULT_AT_REPLAY)
        status = read_graph(reader, fault);
    return status;
}

static int read_phase(struct reader *reader, struct rg_fault *fault)
{
    int phase;
    int status;

    if (!is_word(reader, "phase"))
        return RG_OK;
    next_word(reader);
    status = read_name(reader, phases,
                       "start, mid, complete, parked, quiesce, apply, idle or "
                       "bootstrap",
                       &phase);
    if (status == RG_OK)
        fault->phase = (enum rg_fault_phase)phase;
    return status;
}

static int read_rank(struct reader *reader, int *rank_out)
{
    const struct reader before = *reader;
    uint64_t number;
    int status = read_number(reader, &number);

    if (status != RG_OK)
        return status;
    if (number > INT_MAX) {
        *reader = before;
        return refuse_word(reader, "a rank");
    }
    *rank_out = (int)number;
    return RG_OK;
}

/* FROM->TO, one word. */
static int read_ends(struct reader *reader, struct rg_fault *fault)
{
    const char *at = reader->word;
    const char *end = reader->word + reader->length;
    uint64_t from, to;

    if (read_digits(&at, end, &from) != RG_OK || end - at < 2 ||
        memcmp(at, "->", 2) != 0)
        return refuse_word(reader, "a link like 0->3");
    at += 2;
    if (read_digits(&at, end, &to) != RG_OK || at != end || from > INT_MAX ||
        to > INT_MAX)
        return refuse_word(reader, "a link like 0->3");
    if (from == to)
        return refuse_word(reader, "a link between two ranks");
    fault->rank = (int)from;
    fault->to = (int)to;
    next_word(reader);
    return RG_OK;
}

static int read_action(struct reader *reader, struct rg_fault *fault, int first,
                       int last, const char *wanted)
{
    const struct reader before = *reader;
    int action;
    int status = read_name(reader, actions, wanted, &action);

    if (status == RG_OK && (action < first || action > last)) {
        *reader = before;
        status = refuse_word(reader, wanted);
    }
    if (status == RG_OK)
        fault->action = (enum rg_fault_action)action;
    return status;
}

static int lasts(const struct rg_fault *fault)
{
    return fault->action == RG_FAULT_STOP || fault->action == RG_FAULT_CUT ||
           fault->action == RG_FAULT_SPLIT;
}

static int read_rank_fault(struct reader *reader, struct rg_fault *fault)
{
    int status = read_rank(reader, &fault->rank);

    fault->to = -1;
    if (status == RG_OK)
        status = read_action(reader, fault, RG_FAULT_KILL, RG_FAULT_REJOIN,
                             "kill, stop, exit, error, cut, split or rejoin");
    if (status == RG_OK && lasts(fault))
        status = read_duration(reader, &fault->duration_ns);
    return status;
}

static int read_link_fault(struct reader *reader, struct rg_fault *fault)
{
    int status = read_ends(reader, fault);

    if (status == RG_OK)
        status = read_action(reader, fault, RG_FAULT_DROP, RG_FAULT_DELAY,
                             "drop, break or delay");
    if (status != RG_OK || fault->action != RG_FAULT_DELAY)
        return status;
    status = read_duration(reader, &fault->duration_ns);
    if (status != RG_OK || !is_word(reader, "jitter"))
        return status;
    next_word(reader);
    return read_duration(reader, &fault->jitter_ns);
}

static int read_entry(struct reader *reader, struct rg_fault *fault)
{
    int status = read_trigger(reader, fault);

    if (status == RG_OK)
        status = read_phase(reader, fault);
    if (status != RG_OK)
        return status;
    if (is_word(reader, "rank")) {
        next_word(reader);
        status = read_rank_fault(reader, fault);
    } else if (is_word(reader, "link")) {
        next_word(reader);
        status = read_link_fault(reader, fault);
    } else {
        return refuse_word(reader, fault->phase == RG_FAULT_IN_ANY
                                       ? "phase, rank or link"
                                       : "rank or link");
    }
    if (status == RG_OK && reader->length > 0)
        status = refuse_word(reader, "the end of the entry");
    return status;
}

static int is_same(const struct rg_fault *a, const struct rg_fault *b)
{
    return a->trigger == b->trigger && a->phase == b->phase &&
           a->action == b->action && a->at == b->at && a->rank == b->rank &&
           a->to == b->to && strcmp(a->graph, b->graph) == 0;
}

/* At one moment a fault can happen once: the second would be missed. */
static int refuse_again(struct reader *reader, const struct rg_fault_plan *plan,
                        const struct rg_fault *fault)
{
    for (int i = 0; i < plan->n; i++)
        if (is_same(&plan->faults[i], fault))
            return refuse(reader, "the same fault as in entry %d", i + 1);
    return RG_OK;
}

static int append(struct rg_fault_plan *plan, const struct rg_fault *fault)
{
    if (plan->n == plan->room) {
        int room = plan->room ? 2 * plan->room : 8;
        struct rg_fault *faults =
            realloc(plan->faults, (size_t)room * sizeof *faults);

        if (!faults)
            return RG_ENOMEM;
        plan->faults = faults;
        plan->room = room;
    }
    plan->faults[plan->n++] = *fault;
    return RG_OK;
}

int rg_fault_plan_create(const char *text, struct rg_fault_plan **plan_out,
                         struct rg_fault_error *error_out)
{
    struct rg_fault_error unread;
    struct reader reader = {.at = text,
                            .line_start = text,
                            .line = 1,
                            .error = error_out ? error_out : &unread};
    struct rg_fault_plan *plan = calloc(1, sizeof *plan);
    int status = plan ? RG_OK : RG_ENOMEM;

    next_word(&reader);
    while (status == RG_OK && next_entry(&reader)) {
        struct rg_fault fault = {0};
        struct reader begin = reader;

        status = read_entry(&reader, &fault);
        if (status == RG_OK)
            status = refuse_again(&begin, plan, &fault);
        if (status == RG_OK)
            status = append(plan, &fault);
    }
    if (status != RG_OK) {
        rg_fault_plan_destroy(plan);
        return status;
    }
    *plan_out = plan;
    return RG_OK;
}

/* Null: no such file, or no plan by its looks; then *why_out says so. */
static char *read_plan_file(const char *path, const char **why_out)
{
    FILE *file = rg_input_open(path);
    char *text = file ? malloc(FILE_BYTES_MAX + 1) : NULL;
    size_t n = 0;

    *why_out = strerror(errno);
    if (text)
        n = fread(text, 1, FILE_BYTES_MAX + 1, file);
    if (text && (n > FILE_BYTES_MAX || ferror(file) || memchr(text, 0, n))) {
        free(text);
        text = NULL;
        *why_out = "it is no text of at most 1 MiB";
    }
    if (text)
        text[n] = '\0';
    if (file)
        fclose(file);
    return text;
}

/* What cannot be an entry: that has several words, and the first is "at". */
static int is_path(const char *text)
{
    return *text == '/' || *text == '.' ||
           (*text && !strpbrk(text, " \t\r\n;#"));
}

int rg_fault_plan_load(const char *file_or_text,
                       struct rg_fault_plan **plan_out,
                       struct rg_fault_error *error_out)
{
    const char *why;
    char *text = read_plan_file(file_or_text, &why);
    int status;

    if (!text && is_path(file_or_text)) {
        if (error_out) {
            *error_out = (struct rg_fault_error){0};
            snprintf(error_out->cause, sizeof error_out->cause,
                     "cannot read '%.60s': %s", file_or_text, why);
        }
        return RG_ECONFIG;
    }
    status =
        rg_fault_plan_create(text ? text : file_or_text, plan_out, error_out);
    free(text);
    return status;
}

void rg_fault_plan_destroy(struct rg_fault_plan *plan)
{
    if (!plan)
        return;
    free(plan->faults);
    free(plan);
}

/* ---- what is due -------------------------------------------------------- */

int rg_fault_plan_size(const struct rg_fault_plan *plan)
{
    return plan->n;
}

const struct rg_fault *rg_fault_plan_entry(const struct rg_fault_plan *plan,
                                           int entry)
{
    return &plan->faults[entry];
}

void rg_fault_plan_count(struct rg_fault_plan *plan, int entry)
{
    if (entry >= 0 && entry < plan->n)
        plan->faults[entry].injected++;
}

int rg_fault_plan_missed(const struct rg_fault_plan *plan)
{
    for (int i = 0; i < plan->n; i++)
        if (plan->faults[i].injected == 0)
            return i;
    return -1;
}

static int is_due(const struct rg_fault *fault, int rank,
                  const struct rg_fault_moment *moment)
{
    if (fault->injected || fault->rank != rank ||
        fault->trigger != moment->trigger)
        return 0;
    if (fault->phase != RG_FAULT_IN_ANY && fault->phase != moment->phase)
        return 0;
    if (fault->trigger == RG_FAULT_AT_TIME)
        return fault->at <= moment->at;
    if (fault->trigger == RG_FAULT_AT_REPLAY &&
        (!moment->graph || strcmp(fault->graph, moment->graph) != 0))
        return 0;
    return fault->at == moment->at;
}

int rg_fault_plan_due(const struct rg_fault_plan *plan, int first, int rank,
                      const struct rg_fault_moment *moment)
{
    for (int i = first; i < plan->n; i++)
        if (is_due(&plan->faults[i], rank, moment))
            return i;
    return -1;
}

/* ---- back to text ------------------------------------------------------- */

/* A text that is being written, and the length it would have. */
struct writer {
    char *text;
    size_t bytes;
    size_t length;
};

static void put(struct writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void put(struct writer *writer, const char *format, ...)
{
    const size_t at =
        writer->length < writer->bytes ? writer->length : writer->bytes;
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(writer->bytes > at ? writer->text + at : NULL,
                  writer->bytes - at, format, arguments);
    va_end(arguments);
    writer->length += n > 0 ? (size_t)n : 0;
}

/* In the largest unit that loses nothing. */
static void put_duration(struct writer *writer, uint64_t ns)
{
    int i = 0;

    while (ns % units[i].ns)
        i++;
    put(writer, "%llu%s", (unsigned long long)(ns / units[i].ns),
        units[i].name);
}

static void put_trigger(struct writer *writer, const struct rg_fault *fault)
{
    put(writer, "at %s ", triggers[fault->trigger]);
    if (fault->trigger == RG_FAULT_AT_TIME)
        put_duration(writer, fault->at);
    else
        put(writer, "%llu", (unsigned long long)fault->at);
    if (fault->trigger == RG_FAULT_AT_REPLAY)
        put(writer, " of graph %s", fault->graph);
    if (fault->phase != RG_FAULT_IN_ANY)
        put(writer, " phase %s", phases[fault->phase]);
}

static void put_fault(struct writer *writer, const struct rg_fault *fault)
{
    put_trigger(writer, fault);
    if (fault->to >= 0)
        put(writer, " link %d->%d", fault->rank, fault->to);
    else
        put(writer, " rank %d", fault->rank);
    put(writer, " %s", actions[fault->action]);
    if (lasts(fault) || fault->action == RG_FAULT_DELAY) {
        put(writer, " ");
        put_duration(writer, fault->duration_ns);
    }
    if (fault->action == RG_FAULT_DELAY && fault->jitter_ns > 0) {
        put(writer, " jitter ");
        put_duration(writer, fault->jitter_ns);
    }
}

int rg_fault_print(const struct rg_fault *fault, char *text, size_t bytes)
{
    struct writer writer = {text, bytes, 0};

    put_fault(&writer, fault);
    return (int)writer.length;
}

int rg_fault_plan_print(const struct rg_fault_plan *plan, char *text,
                        size_t bytes)
{
    struct writer writer = {text, bytes, 0};

    put(&writer, "%s", "");
    for (int i = 0; i < plan->n; i++) {
        put_fault(&writer, &plan->faults[i]);
        put(&writer, "\n");
    }
    return (int)writer.length;
}
