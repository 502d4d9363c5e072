/*
 * Messages between members: their launches, and what becomes of their counts
 * when the view changes.
 */
#ifndef RG_EXEC_MESSAGES_H
#define RG_EXEC_MESSAGES_H

#include "runtime/exec/comm.h"

/*
 * What this member says of the epoch that is held, as rg_driver_quiesced()
 * takes it; freed by rg_pairs_fini(). RG_OK or RG_ENOMEM.
 */
int rg_messages_held(struct rg_comm *comm, struct rg_pairs *pairs_out);
/*
 * What the device is to know of them in the view in comm->view, which is not in
 * force yet: the epoch that has undone some, if the caller has not taken note
 * of it, or 0. From now on rg_comm_error() tells.
 */
uint64_t rg_messages_undone(struct rg_comm *comm);
/* The view in comm->view is in force: what it says of them is agreed. */
void rg_messages_settle(struct rg_comm *comm);

#endif
