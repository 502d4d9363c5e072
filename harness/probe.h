/*
 * One rank's blocks of device memory for transfer probes: a request, a report,
 * and the sources of payloads. Used by the rank's thread; graphs may hold the
 * blocks' addresses, so they stay for the set's life.
 */
#ifndef RG_HARNESS_PROBE_H
#define RG_HARNESS_PROBE_H

#include "algos/transfer/request.h"
#include "runtime/regroup.h"

struct rg_probes {
    struct rg_context *context; /* borrowed */
    unsigned char *memory;      /* device memory, owned */
    size_t room;                /* bytes of sources */
};

/* With room for sources of so many bytes. RG_OK or RG_ENOMEM. */
int rg_probes_create(struct rg_context *context, size_t source_bytes,
                     struct rg_probes *probes_out);
void rg_probes_destroy(struct rg_probes *probes); /* accepts a zeroed one */

/*
 * Puts a request (its `source` is filled in here) in force for the launches to
 * come, and clears the report. Nothing may be in flight. RG_ENOSPC: no room
 * for its sources.
 */
int rg_probes_ask(struct rg_probes *probes,
                  const struct rg_transfer_request *request);
/* Launches, or captures, what is asked for. As rg_transfer_probe(). */
int rg_probes_launch(const struct rg_probes *probes,
                     const struct rg_transfer_request *request,
                     struct rg_comm *comm, struct rg_stream *stream);
/* What has been added up since. Nothing may be in flight. */
int rg_probes_read(const struct rg_probes *probes,
                   struct rg_transfer_report *report_out);

#endif
