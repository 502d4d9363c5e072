/*
 * A stand-in for the runtime, for tests of the harness: eager host memory, no
 * routes, exchanges by the bootstrap. It can spoil one result.
 */
#ifndef RG_HARNESS_TEST_FAKE_RUNTIME_H
#define RG_HARNESS_TEST_FAKE_RUNTIME_H

#include "runtime/regroup.h"

/* Flips the first bit of element `index` of this rank's results. */
void fake_spoil(struct rg_context *context, long index);

#endif
