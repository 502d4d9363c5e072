/*
 * The worker of the host proxy route: takes the commands that teams leave in
 * a communicator's FIFOs (device/proxy.h) and carries them out by the host
 * engine; also lets in what peers send. One a communicator.
 *
 * An engine moves only when it is polled. While the route is in force the
 * worker's thread does that, or a team that waits (fifo.drive), whoever has the
 * lock; at other times the thread sleeps until the network has
 * something for it.
 *
 * A command's stage is free once the engine has done with its payload: at once
 * where that is small, else when the command ends, which is when its signal is
 * visible at its target. A command that fails leaves its stage in use: the
 * team that wants it, or what waits for the signal, runs into its deadline, and
 * the next view starts with empty FIFOs.
 *
 * Threads: any; each call locks.
 */
#ifndef RG_TRANSFER_PROXY_H
#define RG_TRANSFER_PROXY_H

#include <sched.h>

#include "runtime/core/bitset.h"
#include "runtime/device/proxy.h"
#include "runtime/engine/engine.h"

struct rg_proxy;

struct rg_proxy_config {
    /*
     * rank, size, secret, host_id, address; bytes and memory of what peers
     * write to.
     */
    struct rg_engine_config engine;
    struct rg_proxy_fifo *fifo; /* zeroed, with `lanes`; outlives the proxy */
    const uint8_t *stages;      /* as the host sees them */
    uint64_t deadline_ms;       /* of one command */
    /* Where the thread runs, copied; null: where the caller does. */
    const cpu_set_t *cpus;
    int drives; /* teams are host threads: they may drive, and wake it */
};

/* RG_OK, or what the engine says; RG_ESYSTEM for want of a thread. */
int rg_proxy_create(const struct rg_proxy_config *config,
                    struct rg_proxy **proxy_out);
/* No team uses the FIFOs any more. Accepts null. */
void rg_proxy_destroy(struct rg_proxy *proxy);

/* What peers' commands write to. */
void *rg_proxy_memory(const struct rg_proxy *proxy);
void rg_proxy_card(const struct rg_proxy *proxy,
                   struct rg_engine_card *card_out);

/*
 * No team is in an algorithm. Open commands are called off, the FIFOs emptied,
 * and commands of this epoch are sent and let in from now on. Ranks that are
 * not in `members` are given up: they can write here no more.
 */
void rg_proxy_enter(struct rg_proxy *proxy, uint64_t epoch,
                    const struct rg_bitset *members);
/*
 * Teams may use the FIFOs from now on. `alone`: no peer is reached by another
 * route.
 */
void rg_proxy_force(struct rg_proxy *proxy, int alone);

/* As rg_engine_connect(). */
int rg_proxy_connect(struct rg_proxy *proxy, int rank,
                     const struct rg_engine_card *card);
/* RG_EFAILED: the connection was lost. */
int rg_proxy_status(struct rg_proxy *proxy, int rank);
/*
 * Writes to the rank's memory, with nothing behind it: at most
 * RG_PROXY_NOTE_BYTES. RG_EPENDING until it is visible there, then RG_OK or
 * what the engine says, once; the next call writes anew.
 */
enum { RG_PROXY_NOTE_BYTES = 64 };
int rg_proxy_note(struct rg_proxy *proxy, int rank, uint64_t offset,
                  const void *data, uint64_t bytes);

/* Copies what peers' notes have left at an offset of the own memory. */
void rg_proxy_read(struct rg_proxy *proxy, uint64_t offset, void *data_out,
                   uint64_t bytes);

/* As rg_engine_get_traffic(). */
void rg_proxy_get_traffic(struct rg_proxy *proxy, int rank,
                          struct rg_engine_traffic *traffic_out);

/* How many commands have not ended well. */
uint64_t rg_proxy_failures(struct rg_proxy *proxy);

#endif
