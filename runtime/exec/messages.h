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
/* The view in comm->view is in force: what it says of them is agreed. */
void rg_messages_settle(struct rg_comm *comm);

#endif
