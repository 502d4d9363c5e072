/*
 * A team: the threads that run an algorithm together. On CUDA a team is a
 * thread block; on the emulated device it is one host thread, or a few in a
 * *wide* team, so that a missing barrier shows.
 */
#ifndef RG_DEVICE_TEAM_H
#define RG_DEVICE_TEAM_H

#include "runtime/device/dev.h"
#include "runtime/device/word.h"

#if !RG_ON_CUDA
/* What a host thread needs of its surroundings; made by exec/emu. */
struct rg_emu_team {
    uint64_t arrived;   /* barrier: threads that came, ever */
    uint64_t votes[3];  /* rg_team_any: turn + 1 of the last vote */
    uint64_t shared[3]; /* rg_team_share_word */
    uint64_t (*now_ns)(void);
    /* Called with the number of failed polls so far. */
    void (*relax)(uint64_t polls, int crowded);
    int crowded; /* more teams than cores: yield early */
};
#endif

struct rg_team {
    int thread; /* within the team */
    int threads;
    int index; /* of this team among the launch's teams */
    int count;
    int warp; /* CUDA: one warp, and a constant; else 0 */
    /* CUDA: a buffer of at most a unit a thread, and a constant; else 0. What
     * is for larger ones is not built then. */
    int brief;
#if !RG_ON_CUDA
    struct rg_emu_team *emu;
    uint64_t barriers; /* this thread's barriers so far */
#endif
};

#if RG_ON_CUDA

RG_FN void rg_team_barrier(struct rg_team *team)
{
    (void)team;
    __syncthreads();
}

/* 1 at every thread if pred is non-zero at any; a barrier too. */
RG_FN int rg_team_any(struct rg_team *team, int pred)
{
    return team->warp ? __any_sync(~0u, pred) : __syncthreads_or(pred);
}

/*
 * Only threads below `count` have work. 1: this thread may leave, and those
 * that stay are rg_team_below(). They vote at each poll where that is cheap,
 * else (rg_team_votes_late) once at the end.
 */
RG_FN int rg_team_may_leave(const struct rg_team *team, int count)
{
    return team->warp && team->thread >= count;
}

RG_FN int rg_team_all_below(const struct rg_team *team, int count, int pred)
{
    return team->warp ? __all_sync(~0u >> (32 - count), pred) : pred;
}

RG_FN int rg_team_votes_late(const struct rg_team *team)
{
    return !team->warp;
}

/* Thread 0's value at every thread; a barrier too. */
RG_FN uint64_t rg_team_share_word(struct rg_team *team, uint64_t value)
{
    __shared__ uint64_t shared;

    rg_team_barrier(team);
    if (threadIdx.x == 0)
        shared = value;
    rg_team_barrier(team);
    return shared;
}

RG_FN uint64_t rg_team_now_ns(const struct rg_team *team)
{
    uint64_t now;

    (void)team;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

#else

RG_FN void rg_team_barrier(struct rg_team *team)
{
    struct rg_emu_team *emu = team->emu;
    const uint64_t all = ++team->barriers * (uint64_t)team->threads;
    uint64_t polls = 0;

    if (team->threads == 1)
        return;
    /* Pairs with the acquire below: what came before is seen by all. */
    rg_add_release(&emu->arrived, 1);
    while ((int64_t)(rg_load_acquire(&emu->arrived) - all) < 0)
        emu->relax(polls++, emu->crowded);
}

/*
 * Words rotate over three barriers: one is last read before the barrier that
 * follows its own, and next written after it. A vote names its turn, so an
 * old one counts for nothing, whatever calls came between.
 */
RG_FN int rg_team_any(struct rg_team *team, int pred)
{
    const uint64_t turn = team->barriers;
    uint64_t *vote = &team->emu->votes[turn % 3];

    if (team->threads == 1)
        return pred != 0;
    if (pred)
        rg_store_relaxed(vote, turn + 1);
    rg_team_barrier(team);
    return rg_load_relaxed(vote) == turn + 1;
}

RG_FN int rg_team_may_leave(const struct rg_team *team, int count)
{
    (void)team;
    (void)count;
    return 0;
}

RG_FN int rg_team_all_below(const struct rg_team *team, int count, int pred)
{
    (void)team;
    (void)count;
    return pred;
}

RG_FN int rg_team_votes_late(const struct rg_team *team)
{
    (void)team;
    return 1;
}

RG_FN uint64_t rg_team_share_word(struct rg_team *team, uint64_t value)
{
    const uint64_t turn = team->barriers;

    if (team->threads == 1)
        return value;
    if (team->thread == 0)
        rg_store_relaxed(&team->emu->shared[turn % 3], value);
    rg_team_barrier(team);
    return rg_load_relaxed(&team->emu->shared[turn % 3]);
}

RG_FN uint64_t rg_team_now_ns(const struct rg_team *team)
{
    return team->emu->now_ns();
}

#endif

/* What is left of a team where those at and above `count` may have left. */
RG_FN struct rg_team rg_team_below(const struct rg_team *team, int count)
{
    struct rg_team left = *team;

    if (team->warp)
        left.threads = count;
    left.warp = 0;
    return left;
}

/*
 * A contiguous share [begin, end) of n items for part `index` of `count`.
 * Divides in 32 bits where it can: a 64-bit division is a long way round on a
 * GPU, and small invocations feel it.
 */
RG_FN void rg_share(uint64_t n, int index, int count, uint64_t *begin_out,
                    uint64_t *end_out)
{
    const uint32_t parts = (uint32_t)count, i = (uint32_t)index;
    uint64_t each = n, more = 0;

    if (parts > 1) {
        each = n >> 32 ? n / parts : (uint32_t)n / parts;
        more = n - each * parts;
    }
    *begin_out = each * i + (i < more ? i : more);
    *end_out = *begin_out + each + (i < more ? 1 : 0);
}

#endif
