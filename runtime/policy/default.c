#include "runtime/policy/default.h"

const char *rg_policy_default(enum rg_device_kind kind, int direct)
{
    if (!direct)
        return rg_policy_default_proxy;
    return kind == RG_DEVICE_CUDA ? rg_policy_default_cuda
                                  : rg_policy_default_emu;
}
