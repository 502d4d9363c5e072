/*
 * The entry of transfer probes (-DRG_ENTRY_DTYPE=u8: data is bytes), for the
 * device of the compiler at hand: the frame, and the switch over the programs.
 * One kernel, of any number of teams; nothing of it goes by the hot line.
 */
#include "algos/transfer/transfer.h"
#include "algos/transfer/transfer_exchange.c"
#include "algos/transfer/transfer_limits.c"
#include "algos/transfer/transfer_pair.c"
#include "runtime/device/entry.h"

RG_FN int transfer_switch(struct rg_call *call, const struct transfer *s)
{
    switch (s->ask.program) {
    case RG_TRANSFER_PINGPONG:
    case RG_TRANSFER_STREAM:
        return transfer_pair(call, s);
    case RG_TRANSFER_EXCHANGE:
        return transfer_exchange(call, s);
    case RG_TRANSFER_BOUNDS:
        return transfer_bounds(call, s);
    case RG_TRANSFER_DEADLINE:
        return transfer_deadline(call, s);
    case RG_TRANSFER_BEYOND:
        return transfer_beyond(call, s);
    default:
        return rg_fail(call, RG_EUNAVAILABLE, -1);
    }
}

RG_FN int transfer_planned(struct rg_call *call)
{
    const struct rg_plan *plan = call->dev->plan[call->index];
    struct transfer s;

    call->plan = plan;
    /* Aborted for the group before it was launched here. */
    if ((int64_t)(call->seq - plan->first_seq) < 0)
        return 0;
    call->workspace = plan->workspace + plan->offset[RG_COLL_transfer][0];
    s = transfer_open(call);
    if (s.ask.lanes > RG_LANES || s.ask.turns > RG_TRANSFER_TURNS_MAX)
        return rg_fail(call, RG_EUNAVAILABLE, -1);
    return transfer_switch(call, &s);
}

RG_FN void transfer_entry(const struct rg_launch *launch, struct rg_team *team)
{
    const struct rg_opening opening = rg_open_begin(launch->comm, team);
    const struct rg_open open = rg_open_end(launch->comm, team, &opening);
    struct rg_call call;
    int failed;

    if (!open.joined)
        return;
    call = rg_call_of(launch, team, &open);
    failed = open.granted ? transfer_planned(&call)
                          : rg_fail(&call, RG_EABORTED, -1);
    rg_close(&call, &open, failed, 0);
}

#if RG_ON_CUDA

enum { RG_TRANSFER_THREADS = 1024 };

static __global__ void __launch_bounds__(RG_TRANSFER_THREADS, 1)
    transfer_kernel(const __grid_constant__ struct rg_launch launch)
{
    struct rg_team team = rg_team_here(0, 0);
    transfer_entry(&launch, &team);
}

#define RG_NAME ((const void *)transfer_kernel)
extern "C" {
extern const struct rg_cuda_entries rg_transfer_cuda;
const struct rg_cuda_entries rg_transfer_cuda = {{{RG_NAME, RG_NAME, RG_NAME}},
                                                 {nullptr, nullptr, nullptr}};
}

#else

static void transfer_run(const struct rg_launch *launch, struct rg_team *team)
{
    transfer_entry(launch, team);
}

extern const struct rg_emu_entries rg_transfer_emu;
const struct rg_emu_entries rg_transfer_emu = {.op = {transfer_run}};

#endif
