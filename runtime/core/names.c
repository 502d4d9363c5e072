#include <string.h>

#include "runtime/regroup.h"

const char *rg_status_string(int status)
{
    switch ((enum rg_status)status) {
    case RG_OK:
        return "success";
    case RG_EINVAL:
        return "invalid argument";
    case RG_ENOMEM:
        return "out of memory";
    case RG_ENODEV:
        return "no such device";
    case RG_ENOTSUP:
        return "not supported here";
    case RG_ETIMEDOUT:
        return "deadline passed";
    case RG_EABORTED:
        return "aborted by a view change";
    case RG_EUNAVAILABLE:
        return "the current view cannot serve the call";
    case RG_EISOLATED:
        return "this side lost the majority of its group";
    case RG_EBUSY:
        return "still in use";
    case RG_EPOLICY:
        return "a selection of algorithms that cannot be followed";
    case RG_EBACKEND:
        return "the group's backend does not allow the call";
    case RG_ENOSPC:
        return "region or workspace too small";
    case RG_ESYSTEM:
        return "a system or vendor call failed";
    case RG_EPROTO:
        return "malformed or unexpected control message";
    case RG_ECONFIG:
        return "wrong setting or environment variable";
    case RG_EFAILED:
        return "a route or a peer failed";
    case RG_EPENDING:
        return "not finished yet";
    case RG_ECLOSED:
        return "the other side has gone";
    }
    return "unknown status";
}

static const char *name_at(const char *const *names, int count, int index)
{
    return index >= 0 && index < count ? names[index] : "?";
}

static int index_of(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

#define RG_X(name, bytes) #name,
static const char *const dtype_names[] = {RG_DTYPE_LIST(RG_X)};
#undef RG_X

#define RG_X(name) #name,
static const char *const op_names[] = {RG_OP_LIST(RG_X)};
static const char *const collective_names[] = {
    RG_COLLECTIVE_LIST(RG_X) "transfer"};
#undef RG_X

const char *rg_dtype_name(enum rg_dtype dtype)
{
    return name_at(dtype_names, RG_DTYPE_COUNT, (int)dtype);
}

const char *rg_op_name(enum rg_op op)
{
    return name_at(op_names, RG_OP_COUNT, (int)op);
}

const char *rg_collective_name(enum rg_collective collective)
{
    return name_at(collective_names, RG_COLL_AREAS, (int)collective);
}

const char *rg_route_name(enum rg_route_kind route)
{
    static const char *const names[RG_ROUTE_COUNT] = {
        [RG_ROUTE_NULL] = "null",   [RG_ROUTE_P2P] = "p2p",
        [RG_ROUTE_RDMA] = "rdma",   [RG_ROUTE_GIN] = "gin",
        [RG_ROUTE_PROXY] = "proxy", [RG_ROUTE_SELF] = "self",
        [RG_ROUTE_HOST] = "host"};

    return name_at(names, RG_ROUTE_COUNT, (int)route);
}

const char *rg_phase_name(enum rg_phase phase)
{
    static const char *const names[RG_PHASE_COUNT] = {
        [RG_PHASE_STALLED] = "stalled",   [RG_PHASE_PREPARE] = "prepare",
        [RG_PHASE_HELD] = "held",         [RG_PHASE_VIEW] = "view",
        [RG_PHASE_ACTIVATE] = "activate", [RG_PHASE_OPEN] = "open",
        [RG_PHASE_CLOSED] = "closed"};

    return name_at(names, RG_PHASE_COUNT, (int)phase);
}

const char *rg_outcome_name(enum rg_outcome_state state)
{
    static const char *const names[] = {[RG_OUTCOME_PENDING] = "pending",
                                        [RG_OUTCOME_COMPLETED] = "completed",
                                        [RG_OUTCOME_COMMITTED] = "committed",
                                        [RG_OUTCOME_ABORTED] = "aborted"};

    return name_at(names, RG_OUTCOME_ABORTED + 1, (int)state);
}

int rg_dtype_parse(const char *name, enum rg_dtype *dtype_out)
{
    int index = index_of(dtype_names, RG_DTYPE_COUNT, name);

    if (index < 0)
        return RG_EINVAL;
    *dtype_out = (enum rg_dtype)index;
    return RG_OK;
}

int rg_op_parse(const char *name, enum rg_op *op_out)
{
    int index = index_of(op_names, RG_OP_COUNT, name);

    if (index < 0)
        return RG_EINVAL;
    *op_out = (enum rg_op)index;
    return RG_OK;
}

size_t rg_dtype_size(enum rg_dtype dtype)
{
#define RG_X(name, bytes) bytes,
    static const unsigned char sizes[] = {RG_DTYPE_LIST(RG_X)};
#undef RG_X

    return (int)dtype >= 0 && dtype < RG_DTYPE_COUNT ? sizes[dtype] : 0;
}

static int is_integer(enum rg_dtype dtype)
{
    switch (dtype) {
#define RG_X(s, u)                                                             \
    case RG_##s:                                                               \
    case RG_##u:
        RG_DTYPE_SIGN_LIST(RG_X)
#undef RG_X
        return 1;
    default:
        return 0;
    }
}

int rg_op_fits(enum rg_op op, enum rg_dtype dtype)
{
    switch (op) {
#define RG_X(name) case RG_##name:
        RG_OP_BITS_LIST(RG_X)
        return is_integer(dtype);
        RG_OP_WRAP_LIST(RG_X)
        RG_OP_ORDER_LIST(RG_X)
#undef RG_X
        return rg_dtype_size(dtype) != 0 && dtype != RG_f8e4m3 &&
               dtype != RG_f8e5m2;
    default:
        return 0;
    }
}

int rg_collective_reduces(enum rg_collective collective)
{
    return collective == RG_COLL_all_reduce ||
           collective == RG_COLL_reduce_scatter || collective == RG_COLL_reduce;
}

int rg_collective_rooted(enum rg_collective collective)
{
    return collective == RG_COLL_broadcast || collective == RG_COLL_reduce ||
           collective == RG_COLL_gather || collective == RG_COLL_scatter;
}
