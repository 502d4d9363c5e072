/*
 * rg_sim: the control plane's machines under a simulated world.
 *
 *   rg_sim [--seeds N] [--seed S] [--ranks N] [--plant NAME] [--verbose]
 *
 * Runs N seeds from S on; a seed that breaks an invariant prints the command
 * that replays it. With a planted bug a run passes when it finds the bug, and
 * the first seed that does ends it.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/sim/world.h"

enum { EXIT_WRONG = 6, EXIT_USAGE = 2, VERDICT_BYTES = 256 };

struct request {
    struct sim_options run;
    uint64_t seeds;
};

static const char usage[] =
    "usage: rg_sim [--seeds N] [--seed S] [--ranks N] [--plant NAME] "
    "[--verbose]\n"
    "  --seeds N     runs, 1 by default\n"
    "  --seed S      seed of the first, 1 by default\n"
    "  --ranks N     processes of a run, 16 by default, 2 to 65536\n"
    "  --plant NAME  a bug to be found: stale-epoch, no-quorum, other-rules,\n"
    "                commit-max, no-first-seq, local-claim,\n"
    "                reuse-workspace, pair-sent\n"
    "  --verbose     tells what happens on standard error\n";

/* A whole number in the range, or a message and 0. */
static int parse_number(const char *option, const char *text, uint64_t low,
                        uint64_t high, uint64_t *value_out)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || value < low || value > high) {
        fprintf(stderr,
                "rg_sim: --%s %s: not a number from %" PRIu64 " to %" PRIu64
                "\n",
                option, text, low, high);
        return 0;
    }
    *value_out = value;
    return 1;
}

static int parse_option(int option, const char *text, struct request *request)
{
    uint64_t value;

    switch (option) {
    case 'n':
        return parse_number("seeds", text, 1, 1u << 30, &request->seeds);
    case 's':
        return parse_number("seed", text, 0, UINT64_MAX, &request->run.seed);
    case 'r':
        if (!parse_number("ranks", text, 2, RG_CAPACITY_MAX, &value))
            return 0;
        request->run.ranks = (int)value;
        return 1;
    case 'p':
        request->run.plant = sim_plant_find(text);
        if (request->run.plant != SIM_PLANT_COUNT)
            return 1;
        fprintf(stderr, "rg_sim: --plant %s: no such bug\n", text);
        return 0;
    case 'v':
        request->run.is_verbose = 1;
        return 1;
    default:
        return 0;
    }
}

/* 0, or the exit code to end with, plus 1. */
static int parse(int argc, char **argv, struct request *request)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"ranks", required_argument, NULL, 'r'},
        {"plant", required_argument, NULL, 'p'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 'h') {
            fputs(usage, stdout);
            return EXIT_SUCCESS + 1;
        }
        if (!parse_option(option, optarg, request))
            return EXIT_USAGE + 1; /* said why */
    }
    if (optind < argc) {
        fprintf(stderr, "rg_sim: unexpected argument '%s'\n", argv[optind]);
        return EXIT_USAGE + 1;
    }
    return 0;
}

static void add(struct sim_counts *sum, const struct sim_counts *counts)
{
    sum->events += counts->events;
    sum->views += counts->views;
    sum->crashes += counts->crashes;
    sum->isolated += counts->isolated;
    sum->rejoined += counts->rejoined;
    sum->elected += counts->elected;
    sum->starved += counts->starved;
    sum->ends_active += counts->ends_active > 0;
}

static void print_replay(const struct sim_options *run, const char *verdict)
{
    printf("# seed %" PRIu64 ": %s\n", run->seed, verdict);
    printf("# replay: rg_sim --ranks %d --seed %" PRIu64, run->ranks,
           run->seed);
    if (run->plant)
        printf(" --plant %s", sim_plant_name(run->plant));
    printf(" --verbose\n");
    fflush(stdout);
}

/* Returns the number of seeds that broke something. */
static uint64_t run_all(const struct request *request, struct sim_counts *sum,
                        uint64_t *runs_out)
{
    struct sim_options run = request->run;
    char verdict[VERDICT_BYTES];
    uint64_t broken = 0;
    uint64_t runs = 0;

    while (runs < request->seeds && !(run.plant && broken)) {
        struct sim_counts counts;

        if (sim_world_run(&run, &counts, verdict, sizeof(verdict))) {
            print_replay(&run, verdict);
            broken++;
        }
        add(sum, &counts);
        runs++;
        run.seed++;
    }
    *runs_out = runs;
    return broken;
}

int main(int argc, char **argv)
{
    struct request request = {.run = {.ranks = 16, .seed = 1}, .seeds = 1};
    struct sim_counts sum = {0};
    uint64_t broken;
    uint64_t runs;
    int ends = parse(argc, argv, &request);

    if (ends)
        return ends - 1;
    broken = run_all(&request, &sum, &runs);
    printf("# %" PRIu64 " runs of %d ranks: %" PRIu64 " events, %" PRIu64
           " views, %" PRIu64 " by another coordinator, %" PRIu64
           " kills, %" PRIu64 " isolated, %" PRIu64 " rejoined, %" PRIu64
           " without workspace, %d ended with a group\n",
           runs, request.run.ranks, sum.events, sum.views, sum.elected,
           sum.crashes, sum.isolated, sum.rejoined, sum.starved,
           sum.ends_active);
    if (request.run.plant) {
        printf("%d passed, %d failed, 0 skipped\n", broken > 0, !broken);
        return broken ? EXIT_SUCCESS : EXIT_WRONG;
    }
    printf("%" PRIu64 " passed, %" PRIu64 " failed, 0 skipped\n", runs - broken,
           broken);
    return broken ? EXIT_WRONG : EXIT_SUCCESS;
}
