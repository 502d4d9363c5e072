/*
 * The host transfer engine: one process's end of memory-to-memory transfers
 * between hosts or processes. A *command* copies bytes into a peer's region
 * and then sets or adds to a signal word there; its *completion* means that
 * the signal is visible at the target, or says why it never will be.
 *
 *   submit(command)            peer's engine, driven by its owner's polls
 *     payload, signal   ---->  bounds and generation are checked first;
 *                              payload written, then the word (release)
 *   completion          <----  counted back
 *
 * Peers are world ranks. A *card* is what others need to connect to this end,
 * opaque bytes that the owner carries to them. A *generation* is a number that
 * only grows (the epoch): a command of an older one than the target's is
 * refused, one of a newer one waits at the target's door until the target gets
 * there. `shm` is checked by the writer, just before it writes: a process
 * stopped between check and write may still write when it wakes. So memory that
 * it could reach must not be used again until it has exited, on each provider.
 *
 * Threads: one at a time per engine. No call blocks. All progress, incoming
 * transfers too, is made inside rg_engine_poll. Ends in one process are fine.
 */
#ifndef RG_ENGINE_ENGINE_H
#define RG_ENGINE_ENGINE_H

#include <stdint.h>

#include "runtime/device/signal.h"

struct rg_engine;

enum { RG_ENGINE_SECRET_BYTES = 32, RG_ENGINE_CARD_BYTES = 128 };

/* Payload of so many bytes is copied when it is submitted. */
enum { RG_ENGINE_SMALL_BYTES = 4096 };

/* As a signal offset: payload only. */
#define RG_ENGINE_NO_SIGNAL UINT64_MAX

struct rg_engine_config {
    int rank; /* own world rank */
    int size; /* peers are 0 .. size-1 without oneself */
    unsigned char secret[RG_ENGINE_SECRET_BYTES]; /* of the job */
    const char *host_id; /* copied; null or "": shares memory with nobody */
    const char *address; /* numeric, others reach it; null: 127.0.0.1 */
    uint64_t bytes;      /* of the region, a multiple of 8 */
    /*
     * The caller's region, aligned to 8, outlives the engine; null: the engine
     * makes one, page-aligned and zeroed, which peers of this host can map.
     */
    void *memory;
    uint64_t generation; /* the first */
    uint64_t silence_ms; /* a network peer that says nothing: lost; 0: 30 s */
    /*
     * 1: completions are in no hurry, and are told with what else is sent to
     * the peer, or a little later.
     */
    int lazy;
};

struct rg_engine_card {
    unsigned char bytes[RG_ENGINE_CARD_BYTES];
};

struct rg_engine_command {
    int peer;
    uint64_t generation;
    uint64_t offset; /* in the peer's region */
    /* Must stay as it is until the completion, unless it is small. */
    const void *source;
    /*
     * One is added, with release, once the source is read no more: when it is
     * small by the submission, else by the completion, for who sends further
     * ahead than the peer reads only fills memory. Not when the command fails.
     * Null: nobody asks.
     */
    uint64_t *left;
    uint64_t bytes;  /* may be 0 */
    uint64_t signal; /* offset of a word, a multiple of 8 */
    enum rg_signal_op op;
    uint64_t value;
    uint64_t deadline_ns; /* of rg_clock_ns(); 0: none */
    uint64_t cookie;
};

/*
 * RG_OK; RG_EINVAL: out of the target's bounds; RG_EABORTED: the target is in a
 * later generation, or cancelled; RG_EFAILED: no connection to the peer;
 * RG_ETIMEDOUT: the deadline passed. What the target refuses has no effect
 * there; what ends on this side may have been written in part, or in whole and
 * then with its signal.
 */
struct rg_engine_completion {
    uint64_t cookie;
    int peer;
    int status;
};

/*
 * RG_ENGINE=tcp|shm restricts the choice of providers; unset or empty, each
 * peer gets the first that reaches it: shm, then tcp. RG_OK, RG_ECONFIG,
 * RG_ENOMEM, RG_ESYSTEM, RG_ENOTSUP (shm alone with foreign memory).
 */
int rg_engine_create(const struct rg_engine_config *config,
                     struct rg_engine **engine_out);
/* Whether RG_ENGINE names one: RG_OK, or RG_ECONFIG (logged). */
int rg_engine_setting(int rank);
/* Closes all; open commands get no completion. Accepts null. */
void rg_engine_destroy(struct rg_engine *engine);

/* The start of the region. */
void *rg_engine_memory(const struct rg_engine *engine);
/* The same for the life of the engine, different for every engine. */
void rg_engine_get_card(const struct rg_engine *engine,
                        struct rg_engine_card *card_out);

/*
 * Makes the peer of that card reachable, in the course of later polls.
 * Commands may be submitted at once. With the card of the connection that
 * stands it does nothing; with that of a lost one it connects again; another
 * card is another life of the peer: what was open to the old one ends
 * RG_EFAILED. RG_OK, RG_EINVAL, RG_EPROTO (no card of this job's program),
 * RG_ENOTSUP (no provider reaches it), RG_ESYSTEM.
 */
int rg_engine_connect(struct rg_engine *engine, int peer,
                      const struct rg_engine_card *card);
/* Gives the peer up: commands to it end RG_EFAILED. Over tcp it can write here
 * no more. */
void rg_engine_fail(struct rg_engine *engine, int peer);
/* RG_OK: connected or on the way; RG_EFAILED: lost, or never connected. */
int rg_engine_status(const struct rg_engine *engine, int peer);
/* "shm", "tcp", or "none". */
const char *rg_engine_provider(const struct rg_engine *engine, int peer);

/*
 * What this end has sent to a peer since the engine was made, over all of its
 * connections: payload of the commands begun, and all bytes handed to the
 * network with it: headers, signals, acknowledgements. shm has no headers.
 * Zeroes: out of range.
 */
struct rg_engine_traffic {
    uint64_t payload;
    uint64_t sent;
};
void rg_engine_get_traffic(const struct rg_engine *engine, int peer,
                           struct rg_engine_traffic *traffic_out);

/*
 * Queues a command; the next poll sends it. RG_OK: there will be a completion,
 * whatever happens.
 * RG_EINVAL (peer or signal out of range), RG_ENOMEM: there will be none.
 */
int rg_engine_submit(struct rg_engine *engine,
                     const struct rg_engine_command *command);
/* Moves everything on; returns how many of `max` completions it stored. */
int rg_engine_poll(struct rg_engine *engine,
                   struct rg_engine_completion *completions, int max);
/* How many commands of network peers have been dealt with here so far. */
uint64_t rg_engine_arrivals(const struct rg_engine *engine);
/* Sends what has been queued, as far as that goes at once; a poll does, too. */
void rg_engine_flush(struct rg_engine *engine);
/*
 * A descriptor that is readable while a poll has something from the network to
 * deal with; -1: there is no network. Not for shm, whose commands complete in
 * the poll after their submission, nor for deadlines.
 */
int rg_engine_fd(const struct rg_engine *engine);
/* Ends all open commands RG_EABORTED; no source is read any more. */
void rg_engine_cancel(struct rg_engine *engine);
/*
 * Enters a later generation: what waited at the door for it is let in by the
 * next polls, what is left of older ones is refused.
 */
void rg_engine_advance(struct rg_engine *engine, uint64_t generation);

#endif
