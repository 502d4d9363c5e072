/*
 * recovery.*: the matrix of faults. Each case is one fault plan, played to
 * workers of its own; all supervisors judge the same reports, so all say the
 * same. What must hold is said in recovery.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/hosts.h"
#include "harness/wait.h"
#include "validate/recovery.h"

enum {
    STEPS = 12,
    SMALL = 100, /* elements: one block */
    MEDIUM = 50000,
    BLOCK = 60000,    /* elements of a block of a step's collectives */
    LARGE = 1 << 20,  /* a launch takes a millisecond or more */
    LIMIT_MS = 30000, /* a scenario's last step, whatever happens */
    DEADLINE_MS = 60000
};

/* Where a test is about them, failures are noticed soon. */
#define FAST                                                                   \
    "RG_HEARTBEAT_MS=50;RG_HEARTBEAT_MISS_MS=600;RG_WINDOW_MS=300;"            \
    "RG_DEADLINE_MS=1000;RG_ISOLATE_MS=500"

/* The same where a host is missing for seconds, and the others are busy. */
#define BUSY                                                                   \
    "RG_HEARTBEAT_MS=100;RG_HEARTBEAT_MISS_MS=1000;RG_WINDOW_MS=500;"          \
    "RG_DEADLINE_MS=1500;RG_ISOLATE_MS=500"

/* Nothing that waits for a peer ends by itself while a case lasts. */
#define PATIENT "RG_DEADLINE_MS=600000"

/* Who is hit; rank 0 is the coordinator. */
enum who { LEAF = 0, COORDINATOR, WHO_COUNT };
static const char *const who_names[] = {"leaf", "coordinator"};

/* Links that are cut, both ways, between ranks below a border and the rest. */
enum cut { NO_CUT = 0, CUT_FIRST, CUT_HALF, CUT_LAST };

enum {
    HITS_ONE = 1, /* no difference between leaf and coordinator */
    BOOTSTRAP = 2,
    STAYS_OUT = 4,
    ON_LEGACY = 8,   /* also as selection.backend.*, of a legacy group */
    OF_REPLAYS = 16, /* as replay.*, with a graph that outlives the change */
    RETURNS = 32,    /* whom it hits comes back */
    ON_ROUTES = 64,  /* as route_conformance.*, around a transfer probe */
    BREAKS = 128,    /* links between devices break, and nobody is lost */
    ON_HOSTS = 256,  /* as hosts.*, of scripts/hosts: whose cables are pulled */
    ALL_OF_HOST = 512, /* what hits a rank hits each of its host */
    ABORTS = 1024,     /* whom it hits never begins what the others wait in */
    ONE_WAY = 2048     /* not each way: whom it hits and how are in the row */
};

#define OF(name) (1u << RG_COLL_##name)
/* Messages have no seq to be decided: messages.* are about them. */
#define OTHERS ((1u << RG_COLL_COUNT) - 1 - OF(all_reduce) - OF(sendrecv))

/* A death in a collective, which is the first launch of a step of two. */
#define IN(collective, row_phase, row_who, row_replay)                         \
    ROW("kill." #row_phase "." #collective, 2,                                 \
        "at seq 5 phase " #row_phase " rank %V kill", .count = SMALL,          \
        .batch = 2, .flags = ONE_WAY, .collectives = OF(collective),           \
        .who = row_who, .replay = row_replay)

#define ROW(row_name, row_ranks, row_plan, ...)                                \
    {                                                                          \
        .name = row_name, .ranks = row_ranks, .plan = row_plan, __VA_ARGS__    \
    }

/*
 * %V: whom it hits; %O: another; %N: each in turn; %E: the view in which a
 * round begins (each round is a death and a return).
 */
static const struct recovery {
    const char *name;
    int ranks; /* at least; ON_HOSTS: hosts */
    const char *plan;
    const char *settings;
    int flags;
    int count; /* 0: MEDIUM */
    int batch; /* 0: 1 */
    int rounds;
    int steps; /* 0: STEPS */
    int churn;
    int mode;
    enum cut cut;
    enum rg_recovery_probe probe;
    uint32_t collectives; /* a bit each: launched in every step */
    int who, replay;      /* ONE_WAY */
} recoveries[] = {
    ROW("kill.bootstrap", 2, "at seq 0 phase bootstrap rank %V kill",
        .flags = BOOTSTRAP),
    ROW("kill.start", 2, "at seq 5 phase start rank %V kill", .count = SMALL,
        .flags = ON_LEGACY),
    ROW("kill.mid", 2, "at seq 5 phase mid rank %V kill", .count = LARGE,
        .flags = ON_LEGACY),
    ROW("kill.complete", 2, "at seq 5 phase complete rank %V kill",
        .flags = ON_LEGACY),
    ROW("kill.idle", 2, "at seq 5 phase idle rank %V kill", .flags = ON_LEGACY),
    ROW("kill.queue", 2, "at seq 33 phase mid rank %V kill", .batch = 8,
        .steps = 64, .flags = ON_LEGACY),
    ROW("kill.quiesce", 3,
        "at seq 5 phase start rank %O kill; at view 2 phase quiesce rank %V "
        "kill"),
    ROW("kill.parked", 3,
        "at seq 5 phase start rank %O kill; at view 2 phase parked rank %V "
        "kill"),
    ROW("kill.apply", 3,
        "at seq 5 phase start rank %O kill; at view 2 phase apply rank %V "
        "kill"),
    ROW("kill.two", 3,
        "at seq 5 phase start rank %V kill; at seq 5 phase start rank %O kill",
        .flags = ON_LEGACY),
    ROW("kill.twice", 3,
        "at seq 4 phase start rank %V kill; at seq 8 phase mid rank %O kill"),
    /* Moment, victim and way of launching, each with each. */
    IN(all_gather, mid, LEAF, 1),
    IN(reduce_scatter, start, COORDINATOR, 0),
    IN(broadcast, mid, COORDINATOR, 0),
    IN(reduce, start, LEAF, 1),
    IN(all_to_all, mid, LEAF, 0),
    IN(gather, start, COORDINATOR, 1),
    IN(scatter, complete, LEAF, 0),
    IN(barrier, start, LEAF, 0),
    IN(all_to_all_v, mid, COORDINATOR, 1),
    ROW("exit.start", 2, "at seq 5 phase start rank %V exit"),
    ROW("exit.idle", 2, "at seq 5 phase idle rank %V exit"),
    ROW("error.start", 2, "at seq 5 phase start rank %V error"),
    ROW("error.complete", 2, "at seq 5 phase complete rank %V error"),
    ROW("stop.short", 2, "at seq 5 phase start rank %V stop 300ms"),
    ROW("stop.start", 3, "at seq 5 phase start rank %V stop 2s",
        .settings = FAST, .flags = ON_LEGACY),
    ROW("stop.mid", 3, "at seq 5 phase mid rank %V stop 2s", .settings = FAST,
        .count = LARGE),
    ROW("stop.idle", 3, "at seq 5 phase idle rank %V stop 2s",
        .settings = FAST),
    ROW("stop.again", 3, "at view %E phase mid rank %V stop 2500ms",
        .settings = FAST, .rounds = 3, .count = LARGE),
    ROW("rejoin.kill", 2,
        "at seq 5 phase start rank %V rejoin; at seq 5 phase start rank %V "
        "kill",
        .flags = ON_LEGACY),
    ROW("rejoin.exit", 2,
        "at seq 5 phase idle rank %V rejoin; at seq 5 phase idle rank %V exit"),
    /* It is started anew once the others have gone on without it, in view 2:
     * else they may hear of its death by its return, and both be one view. */
    ROW("rejoin.kill_during", 4,
        "at seq 8 phase idle rank %V rejoin; at seq 5 phase start rank %V kill;"
        "at view 3 phase quiesce rank %O kill"),
    ROW("rejoin.dies_again", 2,
        "at seq 8 phase idle rank %V rejoin; at seq 5 phase start rank %V kill;"
        "at view 3 phase apply rank %V rejoin; at view 3 phase apply rank %V "
        "kill"),
    ROW("rejoin.ten", 2,
        "at view %E phase idle rank %V rejoin; at view %E phase idle rank %V "
        "kill",
        .rounds = 10),
    ROW("rejoin.mid", 2,
        "at view %E phase idle rank %V rejoin;"
        "at view %E phase mid rank %V kill",
        .rounds = 10, .count = LARGE / 4, .flags = ON_LEGACY),
    ROW("rejoin.turns", 2,
        "at view %E phase idle rank %N rejoin; at view %E phase idle rank %N "
        "kill",
        .rounds = 10, .flags = HITS_ONE),
    ROW("on_failure_exit.start", 2, "at seq 5 phase start rank %V kill",
        .settings = "RG_ON_FAILURE=exit"),
    ROW("on_failure_exit.mid", 2, "at seq 5 phase mid rank %V kill",
        .settings = "RG_ON_FAILURE=exit", .count = LARGE),
    ROW("mode_1", 3, "at seq 5 phase start rank %V kill",
        .settings = "RG_MODE=1;RG_ON_FAILURE=exit;" FAST, .mode = 1),
    ROW("mode_2", 3, "at seq 5 phase start rank %V kill",
        .settings = "RG_MODE=2;RG_ON_FAILURE=exit;" FAST, .mode = 2),
    ROW("mode_1.stop", 3, "at seq 5 phase start rank %V stop 3s",
        .settings = "RG_MODE=1;" FAST, .mode = 1, .flags = ON_LEGACY),
    ROW("mode_2.stop", 3, "at seq 5 phase start rank %V stop 3s",
        .settings = "RG_MODE=2;" FAST, .mode = 2),
    /* The notice ends what waits: the deadline is behind the case's own. */
    ROW("mode_1.notice", 3, "at seq 5 phase start rank %V kill",
        .settings = "RG_MODE=1;" PATIENT, .mode = 1, .flags = ON_LEGACY),
    ROW("mode_2.notice", 3, "at seq 5 phase mid rank %V kill",
        .settings = "RG_MODE=2;" PATIENT, .mode = 2, .count = LARGE,
        .flags = ON_LEGACY),
    ROW("partition.first", 3, "", .settings = FAST, .cut = CUT_FIRST,
        .flags = HITS_ONE | STAYS_OUT),
    ROW("partition.last", 3, "", .settings = FAST, .cut = CUT_LAST,
        .flags = HITS_ONE | STAYS_OUT),
    ROW("partition.half", 4, "", .settings = FAST, .cut = CUT_HALF,
        .flags = HITS_ONE | STAYS_OUT),
    ROW("heal.first", 3, "", .settings = FAST, .cut = CUT_FIRST,
        .flags = HITS_ONE),
    ROW("heal.last", 3, "", .settings = FAST, .cut = CUT_LAST,
        .flags = HITS_ONE),
    ROW("heal.half", 4, "", .settings = FAST, .cut = CUT_HALF,
        .flags = HITS_ONE),
    ROW("heal.ten", 3, "", .settings = FAST, .cut = CUT_LAST, .flags = HITS_ONE,
        .rounds = 10),
    ROW("break.start", 2, "at seq 5 phase start link %O->%V break",
        .flags = BREAKS, .count = LARGE),
    ROW("break.mid", 2, "at seq 5 phase mid link %O->%V break", .flags = BREAKS,
        .count = LARGE),
    ROW("break.both", 2,
        "at seq 5 phase mid link %O->%V break; at seq 5 phase mid link %V->%O "
        "break",
        .flags = BREAKS, .count = LARGE),
    ROW("churn", 2, "", .flags = HITS_ONE, .churn = 3, .steps = 300),
    ROW("death", 2, "at seq 5 phase start rank %V kill", .flags = OF_REPLAYS),
    ROW("rejoin", 2,
        "at seq 5 phase start rank %V rejoin; at seq 5 phase start rank %V "
        "kill",
        .flags = OF_REPLAYS | RETURNS),
    /* One graph with every collective: a step is ten launches. */
    ROW("collectives.death", 2, "at seq 31 phase mid rank %V kill",
        .count = SMALL, .batch = 10, .steps = 70, .flags = OF_REPLAYS,
        .collectives = OTHERS),
    ROW("collectives.rejoin", 2,
        "at seq 31 phase start rank %V rejoin; at seq 31 phase start rank %V "
        "kill",
        .count = SMALL, .batch = 10, .steps = 70, .flags = OF_REPLAYS | RETURNS,
        .collectives = OTHERS),
    /* Within a probe, or in front of one that the others wait in. */
    ROW("kill.put", 2, "at seq 5 phase mid rank %V kill", .count = SMALL,
        .batch = 2, .steps = 24, .flags = ON_ROUTES, .probe = RG_PROBE_PUT),
    ROW("kill.wait", 2, "at seq 5 phase start rank %V kill", .count = SMALL,
        .batch = 2, .steps = 24, .flags = ON_ROUTES, .probe = RG_PROBE_WAIT),
    ROW("kill.flush", 2, "at seq 5 phase mid rank %V kill", .count = SMALL,
        .batch = 2, .steps = 24, .flags = ON_ROUTES, .probe = RG_PROBE_FLUSH),
    ROW("rejoin", 2,
        "at seq 5 phase start rank %V rejoin; at seq 5 phase mid rank %V kill",
        .count = SMALL, .batch = 2, .steps = 24, .flags = ON_ROUTES,
        .probe = RG_PROBE_PUT),
    ROW("cut.start", 2, "at seq 9 phase start rank %V cut 4s", .settings = BUSY,
        .count = LARGE / 4, .batch = 8, .steps = 24,
        .flags = ON_HOSTS | ABORTS),
    ROW("cut.mid", 2, "at seq 9 phase mid rank %V cut 4s", .settings = BUSY,
        .count = LARGE / 4, .batch = 8, .steps = 24, .flags = ON_HOSTS),
    ROW("split.start", 3,
        "at seq 9 phase start rank %O split 4s; at seq 9 phase start rank %V "
        "split 4s",
        .settings = BUSY, .count = LARGE / 4, .batch = 8, .steps = 24,
        .flags = ON_HOSTS | ABORTS),
    ROW("stop.start", 3, "at seq 9 phase start rank %V stop 4s",
        .settings = BUSY, .count = LARGE / 4, .batch = 8, .steps = 24,
        .flags = ON_HOSTS | ALL_OF_HOST | ABORTS),
};

enum { N_RECOVERIES = sizeof(recoveries) / sizeof(recoveries[0]) };

enum { PARAM_ROW, PARAM_WHO, PARAM_REPLAY, PARAM_BACKEND };

/* ---- plans -------------------------------------------------------------- */

/* What a letter behind % stands for, in this round. */
static int number_of(char letter, int size, enum who who, int round)
{
    const int victim = who == COORDINATOR ? 0 : size - 1;

    switch (letter) {
    case 'V':
        return victim;
    case 'O':
        return who == COORDINATOR ? size - 1 : size - 2;
    case 'N':
        return round % size;
    default:
        return 1 + 2 * round;
    }
}

static size_t write_round(const char *pattern, int size, enum who who,
                          int round, char *text, size_t bytes)
{
    size_t n = 0;

    for (; *pattern != '\0' && n + 12 < bytes; pattern++) {
        if (*pattern != '%')
            text[n++] = *pattern;
        else
            n += (size_t)snprintf(text + n, bytes - n, "%d",
                                  number_of(*++pattern, size, who, round));
    }
    text[n++] = '\n';
    text[n] = '\0';
    return n;
}

static int border_of(enum cut cut, int size)
{
    return cut == CUT_FIRST ? 1 : cut == CUT_HALF ? size / 2 : size - 1;
}

static size_t write_cut(int border, int size, int round, int rounds, char *text,
                        size_t bytes)
{
    size_t n = 0;
    char when[40] = "seq 5 phase start";

    if (rounds > 1)
        snprintf(when, sizeof(when), "view %d phase idle", 1 + 2 * round);
    for (int from = 0; from < size; from++)
        for (int to = 0; to < size; to++)
            if ((from < border) != (to < border) && n + 1 < bytes)
                n += (size_t)snprintf(text + n, bytes - n,
                                      "at %s link %d->%d drop\n", when, from,
                                      to);
    return n;
}

static void write_plan(const struct recovery *recovery, int size, enum who who,
                       char *text)
{
    const int rounds = recovery->rounds ? recovery->rounds : 1;
    size_t n = 0;

    text[0] = '\0';
    for (int round = 0; round < rounds; round++)
        n += recovery->cut == NO_CUT
                 ? write_round(recovery->plan, size, who, round, text + n,
                               RG_RECOVERY_PLAN_MAX - n)
                 : write_cut(border_of(recovery->cut, size), size, round,
                             rounds, text + n, RG_RECOVERY_PLAN_MAX - n);
}

/* ---- hosts -------------------------------------------------------------- */

/* Ranks are dealt out host by host, as many to each. */
static int per_host(const struct rg_job *job)
{
    return job->hosts > 0 && job->size % job->hosts == 0
               ? job->size / job->hosts
               : job->size;
}

static uint64_t below(int rank)
{
    return rank >= 64 ? UINT64_MAX : (UINT64_C(1) << rank) - 1;
}

static int ends_process(const struct rg_fault *fault)
{
    return fault->action == RG_FAULT_KILL || fault->action == RG_FAULT_EXIT ||
           fault->action == RG_FAULT_ERROR;
}

static uint64_t ranks_of_host(int rank, int per)
{
    return below(per) << (rank / per * per);
}

/* The plan again for each other rank of the host that is hit. */
static void write_neighbours(const struct recovery *recovery, int size, int per,
                             enum who who, char *text)
{
    const int victim = number_of('V', size, who, 0);
    const int first = victim / per * per;
    size_t n = strlen(text);

    for (int rank = first; rank < first + per; rank++) {
        /* A round's %V of a job that ends with it. */
        if (rank != victim)
            n += write_round(recovery->plan, rank + 1, LEAF, 0, text + n,
                             RG_RECOVERY_PLAN_MAX - n);
    }
}

/*
 * Who goes on when hosts are away: the largest part of those that still reach
 * each other. Of halves, the one with rank 0.
 */
static uint64_t majority(const struct rg_fault_plan *plan, int size, int per)
{
    uint64_t rest = below(size), split = 0, best = 0;

    for (int i = 0; i < rg_fault_plan_size(plan); i++) {
        const struct rg_fault *fault = rg_fault_plan_entry(plan, i);
        const uint64_t host = ranks_of_host(fault->rank, per);

        rest &= ~host;
        if (fault->action == RG_FAULT_SPLIT)
            split |= host;
        else if (fault->action == RG_FAULT_CUT)
            best = host;
    }
    for (int i = 0; i < 2; i++) {
        const uint64_t part = i ? split : rest;
        const int more =
            __builtin_popcountll(part) - __builtin_popcountll(best);

        if (more > 0 || (more == 0 && part & 1))
            best = part;
    }
    return best;
}

/* ---- who is left -------------------------------------------------------- */

/* All but those whose process ends and that no plan starts anew. */
static uint64_t left_by(const struct rg_fault_plan *plan, int size)
{
    uint64_t left = below(size);

    for (int i = 0; i < rg_fault_plan_size(plan); i++) {
        const struct rg_fault *fault = rg_fault_plan_entry(plan, i);

        if (ends_process(fault))
            left &= ~(UINT64_C(1) << fault->rank % 64);
    }
    for (int i = 0; i < rg_fault_plan_size(plan); i++) {
        const struct rg_fault *fault = rg_fault_plan_entry(plan, i);

        if (fault->action == RG_FAULT_REJOIN && fault->rank < size)
            left |= UINT64_C(1) << fault->rank;
    }
    return left;
}

/* The larger side of a cut; of halves, the one with the lowest rank. */
static uint64_t left_by_cut(int border, int size)
{
    return 2 * border >= size ? below(border) : below(size) & ~below(border);
}

/* ---- what happened when ------------------------------------------------- */

/* Of an event, or of a fault that hit the worker; 0: the record is neither. */
static uint64_t time_of(const struct rg_record *record, const char **name_out,
                        uint64_t *value_out)
{
    const struct rg_event *event = record->data;
    const struct rg_injected *fault = record->data;

    if (record->kind == RG_RECORD_EVENT) {
        *name_out = event->name;
        *value_out = event->value;
        return event->time_ns;
    }
    if (record->kind != RG_RECORD_FAULT)
        return 0;
    *name_out = rg_fault_action_name((enum rg_fault_action)fault->action);
    *value_out = (uint64_t)fault->entry;
    return fault->done_ns;
}

/* In milliseconds since the begin. */
static void show_events(const struct rg_supervision *supervision,
                        uint64_t begin_ns)
{
    struct rg_record record;
    const char *name;
    uint64_t value;

    for (int r = 0; r < supervision->size; r++) {
        size_t cursor = 0;

        while (rg_supervision_next(supervision, r, &cursor, &record)) {
            const uint64_t at = time_of(&record, &name, &value);

            if (at != 0)
                fprintf(stderr, "# rank %d, process %d: %10.3f ms %s %llu\n", r,
                        record.life + 1, ((double)at - (double)begin_ns) / 1e6,
                        name, (unsigned long long)value);
        }
    }
}

/* How to play the same again; the plan by itself fits in one line. */
static void show_plan(const struct rg_recovery_scenario *scenario)
{
    fprintf(stderr, "# seed %llu, settings '%s', plan:\n",
            (unsigned long long)scenario->seed, scenario->settings);
    for (const char *at = scenario->plan; *at != '\0';) {
        const int length = (int)strcspn(at, "\n");

        fprintf(stderr, "#   %.*s\n", length, at);
        at += length + (at[length] == '\n');
    }
}

/* ---- playing ------------------------------------------------------------ */

static int play(struct rg_suite *suite, struct rg_recovery_scenario *scenario,
                struct rg_supervision *supervision_out)
{
    const struct rg_scenario played = {.payload = scenario,
                                       .bytes = sizeof(*scenario),
                                       .deadline_ms = DEADLINE_MS};

    scenario->begin_ns = rg_now_ns();
    return rg_suite_play(suite, &played, supervision_out);
}

static void play_and_judge(struct rg_suite *suite,
                           struct rg_recovery_scenario *scenario,
                           struct rg_recovery_played *played,
                           struct rg_case_result *result)
{
    struct rg_supervision supervision;
    int status = play(suite, scenario, &supervision);

    if (rg_case_expect_ok(result, status, "supervision") != RG_OK)
        return;
    played->scenario = scenario;
    played->supervision = &supervision;
    rg_recovery_judge(played, result);
    if (result->failed && suite->job->rank == 0) {
        show_plan(scenario);
        show_events(&supervision, scenario->begin_ns);
    }
    rg_supervision_fini(&supervision);
}

/* What does not depend on the row. */
static void begin_scenario(const struct rg_suite *suite, int replay,
                           struct rg_recovery_scenario *scenario_out)
{
    const struct rg_suite_options *options = suite->options;

    *scenario_out = (struct rg_recovery_scenario){
        .work = {.kind = RG_WORK_RECOVERY},
        .device = options->device,
        .team_width = options->team_width,
        .teams = options->teams,
        .steps = STEPS,
        .batch = 1,
        .count = MEDIUM,
        .dtype = replay ? RG_f32 : RG_u32,
        .replay = replay,
        .comes_back = 1,
        .limit_ms = LIMIT_MS,
        .backend = options->backend,
        .seed = options->seed,
    };
}

static int has_ranks(const struct rg_suite *suite, int needed,
                     struct rg_case_result *result)
{
    if (suite->job->size >= needed && suite->job->size <= RG_RECOVERY_RANKS_MAX)
        return 1;
    result->skipped = 1;
    snprintf(result->text, sizeof(result->text), "needs %d to %d ranks", needed,
             RG_RECOVERY_RANKS_MAX);
    return 0;
}

static void fill_scenario(const struct recovery *recovery, int size,
                          enum who who, struct rg_recovery_scenario *scenario)
{
    if (recovery->steps)
        scenario->steps = recovery->steps;
    if (recovery->batch)
        scenario->batch = recovery->batch;
    if (recovery->count)
        scenario->count = recovery->count;
    scenario->comes_back = !(recovery->flags & STAYS_OUT);
    scenario->churn = recovery->churn;
    scenario->mode = recovery->mode;
    scenario->probe = (int32_t)recovery->probe;
    scenario->collectives = recovery->collectives;
    /* Ten of them, or one that takes long enough to be hit in its midst. */
    scenario->block = recovery->batch > 2 ? BLOCK / 10 : BLOCK;
    scenario->root = who == COORDINATOR ? size - 1 : 0;
    /* Fewer rounds do not touch all that the group will ever use. */
    if (recovery->rounds >= 10 && recovery->cut == NO_CUT)
        scenario->warm = recovery->rounds;
    if (recovery->settings != NULL)
        snprintf(scenario->settings, sizeof(scenario->settings), "%s",
                 recovery->settings);
    write_plan(recovery, size, who, scenario->plan);
}

/* So many invocations are committed while a host is away, of those by which
 * one that nobody should wait for any more would be seen to hold up others. */
enum { LEAST_AWAY = 5 };

/* What must be true of hosts that were away, and of the others meanwhile. */
static void expect_hosts(const struct rg_fault_plan *plan,
                         const struct rg_job *job,
                         struct rg_recovery_played *played)
{
    const uint64_t all = below(job->size);

    played->witnesses = majority(plan, job->size, per_host(job));
    played->out = all & ~played->witnesses;
    played->nstages = 3;
    played->stages[0] = played->stages[2] = all;
    played->stages[1] = played->witnesses;
    played->least[1] = LEAST_AWAY;
}

/* The members before a death, behind it, and behind a return. */
static int stages_of(const struct recovery *recovery, int size, enum who who,
                     uint64_t *stages_out)
{
    const uint64_t all = below(size);
    const int victim = number_of('V', size, who, 0);

    if (!(recovery->flags & OF_REPLAYS))
        return 0;
    stages_out[0] = all;
    stages_out[1] = all & ~(UINT64_C(1) << victim);
    stages_out[2] = all;
    return recovery->flags & RETURNS ? 3 : 2;
}

/* Whether some routes are switched off. */
static int is_narrowed(void)
{
    static const char *const switches[] = {
        "RG_DISABLE_P2P_ROUTE", "RG_DISABLE_HOST_PROXY_ROUTE",
        "MOONCAKE_PG_DISABLE_P2P_ROUTE",
        "MOONCAKE_PG_DISABLE_HOST_PROXY_ROUTE"};

    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        const char *value = getenv(switches[i]);

        if (value != NULL && strcmp(value, "0") != 0)
            return 1;
    }
    return 0;
}

/* Why the row says nothing in this job; null: it does. */
static const char *inapplicable(const struct recovery *recovery, enum who who,
                                const struct rg_job *job)
{
    const int per = per_host(job);
    const int victim = number_of('V', job->size, who, 0);
    const int other = number_of('O', job->size, who, 0);

    if (recovery->flags & BREAKS && is_narrowed())
        return "there is no other route to go on by";
    if (recovery->flags & BREAKS && victim / per != other / per)
        return "the two ranks are not on one host";
    if (!(recovery->flags & ON_HOSTS))
        return NULL;
    if (!rg_hosts_present())
        return "needs hosts of scripts/hosts";
    if (job->hosts < 1 || job->size % job->hosts != 0)
        return "needs as many ranks on each host";
    return job->hosts < recovery->ranks ? "needs more hosts" : NULL;
}

/* Whether the group has all that the row launches. */
static int has_collectives(const struct rg_suite *suite,
                           const struct recovery *recovery)
{
    for (int c = 0; c < RG_COLL_COUNT; c++)
        if (recovery->collectives >> c & 1 &&
            !rg_suite_runs(suite, (enum rg_collective)c, NULL))
            return 0;
    return 1;
}

static int applies(const struct rg_suite *suite,
                   const struct recovery *recovery, enum who who,
                   struct rg_case_result *result)
{
    const char *why;

    if (!has_ranks(suite, recovery->ranks, result))
        return 0;
    why = inapplicable(recovery, who, suite->job);
    if (why == NULL && !has_collectives(suite, recovery))
        why = "there is no algorithm for it";
    if (why == NULL)
        return 1;
    result->skipped = 1;
    snprintf(result->text, sizeof(result->text), "%s", why);
    return 0;
}

static void expect(const struct recovery *recovery, const struct rg_job *job,
                   enum who who, struct rg_recovery_played *played)
{
    played->bootstrap = recovery->flags & BOOTSTRAP;
    played->breaks = recovery->flags & BREAKS;
    played->stay = played->breaks ? UINT64_MAX : 0;
    played->witnesses = UINT64_MAX;
    played->nstages = stages_of(recovery, job->size, who, played->stages);
    played->aborts = recovery->flags & ABORTS;
    if (recovery->flags & ON_HOSTS)
        expect_hosts(played->plan, job, played);
}

/* The suite's own group is not to see that a host is away. */
static void play_apart(struct rg_suite *suite,
                       struct rg_recovery_scenario *scenario,
                       struct rg_recovery_played *played,
                       struct rg_case_result *result)
{
    const uint64_t first_seq = suite->first_seq;

    rg_suite_close(suite);
    play_and_judge(suite, scenario, played, result);
    rg_case_expect_ok(result, rg_suite_open(suite, first_seq),
                      "the group behind the case");
}

static void run_recovery(struct rg_suite *suite, const struct rg_case *test,
                         struct rg_case_result *result)
{
    const struct recovery *recovery = &recoveries[test->param[PARAM_ROW]];
    const enum who who = (enum who)test->param[PARAM_WHO];
    const int size = suite->job->size;
    struct rg_recovery_scenario scenario;
    struct rg_recovery_played played = {0};

    if (!applies(suite, recovery, who, result))
        return;
    begin_scenario(suite, test->param[PARAM_REPLAY], &scenario);
    if (test->param[PARAM_BACKEND] != RG_BACKEND_UNSET)
        scenario.backend = test->param[PARAM_BACKEND];
    fill_scenario(recovery, size, who, &scenario);
    if (recovery->flags & ALL_OF_HOST)
        write_neighbours(recovery, size, per_host(suite->job), who,
                         scenario.plan);
    if (rg_case_expect_ok(
            result, rg_fault_plan_create(scenario.plan, &played.plan, NULL),
            "fault plan") != RG_OK)
        return;
    scenario.members = left_by(played.plan, size);
    if (recovery->cut != NO_CUT && !scenario.comes_back)
        scenario.members = left_by_cut(border_of(recovery->cut, size), size);
    expect(recovery, suite->job, who, &played);
    if (recovery->flags & ON_HOSTS)
        play_apart(suite, &scenario, &played, result);
    else
        play_and_judge(suite, &scenario, &played, result);
    rg_fault_plan_destroy(played.plan);
}

/* ---- the user's plan ---------------------------------------------------- */

/* Behind the last moment that is named by a number. */
static int steps_of(const struct rg_fault_plan *plan)
{
    uint64_t last = 0;

    for (int i = 0; i < rg_fault_plan_size(plan); i++) {
        const struct rg_fault *fault = rg_fault_plan_entry(plan, i);

        if ((fault->trigger == RG_FAULT_AT_SEQ ||
             fault->trigger == RG_FAULT_AT_REPLAY) &&
            fault->at > last)
            last = fault->at;
    }
    return (int)last + STEPS / 2 > STEPS ? (int)last + STEPS / 2 : STEPS;
}

static void run_plan(struct rg_suite *suite, const struct rg_case *test,
                     struct rg_case_result *result)
{
    struct rg_recovery_scenario scenario;
    struct rg_recovery_played played = {0};
    struct rg_fault_plan *plan;

    if (!has_ranks(suite, 2, result) ||
        rg_case_expect_ok(
            result, rg_fault_plan_load(suite->options->fault, &plan, NULL),
            "fault plan") != RG_OK)
        return;
    begin_scenario(suite, test->param[PARAM_REPLAY], &scenario);
    played.plan = plan;
    scenario.steps = steps_of(plan);
    scenario.members = left_by(plan, suite->job->size);
    rg_fault_plan_print(plan, scenario.plan, sizeof(scenario.plan));
    /* Nobody would be there to say that anything went wrong. */
    if (scenario.members == 0)
        rg_case_fail(result, RG_EXIT_RECOVERY,
                     "no survivor: the plan ends all %d ranks",
                     suite->job->size);
    else if (rg_hosts_present())
        play_apart(suite, &scenario, &played, result);
    else
        play_and_judge(suite, &scenario, &played, result);
    rg_fault_plan_destroy(plan);
}

/* Null: it can be played. */
static const char *refuse_entry(const struct rg_fault *fault, int ranks)
{
    const int by_time = fault->trigger == RG_FAULT_AT_TIME;

    if (fault->action == RG_FAULT_DELAY)
        return "links cannot be delayed here";
    if ((fault->action == RG_FAULT_CUT || fault->action == RG_FAULT_SPLIT) &&
        !rg_hosts_present())
        return "only hosts of scripts/hosts can be cut off";
    if (fault->rank >= ranks || fault->to >= ranks)
        return "there is no such rank";
    if (by_time ? fault->at / 1000000 > LIMIT_MS / 2
                : fault->at > RG_RECOVERY_LINES_MAX / 2)
        return "that is too late for one run";
    if (fault->duration_ns / 1000000 > LIMIT_MS / 2)
        return "that is too long for one run";
    return NULL;
}

/* A start waits for an end: each needs one of its own. */
static const char *refuse_rejoin(const struct rg_fault_plan *plan, int entry)
{
    const struct rg_fault *fault = rg_fault_plan_entry(plan, entry);
    int lives = 1;

    if (fault->action != RG_FAULT_REJOIN)
        return NULL;
    for (int i = 0; i < rg_fault_plan_size(plan); i++) {
        const struct rg_fault *other = rg_fault_plan_entry(plan, i);

        if (other->rank != fault->rank)
            continue;
        if (ends_process(other))
            lives--;
        else if (other->action == RG_FAULT_REJOIN && i <= entry)
            lives++;
    }
    return lives > 1 ? "nothing in the plan ends this rank's process" : NULL;
}

int rg_recovery_check_plan(const char *file_or_text, int ranks, char *text,
                           size_t bytes)
{
    struct rg_fault_error error = {.cause = "out of memory"};
    const char *why = NULL;
    struct rg_fault_plan *plan;
    char entry[120];
    int status = rg_fault_plan_load(file_or_text, &plan, &error);

    if (status != RG_OK) {
        if (error.line > 0)
            snprintf(text, bytes, "line %d, column %d: %s", error.line,
                     error.column, error.cause);
        else
            snprintf(text, bytes, "%s", error.cause);
        return status;
    }
    if (rg_fault_plan_size(plan) == 0) {
        rg_fault_plan_destroy(plan);
        snprintf(text, bytes, "there is no fault in it");
        return RG_ECONFIG;
    }
    for (int i = 0; i < rg_fault_plan_size(plan) && why == NULL; i++) {
        why = refuse_entry(rg_fault_plan_entry(plan, i),
                           ranks ? ranks : RG_RECOVERY_RANKS_MAX);
        if (why == NULL)
            why = refuse_rejoin(plan, i);
        rg_fault_print(rg_fault_plan_entry(plan, i), entry, sizeof(entry));
    }
    if (why == NULL &&
        rg_fault_plan_print(plan, NULL, 0) >= RG_RECOVERY_PLAN_MAX)
        why = "a plan is too long from here on";
    if (why != NULL)
        snprintf(text, bytes, "'%s': %s", entry, why);
    rg_fault_plan_destroy(plan);
    return why != NULL ? RG_ECONFIG : RG_OK;
}

/* ---- the list ----------------------------------------------------------- */

/* The groups that a row is in: its own is recovery. */
static const struct group {
    const char *name;
    int flags; /* of rows in it, all of them */
    int backend;
    int eager, replay;
} groups[] = {
    {"recovery", 0, RG_BACKEND_UNSET, 1, 1},
    {"selection.backend", ON_LEGACY, RG_BACKEND_LEGACY, 1, 0},
    {"replay", OF_REPLAYS, RG_BACKEND_UNSET, 0, 1},
    {"route_conformance", ON_ROUTES, RG_BACKEND_NEW, 1, 0},
    {"hosts", ON_HOSTS, RG_BACKEND_UNSET, 1, 1},
};

enum { N_GROUPS = sizeof(groups) / sizeof(groups[0]) };

static int is_in(const struct group *group, const struct recovery *recovery)
{
    const int apart = OF_REPLAYS | ON_ROUTES | ON_HOSTS;

    return (recovery->flags & apart) == (group->flags & apart) &&
           (recovery->flags & group->flags) == group->flags;
}

static int add_case(struct rg_case_list *list, const struct group *group,
                    int row, enum who who, int replay)
{
    const struct recovery *recovery = &recoveries[row];
    struct rg_case test = {.run = run_recovery,
                           .captures = replay,
                           .param = {[PARAM_ROW] = row,
                                     [PARAM_WHO] = (int)who,
                                     [PARAM_REPLAY] = replay,
                                     [PARAM_BACKEND] = group->backend}};
    const char *mode = replay ? ".replay" : ".eager";

    snprintf(test.name, sizeof(test.name), "%s.%s%s%s%s", group->name,
             recovery->name, recovery->flags & HITS_ONE ? "" : ".",
             recovery->flags & HITS_ONE ? "" : who_names[who],
             group->eager && group->replay ? mode : "");
    return rg_case_list_add(list, &test);
}

static int add_row(struct rg_case_list *list, const struct group *group,
                   int row)
{
    const int n = recoveries[row].flags & HITS_ONE ? 1 : WHO_COUNT;
    int status = RG_OK;

    if (recoveries[row].flags & ONE_WAY)
        return add_case(list, group, row, (enum who)recoveries[row].who,
                        recoveries[row].replay);

    for (int who = 0; who < n && status == RG_OK; who++) {
        if (group->eager)
            status = add_case(list, group, row, (enum who)who, 0);
        if (group->replay && status == RG_OK)
            status = add_case(list, group, row, (enum who)who, 1);
    }
    return status;
}

static int add_plan(struct rg_case_list *list)
{
    int status = RG_OK;

    for (int replay = 0; replay < 2 && status == RG_OK; replay++) {
        struct rg_case test = {.run = run_plan,
                               .captures = replay,
                               .param = {[PARAM_REPLAY] = replay}};

        snprintf(test.name, sizeof(test.name), "recovery.plan.%s",
                 replay ? "replay" : "eager");
        status = rg_case_list_add(list, &test);
    }
    return status;
}

int rg_cases_recovery(struct rg_case_list *list,
                      const struct rg_suite_options *options)
{
    int status = RG_OK;

    if (options->fault != NULL)
        return add_plan(list);
    for (int g = 0; g < N_GROUPS; g++)
        for (int row = 0; row < N_RECOVERIES && status == RG_OK; row++)
            if (is_in(&groups[g], &recoveries[row]))
                status = add_row(list, &groups[g], row);
    return status;
}
