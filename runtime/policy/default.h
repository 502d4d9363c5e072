/* The tables that apply where none is published: runtime/policy/default/. */
#ifndef RG_POLICY_DEFAULT_H
#define RG_POLICY_DEFAULT_H

#include "runtime/types.h"

/* The .rgp files as text; made when the library is built. */
extern const char rg_policy_default_emu[];
extern const char rg_policy_default_cuda[];

/* The one of a kind of device. */
const char *rg_policy_default(enum rg_device_kind kind);

#endif
