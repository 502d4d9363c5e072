#include "harness/probe.h"

#include <string.h>

/* Where the blocks lie; sources begin as device memory does, aligned. */
enum { REPORT_AT = 256, SOURCES_AT = 512 };

_Static_assert(sizeof(struct rg_transfer_request) <= REPORT_AT &&
                   sizeof(struct rg_transfer_report) <= SOURCES_AT - REPORT_AT,
               "blocks do not overlap");

int rg_probes_create(struct rg_context *context, size_t source_bytes,
                     struct rg_probes *probes_out)
{
    struct rg_probes probes = {.context = context, .room = source_bytes};
    int status =
        rg_malloc(context, SOURCES_AT + source_bytes, (void **)&probes.memory);

    if (status != RG_OK)
        return status;
    status = rg_memset(context, probes.memory, 1, SOURCES_AT + source_bytes);
    if (status != RG_OK) {
        rg_free(context, probes.memory);
        return status;
    }
    *probes_out = probes;
    return RG_OK;
}

void rg_probes_destroy(struct rg_probes *probes)
{
    if (probes->memory)
        rg_free(probes->context, probes->memory);
    memset(probes, 0, sizeof *probes);
}

int rg_probes_ask(struct rg_probes *probes,
                  const struct rg_transfer_request *request)
{
    struct rg_transfer_request copy = *request;
    int status;

    if (rg_transfer_source_bytes(request) > probes->room)
        return RG_ENOSPC;
    copy.source = probes->memory + SOURCES_AT;
    status = rg_memcpy(probes->context, probes->memory, &copy, sizeof copy);
    if (status != RG_OK)
        return status;
    return rg_memset(probes->context, probes->memory + REPORT_AT, 0,
                     sizeof(struct rg_transfer_report));
}

int rg_probes_launch(const struct rg_probes *probes,
                     const struct rg_transfer_request *request,
                     struct rg_comm *comm, struct rg_stream *stream)
{
    return rg_transfer_probe(probes->memory, probes->memory + REPORT_AT,
                             request->lanes * request->bytes, comm, stream);
}

int rg_probes_read(const struct rg_probes *probes,
                   struct rg_transfer_report *report_out)
{
    return rg_memcpy(probes->context, report_out, probes->memory + REPORT_AT,
                     sizeof *report_out);
}
