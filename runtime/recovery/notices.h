/*
 * The notices that the user has not taken yet: a queue of fixed room that
 * keeps the newest. A value without threads or clocks; its owner guards it.
 */
#ifndef RG_RECOVERY_NOTICES_H
#define RG_RECOVERY_NOTICES_H

#include "runtime/regroup.h"

struct rg_notices {
    struct rg_notice items[RG_NOTICES_MAX]; /* a ring */
    int first;
    int count;
};

/* The oldest makes room. */
void rg_notices_push(struct rg_notices *notices,
                     const struct rg_notice *notice);
/* The oldest; 0: there is none. */
int rg_notices_pop(struct rg_notices *notices, struct rg_notice *notice_out);

#endif
