/* A seeded source of numbers: splitmix64 (Steele, Lea, Flood 2014). */
#ifndef RG_SIM_RANDOM_H
#define RG_SIM_RANDOM_H

#include <stdint.h>

struct sim_random {
    uint64_t state;
};

static inline uint64_t sim_random_next(struct sim_random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* 0 <= result < bound; bound >= 1. */
static inline uint64_t sim_random_below(struct sim_random *random,
                                        uint64_t bound)
{
    return sim_random_next(random) % bound;
}

/* low <= result <= high. */
static inline uint64_t sim_random_in(struct sim_random *random, uint64_t low,
                                     uint64_t high)
{
    return low + sim_random_below(random, high - low + 1);
}

/* True with this chance in 10000. */
static inline int sim_random_hits(struct sim_random *random, uint32_t chance)
{
    return sim_random_below(random, 10000) < chance;
}

#endif
