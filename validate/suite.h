/*
 * The frame of rg_validate: what a case is, what it works with on one rank,
 * and how the ranks' findings become one verdict.
 *
 * Every rank builds the same list of cases and runs them in the same order. A
 * case runs on all ranks at once, writes what it found into its own *result*,
 * and never returns early in a way that would leave the others waiting longer
 * than a deadline. Results are exchanged after each case, so all ranks decide
 * alike; after a failure the context is made anew, so that one broken
 * communicator cannot fail the cases behind it.
 *
 * Everything belongs to one rank and is used by its thread.
 */
#ifndef RG_VALIDATE_SUITE_H
#define RG_VALIDATE_SUITE_H

#include <stddef.h>
#include <stdint.h>

#include "harness/launch.h"
#include "harness/report.h"
#include "harness/supervisor.h"
#include "harness/verdict.h"
#include "harness/watchdog.h"
#include "runtime/regroup.h"

/* Faults the self-test asks for; the last rank commits them. */
enum rg_plant {
    RG_PLANT_NONE = 0,
    RG_PLANT_FLIP, /* one bit of the output changes behind the collective */
    RG_PLANT_HANG, /* one rank does not call */
    RG_PLANT_STALL /* one rank stops for good */
};

struct rg_suite_options {
    struct rg_launch_options launch;
    int device;  /* enum rg_device_kind */
    int backend; /* enum rg_backend; UNSET: auto */
    const char *pattern;
    uint64_t seed;
    int list;
    int full;
    int replays;   /* at most, of a graph in a case */
    int timeout_s; /* without progress */
    int team_width;
    int teams;
    const char *json;
    int plant;         /* enum rg_plant */
    const char *fault; /* a fault plan's file, or the plan itself */
    char command[512]; /* the command line, for the header */
};

struct rg_suite {
    const struct rg_suite_options *options;
    const struct rg_job *job;
    struct rg_report *report;
    struct rg_watchdog *dog;
    struct rg_verdict verdict;
    int check_all; /* every rank compares every element, not only its share */
    /* Made anew when a case asks for other conditions, or after a failure. */
    struct rg_context *context;
    struct rg_comm *comm;
    struct rg_stream *stream;
    uint64_t first_seq;
    const struct rg_algo *const *algos; /* null: rg_algos */
    /* In force for it; null: the built-in choice of all. */
    enum rg_collective collective;
    const char *algorithm;
    enum rg_backend backend; /* of the view in which it was made */
};

/* What one rank found in one case; exchanged as it is. */
struct rg_case_result {
    int number;  /* of the rank, from 1 on; 0: it has died */
    int failed;  /* 0, or an enum rg_exit */
    int skipped; /* does not apply here, the same at every rank */
    /* Of outputs that must be the same bits at every rank. */
    uint64_t digest;
    char text[240]; /* why it failed or was skipped */
};

struct rg_case;
typedef void rg_case_run(struct rg_suite *suite, const struct rg_case *test,
                         struct rg_case_result *result);

enum { RG_CASE_PARAMS = 7 };

struct rg_case {
    char name[96];
    rg_case_run *run;
    enum rg_collective collective; /* that it is about */
    const char *algorithm; /* put in force before; null: built-in choice */
    uint64_t first_seq;    /* of the communicator; 0: any */
    const struct rg_algo *const *algos; /* of the context; null: rg_algos */
    int captures;                       /* graphs: not for the legacy backend */
    unsigned reduced; /* RG_TYPE_BIT of each type that it reduces */
    int param[RG_CASE_PARAMS];
};

#define RG_TYPE_BIT(dtype) (1u << (dtype))

/* A growing list; zero-initialise, rg_case_list_fini() frees. */
struct rg_case_list {
    struct rg_case *cases;
    int n;
    int room;
};
/* Appends a copy. RG_OK or RG_ENOMEM. */
int rg_case_list_add(struct rg_case_list *list, const struct rg_case *test);
void rg_case_list_fini(struct rg_case_list *list);

/* The groups of cases, each in a file of its own. RG_OK or RG_ENOMEM. */
int rg_cases_results(struct rg_case_list *list,
                     const struct rg_suite_options *options);
int rg_cases_replay(struct rg_case_list *list,
                    const struct rg_suite_options *options);
int rg_cases_recovery(struct rg_case_list *list,
                      const struct rg_suite_options *options);
int rg_cases_selection(struct rg_case_list *list);
int rg_cases_messages(struct rg_case_list *list);
int rg_cases_policy(struct rg_case_list *list);
int rg_cases_route(struct rg_case_list *list);
int rg_cases_traffic(struct rg_case_list *list);
int rg_cases_plant(struct rg_case_list *list,
                   const struct rg_suite_options *options);

/* ---- for cases ---------------------------------------------------------- */

/* Notes a failure; the first of a case is kept. */
void rg_case_fail(struct rg_case_result *result, enum rg_exit code,
                  const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/*
 * 1 when this rank can go on with the case. Wrong data alone does not stop it:
 * the other ranks, who may have seen nothing, still count on its calls.
 */
int rg_case_can_go_on(const struct rg_case_result *result);
/* Fails the case unless status is RG_OK; returns status. */
int rg_case_expect_ok(struct rg_case_result *result, int status,
                      const char *what);
/* Folds bytes into the digest. */
void rg_case_digest(struct rg_case_result *result, const void *data,
                    size_t bytes);
/* Waits for the stream; fails the case if that or the communicator failed. */
int rg_case_synchronize(struct rg_case_result *result, struct rg_stream *stream,
                        struct rg_comm *comm);
/* 1 on the one rank that commits this fault. */
int rg_suite_plants(const struct rg_suite *suite, enum rg_plant plant);

/* Replaces the selection rules; null: the built-in choice. Collective. */
int rg_suite_select(struct rg_suite *suite, enum rg_collective collective,
                    const char *algorithm);

/*
 * Plays a scenario in workers of its own; a rank of the job that dies ends it
 * for the others, also while they connect. As rg_supervisor_play().
 */
int rg_suite_play(struct rg_suite *suite, const struct rg_scenario *scenario,
                  struct rg_supervision *supervision_out);

/* The n-th algorithm's name of a collective, null behind the last. */
const char *rg_suite_algorithm(enum rg_collective collective, int n);
/*
 * Whether it can run in the view in force, by its ranks, routes and backend;
 * null: whether any can.
 */
int rg_suite_runs(const struct rg_suite *suite, enum rg_collective collective,
                  const char *algorithm);

/* ---- for the program ---------------------------------------------------- */

/*
 * Runs the list and leaves the counts in suite->verdict. Returns RG_OK, or the
 * status that made it impossible to go on (also in the verdict).
 */
int rg_suite_run(struct rg_suite *suite, const struct rg_case_list *list);
/* Makes context, communicator and stream. RG_OK or the failed call's status. */
int rg_suite_open(struct rg_suite *suite, uint64_t first_seq);
void rg_suite_close(struct rg_suite *suite); /* what is open; may be nothing */

#endif
