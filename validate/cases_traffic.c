/*
 * traffic.*: how many bytes an algorithm sends between nodes, counted by the
 * host proxies. What it should be is stated at the head of the algorithm.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/suite.h"
#include "validate/trial.h"

enum {
    COUNT = 1 << 20, /* elements of u32 */
    BYTES = 4 * COUNT,
    LAUNCHES = 4,
    RANKS_MAX = 64,
    OVERHEAD = 50,   /* a part of the payload is more than all headers */
    SLACK = 64 << 10 /* of what is counted here and belongs elsewhere */
};

/* What a rank has sent to each; plain data, exchanged as it is. */
struct row {
    struct rg_traffic to[RANKS_MAX];
};

struct traffic {
    struct rg_suite *suite; /* borrowed, as the result */
    struct rg_case_result *result;
    int per_node;
    struct row before[RANKS_MAX], after[RANKS_MAX];
};

static int ok(struct traffic *t, int status, const char *what)
{
    return rg_case_expect_ok(t->result, status, what) == RG_OK;
}

/* ---- nodes -------------------------------------------------------------- */

/* Ranks of a node, dealt out in order; 0: not all nodes have as many. */
static int ranks_per_node(const struct rg_job *job)
{
    const char *setting = getenv("RG_NODE_RANKS");
    const int asked = setting != NULL ? atoi(setting) : 0;
    const int hosts = job->hosts > 0 ? job->hosts : 1;

    if (asked > 0)
        return job->size % asked == 0 ? asked : 0;
    return job->size % hosts == 0 ? job->size / hosts : 0;
}

/* Whether each rank of another node is reached by the host proxy. */
static int is_proxied(struct traffic *t)
{
    const struct rg_job *job = t->suite->job;
    int proxied = 1;

    for (int rank = 0; rank < job->size; rank++) {
        enum rg_route_kind kind = RG_ROUTE_NULL;

        if (rank / t->per_node == job->rank / t->per_node)
            continue;
        if (!ok(t, rg_comm_route(t->suite->comm, rank, &kind), "rg_comm_route"))
            return 0;
        proxied &= kind == RG_ROUTE_PROXY;
    }
    return proxied;
}

/* Null: the case can run. The same at all ranks. */
static const char *inapplicable(struct traffic *t)
{
    const struct rg_job *job = t->suite->job;

    if (job->size > RANKS_MAX)
        return "too many ranks";
    t->per_node = ranks_per_node(job);
    if (t->per_node == 0)
        return "needs nodes of as many ranks each";
    if (job->size == t->per_node)
        return "needs several nodes (hosts, or RG_NODE_RANKS)";
    return is_proxied(t) ? NULL : "needs the host proxy between nodes";
}

/* ---- counting ----------------------------------------------------------- */

/* Behind a barrier: what was launched before has been sent by all. */
static int count(struct traffic *t, struct row *rows_out)
{
    struct row mine = {0};
    const int size = t->suite->job->size;

    for (int rank = 0; rank < size; rank++)
        if (!ok(t, rg_comm_traffic(t->suite->comm, rank, &mine.to[rank]),
                "rg_comm_traffic"))
            return 0;
    return ok(t, rg_comm_gather(t->suite->comm, &mine, sizeof(mine), rows_out),
              "exchange of counts");
}

/* What the node has sent to others between the two counts. */
static struct rg_traffic sent_by(const struct traffic *t, int node)
{
    struct rg_traffic sum = {0};

    for (int from = 0; from < t->suite->job->size; from++)
        for (int to = 0; to < t->suite->job->size; to++) {
            if (from / t->per_node != node || to / t->per_node == node)
                continue;
            sum.payload +=
                t->after[from].to[to].payload - t->before[from].to[to].payload;
            sum.sent +=
                t->after[from].to[to].sent - t->before[from].to[to].sent;
        }
    return sum;
}

/*
 * With G nodes each sends 2 (G-1)/G times the buffer to the others. Parts are
 * not quite equal when G does not divide it, but their sum is exact.
 */
static void judge(struct traffic *t)
{
    const int nodes = t->suite->job->size / t->per_node;
    const uint64_t all = 2ull * (unsigned)(nodes - 1) * LAUNCHES * BYTES;
    struct rg_traffic sum = {0};

    for (int node = 0; node < nodes; node++) {
        const struct rg_traffic sent = sent_by(t, node);
        const double buffers = (double)sent.payload / LAUNCHES / BYTES;
        const double share = 2.0 * (nodes - 1) / nodes;

        sum.payload += sent.payload;
        if (buffers < share * 0.99 || buffers > share * 1.01)
            rg_case_fail(t->result, RG_EXIT_WRONG,
                         "node %d sends %.4f buffers to others, not %.4f", node,
                         buffers, share);
        if (sent.sent < sent.payload ||
            sent.sent > sent.payload + sent.payload / OVERHEAD + SLACK)
            rg_case_fail(t->result, RG_EXIT_WRONG,
                         "node %d sends %llu bytes for a payload of %llu", node,
                         (unsigned long long)sent.sent,
                         (unsigned long long)sent.payload);
        rg_report_note(t->suite->report,
                       "node %d of %d ranks: to others %.4f x the buffer, "
                       "with headers %.4f x",
                       node, t->per_node, buffers,
                       (double)sent.sent / LAUNCHES / BYTES);
    }
    if (sum.payload != all)
        rg_case_fail(t->result, RG_EXIT_WRONG,
                     "all nodes send %llu bytes to others, not %llu",
                     (unsigned long long)sum.payload, (unsigned long long)all);
}

static void launch_and_count(struct traffic *t)
{
    const struct rg_trial_spec spec = {.dtype = RG_u32,
                                       .op = RG_sum,
                                       .inputs = RG_INPUTS_EXACT,
                                       .layout = RG_LAYOUT_OUT,
                                       .count = COUNT};
    struct rg_trial trial = {0};

    if (!ok(t, rg_trial_create(t->suite, &spec, &trial), "memory") ||
        !count(t, t->before))
        goto done;
    for (int i = 0; i < LAUNCHES && rg_case_can_go_on(t->result); i++)
        rg_trial_round(&trial, (uint64_t)i, t->result);
    if (rg_case_can_go_on(t->result) && count(t, t->after))
        judge(t);
done:
    rg_trial_destroy(&trial);
}

static void run_hierarchical(struct rg_suite *suite, const struct rg_case *test,
                             struct rg_case_result *result)
{
    struct traffic *t = calloc(1, sizeof(*t));
    const char *why;

    (void)test;
    if (!t) {
        rg_case_fail(result, RG_EXIT_ENVIRONMENT, "no memory");
        return;
    }
    t->suite = suite;
    t->result = result;
    why = inapplicable(t);
    result->skipped = why != NULL;
    if (why)
        snprintf(result->text, sizeof(result->text), "%s", why);
    else
        launch_and_count(t);
    free(t);
}

int rg_cases_traffic(struct rg_case_list *list)
{
    return rg_case_list_add(list,
                            &(struct rg_case){.name = "traffic.hierarchical",
                                              .run = run_hierarchical,
                                              .algorithm = "hierarchical"});
}
