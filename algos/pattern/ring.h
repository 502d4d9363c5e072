/*
 * Neighbours and parts of a ring of n ranks. In step s of the reduce-scatter
 * half, rank r sends part (r - s) mod n and receives part (r - s - 1) mod n;
 * after n - 1 steps it holds part (r + 1) mod n complete, and the all-gather
 * half goes on with the same formula.
 * Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
 * clusters of workstations", JPDC 69(2), 2009.
 */
#ifndef RG_PATTERN_RING_H
#define RG_PATTERN_RING_H

#include "runtime/device/dev.h"

RG_FN int rg_ring_next(int rank, int n)
{
    return rank + 1 == n ? 0 : rank + 1;
}

RG_FN int rg_ring_prev(int rank, int n)
{
    return rank == 0 ? n - 1 : rank - 1;
}

/* The part that arrives at `rank` in receive step t, 0 <= t <= 2n - 3. */
RG_FN int rg_ring_part(int rank, int t, int n)
{
    return (rank - t - 1 + 2 * n) % n;
}

#endif
