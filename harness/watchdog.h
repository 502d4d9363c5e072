/*
 * -T: a thread that ends a rank which makes no progress. On expiry it prints
 * rg_comm_describe(), leaves the other ranks a second to print theirs, and
 * ends the process with RG_EXIT_TIMEOUT.
 */
#ifndef RG_HARNESS_WATCHDOG_H
#define RG_HARNESS_WATCHDOG_H

#include "runtime/regroup.h"

struct rg_watchdog;

/* seconds 0: never expires. The communicator may be set later, or null. */
int rg_watchdog_create(int rank, int seconds, struct rg_watchdog **dog_out);
/* Stops the thread. Accepts null. */
void rg_watchdog_destroy(struct rg_watchdog *dog);
/* Whom to describe; null before the communicator is destroyed. */
void rg_watchdog_watch(struct rg_watchdog *dog, struct rg_comm *comm);
/* Progress was made: the time starts anew. Any thread. */
void rg_watchdog_kick(struct rg_watchdog *dog);

#endif
