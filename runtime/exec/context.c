#include "runtime/exec/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/address.h"
#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/engine/engine.h"
#include "runtime/exec/comm.h"
#include "runtime/exec/routes.h"
#include "runtime/exec/select.h"
#include "runtime/policy/table.h"
#include "runtime/transfer/route_table.h"

/* Bytes; of memory files on emu, whose pages exist once they are touched. */
#define CONTEXT_REGION_EMU  (640ull << 20)
#define CONTEXT_REGION_CUDA (4ull << 30)

/*
 * Two ranks are on one host when they share a kernel (boot id), a network
 * namespace and a /dev/shm: what lets them reach each other's memory.
 */
static void host_identity(char *host_id_out, size_t bytes)
{
    const char *given = getenv("RG_HOST_ID");
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    uint64_t hash = RG_HASH_INIT;
    struct stat place;
    char line[64] = "";

    if (file) {
        if (fgets(line, sizeof line, file))
            hash = rg_hash(hash, line, strlen(line));
        fclose(file);
    }
    if (stat("/proc/self/ns/net", &place) == 0)
        hash = rg_hash(hash, &place.st_ino, sizeof place.st_ino);
    if (stat("/dev/shm", &place) == 0)
        hash = rg_hash(hash, &place.st_dev, sizeof place.st_dev);
    if (given && *given)
        snprintf(host_id_out, bytes, "%s", given);
    else
        snprintf(host_id_out, bytes, "host-%016llx", (unsigned long long)hash);
}

static int preference_of(const char *variable, enum rg_backend *preference)
{
    const char *value = getenv(variable);
    enum rg_backend said = RG_BACKEND_LEGACY;

    if (!value)
        return RG_OK;
    if (strcmp(value, "new") == 0)
        said = RG_BACKEND_NEW;
    else if (strcmp(value, "legacy") != 0) {
        rg_log(RG_LOG_ERROR, -1, "%s is \"%s\": expected legacy or new",
               variable, value);
        return RG_ECONFIG;
    }
    if (*preference != RG_BACKEND_UNSET && *preference != said) {
        rg_log(RG_LOG_ERROR, -1, "%s contradicts the other preference variable",
               variable);
        return RG_ECONFIG;
    }
    *preference = said;
    return RG_OK;
}

/* What a launch does that has failed: park (the default) or exit. */
static int context_on_failure(struct rg_context *context)
{
    const char *value = getenv("RG_ON_FAILURE");

    context->parks = !value || strcmp(value, "exit") != 0;
    if (!value || !context->parks || strcmp(value, "park") == 0)
        return RG_OK;
    rg_log(RG_LOG_ERROR, -1, "RG_ON_FAILURE is \"%s\": expected park or exit",
           value);
    return RG_ECONFIG;
}

/* The configuration decides, else the variables, else legacy. */
static int context_preference(struct rg_context *context)
{
    enum rg_backend said = RG_BACKEND_UNSET;

    if (preference_of("RG_PREFERRED_GPU_COLLECTIVE_BACKEND", &said) ||
        preference_of("MOONCAKE_PG_PREFERRED_GPU_COLLECTIVE_BACKEND", &said))
        return RG_ECONFIG;
    if (context->config.backend != RG_BACKEND_UNSET)
        said = context->config.backend;
    context->preference = said == RG_BACKEND_UNSET ? RG_BACKEND_LEGACY : said;
    return RG_OK;
}

static int config_check(const struct rg_context_config *config)
{
    if (config->size >= 1 && config->size <= RG_MAX_SLOTS &&
        config->rank >= 0 && config->rank < config->size &&
        (config->bootstrap.allgather || config->ticket) && config->algos &&
        config->algos[0] &&
        (config->capacity == 0 || (config->capacity >= config->size &&
                                   config->capacity <= RG_MAX_SLOTS)) &&
        config->emu_team_width >= 0 && config->emu_max_teams >= 0)
        return RG_OK;
    rg_log(RG_LOG_ERROR, config->rank, "invalid context configuration");
    return RG_EINVAL;
}

static int read_table(const char *path, char **text_out)
{
    struct rg_policy_error error;
    char line[512];
    size_t bytes;
    const int status = rg_policy_read(path, text_out, &bytes, &error);

    if (status == RG_OK && strlen(*text_out) != bytes) {
        free(*text_out);
        rg_log(RG_LOG_ERROR, -1, "%s: a zero byte", path);
        return RG_EPOLICY;
    }
    if (status == RG_EPOLICY) {
        rg_policy_error_print(&error, path, line, sizeof line);
        rg_log(RG_LOG_ERROR, -1, "%s", line);
    }
    return status;
}

/* What this rank asks for: the configuration decides, else the variables. */
static int context_selection(struct rg_context *context)
{
    const struct rg_context_config *config = &context->config;
    const char *path = getenv("RG_POLICY");
    const char *overrides =
        config->algo_override ? config->algo_override : getenv("RG_ALGO");
    char *table = NULL;
    int status = RG_OK;

    if (!config->policy && path && *path)
        status = read_table(path, &table);
    if (status == RG_OK)
        status = rg_policy_compose(overrides,
                                   config->policy ? config->policy : table,
                                   config->policy ? "policy" : path,
                                   config->algos, &context->selection);
    free(table);
    return status;
}

/* Variables that are read where they are used, and then by each rank. */
static int context_variables(struct rg_context *context)
{
    char address[RG_ADDRESS_BYTES];
    int unused, status;

    status = context_on_failure(context);
    if (status == RG_OK)
        status = rg_route_check();
    if (status == RG_OK)
        status = rg_engine_setting(-1);
    if (status == RG_OK && rg_address_is_given())
        status = rg_address_own(-1, address, sizeof address);
    return status == RG_OK ? rg_driver_fences(-1, &unused) : status;
}

static int context_configure(struct rg_context *context,
                             const struct rg_context_config *config)
{
    int status;

    context->config = *config;
    if (!context->config.capacity)
        context->config.capacity = config->size;
    if (!context->config.emu_team_width)
        context->config.emu_team_width = 1;
    if (!context->config.first_seq)
        context->config.first_seq = 1;
    status = context_selection(context);
    if (status == RG_OK)
        status = rg_settings_load(&context->settings);
    if (status == RG_OK)
        status = context_variables(context);
    if (status)
        return status;
    if (config->region_bytes)
        context->settings.region_bytes = config->region_bytes;
    if (!context->settings.region_bytes)
        context->settings.region_bytes = config->device == RG_DEVICE_CUDA
                                             ? CONTEXT_REGION_CUDA
                                             : CONTEXT_REGION_EMU;
    host_identity(context->host_id, sizeof context->host_id);
    context->ops = rg_device_ops_of(config->device);
    if (!context->ops) {
        rg_log(RG_LOG_ERROR, config->rank, "this build has no CUDA device");
        return RG_ENOTSUP;
    }
    return context_preference(context);
}

static int context_open_driver(struct rg_context *context)
{
    const struct rg_driver_config config = {
        .world_rank = context->config.rank,
        .world_size = context->config.size,
        .allgather = context->config.bootstrap.allgather,
        .allgather_arg = context->config.bootstrap.arg,
        .process = context->config.process,
        .ticket = context->config.ticket,
        .ticket_bytes = context->config.ticket_bytes,
        .host_id = context->host_id,
        .settings = &context->settings};

    return rg_driver_create(&config, &context->driver);
}

/* Rank 0's is the one that the first view publishes. */
static int context_check_selection(const struct rg_context *context)
{
    struct rg_layout layout;
    int status;

    if (context->config.rank > 0 || context->config.ticket)
        return RG_OK;
    status = rg_comm_layout(context, &layout);
    return status ? status : rg_policy_check(&layout, context->selection);
}

static int context_open_device(struct rg_context *context)
{
    const struct rg_device_config config = {
        .ordinal = context->config.device_ordinal,
        .world_rank = context->config.rank,
        .world_size = context->config.size,
        .team_width = context->config.emu_team_width,
        .max_teams = context->config.emu_max_teams,
        .host_id = context->host_id,
        .algos = context->config.algos};
    struct rg_memory memory = {context->ops->memory, NULL};
    int status = context->ops->open(&config, &context->device);

    if (status)
        return status;
    memory.device = context->device;
    status =
        rg_service_create(&memory, context->config.rank, context->config.size,
                          context->settings.region_bytes, &context->service);
    if (status)
        return status;
    status = rg_service_proof_sign(
        context->service, rg_comm_proof_salt(rg_service_key(context->service),
                                             context->config.rank));
    if (status == RG_OK)
        status = context_check_selection(context);
    if (status)
        return status;
    return rg_driver_offer_fd(context->driver, context->service->fd);
}

/* What each rank tells the others before it goes on. */
struct context_word {
    int32_t status;
    int32_t mode; /* UNREAD: by who has not read its variables yet */
};

enum { UNREAD = -1 };

/*
 * Whoever coordinates goes by its own mode, and any rank may come to do so:
 * all have the same, or nobody goes on.
 */
static int context_compare(const struct rg_context_config *config,
                           const struct context_word *all)
{
    int other = 0;

    while (other < config->size && all[other].mode == all[0].mode)
        other++;
    if (other == config->size)
        return RG_OK;
    rg_log(config->rank ? RG_LOG_DEBUG : RG_LOG_ERROR, config->rank,
           "RG_MODE is %d at rank 0 and %d at rank %d: it must be the same at "
           "all ranks",
           all[0].mode, all[other].mode, other);
    return RG_ECONFIG;
}

/*
 * All ranks learn whether every rank can go on, so that none waits for one
 * that could not open its device.
 */
static int context_agree(const struct rg_context_config *config, int status,
                         int mode)
{
    const struct context_word mine = {status, mode};
    struct context_word *all;
    int worst;

    /* The others are under way already. */
    if (config->ticket)
        return status;
    all = calloc((size_t)config->size, sizeof *all);
    worst = all ? config->bootstrap.allgather(config->bootstrap.arg, &mine, all,
                                              sizeof mine)
                : RG_ENOMEM;
    for (int i = 0; all && worst == RG_OK && i < config->size; i++)
        worst = all[i].status;
    if (worst == RG_OK)
        worst = context_compare(config, all);
    free(all);
    return status ? status : worst;
}

/*
 * What is wrong with the variables is mostly wrong at all ranks: rank 0 looks
 * first, and what it has found nobody else says again.
 */
static int context_prepare(struct rg_context *context,
                           const struct rg_context_config *config)
{
    int status = RG_OK;

    if (config->rank == 0 || config->ticket)
        status = context_configure(context, config);
    status = context_agree(config, status, UNREAD);
    if (status == RG_OK && config->rank > 0 && !config->ticket)
        status = context_configure(context, config);
    return context_agree(config, status, (int)context->settings.mode);
}

int rg_context_create(const struct rg_context_config *config,
                      struct rg_context **context_out)
{
    struct rg_context *context;
    int status = config_check(config);

    if (status)
        return status;
    context = calloc(1, sizeof *context);
    if (!context)
        return RG_ENOMEM;
    status = context_prepare(context, config);
    if (status)
        goto error;
    /* The lifelines are open before the device is touched. */
    status = context_open_driver(context);
    if (status)
        goto error;
    status = context_agree(config, context_open_device(context),
                           (int)context->settings.mode);
    if (status)
        goto error;
    *context_out = context;
    return RG_OK;
error:
    rg_context_destroy(context);
    return status;
}

void rg_context_destroy(struct rg_context *context)
{
    if (!context)
        return;
    rg_driver_destroy(context->driver);
    rg_service_destroy(context->service);
    if (context->device)
        context->ops->close(context->device);
    free(context->selection);
    free(context);
}

const struct rg_device_ops *rg_device_ops_of(enum rg_device_kind kind)
{
    for (int i = 0; rg_device_backends[i]; i++)
        if (rg_device_backends[i]->kind == kind)
            return rg_device_backends[i];
    return NULL;
}

int rg_device_count(enum rg_device_kind kind)
{
    const struct rg_device_ops *ops = rg_device_ops_of(kind);

    return ops ? ops->count() : RG_ENOTSUP;
}

int rg_context_device_info(const struct rg_context *context,
                           struct rg_device_info *info_out)
{
    return context->ops->info(context->device, info_out);
}

int rg_context_ticket(struct rg_context *context, unsigned char **ticket_out,
                      size_t *bytes_out)
{
    return rg_driver_ticket(context->driver, ticket_out, bytes_out);
}

int rg_context_drop_link(struct rg_context *context, int world_rank, int on)
{
    return rg_driver_drop_link(context->driver, world_rank, on);
}

void rg_context_abandon(struct rg_context *context)
{
    rg_driver_abandon(context->driver);
}

/* ---- memory ------------------------------------------------------------- */

int rg_malloc(struct rg_context *context, size_t bytes, void **pointer_out)
{
    const int status = context->ops->alloc(context->device, bytes, pointer_out);

    if (status == RG_ENOMEM)
        rg_log(RG_LOG_ERROR, context->config.rank,
               "no device memory for a buffer of %zu bytes", bytes);
    return status;
}

void rg_free(struct rg_context *context, void *pointer)
{
    if (pointer)
        context->ops->free(context->device, pointer);
}

int rg_memcpy(struct rg_context *context, void *dst, const void *src,
              size_t bytes)
{
    return context->ops->memory->copy(context->device, dst, src, bytes);
}

int rg_memset(struct rg_context *context, void *dst, int byte, size_t bytes)
{
    return context->ops->set(context->device, dst, byte, bytes);
}
