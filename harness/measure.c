#include "harness/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES_MAX = 16, /* in a block */
    SAMPLES_UNCHECKED = 10,
    INVOCATIONS_MAX = 256,        /* in an eager sample */
    INVOCATIONS_BYTES = 16 << 20, /* that an eager sample may touch */
    SAMPLE_US = 20,            /* what the clock resolves to better than 1 % */
    HOT_BYTES_EMU = 256 << 10, /* stays in a core's own cache */
    HOT_BYTES_CUDA = 8 << 20
};

struct rg_measure {
    struct rg_measure_config config;
    struct rg_buffers *buffers;
    struct rg_checker *checker;
    char *scratch;    /* device memory of the aligning invocation */
    uint64_t *layout; /* of an all_to_all_v; device memory */
    struct rg_event *begin[SAMPLES_MAX]; /* CUDA only */
    struct rg_event *end[SAMPLES_MAX];
    uint32_t iteration; /* of the next block's first slot */
};

/* How a case is cut into blocks; see the header. */
struct plan {
    int cold;
    int checked;
    int invocations; /* I */
    int samples;     /* S */
    int slots;
};

/* One subject in one case. */
struct track {
    const struct rg_subject *subject;
    struct rg_samples samples;
    struct rg_graph *graphs[SAMPLES_MAX];
    int ngraphs;
    int merged; /* samples that are merged over ranks */
    struct rg_result result;
};

/* A case in progress. */
struct run {
    struct rg_measure *m;
    const struct rg_case *what;
    size_t bytes;            /* of a rank's largest buffer */
    struct rg_spread spread; /* of an all_to_all_v */
    struct plan plan;
    struct track tracks[RG_SUBJECTS_MAX];
    int ntracks;
    int block; /* rounds so far */
};

size_t rg_case_bytes(const struct rg_case *what, int nranks)
{
    return rg_call_bytes(what->collective, what->count, what->dtype, nranks,
                         what->seed);
}

static int clamp(size_t value, int low, int high)
{
    return value < (size_t)low ? low : value > (size_t)high ? high : (int)value;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* ---- plan --------------------------------------------------------------- */

static int is_cold(const struct rg_measure_config *config, size_t bytes)
{
    if (config->cache == RG_CACHE_AUTO)
        return bytes > config->cache_cutoff;
    return config->cache == RG_CACHE_COLD;
}

static int most_invocations(size_t bytes)
{
    return clamp(INVOCATIONS_BYTES / rg_buffers_footprint(bytes, 1), 1,
                 INVOCATIONS_MAX);
}

static struct plan plan_of(const struct rg_measure_config *config, size_t bytes,
                           int inplace, int invocations)
{
    const size_t pair = rg_buffers_footprint(bytes, 1);
    const size_t hot_bytes =
        config->device == RG_DEVICE_CUDA ? HOT_BYTES_CUDA : HOT_BYTES_EMU;
    const int most = clamp(config->memory_bytes / pair, 1, 1 << 20);
    struct plan plan = {
        .cold = is_cold(config, bytes),
        .checked = config->check_every > 0,
        .invocations = invocations,
    };
    const size_t rotate = plan.cold ? config->cold_bytes : hot_bytes;
    const size_t per_sample = pair * (size_t)invocations;

    plan.samples = clamp(rotate / per_sample, 1, SAMPLES_MAX);
    plan.slots = 1;
    if (plan.cold)
        plan.slots = clamp(config->cold_bytes / pair + 1, 1, most);
    if (plan.slots < plan.samples * invocations && (plan.checked || plan.cold))
        plan.slots = clamp((size_t)(plan.samples * invocations), 1, most);
    if (plan.checked || plan.cold)
        plan.samples =
            clamp((size_t)(plan.slots / invocations), 1, SAMPLES_MAX);
    else
        plan.samples = SAMPLES_UNCHECKED;
    /* A slot used twice in place no longer holds a known input. */
    if (inplace && plan.slots < plan.samples * invocations) {
        plan.checked = plan.checked && config->graph == 0;
        if (plan.checked)
            plan.invocations = plan.slots;
    }
    return plan;
}

/*
 * What the largest layout of any size needs, as bytes of one slab. Slots beyond
 * one sample's are only added while they rotate over less than asked for, so
 * they are one pair more at most; and all of it grows with the size.
 */
static size_t slab_bytes(const struct rg_measure_config *config)
{
    const size_t bytes = config->largest_bytes;
    const size_t pair = rg_buffers_footprint(bytes, 1);
    const size_t hot_bytes =
        config->device == RG_DEVICE_CUDA ? HOT_BYTES_CUDA : HOT_BYTES_EMU;
    const size_t rotate =
        is_cold(config, bytes) ? config->cold_bytes : hot_bytes;
    const size_t sample = config->graph ? pair * (size_t)config->graph
                                        : larger(pair, INVOCATIONS_BYTES);
    const size_t used = larger(rotate + pair, sample);
    const size_t most = larger(config->memory_bytes, pair);

    return (used < most ? used : most) / 2;
}

/* ---- creation ----------------------------------------------------------- */

static int create_events(struct rg_measure *m)
{
    int status = RG_OK;

    for (int i = 0; status == RG_OK && i < SAMPLES_MAX; i++) {
        status = rg_event_create(m->config.context, &m->begin[i]);
        if (status == RG_OK)
            status = rg_event_create(m->config.context, &m->end[i]);
    }
    return status;
}

static int create_scratch(struct rg_measure *m)
{
    struct rg_context *context = m->config.context;
    const size_t words = 4 * (size_t)m->config.nranks;
    void *scratch = NULL, *layout = NULL;
    int status = rg_malloc(context, 2 * RG_GUARD_BYTES, &scratch);

    m->scratch = scratch;
    if (status == RG_OK)
        status = rg_memset(context, scratch, 0, 2 * RG_GUARD_BYTES);
    if (status == RG_OK)
        status = rg_malloc(context, words * sizeof *m->layout, &layout);
    m->layout = layout;
    return status;
}

int rg_measure_create(const struct rg_measure_config *config,
                      struct rg_measure **measure_out)
{
    struct rg_measure *m = calloc(1, sizeof *m);
    int status;

    if (!m)
        return RG_ENOMEM;
    m->config = *config;
    m->iteration = 1;
    status = rg_buffers_create(config->context, slab_bytes(config), 0, 1,
                               config->source, &m->buffers);
    if (status == RG_OK)
        status = create_scratch(m);
    if (status == RG_OK)
        status = rg_checker_create(config->context, &m->checker);
    if (status == RG_OK && config->device == RG_DEVICE_CUDA)
        status = create_events(m);
    if (status != RG_OK)
        goto error;
    *measure_out = m;
    return RG_OK;
error:
    rg_measure_destroy(m);
    return status;
}

void rg_measure_destroy(struct rg_measure *m)
{
    if (!m)
        return;
    for (int i = 0; i < SAMPLES_MAX; i++) {
        if (m->begin[i])
            rg_event_destroy(m->begin[i]);
        if (m->end[i])
            rg_event_destroy(m->end[i]);
    }
    rg_checker_destroy(m->checker);
    if (m->layout)
        rg_free(m->config.context, m->layout);
    if (m->scratch)
        rg_free(m->config.context, m->scratch);
    rg_buffers_destroy(m->buffers);
    free(m);
}

void rg_measure_limit(struct rg_measure *m, double max_us)
{
    m->config.stop.max_us = max_us;
}

/* ---- invocations -------------------------------------------------------- */

static int enter(const struct track *track)
{
    const struct rg_subject *subject = track->subject;

    return subject->enter ? subject->enter(subject->arg) : RG_OK;
}

static struct rg_data data_of(const struct run *run, int slot)
{
    const struct rg_measure_config *config = &run->m->config;
    const struct rg_case *what = run->what;

    return (struct rg_data){
        .count = what->count,
        .dtype = what->dtype,
        .op = what->op,
        .rank = config->rank,
        .nranks = config->nranks,
        .iteration = run->m->iteration + (uint32_t)slot,
        .collective = what->collective,
        .root = what->root,
        .inplace = what->inplace,
        .seed = what->seed,
    };
}

static int finish(const struct track *track)
{
    return track->subject->stream
               ? rg_stream_synchronize(track->subject->stream)
               : RG_OK;
}

static int invoke(const struct run *run, const struct track *track, int slot)
{
    const struct rg_subject *subject = track->subject;

    const struct rg_data data = data_of(run, slot %= run->plan.slots);
    struct rg_call call =
        rg_data_call(&data, rg_buffers_send(run->m->buffers, slot),
                     rg_buffers_recv(run->m->buffers, slot));

    call.spread = &run->spread;
    call.layout = run->m->layout;
    return subject->run(subject->arg, &call);
}

static int invoke_many(const struct run *run, const struct track *track,
                       int first, int n)
{
    /* A stream that is being captured cannot be waited for. */
    const int wait = run->m->config.latency && run->m->config.graph == 0;
    int status = RG_OK;

    for (int i = 0; status == RG_OK && i < n; i++) {
        status = invoke(run, track, first + i);
        if (status == RG_OK && wait)
            status = finish(track);
    }
    return status;
}

static int launch_sample(const struct run *run, const struct track *track,
                         int sample)
{
    if (track->ngraphs > 0)
        return rg_graph_launch(track->graphs[sample % track->ngraphs],
                               track->subject->stream);
    return invoke_many(run, track, sample * run->plan.invocations,
                       run->plan.invocations);
}

static int can(const struct rg_subject *subject, enum rg_collective collective,
               enum rg_dtype dtype, enum rg_op op)
{
    return !subject->supports ||
           subject->supports(subject->arg, collective, dtype, op);
}

/* What no rank leaves before all have come this far: an all-reduce of the kind
 * that is measured, or a barrier. */
static int align(const struct run *run, const struct track *track)
{
    const struct rg_subject *subject = track->subject;
    const struct rg_case *what = run->what;
    const int reduces = rg_collective_reduces(what->collective);
    const int waits = !reduces && can(subject, RG_COLL_barrier, RG_f32, RG_sum);
    const struct rg_call call = {
        .collective = waits ? RG_COLL_barrier : RG_COLL_all_reduce,
        .send = run->m->scratch,
        .recv = run->m->scratch + RG_GUARD_BYTES,
        .count = 1,
        .dtype = reduces ? what->dtype : RG_f32,
        .op = reduces ? what->op : RG_sum,
    };

    return subject->run(subject->arg, &call);
}

/* A graph per sample of a block, so that each has slots of its own. */
static int capture(const struct run *run, struct track *track)
{
    struct rg_stream *stream = track->subject->stream;
    int status = RG_OK;

    if (run->m->config.graph == 0 || !stream)
        return RG_OK;
    while (status == RG_OK && track->ngraphs < run->plan.samples) {
        status = rg_graph_begin(stream);
        if (status == RG_OK)
            status =
                invoke_many(run, track, track->ngraphs * run->plan.invocations,
                            run->plan.invocations);
        if (status == RG_OK)
            status = rg_graph_end(stream, &track->graphs[track->ngraphs]);
        if (status == RG_OK)
            track->ngraphs++;
    }
    return status;
}

static void release(struct track *track)
{
    for (int i = 0; i < track->ngraphs; i++)
        rg_graph_destroy(track->graphs[i]);
    rg_samples_fini(&track->samples);
}

/* ---- timing ------------------------------------------------------------- */

static int time_by_clock(const struct run *run, struct track *track)
{
    int status = RG_OK;

    for (int s = 0; status == RG_OK && s < run->plan.samples; s++) {
        const double begin = rg_stats_clock_us();

        status = launch_sample(run, track, s);
        if (status == RG_OK)
            status = finish(track);
        if (status == RG_OK)
            status =
                rg_samples_add(&track->samples, (rg_stats_clock_us() - begin) /
                                                    run->plan.invocations);
    }
    return status;
}

static int enqueue_sample(const struct run *run, const struct track *track,
                          int sample)
{
    struct rg_stream *stream = track->subject->stream;
    int status = rg_event_record(run->m->begin[sample], stream);

    if (status == RG_OK)
        status = launch_sample(run, track, sample);
    if (status == RG_OK)
        status = rg_event_record(run->m->end[sample], stream);
    return status;
}

static int time_by_events(const struct run *run, struct track *track)
{
    const int n = run->plan.samples;
    int status = RG_OK;
    double us;

    for (int s = 0; status == RG_OK && s < n; s++)
        status = enqueue_sample(run, track, s);
    if (status == RG_OK)
        status = finish(track);
    for (int s = 0; status == RG_OK && s < n; s++) {
        status = rg_event_elapsed_us(run->m->begin[s], run->m->end[s], &us);
        if (status == RG_OK)
            status =
                rg_samples_add(&track->samples, us / run->plan.invocations);
    }
    return status;
}

/* ---- fill and check ----------------------------------------------------- */

static int slots_used(const struct run *run)
{
    const int wanted = run->plan.samples * run->plan.invocations;

    return wanted < run->plan.slots ? wanted : run->plan.slots;
}

static int fill_slots(const struct run *run, struct rg_stream *stream)
{
    const int n = slots_used(run);
    int status = RG_OK;

    for (int slot = 0; status == RG_OK && slot < n; slot++) {
        const struct rg_data data = data_of(run, slot);

        status = rg_datagen_load(stream, rg_buffers_send(run->m->buffers, slot),
                                 rg_buffers_recv(run->m->buffers, slot), &data);
    }
    return status;
}

static int check_slots(const struct run *run, struct rg_stream *stream)
{
    const int n = slots_used(run);
    int status = RG_OK;

    for (int slot = 0; status == RG_OK && slot < n; slot++) {
        const struct rg_data data = data_of(run, slot);

        status = rg_checker_check(
            run->m->checker, stream, rg_buffers_send(run->m->buffers, slot),
            rg_buffers_recv(run->m->buffers, slot), &data);
    }
    return status;
}

/* ---- blocks and rounds -------------------------------------------------- */

static int checks_now(const struct run *run)
{
    return run->plan.checked && run->block % run->m->config.check_every == 0;
}

/* Peers are prepared in the same way, only not checked. */
static int run_block(struct run *run, struct track *track)
{
    struct rg_stream *const own = run->tracks[0].subject->stream;
    struct rg_stream *const stream =
        track->subject->stream ? track->subject->stream : own;
    const int checked = checks_now(run);
    int status = enter(track);

    if (status == RG_OK && (checked || run->block == 0)) {
        status = fill_slots(run, stream);
        if (status == RG_OK && stream != track->subject->stream)
            status = rg_stream_synchronize(stream);
    }
    if (status == RG_OK)
        status = align(run, track);
    if (status == RG_OK)
        status = run->m->config.device == RG_DEVICE_CUDA
                     ? time_by_events(run, track)
                     : time_by_clock(run, track);
    if (status == RG_OK && checked && stream == own && track == &run->tracks[0])
        status = check_slots(run, stream);
    run->m->iteration += (uint32_t)slots_used(run);
    if (status == RG_OK)
        status = rg_stream_synchronize(stream);
    return status == RG_OK ? rg_comm_error(run->m->config.comm) : status;
}

static int settle(struct run *run, struct track *track, double elapsed_us)
{
    const struct rg_measure_config *config = &run->m->config;
    int status = rg_samples_merge(&track->samples, track->merged, config->merge,
                                  config->comm, config->nranks);

    if (status == RG_OK)
        status = rg_summary_of(&track->samples, &track->result.time);
    if (status != RG_OK)
        return status;
    track->merged = track->samples.n;
    track->result.stop =
        rg_stop_decide(&config->stop, &track->result.time, elapsed_us);
    return RG_OK;
}

/* Rank 0's clock, so that all ranks stop in the same round. */
static int agree_on_clock(const struct run *run, double *us)
{
    const struct rg_measure_config *config = &run->m->config;
    double *all = calloc((size_t)config->nranks, sizeof *all);
    int status;

    if (!all)
        return RG_ENOMEM;
    status = rg_comm_gather(config->comm, us, sizeof *us, all);
    if (status == RG_OK)
        *us = all[0];
    free(all);
    return status;
}

static void say_progress(const struct run *run)
{
    const struct rg_measure_config *config = &run->m->config;

    if (config->dog)
        rg_watchdog_kick(config->dog);
    if (config->progress)
        config->progress(config->progress_arg, run->what,
                         run->tracks[0].samples.n);
}

/* Each subject goes first in turn. */
static int run_round(struct run *run, double begin, int *more_out)
{
    double elapsed;
    int status = RG_OK;

    for (int i = 0; status == RG_OK && i < run->ntracks; i++)
        status = run_block(run, &run->tracks[(run->block + i) % run->ntracks]);
    elapsed = (rg_stats_clock_us() - begin) / run->ntracks;
    if (status == RG_OK)
        status = agree_on_clock(run, &elapsed);
    *more_out = 0;
    for (int i = 0; status == RG_OK && i < run->ntracks; i++) {
        status = settle(run, &run->tracks[i], elapsed);
        *more_out |= run->tracks[i].result.stop == RG_STOP_NO;
    }
    say_progress(run);
    run->block++;
    return status;
}

static int run_rounds(struct run *run)
{
    const double begin = rg_stats_clock_us();
    int status = RG_OK, more = 1;

    while (status == RG_OK && more)
        status = run_round(run, begin, &more);
    return status;
}

/* ---- preparation -------------------------------------------------------- */

/* The slowest rank's time of n invocations on slot 0. */
static int time_some(const struct run *run, const struct track *track, int n,
                     double *us_out)
{
    const struct rg_measure_config *config = &run->m->config;
    struct rg_samples samples = {NULL, 0, 0};
    double begin;
    int status = align(run, track);

    if (status == RG_OK)
        status = finish(track);
    begin = rg_stats_clock_us();
    if (status == RG_OK)
        status = invoke_many(run, track, 0, n);
    if (status == RG_OK)
        status = finish(track);
    if (status == RG_OK)
        status = rg_samples_add(&samples, rg_stats_clock_us() - begin);
    if (status == RG_OK)
        status = rg_samples_merge(&samples, 0, RG_MERGE_MAX, config->comm,
                                  config->nranks);
    if (status == RG_OK)
        *us_out = samples.us[0];
    rg_samples_fini(&samples);
    return status;
}

/* Invocations of an eager sample: enough for the clock, for every subject. */
static int calibrate(const struct run *run, int *invocations_out)
{
    const int most = most_invocations(run->bytes);
    int status = RG_OK, n = 1;

    for (int i = 0; status == RG_OK && i < run->ntracks; i++) {
        double us = 0;

        status = enter(&run->tracks[i]);
        while (status == RG_OK && n < most && us < SAMPLE_US) {
            status = time_some(run, &run->tracks[i], n, &us);
            if (us < SAMPLE_US)
                n = 2 * n < most ? 2 * n : most;
        }
    }
    *invocations_out = n;
    return status;
}

static int warm_up(const struct run *run)
{
    int status = RG_OK;

    for (int i = 0; status == RG_OK && i < run->ntracks; i++) {
        status = enter(&run->tracks[i]);
        if (status == RG_OK)
            status =
                invoke_many(run, &run->tracks[i], 0, run->m->config.warmup);
        if (status == RG_OK)
            status = finish(&run->tracks[i]);
    }
    return status;
}

static int lay_out(struct run *run, int slots)
{
    run->plan.slots = slots;
    return rg_buffers_resize(run->m->buffers, run->bytes, 0, slots);
}

/* Also a row of calls that are not checked needs it. */
static int write_layout(struct run *run)
{
    const size_t bytes =
        4 * (size_t)run->m->config.nranks * sizeof *run->m->layout;
    uint64_t *layout;
    int status;

    if (run->what->collective != RG_COLL_all_to_all_v)
        return RG_OK;
    layout = malloc(bytes);
    if (!layout)
        return RG_ENOMEM;
    rg_spread_layout(&run->spread, layout);
    status = rg_memcpy(run->m->config.context, run->m->layout, layout, bytes);
    free(layout);
    return status;
}

static int prepare(struct run *run)
{
    struct rg_measure *m = run->m;
    int invocations = m->config.graph;
    int status = lay_out(run, 1);

    if (status == RG_OK)
        status = write_layout(run);
    if (status == RG_OK)
        status = rg_checker_reset(m->checker);
    /* Nobody may run ahead into a rank that still lays its buffers out. */
    if (status == RG_OK)
        status = rg_comm_gather(m->config.comm, NULL, 0, NULL);
    if (status == RG_OK)
        status = warm_up(run);
    if (status == RG_OK && invocations == 0)
        status = calibrate(run, &invocations);
    if (status != RG_OK)
        return status;
    run->plan =
        plan_of(&m->config, run->bytes, run->what->inplace, invocations);
    status = lay_out(run, run->plan.slots);
    for (int i = 0; status == RG_OK && i < run->ntracks; i++)
        status = capture(run, &run->tracks[i]);
    return status == RG_OK ? rg_comm_gather(m->config.comm, NULL, 0, NULL)
                           : status;
}

/* ---- a case ------------------------------------------------------------- */

static void choose_tracks(struct run *run, const struct rg_subject *subjects,
                          int n)
{
    for (int i = 0; i < n && i < RG_SUBJECTS_MAX; i++) {
        const struct rg_subject *subject = &subjects[i];

        if (can(subject, run->what->collective, run->what->dtype,
                run->what->op))
            run->tracks[run->ntracks++].subject = subject;
    }
}

static int runs(const struct rg_case *what)
{
    return what->count > 0 || what->collective == RG_COLL_barrier;
}

static int report_case(const struct run *run, struct rg_case_report *report_out)
{
    struct rg_measure *m = run->m;
    uint64_t *all = calloc((size_t)m->config.nranks, sizeof *all);
    uint64_t mine;
    int status = all ? RG_OK : RG_ENOMEM;

    memset(report_out, 0, sizeof *report_out);
    report_out->cache = run->plan.cold ? "cold" : "hot";
    report_out->wrong = run->plan.checked ? 0 : -1;
    if (status == RG_OK)
        status = rg_checker_read(m->checker, &report_out->finding);
    /* Nothing ran for count 0: the last run is the aligning one. */
    if (status == RG_OK && runs(run->what))
        status = rg_comm_last_run(m->config.comm, &report_out->run);
    mine = report_out->finding.wrong + report_out->finding.guards;
    if (status == RG_OK)
        status = rg_comm_gather(m->config.comm, &mine, sizeof mine, all);
    for (int r = 0;
         status == RG_OK && run->plan.checked && r < m->config.nranks; r++)
        report_out->wrong += (int64_t)all[r];
    free(all);
    return status;
}

int rg_measure_case(struct rg_measure *measure, const struct rg_case *what,
                    const struct rg_subject *subjects, int nsubjects,
                    struct rg_result *results,
                    struct rg_case_report *report_out)
{
    struct run run = {.m = measure,
                      .what = what,
                      .bytes = rg_case_bytes(what, measure->config.nranks),
                      .spread = {what->seed, what->count,
                                 measure->config.nranks, measure->config.rank}};
    int status;

    for (int i = 0; i < nsubjects; i++)
        results[i] = (struct rg_result){.time = {0, NAN, NAN, NAN, NAN, NAN}};
    choose_tracks(&run, subjects, nsubjects);
    status = prepare(&run);
    if (status == RG_OK)
        status = run_rounds(&run);
    if (status == RG_OK)
        status = report_case(&run, report_out);
    for (int i = 0; i < run.ntracks; i++) {
        results[run.tracks[i].subject - subjects] = run.tracks[i].result;
        release(&run.tracks[i]);
    }
    return status;
}
