/*
 * What the ranks of a job tell each other before the control plane exists:
 * rounds of the launcher's exchange. After them the launcher is not used.
 */
#ifndef RG_CONTROL_DRIVER_BOOTSTRAP_H
#define RG_CONTROL_DRIVER_BOOTSTRAP_H

#include "runtime/control/driver.h"
#include "runtime/control/message.h"

/* What is known of every process of the job. */
struct rg_address {
    struct rg_endpoint endpoint;
    char host_id[RG_HOST_ID_BYTES];
    uint32_t process; /* which life of the rank listens there */
    int same_host;    /* its host id is ours */
};

struct rg_bootstrap_result {
    struct rg_address *addresses; /* [world_size]; the caller's to free */
    unsigned char secret[RG_SECRET_BYTES]; /* made by rank 0 */
    int tcp_fd;  /* listening for control links; the caller's */
    int unix_fd; /* listening for lifelines; the caller's */
};

/*
 * Collective over the world; `status` is why this rank cannot start, or RG_OK.
 * A rank that cannot, or that cannot listen, makes it fail at every rank, so
 * that none is left waiting. RG_OK, RG_ENOMEM, RG_ESYSTEM, RG_ECONFIG,
 * RG_EPROTO.
 */
int rg_bootstrap_run(const struct rg_driver_config *config, int status,
                     struct rg_bootstrap_result *result_out);
/*
 * Collective over the world: RG_OK if that is the status of every rank, else
 * this rank's own one, else that of the first that has another.
 */
int rg_bootstrap_agree(const struct rg_driver_config *config, int status);

/* The same from a ticket, which is not trusted to be well-formed. */
int rg_bootstrap_enter(const struct rg_driver_config *config,
                       struct rg_bootstrap_result *result_out);
/* A ticket, freed by the caller. RG_OK or RG_ENOMEM. */
int rg_bootstrap_ticket(const struct rg_bootstrap_result *result, int size,
                        unsigned char **ticket_out, size_t *bytes_out);

#endif
