/*
 * Fault plans: which fault hits whom, and when. A plan is text; entries stand
 * on lines of their own or behind a semicolon, `#` starts a comment.
 *
 *     at seq 100 phase mid rank 2 kill
 *     at seq 100 phase start rank 1 stop 3s
 *     at seq 50 link 0->3 drop
 *     at seq 50 link 0->3 break
 *     at seq 50 link 0->3 delay 2ms jitter 1ms
 *     at seq 100 phase mid rank 3 cut 3s
 *     at view 2 phase quiesce rank 0 kill
 *     at replay 7 of graph A rank 3 kill
 *     at time 5s rank 2 rejoin
 *
 * Each entry is one fault and is injected once; none stands there twice.
 * Durations are whole numbers with a unit: ns, us, ms or s. A link is directed.
 * `cut` and `split` are for the hosts that scripts/hosts makes
 * (harness/hosts.h), and for a time only.
 *
 * A plan says what shall happen; whoever injects a fault counts it with
 * rg_fault_plan_count(), and a plan with an entry that was not injected tested
 * less than it says. A plan belongs to one thread.
 */
#ifndef RG_HARNESS_FAULT_PLAN_H
#define RG_HARNESS_FAULT_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/status.h"

enum rg_fault_trigger {
    RG_FAULT_AT_NONE = 0,
    RG_FAULT_AT_SEQ,    /* an invocation, by its sequence number */
    RG_FAULT_AT_VIEW,   /* the change to the view of this epoch */
    RG_FAULT_AT_REPLAY, /* the n-th replay of a graph, from 1 on */
    RG_FAULT_AT_TIME    /* ns since the scenario began */
};

/* Where, in an invocation or in a recovery. */
enum rg_fault_phase {
    RG_FAULT_IN_ANY = 0,
    RG_FAULT_IN_START,
    RG_FAULT_IN_MID,
    RG_FAULT_IN_COMPLETE,
    RG_FAULT_IN_PARKED,
    RG_FAULT_IN_QUIESCE,
    RG_FAULT_IN_APPLY,
    RG_FAULT_IN_IDLE,
    RG_FAULT_IN_BOOTSTRAP,
    RG_FAULT_IN_COUNT
};

enum rg_fault_action {
    RG_FAULT_NONE = 0,
    RG_FAULT_KILL,   /* SIGKILL */
    RG_FAULT_STOP,   /* SIGSTOP, and SIGCONT after duration_ns */
    RG_FAULT_EXIT,   /* the process leaves, without a word to the group */
    RG_FAULT_ERROR,  /* its device fails */
    RG_FAULT_CUT,    /* its host's cable is unplugged for duration_ns */
    RG_FAULT_SPLIT,  /* the same, but hosts that are split reach each other */
    RG_FAULT_REJOIN, /* the rank is started anew */
    RG_FAULT_DROP,   /* a link of the control plane fails for good */
    RG_FAULT_BREAK,  /* a route between devices fails for good */
    RG_FAULT_DELAY,  /* a link takes duration_ns longer, +- jitter_ns */
    RG_FAULT_COUNT
};

struct rg_fault {
    enum rg_fault_trigger trigger;
    enum rg_fault_phase phase;
    enum rg_fault_action action;
    uint64_t at;    /* seq, epoch, replay or ns, as the trigger says */
    char graph[16]; /* whose replay */
    int rank;       /* whom it hits; of a link, the sender */
    int to;         /* of a link, the receiver; else -1 */
    uint64_t duration_ns;
    uint64_t jitter_ns;
    unsigned injected; /* how often so far */
};

struct rg_fault_plan;

/* Where a text is wrong, and why. */
struct rg_fault_error {
    int line;   /* from 1 on; 0: in none, the file cannot be read */
    int column; /* from 1 on, in bytes */
    char cause[120];
};

/*
 * RG_OK; RG_ECONFIG with *error_out (may be null) filled; RG_ENOMEM. An empty
 * text is a plan without faults.
 */
int rg_fault_plan_create(const char *text, struct rg_fault_plan **plan_out,
                         struct rg_fault_error *error_out);
/*
 * The same for what an option says: the name of a readable file, or the text
 * itself. One word, or what begins like a path, is a file's name.
 */
int rg_fault_plan_load(const char *file_or_text,
                       struct rg_fault_plan **plan_out,
                       struct rg_fault_error *error_out);
/* Accepts null. */
void rg_fault_plan_destroy(struct rg_fault_plan *plan);

int rg_fault_plan_size(const struct rg_fault_plan *plan);
/* Entry 0 .. size-1, in the order of the text. */
const struct rg_fault *rg_fault_plan_entry(const struct rg_fault_plan *plan,
                                           int entry);
/* Notes that an entry was injected. */
void rg_fault_plan_count(struct rg_fault_plan *plan, int entry);
/* The first entry that was not injected; -1: all were. */
int rg_fault_plan_missed(const struct rg_fault_plan *plan);

/* A moment at which faults may be due. */
struct rg_fault_moment {
    enum rg_fault_trigger trigger;
    enum rg_fault_phase phase;
    uint64_t at;
    const char *graph; /* of a replay, else null */
};
/*
 * The next entry from `first` on that hits `rank` (a link: its sender) at
 * this moment and was not injected yet; -1: none. An entry without a phase is
 * due at the first phase that asks; a time is due from then on.
 */
int rg_fault_plan_due(const struct rg_fault_plan *plan, int first, int rank,
                      const struct rg_fault_moment *moment);

/*
 * Writes an entry as text, like snprintf(): returns the length it has, cuts
 * at `bytes`. Read again it gives the same entry.
 */
int rg_fault_print(const struct rg_fault *fault, char *text, size_t bytes);
/* Every entry on a line of its own, in the same way. */
int rg_fault_plan_print(const struct rg_fault_plan *plan, char *text,
                        size_t bytes);

const char *rg_fault_phase_name(enum rg_fault_phase phase);
const char *rg_fault_action_name(enum rg_fault_action action);

#endif
