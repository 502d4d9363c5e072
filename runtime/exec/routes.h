/*
 * A communicator's ways to its members. A way is found and proved once for
 * each process at its other end and kept over views; proving needs nothing of
 * the peer but that it does the same at about the same time.
 */
#ifndef RG_EXEC_ROUTES_H
#define RG_EXEC_ROUTES_H

#include "runtime/exec/comm.h"

/* What a rank signs its region with: changes with the process. */
uint64_t rg_comm_proof_salt(struct rg_region_key key, int world_rank);

/*
 * Ways to all members of the view, as far as they are not known: RG_OK when
 * all are proved, RG_EPENDING while some peer has not got that far, or
 * RG_EFAILED when there is none to some (logged); those missing in `missing`,
 * by slot. Also what mapping a region or a setting says.
 */
int rg_comm_routes_find(struct rg_comm *comm, const struct rg_view *view,
                        struct rg_bitset *missing);
/* The view's routes by dense rank; all have been found. */
void rg_comm_routes_dense(const struct rg_comm *comm,
                          const struct rg_view *view, struct rg_route *out);
/*
 * Logs (info) this rank's line of the route matrix, once the view's routes have
 * been found: a letter for each rank of the job, in groups of eight.
 *
 *     regroup[2]: routes of epoch 1: hh.phhhh h-     to ranks 0 to 9
 *
 * p: P2P, h: host proxy, r: RDMA, g: GIN, '.': this rank, '-': no member.
 */
void rg_comm_routes_report(const struct rg_comm *comm,
                           const struct rg_view *view);

#endif
