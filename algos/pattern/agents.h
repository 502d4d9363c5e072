/*
 * Agents: who stands in a node for the ranks of other nodes. A remote rank's
 * agent in a node of s ranks is the one whose local number is the remote's
 * modulo s; so each pair of nodes is crossed once by what is for a rank, and
 * the ranks of a node share the work.
 */
#ifndef RG_PATTERN_AGENTS_H
#define RG_PATTERN_AGENTS_H

#include "runtime/device/plan.h"

/* 1: `agent` stands in its node for rank r of another node. */
RG_FN int rg_agent_for(const struct rg_plan *plan, int agent, int r)
{
    const struct rg_place *a = &rg_plan_places(plan)[agent];
    const struct rg_place *b = &rg_plan_places(plan)[r];

    return a->node != b->node && b->local % a->size == a->local;
}

RG_FN int rg_agent_same_node(const struct rg_plan *plan, int a, int b)
{
    return rg_plan_places(plan)[a].node == rg_plan_places(plan)[b].node;
}

/* The j-th rank, from 1 on, for which it stands; -1: there are not so many. */
RG_FN int rg_agent_ward(const struct rg_plan *plan, int agent, int j)
{
    for (int r = 0; r < (int)plan->nranks; r++)
        if (rg_agent_for(plan, agent, r) && --j == 0)
            return r;
    return -1;
}

RG_FN int rg_agent_wards(const struct rg_plan *plan, int agent)
{
    int count = 0;

    for (int r = 0; r < (int)plan->nranks; r++)
        count += rg_agent_for(plan, agent, r);
    return count;
}

/* The most that any of the rank's node stands for. */
RG_FN int rg_agent_most(const struct rg_plan *plan, int rank)
{
    int most = 0;

    for (int p = 0; p < (int)plan->nranks; p++)
        if (rg_agent_same_node(plan, p, rank)) {
            const int wards = rg_agent_wards(plan, p);

            most = wards > most ? wards : most;
        }
    return most;
}

#endif
