/*
 * A rank's part in a group whose members change, for programs whose ranks are
 * killed and come back.
 */
#ifndef RG_HARNESS_GROUP_H
#define RG_HARNESS_GROUP_H

#include <stdint.h>

#include "runtime/regroup.h"

/* What the rank has made so far; null: not. */
struct rg_group_parts {
    struct rg_context *context;
    struct rg_comm *comm;
    struct rg_stream *stream;
    struct rg_graph *graph;
    void *buffers[3]; /* of rg_malloc() */
};
/* Destroys all parts, in an order that serves at any time: a change of the
 * group hinders none. */
void rg_group_leave(const struct rg_group_parts *parts);

/*
 * The view in force and the world ranks of its members, as a bitmap. RG_EINVAL
 * where there are slots for more than 64, or the status of the runtime.
 */
int rg_group_members(struct rg_comm *comm, struct rg_view_info *view_out,
                     uint64_t *ranks_out);

#endif
