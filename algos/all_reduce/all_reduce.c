/*
 * All-reduce entries of one data type (-DRG_ENTRY_DTYPE), for the device of
 * the compiler at hand: the frame, the switch over the algorithms, and one
 * entry per operation.
 */
#define RG_INCLUDE_all_reduce
#include "algos/registry.h"
#include "algos/all_reduce/all_reduce.h"
#include "runtime/device/entry.h"

/* One rank: the result is the input, whatever the operation. */
RG_FN void all_reduce_alone(struct rg_call *call)
{
    uint64_t begin, end;

    rg_share_elems(call->count, call->team.index, call->team.count, &begin,
                   &end);
    if (call->send != call->recv)
        rg_team_copy(&call->team, (rg_elem *)call->recv + begin,
                     (const rg_elem *)call->send + begin,
                     (end - begin) * sizeof(rg_elem));
}

#define RG_ALGO_LIST(X)         RG_ALL_REDUCE_LIST(X)
#define RG_ALGO_FN(name)        all_reduce_##name
#define RG_ALGO_OPS(X)          RG_BUILT_LIST(X)
#define RG_ALGO_COLL            RG_COLL_all_reduce
#define RG_ALGO_ALONE(call, op) all_reduce_alone(call)
#include "runtime/device/choose.h"

/* The plan's rule for this size. */
RG_FN struct rg_found all_reduce_find(const struct rg_launch *launch,
                                      const struct rg_team *team,
                                      const struct rg_open *open)
{
    struct rg_found found = {0, 0, 0, 0, 0};

    if (open->granted && rg_found_begins(&found, launch, team, open))
        rg_found_rule(&found, (enum rg_dtype)launch->dtype,
                      launch->count * sizeof(rg_elem));
    return found;
}

/* By the hot line. Every thread, as below. */
RG_FN void all_reduce_packets_any(const struct rg_launch *launch,
                                  const struct rg_team *team,
                                  const struct rg_open *open, enum rg_op op,
                                  const struct all_reduce_packets *ahead)
{
    struct rg_call call = rg_call_of(launch, team, open);
    const uint64_t run =
        open->hot.run + ((uint64_t)(call.team.count - 1) << 32);

    rg_close(&call, open, all_reduce_packets_hot(&call, op, &open->hot, ahead),
             run);
}

/* Whatever the claim and the size ask for. Every thread. */
RG_FN_SHARED void all_reduce_any(const struct rg_launch *launch,
                                 const struct rg_team *team,
                                 const struct rg_open *open, enum rg_op op,
                                 const struct all_reduce_packets *ahead,
                                 const int brief)
{
    struct rg_found found;

    if (open->granted &&
        launch->count * sizeof(rg_elem) <= open->hot.max_bytes) {
        all_reduce_packets_any(launch, team, open, op, ahead);
        return;
    }
    found = all_reduce_find(launch, team, open);
    rg_algo_by_plan(launch, team, open, op, brief, &found);
}

RG_FN void all_reduce_entry(const struct rg_launch *launch,
                            struct rg_team *team, enum rg_op op)
{
    const struct rg_opening opening = rg_open_begin(launch->comm, team);
    struct all_reduce_packets ahead = all_reduce_packets_ahead(
        team, launch->send, RG_ON_CUDA ? launch->count : 0);
    const struct rg_open open = rg_open_end(launch->comm, team, &opening);

    /* Host threads: only now, for in place others may write where no packets
     * are sent. */
    if (!RG_ON_CUDA && launch->count * sizeof(rg_elem) <= open.hot.max_bytes)
        ahead = all_reduce_packets_ahead(team, launch->send, launch->count);
    if (open.joined)
        all_reduce_any(launch, team, &open, op, &ahead, 0);
}

/* ---- small buffers ------------------------------------------------------ */

/* Units of a small buffer; an empty one has one, too. */
RG_FN int all_reduce_units(const struct rg_launch *launch)
{
    const uint32_t count = (uint32_t)launch->count;

    return count > RG_UNIT_ELEMS
               ? (int)((count + RG_UNIT_ELEMS - 1) / RG_UNIT_ELEMS)
               : 1;
}

/* The same for every thread. 1: the line serves a small buffer of that size. */
RG_FN int all_reduce_is_hot(const struct rg_launch *launch,
                            const struct rg_hot *hot)
{
    return (uint32_t)launch->count * (uint32_t)sizeof(rg_elem) <=
               hot->max_bytes &&
           !rg_packet_tag_wraps(hot->cursor);
}

/*
 * The rest: the launch parks, or its size goes another way, or a peer is late.
 * What was pushed before is pushed once more. Every thread that stayed.
 */
RG_FN_COLD void all_reduce_rare(const struct rg_launch *launch,
                                struct rg_team team, uint64_t claim,
                                enum rg_op op)
{
    struct all_reduce_packets ahead;
    struct rg_open open;

    /* Said once more, for it is compiled apart from where they are set. */
    team.index = 0;
    team.count = 1;
    team.brief = 1;
    open = rg_open_rare(launch->comm, &team, claim);
    ahead = all_reduce_packets_ahead(&team, launch->send, launch->count);
    if (open.joined)
        all_reduce_any(launch, &team, &open, op, &ahead, 1);
}

/* What an invocation by the hot line leaves. */
RG_FN void all_reduce_small_end(const struct rg_launch *launch,
                                const struct rg_team *team,
                                const struct rg_hot *hot,
                                const struct all_reduce_unit *unit)
{
    if (team->thread < unit->units)
        rg_unit_store(launch->recv, (uint64_t)team->thread, launch->count,
                      unit->word);
    if (team->thread != 0)
        return;
    if (unit->bare)
        rg_store_relaxed(&launch->comm->control,
                         rg_hot_claim(hot) + rg_claim_add(team));
    rg_hot_done(launch->comm, hot, hot->run);
}

/*
 * The entry of one team, made for a buffer of at most a unit a thread that
 * goes by the hot line. It takes as long as its instructions are many, so all
 * that is rare is out of line. `bare`: without what makes an invocation
 * recoverable, for a benchmark to tell what that costs: no claim, no bound, no
 * vote.
 */
RG_FN void all_reduce_small(const struct rg_launch *launch,
                            struct rg_team *team, enum rg_op op, const int bare)
{
    struct rg_comm_dev *dev = launch->comm;
    struct all_reduce_unit unit = {all_reduce_units(launch), 1, bare, 0};
    const int mine = team->thread < unit.units;
    uint64_t claim = bare ? 0 : rg_claim_first(dev, team);
    struct rg_packet_path path;
    struct rg_hot hot;
    int hot_size, late;

    if (mine)
        unit.word =
            rg_unit_load(launch->send, (uint64_t)team->thread, launch->count);
    hot = rg_hot_take(dev, team);
    path = rg_packet_path_of(&hot, 0);
    hot_size = bare || all_reduce_is_hot(launch, &hot);
    if (hot_size)
        rg_unit_push(&path, team, mine, unit.word, bare);
    if (!bare) {
        claim = rg_claim_behind(dev, team, claim);
        unit.proven = rg_claim_proves_here(claim, &hot, team);
    }
    if (hot_size && rg_team_may_leave(team, unit.units))
        return;
    late = !hot_size;
    if (hot_size && mine)
        late = all_reduce_unit_take(&unit, team, op, &path);
    if (!bare && rg_team_votes_late(team))
        late = rg_team_any(team, late | !unit.proven);
    if (!bare && RG_RARE(late))
        all_reduce_rare(
            launch, rg_team_below(team, hot_size ? unit.units : team->threads),
            claim, op);
    else
        all_reduce_small_end(launch, team, &hot, &unit);
}

#if RG_ON_CUDA

enum { RG_WARP_THREADS = 32, RG_SMALL_THREADS = 1024, RG_LARGE_THREADS = 512 };

#define RG_KERNEL(name, op, threads)                                           \
    static __global__ void __launch_bounds__(threads, 1)                       \
        RG_CAT(RG_CAT(name, RG_ENTRY_DTYPE),                                   \
               _##op)(const __grid_constant__ struct rg_launch launch)

#define RG_X(op)                                                               \
    RG_KERNEL(all_reduce_warp_, op, RG_WARP_THREADS)                           \
    {                                                                          \
        struct rg_team team = rg_team_here(1, 1);                              \
        all_reduce_small(&launch, &team, RG_##op, 0);                          \
    }                                                                          \
    RG_KERNEL(all_reduce_small_, op, RG_SMALL_THREADS)                         \
    {                                                                          \
        struct rg_team team = rg_team_here(1, 0);                              \
        all_reduce_small(&launch, &team, RG_##op, 0);                          \
    }                                                                          \
    RG_KERNEL(all_reduce_large_, op, RG_LARGE_THREADS)                         \
    {                                                                          \
        struct rg_team team = rg_team_here(0, 0);                              \
        all_reduce_entry(&launch, &team, RG_##op);                             \
    }
RG_BUILT_LIST(RG_X)
#undef RG_X

#define RG_NAME(name, op)                                                      \
    (const void *)RG_CAT(RG_CAT(name, RG_ENTRY_DTYPE), _##op)
#define RG_NONE(op) {nullptr, nullptr, nullptr},
#define RG_X(op)                                                               \
    {RG_NAME(all_reduce_warp_, op), RG_NAME(all_reduce_small_, op),            \
     RG_NAME(all_reduce_large_, op)},

#if RG_ELEM_CLASS == 1
#define RG_BARE RG_NONE(sum)
#else
RG_KERNEL(all_reduce_bare_warp_, sum, RG_WARP_THREADS)
{
    struct rg_team team = rg_team_here(1, 1);
    all_reduce_small(&launch, &team, RG_sum, 1);
}

RG_KERNEL(all_reduce_bare_small_, sum, RG_SMALL_THREADS)
{
    struct rg_team team = rg_team_here(1, 0);
    all_reduce_small(&launch, &team, RG_sum, 1);
}

#define RG_BARE                                                                \
    {RG_NAME(all_reduce_bare_warp_, sum),                                      \
     RG_NAME(all_reduce_bare_small_, sum), nullptr},
#endif

#define RG_ENTRIES_HERE RG_CAT(rg_all_reduce_cuda_, RG_ENTRY_DTYPE)
extern "C" {
extern const struct rg_cuda_entries RG_ENTRIES_HERE;
const struct rg_cuda_entries RG_ENTRIES_HERE = {{RG_TABLE_LIST(RG_NONE, RG_X)},
                                                RG_BARE};
}
#undef RG_X
#undef RG_NONE

#else

/* A unit a thread needs one team only; on one thread that is a unit. */
#define RG_X(op)                                                               \
    static void RG_CAT(all_reduce_, op)(const struct rg_launch *launch,        \
                                        struct rg_team *team)                  \
    {                                                                          \
        if (team->count == 1 &&                                                \
            launch->count <= (uint64_t)(team->threads * RG_UNIT_ELEMS))        \
            all_reduce_small(launch, team, RG_##op, 0);                        \
        else                                                                   \
            all_reduce_entry(launch, team, RG_##op);                           \
    }
RG_BUILT_LIST(RG_X)
#undef RG_X

#if RG_ELEM_CLASS == 1
#define RG_BARE NULL
#else
static void all_reduce_bare(const struct rg_launch *launch,
                            struct rg_team *team)
{
    all_reduce_small(launch, team, RG_sum, 1);
}

#define RG_BARE all_reduce_bare
#endif

#define RG_NONE(op)     NULL,
#define RG_X(op)        RG_CAT(all_reduce_, op),
#define RG_ENTRIES_HERE RG_CAT(rg_all_reduce_emu_, RG_ENTRY_DTYPE)
extern const struct rg_emu_entries RG_ENTRIES_HERE;
const struct rg_emu_entries RG_ENTRIES_HERE = {{RG_TABLE_LIST(RG_NONE, RG_X)},
                                               RG_BARE};
#undef RG_X
#undef RG_NONE

#endif
