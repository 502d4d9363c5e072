/*
 * Waiting on a host thread. Spinning is fastest while the other side runs on
 * a core of its own; a crowded host must hand the core over early, since the
 * other side may be waiting for it; a long wait naps.
 */
#include <sched.h>

#include "runtime/core/clock.h"
#include "runtime/exec/emu/emu.h"

enum {
    EMU_SPINS = 20000,      /* about 1 ms */
    EMU_SPINS_CROWDED = 40, /* about 2 us */
    EMU_YIELDS = 2000,
    EMU_NAP_NS = 50000
};

static void emu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void emu_relax(uint64_t polls, int crowded)
{
    const uint64_t spins = crowded ? EMU_SPINS_CROWDED : EMU_SPINS;

    if (polls < spins)
        emu_pause();
    else if (polls < spins + EMU_YIELDS)
        sched_yield();
    else
        rg_clock_sleep_ns(EMU_NAP_NS);
}
