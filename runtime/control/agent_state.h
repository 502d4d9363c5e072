/*
 * The inside of an agent, shared by its three parts: agent.c serves the
 * caller, agent_follow.c follows the coordinator, agent_elect.c finds one.
 */
#ifndef RG_CONTROL_AGENT_STATE_H
#define RG_CONTROL_AGENT_STATE_H

#include "runtime/control/agent.h"

/*
 *   JOINED -> HOLDING -> QUIET -> CHECKING -> READY -> ACTIVE
 *                ^                                        |
 *                +------------ PREPARE -------------------+
 *
 * QUIET, READY and JOINED wait for the coordinator, HOLDING and CHECKING for
 * the caller. OUT has delivered its last word.
 */
enum rg_agent_phase {
    RG_AGENT_JOINED = 0, /* for PREPARE of the first view */
    RG_AGENT_ACTIVE,     /* for nothing */
    RG_AGENT_HOLDING,    /* for the caller's QUIESCED */
    RG_AGENT_QUIET,      /* for VIEW */
    RG_AGENT_CHECKING,   /* for the caller's VIEW_ACK */
    RG_AGENT_READY,      /* for ACTIVATE */
    RG_AGENT_OUT         /* for the caller's LEAVE */
};

/* A collective request that is repeated until it has its answer. */
struct rg_agent_ask {
    struct rg_message *request; /* null: none */
    uint64_t call;              /* its number in this epoch */
};

struct rg_agent_group {
    struct rg_agent_group *next;
    uint32_t id;
    uint32_t incarnation;
    uint64_t past; /* the last epoch in force here before this incarnation */
    enum rg_agent_phase phase;
    struct rg_ballot promise; /* nothing lower is heard any more */
    uint64_t epoch;           /* to come while changing, else the active one */

    struct rg_message *active;       /* the VIEW in force; null: none yet */
    struct rg_message *pending;      /* the VIEW accepted last, not in force */
    struct rg_ballot pending_ballot; /* under which it came */
    int pending_acked;               /* VIEW_ACK has gone out for it */
    uint64_t rules; /* as the caller said of the last view it was shown */
    int unchecked;  /* VIEWs delivered and not yet acknowledged by the caller */

    uint32_t workspace;       /* of the PREPARE in progress */
    struct rg_message *quiet; /* the caller's QUIESCED; null: none yet */
    uint64_t progress; /* completed here, as the caller says while active */
    uint64_t floor;    /* completed everywhere */
    int has_graphs;    /* live captured graphs */
    int urgent;        /* the caller waits for the floor */
    int fenced;        /* out, and its device writes nowhere any more */

    struct rg_message *join;    /* the request; until the first view */
    struct rg_agent_ask plan;   /* POLICY or CHANGE */
    struct rg_agent_ask gather; /* GATHER */
    struct rg_message *stall;   /* REPORT of a device wait, in this epoch */
    /* The NOTICE of each kind delivered last. */
    struct rg_message *notices[RG_NOTICE_COUNT];

    int64_t silent;    /* ticks since the coordinator was heard; less than
                          nothing while a claimant has time to begin */
    int64_t unsettled; /* ticks since the coordinator said all was well */
    int standing;      /* its turn in the election is set */
    int seek;          /* the rank to be asked next for a coordinator */
};

/* The last epoch that was in force here of a group that has been left. */
struct rg_agent_past {
    uint32_t group;
    uint64_t epoch;
};

/* What is known of the death of a process. */
struct rg_agent_fact {
    int rank;
    uint32_t process;
    int exited;
};

struct rg_agent {
    struct rg_agent_config config;
    struct rg_agent_group *groups;
    struct rg_agent_fact *facts;
    size_t nfacts;
    struct rg_agent_past *pasts;
    size_t npasts;
    uint32_t joins; /* so far, of all groups */
    uint64_t dropped;
};

/* ---- agent.c ------------------------------------------------------------ */

/* A message of this member about the epoch in force; null: no memory. */
struct rg_message *rg_agent_message(const struct rg_agent_group *group,
                                    enum rg_message_kind kind);
/* Sends and drops the reference; null is RG_ENOMEM. */
void rg_agent_post(int peer, struct rg_message *message,
                   struct rg_effects *effects);
/* Asks to be let in: the first coordinator, or whoever is one now. */
void rg_agent_knock(struct rg_agent *agent, struct rg_agent_group *group,
                    struct rg_effects *effects);
/* Repeats what the coordinator owes an answer to. */
void rg_agent_repeat(const struct rg_agent_group *group,
                     struct rg_effects *effects);
void rg_agent_send_quiesced(const struct rg_agent_group *group,
                            struct rg_effects *effects);
void rg_agent_deliver_status(const struct rg_agent_group *group,
                             enum rg_message_kind kind, uint64_t call,
                             int status, struct rg_effects *effects);
/* Ends all requests; from now on nothing but LEAVE is taken. */
void rg_agent_put_out(struct rg_agent *agent, struct rg_agent_group *group,
                      enum rg_message_kind kind, int status,
                      struct rg_effects *effects);
void rg_agent_forget(struct rg_agent_ask *ask);

/* ---- agent_follow.c ----------------------------------------------------- */

/* A message of a coordinator. */
void rg_agent_follow(struct rg_agent *agent, struct rg_agent_group *group,
                     int peer, struct rg_message *message,
                     struct rg_effects *effects);
/* Binds this member to the ballot if it is not lower; 0: it is. */
int rg_agent_promise(struct rg_agent *agent, struct rg_agent_group *group,
                     const struct rg_ballot *ballot,
                     struct rg_effects *effects);
/* The caller has acknowledged every VIEW: tells the coordinator. */
void rg_agent_acknowledge(struct rg_agent_group *group,
                          struct rg_effects *effects);

/* ---- agent_elect.c ------------------------------------------------------ */

void rg_agent_tick(struct rg_agent *agent, struct rg_agent_group *group,
                   struct rg_effects *effects);
/* Its turn has come: its own coordinator claims the group. */
void rg_agent_stand(struct rg_agent *agent, struct rg_agent_group *group,
                    enum rg_reason reason, struct rg_effects *effects);
void rg_agent_on_claim(struct rg_agent *agent, struct rg_agent_group *group,
                       int peer, const struct rg_message *message,
                       struct rg_effects *effects);
void rg_agent_on_lost(struct rg_agent *agent, struct rg_agent_group *group,
                      const struct rg_message *message,
                      struct rg_effects *effects);
/* A process has ended. */
void rg_agent_learn(struct rg_agent *agent, int rank, uint32_t process,
                    int exited, struct rg_effects *effects);
/* A later process of the rank is a member: the end of the first is history. */
void rg_agent_forget_ended(struct rg_agent *agent, const struct rg_view *view);
/* Tells the coordinator of every death that concerns the group. */
void rg_agent_testify(const struct rg_agent *agent,
                      const struct rg_agent_group *group,
                      struct rg_effects *effects);
/* Heard of the coordinator: no reason to replace it. */
void rg_agent_heard(struct rg_agent_group *group, struct rg_effects *effects);

#endif
