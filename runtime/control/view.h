/*
 * GroupView: what all members of a group agree on for one epoch.
 *
 * A view is a value. Coordinator and agents own their copies; a view handed to
 * the caller of the driver is the caller's until rg_view_destroy().
 */
#ifndef RG_CONTROL_VIEW_H
#define RG_CONTROL_VIEW_H

#include <stdint.h>

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

enum { RG_HOST_ID_BYTES = 64, RG_UUID_BYTES = 48 };

/* What a member tells of itself when it joins; fixed for an incarnation. */
struct rg_member_info {
    uint32_t capabilities;    /* enum rg_capability bits */
    uint32_t preference;      /* enum rg_backend: LEGACY or NEW */
    uint32_t device_kind;     /* enum rg_device_kind */
    uint32_t cores;           /* host cores or multiprocessors */
    uint64_t region_bytes;    /* must be the same at every member */
    uint64_t layout_hash;     /* of the algorithm table and workspace layout */
    char host_id[RG_HOST_ID_BYTES];
    char device_uuid[RG_UUID_BYTES];
};

struct rg_member {
    enum rg_member_status status;
    int world_rank;
    uint32_t incarnation;
    struct rg_member_info info;
};

struct rg_view {
    uint32_t group;
    uint64_t term;
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
};

/* An empty view of `capacity` slots, or null. */
struct rg_view *rg_view_create(uint32_t group, int capacity);
struct rg_view *rg_view_clone(const struct rg_view *view);
void rg_view_destroy(struct rg_view *view); /* accepts null */
/* Rebuilds order and nactive from the members, ascending by slot. */
void rg_view_reorder(struct rg_view *view);
/* The slot of a world rank's current incarnation, or -1. */
int rg_view_slot_of(const struct rg_view *view, int world_rank);
/* The dense rank of an active slot, or -1. */
int rg_view_rank_of(const struct rg_view *view, int slot);
/* Copies the text and sets policy_hash. RG_OK or RG_ENOMEM. */
int rg_view_set_policy(struct rg_view *view, const char *policy);

#endif
