/* The device backends that are built in. */
#include <config.h>

#include <stddef.h>

#include "runtime/exec/device.h"

const struct rg_device_ops *const rg_device_backends[] = {&rg_device_emu,
#ifdef HAVE_CUDA
                                                          &rg_device_cuda,
#endif
                                                          NULL};
