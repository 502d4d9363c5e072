/*
 * What is to happen, in the order of time; what happens at the same time, in
 * the order it was added. A heap of four children a node: shallow, and its
 * siblings share cache lines.
 */
#ifndef RG_SIM_QUEUE_H
#define RG_SIM_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct rg_message;

enum sim_event_kind {
    SIM_MESSAGE, /* `message` of `from` arrives at `rank` */
    SIM_TIMER,   /* a timer of a machine of `rank` expires */
    SIM_CALLER,  /* `rank`'s program does its next step */
    SIM_ANSWER,  /* `rank`'s program answers its agent with `message` */
    SIM_FACT,    /* `rank` learns of the end of `from` */
    SIM_FAULT    /* the fault `what` strikes */
};

struct sim_event {
    uint64_t at_us;
    uint64_t order;
    enum sim_event_kind kind;
    int rank;
    int from;
    uint32_t life;   /* of `rank`; one of another life is void */
    uint32_t what;   /* of the kind: timer, step, fact, fault */
    uint32_t serial; /* TIMER: void if it has been set again; FACT: life */
    struct rg_message *message; /* one reference, or null */
};

/* Zero-initialise. */
struct sim_queue {
    struct sim_event *events;
    size_t count;
    size_t room;
    uint64_t order;
};

/* Aborts when out of memory: a simulation has nothing else to do then. */
void sim_queue_push(struct sim_queue *queue, const struct sim_event *event);
/* 0: empty. */
int sim_queue_pop(struct sim_queue *queue, struct sim_event *event_out);
/* Frees all, messages too. */
void sim_queue_fini(struct sim_queue *queue);

#endif
