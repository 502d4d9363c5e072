/* The tuner's decisions on made-up figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/tune_choose.h"
#include "bench/tune_raw.h"
#include "bench/tune_search.h"
#include "bench/tune_space.h"
#include "bench/tune_stats.h"
#include "runtime/status.h"

/* ---- ranks -------------------------------------------------------------- */

static void assert_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9))
        fail_msg("%.12g instead of %.12g", value, wanted);
}

/* Shares of the splits of a pooled sample, counted by hand. */
static void ranks_exactly(void **state)
{
    const double low[] = {1, 2, 3}, high[] = {4, 5, 6}, mixed[] = {1, 2, 5};
    const double rest[] = {3, 4, 6};

    (void)state;
    assert_near(tune_rank_p(low, 3, high, 3), 1.0 / 20);
    assert_near(tune_rank_p(high, 3, low, 3), 1);
    /* Sums up to 8 of {1..6} taken three at a time: 123, 124, 125, 134. */
    assert_near(tune_rank_p(mixed, 3, rest, 3), 4.0 / 20);
    assert_near(tune_rank_p(low, 1, high, 3), 1.0 / 4);
    assert_near(tune_rank_p(low, 0, high, 3), 1);
}

/* Pooled 1 2 2 3, ranks 1 2.5 2.5 4: sums up to 3.5 in 2 of 6 splits. */
static void ranks_ties(void **state)
{
    const double x[] = {1, 2}, y[] = {2, 3}, same[] = {7, 7, 7};

    (void)state;
    assert_near(tune_rank_p(x, 2, y, 2), 2.0 / 6);
    assert_near(tune_rank_p(same, 3, same, 3), 1);
}

/* At the border the approximation agrees with the count. */
static void approximates_what_it_does_not_count(void **state)
{
    double x[21], y[21], exact, normal;

    (void)state;
    for (int i = 0; i < 21; i++) {
        x[i] = 10 * i;
        y[i] = 10 * i + 35;
    }
    exact = tune_rank_p(x, 20, y, 20);
    normal = tune_rank_p(x, 21, y, 20);
    assert_true(exact > 0.01 && exact < 0.5);
    assert_true(fabs(exact - normal) < 0.05);
    for (int i = 0; i < 21; i++)
        x[i] = y[i] = 4;
    assert_near(tune_rank_p(x, 21, y, 21), 1);
}

static void counts_what_is_sure_and_large(void **state)
{
    const double x[] = {100, 101, 102}, close[] = {101.5, 102.5, 103};
    const double small[] = {102.1, 102.5, 102.9}, large[] = {104, 105, 106};
    const double outlier[] = {10, 101, 500};

    (void)state;
    assert_true(tune_faster(x, 3, large, 3));
    assert_false(tune_faster(large, 3, x, 3));
    assert_false(tune_faster(x, 3, close, 3));       /* not sure */
    assert_false(tune_faster(x, 3, small, 3));       /* sure, but below 2 % */
    assert_false(tune_faster(outlier, 3, large, 3)); /* one says otherwise */
    assert_false(tune_faster(x, 2, large, 2));       /* too few to be sure */
    assert_false(tune_faster(x, 0, large, 3));
}

static void summarises_launches(void **state)
{
    const double us[] = {30, 10, 20, 900};

    (void)state;
    assert_near(tune_median(us, 3), 20);
    assert_near(tune_median(us, 4), 25);
    assert_true(isnan(tune_median(us, 0)));
    assert_near(tune_noise(us, 3), 1);
    assert_true(isnan(tune_noise(us, 1)));
}

/* ---- costs -------------------------------------------------------------- */

static void costs_what_counts(void **state)
{
    const double a[] = {100, 101, 102}, b[] = {200, 202, 204};
    const double like_a[] = {100.5, 101.5, 102};
    const struct tune_cell cells[] = {{b, 3, NAN},      {a, 3, NAN},
                                      {like_a, 3, NAN}, {NULL, 0, 404},
                                      {NULL, 0, NAN},   {NULL, 0, 50}};
    double cost[6];

    (void)state;
    tune_costs(cells, 6, cost);
    assert_near(cost[0], log(2));
    assert_true(cost[1] == 0);
    assert_true(cost[2] > 0 && cost[2] < 1e-6); /* a tie */
    assert_near(cost[3], log(4));
    assert_true(isinf(cost[4]));
    /* A lucky guess is no measurement. */
    assert_near(cost[5], TUNE_EFFECT);
}

/* ---- choice ------------------------------------------------------------- */

static void assert_choice(int sizes, int candidates, const double *cost,
                          const char *wanted)
{
    int choice[16];

    assert_int_equal(tune_choose(sizes, candidates, cost, TUNE_SWITCH, choice),
                     RG_OK);
    for (int s = 0; s < sizes; s++)
        assert_int_equal(choice[s], wanted[s] - 'a');
}

static void switches_where_it_pays(void **state)
{
    const double cost[] = {0, 1, 0, .5, 0, .1, .1, 0, .5, 0, 1, 0};

    (void)state;
    assert_choice(6, 2, cost, "aaabbb");
}

/* b wins one size by 3 %, which two switches would use up. */
static void does_not_flip_flop(void **state)
{
    const double flip[] = {0, .5, 0, .5, .03, 0, 0, .5, 0, .5};
    const double worth[] = {0, .5, 0, .5, .05, 0, 0, .5, 0, .5};

    (void)state;
    assert_choice(5, 2, flip, "aaaaa");
    assert_choice(5, 2, worth, "aabaa");
}

static void ties_stay_with_the_neighbour(void **state)
{
    const double tie[] = {.5, 0, .5, 0, 0, 1e-9, 1e-9, 0, 0, .5};
    const double all[] = {0, 0, 0, 0};

    (void)state;
    assert_choice(5, 2, tie, "bbbba");
    assert_choice(2, 2, all, "aa");
}

static void avoids_what_cannot_run(void **state)
{
    const double cost[] = {0, 2, 0, 2, INFINITY, 2, INFINITY, 2};
    const double none[] = {0, 1, INFINITY, INFINITY};
    int choice[2];

    (void)state;
    assert_choice(4, 2, cost, "aabb");
    assert_int_equal(tune_choose(2, 2, none, TUNE_SWITCH, choice), RG_EINVAL);
}

/* ---- crossovers --------------------------------------------------------- */

static struct tune_bisect bisected(uint64_t low, uint64_t high, uint64_t grain,
                                   uint64_t from, int *steps_out)
{
    struct tune_bisect bisect = {low, high, grain};
    uint64_t bytes;

    for (*steps_out = 0; (bytes = tune_bisect_next(&bisect)); ++*steps_out) {
        assert_true(bytes > bisect.low && bytes < bisect.high);
        assert_int_equal(bytes % grain, 0);
        tune_bisect_take(&bisect, bytes, bytes >= from);
    }
    return bisect;
}

static void finds_crossovers(void **state)
{
    struct tune_bisect found;
    int steps;

    (void)state;
    found = bisected(65536, 131072, 16, 100000, &steps);
    assert_true(found.low < 100000 && found.high >= 100000);
    assert_true((double)found.high / (double)found.low < 1.1);
    assert_int_equal(steps, 3);
    found = bisected(8, 16, 4, 16, &steps);
    assert_int_equal(found.high, 16);
    found = bisected(0, 8, 4, 4, &steps);
    assert_int_equal(found.high, 4);
    found = bisected(64, 68, 4, 64, &steps);
    assert_int_equal(steps, 0);
}

/* ---- what there is to choose from -------------------------------------- */

static const struct rg_algo ring = {.name = "ring"};
static const struct rg_algo packets = {.name = "oneshot_ll"};

static const struct tune_candidate *named(const struct tune_space *space,
                                          const char *name)
{
    for (int i = 0; i < space->n; i++)
        if (strcmp(space->list[i].name, name) == 0)
            return &space->list[i];
    return NULL;
}

static void lists_candidates(void **state)
{
    const struct tune_base bases[] = {{&packets, 4096, 0},
                                      {&ring, UINT64_MAX, 100 << 10}};
    struct tune_space space;

    (void)state;
    assert_int_equal(tune_space_init(&space, bases, 2, 4), RG_OK);
    /* channels -, 1, 2, 4; ring's also with chunks of 16K and 64K */
    assert_int_equal(space.n, 4 + 4 * 3);
    assert_string_equal(space.list[0].name, "oneshot_ll");
    assert_string_equal(space.list[1].name, "ring");
    assert_non_null(named(&space, "ring+4ch+64K"));
    assert_null(named(&space, "ring+256K"));
    assert_null(named(&space, "oneshot_ll+16K"));
    assert_true(tune_candidate_fits(&space.list[0], 4096));
    assert_false(tune_candidate_fits(&space.list[0], 4097));
    assert_false(tune_candidate_fits(named(&space, "ring+4ch"), 4095));
    assert_true(tune_candidate_fits(named(&space, "ring+4ch"), 4096));
    assert_false(tune_candidate_fits(named(&space, "ring+16K"), 16383));
    assert_true(tune_candidate_fits(named(&space, "ring+16K"), 16384));
    tune_space_fini(&space);
}

static void sizes_cover_the_range(void **state)
{
    uint64_t grid[TUNE_SIZES_MAX], held[20];
    int n;

    (void)state;
    assert_int_equal(tune_grid(8, 64, grid), 4);
    assert_true(grid[0] == 8 && grid[3] == 64);
    assert_int_equal(tune_grid(8, 100, grid), 5);
    assert_true(grid[3] == 64 && grid[4] == 100);
    assert_int_equal(tune_grid(8, 8, grid), 1);
    n = tune_held_out(8, 64 << 20, 4, 1, 20, held);
    assert_int_equal(n, 20);
    for (int i = 0; i < n; i++) {
        assert_true(held[i] > 8 && held[i] < 64 << 20);
        assert_int_equal(held[i] % 4, 0);
        assert_true((held[i] & (held[i] - 1)) != 0);
        assert_true(i == 0 || held[i] > held[i - 1]);
    }
    /* 12, 20, 24, 28 are all there is. */
    assert_int_equal(tune_held_out(8, 32, 4, 7, 20, held), 4);
}

static void order_follows_the_seed(void **state)
{
    int a[50], b[50], c[50], seen[50] = {0}, moved = 0;

    (void)state;
    for (int i = 0; i < 50; i++)
        a[i] = b[i] = c[i] = i;
    tune_shuffle(a, 50, 3);
    tune_shuffle(b, 50, 3);
    tune_shuffle(c, 50, 4);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
    for (int i = 0; i < 50; i++) {
        seen[a[i]]++;
        moved += a[i] != i;
    }
    for (int i = 0; i < 50; i++)
        assert_int_equal(seen[i], 1);
    assert_true(moved > 30);
}

/* ---- raw measurements --------------------------------------------------- */

static int open_raw(const char *path, const char *config,
                    enum tune_raw_mode mode, struct tune_raw **raw_out)
{
    char text[256];
    const int status = tune_raw_open(
        path, json_pack("{s:s,s:s}", "kind", "tune", "config", config), mode,
        raw_out, text, sizeof text);

    assert_true((status == RG_OK) == (text[0] == '\0'));
    return status;
}

static void add_raw(struct tune_raw *raw, int launch, double us)
{
    const struct tune_sample sample = {TUNE_SWEEP, launch, 64, "ring",
                                       us,         us,     10};

    assert_int_equal(tune_raw_add(raw, &sample), RG_OK);
}

static void end_raw(struct tune_raw *raw, double budget_s)
{
    assert_int_equal(tune_raw_result(raw, json_pack("{s:s}", "kind", "choice")),
                     RG_OK);
    assert_int_equal(
        tune_raw_result(
            raw, json_pack("{s:s,s:f}", "kind", "tuned", "budget_s", budget_s)),
        RG_OK);
}

/* A file of three launches, the last one cut off in its line. */
static void write_interrupted(const char *path)
{
    struct tune_raw *raw;
    long end;
    FILE *file;

    assert_int_equal(open_raw(path, "one", TUNE_RAW_NEW, &raw), RG_OK);
    for (int launch = 1; launch <= 3; launch++)
        add_raw(raw, launch, launch + 0.1);
    tune_raw_close(raw);
    file = fopen(path, "r+");
    fseek(file, 0, SEEK_END);
    end = ftell(file);
    assert_int_equal(ftruncate(fileno(file), end - 9), 0);
    fclose(file);
}

static void goes_on_where_it_was_cut(void **state)
{
    char path[] = "/tmp/rg-tune-XXXXXX";
    struct tune_raw *raw;
    double us[8];
    uint64_t hash;

    (void)state;
    close(mkstemp(path));
    write_interrupted(path);
    assert_int_equal(open_raw(path, "one", TUNE_RAW_GO_ON, &raw), RG_OK);
    assert_int_equal(tune_raw_resumed(raw), 2);
    assert_non_null(tune_raw_find(raw, TUNE_SWEEP, 2, 64, "ring"));
    assert_null(tune_raw_find(raw, TUNE_SWEEP, 3, 64, "ring"));
    assert_null(tune_raw_find(raw, TUNE_BISECT, 2, 64, "ring"));
    add_raw(raw, 3, 3.1);
    hash = tune_raw_hash(raw);
    end_raw(raw, 2.5);
    tune_raw_close(raw);

    /* A whole one is only gone on from when that is asked for. */
    assert_int_equal(open_raw(path, "one", TUNE_RAW_RESUME, &raw), RG_OK);
    assert_int_equal(tune_raw_medians(raw, TUNE_SWEEP, 64, "ring", us, 8), 3);
    assert_true(us[0] == 1.1 && us[2] == 3.1);
    assert_true(tune_raw_hash(raw) == hash);
    assert_near(tune_raw_budget_s(raw), 2.5);
    end_raw(raw, 3);
    tune_raw_close(raw);
    assert_int_equal(open_raw(path, "one", TUNE_RAW_GO_ON, &raw), RG_OK);
    assert_int_equal(tune_raw_count(raw), 0);
    assert_near(tune_raw_budget_s(raw), 0);
    tune_raw_close(raw);
    unlink(path);
}

/* Cut off among its results, it is not whole, and they are made again. */
static void goes_on_among_its_results(void **state)
{
    char path[] = "/tmp/rg-tune-XXXXXX";
    struct tune_raw *raw;

    (void)state;
    close(mkstemp(path));
    assert_int_equal(open_raw(path, "one", TUNE_RAW_NEW, &raw), RG_OK);
    add_raw(raw, 1, 1.1);
    tune_raw_result(raw, json_pack("{s:s}", "kind", "choice"));
    tune_raw_close(raw);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_raw(path, "one", TUNE_RAW_GO_ON, &raw), RG_OK);
        assert_int_equal(tune_raw_resumed(raw), 1 + i);
        assert_near(tune_raw_budget_s(raw), 0);
        add_raw(raw, 2 + i, 2.1);
        tune_raw_close(raw);
    }
    unlink(path);
}

static void remembers_what_it_writes(void **state)
{
    char path[] = "/tmp/rg-tune-XXXXXX";
    struct tune_raw *raw;
    double kept, read;

    (void)state;
    close(mkstemp(path));
    assert_int_equal(open_raw(path, "one", TUNE_RAW_NEW, &raw), RG_OK);
    add_raw(raw, 1, 1000.0 / 3);
    kept = tune_raw_find(raw, TUNE_SWEEP, 1, 64, "ring")->p50_us;
    assert_near(kept / (1000.0 / 3), 1);
    tune_raw_close(raw);
    assert_int_equal(open_raw(path, "one", TUNE_RAW_GO_ON, &raw), RG_OK);
    read = tune_raw_find(raw, TUNE_SWEEP, 1, 64, "ring")->p50_us;
    assert_true(read == kept);
    tune_raw_close(raw);
    unlink(path);
}

static void keeps_configurations_apart(void **state)
{
    char path[] = "/tmp/rg-tune-XXXXXX";
    struct tune_raw *raw;

    (void)state;
    close(mkstemp(path));
    write_interrupted(path);
    assert_int_equal(open_raw(path, "two", TUNE_RAW_RESUME, &raw), RG_EINVAL);
    assert_int_equal(open_raw(path, "two", TUNE_RAW_GO_ON, &raw), RG_OK);
    assert_int_equal(tune_raw_resumed(raw), 0);
    tune_raw_close(raw);
    unlink(path);
    assert_int_equal(open_raw(path, "two", TUNE_RAW_RESUME, &raw), RG_EINVAL);
    assert_int_equal(open_raw("/nowhere/x", "two", TUNE_RAW_NEW, &raw),
                     RG_EINVAL);
}

/* ---- a tuning of made-up figures ---------------------------------------- */

/* A world where time follows from size: start-up, and time a byte. */
struct world {
    struct tune_space space;
    double start_us[3], byte_us[3]; /* of each base */
    double noise;
    uint64_t state; /* of chance */
    double now_s;
    int cases, fresh;
    int stop_at; /* the case that fails, 0: none */
    double
        late_us; /* the ring's start-up is longer once bounds are confirmed */
    int alike;   /* channels make no difference */
    int samples; /* measured */
};

static double world_us(const struct world *world, int candidate, uint64_t bytes)
{
    const struct tune_candidate *c = &world->space.list[candidate];
    double us = world->start_us[c->base] + world->byte_us[c->base] * bytes;

    /* Two channels are best, for what is large. */
    if (c->channels && !world->alike)
        us += c->channels +
              bytes * world->byte_us[c->base] * (c->channels == 2 ? -0.3 : 0.1);
    return us;
}

static int world_measure(void *arg, const struct tune_order *order,
                         struct tune_figure *figures_out)
{
    struct world *world = arg;

    world->cases++;
    world->fresh += order->fresh;
    if (world->cases == world->stop_at)
        return RG_EABORTED;
    for (int i = 0; i < order->n; i++) {
        const double chance =
            (double)(tune_random(&world->state) >> 11) * 0x1p-53;
        const double us = world_us(world, order->candidates[i], order->bytes) *
                          (1 + world->noise * (2 * chance - 1));

        figures_out[i] = (struct tune_figure){us, us, 10};
        world->now_s += fmax(10 * us, order->max_us) * 1e-6 + 1e-4;
        world->samples++;
    }
    return RG_OK;
}

static double world_clock(void *arg)
{
    return ((struct world *)arg)->now_s;
}

static void world_progress(void *arg, const char *text)
{
    struct world *world = arg;

    if (strncmp(text, "confirm", 7) == 0) {
        world->start_us[2] += world->late_us;
        world->late_us = 0;
    }
}

static int search_world(struct world *world, const struct tune_config *config,
                        struct tune_raw *raw, struct tune_result *result)
{
    const struct tune_meter meter = {world_measure, world_clock, world_progress,
                                     world};

    return tune_search(config, &world->space, &meter, raw, result);
}

/* Packets up to 64 KiB for what is small, a ring for the rest, and one that is
 * never best. They meet where 2 + b / 100 = 12 + b / 1000 of two channels. */
static void init_world(struct world *world)
{
    static const struct rg_algo poor = {.name = "poor"};
    const struct tune_base bases[] = {{&packets, 64 << 10, 0},
                                      {&poor, UINT64_MAX, 0},
                                      {&ring, UINT64_MAX, 64 << 10}};

    *world = (struct world){.start_us = {2, 20, 12},
                            .byte_us = {0.01, 0.01, 0.001},
                            .noise = 0.005,
                            .state = 1};
    assert_int_equal(tune_space_init(&world->space, bases, 3, 4), RG_OK);
}

static struct tune_config world_config(void)
{
    return (struct tune_config){.min_bytes = 8,
                                .max_bytes = 1 << 20,
                                .grain = 4,
                                .launches = 3,
                                .seed = 1,
                                .budget_s = 60,
                                .held_out = 20,
                                .max_rows = 16};
}

/* Without a file; the measurements, for end_world(). */
static struct tune_raw *search_anew(struct world *world,
                                    const struct tune_config *config,
                                    int status, struct tune_result *result_out)
{
    struct tune_raw *raw;

    assert_int_equal(open_raw(NULL, "", TUNE_RAW_NEW, &raw), RG_OK);
    assert_int_equal(search_world(world, config, raw, result_out), status);
    return raw;
}

static void end_world(struct world *world, struct tune_raw *raw)
{
    tune_raw_close(raw);
    tune_space_fini(&world->space);
}

static const char *chosen_at(const struct world *world,
                             const struct tune_result *result, uint64_t bytes)
{
    return world->space.list[tune_result_candidate(result, bytes)].name;
}

static void finds_what_is_best(void **state)
{
    const struct tune_config config = world_config();
    struct tune_result result;
    struct tune_raw *raw;
    struct world world;

    (void)state;
    init_world(&world);
    raw = search_anew(&world, &config, RG_OK, &result);
    assert_string_equal(chosen_at(&world, &result, 0), "oneshot_ll");
    assert_string_equal(chosen_at(&world, &result, 1000), "oneshot_ll");
    assert_string_equal(chosen_at(&world, &result, 1 << 20), "ring+2ch");
    assert_string_equal(chosen_at(&world, &result, UINT64_MAX), "ring+2ch");
    /* From packets to the ring at 1111 bytes. */
    assert_true(result.crossovers[0].low < 1250);
    assert_true(result.crossovers[0].high > 1111 - 1111 / 8 &&
                result.crossovers[0].high < 1111 + 1111 / 4);
    for (int k = 0; k < result.ncrossovers; k++)
        assert_int_equal(result.crossovers[k].confirmed, 1);
    assert_true(result.nheld >= 20);
    assert_true(result.regret_p50 < 1.02 && result.regret_max < 1.1);
    assert_true(result.left_out == 0 && result.unlaunched == 0);
    for (int i = 0; i < result.npoints; i++)
        assert_int_equal(result.points[i].launches, 3);
    assert_true(world.fresh >= 1 + 3 + 3 + 3);
    end_world(&world, raw);
}

/* Many variants of one algorithm are near each other; the other one that is
 * nearly as good is swept all the same. */
static void variants_crowd_nobody_out(void **state)
{
    struct tune_config config = world_config();
    struct tune_result result;
    struct tune_raw *raw;
    struct world world;
    double us[8];

    (void)state;
    init_world(&world);
    world.start_us[1] = 40; /* behind all variants of the ring */
    world.byte_us[1] = 0.00105;
    config.budget_s = 1.2; /* enough for two candidates at a size */
    raw = search_anew(&world, &config, RG_OK, &result);
    assert_int_equal(
        tune_raw_medians(raw, TUNE_SWEEP, 1 << 20, "ring+2ch", us, 8), 3);
    assert_true(
        tune_raw_medians(raw, TUNE_SWEEP, 1 << 20, "poor", us, 8) +
            tune_raw_medians(raw, TUNE_SWEEP, 1 << 20, "poor+2ch", us, 8) >
        0);
    end_world(&world, raw);
}

/* Channels that make no difference, and some noise: nothing but chance tells
 * them apart, and the device's own are used. */
static void chance_chooses_no_channels(void **state)
{
    struct tune_config config = world_config();
    struct tune_result result;
    struct tune_raw *raw;
    struct world world;

    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        init_world(&world);
        world.alike = 1;
        world.noise = 0.02;
        world.state = config.seed = seed;
        raw = search_anew(&world, &config, RG_OK, &result);
        for (int k = 0; k < result.nsegments; k++)
            assert_true(result.segments[k].candidate < world.space.nbases);
        end_world(&world, raw);
    }
}

/* What new launches contradict goes back to the grid, and says so. */
static void doubts_what_is_not_confirmed(void **state)
{
    const struct tune_config config = world_config();
    struct tune_result result;
    struct tune_raw *raw;
    struct world world;

    (void)state;
    init_world(&world);
    world.late_us = 100;
    raw = search_anew(&world, &config, RG_OK, &result);
    assert_int_equal(result.crossovers[0].confirmed, 0);
    assert_int_equal(result.crossovers[0].high, 2048);
    end_world(&world, raw);
}

/* Best as far as its workspace goes, which is no size that was measured. */
static void a_limit_is_a_bound(void **state)
{
    const struct tune_config config = world_config();
    struct tune_result result;
    struct tune_raw *raw;
    struct world world;

    (void)state;
    init_world(&world);
    world.byte_us[0] = 1e-5;
    raw = search_anew(&world, &config, RG_OK, &result);
    assert_string_equal(chosen_at(&world, &result, 64 << 10), "oneshot_ll");
    assert_string_equal(chosen_at(&world, &result, (64 << 10) + 1), "ring+2ch");
    end_world(&world, raw);
}

/* What only the limit of the last choice's workspace ends. */
static void the_tail_serves_any_size(void **state)
{
    struct tune_config config = world_config();
    struct tune_result result;
    struct tune_raw *raw;
    struct world world;

    (void)state;
    init_world(&world);
    config.max_bytes = 512;
    raw = search_anew(&world, &config, RG_OK, &result);
    assert_string_equal(chosen_at(&world, &result, 65536), "oneshot_ll");
    assert_string_equal(chosen_at(&world, &result, 65537), "ring");
    end_world(&world, raw);
}

static void keeps_to_the_budget(void **state)
{
    const double budgets[] = {1, 0.1, 0.02};
    struct tune_config config = world_config();
    struct tune_result result;
    struct tune_raw *raw;
    struct world world;

    (void)state;
    for (int i = 0; i < 3; i++) {
        init_world(&world);
        config.budget_s = budgets[i];
        raw = search_anew(&world, &config, RG_OK, &result);
        assert_true(result.spent_s <= 1.1 * budgets[i]);
        assert_true(i < 2 || result.left_out > 0);
        end_world(&world, raw);
    }
}

static void a_budget_for_nothing_is_refused(void **state)
{
    struct tune_config config = world_config();
    struct tune_result result;
    struct tune_raw *raw;
    struct world world;

    (void)state;
    init_world(&world);
    config.budget_s = 0.001;
    raw = search_anew(&world, &config, RG_ETIMEDOUT, &result);
    assert_true(result.left_out > 0);
    end_world(&world, raw);
}

/* Cut short at some case and gone on with, it ends where it would have. */
static void a_tuning_goes_on(void **state)
{
    struct tune_config config = world_config();
    struct tune_result whole, result;
    char path[] = "/tmp/rg-tune-XXXXXX";
    struct tune_raw *raw;
    struct world world;
    int samples;

    (void)state;
    close(mkstemp(path));
    init_world(&world);
    config.budget_s = 1e5; /* so that nothing depends on the clock */
    world.noise = 0;
    assert_int_equal(open_raw(NULL, "", TUNE_RAW_NEW, &raw), RG_OK);
    assert_int_equal(search_world(&world, &config, raw, &whole), RG_OK);
    samples = tune_raw_count(raw);
    tune_raw_close(raw);

    world.now_s = 0;
    world.cases = 0;
    world.stop_at = 60;
    assert_int_equal(open_raw(path, "a", TUNE_RAW_GO_ON, &raw), RG_OK);
    assert_int_equal(search_world(&world, &config, raw, &result), RG_EABORTED);
    tune_raw_close(raw);
    world.now_s = 0;
    world.stop_at = 0;
    world.samples = 0;
    assert_int_equal(open_raw(path, "a", TUNE_RAW_GO_ON, &raw), RG_OK);
    assert_true(tune_raw_resumed(raw) > 0);
    assert_int_equal(search_world(&world, &config, raw, &result), RG_OK);
    assert_int_equal(world.samples + tune_raw_resumed(raw), samples);
    assert_int_equal(result.nsegments, whole.nsegments);
    assert_memory_equal(result.segments, whole.segments,
                        sizeof *whole.segments * (size_t)whole.nsegments);
    end_world(&world, raw);
    unlink(path);
}

static int open_path(const char *path, enum tune_raw_mode mode,
                     struct tune_raw **raw_out)
{
    return open_raw(path, "a", mode, raw_out);
}

/* A tuning of a noisy world, whose results close the file. */
static void tune_world(struct world *world, const char *path,
                       enum tune_raw_mode mode,
                       const struct tune_config *config,
                       struct tune_result *result_out)
{
    struct tune_raw *raw;

    world->now_s = 0;
    world->samples = 0;
    assert_int_equal(open_path(path, mode, &raw), RG_OK);
    assert_int_equal(search_world(world, config, raw, result_out), RG_OK);
    end_raw(raw, config->budget_s);
    tune_raw_close(raw);
}

static void assert_same(const struct tune_result *a,
                        const struct tune_result *b)
{
    assert_int_equal(a->nsegments, b->nsegments);
    for (int k = 0; k < a->nsegments; k++) {
        assert_int_equal(a->segments[k].from, b->segments[k].from);
        assert_int_equal(a->segments[k].candidate, b->segments[k].candidate);
    }
    assert_int_equal(a->npoints, b->npoints);
    assert_int_equal(a->nheld, b->nheld);
    assert_int_equal(a->left_out, b->left_out);
    assert_int_equal(a->unlaunched, b->unlaunched);
}

/* One that is cut short in a large budget, and ends in a small one. */
static void cut_short(struct world *world, const char *path,
                      const struct tune_config *config, int cases)
{
    struct tune_config large = *config;
    struct tune_result result;
    struct tune_raw *raw;

    large.budget_s = 60;
    world->stop_at = cases;
    assert_int_equal(open_path(path, TUNE_RAW_GO_ON, &raw), RG_OK);
    assert_int_equal(search_world(world, &large, raw, &result), RG_EABORTED);
    tune_raw_close(raw);
    world->stop_at = 0;
}

/*
 * Whatever there was time for: whole measurements give the same result again,
 * also where the file holds what an earlier run with more time began.
 */
static void same_measurements_same_result(void **state)
{
    const double budgets[] = {0.03, 0.1, 0.3, 1};
    struct tune_config config = world_config();
    struct tune_result result, again;

    (void)state;
    for (int i = 0; i < 40; i++) {
        char path[] = "/tmp/rg-tune-XXXXXX";
        struct world world;

        close(mkstemp(path));
        init_world(&world);
        world.noise = 0.05;
        world.state = config.seed = (uint64_t)i + 1;
        config.budget_s = budgets[i % 4];
        if (i % 8 >= 4)
            cut_short(&world, path, &config, 20 + 2 * i);
        tune_world(&world, path, TUNE_RAW_GO_ON, &config, &result);
        assert_true(world.samples > 0);
        for (int k = 0; k < 2; k++) {
            tune_world(&world, path, TUNE_RAW_RESUME, &config, &again);
            assert_int_equal(world.samples, 0);
            assert_same(&result, &again);
        }
        tune_space_fini(&world.space);
        unlink(path);
    }
}

/* What there was no time for is measured when there is more of it. */
static void a_larger_budget_adds(void **state)
{
    struct tune_config config = world_config();
    struct tune_result result, more;
    char path[] = "/tmp/rg-tune-XXXXXX";
    struct world world;

    (void)state;
    close(mkstemp(path));
    init_world(&world);
    config.budget_s = 0.05;
    tune_world(&world, path, TUNE_RAW_GO_ON, &config, &result);
    assert_true(result.left_out > 0);
    config.budget_s = 60;
    tune_world(&world, path, TUNE_RAW_RESUME, &config, &more);
    assert_true(world.samples > 0);
    assert_int_equal(more.left_out, 0);
    tune_space_fini(&world.space);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_exactly),
        cmocka_unit_test(ranks_ties),
        cmocka_unit_test(approximates_what_it_does_not_count),
        cmocka_unit_test(counts_what_is_sure_and_large),
        cmocka_unit_test(summarises_launches),
        cmocka_unit_test(costs_what_counts),
        cmocka_unit_test(switches_where_it_pays),
        cmocka_unit_test(does_not_flip_flop),
        cmocka_unit_test(ties_stay_with_the_neighbour),
        cmocka_unit_test(avoids_what_cannot_run),
        cmocka_unit_test(finds_crossovers),
        cmocka_unit_test(lists_candidates),
        cmocka_unit_test(sizes_cover_the_range),
        cmocka_unit_test(order_follows_the_seed),
        cmocka_unit_test(goes_on_where_it_was_cut),
        cmocka_unit_test(goes_on_among_its_results),
        cmocka_unit_test(remembers_what_it_writes),
        cmocka_unit_test(keeps_configurations_apart),
        cmocka_unit_test(finds_what_is_best),
        cmocka_unit_test(variants_crowd_nobody_out),
        cmocka_unit_test(chance_chooses_no_channels),
        cmocka_unit_test(doubts_what_is_not_confirmed),
        cmocka_unit_test(a_limit_is_a_bound),
        cmocka_unit_test(the_tail_serves_any_size),
        cmocka_unit_test(keeps_to_the_budget),
        cmocka_unit_test(a_budget_for_nothing_is_refused),
        cmocka_unit_test(a_tuning_goes_on),
        cmocka_unit_test(same_measurements_same_result),
        cmocka_unit_test(a_larger_budget_adds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
