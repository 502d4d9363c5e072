/*
 * Measuring one case of a sweep: this project and its peers on the
 * same buffers, in alternating blocks of samples, checked where asked.
 *
 *     block = fill all slots | align ranks | sample x S | check all slots
 *     round = a block of each subject | merge over ranks | stop?
 *
 * A sample is I invocations timed together: one graph replay, or enough eager
 * calls for the clock. Slots rotate through the samples of a block, so a fill
 * of all slots also evicts what a cold case must not find in the cache. Before
 * the samples an untimed small invocation lines the ranks up.
 */
#ifndef RG_HARNESS_MEASURE_H
#define RG_HARNESS_MEASURE_H

#include "harness/buffers.h"
#include "harness/call.h"
#include "harness/datagen.h"
#include "harness/stats.h"
#include "harness/watchdog.h"
#include "runtime/regroup.h"

/* Something that runs collectives: this project, or a peer. */
struct rg_subject {
    const char *name;
    struct rg_stream *stream; /* null: a call has finished when it returns */
    /* 0 when it has no such collective, type or operation; null: it has all. */
    int (*supports)(void *arg, enum rg_collective collective,
                    enum rg_dtype dtype, enum rg_op op);
    int (*run)(void *arg, const struct rg_call *call);
    /* Called before this subject runs after another has: to put its selection
     * in force, say. Collective if it wants to be; null: nothing to do. */
    int (*enter)(void *arg);
    void *arg;
};
enum { RG_SUBJECTS_MAX = 64 }; /* of one case */

struct rg_case {
    size_t count; /* elements of a block */
    enum rg_dtype dtype;
    enum rg_op op;
    int inplace;
    enum rg_collective collective;
    int root;
    uint64_t seed; /* of an all_to_all_v's counts */
};
/* Bytes of a rank's largest buffer. */
size_t rg_case_bytes(const struct rg_case *what, int nranks);

enum rg_cache { RG_CACHE_AUTO = 0, RG_CACHE_COLD, RG_CACHE_HOT };

struct rg_measure_config {
    struct rg_context *context; /* borrowed, as all below */
    struct rg_comm *comm;
    struct rg_watchdog *dog;
    const struct rg_buffer_source *source; /* null: rg_malloc */
    /* Called once a round; null: nobody wants to know. */
    void (*progress)(void *arg, const struct rg_case *what, int samples);
    void *progress_arg;
    enum rg_device_kind device;
    int rank;
    int nranks;
    int warmup;          /* invocations before the first sample */
    int graph;           /* invocations captured in a graph, 0: eager */
    int check_every;     /* blocks, 0: no check */
    int latency;         /* wait for each invocation */
    enum rg_merge merge; /* over ranks */
    enum rg_cache cache;
    size_t cache_cutoff;  /* AUTO: cold above this many bytes */
    size_t cold_bytes;    /* memory that a cold case rotates over */
    size_t memory_bytes;  /* what all buffers may take */
    size_t largest_bytes; /* of all cases to come */
    struct rg_stop_rule stop;
};

struct rg_result {
    struct rg_summary time; /* n 0: the subject does not support the case */
    enum rg_stop stop;
};

struct rg_case_report {
    const char *cache;         /* "cold" or "hot" */
    int64_t wrong;             /* over all ranks, -1: not checked */
    struct rg_finding finding; /* this rank's */
    struct rg_run_info run;    /* of the first subject's last invocation */
};

struct rg_measure;
/* Allocates all memory the sweep needs. RG_OK or the status of what failed. */
int rg_measure_create(const struct rg_measure_config *config,
                      struct rg_measure **measure_out);
void rg_measure_destroy(struct rg_measure *measure); /* accepts null */
/* The cases to come stop at another wall time; 0: after one round. */
void rg_measure_limit(struct rg_measure *measure, double max_us);

/*
 * Collective. subjects[0] is this project: it is checked, and its run is
 * reported. results has an entry per subject, of which there are at most
 * RG_SUBJECTS_MAX.
 */
int rg_measure_case(struct rg_measure *measure, const struct rg_case *what,
                    const struct rg_subject *subjects, int nsubjects,
                    struct rg_result *results,
                    struct rg_case_report *report_out);

#endif
