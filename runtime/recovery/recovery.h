/*
 * The recovery worker: one thread a communicator that lives through the
 * communicator's view changes. It takes the control plane's events, holds and
 * opens the device side (exec/hold.h), and keeps the ledger. It makes no
 * device call but to find the ways to new members.
 *
 *   control plane                 worker                      device
 *     PREPARE            -->        raise abort, hold   -->   safe point
 *                                   clean generation    -->   zeroed
 *     QUIESCED           <--        completed, claimed
 *     VIEW               -->        kept
 *     VIEW_ACK           <--
 *     ACTIVATE           -->        ledger, ways, plan  -->   copied, open
 *
 * The user's thread asks and waits; all that both touch is under comm->lock.
 */
#ifndef RG_RECOVERY_RECOVERY_H
#define RG_RECOVERY_RECOVERY_H

#include "runtime/exec/comm.h"
#include "runtime/recovery/ledger.h"

struct rg_notice_item {
    struct rg_notice_item *next;
    struct rg_notice notice;
};

struct rg_recovery {
    struct rg_comm *comm;
    pthread_t thread;

    /* The worker's own. */
    struct rg_view *pending; /* provisional; owned */
    uint64_t promised;       /* the epoch whose workspace is clean here */
    uint32_t workspace;      /* of that epoch */
    struct rg_selection *selection; /* what the pending view says; owned */
    uint64_t rules;          /* hash of those said to be the pending view's */
    int joining;             /* no view has been in force since the join */
    int finding;             /* decided, but not all ways are found yet */
    uint64_t finding_limit;  /* clock, ns */
    uint64_t failure;        /* of the mailbox, reported last */
    uint64_t legacy_failure; /* the same of the legacy backend */
    struct rg_bitset slots;  /* scratch */

    /* Under comm->lock. */
    pthread_cond_t changed;
    int stop;
    int failed;   /* creation cannot succeed: the status */
    int rejoin;   /* asked for by the user's thread */
    int withdraw; /* likewise: no longer */
    /* An invocation has failed here and the group has not changed since: what
     * is queued behind it waits for that. */
    int stopped;
    uint64_t epoch;    /* in force, its launches run; 0: none */
    uint64_t planned;  /* the last decided that was asked for */
    uint64_t refusals; /* requests the group has refused */
    int refusal;       /* why the last one was */
    struct rg_ledger ledger;
    struct rg_notice_item *first, *last; /* owned */
};

/* Starts the worker and asks to join; `rejoin` as in rg_join. */
int rg_recovery_create(struct rg_comm *comm, int rejoin);
/* Leaves the group; the device side stays held. Accepts null. */
void rg_recovery_destroy(struct rg_recovery *recovery);

#endif
