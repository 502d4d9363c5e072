/*
 * The inside of a driver, shared by its two halves: driver.c serves the
 * callers, driver_loop.c is the thread. Everything below is protected by
 * `lock`, which the thread holds whenever it does not wait in epoll; what
 * callers wait for is announced on `changed`.
 */
#ifndef RG_CONTROL_DRIVER_STATE_H
#define RG_CONTROL_DRIVER_STATE_H

#include <pthread.h>

#include "runtime/control/agent.h"
#include "runtime/control/coordinator.h"
#include "runtime/control/driver.h"
#include "runtime/control/driver_bootstrap.h"
#include "runtime/control/driver_link.h"
#include "runtime/control/driver_pulse.h"

enum {
    RG_FIRST_COORDINATOR = 0,
    /* Between two looks; what lasts longer was a stop of the process. */
    RG_GAP_MS = 100
};

/* Another process of the job, or this one. */
struct rg_peer {
    struct rg_link *control;  /* to send on; null: none; in the driver's list */
    struct rg_link *lifeline; /* likewise; same host only */
    uint32_t process;         /* which life of the rank is meant */
    int offered_fd;           /* owned; -1: none yet */
    int pid_fd;               /* owned; -1: none, or it has exited */
    int pulse_fd;             /* owned; -1: none, or it has died */
    int has_ended;            /* it said BYE */
    int is_gone;              /* its death has been told to the machines */
    int is_dropped;           /* nothing is sent to it: a fault plan's */
    uint64_t retry_ns;        /* no new connection before that */
};

/* An event that waits for rg_driver_next(). */
struct rg_boxed {
    struct rg_boxed *next;
    struct rg_group_event event;
};

enum rg_gather_state {
    RG_GATHER_IDLE = 0,
    RG_GATHER_ASKED, /* queued for the thread */
    RG_GATHER_OPEN,  /* the agent has it: the next GATHERED is its answer */
    RG_GATHER_DONE
};

/* A group as its caller sees it: joined, not left. */
struct rg_box {
    struct rg_box *next;
    uint32_t group;
    struct rg_boxed *first;
    struct rg_boxed *last;
    struct {
        enum rg_gather_state state;
        uint64_t serial; /* of the last request */
        void *out;       /* borrowed while ASKED or OPEN */
        size_t bytes;
        int status;
    } gather;
};

/* An input on its way to a machine of this process. */
struct rg_letter {
    struct rg_letter *next;
    int to_coordinator;
    struct rg_input input; /* owns one reference of its message */
};

struct rg_letters {
    struct rg_letter *first;
    struct rg_letter *last;
};

/* How far the end has come; each step is bounded by stop_ns. */
enum rg_stop {
    RG_STOP_NOT = 0,
    RG_STOP_ASKED,   /* by the caller */
    RG_STOP_SERVING, /* all groups left; other ranks need the coordinator */
    RG_STOP_CLOSING  /* BYE said; waits for the peers' end of file */
};

struct rg_alarm {
    int of_coordinator;
    struct rg_timer timer;
    uint64_t deadline_ns;
};

struct rg_driver {
    int rank;
    int size;
    uint32_t process;
    int fences; /* kills processes of this host that are left behind */
    struct rg_settings settings;
    struct rg_bootstrap_result boot; /* owns addresses and listening sockets */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* on CLOCK_MONOTONIC */
    pthread_t thread;
    int running; /* the thread exists */
    enum rg_stop stop;
    uint64_t stop_ns;       /* the latest end of the stop's present step */
    int is_abandoned;       /* ends, or has ended, without a word */
    int failed;             /* a status after which nothing works any more */
    int missing_links;      /* that the start still waits for */
    struct rg_pulse *pulse; /* null: not possible here */
    int wake_fd;            /* eventfd: `requests` or `stop` has changed */
    int epoll_fd;

    struct rg_peer *peers; /* [size] */
    struct rg_link *links; /* owned, unproved ones too */
    struct rg_box *boxes;

    struct rg_letters requests; /* from callers */
    struct rg_letters letters;  /* to be stepped now */
    struct rg_alarm *alarms;
    size_t nalarms;
    size_t alarm_room;
    struct rg_coordinator *coordinator;
    struct rg_agent *agent;
    struct rg_effects effects;
};

/* ---- driver.c ----------------------------------------------------------- */

struct rg_box *rg_driver_box(const struct rg_driver *driver, uint32_t group);
/* The agent is about to see this request. */
void rg_driver_asked(struct rg_driver *driver,
                     const struct rg_message *request);
/* What the agent delivers to its caller. RG_OK or RG_ENOMEM. */
int rg_driver_deliver(struct rg_driver *driver,
                      const struct rg_message *message);

/* ---- driver_loop.c ------------------------------------------------------ */

/* The thread's body; `arg` is the driver. */
void *rg_loop_main(void *arg);
/* Appends; takes a reference of the message. RG_OK or RG_ENOMEM. */
int rg_loop_post(struct rg_letters *letters, int to_coordinator,
                 const struct rg_input *input);
void rg_loop_drop(struct rg_letters *letters);
/* What was known of that rank's last process is void. */
void rg_loop_meet(struct rg_driver *driver, int rank, uint32_t process);
/* A lifeline to a process of this host that there is none to yet. */
void rg_loop_lifeline(struct rg_driver *driver, int rank);
/* Who we are, as the first message on a link. RG_OK, RG_ENOMEM, RG_ECLOSED. */
int rg_loop_hello(struct rg_driver *driver, struct rg_link *link);
/* Takes the socket over and watches it. RG_OK, RG_ENOMEM, RG_ESYSTEM. */
int rg_loop_adopt(struct rg_driver *driver, enum rg_link_kind kind, int fd,
                  int peer, struct rg_link **link_out);

#endif
