/*
 * The meeting point of all supervisors of a job: rank 0 holds it, all ranks
 * (rank 0 too) have one connection to it. It completes the workers' bootstrap
 * exchanges, hands tickets and restarts on, and ends a scenario when no worker
 * runs and none will.
 *
 *     rank r                hub                          rank q
 *       ALLGATHER  ------->  all in, or one absent
 *                  <-------  GATHERED      ------->
 *       RESTART q  ------->  q is not idle ------->      starts its worker
 *       IDLE       ------->                <-------      IDLE
 *                  <-------  RESULTs, DONE ------->
 *
 * It belongs to the thread of rank 0's supervisor and never blocks but in
 * rg_hub_accept().
 */
#ifndef RG_HARNESS_HUB_H
#define RG_HARNESS_HUB_H

#include "harness/launch.h"
#include "harness/wire.h"

struct rg_hub;

/* Where the hub listens; the same at all ranks, exchanged as it is. */
struct rg_hub_place {
    int32_t status; /* of its creation */
    uint16_t port;
    uint16_t unused;
    uint64_t key;  /* tells this job's supervisors from strangers */
    char host[64]; /* an address, as numbers */
};

/*
 * Listens; place_out is always filled, with the status returned. RG_OK,
 * RG_ENOMEM or RG_ESYSTEM.
 */
int rg_hub_create(const struct rg_job *job, struct rg_hub **hub_out,
                  struct rg_hub_place *place_out);
void rg_hub_destroy(struct rg_hub *hub); /* accepts null */
/* Connects this rank. RG_OK, or RG_ESYSTEM and the wire holds nothing. */
int rg_hub_connect(const struct rg_hub_place *place, const struct rg_job *job,
                   struct rg_wire *wire_out);
/* Waits for all ranks. RG_OK, RG_ETIMEDOUT, RG_ENOMEM or RG_ESYSTEM. */
int rg_hub_accept(struct rg_hub *hub, uint64_t deadline_ns);

/* Forgets the last scenario. */
void rg_hub_begin(struct rg_hub *hub);
/* The connection of a rank, to be polled. */
struct rg_wire *rg_hub_wire(struct rg_hub *hub, int rank);
/* Handles what came from a rank and sends what waits. */
void rg_hub_serve(struct rg_hub *hub, int rank);
/* 1 when all that was said has been sent. */
int rg_hub_is_quiet(struct rg_hub *hub);

#endif
