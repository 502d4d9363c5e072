/*
 * The entry of send and receive (-DRG_ENTRY_DTYPE=u8: data is bytes), for the
 * device of the compiler at hand: the frame of a launch of messages. It has no
 * seq, is of any number of teams, and nothing of it goes by the hot line.
 */
#define RG_INCLUDE_sendrecv
#include "algos/registry.h"
#include "algos/sendrecv/sendrecv.h"
#include "runtime/device/entry.h"

#define RG_X(name) sendrecv_is_##name,
enum { RG_SENDRECV_LIST(RG_X) };
#undef RG_X

/* The plan's algorithm: both ends of each message are to agree on it, so it is
 * that of the last rule, for whatever sizes. */
RG_FN int sendrecv_switch(struct rg_call *call)
{
    switch (call->rule->algo) {
#define RG_X(name)                                                             \
    case sendrecv_is_##name:                                                   \
        return sendrecv_##name(call);
        RG_SENDRECV_LIST(RG_X)
#undef RG_X
    default:
        return rg_fail(call, RG_EUNAVAILABLE, -1);
    }
}

/* A note for the host: some peer is no member, and its messages do nothing. */
RG_FN void sendrecv_decline(const struct rg_call *call)
{
    uint64_t *declined = &call->dev->mailbox->declined;
    const struct rg_launch *launch = call->launch;

    if (call->team.index || call->team.thread)
        return;
    for (uint64_t m = 0; m < launch->nposts; m++)
        if (rg_plan_rank(call->plan, launch->posts[m].slot) < 0)
            rg_store_relaxed(declined, rg_load_relaxed(declined) + 1);
}

/* 0, or 1 for failed. */
RG_FN int sendrecv_planned(struct rg_call *call, uint64_t *run_out)
{
    const struct rg_plan *plan = call->dev->plan[call->index];
    const struct rg_rules *rules = &plan->rules[RG_COLL_sendrecv];

    if (rg_team_share_word(&call->team, call->team.thread == 0 &&
                                            rg_messages_are_undone(call->dev)))
        return 0;
    call->plan = plan;
    if (!rules->count)
        return rg_fail(call, RG_EUNAVAILABLE, -1);
    call->rule = &rules->rule[rules->count - 1];
    call->workspace =
        plan->workspace + plan->offset[RG_COLL_sendrecv][call->rule->algo];
    *run_out = RG_RUN(RG_COLL_sendrecv, call->rule->algo, call->rule->channels,
                      plan->epoch);
    sendrecv_decline(call);
    return sendrecv_switch(call);
}

RG_FN void sendrecv_entry(const struct rg_launch *launch, struct rg_team *team)
{
    const struct rg_open open = rg_open_messages(launch->comm, team);
    struct rg_call call;
    uint64_t run = 0;
    int failed;

    if (!open.joined)
        return;
    call = rg_call_of(launch, team, &open);
    call.seq = open.hot.completed;
    failed = open.granted ? sendrecv_planned(&call, &run)
                          : rg_fail(&call, RG_EABORTED, -1);
    rg_close_messages(&call, &open, failed, run);
}

#if RG_ON_CUDA

enum { SENDRECV_THREADS = 512 };

static __global__ void __launch_bounds__(SENDRECV_THREADS, 1)
    sendrecv_kernel(const __grid_constant__ struct rg_post_launch launch)
{
    struct rg_team team = rg_team_here(0, 0);
    struct rg_launch here = launch.launch;

    here.posts = launch.post;
    sendrecv_entry(&here, &team);
}

#define RG_NAME ((const void *)sendrecv_kernel)
extern "C" {
extern const struct rg_cuda_entries rg_sendrecv_cuda_u8;
const struct rg_cuda_entries rg_sendrecv_cuda_u8 = {
    {{RG_NAME, RG_NAME, RG_NAME}}, {nullptr, nullptr, nullptr}};
}

#else

static void sendrecv_run(const struct rg_launch *launch, struct rg_team *team)
{
    sendrecv_entry(launch, team);
}

extern const struct rg_emu_entries rg_sendrecv_emu_u8;
const struct rg_emu_entries rg_sendrecv_emu_u8 = {.op = {sendrecv_run}};

#endif
