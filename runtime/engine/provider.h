/*
 * What a provider is to the engine: one table of calls. Inside runtime/engine
 * only. A provider owns its connections and the commands given to it until it
 * hands each to rg_engine_complete. A missing optional call is a null entry.
 */
#ifndef RG_ENGINE_PROVIDER_H
#define RG_ENGINE_PROVIDER_H

#include "runtime/engine/engine.h"

enum {
    RG_ENGINE_ADDRESS_BYTES = 48,
    RG_ENGINE_HEADER_BYTES = 4096, /* before a region the engine made */
    RG_ENGINE_PROVIDERS = 2
};

#define RG_ENGINE_MAGIC 0x52474331u /* on the wire and in shared memory */

/* The contents of a card; all providers have their part in it. */
struct rg_engine_card_data {
    uint32_t magic;
    int32_t rank;
    uint64_t token; /* names this life of the rank */
    uint64_t bytes; /* of the region */
    uint64_t host;  /* hash of the host's identity; 0: none */
    char address[RG_ENGINE_ADDRESS_BYTES]; /* tcp; "": not there */
    uint32_t port;
    int32_t pid; /* shm: the region is this process's descriptor */
    int32_t fd;  /* -1: not shared */
    uint32_t reserved;
};

/* At the start of the header page. */
struct rg_engine_header {
    uint64_t token;
    uint64_t generation; /* released by advance, acquired by shm writers */
};

struct rg_engine_node {
    struct rg_engine_command command;
    struct rg_engine_node *next;
    uint64_t sequence; /* the provider's */
    int status;
    unsigned char small[RG_ENGINE_SMALL_BYTES];
};

struct rg_engine_queue {
    struct rg_engine_node *first;
    struct rg_engine_node *last;
};

struct rg_engine_ops {
    const char *name;
    /* Fills its part of the engine's card; the state is its own. */
    int (*init)(struct rg_engine *engine, void **state_out);
    /* RG_ENOTSUP, silently: this provider does not reach the peer. */
    int (*connect)(void *state, int peer,
                   const struct rg_engine_card_data *card);
    void (*submit)(void *state, struct rg_engine_node *node);
    void (*flush)(void *state); /* optional */
    void (*poll)(void *state, uint64_t now);
    /* Ends the peer's commands with `status` and its connection. */
    void (*fail)(void *state, int peer, int status);
    void (*cancel)(void *state);
    int (*status)(const void *state, int peer);
    void (*advance)(void *state); /* optional */
    int (*fd)(const void *state); /* optional */
    void (*fini)(void *state);    /* accepts half-built state */
};

extern const struct rg_engine_ops rg_engine_shm;
extern const struct rg_engine_ops rg_engine_tcp;

struct rg_engine_peer {
    const struct rg_engine_ops *ops; /* null: not connected */
    void *state;
    struct rg_engine_card_data card;
};

struct rg_engine {
    struct rg_engine_config config;
    struct rg_engine_card_data card;
    unsigned char *base; /* the region */
    int memory_fd;       /* -1: the caller's */
    struct rg_engine_header *header;
    struct rg_engine_header own_header; /* where there is no shared one */
    struct rg_engine_peer *peers;       /* [size] */
    struct rg_engine_traffic *traffic;  /* [size]; the providers count */
    const struct rg_engine_ops *ops[RG_ENGINE_PROVIDERS];
    void *states[RG_ENGINE_PROVIDERS];
    int providers;
    struct rg_engine_queue done;
    struct rg_engine_queue free;
    uint64_t arrivals;
};

void rg_engine_push(struct rg_engine_queue *queue, struct rg_engine_node *node);
struct rg_engine_node *rg_engine_pop(struct rg_engine_queue *queue);
/* Hands the node back with its verdict. */
void rg_engine_complete(struct rg_engine *engine, struct rg_engine_node *node,
                        int status);
/* All of the queue. */
void rg_engine_complete_all(struct rg_engine *engine,
                            struct rg_engine_queue *queue, int status);
/* Those whose deadline has passed, with RG_ETIMEDOUT. */
void rg_engine_expire(struct rg_engine *engine, struct rg_engine_queue *queue,
                      uint64_t now);
/* RG_OK, or RG_EINVAL when a transfer does not fit `bytes` of region. */
int rg_engine_check(uint64_t bytes, uint64_t offset, uint64_t length,
                    uint64_t signal);
/* Applies a signal (release) to a region that rg_engine_check has let it. */
void rg_engine_signal(unsigned char *base, uint64_t signal,
                      enum rg_signal_op op, uint64_t value);

#endif
