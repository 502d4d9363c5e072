/*
 * The host's side of a held word (device/mailbox.h): holding it, ordering what
 * the keeper is to do, and the helper thread that makes the launch that keeps
 * where no failed invocation does. Only the helper thread calls the device: a
 * device call may block for as long as a team is parked.
 *
 * All but create and destroy are for the recovery worker.
 */
#ifndef RG_EXEC_HOLD_H
#define RG_EXEC_HOLD_H

#include "runtime/exec/comm.h"

/* Starts the helper thread. RG_OK, RG_ENOMEM, RG_ESYSTEM. */
int rg_helper_create(struct rg_comm *comm);
/* Nobody keeps any more, or will by itself within RG_PARK_MS. Accepts null. */
void rg_helper_destroy(struct rg_helper *helper);

/*
 * What waits for a peer in the view's epoch, or will, ends aborted; nothing is
 * waited for. On either backend, whether or not the epoch is open.
 */
void rg_hold_abort(struct rg_comm *comm);
/*
 * Ends the epoch in force here: raises the abort word, has the control word
 * held, and waits until everything claimed has ended and a keeper waits for
 * orders. What is frozen is then in comm->held. Nothing to do where no plan is
 * in force. RG_ETIMEDOUT after timeout_ms.
 */
int rg_hold_begin(struct rg_comm *comm, int timeout_ms);
/*
 * Orders, carried out when they return; with no keeper yet, one is called.
 * RG_ECLOSED: it has left, its patience over; RG_ETIMEDOUT. A generation that
 * is clean is left alone; from then on it counts as used, for others may get to
 * the view that uses it while this rank does not.
 */
int rg_hold_clean(struct rg_comm *comm, uint32_t generation);
/* The plan in comm->plan, with every seq up to `ended` over. */
int rg_hold_open(struct rg_comm *comm, uint64_t ended);
/* The word stays held, and every later launch ends at once. */
int rg_hold_leave(struct rg_comm *comm);
/* The same if there is a keeper: before the communicator goes. */
void rg_hold_abandon(struct rg_comm *comm);

#endif
