/*
 * pingpong and stream: ranks 0 and `peer`; the others have no part in it.
 * Reported is how long the turns took, without launch and meeting.
 *
 *   pingpong   0: put all lanes, wait for all     peer: answer each
 *   stream     0: put while there is credit       peer: give it back
 */
#include "algos/transfer/transfer.h"

/* A team has every team.count'th lane, and puts them all before it waits. */
RG_FN int transfer_pingpong_turn(struct rg_call *call, const struct transfer *s,
                                 int peer, uint64_t turn)
{
    const int first = call->team.index, step = call->team.count;

    for (int lane = first; s->rank == 0 && lane < s->lanes; lane += step)
        if (transfer_send(call, s, lane, peer, 0, turn + 1))
            return 1;
    for (int lane = first; lane < s->lanes; lane += step)
        if (transfer_landed(call, s, lane, peer, turn + 1) ||
            (s->rank != 0 && transfer_send(call, s, lane, peer, 0, turn + 1)))
            return 1;
    return 0;
}

/* Into a place that the peer has emptied. */
RG_FN int transfer_stream_send(struct rg_call *call, const struct transfer *s,
                               int peer, uint64_t turn)
{
    const uint64_t depth = RG_TRANSFER_DEPTH;
    const uint64_t at = turn % depth * rg_transfer_room(&s->ask);

    for (int lane = call->team.index; lane < s->lanes; lane += call->team.count)
        if ((turn >= depth &&
             transfer_allowed(call, s, lane, peer, turn + 2 - depth)) ||
            transfer_send(call, s, lane, peer, at, turn + 1))
            return 1;
    return 0;
}

RG_FN int transfer_stream_take(struct rg_call *call, const struct transfer *s,
                               int peer, uint64_t turn)
{
    for (int lane = call->team.index; lane < s->lanes; lane += call->team.count)
        if (transfer_landed(call, s, lane, peer, turn + 1) ||
            transfer_allow(call, s, lane, peer, turn + 2))
            return 1;
    return 0;
}

RG_FN int transfer_pair_turn(struct rg_call *call, const struct transfer *s,
                             int peer, uint64_t turn)
{
    call->step = turn;
    if (s->ask.program == RG_TRANSFER_PINGPONG)
        return transfer_pingpong_turn(call, s, peer, turn);
    return s->rank == 0 ? transfer_stream_send(call, s, peer, turn)
                        : transfer_stream_take(call, s, peer, turn);
}

/* Both are in this invocation: what landed in earlier ones has been taken. */
RG_FN int transfer_pair_meet(struct rg_call *call, const struct transfer *s,
                             int peer)
{
    const int first = call->team.index, step = call->team.count;

    for (int lane = first; lane < s->lanes; lane += step)
        if (transfer_allow(call, s, lane, peer, 1))
            return 1;
    for (int lane = first; lane < s->lanes; lane += step)
        if (transfer_allowed(call, s, lane, peer, 1))
            return 1;
    return 0;
}

/* The sender of a stream: all that it has sent has been taken. */
RG_FN int transfer_pair_end(struct rg_call *call, const struct transfer *s,
                            int peer)
{
    if (s->ask.program != RG_TRANSFER_STREAM || s->rank != 0)
        return 0;
    for (int lane = call->team.index; lane < s->lanes; lane += call->team.count)
        if (transfer_allowed(call, s, lane, peer, s->ask.turns + 1))
            return 1;
    return 0;
}

RG_FN void transfer_pair_report(struct rg_call *call, const struct transfer *s,
                                int peer, uint64_t ns)
{
    if (call->team.thread != 0 || call->team.index != 0)
        return;
    rg_add_relaxed_dev(&s->report->turns, s->ask.turns);
    rg_add_relaxed_dev(&s->report->elapsed_ns, ns);
    rg_store_relaxed(&s->report->route, call->plan->routes[peer].kind);
}

/* The rank at the other end, or -1. */
RG_FN int transfer_other(const struct transfer *s)
{
    const int peer = (int)s->ask.peer;

    if (peer < 1 || peer >= s->nranks)
        return -1;
    return s->rank == 0 ? peer : s->rank == peer ? 0 : -1;
}

RG_FN int transfer_pair(struct rg_call *call, const struct transfer *s)
{
    const int peer = transfer_other(s);
    uint64_t begin;

    if (peer < 0)
        return 0;
    if (transfer_pair_meet(call, s, peer))
        return 1;
    begin = rg_team_now_ns(&call->team);
    for (uint64_t turn = 0; turn < s->ask.turns; turn++)
        if (transfer_pair_turn(call, s, peer, turn))
            return 1;
    if (transfer_pair_end(call, s, peer))
        return 1;
    transfer_pair_report(call, s, peer, rg_team_now_ns(&call->team) - begin);
    return 0;
}
