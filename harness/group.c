#include "harness/group.h"

enum { GROUP_SLOTS_MAX = 64 };

void rg_group_leave(const struct rg_group_parts *parts)
{
    rg_graph_destroy(parts->graph);
    rg_stream_destroy(parts->stream);
    if (parts->context)
        for (int i = 0; i < 3; i++)
            rg_free(parts->context, parts->buffers[i]);
    rg_comm_destroy(parts->comm);
    rg_context_destroy(parts->context);
}

int rg_group_members(struct rg_comm *comm, struct rg_view_info *view_out,
                     uint64_t *ranks_out)
{
    int ranks[GROUP_SLOTS_MAX];
    struct rg_view_info view;
    uint64_t members = 0;
    int status = rg_comm_view(comm, &view);

    if (status == RG_OK && view.capacity > GROUP_SLOTS_MAX)
        status = RG_EINVAL;
    if (status == RG_OK)
        status = rg_comm_members(comm, ranks);
    if (status != RG_OK)
        return status;
    for (int slot = 0; slot < view.capacity; slot++)
        if (ranks[slot] >= 0)
            members |= UINT64_C(1) << ranks[slot];
    *view_out = view;
    *ranks_out = members;
    return RG_OK;
}
