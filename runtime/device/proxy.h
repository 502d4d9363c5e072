/*
 * What teams and the worker of the host proxy route say to each other: a FIFO
 * of commands a lane, and the stages that payload waits in. All of it lies in
 * mapped host memory.
 *
 *   team                                   worker (routes/proxy/proxy.h)
 *     waits until stage and slot are free
 *     copies payload into the stage
 *     command; turn = index + 1      -->   takes it, taken = index + 1
 *                                          submits it to the host engine
 *                                    <--   given[stage] + 1: its payload is
 *                                          read no more
 *
 * Every arrow is a release store that an acquire load on the other side waits
 * for. Teams that share a lane number their commands and stages by one atomic
 * add each, in device memory; so order within (peer, lane) is that of the
 * adds. Payload has left its source when the put returns.
 */
#ifndef RG_DEVICE_PROXY_H
#define RG_DEVICE_PROXY_H

#include "runtime/device/dev.h"
#include "runtime/device/word.h"

enum {
    RG_LANES = 32,
    RG_PROXY_DEPTH = 256, /* commands a lane */
    RG_PROXY_STAGES = 8,  /* a lane */
    RG_PROXY_STAGE_BYTES = 256 << 10
};

/* Why a team drives. */
enum rg_drive {
    RG_DRIVE_DONE = 0, /* it has left something, and goes */
    RG_DRIVE_WAITS,    /* others may be at it */
    RG_DRIVE_CROWDED,  /* and whoever it waits for may want its core */
    RG_DRIVE_TIRED     /* for some time now */
};

/* As a command's stage or signal: there is none. */
#define RG_PROXY_NONE UINT64_MAX

struct rg_proxy_command {
    uint64_t turn;   /* index + 1, written last */
    uint64_t offset; /* in the peer's region */
    uint64_t bytes;
    uint64_t stage;  /* of the lane, or none */
    uint64_t signal; /* offset, or none */
    uint64_t value;
    uint64_t op;   /* enum rg_signal_op */
    uint64_t peer; /* world rank */
};

static_assert(sizeof(struct rg_proxy_command) == 64, "a line of the host");

struct rg_proxy_lane {
    struct rg_proxy_command command[RG_PROXY_DEPTH];
    uint64_t taken __attribute__((aligned(128))); /* commands, by the worker */
    uint64_t given[RG_PROXY_STAGES];              /* times, by the worker */
    uint64_t waits_for[RG_PROXY_STAGES];          /* its last user's peer */
};

struct rg_proxy_fifo {
    uint8_t *stages; /* as teams see them: [lanes][RG_PROXY_STAGES] */
    uint64_t lanes;  /* in use; a lane is taken modulo this */
    /*
     * On the emulated device, where a team can do the worker's work: at once,
     * and without another thread to switch to. 1: it has let others have the
     * core meanwhile, or has something new. Or null.
     */
    int (*drive)(void *arg, enum rg_drive why);
    void *drive_arg;
    /* Set by a team that posts what somebody waits for, cleared by the worker:
     * the team drives at its next wait, or when it is done. */
    uint64_t urgent;
    struct rg_proxy_lane lane[];
};

/* How many commands and stages of a lane have been handed out. */
struct rg_proxy_heads {
    uint64_t commands;
    uint64_t stages;
};

#if !RG_ON_CUDA
/* One that is done has to do so only for what is urgent. */
RG_FN int rg_proxy_drive(const struct rg_proxy_fifo *fifo, enum rg_drive why)
{
    if (fifo && fifo->drive &&
        (why != RG_DRIVE_DONE || rg_load_relaxed(&fifo->urgent)))
        return fifo->drive(fifo->drive_arg, why);
    return 0;
}
#endif

#endif
