/*
 * A communicator's host proxy: its memory, which teams and the worker share,
 * and who is reached by it. Made with the communicator, since a device may
 * not be asked for memory while a team is parked.
 */
#ifndef RG_EXEC_PROXY_PATH_H
#define RG_EXEC_PROXY_PATH_H

#include "runtime/engine/engine.h"
#include "runtime/exec/comm.h"

/* RG_OK, also where the route is switched off, or the engine refuses. */
int rg_proxy_path_create(struct rg_comm *comm);
/* Accepts null. */
void rg_proxy_path_destroy(struct rg_proxy_path *path);

/* Null: this rank has no host proxy. */
struct rg_proxy *rg_proxy_path_proxy(const struct rg_proxy_path *path);
/* Zeroes: none. */
void rg_proxy_path_card(const struct rg_proxy_path *path,
                        struct rg_engine_card *card_out);

/* The recovery worker: a view is decided; its ways are looked for next. */
void rg_proxy_path_enter(struct rg_comm *comm, const struct rg_view *view);
/* Its routes are found: what the plan says of landing and FIFOs. */
void rg_proxy_path_plan(struct rg_comm *comm, struct rg_plan *plan);

#endif
