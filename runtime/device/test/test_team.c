/* Unit tests of teams: shares, three threads in step, packets and tags. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/device/copy.h"
#include "runtime/device/team.h"
#include "runtime/device/word.h"

enum { THREADS = 3, TURNS = 3000 };

/* ---- shares ------------------------------------------------------------- */

static void check_shares(uint64_t n, int count)
{
    uint64_t begin, end, covered = 0, least = UINT64_MAX, most = 0;

    for (int i = 0; i < count; i++) {
        rg_share(n, i, count, &begin, &end);
        assert_true(begin == covered && end >= begin);
        covered = end;
        least = end - begin < least ? end - begin : least;
        most = end - begin > most ? end - begin : most;
    }
    assert_true(covered == n);
    assert_true(most - least <= 1);
}

/* Contiguous, nothing twice, nothing missed, and even. */
static void shares_cover_everything_once(void **state)
{
    static const uint64_t large[] = {UINT32_MAX - 1ull, UINT32_MAX,
                                     1ull << 32,        (1ull << 32) + 1,
                                     (1ull << 40) + 7,  UINT64_MAX >> 1};

    (void)state;
    for (int count = 1; count <= 130; count++) {
        for (uint64_t n = 0; n <= 300; n++)
            check_shares(n, count);
        for (size_t i = 0; i < sizeof large / sizeof *large; i++)
            check_shares(large[i], count);
    }
}

/* ---- three threads ------------------------------------------------------ */

struct crew {
    struct rg_emu_team emu;
    uint64_t turn[THREADS]; /* how far each thread is */
    uint8_t from[4001], to[4001];
};

struct member {
    struct crew *crew;
    int thread;
    int wrong; /* checks that failed: counted, since a thread cannot assert */
    void (*play)(struct member *member, struct rg_team *team);
};

static void crew_relax(uint64_t polls, int crowded)
{
    (void)polls;
    (void)crowded;
    sched_yield();
}

static void *member_main(void *arg)
{
    struct member *member = arg;
    struct rg_team team = {.thread = member->thread,
                           .threads = THREADS,
                           .count = 1,
                           .emu = &member->crew->emu};

    member->play(member, &team);
    return NULL;
}

static void play(struct crew *crew,
                 void (*part)(struct member *, struct rg_team *))
{
    struct member member[THREADS];
    pthread_t thread[THREADS];

    crew->emu.relax = crew_relax;
    for (int i = 0; i < THREADS; i++) {
        member[i] = (struct member){crew, i, 0, part};
        assert_int_equal(
            pthread_create(&thread[i], NULL, member_main, &member[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(member[i].wrong, 0);
}

static void play_barriers(struct member *member, struct rg_team *team)
{
    struct crew *crew = member->crew;

    for (uint64_t turn = 1; turn <= TURNS; turn++) {
        crew->turn[member->thread] = turn;
        rg_team_barrier(team);
        for (int i = 0; i < THREADS; i++)
            member->wrong += crew->turn[i] != turn;
        rg_team_barrier(team);
    }
}

static void nobody_passes_a_barrier_alone(void **state)
{
    struct crew crew = {0};

    (void)state;
    play(&crew, play_barriers);
}

/* Every order of the three calls, so that their words change turns. */
static void play_votes(struct member *member, struct rg_team *team)
{
    uint64_t random = 1, value;
    int voter, all;

    for (int turn = 0; turn < TURNS; turn++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        voter = (int)(random >> 40) % (2 * THREADS); /* half: nobody */
        value = member->thread ? 0 : random;
        switch ((random >> 60) % 4) {
        case 0:
            rg_team_barrier(team);
            break;
        case 1:
            member->wrong += rg_team_share_word(team, value) != random;
            break;
        default:
            all = rg_team_any(team, voter == member->thread);
            member->wrong += all != (voter < THREADS);
            break;
        }
    }
}

static void votes_and_words_reach_every_thread(void **state)
{
    struct crew crew = {0};

    (void)state;
    play(&crew, play_votes);
}

static void play_copy(struct member *member, struct rg_team *team)
{
    struct crew *crew = member->crew;

    rg_team_copy(team, crew->to + 1, crew->from, sizeof crew->from - 1);
}

static void a_copy_is_exact(void **state)
{
    struct crew *crew = test_calloc(1, sizeof *crew);

    (void)state;
    for (size_t i = 0; i < sizeof crew->from; i++)
        crew->from[i] = (uint8_t)(i * 7 + 1);
    play(crew, play_copy);
    assert_int_equal(crew->to[0], 0);
    assert_memory_equal(crew->to + 1, crew->from, sizeof crew->from - 1);
    test_free(crew);
}

static void a_team_of_one_waits_for_nobody(void **state)
{
    struct rg_emu_team emu = {0};
    struct rg_team team = {.threads = 1, .emu = &emu};

    (void)state;
    rg_team_barrier(&team);
    assert_int_equal(rg_team_any(&team, 0), 0);
    assert_int_equal(rg_team_any(&team, 4), 1);
    assert_int_equal(rg_team_share_word(&team, 9), 9);
}

/* ---- packets ------------------------------------------------------------ */

static void a_packet_carries_its_payload(void **state)
{
    const uint64_t payload = 0x0123456789abcdefull;
    const uint64_t tag = rg_packet_tag(UINT32_MAX - 1ull);
    uint64_t packet[2] = {0, 0}, seen = 0;

    (void)state;
    assert_int_equal(tag, UINT32_MAX);
    assert_int_equal(rg_packet_load(packet, rg_packet_tag(0), &seen), 0);
    rg_packet_store(packet, payload, tag);
    assert_int_equal(rg_packet_load(packet, tag, &seen), 1);
    assert_true(seen == payload);
    assert_int_equal(rg_packet_load(packet, tag - 1, &seen), 0);
}

/* Two words may arrive apart: neither alone is a packet. */
static void half_a_packet_is_none(void **state)
{
    uint64_t old[2], new[2], mixed[2], seen;

    (void)state;
    rg_packet_store(old, 1, 7);
    rg_packet_store(new, 2, 8);
    for (int late = 0; late < 2; late++) {
        memcpy(mixed, new, sizeof mixed);
        mixed[late] = old[late];
        assert_int_equal(rg_packet_load(mixed, 8, &seen), 0);
        assert_int_equal(rg_packet_load(mixed, 7, &seen), 0);
    }
}

/* Slots are used every second cursor; cleaned before their tags come round. */
static void tags_wrap_around_zero(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= 3; round++)
        for (uint64_t back = 0; back < 8; back++) {
            const uint64_t cursor = round * UINT32_MAX + 3 - back;
            const uint64_t tag = rg_packet_tag(cursor);
            const uint64_t next = rg_packet_tag(cursor + 2);

            assert_in_range(tag, 1, UINT32_MAX);
            assert_int_equal(rg_packet_tag_wraps(cursor), next < tag);
            assert_int_equal(next - tag,
                             next < tag ? 2 - (uint64_t)UINT32_MAX : 2);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_cover_everything_once),
        cmocka_unit_test(nobody_passes_a_barrier_alone),
        cmocka_unit_test(votes_and_words_reach_every_thread),
        cmocka_unit_test(a_copy_is_exact),
        cmocka_unit_test(a_team_of_one_waits_for_nobody),
        cmocka_unit_test(a_packet_carries_its_payload),
        cmocka_unit_test(half_a_packet_is_none),
        cmocka_unit_test(tags_wrap_around_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
