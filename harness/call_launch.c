#include "harness/call.h"

static int launch_v(const struct rg_call *call, struct rg_comm *comm,
                    struct rg_stream *stream)
{
    const struct rg_spread *spread = call->spread;
    const int n = spread->nranks, me = spread->rank;

    return rg_all_to_all_v(call->send, rg_spread_sent(spread, me, n),
                           call->recv, rg_spread_received(spread, n, me),
                           call->layout, spread->most, call->dtype, comm,
                           stream);
}

/* With a root. */
static int launch_rooted(const struct rg_call *call, struct rg_comm *comm,
                         struct rg_stream *stream)
{
    switch (call->collective) {
    case RG_COLL_broadcast:
        return rg_broadcast(call->send, call->recv, call->count, call->dtype,
                            call->root, comm, stream);
    case RG_COLL_reduce:
        return rg_reduce(call->send, call->recv, call->count, call->dtype,
                         call->op, call->root, comm, stream);
    case RG_COLL_gather:
        return rg_gather(call->send, call->recv, call->count, call->dtype,
                         call->root, comm, stream);
    default:
        return rg_scatter(call->send, call->recv, call->count, call->dtype,
                          call->root, comm, stream);
    }
}

/* The active slots ahead of the own one and behind it, in the ring of all. */
static int neighbours(struct rg_comm *comm, int *next_out, int *previous_out)
{
    int members[RG_SLOTS_MAX];
    struct rg_view_info view;
    int status = rg_comm_view(comm, &view);

    if (status == RG_OK)
        status = rg_comm_members(comm, members);
    if (status != RG_OK)
        return status;
    *next_out = *previous_out = view.slot;
    do
        *next_out = (*next_out + 1) % view.capacity;
    while (members[*next_out] < 0);
    do
        *previous_out = (*previous_out + view.capacity - 1) % view.capacity;
    while (members[*previous_out] < 0);
    return RG_OK;
}

static int launch_ring(const struct rg_call *call, struct rg_comm *comm,
                       struct rg_stream *stream)
{
    int next, previous, ended;
    int status = neighbours(comm, &next, &previous);

    if (status == RG_OK)
        status = rg_group_begin(comm, stream);
    if (status != RG_OK)
        return status;
    status = rg_send(call->send, call->count, call->dtype, next, comm, stream);
    if (status == RG_OK)
        status = rg_recv(call->recv, call->count, call->dtype, previous, comm,
                         stream);
    ended = rg_group_end(comm);
    return status == RG_OK ? ended : status;
}

int rg_call_launch(const struct rg_call *call, struct rg_comm *comm,
                   struct rg_stream *stream)
{
    switch (call->collective) {
    case RG_COLL_all_reduce:
        return rg_all_reduce(call->send, call->recv, call->count, call->dtype,
                             call->op, comm, stream);
    case RG_COLL_all_gather:
        return rg_all_gather(call->send, call->recv, call->count, call->dtype,
                             comm, stream);
    case RG_COLL_reduce_scatter:
        return rg_reduce_scatter(call->send, call->recv, call->count,
                                 call->dtype, call->op, comm, stream);
    case RG_COLL_all_to_all:
        return rg_all_to_all(call->send, call->recv, call->count, call->dtype,
                             comm, stream);
    case RG_COLL_all_to_all_v:
        return launch_v(call, comm, stream);
    case RG_COLL_barrier:
        return rg_barrier(comm, stream);
    case RG_COLL_sendrecv:
        return launch_ring(call, comm, stream);
    default:
        return launch_rooted(call, comm, stream);
    }
}
