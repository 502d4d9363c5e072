/*
 * The selection table: which algorithm serves which sizes. A text for people,
 * diffs and the control plane, one rule a line:
 *
 *   regroup-policy 1
 *   # provenance: whatever says where the figures come from
 *   unit bytes-per-rank-buffer
 *   topology emu:4
 *   # collective dtype ranks min max algorithm channels protocol chunk p50_us
 *   #                                                         runner_up margin
 *   all_reduce any 2   0     32768 oneshot - ll - 2.7 ring 1.41
 *   all_reduce any 2   32768 inf   oneshot 4 -  65536 31.5 - -
 *   all_reduce any 3-8 0     inf   ring    - -  - - - -
 *
 * The first line comes first, `unit` and `topology` once each before the first
 * row. "#" begins a comment; only provenance lines are kept. Printable ASCII,
 * spaces and tabs between fields, a newline behind every line.
 *
 * Sizes are bytes of a rank's buffer, [min, max). The rows of one collective,
 * dtype (one type, or `any`) and rank range are a *group*, and must partition
 * [0, inf); the rank ranges of two groups are equal or disjoint. Rows stand in
 * the order of collective, dtype (`any` first, then as in types.h), ranks,
 * min. "-" is: the device's own number of channels; no special protocol; the
 * device's own chunk; not measured.
 *
 * The algorithm column has the base name. With protocol ll or ll128 the
 * algorithm of the program's table is called "<base>_ll" or "<base>_ll128".
 *
 * Everything here is a value without threads, clock or global state; time and
 * memory are bounded by RG_POLICY_MAX_BYTES whatever the input.
 */
#ifndef RG_POLICY_TABLE_H
#define RG_POLICY_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/algo.h"
#include "runtime/status.h"
#include "runtime/types.h"

enum {
    RG_POLICY_VERSION = 1,
    RG_POLICY_ANY_DTYPE = -1,
    RG_POLICY_NAME_BYTES = 32,     /* with the 0 */
    RG_POLICY_TOPOLOGY_BYTES = 64, /* with the 0 */
    RG_POLICY_MAX_LINE = 512,      /* bytes of a line without its newline */
    RG_POLICY_MAX_BYTES = 65535,   /* of a text, also as it is written */
    RG_POLICY_MAX_ROWS = 512,
    RG_POLICY_MAX_NOTES = 256, /* provenance lines */
    RG_POLICY_MAX_RULES = 16,  /* rows of a collective for one rank count */
    RG_POLICY_MAX_CHANNELS = 64,
    RG_POLICY_MAX_RANKS = 65536
};

enum rg_protocol {
    RG_PROTOCOL_PLAIN = 0,
    RG_PROTOCOL_LL,
    RG_PROTOCOL_LL128,
    RG_PROTOCOL_COUNT
};

struct rg_policy_row {
    enum rg_collective collective;
    int dtype; /* enum rg_dtype, or RG_POLICY_ANY_DTYPE */
    int min_ranks, max_ranks;
    uint64_t min, max;                    /* [min, max); UINT64_MAX: inf */
    char algorithm[RG_POLICY_NAME_BYTES]; /* base name */
    enum rg_protocol protocol;
    unsigned channels; /* 0: the device's own number */
    uint64_t chunk;    /* bytes of a pipeline step; 0: the device's own */
    double p50_us;     /* median, microseconds; 0: not measured */
    char runner_up[RG_POLICY_NAME_BYTES]; /* free text; "": none */
    double margin; /* runner-up's median / this one's; 0: not measured */
    int line;      /* of the text it came from; 0: none */
};

/* Change it by the functions below only, which keep the rows in order. */
struct rg_policy_table {
    char topology[RG_POLICY_TOPOLOGY_BYTES];
    int note_count;
    char **notes; /* provenance, without the mark; owned */
    int row_count;
    struct rg_policy_row *rows; /* owned */
};

/* Why a text is no table. */
struct rg_policy_error {
    int line; /* from 1; 0: the file as a whole */
    char text[160];
};

/* An empty table of this topology. RG_OK, RG_EINVAL (its name), RG_ENOMEM. */
int rg_policy_create(const char *topology, struct rg_policy_table **table_out);
/* Accepts null. */
void rg_policy_destroy(struct rg_policy_table *table);
/*
 * Adds a copy of a provenance line or of a row, which goes to its place.
 * RG_OK, RG_EINVAL (a character or value that cannot be written), RG_ENOSPC
 * (too many), RG_ENOMEM.
 */
int rg_policy_add_note(struct rg_policy_table *table, const char *note);
int rg_policy_add_row(struct rg_policy_table *table,
                      const struct rg_policy_row *row);

/*
 * Text to table, all rules above applied. `algos` is the program's table of
 * algorithms, null-terminated: each row must name one of its collective, whose
 * ranks, largest buffer and chunks allow what the row says; null: algorithm
 * names are taken as they are. Caller destroys *table_out. RG_OK; RG_EPOLICY
 * with *error_out set; RG_ENOMEM.
 */
int rg_policy_parse(const char *text, size_t bytes,
                    const struct rg_algo *const *algos,
                    struct rg_policy_table **table_out,
                    struct rg_policy_error *error_out);
/* Whether the table as it stands would parse; error_out->line counts rows. */
int rg_policy_lint(const struct rg_policy_table *table,
                   const struct rg_algo *const *algos,
                   struct rg_policy_error *error_out);
/*
 * The canonical text, terminated, freed by the caller: parsing it gives an
 * equal table, and writing that the same text. RG_OK, RG_ENOMEM, RG_ENOSPC
 * (longer than RG_POLICY_MAX_BYTES).
 */
int rg_policy_write(const struct rg_policy_table *table, char **text_out);
/* Hash of the canonical text; 0 when it cannot be written. */
uint64_t rg_policy_hash(const struct rg_policy_table *table);

/*
 * Reads at most RG_POLICY_MAX_BYTES of a regular file into terminated text,
 * freed by the caller. RG_OK; RG_EPOLICY with *error_out set; RG_ENOMEM.
 */
int rg_policy_read(const char *path, char **text_out, size_t *bytes_out,
                   struct rg_policy_error *error_out);
/* "file:line: cause" (or "file: cause"), terminated, without control
 * characters. */
void rg_policy_error_print(const struct rg_policy_error *error,
                           const char *file, char *line_out, size_t bytes);

/*
 * The rank count whose rows of the collective serve `ranks`: itself, else the
 * nearest smaller one that has rows; 0: none.
 */
int rg_policy_ranks(const struct rg_policy_table *table,
                    enum rg_collective collective, int ranks);
/*
 * The row for a size: rows of the type come before `any`, ranks as above.
 * Borrowed from the table; null: it has none.
 */
const struct rg_policy_row *rg_policy_find(const struct rg_policy_table *table,
                                           enum rg_collective collective,
                                           enum rg_dtype dtype, int ranks,
                                           uint64_t bytes);
/* As in the protocol's column; null for none of them. */
const char *rg_protocol_name(enum rg_protocol protocol);
/* The name in the program's table of algorithms. */
void rg_policy_row_name(const struct rg_policy_row *row,
                        char name_out[RG_POLICY_NAME_BYTES]);
/* Sets the row's algorithm and protocol from that name. */
void rg_policy_row_call(struct rg_policy_row *row, const char *name);

#endif
