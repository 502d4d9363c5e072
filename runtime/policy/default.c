#include "runtime/policy/default.h"

const char *rg_policy_default(enum rg_device_kind kind, int direct)
{
    if (kind == RG_DEVICE_CUDA)
        return direct ? rg_policy_default_cuda : rg_policy_default_proxy;
    return direct ? rg_policy_default_emu : rg_policy_default_proxy_emu;
}
