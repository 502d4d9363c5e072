/*
 * Command lines from a table: parsing, --help, and one line for what is wrong.
 *
 * A program describes its flags once; values land in its own struct by
 * offset, already holding the defaults. Short flags take their value attached
 * or as the next word ("-b8", "-b 8"), long ones also after '='. --help is
 * always there. Nothing abbreviates; a flag given twice is an error.
 */
#ifndef RG_HARNESS_OPTIONS_H
#define RG_HARNESS_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/types.h"

enum rg_option_kind {
    RG_OPTION_NONE = 0,
    RG_OPTION_FLAG,   /* int: 1 when given; takes no value */
    RG_OPTION_INT,    /* int: decimal, within [min, max] */
    RG_OPTION_SIZE,   /* uint64_t: bytes, suffixes K M G (powers of 1024),
                         within [min, max] */
    RG_OPTION_REAL,   /* double: within [min, max] */
    RG_OPTION_TEXT,   /* const char *: borrowed from argv */
    RG_OPTION_CHOICE, /* int: index into `values` */
    RG_OPTION_SET     /* uint32_t: bit per entry of `values`, "a,b" or "all" */
};

struct rg_option {
    enum rg_option_kind kind;
    char letter;        /* 0: none */
    const char *name;   /* without dashes; null: none */
    size_t offset;      /* of the value in the program's struct */
    const char *values; /* CHOICE, SET: "|first|second|..." */
    double min, max;    /* INT, SIZE, REAL; both 0: any */
    const char *metavar;
    const char *help; /* one sentence; "" hides nothing, null ends no table */
};

/* `values` for types and operations: bit or index is the enumerator. */
#define RG_OPTION_X_DTYPE(name, bytes) "|" #name
#define RG_OPTION_X_OP(name)           "|" #name
#define RG_OPTION_DTYPES               RG_DTYPE_LIST(RG_OPTION_X_DTYPE)
#define RG_OPTION_OPS                  RG_OP_LIST(RG_OPTION_X_OP)

struct rg_program {
    const char *name;
    const char *summary; /* one sentence for --help */
    const struct rg_option *options;
    int noptions;
    const char *notes; /* text after the flags in --help, or null */
};

/* Entries every program shares; `type` has a struct rg_launch_options `launch`.
 */
#define RG_OPTIONS_LAUNCH(type)                                                \
    {RG_OPTION_CHOICE,                                                         \
     0,                                                                        \
     "launch",                                                                 \
     offsetof(type, launch.kind),                                              \
     "|auto|mpi|local",                                                        \
     0,                                                                        \
     0,                                                                        \
     "HOW",                                                                    \
     "ranks are MPI processes or threads (default: mpi under a launcher)"},    \
    {                                                                          \
        RG_OPTION_INT, 0, "ranks", offsetof(type, launch.ranks), NULL, 1,      \
            1024, "N", "threads of --launch local (default 1)"                 \
    }

enum rg_options_result {
    RG_OPTIONS_RUN = 0, /* go on */
    RG_OPTIONS_HELP,    /* help was printed: exit 0 */
    RG_OPTIONS_USAGE    /* one line was printed: exit 2 */
};

/*
 * Parses argv into `values`. Under a launcher only world rank 0 prints: every
 * rank has the same command line and returns the same result.
 */
enum rg_options_result rg_options_parse(const struct rg_program *program,
                                        int argc, char **argv, void *values);

/* One line "name: ..." on standard error; returns RG_OPTIONS_USAGE. */
enum rg_options_result rg_options_refuse(const struct rg_program *program,
                                         const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The command line as one text, for headers; cut where the room ends. */
void rg_options_command(const char *program, int argc, char **argv, char *text,
                        size_t room);

/* The process's exit code for HELP and USAGE. */
int rg_options_exit(enum rg_options_result result);

/* A whole text file, terminated; the caller frees it. RG_OK or RG_EINVAL. */
int rg_options_file(const char *path, char **text_out);

/* Strict "8", "4K", "1M", "2G". RG_OK or RG_EINVAL. */
int rg_options_size(const char *text, uint64_t *value_out);
/* 8 -> "8", 65536 -> "64K"; for names and messages. */
const char *rg_options_size_text(uint64_t bytes, char *text, size_t room);

#endif
