/*
 * The inside of a coordinator, shared by its parts:
 *   coordinator.c         groups, inputs, the tick
 *   coordinator_member.c  who joins, leaves, dies, reports
 *   coordinator_change.c  the flush from one view to the next
 *   coordinator_claim.c   taking a group over and handing it on
 *   coordinator_plan.c    changes asked for by all members
 *   coordinator_gather.c  the gather service
 *
 * A function that takes both the coordinator and the group may end the group:
 * its caller does not touch it afterwards.
 */
#ifndef RG_CONTROL_COORDINATOR_STATE_H
#define RG_CONTROL_COORDINATOR_STATE_H

#include "runtime/control/coordinator.h"
#include "runtime/core/bitset.h"

/* Each phase but STEADY waits for the slots in `waiting`. */
enum rg_led_phase {
    RG_LED_FORMING = 0, /* for JOIN */
    RG_LED_CLAIMING,    /* for GRANT */
    RG_LED_STEADY,      /* for nothing */
    RG_LED_PREPARING,   /* for QUIESCED */
    RG_LED_PROPOSING    /* for VIEW_ACK */
};

/* What is known of the member in a slot. */
struct rg_led_slot {
    uint64_t silent;    /* ticks since it was heard */
    uint64_t completed; /* in the epoch in force */
    /* QUIESCED for the change in progress; null: not yet. */
    struct rg_message *quiet;
    /* From whom it cannot be reached; without words: nothing is known. */
    struct rg_bitset faults;
};

/* Somebody who waits to be let in. */
struct rg_led_join {
    struct rg_led_join *next;
    int slot;
    int rank;
    struct rg_message *message;
};

/* A change that all active members must ask for in the same words. */
struct rg_led_plan {
    struct rg_message *request; /* the first one; null: none */
    struct rg_bitset asked;
    uint64_t call; /* its number in this epoch */
    int status;    /* of this one once two differ */
    int refused;   /* status of the one before */
    int is_ready;  /* all have asked: it goes into the next view */
};

struct rg_led_gather;

/* A group that this coordinator leads, forms or claims. */
struct rg_led {
    struct rg_led *next;
    uint32_t id;
    enum rg_led_phase phase;
    uint64_t term;
    uint32_t attempt;  /* VIEWs proposed in this term */
    uint32_t in_force; /* the attempt that made `view` active */

    struct rg_view *view;     /* in force; null while the first one forms */
    struct rg_view *proposal; /* the one to come; null when STEADY */
    int adopts;               /* `proposal` is a view found, not made */

    struct rg_bitset waiting;
    struct rg_bitset audience;  /* who takes part in this phase */
    struct rg_bitset answered;  /* and has answered */
    struct rg_bitset confirmed; /* known to be in the view in force */
    struct rg_bitset tardy;     /* have not answered a successor in time */
    /* Of the members of the view in force: */
    struct rg_bitset gone;   /* dead */
    struct rg_bitset exited; /* dead, and can write nowhere */
    struct rg_bitset left;   /* have said LEAVE */
    int capacity;
    struct rg_led_slot *slots; /* [capacity] */

    int is_disturbed;         /* a change must find out what is wrong */
    int is_torn;              /* members are quiet for a change nobody ends */
    uint64_t stall_seq;       /* the last one somebody waits in, if any */
    struct rg_bitset stalled; /* who waits in some seq */
    struct rg_bitset accused; /* whom others wait for, or cannot reach */
    int is_hearing;           /* something new since the last tick */
    int has_faults;           /* some slot has */

    int has_rules;  /* somebody has taken the proposal, */
    uint64_t rules; /* and will run by rules of this hash */

    int join_status; /* RG_ECONFIG once two first joiners disagree */
    struct rg_led_join *joins;
    struct rg_led_plan plan;
    struct rg_led_gather *gathers;
    struct rg_message *gathered; /* the last answer, for whom it missed */
    uint64_t gathered_call;      /* that it was for; 0: none in this epoch */
    int is_starved;              /* no clean workspace */

    enum rg_reason reason;    /* of the claim */
    struct rg_message *found; /* the GRANT with the highest view */
};

struct rg_coordinator {
    struct rg_coordinator_config config;
    struct rg_led *groups;
    uint32_t *ended; /* [world_size] the last process known to have ended */
    uint64_t dropped;
};

/* ---- coordinator.c ------------------------------------------------------ */

struct rg_led *rg_led_find(const struct rg_coordinator *coordinator,
                           uint32_t id);
/* A group without a view, or null. */
struct rg_led *rg_led_create(struct rg_coordinator *coordinator, uint32_t id,
                             int capacity);
/* Frees it and cancels its timers. */
void rg_led_remove(struct rg_coordinator *coordinator, struct rg_led *led,
                   struct rg_effects *effects);
/* The members as they will be, else as they are. */
struct rg_view *rg_led_members(const struct rg_led *led);
/* Whether the slot's member of the view in force can be counted on. */
int rg_led_is_present(const struct rg_led *led, int slot);
/* This process's slot if it is a present member, else -1. */
int rg_led_own_slot(const struct rg_coordinator *coordinator,
                    const struct rg_led *led);
struct rg_message *rg_led_message(const struct rg_led *led,
                                  enum rg_message_kind kind);
/* Sends to a slot; the reference stays the caller's. */
void rg_led_send(const struct rg_led *led, int slot, struct rg_message *message,
                 struct rg_effects *effects);
/* Sends to the slots of the set and drops the reference. */
void rg_led_cast(const struct rg_led *led, const struct rg_bitset *slots,
                 struct rg_message *message, struct rg_effects *effects);
/* To all present members of the view in force; drops the reference. */
void rg_led_cast_all(const struct rg_led *led, struct rg_message *message,
                     struct rg_effects *effects);
void rg_led_set_window(const struct rg_led *led, uint64_t ms,
                       struct rg_effects *effects);
/* Tells all who take part how far all have come. */
void rg_led_beat(const struct rg_led *led, struct rg_effects *effects);
/* Whether those who have answered may decide. */
int rg_led_has_quorum(const struct rg_led *led);

/* ---- coordinator_member.c ----------------------------------------------- */

void rg_led_on_join(struct rg_coordinator *coordinator, struct rg_led *led,
                    int rank, struct rg_message *message,
                    struct rg_effects *effects);
void rg_led_on_leave(struct rg_coordinator *coordinator, struct rg_led *led,
                     int slot, const struct rg_message *message,
                     struct rg_effects *effects);
void rg_led_on_report(struct rg_coordinator *coordinator, struct rg_led *led,
                      int slot, const struct rg_message *message,
                      struct rg_effects *effects);
void rg_led_on_heartbeat(struct rg_coordinator *coordinator, struct rg_led *led,
                         int slot, const struct rg_message *message,
                         struct rg_effects *effects);
/* A process has ended; exited: and its memory is out of its reach. */
void rg_led_on_end(struct rg_coordinator *coordinator, struct rg_led *led,
                   int rank, uint32_t process, int exited,
                   struct rg_effects *effects);
/* This incarnation writes nowhere any more. */
void rg_led_on_fenced(struct rg_coordinator *coordinator, struct rg_led *led,
                      int rank, uint32_t incarnation,
                      struct rg_effects *effects);
/* Tells members of joiners, and of failures that wait for a CHANGE. */
void rg_led_notify(const struct rg_coordinator *coordinator,
                   const struct rg_led *led, struct rg_effects *effects);
void rg_led_forget_joins(struct rg_led *led, int admitted_only);
/* The rank's incarnations up to this one do not wait any more. */
void rg_led_drop_join(struct rg_led *led, int rank, uint32_t last);

/* ---- coordinator_change.c ----------------------------------------------- */

/* When steady: starts the change that what is known calls for, if any. */
void rg_led_review(struct rg_coordinator *coordinator, struct rg_led *led,
                   struct rg_effects *effects);
/* Starts the flush; the caller knows that it is needed. */
void rg_led_prepare(struct rg_coordinator *coordinator, struct rg_led *led,
                    struct rg_effects *effects);
/* Proposes led->proposal, as it is, to the audience. */
void rg_led_propose(struct rg_coordinator *coordinator, struct rg_led *led,
                    struct rg_effects *effects);
/* A member of the change has died. */
void rg_led_lose_member(struct rg_coordinator *coordinator, struct rg_led *led,
                        int slot, struct rg_effects *effects);
void rg_led_on_quiesced(struct rg_coordinator *coordinator, struct rg_led *led,
                        int slot, struct rg_message *message,
                        struct rg_effects *effects);
void rg_led_on_view_ack(struct rg_coordinator *coordinator, struct rg_led *led,
                        int slot, const struct rg_message *message,
                        struct rg_effects *effects);
/* The window of this phase has passed. */
void rg_led_on_window(struct rg_coordinator *coordinator, struct rg_led *led,
                      struct rg_effects *effects);
/* Repeats this phase's message to those who have not answered. */
void rg_led_repeat(const struct rg_led *led, struct rg_effects *effects);

/* ---- coordinator_claim.c ------------------------------------------------ */

void rg_led_on_stand(struct rg_coordinator *coordinator, struct rg_led *led,
                     const struct rg_message *message,
                     struct rg_effects *effects);
void rg_led_on_grant(struct rg_coordinator *coordinator, struct rg_led *led,
                     int slot, struct rg_message *message,
                     struct rg_effects *effects);
void rg_led_on_refuse(struct rg_coordinator *coordinator, struct rg_led *led,
                      const struct rg_message *message,
                      struct rg_effects *effects);
/* Takes office if a quorum has granted. */
void rg_led_try_elected(struct rg_coordinator *coordinator, struct rg_led *led,
                        struct rg_effects *effects);
/* CLAIM to those who have not granted. */
void rg_led_claim(struct rg_coordinator *coordinator, struct rg_led *led,
                  struct rg_effects *effects);
/* No quorum: gives the group up and says so to whom it can reach. */
void rg_led_give_up(struct rg_coordinator *coordinator, struct rg_led *led,
                    struct rg_effects *effects);
/* Asks another member to take over, and ends here. 0: there is none. */
int rg_led_hand_over(struct rg_coordinator *coordinator, struct rg_led *led,
                     struct rg_effects *effects);

/* ---- coordinator_plan.c ------------------------------------------------- */

void rg_led_on_plan(struct rg_coordinator *coordinator, struct rg_led *led,
                    int slot, struct rg_message *message,
                    struct rg_effects *effects);
/* A member less to ask: the plan may be complete now. */
void rg_led_refuse_plan(struct rg_led *led, int status,
                        struct rg_effects *effects);
void rg_led_try_plan(struct rg_coordinator *coordinator, struct rg_led *led,
                     struct rg_effects *effects);
/* Writes the ready plan into the proposal. */
void rg_led_apply_plan(struct rg_led *led, struct rg_effects *effects);
/* Whether the ready plan deactivates the slot. */
int rg_led_plan_removes(const struct rg_led *led, int slot);
/* A new epoch counts its plans anew. */
void rg_led_reset_plan(struct rg_led *led);

/* ---- coordinator_gather.c ----------------------------------------------- */

void rg_led_on_gather(struct rg_coordinator *coordinator, struct rg_led *led,
                      int slot, const struct rg_message *message,
                      struct rg_effects *effects);
/* Ends every open gather with this status. */
void rg_led_abort_gathers(struct rg_led *led, int status,
                          struct rg_effects *effects);
/* Frees all, without a word. */
void rg_led_forget_gathers(struct rg_led *led);

#endif
