/*
 * Data types, reduction operations and collectives: the names the public API,
 * the algorithms and the device code share.
 *
 * A leaf header: no includes, usable by every layer and by both compilers.
 * The lists are X-macros so that names, sizes and instances cannot drift
 * apart. `X(name, bytes)`: the enumerator is RG_<name>.
 */
#ifndef RG_TYPES_H
#define RG_TYPES_H

/* Those that can be reduced, and those that can only be moved. */
#define RG_DTYPE_REDUCE_LIST(X)                                                \
    X(i8, 1)                                                                   \
    X(u8, 1)                                                                   \
    X(i16, 2)                                                                  \
    X(u16, 2)                                                                  \
    X(i32, 4)                                                                  \
    X(u32, 4)                                                                  \
    X(i64, 8)                                                                  \
    X(u64, 8)                                                                  \
    X(f16, 2)                                                                  \
    X(bf16, 2)                                                                 \
    X(f32, 4)                                                                  \
    X(f64, 8)

#define RG_DTYPE_COPY_LIST(X)                                                  \
    X(f8e4m3, 1)                                                               \
    X(f8e5m2, 1)

#define RG_DTYPE_LIST(X)                                                       \
    RG_DTYPE_REDUCE_LIST(X)                                                    \
    RG_DTYPE_COPY_LIST(X)

/* X(signed, unsigned): two's complement integers of one size. */
#define RG_DTYPE_SIGN_LIST(X)                                                  \
    X(i8, u8)                                                                  \
    X(i16, u16)                                                                \
    X(i32, u32)                                                                \
    X(i64, u64)

/* Of numbers; integers' bits are the same with a sign and without. */
#define RG_OP_WRAP_LIST(X)                                                     \
    X(sum)                                                                     \
    X(prod)

#define RG_OP_ORDER_LIST(X)                                                    \
    X(min)                                                                     \
    X(max)                                                                     \
    X(avg)

/* Of integers only; a sign makes no difference either. */
#define RG_OP_BITS_LIST(X)                                                     \
    X(band)                                                                    \
    X(bor)                                                                     \
    X(bxor)

#define RG_OP_LIST(X)                                                          \
    RG_OP_WRAP_LIST(X)                                                         \
    RG_OP_ORDER_LIST(X)                                                        \
    RG_OP_BITS_LIST(X)

#define RG_COLLECTIVE_LIST(X)                                                  \
    X(all_reduce)                                                              \
    X(all_gather)                                                              \
    X(reduce_scatter)                                                          \
    X(broadcast)                                                               \
    X(reduce)                                                                  \
    X(all_to_all)                                                              \
    X(gather)                                                                  \
    X(scatter)                                                                 \
    X(barrier)                                                                 \
    X(all_to_all_v)                                                            \
    X(sendrecv)

#define RG_X(name, bytes) RG_##name,
enum rg_dtype { RG_DTYPE_LIST(RG_X) RG_DTYPE_COUNT };
#undef RG_X

#define RG_X(name) RG_##name,
enum rg_op { RG_OP_LIST(RG_X) RG_OP_COUNT };
#undef RG_X

#define RG_X(name) RG_COLL_##name,
enum rg_collective {
    RG_COLLECTIVE_LIST(RG_X) RG_COLL_COUNT,
    /* What is laid out, launched and recovered like a collective and is none:
     * no table names it, and no rule chooses it (rg_transfer_probe). */
    RG_COLL_transfer = RG_COLL_COUNT,
    RG_COLL_AREAS /* kinds of algorithms that have areas in a workspace */
};
#undef RG_X

enum { RG_GROUP_MAX = 64 }; /* messages of one launch */

enum rg_device_kind { RG_DEVICE_EMU = 0, RG_DEVICE_CUDA = 1 };

enum rg_backend { RG_BACKEND_UNSET = 0, RG_BACKEND_LEGACY, RG_BACKEND_NEW };

enum rg_route_kind {
    RG_ROUTE_NULL = 0, /* unreachable: every call is unavailable */
    RG_ROUTE_P2P,
    RG_ROUTE_RDMA,
    RG_ROUTE_GIN,
    RG_ROUTE_PROXY,
    RG_ROUTE_SELF, /* the rank's own region */
    RG_ROUTE_HOST, /* no pair's: the legacy backend's transfers by the host */
    RG_ROUTE_COUNT
};

#endif
