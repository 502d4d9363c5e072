/*
 * messages.*: send and receive while members die.
 *
 *     cases_messages.c     who dies; the judgement
 *     - - - - - - - - - - supervisors above, workers below - - - - - - - -
 *     messages_worker.c    a rank's part
 *
 * In each round every member sends a message to every other one and receives
 * one, in one group. Each word of a message says which of the pair's it is, so
 * one that is lost, doubled, stale or from an epoch that has ended is seen. A
 * worker reports the first thing that is not as it should be.
 */
#ifndef RG_VALIDATE_MESSAGES_H
#define RG_VALIDATE_MESSAGES_H

#include <stdint.h>

#include "harness/worker.h"
#include "validate/work.h"

enum { RG_MESSAGES_RANKS_MAX = 32 }; /* a send and a receive each: one group */

struct rg_messages_scenario {
    struct rg_work work;
    int32_t device; /* enum rg_device_kind */
    int32_t team_width;
    int32_t teams;
    int32_t victim;   /* dies amidst the rounds; -1: nobody */
    int32_t replay;   /* the rounds are of one captured group */
    int32_t withheld; /* one message is not sent, and its receiver is late */
    int32_t unused;
};

/* main() of a worker: returns its exit code. */
int rg_messages_worker(struct rg_worker *worker);

#endif
