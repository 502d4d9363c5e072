/*
 * Signals: 64-bit words in a workspace generation, one publisher each,
 * monotonic, compared by signed difference, zero at the generation's start.
 * Set and Add mean the same on every route.
 */
#ifndef RG_DEVICE_SIGNAL_H
#define RG_DEVICE_SIGNAL_H

#include "runtime/device/dev.h"

enum rg_signal_op {
    RG_SIGNAL_SET = 0,
    RG_SIGNAL_ADD = 1,
    /* Set, where nobody waits for it soon, and which stands for what was read
     * and used, nothing else: a route may keep it until there is more for that
     * peer, or for a little while. */
    RG_SIGNAL_CREDIT = 2
};

/* 1 once `word` has reached `value`, also across a wrap. */
RG_FN int rg_signal_reached(uint64_t word, uint64_t value)
{
    return (int64_t)(word - value) >= 0;
}

#endif
