/* The tables that apply where none is published: runtime/policy/default/. */
#ifndef RG_POLICY_DEFAULT_H
#define RG_POLICY_DEFAULT_H

#include "runtime/types.h"

/* The .rgp files as text; made when the library is built. */
extern const char rg_policy_default_emu[];
extern const char rg_policy_default_cuda[];
extern const char rg_policy_default_proxy[];
extern const char rg_policy_default_proxy_emu[];

/* The one of a kind of device, where all pairs have direct access, or not. */
const char *rg_policy_default(enum rg_device_kind kind, int direct);

#endif
