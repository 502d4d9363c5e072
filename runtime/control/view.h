/*
 * GroupView: what all members of a group agree on for one epoch.
 *
 * A view is a value. The coordinator owns the one it works on; one that is in a
 * message is shared by references and never changed, by one thread at a time. A
 * view handed to the caller of the driver is the caller's own copy.
 */
#ifndef RG_CONTROL_VIEW_H
#define RG_CONTROL_VIEW_H

#include <stdint.h>

#include "runtime/control/pairs.h"
#include "runtime/core/bitset.h"
#include "runtime/types.h"

enum rg_member_status {
    RG_MEMBER_NONE = 0, /* the slot has never been used */
    RG_MEMBER_INACTIVE, /* deactivated, may come back */
    RG_MEMBER_JOINING,
    RG_MEMBER_ACTIVE,
    RG_MEMBER_FAILED,
    RG_MEMBER_LEFT
};

enum rg_view_status {
    RG_VIEW_FORMING = 0,
    RG_VIEW_ACTIVE,
    RG_VIEW_CHANGING,
    RG_VIEW_ISOLATED
};

enum rg_capability {
    RG_CAP_NEW_BACKEND = 1 << 0, /* device algorithms can run here */
    RG_CAP_P2P = 1 << 1,
    RG_CAP_PROXY = 1 << 2
};

enum {
    RG_HOST_ID_BYTES = 64,
    RG_UUID_BYTES = 48,
    RG_ADDRESS_BYTES = 48, /* a numeric address and its terminator */
    RG_UNIX_NAME_BYTES = 48,
    RG_MEMBER_CARD_BYTES = 256, /* what the host engine needs to connect */
    /* An incarnation: the process in the high bits, its joins in the low. */
    RG_INCARNATION_SHIFT = 16
};

/* Where a process listens for others of its job. */
struct rg_endpoint {
    char address[RG_ADDRESS_BYTES];
    uint32_t port;
    char unix_name[RG_UNIX_NAME_BYTES]; /* abstract, without the leading 0 */
};

/*
 * Who may propose, in a total order: the higher term; in one term the lower
 * world rank; of one leader the later attempt.
 */
struct rg_ballot {
    uint64_t term;
    int leader; /* world rank */
    uint32_t attempt;
};

/* What a member tells of itself when it joins; fixed for an incarnation. */
struct rg_member_info {
    uint32_t capabilities; /* enum rg_capability bits */
    uint32_t preference;   /* enum rg_backend: LEGACY or NEW */
    uint32_t device_kind;  /* enum rg_device_kind */
    uint32_t cores;        /* host cores or multiprocessors */
    uint64_t region_bytes; /* must be the same at every member */
    uint64_t layout_hash;  /* of the algorithm table and workspace layout */
    /* Where its region is, as others on its host may map it. */
    uint64_t region_process;
    uint64_t region_base;
    unsigned char card[RG_MEMBER_CARD_BYTES];
    char host_id[RG_HOST_ID_BYTES];
    char device_uuid[RG_UUID_BYTES];
};

struct rg_member {
    enum rg_member_status status;
    int world_rank;
    uint32_t incarnation;
    /*
     * Of a member that is not active: 1 + the generation it may still write
     * to, since it is neither known to have exited nor to be fenced; 0: none.
     */
    uint32_t quarantine;
    struct rg_member_info info;
    struct rg_endpoint endpoint;
};

/* A directed pair of slots whose route has failed `count` times. */
struct rg_link_fault {
    int from;
    int to;
    uint32_t count;
};

struct rg_view {
    int references;
    uint32_t group;
    /* Who first proposed it; with the epoch, its name for ever. */
    uint64_t term;
    int coordinator; /* world rank */
    uint32_t attempt;
    uint64_t epoch; /* 0: none yet; the first view is epoch 1 */
    enum rg_view_status status;
    int capacity;
    struct rg_member *members; /* [capacity], by slot; owned */
    int *order;                /* [nactive] rank -> slot; owned */
    int nactive;
    enum rg_backend backend;
    char *policy; /* selection text, terminated, may be ""; owned */
    uint64_t policy_hash;
    uint64_t committed_seq;
    uint64_t first_seq;
    uint32_t workspace; /* the generation this epoch uses */
    /* The collective request of the epoch before that it answers; 0: none. */
    uint64_t plan;
    /* What both ends of a pair had done in the epoch before. */
    struct rg_pairs pairs;
    struct rg_link_fault *faults; /* [nfaults], owned */
    int nfaults;
};

/* An empty view of `capacity` slots, or null. */
struct rg_view *rg_view_create(uint32_t group, int capacity);
struct rg_view *rg_view_clone(const struct rg_view *view);
/* One more reference to the same view. */
struct rg_view *rg_view_ref(struct rg_view *view);
/* Drops a reference; frees with the last. Accepts null. */
void rg_view_destroy(struct rg_view *view);
/* Rebuilds order and nactive from the members, ascending by slot. */
void rg_view_reorder(struct rg_view *view);
/* The slot of a world rank's current incarnation, or -1. */
int rg_view_slot_of(const struct rg_view *view, int world_rank);
/* The dense rank of an active slot, or -1. */
int rg_view_rank_of(const struct rg_view *view, int slot);
/* Whether this incarnation of the world rank is an active member. */
int rg_view_is_active(const struct rg_view *view, int world_rank,
                      uint32_t incarnation);
/* Whether both are the same proposal: equal epoch and origin (term,
 * coordinator, attempt). */
int rg_view_is_same(const struct rg_view *a, const struct rg_view *b);
/*
 * Whether `voters` (slots) may decide what follows this view. They may if they
 * are all the active members but those `absent` (dead, or gone for good); or
 * more than half of the active; or exactly half with the lowest slot. The
 * absent count as not voting: two disjoint sets of live members never both
 * hold a quorum, whoever died after voting.
 */
int rg_view_has_quorum(const struct rg_view *view,
                       const struct rg_bitset *voters,
                       const struct rg_bitset *absent);
/* Whether some excluded member may still act: see quarantine. */
int rg_view_has_stragglers(const struct rg_view *view);
/* Whether both may map each other's memory, by what they tell of themselves. */
int rg_member_can_map(const struct rg_member *a, const struct rg_member *b);
/* Counts one more failure of the pair. RG_OK or RG_ENOMEM. */
int rg_view_add_fault(struct rg_view *view, int from, int to);

/* < 0, 0, > 0 as in the order of ballots. */
int rg_ballot_compare(const struct rg_ballot *a, const struct rg_ballot *b);

/* Copies the text and sets policy_hash. RG_OK or RG_ENOMEM. */
int rg_view_set_policy(struct rg_view *view, const char *policy);

#endif
