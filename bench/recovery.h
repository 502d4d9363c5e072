/*
 * recovery_perf: how long a group takes to go on without a failed rank.
 *
 *     injection:  all loop over small all-reduces
 *                 the victim fails, at a random moment
 *                 the others notice when each phase was reached, and when the
 *                 first invocation was committed without the victim
 *                 the victim comes back; the group is complete again
 *
 * A rank that takes part is a member (recovery_member.c). What it noticed goes
 * as a stamp to the log (recovery_play.c): from workers by their supervisors,
 * from ranks that only pretend to fail by the job's own exchange. Figures are
 * made from the log alone (recovery_figures.c), and so are equal at all ranks.
 *
 * All times are of the monotonic clock, which the processes of a host share.
 */
#ifndef RG_BENCH_RECOVERY_H
#define RG_BENCH_RECOVERY_H

#include <stdint.h>

#include "harness/launch.h"
#include "harness/report.h"
#include "harness/topo.h"
#include "runtime/regroup.h"

enum { RECOVERY_RANKS_MAX = 64 };

enum recovery_fault {
    RECOVERY_KILL = 0, /* SIGKILL; the rank comes back as a new process */
    RECOVERY_STOP,     /* SIGSTOP until the others have gone on */
    RECOVERY_SOFT      /* the rank falls silent: rg_context_abandon() */
};
#define RECOVERY_FAULT_NAMES "|kill|stop|soft"
enum recovery_role { RECOVERY_ANY = 0, RECOVERY_LEAF, RECOVERY_COORDINATOR };
#define RECOVERY_ROLE_NAMES "|any|leaf|coordinator"

/* What to do; the same at all ranks and in all their processes. */
struct recovery_plan {
    int device;  /* enum rg_device_kind */
    int backend; /* enum rg_backend; UNSET: auto */
    int fault;   /* enum recovery_fault */
    int role;    /* enum recovery_role */
    int injections;
    int eager;       /* 0: one graph, captured once, is replayed */
    int deadline_ms; /* RG_DEADLINE_MS; 0: as it is */
    int window_ms;   /* RG_WINDOW_MS; 0: as it is */
    int pause_ms;    /* the group is whole for so long before each fault */
    int timeout_s;   /* for all */
    uint64_t bytes;  /* of a rank's buffer */
    uint64_t seed;
};

/* Where the members are; what they agree on before each injection. */
struct recovery_turn {
    int32_t injection; /* from 0 on; -1: this rank does not know */
    int32_t coordinator;
};

/* The world rank that this turn's fault hits. */
int recovery_victim(const struct recovery_plan *plan,
                    const struct recovery_turn *turn, int size);
/* How long after the beginning of the turn. */
uint64_t recovery_delay_ns(const struct recovery_plan *plan, int injection);
/* Succession is by world rank; a member that comes back stays below. */
void recovery_turn_next(struct recovery_turn *turn, int victim);
/* How long a victim of RECOVERY_STOP is stopped. */
uint64_t recovery_stop_ns(const struct recovery_plan *plan);

/* ---- what ranks notice -------------------------------------------------- */

enum recovery_tag { RECOVERY_TAG_HELLO = 1, RECOVERY_TAG_STAMP };

/* Where a rank runs. */
struct recovery_hello {
    int32_t tag;
    int32_t backend; /* enum rg_backend */
    uint64_t policy_hash;
    struct rg_device_info info;
    struct rg_place place;
};

/* What a survivor noticed of one injection. */
struct recovery_stamp {
    int32_t tag; /* 0: nothing */
    int32_t injection;
    int32_t captures;  /* graphs this process has captured so far */
    int32_t succeeded; /* the coordinator has changed */
    uint64_t epoch;
    uint64_t members;       /* a bitmap of world ranks */
    uint64_t committed_seq; /* the first of this epoch */
    uint64_t wrong;         /* elements so far that were not the sum */
    uint64_t phase_ns[RG_PHASE_COUNT];
    uint64_t good_ns; /* committed_seq is known to be committed */
};

/* The fault itself. */
struct recovery_hit {
    int32_t victim; /* -1: none was injected */
    uint64_t time_ns;
};

struct recovery_log {
    int size;
    int injections;
    struct recovery_hello *hellos; /* [size] */
    struct recovery_hit *hits;     /* [injections] */
    struct recovery_stamp *stamps; /* [injections * size] */
    int code;                      /* the worst exit code of a rank */
};

/* ---- members ------------------------------------------------------------ */

struct recovery_member;

struct recovery_member_config {
    const struct recovery_plan *plan; /* borrowed, as all here */
    const struct rg_job *job;
    /* A process started anew brings these (struct rg_context_config). */
    const void *ticket; /* null: it is the first */
    size_t ticket_bytes;
    uint32_t process;
};

/* Enters the group, collectively; or waits until it is let in. */
int recovery_member_create(const struct recovery_member_config *config,
                           struct recovery_member **member_out);
void recovery_member_destroy(struct recovery_member *member); /* or null */

struct rg_context *
recovery_member_context(const struct recovery_member *member);
/* rg_comm_describe(); empty without a communicator. Accepts null. */
void recovery_member_describe(const struct recovery_member *member, char *text,
                              size_t bytes);
int recovery_member_hello(const struct recovery_member *member,
                          struct recovery_hello *hello_out);

/*
 * All below are collective over the members. Any status but RG_OK is the
 * member's end, unless it is RG_EISOLATED or RG_ECLOSED and it rejoins.
 */

/*
 * Takes over the turn of those who know it. From now on the change that the
 * turn's fault leads to is noticed: no fault comes before all have met.
 */
int recovery_member_meet(struct recovery_member *member,
                         struct recovery_turn *turn);
/*
 * Loops over all-reduces until one is committed in a later epoch than the one
 * in which all have met.
 * RG_EPENDING: `until_ns` (UINT64_MAX: never) came first.
 */
int recovery_member_run(struct recovery_member *member, uint64_t until_ns,
                        struct recovery_stamp *stamp_out);
/* Waits for all the others. */
int recovery_member_join(struct recovery_member *member);
/* Lets the missing rank in. */
int recovery_member_complete(struct recovery_member *member);
/* Asks to be let in again, and waits for it. */
int recovery_member_rejoin(struct recovery_member *member);
/* One all-reduce, which must be committed with the right sum. */
int recovery_member_check(struct recovery_member *member);

/* ---- playing ------------------------------------------------------------ */

/* Whether this process is a worker, and its main(): returns its exit code. */
int recovery_worker_present(void);
int recovery_worker_main(void);

/*
 * Plays all injections. Collective; the log is the same at all ranks. RG_OK,
 * or why there is none.
 */
int recovery_play(const struct rg_job *job, const struct recovery_plan *plan,
                  struct recovery_log *log_out);
void recovery_log_fini(struct recovery_log *log);

/* ---- figures ------------------------------------------------------------ */

enum recovery_figure {
    RECOVERY_DETECT = 0, /* fault -> PREPARE */
    RECOVERY_SAFEPOINT,  /* -> HELD */
    RECOVERY_QUIESCE,    /* -> VIEW */
    RECOVERY_VIEW,       /* -> ACTIVATE */
    RECOVERY_REBUILD,    /* -> OPEN */
    RECOVERY_FIRST_GOOD, /* -> the first commit is known */
    RECOVERY_TOTAL,      /* fault -> the same */
    RECOVERY_FIGURES
};
const char *recovery_figure_name(enum recovery_figure figure);

/* Of one injection; each figure is the largest of all survivors. */
struct recovery_figures {
    double us[RECOVERY_FIGURES]; /* NaN: not reached */
    /*
     * When the last survivor was through with each of the figures before
     * TOTAL, from the fault on: unlike the figures these add up.
     */
    double through_us[RECOVERY_TOTAL];
    int injected;
    int agreed; /* survivors report the same, and the victim is out */
    int captures;
    int succeeded;
    uint64_t epoch;
    uint64_t wrong;
    char cause[96]; /* why not agreed */
};
void recovery_figures_of(const struct recovery_log *log, int injection,
                         struct recovery_figures *figures_out);

enum recovery_stat {
    RECOVERY_P50 = 0,
    RECOVERY_P99, /* of less than 100 injections: the largest */
    RECOVERY_MIN,
    RECOVERY_MAX,
    RECOVERY_STATS
};
const char *recovery_stat_name(enum recovery_stat stat);

/* Over all injections that have the figure. */
struct recovery_summary {
    double us[RECOVERY_STATS][RECOVERY_FIGURES];
};
/* RG_OK or RG_ENOMEM. */
int recovery_summary_of(const struct recovery_figures *figures, int n,
                        struct recovery_summary *summary_out);

#endif
