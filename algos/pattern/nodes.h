/*
 * Columns over nodes of any size. The data of a step is cut into as many
 * columns as the largest node has ranks. In a node of s ranks, column c is
 * owned by the rank with local number c mod s: so each column has one owner a
 * node, and ranks of a small node own several.
 */
#ifndef RG_PATTERN_NODES_H
#define RG_PATTERN_NODES_H

#include "runtime/device/plan.h"

/* The first column >= c that `place` owns. */
RG_FN int rg_nodes_column(const struct rg_place *place, int c)
{
    const int size = (int)place->size;
    const int ahead = ((int)place->local - c % size + size) % size;

    return c + ahead;
}

/* 1: both own column c, in their nodes. */
RG_FN int rg_nodes_share(const struct rg_place *a, const struct rg_place *b,
                         int c)
{
    return c % (int)a->size == (int)a->local &&
           c % (int)b->size == (int)b->local;
}

/* The first column >= c of `columns` that both own; `columns`: none. */
RG_FN int rg_nodes_common(const struct rg_place *a, const struct rg_place *b,
                          int c, int columns)
{
    for (c = rg_nodes_column(a, c); c < columns; c += (int)a->size)
        if (rg_nodes_share(a, b, c))
            return c;
    return columns;
}

#endif
