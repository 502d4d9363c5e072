#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/wait.h"
#include "validate/recovery_member.h"

/* A thread that was joined may still be counted for a moment. */
enum { SETTLE_MS = 1000 };

/* Entries of a folder, without the descriptor that reading it takes. */
static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    int n = 0;

    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(folder);
    return n - 1;
}

static int is_ours(const char *task)
{
    char path[64], name[32] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", task);
    file = fopen(path, "r");
    if (file != NULL && fgets(name, sizeof(name), file) == NULL)
        name[0] = '\0';
    if (file != NULL)
        fclose(file);
    return strncmp(name, "rg-", 3) == 0;
}

/* Threads of the runtime, by their names: others come and go as they like. */
static int count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int n = 0;

    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        n += entry->d_name[0] != '.' && is_ours(entry->d_name);
    closedir(folder);
    return n;
}

static int is_shared_memory(const char *line)
{
    return strstr(line, "/memfd:") != NULL || strstr(line, "/dev/shm/") != NULL;
}

static int count_shared(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        n += is_shared_memory(line);
    if (file != NULL)
        fclose(file);
    return n;
}

static int read_rss_kb(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    int kb = 0;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "VmRSS:", 6) == 0)
            kb = atoi(line + 6);
    if (file != NULL)
        fclose(file);
    return kb;
}

void rg_census_settle(const struct rg_census *before,
                      struct rg_census *census_out)
{
    const uint64_t deadline_ns = rg_now_ns() + SETTLE_MS * UINT64_C(1000000);

    do {
        rg_census_take(census_out);
    } while ((census_out->threads > before->threads ||
              census_out->descriptors > before->descriptors) &&
             rg_now_ns() < deadline_ns && sched_yield() == 0);
}

void rg_census_take(struct rg_census *census_out)
{
    *census_out = (struct rg_census){
        .threads = count_threads(),
        .descriptors = count_entries("/proc/self/fd"),
        .shared = count_shared(),
        .rss_kb = read_rss_kb(),
    };
}
