/* The device backends that are built in. */
#include <config.h>

#include <stddef.h>

#include "runtime/exec/device.h"

#define RG_X(name) &rg_device_##name,
const struct rg_device_ops *const rg_device_backends[] = {
    RG_BUILT_DEVICE_LIST(RG_X) NULL};
#undef RG_X
