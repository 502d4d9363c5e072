/*
 * plant.*: does the suite notice? Rank 0 runs this program again, with ranks
 * as threads and one fault planted, and requires the exit code and the words
 * that belong to it. Everything on the way counts: the case, the exchange of
 * findings, the verdict, the watchdog.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "validate/suite.h"

extern char **environ;

struct plant {
    const char *fault;
    int ranks;            /* 0: as many as there are here */
    const char *deadline; /* setting for the child: of a device wait */
    const char *timeout;  /* -T */
    int exit;
    const char *says; /* must be in the output */
};

static const struct plant plants[] = {
    {"none", 0, "RG_DEADLINE_MS=10000", "60", RG_EXIT_PASS,
     "1 passed, 0 failed"},
    {"flip", 0, "RG_DEADLINE_MS=10000", "60", RG_EXIT_WRONG, "index 8192 of"},
    /* Of two ranks one waits: of more, the first to tell has the others
     * aborted, and who will say what is not settled. */
    {"hang", 2, "RG_DEADLINE_MS=300", "60", RG_EXIT_TIMEOUT, "deadline passed"},
    {"stall", 0, "RG_DEADLINE_MS=60000", "2", RG_EXIT_TIMEOUT, "no progress"},
};

/* The child's one case: 65536 bytes, so the middle element is 8192. */
#define CHILD_CASE "results.all_reduce.auto.f32.sum.64K.out.exact"

/* A copy of the environment with one setting replaced; the caller frees it. */
static char **child_environment(const char *setting)
{
    size_t name = strcspn(setting, "=") + 1;
    size_t n = 0;
    size_t kept = 0;
    char **copy;

    while (environ[n] != NULL)
        n++;
    copy = calloc(n + 2, sizeof(*copy));
    if (copy == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(environ[i], setting, name) != 0)
            copy[kept++] = environ[i];
    }
    copy[kept] = (char *)setting;
    return copy;
}

/* Starts the child with standard output and error into `out`. */
static int spawn(const struct rg_suite *suite, const struct plant *plant,
                 int out, pid_t *child_out)
{
    char ranks[16];
    char *argv[] = {"rg_validate",
                    "--launch",
                    "local",
                    "--ranks",
                    ranks,
                    "--full",
                    "--case",
                    CHILD_CASE,
                    "--plant",
                    (char *)plant->fault,
                    "-T",
                    (char *)plant->timeout,
                    "--device",
                    suite->options->device == RG_DEVICE_CUDA ? "cuda" : "emu",
                    NULL};
    char **environment = child_environment(plant->deadline);
    posix_spawn_file_actions_t actions;
    int error = environment == NULL;

    snprintf(ranks, sizeof(ranks), "%d",
             plant->ranks ? plant->ranks : suite->job->size);
    if (error == 0 && posix_spawn_file_actions_init(&actions) == 0) {
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
        error = posix_spawn(child_out, "/proc/self/exe", &actions, NULL, argv,
                            environment);
        posix_spawn_file_actions_destroy(&actions);
    }
    free(environment);
    return error == 0 ? RG_OK : RG_ESYSTEM;
}

/* All the child says, up to the room; returns when the last writer is gone. */
static void read_all(int fd, char *text, size_t room)
{
    char rest[4096];
    size_t used = 0;
    ssize_t n;

    do {
        if (used < room - 1)
            n = read(fd, text + used, room - 1 - used);
        else
            n = read(fd, rest, sizeof(rest));
        if (n > 0 && used < room - 1)
            used += (size_t)n;
    } while (n > 0);
    text[used] = '\0';
}

static void judge(const struct plant *plant, int wait_status, const char *text,
                  struct rg_case_result *result)
{
    int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;

    if (code != plant->exit)
        rg_case_fail(result, RG_EXIT_WRONG, "exit code %d instead of %d", code,
                     plant->exit);
    else if (strstr(text, plant->says) == NULL)
        rg_case_fail(result, RG_EXIT_WRONG, "output does not say '%s'",
                     plant->says);
    if (result->failed)
        fputs(text, stderr);
}

static void run_child(struct rg_suite *suite, const struct plant *plant,
                      struct rg_case_result *result)
{
    char text[16384];
    int ends[2];
    int wait_status = 0;
    pid_t child;
    int status;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        rg_case_fail(result, RG_EXIT_ENVIRONMENT, "pipe2 failed");
        return;
    }
    status = spawn(suite, plant, ends[1], &child);
    close(ends[1]);
    if (rg_case_expect_ok(result, status, "starting the child") == RG_OK) {
        read_all(ends[0], text, sizeof(text));
        waitpid(child, &wait_status, 0);
        judge(plant, wait_status, text, result);
    }
    close(ends[0]);
}

static void run_plant(struct rg_suite *suite, const struct rg_case *test,
                      struct rg_case_result *result)
{
    const struct plant *plant = &plants[test->param[0]];

    if (suite->job->size < 2) {
        result->skipped = 1;
        snprintf(result->text, sizeof(result->text), "needs two ranks");
    } else if (suite->job->rank == 0) {
        run_child(suite, plant, result);
    }
}

int rg_cases_plant(struct rg_case_list *list,
                   const struct rg_suite_options *options)
{
    int status = RG_OK;

    (void)options;
    for (size_t i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
        struct rg_case test = {.run = run_plant, .param = {(int)i}};

        snprintf(test.name, sizeof(test.name), "plant.%s", plants[i].fault);
        if (status == RG_OK)
            status = rg_case_list_add(list, &test);
    }
    return status;
}
