/*
 * Supervisors and workers. Without arguments: cmocka, supervisors are threads.
 * With the name of a toy: that scenario alone, under whatever launcher there
 * is; the exit code is the verdict. The workers are this program again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/supervisor.h"
#include "harness/verdict.h"
#include "harness/wait.h"
#include "harness/worker.h"

enum {
    RANKS = 3,
    VICTIM = 1,
    PLENTY_MS = 60000, /* for what must not run into the deadline */
    SHORT_MS = 300,    /* for what must */
    BIG = 1 << 20
};

#define MS UINT64_C(1000000)

/* ---- what workers do ---------------------------------------------------- */

/* Returns an exit code, as all toys. */
typedef int toy_run(struct rg_worker *worker);

static int fails(const char *what)
{
    fprintf(stderr, "worker: %s\n", what);
    return RG_EXIT_WRONG;
}

#define EXPECT(condition)                                                      \
    do {                                                                       \
        if (!(condition))                                                      \
            return fails(#condition);                                          \
    } while (0)

static int is_victim(struct rg_worker *worker)
{
    const struct rg_job *job = rg_worker_job(worker);

    return job->rank == VICTIM % job->size;
}

static int inject(struct rg_worker *worker, int action, int rank,
                  uint64_t delay_ns, uint64_t duration_ns)
{
    const struct rg_injection injection = {.action = action,
                                           .entry = 0,
                                           .rank = rank,
                                           .delay_ns = delay_ns,
                                           .duration_ns = duration_ns};

    return rg_worker_inject(worker, &injection);
}

static int inject_self(struct rg_worker *worker, int action, uint64_t delay_ns,
                       uint64_t duration_ns)
{
    return inject(worker, action, rg_worker_job(worker)->rank, delay_ns,
                  duration_ns);
}

static int exchange(struct rg_worker *worker, const void *in, void *out,
                    size_t bytes)
{
    const struct rg_bootstrap *by = &rg_worker_job(worker)->bootstrap;

    return by->allgather(by->arg, in, out, bytes);
}

static int barrier(struct rg_worker *worker)
{
    char none[1];

    return exchange(worker, none, none, 0);
}

static int gather_once(struct rg_worker *worker, int round, size_t bytes)
{
    const struct rg_job *job = rg_worker_job(worker);
    unsigned char *in = malloc(bytes);
    unsigned char *out = malloc(bytes * (size_t)job->size);
    int wrong = 0;

    memset(in, 16 * round + job->rank, bytes);
    EXPECT(exchange(worker, in, out, bytes) == RG_OK);
    for (int r = 0; r < job->size; r++)
        for (size_t i = 0; i < bytes; i++)
            wrong += out[(size_t)r * bytes + i] != 16 * round + r;
    free(in);
    free(out);
    EXPECT(wrong == 0);
    return RG_EXIT_PASS;
}

static int toy_gather(struct rg_worker *worker)
{
    static const size_t sizes[] = {1, 4, 100000, BIG, 7};
    const struct rg_job *job = rg_worker_job(worker);

    EXPECT(job->kind == RG_LAUNCH_WORKER);
    EXPECT(job->local_size == job->size && job->local_rank == job->rank);
    for (int i = 0; i < 5; i++)
        EXPECT(gather_once(worker, i, sizes[i]) == RG_EXIT_PASS);
    EXPECT(barrier(worker) == RG_OK);
    EXPECT(rg_worker_event(worker, "gathered", 5) == RG_OK);
    EXPECT(rg_worker_report(worker, &job->rank, sizeof job->rank) == RG_OK);
    return RG_EXIT_PASS;
}

/* The others must hear of it rather than wait, and of whom. */
static int survive(struct rg_worker *worker)
{
    const int size = rg_worker_job(worker)->size;
    int ends = -1;

    EXPECT(barrier(worker) == RG_EFAILED);
    EXPECT(barrier(worker) == RG_EFAILED);
    EXPECT(rg_worker_ends(worker, VICTIM % size, &ends) == RG_OK && ends > 0);
    EXPECT(rg_worker_ends(worker, size, &ends) == RG_EINVAL);
    EXPECT(rg_worker_ends(worker, -1, &ends) == RG_EINVAL);
    return RG_EXIT_PASS;
}

static int toy_kill(struct rg_worker *worker)
{
    const int victim = VICTIM % rg_worker_job(worker)->size;
    int ends = -1;

    EXPECT(rg_worker_ends(worker, victim, &ends) == RG_OK && ends == 0);
    EXPECT(barrier(worker) == RG_OK);
    if (is_victim(worker))
        inject_self(worker, RG_FAULT_KILL, 0, 0);
    EXPECT(!is_victim(worker));
    return survive(worker);
}

static int toy_kill_later(struct rg_worker *worker)
{
    EXPECT(barrier(worker) == RG_OK);
    if (!is_victim(worker))
        return survive(worker);
    EXPECT(inject_self(worker, RG_FAULT_KILL, 50 * MS, 0) == RG_OK);
    for (;;)
        pause();
}

/* In the exchange, which its second thread does not hold up. */
static void *kill_from_thread(void *arg)
{
    inject_self(arg, RG_FAULT_KILL, 0, 0);
    return NULL;
}

static int toy_kill_in_exchange(struct rg_worker *worker)
{
    pthread_t thread;
    void *ticket;
    size_t bytes;
    int number;

    EXPECT(barrier(worker) == RG_OK);
    if (is_victim(worker)) {
        EXPECT(pthread_create(&thread, NULL, kill_from_thread, worker) == 0);
        barrier(worker);
        for (;;)
            pause();
    }
    if (rg_worker_job(worker)->rank == 0) {
        /* Stays away, so that only the death can end the exchange. */
        EXPECT(rg_worker_ticket(worker, 0, PLENTY_MS, &ticket, &bytes,
                                &number) == RG_OK);
        free(ticket);
        return survive(worker);
    }
    EXPECT(survive(worker) == RG_EXIT_PASS);
    EXPECT(rg_worker_publish(worker, "go", 2) == RG_OK);
    return RG_EXIT_PASS;
}

static int toy_crash(struct rg_worker *worker)
{
    if (is_victim(worker))
        raise(SIGKILL);
    return survive(worker);
}

static int toy_hang(struct rg_worker *worker)
{
    if (is_victim(worker))
        for (;;)
            pause();
    return RG_EXIT_PASS;
}

static int toy_stop(struct rg_worker *worker)
{
    if (is_victim(worker)) {
        const uint64_t before = rg_now_ns();

        EXPECT(rg_worker_event(worker, "before", 0) == RG_OK);
        EXPECT(inject_self(worker, RG_FAULT_STOP, 0, 100 * MS) == RG_OK);
        EXPECT(rg_now_ns() - before >= 100 * MS);
        EXPECT(rg_worker_event(worker, "after", 0) == RG_OK);
    }
    EXPECT(barrier(worker) == RG_OK);
    return RG_EXIT_PASS;
}

static int toy_stop_for_good(struct rg_worker *worker)
{
    if (is_victim(worker))
        inject_self(worker, RG_FAULT_STOP, 0, 3600000 * MS);
    return RG_EXIT_PASS;
}

/* A process started anew takes the latest ticket and no part in exchanges. */
static int second_life(struct rg_worker *worker)
{
    void *ticket;
    size_t bytes;
    int number;

    EXPECT(is_victim(worker));
    EXPECT(rg_worker_life(worker) == 1);
    EXPECT(barrier(worker) == RG_ENOTSUP);
    EXPECT(rg_worker_ticket(worker, 0, PLENTY_MS, &ticket, &bytes, &number) ==
           RG_OK);
    EXPECT(number == 1 && bytes == 6 && memcmp(ticket, "ticket", 6) == 0);
    free(ticket);
    EXPECT(rg_worker_ticket(worker, number, 1, &ticket, &bytes, &number) ==
           RG_ETIMEDOUT);
    EXPECT(rg_worker_report(worker, "again", 5) == RG_OK);
    return RG_EXIT_PASS;
}

static int toy_rejoin(struct rg_worker *worker)
{
    if (rg_worker_life(worker) > 0)
        return second_life(worker);
    EXPECT(barrier(worker) == RG_OK);
    if (is_victim(worker)) {
        /* Asked for at once, it still waits for the end of this life. */
        EXPECT(inject_self(worker, RG_FAULT_REJOIN, 0, 0) == RG_OK);
        EXPECT(inject_self(worker, RG_FAULT_KILL, 20 * MS, 0) == RG_OK);
        for (;;)
            pause();
    }
    if (rg_worker_job(worker)->rank == 0)
        EXPECT(rg_worker_publish(worker, "ticket", 6) == RG_OK);
    return survive(worker);
}

/* Asked for by a survivor, which is gone by the time it happens. */
static int toy_rejoin_by_other(struct rg_worker *worker)
{
    if (rg_worker_life(worker) > 0)
        return second_life(worker);
    EXPECT(barrier(worker) == RG_OK);
    if (is_victim(worker))
        inject_self(worker, RG_FAULT_KILL, 0, 0);
    EXPECT(survive(worker) == RG_EXIT_PASS);
    if (rg_worker_job(worker)->rank == 0) {
        EXPECT(rg_worker_publish(worker, "ticket", 6) == RG_OK);
        EXPECT(inject(worker, RG_FAULT_REJOIN, VICTIM, 100 * MS, 0) == RG_OK);
    }
    return RG_EXIT_PASS;
}

static int toy_last_words(struct rg_worker *worker)
{
    char *words = calloc(1, BIG);

    if (is_victim(worker)) {
        words[BIG - 1] = 'x';
        EXPECT(rg_worker_report(worker, words, BIG) == RG_OK);
        raise(SIGKILL);
    }
    free(words);
    return RG_EXIT_PASS;
}

static int toy_exit_planned(struct rg_worker *worker)
{
    if (!is_victim(worker))
        return survive(worker);
    EXPECT(inject_self(worker, RG_FAULT_EXIT, 0, 0) == RG_OK);
    return RG_EXIT_WRONG;
}

static int toy_exit(struct rg_worker *worker)
{
    return is_victim(worker) ? RG_EXIT_RECOVERY : RG_EXIT_PASS;
}

/* A kill that was asked for excuses no other end. */
static int toy_exit_before_kill(struct rg_worker *worker)
{
    if (!is_victim(worker))
        return RG_EXIT_PASS;
    EXPECT(inject_self(worker, RG_FAULT_KILL, 3600000 * MS, 0) == RG_OK);
    return RG_EXIT_RECOVERY;
}

/* The host is healed also when the worker has ended before. */
static int toy_cut(struct rg_worker *worker)
{
    if (is_victim(worker))
        EXPECT(inject_self(worker, RG_FAULT_CUT, 0, 50 * MS) == RG_OK);
    return RG_EXIT_PASS;
}

static int toy_refused(struct rg_worker *worker)
{
    const int size = rg_worker_job(worker)->size;
    const int other = (rg_worker_job(worker)->rank + 1) % size;

    EXPECT(inject(worker, RG_FAULT_KILL, other, 0, 0) == RG_EINVAL);
    EXPECT(inject(worker, RG_FAULT_REJOIN, size, 0, 0) == RG_EINVAL);
    EXPECT(inject(worker, RG_FAULT_REJOIN, -1, 0, 0) == RG_EINVAL);
    EXPECT(inject_self(worker, RG_FAULT_NONE, 0, 0) == RG_EINVAL);
    EXPECT(inject_self(worker, RG_FAULT_COUNT, 0, 0) == RG_EINVAL);
    EXPECT(inject_self(worker, RG_FAULT_DROP, 0, 0) == RG_OK);
    /* This is no host of scripts/hosts. */
    EXPECT(inject_self(worker, RG_FAULT_CUT, 0, MS) == RG_ENOTSUP);
    EXPECT(inject_self(worker, RG_FAULT_BREAK, 0, 0) == RG_OK);
    return RG_EXIT_PASS;
}

/* Sizes that differ are refused, at all alike. */
static int toy_uneven(struct rg_worker *worker)
{
    char in[16] = {0}, out[256];
    const size_t bytes = is_victim(worker) ? 8 : 4;

    EXPECT(exchange(worker, in, out, bytes) == RG_EINVAL);
    return toy_gather(worker);
}

/* Nothing of the supervisor but input, error and the one socket. */
static int toy_clean(struct rg_worker *worker)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    sigset_t blocked;
    int n = 0;

    (void)worker;
    while ((entry = readdir(folder)))
        n += entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder);
    closedir(folder);
    EXPECT(n == 4);
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    EXPECT(!sigismember(&blocked, SIGUSR1));
    return RG_EXIT_PASS;
}

static const struct toy {
    const char *name;
    toy_run *run;
    int deadline_ms;
} toys[] = {
    {"gather", toy_gather, PLENTY_MS},
    {"kill", toy_kill, PLENTY_MS},
    {"kill_later", toy_kill_later, PLENTY_MS},
    {"kill_in_exchange", toy_kill_in_exchange, PLENTY_MS},
    {"crash", toy_crash, PLENTY_MS},
    {"hang", toy_hang, SHORT_MS},
    {"stop", toy_stop, PLENTY_MS},
    {"stop_for_good", toy_stop_for_good, SHORT_MS},
    {"rejoin", toy_rejoin, PLENTY_MS},
    {"rejoin_by_other", toy_rejoin_by_other, PLENTY_MS},
    {"last_words", toy_last_words, PLENTY_MS},
    {"exit_planned", toy_exit_planned, PLENTY_MS},
    {"exit", toy_exit, PLENTY_MS},
    {"exit_before_kill", toy_exit_before_kill, PLENTY_MS},
    {"refused", toy_refused, PLENTY_MS},
    {"cut", toy_cut, PLENTY_MS},
    {"uneven", toy_uneven, PLENTY_MS},
    {"clean", toy_clean, PLENTY_MS},
};

static const struct toy *find_toy(const char *name)
{
    for (size_t i = 0; i < sizeof toys / sizeof *toys; i++)
        if (strcmp(toys[i].name, name) == 0)
            return &toys[i];
    return NULL;
}

static int be_worker(void)
{
    struct rg_worker *worker;
    const struct toy *toy;
    size_t bytes;
    int code;

    if (rg_worker_open(&worker) != RG_OK)
        return RG_EXIT_ENVIRONMENT;
    toy = find_toy(rg_worker_scenario(worker, &bytes));
    code = toy ? toy->run(worker) : RG_EXIT_USAGE;
    rg_worker_close(worker);
    return code;
}

/* ---- supervisors -------------------------------------------------------- */

struct run {
    const struct toy *toy;
    int times;
    struct rg_supervision results[RANKS]; /* of the last time */
    int failed;                           /* statuses that were not RG_OK */
};

static int supervise(const struct rg_job *job, void *arg)
{
    struct run *run = arg;
    const struct rg_scenario scenario = {.payload = run->toy->name,
                                         .bytes = strlen(run->toy->name) + 1,
                                         .deadline_ms = run->toy->deadline_ms};
    struct rg_supervisor *supervisor;
    struct rg_supervision result = {0};
    int status = rg_supervisor_create(job, &supervisor);
    int code = RG_EXIT_PASS;

    if (status != RG_OK)
        return RG_EXIT_ENVIRONMENT;
    for (int i = 0; i < run->times && status == RG_OK; i++) {
        rg_supervision_fini(&result);
        status = rg_supervisor_run(supervisor, &scenario, &result);
        code = status == RG_OK ? rg_supervision_code(&result)
                               : rg_exit_of_status(status);
    }
    rg_supervisor_destroy(supervisor);
    if (job->kind == RG_LAUNCH_LOCAL)
        run->results[job->rank] = result;
    else
        rg_supervision_fini(&result);
    return code;
}

static void forget(struct run *run)
{
    for (int r = 0; r < RANKS; r++)
        rg_supervision_fini(&run->results[r]);
}

/* All supervisors must know the same. Returns the code. */
static int play(struct run *run, const char *name, int times)
{
    const struct rg_launch_options launch = {RG_LAUNCH_LOCAL, RANKS};
    int code;

    *run = (struct run){.toy = find_toy(name), .times = times};
    code = rg_job_run(&launch, supervise, run);
    for (int s = 0; s < RANKS; s++) {
        assert_int_equal(run->results[s].size, RANKS);
        for (int r = 0; r < RANKS; r++) {
            const struct rg_rank_supervision *one = &run->results[s].ranks[r];
            const struct rg_rank_supervision *first = &run->results[0].ranks[r];

            assert_memory_equal(&one->fate, &first->fate, sizeof one->fate);
            assert_int_equal(one->records.used, first->records.used);
            assert_memory_equal(one->records.data, first->records.data,
                                one->records.used);
        }
    }
    return code;
}

/* The n-th record of a kind, from 0 on; 0 when there are fewer. */
static int find_record(const struct run *run, int rank,
                       enum rg_record_kind kind, int n,
                       struct rg_record *record)
{
    size_t cursor = 0;

    while (rg_supervision_next(&run->results[0], rank, &cursor, record))
        if (record->kind == kind && n-- == 0)
            return 1;
    return 0;
}

/* The fault as it was injected; fails unless there is exactly one. */
static struct rg_injected one_fault(const struct run *run, int action)
{
    struct rg_injected injected = {0};
    struct rg_record record;
    int n = 0;

    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; find_record(run, r, RG_RECORD_FAULT, i, &record); i++) {
            const struct rg_injected *at = record.data;

            if (at->action != action)
                continue;
            injected = *at;
            n++;
        }
    }
    assert_int_equal(n, 1);
    assert_true(injected.asked_ns <= injected.done_ns);
    return injected;
}

static const struct rg_fate *fate(const struct run *run, int rank)
{
    return &run->results[0].ranks[rank].fate;
}

static void expect_killed(const struct run *run)
{
    assert_int_equal(fate(run, VICTIM)->last.signal, SIGKILL);
    assert_int_equal(fate(run, VICTIM)->last.planned, 1);
    assert_int_equal(fate(run, VICTIM)->last.hang, 0);
    one_fault(run, RG_FAULT_KILL);
}

/* ---- tests -------------------------------------------------------------- */

static void workers_exchange_and_report(void **state)
{
    struct rg_record record;
    struct run run;

    (void)state;
    assert_int_equal(play(&run, "gather", 1), RG_EXIT_PASS);
    for (int r = 0; r < RANKS; r++) {
        const struct rg_event *event;

        assert_int_equal(fate(&run, r)->lives, 1);
        assert_int_equal(fate(&run, r)->last.exit_code, 0);
        assert_true(find_record(&run, r, RG_RECORD_REPORT, 0, &record));
        assert_int_equal(record.bytes, sizeof(int));
        assert_int_equal(*(const int *)record.data, r);
        assert_true(find_record(&run, r, RG_RECORD_EVENT, 0, &record));
        event = record.data;
        assert_string_equal(event->name, "gathered");
        assert_int_equal(event->value, 5);
        assert_true(event->time_ns <= record.time_ns);
        assert_true(find_record(&run, r, RG_RECORD_END, 0, &record));
        assert_false(find_record(&run, r, RG_RECORD_FAULT, 0, &record));
    }
    forget(&run);
}

static void differing_sizes_are_refused(void **state)
{
    struct run run;

    (void)state;
    assert_int_equal(play(&run, "uneven", 1), RG_EXIT_PASS);
    forget(&run);
}

static void kills_are_survived_and_counted(void **state)
{
    static const char *const names[] = {"kill", "kill_later",
                                        "kill_in_exchange"};
    struct rg_fault_plan *plan;
    struct run run;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(play(&run, names[i], 1), RG_EXIT_PASS);
        expect_killed(&run);
        assert_int_equal(
            rg_fault_plan_create("at seq 1 rank 1 kill", &plan, NULL), RG_OK);
        rg_supervision_count(&run.results[0], plan);
        assert_int_equal(rg_fault_plan_entry(plan, 0)->injected, 1);
        rg_fault_plan_destroy(plan);
        forget(&run);
    }
    assert_int_equal(play(&run, "kill_later", 1), RG_EXIT_PASS);
    assert_true(one_fault(&run, RG_FAULT_KILL).done_ns -
                    one_fault(&run, RG_FAULT_KILL).asked_ns >=
                50 * MS);
    forget(&run);
}

static void crashes_are_failures(void **state)
{
    struct run run;

    (void)state;
    assert_int_equal(play(&run, "crash", 1), RG_EXIT_RECOVERY);
    assert_int_equal(fate(&run, VICTIM)->last.signal, SIGKILL);
    assert_int_equal(fate(&run, VICTIM)->last.planned, 0);
    assert_int_equal(fate(&run, 0)->code, RG_EXIT_PASS);
    forget(&run);
}

static void hangs_are_ended(void **state)
{
    static const char *const names[] = {"hang", "stop_for_good"};
    struct run run;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(play(&run, names[i], 1), RG_EXIT_TIMEOUT);
        assert_int_equal(fate(&run, VICTIM)->last.hang, 1);
        assert_int_equal(fate(&run, 0)->last.hang, 0);
        forget(&run);
    }
}

static void stopped_workers_go_on(void **state)
{
    struct rg_injected stop;
    const struct rg_event *event;
    struct rg_record record;
    struct run run;

    (void)state;
    assert_int_equal(play(&run, "stop", 1), RG_EXIT_PASS);
    stop = one_fault(&run, RG_FAULT_STOP);
    assert_true(find_record(&run, VICTIM, RG_RECORD_EVENT, 0, &record));
    event = record.data;
    assert_true(event->time_ns <= stop.done_ns);
    assert_true(find_record(&run, VICTIM, RG_RECORD_EVENT, 1, &record));
    event = record.data;
    assert_true(event->time_ns >= stop.done_ns + 100 * MS);
    forget(&run);
}

static void ranks_are_started_anew(void **state)
{
    static const char *const names[] = {"rejoin", "rejoin_by_other"};
    struct rg_injected again;
    struct rg_record record;
    struct run run;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(play(&run, names[i], 1), RG_EXIT_PASS);
        assert_int_equal(fate(&run, VICTIM)->lives, 2);
        assert_int_equal(fate(&run, VICTIM)->last.exit_code, 0);
        assert_int_equal(fate(&run, 0)->lives, 1);
        assert_true(find_record(&run, VICTIM, RG_RECORD_REPORT, 0, &record));
        assert_int_equal(record.life, 1);
        assert_memory_equal(record.data, "again", 5);
        one_fault(&run, RG_FAULT_KILL);
        again = one_fault(&run, RG_FAULT_REJOIN);
        assert_true(again.done_ns - again.asked_ns >= 20 * MS);
        forget(&run);
    }
}

/* By a script that notes what it is asked for. */
static void hosts_are_cut_and_healed(void **state)
{
    char script[] = "/tmp/rg-hosts-XXXXXX", said[80], text[128] = "";
    const int fd = mkstemp(script);
    struct run run;
    FILE *file;

    (void)state;
    assert_true(fd >= 0);
    snprintf(said, sizeof(said), "%s.said", script);
    dprintf(fd, "#!/bin/sh\necho \"$1\" >>%s\n", said);
    fchmod(fd, 0700);
    close(fd);
    setenv("RG_HOSTS_COMMAND", script, 1);
    assert_int_equal(play(&run, "cut", 1), RG_EXIT_PASS);
    unsetenv("RG_HOSTS_COMMAND");
    one_fault(&run, RG_FAULT_CUT);
    file = fopen(said, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, "cut\nheal\n");
    unlink(said);
    unlink(script);
    forget(&run);
}

static void last_words_arrive(void **state)
{
    struct rg_record record;
    struct run run;

    (void)state;
    assert_int_equal(play(&run, "last_words", 1), RG_EXIT_RECOVERY);
    assert_true(find_record(&run, VICTIM, RG_RECORD_REPORT, 0, &record));
    assert_int_equal(record.bytes, BIG);
    assert_int_equal(((const char *)record.data)[BIG - 1], 'x');
    forget(&run);
}

static void exits_are_judged(void **state)
{
    struct run run;

    (void)state;
    assert_int_equal(play(&run, "exit_planned", 1), RG_EXIT_PASS);
    assert_int_equal(fate(&run, VICTIM)->last.exit_code, RG_EXIT_WRONG);
    one_fault(&run, RG_FAULT_EXIT);
    forget(&run);
    assert_int_equal(play(&run, "exit", 1), RG_EXIT_RECOVERY);
    forget(&run);
    assert_int_equal(play(&run, "exit_before_kill", 1), RG_EXIT_RECOVERY);
    forget(&run);
}

static void impossible_faults_are_refused(void **state)
{
    struct run run;

    (void)state;
    assert_int_equal(play(&run, "refused", 1), RG_EXIT_PASS);
    forget(&run);
}

static void workers_are_clean_processes(void **state)
{
    sigset_t some;
    struct run run;
    int fd = dup(STDERR_FILENO); /* what must not be inherited */

    (void)state;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &some, NULL);
    assert_int_equal(play(&run, "clean", 1), RG_EXIT_PASS);
    pthread_sigmask(SIG_UNBLOCK, &some, NULL);
    forget(&run);
    close(fd);
}

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void many_scenarios_leave_nothing(void **state)
{
    const int before = count_descriptors();
    struct run run;

    (void)state;
    assert_int_equal(play(&run, "kill", 50), RG_EXIT_PASS);
    expect_killed(&run);
    forget(&run);
    assert_int_equal(play(&run, "rejoin", 10), RG_EXIT_PASS);
    forget(&run);
    assert_int_equal(count_descriptors(), before);
}

static int run_alone(const char *name)
{
    const struct rg_launch_options launch = {RG_LAUNCH_AUTO, 0};
    struct run run = {.toy = find_toy(name), .times = 3};

    return run.toy ? rg_job_run(&launch, supervise, &run) : RG_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_exchange_and_report),
        cmocka_unit_test(differing_sizes_are_refused),
        cmocka_unit_test(kills_are_survived_and_counted),
        cmocka_unit_test(crashes_are_failures),
        cmocka_unit_test(hangs_are_ended),
        cmocka_unit_test(stopped_workers_go_on),
        cmocka_unit_test(ranks_are_started_anew),
        cmocka_unit_test(hosts_are_cut_and_healed),
        cmocka_unit_test(last_words_arrive),
        cmocka_unit_test(exits_are_judged),
        cmocka_unit_test(impossible_faults_are_refused),
        cmocka_unit_test(workers_are_clean_processes),
        cmocka_unit_test(many_scenarios_leave_nothing),
    };

    if (rg_worker_present())
        return be_worker();
    if (argc > 1)
        return run_alone(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
