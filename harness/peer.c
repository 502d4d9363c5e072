#include "harness/peer.h"

#include <config.h>
#include <stdio.h>
#include <string.h>

#define RG_X(name) extern const struct rg_peer_type rg_peer_##name;
RG_BUILT_PEER_LIST(RG_X)
#undef RG_X

static const struct rg_peer_type *const types[] = {
#define RG_X(name) &rg_peer_##name,
    RG_BUILT_PEER_LIST(RG_X)
#undef RG_X
};

const char *rg_peer_name(int index)
{
    static const char *const names[RG_PEERS_MAX] = {"mpi", "nccl", "nccl-symm"};

    return names[index];
}

static const struct rg_peer_type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t n = strlen(types[i]->name);

        if (strncmp(name, types[i]->name, n) == 0 &&
            (name[n] == 0 || name[n] == '-'))
            return types[i];
    }
    return NULL;
}

static int refuse(const struct rg_peer_config *config, const char *why)
{
    if (config->job->rank == 0)
        fprintf(stderr, "peer %s: %s\n", config->name, why);
    return RG_ENOTSUP;
}

int rg_peer_create(const struct rg_peer_config *config,
                   enum rg_device_kind device, struct rg_peer *peer_out)
{
    const struct rg_peer_type *type = find_type(config->name);
    int status;

    if (!type)
        return refuse(config, "not in this build");
    if (type->device != device)
        return refuse(config, "does not run on this device");
    memset(peer_out, 0, sizeof *peer_out);
    peer_out->type = type;
    status = type->create(config, peer_out);
    if (status != RG_OK)
        rg_peer_destroy(peer_out);
    return status;
}

void rg_peer_destroy(struct rg_peer *peer)
{
    if (peer->type)
        peer->type->destroy(peer);
    memset(peer, 0, sizeof *peer);
}
