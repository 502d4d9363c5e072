#include "bench/tune_measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algos/algos.h"
#include "bench/tune_policy.h"
#include "harness/measure.h"
#include "harness/peer.h"

enum {
    /* A cold case on CUDA rotates over more than any L2 cache holds. */
    COLD_BYTES_CUDA = 256 << 20,
    SAMPLES_LEAST = 20,
    SAMPLES_MOST = 1000,
    LAUNCH_STOP_PERCENT = 2 /* half width of a launch's median's interval */
};
#define MEMORY_EMU  (1ull << 30)
#define MEMORY_CUDA (24ull << 30)

/* A candidate as a subject of harness/measure.h. */
struct turn {
    struct tune_ranks *ranks;
    int candidate;
};

struct tune_ranks {
    struct tune_subject subject;
    const struct rg_job *job;
    struct rg_session *session; /* its communicator is the launch's */
    struct tune_space space;
    struct rg_measure *measure; /* of the launch; null: none yet */
    struct rg_peer peers[RG_PEERS_MAX];
    int npeers;
    int in_force; /* candidate that the communicator uses, -1: none */
    int failed;   /* a case did: nobody listens any more */
    double max_us;
};

/* What rank 0 tells. */
struct message {
    int end;
    int code;
    struct tune_order order;
};

/* ---- candidates --------------------------------------------------------- */

static int select_candidate(struct tune_ranks *ranks, int candidate)
{
    char text[TUNE_POLICY_BYTES];
    int status;

    if (ranks->in_force == candidate)
        return RG_OK;
    status = tune_policy_of(&ranks->space, candidate, ranks->subject.collective,
                            ranks->job->size, text, sizeof text);
    if (status == RG_OK)
        status = rg_comm_set_policy(ranks->session->comm, text);
    ranks->in_force = status == RG_OK ? candidate : -1;
    return status;
}

static int enter(void *arg)
{
    const struct turn *turn = arg;

    return select_candidate(turn->ranks, turn->candidate);
}

static int run(void *arg, const struct rg_call *call)
{
    const struct rg_session *session =
        ((const struct turn *)arg)->ranks->session;

    return rg_call_launch(call, session->comm, session->stream);
}

static int bases_of(const struct tune_ranks *ranks, struct tune_base *bases,
                    unsigned *max_channels_out)
{
    int n = 0;

    *max_channels_out = 1;
    for (int i = 0; rg_algos[i]; i++) {
        const struct rg_algo *algo = rg_algos[i];
        struct rg_comm_limits limits;

        if (algo->collective != ranks->subject.collective ||
            n == TUNE_BASES_MAX ||
            rg_comm_limits(ranks->session->comm, algo, &limits) != RG_OK ||
            limits.max_bytes == 0)
            continue;
        bases[n++] =
            (struct tune_base){algo, limits.max_bytes, limits.max_chunk};
        *max_channels_out = (unsigned)limits.max_channels;
    }
    return n;
}

/*
 * Only what can be selected here is a candidate: the routes may not allow an
 * algorithm. All ranks are told the same.
 */
static int make_space(struct tune_ranks *ranks)
{
    struct tune_base bases[TUNE_BASES_MAX] = {{NULL, 0, 0}};
    struct tune_base usable[TUNE_BASES_MAX];
    unsigned max_channels;
    const int n = bases_of(ranks, bases, &max_channels);
    int kept = 0, status;

    status = tune_space_init(&ranks->space, bases, n, 1);
    for (int i = 0; i < n && status == RG_OK; i++) {
        const int selected = select_candidate(ranks, i);

        if (selected == RG_OK)
            usable[kept++] = bases[i];
        else if (selected != RG_EPOLICY)
            status = selected;
    }
    tune_space_fini(&ranks->space);
    ranks->in_force = -1;
    return status == RG_OK
               ? tune_space_init(&ranks->space, usable, kept, max_channels)
               : status;
}

/* ---- ranks -------------------------------------------------------------- */

static int make_peers(struct tune_ranks *ranks)
{
    const struct rg_session *session = ranks->session;
    int status = RG_OK;

    for (int i = 0; status == RG_OK && i < RG_PEERS_MAX; i++) {
        const struct rg_peer_config config = {session->job, session->context,
                                              session->comm, rg_peer_name(i)};

        if (!(ranks->subject.compare & 1u << i))
            continue;
        status = rg_peer_create(&config, ranks->subject.device,
                                &ranks->peers[ranks->npeers]);
        ranks->npeers += status == RG_OK;
    }
    return status;
}

int tune_ranks_create(const struct tune_subject *subject,
                      const struct rg_job *job, struct tune_ranks **ranks_out)
{
    struct tune_ranks *ranks = calloc(1, sizeof *ranks);
    const struct rg_session_config config = {
        .program = subject->program,
        .job = job,
        .algos = rg_algos,
        .device = subject->device,
        .backend = RG_BACKEND_NEW,
        .timeout_s = subject->timeout_s,
    };
    int status;

    if (!ranks)
        return RG_ENOMEM;
    ranks->subject = *subject;
    ranks->job = job;
    ranks->in_force = -1;
    status = rg_session_create(&config, &ranks->session);
    if (status == RG_OK)
        status = make_space(ranks);
    if (status == RG_OK)
        status = make_peers(ranks);
    if (status != RG_OK)
        goto error;
    *ranks_out = ranks;
    return RG_OK;
error:
    tune_ranks_destroy(ranks);
    return status;
}

void tune_ranks_destroy(struct tune_ranks *ranks)
{
    if (!ranks)
        return;
    rg_measure_destroy(ranks->measure);
    for (int i = ranks->npeers - 1; i >= 0; i--)
        rg_peer_destroy(&ranks->peers[i]);
    rg_session_destroy(ranks->session);
    tune_space_fini(&ranks->space);
    free(ranks);
}

const struct rg_session *tune_ranks_session(const struct tune_ranks *ranks)
{
    return ranks->session;
}

const struct tune_space *tune_ranks_space(const struct tune_ranks *ranks)
{
    return &ranks->space;
}

/* ---- launches ----------------------------------------------------------- */

static const struct rg_buffer_source *buffer_source(const struct tune_ranks *r)
{
    for (int i = 0; i < r->npeers; i++)
        if (r->peers[i].source.alloc)
            return &r->peers[i].source;
    return NULL;
}

/* As all_reduce_perf measures, but for what ends a case. */
static int make_measure(struct tune_ranks *ranks, double max_us)
{
    const struct tune_subject *subject = &ranks->subject;
    const struct rg_session *session = ranks->session;
    const int cuda = subject->device == RG_DEVICE_CUDA;
    const struct rg_measure_config config = {
        .context = session->context,
        .comm = session->comm,
        .dog = session->dog,
        .source = buffer_source(ranks),
        .device = subject->device,
        .rank = ranks->job->rank,
        .nranks = ranks->job->size,
        .warmup = subject->warmup,
        .graph = subject->graph,
        .merge = RG_MERGE_MAX,
        .cache_cutoff = 1 << 20,
        .cold_bytes =
            cuda ? COLD_BYTES_CUDA : rg_topo_cache_bytes(session->topo) / 2 * 3,
        .memory_bytes = cuda ? MEMORY_CUDA : MEMORY_EMU,
        .largest_bytes = subject->max_bytes,
        .stop = {.width = LAUNCH_STOP_PERCENT / 100.0,
                 .min_samples = SAMPLES_LEAST,
                 .max_samples = SAMPLES_MOST,
                 .max_us = max_us},
    };

    return rg_measure_create(&config, &ranks->measure);
}

/* A launch has a communicator, graphs and buffers of its own. */
static int begin_launch(struct tune_ranks *ranks)
{
    struct rg_session *session = ranks->session;
    int status;

    rg_measure_destroy(ranks->measure);
    ranks->measure = NULL;
    rg_watchdog_watch(session->dog, NULL);
    status = rg_comm_destroy(session->comm);
    session->comm = NULL;
    ranks->in_force = -1;
    if (status == RG_OK)
        status = rg_comm_create(session->context, &session->comm);
    if (status == RG_OK)
        rg_watchdog_watch(session->dog, session->comm);
    return status == RG_OK ? make_measure(ranks, 0) : status;
}

/* ---- orders ------------------------------------------------------------- */

static int list_subjects(struct tune_ranks *ranks,
                         const struct tune_order *order, struct turn *turns,
                         struct rg_subject *subjects)
{
    int n = 0;

    for (; n < order->n; n++) {
        turns[n] = (struct turn){ranks, order->candidates[n]};
        subjects[n] = (struct rg_subject){
            .name = ranks->space.list[order->candidates[n]].name,
            .stream = ranks->session->stream,
            .run = run,
            .enter = enter,
            .arg = &turns[n],
        };
    }
    for (int i = 0; order->peers && i < ranks->npeers; i++)
        subjects[n++] = ranks->peers[i].subject;
    return n;
}

static int carry_out(struct tune_ranks *ranks, const struct tune_order *order,
                     struct tune_figure *figures_out)
{
    const struct tune_subject *subject = &ranks->subject;
    const struct rg_case what = {
        .count = rg_call_count(subject->collective, order->bytes,
                               subject->dtype, ranks->job->size),
        .dtype = subject->dtype,
        .op = subject->op,
        .collective = subject->collective};
    struct turn turns[RG_SUBJECTS_MAX];
    struct rg_subject subjects[RG_SUBJECTS_MAX];
    struct rg_result results[RG_SUBJECTS_MAX];
    struct rg_case_report report;
    const int n = list_subjects(ranks, order, turns, subjects);
    int status = order->fresh ? begin_launch(ranks) : RG_OK;

    if (status == RG_OK) {
        rg_measure_limit(ranks->measure, order->max_us);
        status = rg_measure_case(ranks->measure, &what, subjects, n, results,
                                 &report);
    }
    for (int i = 0; i < n && status == RG_OK; i++)
        figures_out[i] = (struct tune_figure){
            results[i].time.p50_us, results[i].time.min_us, results[i].time.n};
    return status;
}

/* Rank 0's message at every rank. */
static int broadcast(struct tune_ranks *ranks, struct message *message)
{
    struct message *all = calloc((size_t)ranks->job->size, sizeof *all);
    int status = all ? RG_OK : RG_ENOMEM;

    if (status == RG_OK)
        status =
            rg_comm_gather(ranks->session->comm, message, sizeof *message, all);
    if (status == RG_OK)
        *message = all[0];
    free(all);
    return status;
}

int tune_ranks_measure(void *arg, const struct tune_order *order,
                       struct tune_figure *figures_out)
{
    struct tune_ranks *ranks = arg;
    struct message message = {.order = *order};
    int status = broadcast(ranks, &message);

    if (status == RG_OK)
        status = carry_out(ranks, order, figures_out);
    ranks->failed = status != RG_OK;
    return status;
}

int tune_ranks_end(struct tune_ranks *ranks, int code)
{
    struct message message = {.end = 1, .code = code};

    return ranks->failed ? RG_OK : broadcast(ranks, &message);
}

int tune_ranks_follow(struct tune_ranks *ranks, int *code_out)
{
    struct tune_figure figures[RG_SUBJECTS_MAX];
    struct message message;
    int status;

    for (;;) {
        memset(&message, 0, sizeof message);
        status = broadcast(ranks, &message);
        if (status != RG_OK || message.end)
            break;
        status = carry_out(ranks, &message.order, figures);
        if (status != RG_OK)
            break;
    }
    *code_out = message.code;
    return status;
}
