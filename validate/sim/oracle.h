/*
 * What must hold in every run, whatever goes wrong:
 *
 *  - an epoch has one view: two processes that live never enter different
 *    views of one epoch (which is also: no two sides both remove members, and
 *    one policy an epoch);
 *  - all who enter a view run by the same rules;
 *  - a seq completes in one view only;
 *  - committed_seq never decreases, and exceeds no survivor's completion;
 *  - first_seq exceeds every survivor's claims;
 *  - no more messages of a pair are done than either end has counted;
 *  - the commit floor exceeds no member's completion;
 *  - nobody enters a view that does not name its incarnation as active;
 *  - a workspace in force can be written to by nobody outside the view.
 *  - on a sound network a coordinator that lives is not replaced;
 *  - those who may decide go on without the others while they are cut off.
 *
 * A view that only dead processes have entered binds nobody.
 */
#ifndef RG_SIM_ORACLE_H
#define RG_SIM_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/control/view.h"

struct sim_world;

/* A view as it was entered, and what happened in it. */
struct sim_version {
    struct sim_version *next; /* another view of the same epoch */
    struct rg_view *view;     /* one reference */
    uint64_t hash;
    uint64_t rules;    /* that its members run by */
    uint32_t *entered; /* [ranks] the life that entered it; 0: none */
    /* How many members have begun first_seq + i. */
    int *begun;
    size_t nbegun;
    /* All who are active in it have completed this; 0: not looked at since
     * somebody entered. */
    uint64_t floor;
};

struct sim_oracle {
    struct sim_version **epochs; /* [nepochs] lists by epoch */
    size_t nepochs;
    const struct sim_version **owners; /* [nowners] of seqs */
    size_t nowners;
    int is_broken;
    char verdict[256];
};

void sim_oracle_fini(struct sim_oracle *oracle);
/* The process enters the view; what it then works by. */
const struct sim_version *sim_oracle_enter(struct sim_world *world, int rank,
                                           struct rg_view *view,
                                           uint64_t rules);
/* The process begins the seq. */
void sim_oracle_begin(struct sim_world *world, int rank, uint64_t seq);
/* The process has completed the seq. */
void sim_oracle_complete(struct sim_world *world, int rank, uint64_t seq);
/* Whether every member has begun the seq. */
int sim_oracle_is_complete(const struct sim_version *version, uint64_t seq);
/* The process believes that all have completed up to the floor. */
void sim_oracle_floor(struct sim_world *world, int rank, uint64_t floor);
/* The group has been split for long: side 1 must be a group of its own. */
void sim_oracle_split(struct sim_world *world);
/* Why the job is not at rest; null: it is. */
const char *sim_oracle_unrest(const struct sim_world *world);
/* All is over: what must be true of a job at rest. */
void sim_oracle_rest(struct sim_world *world);
/* The first broken invariant is kept. */
void sim_oracle_break(struct sim_world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
