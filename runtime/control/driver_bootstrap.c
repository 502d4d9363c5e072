#include "runtime/control/driver_bootstrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/control/driver_socket.h"
#include "runtime/control/wire.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

enum {
    BLOCK_BYTES = 512, /* of the exchange: holds any ADDRESS frame */
    BACKLOG_SPARE = 16 /* connections beyond one a rank */
};

/* Every rank's message of this round, by rank; freed by messages_free. */
static void messages_free(struct rg_message **messages, int count)
{
    for (int rank = 0; messages && rank < count; rank++)
        rg_message_unref(messages[rank]);
    free(messages);
}

static int block_encode(const struct rg_message *message, unsigned char *block)
{
    unsigned char *frame;
    size_t bytes;
    int rc = rg_wire_encode(message, &frame, &bytes);

    if (rc)
        return rc;
    if (bytes <= BLOCK_BYTES)
        memcpy(block, frame, bytes);
    else
        rc = RG_EPROTO;
    free(frame);
    return rc;
}

static int block_decode(const unsigned char *block, int rank,
                        struct rg_message **message_out)
{
    size_t bytes;
    int rc = rg_wire_length(block, BLOCK_BYTES - RG_WIRE_PREFIX, &bytes);

    if (!rc)
        rc = rg_wire_decode(block + RG_WIRE_PREFIX, bytes, message_out);
    if (rc)
        rg_log(RG_LOG_ERROR, rank, "malformed block in the start exchange");
    return rc;
}

/* One round: our message to all, all messages to us. */
static int exchange(const struct rg_driver_config *config,
                    const struct rg_message *own,
                    struct rg_message ***messages_out)
{
    int size = config->world_size;
    unsigned char block[BLOCK_BYTES] = {0};
    unsigned char *blocks = calloc((size_t)size, BLOCK_BYTES);
    struct rg_message **messages = calloc((size_t)size, sizeof(*messages));
    int rc = blocks && messages ? RG_OK : RG_ENOMEM;

    /* An empty block is malformed: the others learn of it. */
    if (!rc && block_encode(own, block))
        memset(block, 0, sizeof(block));
    if (!rc)
        rc = config->allgather(config->allgather_arg, block, blocks,
                               BLOCK_BYTES);
    for (int rank = 0; rank < size && !rc; rank++)
        rc = block_decode(blocks + (size_t)rank * BLOCK_BYTES,
                          config->world_rank, &messages[rank]);
    free(blocks);
    if (rc) {
        messages_free(messages, size);
        return rc;
    }
    *messages_out = messages;
    return RG_OK;
}

/*
 * This rank's status, or that of the first rank that could not go on. Who
 * could not has said why; one of the others says whom all are waiting for.
 */
static int worst_status(const struct rg_driver_config *config,
                        struct rg_message *const *messages)
{
    int failed = 0;
    int sound = 0;

    while (failed < config->world_size && !messages[failed]->status)
        failed++;
    while (sound < config->world_size && messages[sound]->status)
        sound++;
    if (failed == config->world_size)
        return RG_OK;
    if (messages[config->world_rank]->status)
        return messages[config->world_rank]->status;
    rg_log(sound == config->world_rank ? RG_LOG_ERROR : RG_LOG_DEBUG,
           config->world_rank, "the job cannot start without rank %d", failed);
    return messages[failed]->status;
}

int rg_bootstrap_agree(const struct rg_driver_config *config, int status)
{
    struct rg_message *own = rg_message_create(RG_MSG_ADDRESS, 0);
    struct rg_message **messages;
    int rc = RG_ENOMEM;

    if (own) {
        own->status = status;
        rc = exchange(config, own, &messages);
    }
    if (!rc) {
        rc = worst_status(config, messages);
        messages_free(messages, config->world_size);
    }
    rg_message_unref(own);
    return rc;
}

static void set_host(struct rg_address *address,
                     const struct rg_message *message, const char *own_host)
{
    memcpy(address->host_id, message->info.host_id, sizeof(address->host_id));
    address->process = message->incarnation ? message->incarnation : 1;
    address->same_host =
        !strncmp(address->host_id, own_host, sizeof(address->host_id) - 1);
}

/* Round 1: host identities, and rank 0's secret. */
static int exchange_hosts(const struct rg_driver_config *config,
                          struct rg_message *own,
                          struct rg_bootstrap_result *result)
{
    struct rg_message **messages;
    unsigned char secret[RG_SECRET_BYTES];
    int rc;

    if (getrandom(secret, sizeof(secret), 0) != sizeof(secret)) {
        rg_log(RG_LOG_ERROR, config->world_rank,
               "cannot read random bytes: %m");
        own->status = RG_ESYSTEM;
    }
    snprintf(own->info.host_id, sizeof(own->info.host_id), "%s",
             config->host_id);
    rc = rg_message_set_data(own, secret, sizeof(secret));
    if (!rc)
        rc = exchange(config, own, &messages);
    if (rc)
        return rc;
    rc = worst_status(config, messages);
    if (!rc && messages[0]->bytes != RG_SECRET_BYTES)
        rc = RG_EPROTO;
    if (!rc)
        memcpy(result->secret, messages[0]->data, RG_SECRET_BYTES);
    for (int rank = 0; rank < config->world_size; rank++)
        set_host(&result->addresses[rank], messages[rank], config->host_id);
    messages_free(messages, config->world_size);
    return rc;
}

static int listen_all(const struct rg_driver_config *config,
                      struct rg_endpoint *endpoint,
                      struct rg_bootstrap_result *result)
{
    int backlog = config->world_size + BACKLOG_SPARE;
    int rank = config->world_rank;
    int local = 1;
    int rc;

    for (int i = 0; i < config->world_size; i++)
        local &= result->addresses[i].same_host;
    rc = rg_socket_own_address(rank, local, endpoint->address);
    if (!rc)
        rc = rg_socket_listen_tcp(rank, endpoint, backlog, &result->tcp_fd);
    if (!rc)
        rc = rg_socket_listen_unix(rank, endpoint, backlog, &result->unix_fd);
    return rc;
}

/* Round 2: where each listens, or why it cannot. */
static int exchange_endpoints(const struct rg_driver_config *config,
                              struct rg_message *own,
                              struct rg_bootstrap_result *result)
{
    struct rg_message **messages;
    int rc;

    own->status = listen_all(config, &own->endpoint, result);
    rc = rg_message_set_data(own, NULL, 0);
    if (!rc)
        rc = exchange(config, own, &messages);
    if (rc)
        return rc;
    rc = worst_status(config, messages);
    for (int rank = 0; rank < config->world_size; rank++)
        result->addresses[rank].endpoint = messages[rank]->endpoint;
    messages_free(messages, config->world_size);
    return rc;
}

static void result_destroy(struct rg_bootstrap_result *result)
{
    if (result->tcp_fd >= 0)
        close(result->tcp_fd);
    if (result->unix_fd >= 0)
        close(result->unix_fd);
    free(result->addresses);
}

int rg_bootstrap_run(const struct rg_driver_config *config, int status,
                     struct rg_bootstrap_result *result_out)
{
    struct rg_bootstrap_result result = {.tcp_fd = -1, .unix_fd = -1};
    struct rg_message *own = rg_message_create(RG_MSG_ADDRESS, 0);
    int rc = RG_ENOMEM;

    result.addresses =
        calloc((size_t)config->world_size, sizeof(*result.addresses));
    if (!own || !result.addresses)
        goto error;
    own->status = status;
    rc = exchange_hosts(config, own, &result);
    if (!rc)
        rc = exchange_endpoints(config, own, &result);
    if (rc)
        goto error;
    rg_message_unref(own);
    *result_out = result;
    return RG_OK;
error:
    rg_message_unref(own);
    result_destroy(&result);
    return rc;
}

/* ---- tickets ------------------------------------------------------------ */

/* One ADDRESS frame a rank, in their order; each with the secret. */
static int address_frame(const struct rg_bootstrap_result *result, int rank,
                         unsigned char **frame_out, size_t *bytes_out)
{
    const struct rg_address *address = &result->addresses[rank];
    struct rg_message *message = rg_message_create(RG_MSG_ADDRESS, 0);
    int rc = RG_ENOMEM;

    if (message &&
        !rg_message_set_data(message, result->secret, sizeof(result->secret))) {
        message->incarnation = address->process;
        message->endpoint = address->endpoint;
        memcpy(message->info.host_id, address->host_id,
               sizeof(address->host_id));
        rc = rg_wire_encode(message, frame_out, bytes_out);
    }
    rg_message_unref(message);
    return rc;
}

int rg_bootstrap_ticket(const struct rg_bootstrap_result *result, int size,
                        unsigned char **ticket_out, size_t *bytes_out)
{
    unsigned char *ticket = malloc((size_t)size * BLOCK_BYTES);
    size_t used = 0;
    int rc = ticket ? RG_OK : RG_ENOMEM;

    for (int rank = 0; rank < size && !rc; rank++) {
        unsigned char *frame;
        size_t bytes;

        rc = address_frame(result, rank, &frame, &bytes);
        if (rc)
            break;
        memcpy(ticket + used, frame, bytes);
        used += bytes;
        free(frame);
    }
    if (rc) {
        free(ticket);
        return rc;
    }
    *ticket_out = ticket;
    *bytes_out = used;
    return RG_OK;
}

/* Takes the next rank's frame off the ticket. */
static int read_address(const struct rg_driver_config *config, size_t *at,
                        struct rg_address *address, unsigned char *secret)
{
    size_t left = config->ticket_bytes - *at;
    struct rg_message *message;
    size_t bytes;
    int rc;

    if (left < RG_WIRE_PREFIX)
        return RG_EPROTO;
    rc = rg_wire_length(config->ticket + *at, left - RG_WIRE_PREFIX, &bytes);
    if (!rc)
        rc = rg_wire_decode(config->ticket + *at + RG_WIRE_PREFIX, bytes,
                            &message);
    if (rc)
        return rc;
    *at += RG_WIRE_PREFIX + bytes;
    if (message->kind != RG_MSG_ADDRESS || message->bytes != RG_SECRET_BYTES) {
        rc = RG_EPROTO;
    } else {
        memcpy(secret, message->data, RG_SECRET_BYTES);
        address->endpoint = message->endpoint;
        set_host(address, message, config->host_id);
    }
    rg_message_unref(message);
    return rc;
}

int rg_bootstrap_enter(const struct rg_driver_config *config,
                       struct rg_bootstrap_result *result_out)
{
    struct rg_bootstrap_result result = {.tcp_fd = -1, .unix_fd = -1};
    struct rg_address *own;
    size_t at = 0;
    int rc = RG_OK;

    result.addresses =
        calloc((size_t)config->world_size, sizeof(*result.addresses));
    if (!result.addresses)
        return RG_ENOMEM;
    for (int rank = 0; rank < config->world_size && !rc; rank++)
        rc = read_address(config, &at, &result.addresses[rank], result.secret);
    if (!rc && at != config->ticket_bytes)
        rc = RG_EPROTO;
    if (rc == RG_EPROTO)
        rg_log(RG_LOG_ERROR, config->world_rank,
               "the ticket is not one of a job of %d ranks",
               config->world_size);
    own = &result.addresses[config->world_rank];
    own->process = config->process;
    own->same_host = 1;
    if (!rc)
        rc = listen_all(config, &own->endpoint, &result);
    if (rc) {
        result_destroy(&result);
        return rc;
    }
    *result_out = result;
    return RG_OK;
}
