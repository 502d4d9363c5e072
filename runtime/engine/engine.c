#include "runtime/engine/engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/log.h"
#include "runtime/device/word.h"
#include "runtime/engine/provider.h"
#include "runtime/status.h"

static_assert(sizeof(struct rg_engine_card_data) <= RG_ENGINE_CARD_BYTES,
              "a card holds every provider's part");

/* ---- what providers share ----------------------------------------------- */

void rg_engine_push(struct rg_engine_queue *queue, struct rg_engine_node *node)
{
    node->next = NULL;
    if (queue->first)
        queue->last->next = node;
    else
        queue->first = node;
    queue->last = node;
}

struct rg_engine_node *rg_engine_pop(struct rg_engine_queue *queue)
{
    struct rg_engine_node *node = queue->first;

    if (node)
        queue->first = node->next;
    return node;
}

/* A command's source is read no more: told once. */
static void tell_left(uint64_t **left)
{
    /* Pairs with the acquire of whoever fills the source anew. */
    if (*left)
        rg_store_release(*left, rg_load_relaxed(*left) + 1);
    *left = NULL;
}

void rg_engine_complete(struct rg_engine *engine, struct rg_engine_node *node,
                        int status)
{
    if (status == RG_OK)
        tell_left(&node->command.left);
    node->status = status;
    rg_engine_push(&engine->done, node);
}

void rg_engine_complete_all(struct rg_engine *engine,
                            struct rg_engine_queue *queue, int status)
{
    struct rg_engine_node *node;

    while ((node = rg_engine_pop(queue)))
        rg_engine_complete(engine, node, status);
}

void rg_engine_expire(struct rg_engine *engine, struct rg_engine_queue *queue,
                      uint64_t now)
{
    struct rg_engine_queue all = *queue;
    struct rg_engine_node *node;

    queue->first = NULL;
    while ((node = rg_engine_pop(&all))) {
        const uint64_t deadline = node->command.deadline_ns;

        if (deadline && now >= deadline)
            rg_engine_complete(engine, node, RG_ETIMEDOUT);
        else
            rg_engine_push(queue, node);
    }
}

int rg_engine_check(uint64_t bytes, uint64_t offset, uint64_t length,
                    uint64_t signal)
{
    if (offset > bytes || length > bytes - offset)
        return RG_EINVAL;
    if (signal == RG_ENGINE_NO_SIGNAL)
        return RG_OK;
    return signal % sizeof(uint64_t) || signal >= bytes ? RG_EINVAL : RG_OK;
}

void rg_engine_signal(unsigned char *base, uint64_t signal,
                      enum rg_signal_op op, uint64_t value)
{
    uint64_t *word = (uint64_t *)(void *)(base + signal);

    if (signal == RG_ENGINE_NO_SIGNAL)
        return;
    /* Pairs with the acquire of whoever waits for the word. */
    if (op == RG_SIGNAL_ADD)
        rg_add_release(word, value);
    else
        rg_store_release(word, value);
}

/* ---- creation ----------------------------------------------------------- */

static const struct rg_engine_ops *const all[RG_ENGINE_PROVIDERS] = {
    &rg_engine_shm, &rg_engine_tcp};

static int is_chosen(const struct rg_engine_ops *ops, const char *only)
{
    return !only || !*only || !strcmp(only, ops->name);
}

int rg_engine_setting(int rank)
{
    const char *only = getenv("RG_ENGINE");

    for (int i = 0; i < RG_ENGINE_PROVIDERS; i++)
        if (is_chosen(all[i], only))
            return RG_OK;
    rg_log(RG_LOG_ERROR, rank, "RG_ENGINE=%s is not tcp or shm", only);
    return RG_ECONFIG;
}

static int choose_providers(struct rg_engine *engine)
{
    const char *only = getenv("RG_ENGINE");

    for (int i = 0; i < RG_ENGINE_PROVIDERS; i++)
        if (is_chosen(all[i], only))
            engine->ops[engine->providers++] = all[i];
    return rg_engine_setting(engine->config.rank);
}

/* Memory that peers can map by the descriptor's number. */
static int make_region(struct rg_engine *engine)
{
    const uint64_t bytes = RG_ENGINE_HEADER_BYTES + engine->config.bytes;
    void *map = MAP_FAILED;

    engine->memory_fd = memfd_create("regroup-engine", MFD_CLOEXEC);
    if (engine->memory_fd >= 0 && !ftruncate(engine->memory_fd, (off_t)bytes))
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                   engine->memory_fd, 0);
    if (map == MAP_FAILED) {
        rg_log(RG_LOG_ERROR, engine->config.rank,
               "cannot make %llu bytes of engine region: %m",
               (unsigned long long)bytes);
        return RG_ESYSTEM;
    }
    engine->header = map;
    engine->base = (unsigned char *)map + RG_ENGINE_HEADER_BYTES;
    return RG_OK;
}

static int init_region(struct rg_engine *engine)
{
    const struct rg_engine_config *config = &engine->config;
    int rc = RG_OK;

    if (getrandom(&engine->card.token, sizeof(engine->card.token), 0) !=
        sizeof(engine->card.token)) {
        rg_log(RG_LOG_ERROR, config->rank, "cannot read random bytes: %m");
        return RG_ESYSTEM;
    }
    engine->base = config->memory;
    engine->header = &engine->own_header;
    if (!config->memory)
        rc = make_region(engine);
    if (rc)
        return rc;
    engine->header->token = engine->card.token;
    rg_store_release(&engine->header->generation, config->generation);
    return RG_OK;
}

static void init_card(struct rg_engine *engine)
{
    const struct rg_engine_config *config = &engine->config;
    struct rg_engine_card_data *card = &engine->card;

    card->magic = RG_ENGINE_MAGIC;
    card->rank = config->rank;
    card->bytes = config->bytes;
    card->fd = -1;
    if (config->host_id && *config->host_id)
        card->host =
            rg_hash(RG_HASH_INIT, config->host_id, strlen(config->host_id));
    strncpy(card->address, config->address ? config->address : "127.0.0.1",
            sizeof(card->address) - 1);
    /* The strings belong to the caller. */
    engine->config.host_id = NULL;
    engine->config.address = NULL;
}

static int check_config(const struct rg_engine_config *config)
{
    if (config->size >= 1 && config->rank >= 0 && config->rank < config->size &&
        config->bytes % sizeof(uint64_t) == 0)
        return RG_OK;
    rg_log(RG_LOG_ERROR, config->rank, "engine of %d ranks and %llu bytes",
           config->size, (unsigned long long)config->bytes);
    return RG_EINVAL;
}

int rg_engine_create(const struct rg_engine_config *config,
                     struct rg_engine **engine_out)
{
    struct rg_engine *engine;
    int rc = check_config(config);

    if (rc)
        return rc;
    engine = calloc(1, sizeof(*engine));
    if (!engine)
        return RG_ENOMEM;
    engine->config = *config;
    engine->memory_fd = -1;
    engine->peers = calloc((size_t)config->size, sizeof(*engine->peers));
    engine->traffic = calloc((size_t)config->size, sizeof(*engine->traffic));
    if (!engine->peers || !engine->traffic)
        rc = RG_ENOMEM;
    if (!rc)
        rc = choose_providers(engine);
    if (!rc)
        rc = init_region(engine);
    init_card(engine);
    for (int i = 0; i < engine->providers && !rc; i++)
        rc = engine->ops[i]->init(engine, &engine->states[i]);
    if (rc)
        goto error;
    *engine_out = engine;
    return RG_OK;
error:
    rg_engine_destroy(engine);
    return rc;
}

static void free_nodes(struct rg_engine_queue *queue)
{
    struct rg_engine_node *node;

    while ((node = rg_engine_pop(queue)))
        free(node);
}

void rg_engine_destroy(struct rg_engine *engine)
{
    if (!engine)
        return;
    for (int i = 0; i < engine->providers; i++)
        if (engine->states[i])
            engine->ops[i]->fini(engine->states[i]);
    free_nodes(&engine->done);
    free_nodes(&engine->free);
    if (engine->memory_fd >= 0 && engine->header)
        munmap(engine->header, RG_ENGINE_HEADER_BYTES + engine->config.bytes);
    if (engine->memory_fd >= 0)
        close(engine->memory_fd);
    free(engine->peers);
    free(engine->traffic);
    free(engine);
}

void *rg_engine_memory(const struct rg_engine *engine)
{
    return engine->base;
}

void rg_engine_get_card(const struct rg_engine *engine,
                        struct rg_engine_card *card_out)
{
    memset(card_out, 0, sizeof(*card_out));
    memcpy(card_out->bytes, &engine->card, sizeof(engine->card));
}

/* ---- peers -------------------------------------------------------------- */

static int peer_in_range(const struct rg_engine *engine, int peer)
{
    return peer >= 0 && peer < engine->config.size &&
           peer != engine->config.rank;
}

static int read_card(const struct rg_engine *engine, int peer,
                     const struct rg_engine_card *card,
                     struct rg_engine_card_data *data_out)
{
    struct rg_engine_card_data data;

    memcpy(&data, card->bytes, sizeof(data));
    if (!peer_in_range(engine, peer))
        return RG_EINVAL;
    if (data.magic != RG_ENGINE_MAGIC || data.rank != peer ||
        data.address[sizeof(data.address) - 1]) {
        rg_log(RG_LOG_ERROR, engine->config.rank,
               "the card for rank %d is not one of its engine", peer);
        return RG_EPROTO;
    }
    *data_out = data;
    return RG_OK;
}

/* The first provider that reaches the card. */
static int connect_first(struct rg_engine *engine, int peer,
                         const struct rg_engine_card_data *card)
{
    struct rg_engine_peer *to = &engine->peers[peer];
    int rc = RG_ENOTSUP;

    for (int i = 0; i < engine->providers && rc == RG_ENOTSUP; i++) {
        rc = engine->ops[i]->connect(engine->states[i], peer, card);
        if (!rc) {
            to->ops = engine->ops[i];
            to->state = engine->states[i];
            to->card = *card;
        }
    }
    if (rc == RG_ENOTSUP)
        rg_log(RG_LOG_ERROR, engine->config.rank,
               "no host engine provider reaches rank %d", peer);
    return rc;
}

int rg_engine_connect(struct rg_engine *engine, int peer,
                      const struct rg_engine_card *card)
{
    struct rg_engine_card_data data;
    struct rg_engine_peer *to;
    int rc = read_card(engine, peer, card, &data);

    if (rc)
        return rc;
    to = &engine->peers[peer];
    if (to->ops && to->card.token != data.token)
        rg_engine_fail(engine, peer);
    if (to->ops && to->ops->status(to->state, peer) == RG_OK)
        return RG_OK;
    return connect_first(engine, peer, &data);
}

void rg_engine_fail(struct rg_engine *engine, int peer)
{
    struct rg_engine_peer *to;

    if (!peer_in_range(engine, peer))
        return;
    to = &engine->peers[peer];
    if (to->ops)
        to->ops->fail(to->state, peer, RG_EFAILED);
    memset(to, 0, sizeof(*to));
}

int rg_engine_status(const struct rg_engine *engine, int peer)
{
    const struct rg_engine_peer *to;

    if (!peer_in_range(engine, peer))
        return RG_EFAILED;
    to = &engine->peers[peer];
    return to->ops ? to->ops->status(to->state, peer) : RG_EFAILED;
}

const char *rg_engine_provider(const struct rg_engine *engine, int peer)
{
    if (!peer_in_range(engine, peer) || !engine->peers[peer].ops)
        return "none";
    return engine->peers[peer].ops->name;
}

void rg_engine_get_traffic(const struct rg_engine *engine, int peer,
                           struct rg_engine_traffic *traffic_out)
{
    memset(traffic_out, 0, sizeof(*traffic_out));
    if (peer_in_range(engine, peer))
        *traffic_out = engine->traffic[peer];
}

/* ---- commands ----------------------------------------------------------- */

int rg_engine_submit(struct rg_engine *engine,
                     const struct rg_engine_command *command)
{
    struct rg_engine_node *node;
    struct rg_engine_peer *to;

    if (!peer_in_range(engine, command->peer) ||
        (command->op != RG_SIGNAL_SET && command->op != RG_SIGNAL_ADD))
        return RG_EINVAL;
    node = rg_engine_pop(&engine->free);
    if (!node)
        node = malloc(sizeof(*node));
    if (!node)
        return RG_ENOMEM;
    node->command = *command;
    node->sequence = 0;
    if (command->bytes && command->bytes <= sizeof(node->small)) {
        memcpy(node->small, command->source, command->bytes);
        node->command.source = node->small;
        tell_left(&node->command.left);
    }
    to = &engine->peers[command->peer];
    if (to->ops)
        to->ops->submit(to->state, node);
    else
        rg_engine_complete(engine, node, RG_EFAILED);
    return RG_OK;
}

int rg_engine_poll(struct rg_engine *engine,
                   struct rg_engine_completion *completions, int max)
{
    const uint64_t now = rg_clock_ns();
    struct rg_engine_node *node;
    int count = 0;

    for (int i = 0; i < engine->providers; i++)
        engine->ops[i]->poll(engine->states[i], now);
    while (count < max && (node = rg_engine_pop(&engine->done))) {
        completions[count].cookie = node->command.cookie;
        completions[count].peer = node->command.peer;
        completions[count].status = node->status;
        count++;
        rg_engine_push(&engine->free, node);
    }
    return count;
}

void rg_engine_cancel(struct rg_engine *engine)
{
    for (int i = 0; i < engine->providers; i++)
        engine->ops[i]->cancel(engine->states[i]);
}

void rg_engine_advance(struct rg_engine *engine, uint64_t generation)
{
    /* Pairs with the acquire of shm writers: what the owner has cleared for
     * this generation is clear before they write to it. */
    rg_store_release(&engine->header->generation, generation);
    for (int i = 0; i < engine->providers; i++)
        if (engine->ops[i]->advance)
            engine->ops[i]->advance(engine->states[i]);
}

void rg_engine_flush(struct rg_engine *engine)
{
    for (int i = 0; i < engine->providers; i++)
        if (engine->ops[i]->flush)
            engine->ops[i]->flush(engine->states[i]);
}

uint64_t rg_engine_arrivals(const struct rg_engine *engine)
{
    return engine->arrivals;
}

int rg_engine_fd(const struct rg_engine *engine)
{
    for (int i = 0; i < engine->providers; i++)
        if (engine->ops[i]->fd)
            return engine->ops[i]->fd(engine->states[i]);
    return -1;
}
