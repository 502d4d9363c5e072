/*
 * bounds, deadline, beyond: where the service says no. What would end the
 * invocation is asked for without ending it, but in `beyond`.
 */
#include "algos/transfer/transfer.h"

/* 1: [end - back, end - back + bytes) of peer's region is taken for what it
 * is not, `inside` or beyond its end. */
RG_FN uint64_t transfer_bound(const struct rg_call *call, int peer,
                              uint64_t back, uint64_t bytes, int inside)
{
    const uint64_t end = call->plan->routes[peer].bytes;

    return (rg_route_to(call, peer, end - back, bytes) != 0) != inside;
}

RG_FN uint64_t transfer_bounds_of(const struct rg_call *call, int peer)
{
    uint64_t wrong = 0;

    wrong += transfer_bound(call, peer, 0, 0, 1);
    wrong += transfer_bound(call, peer, 1, 1, 1);
    wrong += transfer_bound(call, peer, 8, 8, 1);
    wrong += transfer_bound(call, peer, 0, 1, 0);
    wrong += transfer_bound(call, peer, 7, 8, 0);
    wrong += transfer_bound(call, peer, (uint64_t)-1, 0, 0);
    /* The sum of both wraps. */
    wrong += transfer_bound(call, peer, 8, UINT64_MAX - 7, 0);
    wrong += transfer_bound(call, peer, 8, UINT64_MAX, 0);
    wrong += rg_direct(call, peer, call->plan->routes[peer].bytes, 1) != 0;
    return wrong;
}

RG_FN int transfer_bounds(struct rg_call *call, const struct transfer *s)
{
    if (call->team.thread != 0 || call->team.index != 0)
        return 0;
    for (int peer = 0; peer < s->nranks; peer++)
        rg_add_relaxed_dev(&s->report->bounds, transfer_bounds_of(call, peer));
    rg_add_relaxed_dev(&s->report->turns, 1);
    return 0;
}

/* A wait of which all but the asked-for budget is over; nothing is latched. */
RG_FN int transfer_deadline(struct rg_call *call, const struct transfer *s)
{
    struct rg_waiter waiter = RG_WAITER_INIT;
    const uint64_t begin = rg_team_now_ns(&call->team);
    int status;

    if (call->team.thread != 0 || call->team.index != 0)
        return 0;
    if (call->dev->deadline_ns > s->ask.budget_ns)
        waiter.waited = call->dev->deadline_ns - s->ask.budget_ns;
    do
        status = rg_wait_more(call, &waiter);
    while (status == RG_OK);
    rg_add_relaxed_dev(&s->report->turns, status == RG_ETIMEDOUT);
    rg_add_relaxed_dev(&s->report->elapsed_ns,
                       rg_team_now_ns(&call->team) - begin);
    return 0;
}

RG_FN int transfer_beyond(struct rg_call *call, const struct transfer *s)
{
    const int peer = (int)s->ask.peer;

    if (s->rank != 0 || call->team.index != 0 || peer >= s->nranks)
        return 0;
    return rg_put(call, peer, 0,
                  call->plan->routes[peer].bytes + s->ask.offset - s->ask.bytes,
                  transfer_source(s, 0), s->ask.bytes);
}
