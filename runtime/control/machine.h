/*
 * What the two control machines, coordinator and agent, have in common: their
 * inputs and their effects. A machine is a pure function of its state and one
 * input; it has no clock, socket or thread, and its effects depend on nothing
 * but the inputs before. Whoever runs it (the driver, a simulation, a test)
 * carries the effects out in their order.
 */
#ifndef RG_CONTROL_MACHINE_H
#define RG_CONTROL_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/control/message.h"

/* A timer is named by kind and group: setting it again replaces it. */
enum rg_timer_kind {
    RG_TIMER_NONE = 0,
    RG_TIMER_FORM,  /* agent: the first view must be active by then */
    RG_TIMER_TICK,  /* both: the beat of liveness and of repetition */
    RG_TIMER_ELECT, /* agent: its turn to stand for election */
    RG_TIMER_WINDOW /* coordinator: answers that have not come will not */
};

struct rg_timer {
    enum rg_timer_kind kind;
    uint32_t group;
};

enum rg_input_kind {
    RG_INPUT_NONE = 0,
    RG_INPUT_MESSAGE, /* `message` came from the process `peer` */
    RG_INPUT_REQUEST, /* `message` is what the caller asks of its agent */
    RG_INPUT_TIMER,   /* `timer` has expired */
    RG_INPUT_GONE,    /* `process` of `peer` has ended; memory may live */
    RG_INPUT_EXITED   /* it is gone and can write nowhere any more */
};

struct rg_input {
    enum rg_input_kind kind;
    int peer;                   /* world rank */
    uint32_t process;           /* GONE, EXITED: which life of that rank */
    struct rg_message *message; /* a machine that keeps it takes a reference */
    struct rg_timer timer;
};

enum rg_effect_kind {
    RG_EFFECT_NONE = 0,
    RG_EFFECT_SEND,    /* `message` to the process `peer` */
    RG_EFFECT_DELIVER, /* `message` to the caller (agents only) */
    RG_EFFECT_TIMER,   /* set `timer` to `delay_ms` from now; 0 cancels it */
    RG_EFFECT_LOG      /* `text` at `level` (enum rg_log_level) */
};

enum { RG_EFFECT_TEXT_BYTES = 160 };

struct rg_effect {
    enum rg_effect_kind kind;
    int peer;
    int level;
    struct rg_timer timer;
    uint64_t delay_ms;
    struct rg_message *message; /* SEND, DELIVER: one reference */
    char *text;                 /* LOG: owned */
};

/* A list the runner owns and reuses; zero-initialise. */
struct rg_effects {
    struct rg_effect *items;
    size_t count;
    size_t capacity;
    int rc; /* RG_ENOMEM once an effect was lost; the runner must stop */
};

/* Drops the items, keeps the storage. */
void rg_effects_clear(struct rg_effects *effects);
/* Frees all; accepts a zeroed list. */
void rg_effects_fini(struct rg_effects *effects);

/*
 * The ticks that must be counted before `ms` have surely passed since
 * something that happened between two of them: the first one follows at once.
 */
uint64_t rg_machine_ticks(uint64_t ms, uint64_t heartbeat_ms);

/* For machines. Messages: take a reference of their own; null is RG_ENOMEM. */
void rg_effects_send(struct rg_effects *effects, int peer,
                     struct rg_message *message);
void rg_effects_deliver(struct rg_effects *effects, struct rg_message *message);
void rg_effects_timer(struct rg_effects *effects, enum rg_timer_kind kind,
                      uint32_t group, uint64_t delay_ms);
void rg_effects_log(struct rg_effects *effects, int level, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

#endif
