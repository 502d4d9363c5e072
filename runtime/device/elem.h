/*
 * The one element type of this translation unit. Entry sources are compiled
 * once per data type with -DRG_ENTRY_DTYPE=<name>; algorithms say rg_elem and
 * never know which it is. Alone (for a descriptor) the type is f32.
 */
#ifndef RG_DEVICE_ELEM_H
#define RG_DEVICE_ELEM_H

#include "runtime/device/num.h"

#ifdef RG_ENTRY_DTYPE
#define RG_ELEM_NAME RG_ENTRY_DTYPE
#else
#define RG_ELEM_NAME f32
#endif

typedef RG_CAT(rg_storage_, RG_ELEM_NAME) rg_elem;
typedef RG_CAT(rg_accum_, RG_ELEM_NAME) rg_accum;

/* Signed integers are 1, unsigned ones 2, and all else is 0. */
#define RG_CLASS_i8   1
#define RG_CLASS_u8   2
#define RG_CLASS_i16  1
#define RG_CLASS_u16  2
#define RG_CLASS_i32  1
#define RG_CLASS_u32  2
#define RG_CLASS_i64  1
#define RG_CLASS_u64  2
#define RG_ELEM_CLASS RG_CAT(RG_CLASS_, RG_ELEM_NAME)

/*
 * The operations that are built for this type, and a table's entries of all
 * operations in the order of RG_OP_LIST: X(op) for those, NONE(op) for others.
 * What of a signed type would be the unsigned type's is not built
 * (exec/dispatch.c).
 */
#if RG_ELEM_CLASS == 1
#define RG_BUILT_LIST(X) RG_OP_ORDER_LIST(X)
#define RG_TABLE_LIST(NONE, X)                                                 \
    RG_OP_WRAP_LIST(NONE) RG_OP_ORDER_LIST(X) RG_OP_BITS_LIST(NONE)
#elif RG_ELEM_CLASS == 2
#define RG_BUILT_LIST(X)       RG_OP_LIST(X)
#define RG_TABLE_LIST(NONE, X) RG_OP_LIST(X)
#else
#define RG_BUILT_LIST(X) RG_OP_WRAP_LIST(X) RG_OP_ORDER_LIST(X)
#define RG_TABLE_LIST(NONE, X)                                                 \
    RG_OP_WRAP_LIST(X) RG_OP_ORDER_LIST(X) RG_OP_BITS_LIST(NONE)
#endif

#define rg_elem_load    RG_CAT(rg_load_, RG_ELEM_NAME)
#define rg_elem_store   RG_CAT(rg_store_, RG_ELEM_NAME)
#define rg_elem_combine RG_CAT(rg_combine_, RG_ELEM_NAME)
#define rg_elem_finish  RG_CAT(rg_finish_, RG_ELEM_NAME)

#endif
