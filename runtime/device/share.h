/* How elements are shared among channels and cut into parts and chunks. */
#ifndef RG_DEVICE_SHARE_H
#define RG_DEVICE_SHARE_H

#include "runtime/device/elem.h"
#include "runtime/device/team.h"

enum { RG_GRAIN = 16 }; /* bytes: shares and chunks start at multiples */

RG_FN uint64_t rg_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

RG_FN uint64_t rg_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Bytes rounded down to a grain, for chunk sizes. */
RG_FN uint64_t rg_chunk_round(uint64_t bytes)
{
    return bytes / RG_GRAIN * RG_GRAIN;
}

/* Elements rounded up to whole grains. */
RG_FN uint64_t rg_part_round(uint64_t elems)
{
    const uint64_t grain = RG_GRAIN / sizeof(rg_elem);

    return (elems + grain - 1) / grain * grain;
}

/*
 * What a team does of an algorithm whose channels have two roles. Given two
 * teams a channel each has one; fewer have both, and several channels.
 */
struct rg_roles {
    int channel, step; /* channels are channel, channel + step, ... */
    int first, second; /* whether it has the role */
};

RG_FN struct rg_roles rg_roles_of(const struct rg_team *team, int channels)
{
    const int split = team->count >= 2 * channels;
    struct rg_roles roles;

    roles.channel = split ? team->index / 2 : team->index;
    roles.step = split ? team->count / 2 : team->count;
    roles.first = !split || team->index % 2 == 0;
    roles.second = !split || team->index % 2 == 1;
    return roles;
}

/* Elements [begin, end) of n for channel `index` of `count`, by grains. */
RG_FN void rg_share_elems(uint64_t n, int index, int count, uint64_t *begin_out,
                          uint64_t *end_out)
{
    const uint64_t grain = RG_GRAIN / sizeof(rg_elem);

    rg_share(rg_part_round(n) / grain, index, count, begin_out, end_out);
    *begin_out = rg_min_u64(*begin_out * grain, n);
    *end_out = rg_min_u64(*end_out * grain, n);
}

#endif
