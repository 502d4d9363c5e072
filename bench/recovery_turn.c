/* Whom the faults of recovery_perf hit, and when. */
#include "bench/recovery.h"

#define NS_PER_MS UINT64_C(1000000)

/* When the fault comes, behind the pause: anywhere in the loop. */
#define DELAY_SPAN_NS (20 * NS_PER_MS)

/* The n-th of the numbers that a seed stands for (splitmix64). */
static uint64_t draw(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int recovery_victim(const struct recovery_plan *plan,
                    const struct recovery_turn *turn, int size)
{
    const uint64_t random = draw(plan->seed, 2 * (uint64_t)turn->injection);

    switch ((enum recovery_role)plan->role) {
    case RECOVERY_COORDINATOR:
        return turn->coordinator;
    case RECOVERY_LEAF:
        return (turn->coordinator + 1 + (int)(random % (uint64_t)(size - 1))) %
               size;
    default:
        return (int)(random % (uint64_t)size);
    }
}

uint64_t recovery_delay_ns(const struct recovery_plan *plan, int injection)
{
    return (uint64_t)plan->pause_ms * NS_PER_MS +
           draw(plan->seed, 2 * (uint64_t)injection + 1) % DELAY_SPAN_NS;
}

void recovery_turn_next(struct recovery_turn *turn, int victim)
{
    turn->injection++;
    if (victim == turn->coordinator)
        turn->coordinator = victim == 0;
}

uint64_t recovery_stop_ns(const struct recovery_plan *plan)
{
    const int bound_ms = plan->deadline_ms + plan->window_ms;

    return (uint64_t)(2 * bound_ms + 500) * NS_PER_MS;
}
