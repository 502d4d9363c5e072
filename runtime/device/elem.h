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

/* What of a signed type would be the unsigned type's is not built (RG_OP_LIST,
 * exec/dispatch.c). */
#define RG_SIGNED_i8   1
#define RG_SIGNED_i16  1
#define RG_SIGNED_i32  1
#define RG_SIGNED_i64  1
#define RG_ELEM_SIGNED RG_CAT(RG_SIGNED_, RG_ELEM_NAME)

#define rg_elem_load    RG_CAT(rg_load_, RG_ELEM_NAME)
#define rg_elem_store   RG_CAT(rg_store_, RG_ELEM_NAME)
#define rg_elem_combine RG_CAT(rg_combine_, RG_ELEM_NAME)
#define rg_elem_finish  RG_CAT(rg_finish_, RG_ELEM_NAME)

#endif
