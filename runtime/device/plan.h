/*
 * Shared layouts of a communicator's device side: the control word, the hot
 * line, the plan, and the launch block. All of it keeps its address for the
 * communicator's life; membership and policy change its content.
 *
 * Control word, 64 bits:
 *
 *   63 .................. 21  20    19        18    17 ..... 9  8 ...... 0
 *   claimed seq (its low 43)  HELD  INFLIGHT  PLAN  messengers  arrivals
 *
 * A claim is one atomic add. A launch of one team adds 1 << 21: the seq, which
 * is on top so that its wrap leaves the other fields alone. A launch of many
 * teams adds 1 a team, and its last team, when it closes, turns the arrivals
 * into one seq. So the word is claimed while seq, or arrivals, says more than
 * `completed`. A launch of messages, which has no seq, adds 1 << 9 a team, and
 * its last team takes them off again. Setting HELD (by compare and swap, with
 * INFLIGHT = arrivals or messengers > 0) freezes it: a claim that reads HELD
 * without INFLIGHT has touched nothing, waits, and claims again after the word
 * was rewritten; one that reads HELD with INFLIGHT belongs to a claimed launch
 * and only closes.
 */
#ifndef RG_DEVICE_PLAN_H
#define RG_DEVICE_PLAN_H

#include "runtime/device/dev.h"
#include "runtime/device/proxy.h"
#include "runtime/device/route.h"
#include "runtime/types.h"

#define RG_CONTROL_SEQ_SHIFT  21
#define RG_CONTROL_SEQ_MASK   (UINT64_MAX >> RG_CONTROL_SEQ_SHIFT)
#define RG_CONTROL_HELD       (1ull << 20)
#define RG_CONTROL_INFLIGHT   (1ull << 19)
#define RG_CONTROL_PLAN       (1ull << 18)
#define RG_CONTROL_MESSENGER  (1ull << 9)
#define RG_CONTROL_MESSENGERS (RG_CONTROL_PLAN - RG_CONTROL_MESSENGER)
#define RG_CONTROL_ARRIVALS   (RG_CONTROL_MESSENGER - 1)

enum {
    RG_LINE = 128,        /* bytes between words of different writers */
    RG_HOT_PEERS = 8,     /* inbox pointers on the hot line */
    RG_MAX_ALGOS = 16,    /* per collective */
    RG_MAX_RULES = 32,    /* per collective, of all types */
    RG_MAX_CHANNELS = 64, /* a launch has at most two teams a channel */
    RG_MAX_SLOTS = 4096
};

/* Collectives whose small buffers go by the hot line, beside all_reduce. */
#define RG_HOT_LIST(X)                                                         \
    X(all_gather)                                                              \
    X(reduce_scatter)                                                          \
    X(all_to_all)                                                              \
    X(broadcast)

#define RG_X(name) RG_HOT_##name,
enum rg_hot_coll { RG_HOT_LIST(RG_X) RG_HOT_COLLS };
#undef RG_X

/* What the host says of a plan's small path; the keeper writes the hot line. */
struct rg_hot_plan {
    uint64_t first_seq;
    uint64_t run; /* RG_RUN of an invocation that goes by the line */
    uint64_t packet_cursor;
    uint8_t *packets;          /* this rank's packet slots, for local polling */
    uint32_t packet_max_bytes; /* packets up to this payload; 0: never */
    uint32_t packet_stride;    /* bytes between two ranks' slots */
    uint32_t packet_half;      /* bytes between the two cursor parities */
    uint16_t rank;
    uint16_t nranks;
    /* By rank: where the peer keeps the slot this rank writes (own: null). */
    uint8_t *inbox[RG_HOT_PEERS];
    uint16_t slot[RG_HOT_PEERS]; /* of the group, by rank */
    /* Blocks of up to 2^(size - 1) packets go by the line; 0: none does. */
    uint8_t size[RG_HOT_COLLS];
    uint8_t unused[4];
};

/*
 * All that a small invocation reads, for the plan in force: one line, loaded
 * in one wave while the claim is on its way. A launch may read it while it is
 * rewritten. So what depends on the plan carries the plan's index, the *mark*,
 * in a bit of its own: marks that are equal, and a claim that found the word as
 * `completed` and the mark say, prove that all of it was of the plan in force
 * (hot.h).
 */
struct rg_hot_line {
    uint64_t packets; /* address | mark */
    uint64_t packet_run;
    uint64_t completed; /* seq of the last invocation that ended here */
    uint64_t cursor;    /* invocations that used packets << 1 | mark */
    uint64_t sizes;     /* RG_HOT_SIZES */
    uint64_t ranks;     /* RG_HOT_RANKS | mark */
    uint64_t run;       /* what ran last: RG_RUN_* */
    uint64_t blocks;    /* RG_HOT_SIZE | mark */
    uint64_t inbox[RG_HOT_PEERS]; /* RG_HOT_INBOX | mark */
};

/* A collective's byte of `blocks`, and what an inbox word is made of: a host
 * or device address has no more than 52 bits. */
#define RG_HOT_SIZE(collective, size)                                          \
    ((uint64_t)(size) << (8 * (1 + (int)(collective))))
#define RG_HOT_ADDRESS_BITS 52
#define RG_HOT_INBOX(address, slot)                                            \
    ((uint64_t)(slot) << RG_HOT_ADDRESS_BITS | (uint64_t)(address))

/* No size is served while seqs are below first_seq: those are aborted. */
#define RG_HOT_SIZES(max_bytes, stride)                                        \
    ((uint64_t)(stride) << 32 | (uint64_t)(max_bytes))
#define RG_HOT_RANKS(half, rank, nranks)                                       \
    ((uint64_t)(nranks) << 48 | (uint64_t)(rank) << 32 | (uint64_t)(half))

static_assert(sizeof(struct rg_hot_line) == RG_LINE, "one line");
static_assert((int)RG_COLL_AREAS <= 16 && (int)RG_MAX_ALGOS <= 16, "RG_RUN");

/* `run`: collective, algorithm index, channels, epoch (low 32 bits), all in one
 * store. */
#define RG_RUN(collective, algo, channels, epoch)                              \
    ((uint64_t)(collective) << 60 | (uint64_t)(algo) << 56 |                   \
     (uint64_t)(channels) << 32 | (uint32_t)(epoch))
#define RG_RUN_COLLECTIVE(run) ((int)((run) >> 60))
#define RG_RUN_ALGO(run)       ((int)((run) >> 56 & 0xf))
#define RG_RUN_CHANNELS(run)   ((int)((run) >> 32 & 0xffffff))
#define RG_RUN_EPOCH(run)      ((uint32_t)(run))

/*
 * A selection rule resolved for this view. It serves sizes below `below` that
 * no rule of the same type ahead of it serves; the last one of each type
 * serves the rest.
 */
struct rg_rule {
    uint64_t below;  /* bytes of the rank's buffer, exclusive */
    uint32_t dtypes; /* bit 1 << enum rg_dtype for each type it serves */
    uint32_t algo;   /* index in the collective's list */
    uint32_t channels;
    uint32_t chunk; /* bytes of one pipeline step, a multiple of 16 */
    uint32_t slot;  /* bytes between two chunks' places in the workspace: the
                       same in all of an algorithm's rules, at least a chunk */
    uint32_t unused;
};

/*
 * Rules go by the bytes of a rank's largest buffer: so many blocks of `count`
 * elements. That of all_to_all_v is counted as if all its pairs were the
 * largest.
 */
RG_FN uint64_t rg_rule_blocks(enum rg_collective collective, int slots)
{
    switch (collective) {
    case RG_COLL_all_gather:
    case RG_COLL_reduce_scatter:
    case RG_COLL_all_to_all:
    case RG_COLL_all_to_all_v:
    case RG_COLL_gather:
    case RG_COLL_scatter:
        return (uint64_t)slots;
    default:
        return 1;
    }
}

struct rg_rules {
    uint64_t count;
    struct rg_rule rule[RG_MAX_RULES];
};

/*
 * Where a rank stands among the view's nodes. A node is the ranks of one host,
 * or those that the settings count as one; nodes are numbered by their lowest
 * rank, ranks of a node in rank order.
 */
struct rg_place {
    uint32_t node;
    uint32_t local; /* within the node */
    uint32_t size;  /* ranks of the node */
    uint32_t unused;
};

/*
 * One epoch's plan of one rank. `routes` has `capacity` entries behind it, of
 * which `nranks` are used, and as many places behind them: rg_plan_places().
 */
struct rg_plan {
    uint64_t epoch;
    uint64_t first_seq;
    uint32_t rank;
    uint32_t nranks;
    uint32_t capacity;
    uint32_t max_channels; /* what the workspace is laid out for */
    uint32_t nodes;
    uint32_t widest;    /* ranks of the largest node */
    uint64_t workspace; /* offset of this epoch's generation in the region */
    uint8_t *landing;   /* what peers write: the region, or its host segment */
    struct rg_proxy_fifo *proxy; /* null: no peer is reached through the host */
    uint64_t offset[RG_COLL_AREAS][RG_MAX_ALGOS]; /* algorithm's area in it */
    struct rg_rules rules[RG_COLL_COUNT];
    struct rg_route routes[]; /* by dense rank */
};

/* The ranks' places, by dense rank. */
RG_FN const struct rg_place *rg_plan_places(const struct rg_plan *plan)
{
    return (const struct rg_place *)(const void *)(plan->routes +
                                                   plan->capacity);
}

/* The dense rank in a slot; -1: the slot is not active. */
RG_FN int rg_plan_rank(const struct rg_plan *plan, uint32_t slot)
{
    for (int r = 0; r < (int)plan->nranks; r++)
        if (plan->routes[r].slot == slot)
            return r;
    return -1;
}

RG_FN const struct rg_rule *rg_rule_for(const struct rg_plan *plan,
                                        enum rg_collective collective,
                                        enum rg_dtype dtype, uint64_t bytes)
{
    const struct rg_rules *rules = &plan->rules[collective];
    uint64_t i = 0;

    while (i + 1 < rules->count && (bytes >= rules->rule[i].below ||
                                    !(rules->rule[i].dtypes >> dtype & 1)))
        i++;
    return &rules->rule[i];
}

/* Why an invocation failed, and all peers its teams waited for. */
struct rg_latch {
    uint64_t reasons; /* bit -status for each status met; 0: no failure */
    uint64_t step;    /* of the last team that failed */
    uint64_t peers[RG_MAX_SLOTS / 64];
};

struct rg_mailbox; /* mailbox.h */
struct rg_orders;

/* Device-side state of one communicator on one rank, at a stable address. */
struct rg_comm_dev {
    struct rg_hot_line hot;
    uint64_t control __attribute__((aligned(RG_LINE))); /* the control word */
    uint64_t unclaimed[15];
    uint64_t arrived __attribute__((aligned(RG_LINE))); /* closing counter */
    uint64_t unused[15];
    struct rg_latch latch;
    uint64_t hot_sizes;   /* the line's, once first_seq is reached */
    uint64_t frozen;      /* claimed seq when HELD was set last */
    uint64_t stopped;     /* the last seq that ended at the safe point */
    uint64_t keepers;     /* so far: whoever adds the next one keeps */
    uint64_t deadline_ns; /* budget of one wait */
    uint64_t gate_ns;     /* between two looks at abort word and latch */
    uint64_t park_ns;     /* budget of a launch that finds the word held */
    uint64_t keep_ns;     /* budget of the keeper's wait for an order */
    uint64_t parks;       /* 1: who stops at the safe point keeps the word */
    uint8_t *region;      /* this rank's region */
    uint64_t region_bytes;
    uint8_t *segment; /* the host segment as teams see it, or null */
    /* Messages that have ended here in the epoch, sent to and received from
     * each slot, RG_MESSAGES_OF(slot) on; where the keeper tells the host of
     * them; and of how many slots. */
    uint64_t *messages;
    uint64_t *told;
    uint64_t slots;
    /* The epoch whose begin has undone messages of this rank's, or 0; and,
     * mapped, the last one of them that the caller has taken note of. Until it
     * has, launches of messages end at once. */
    uint64_t undone;
    const uint64_t *noted;
    struct rg_proxy_heads proxy_heads[RG_LANES];
    const uint64_t *abort_epoch; /* mapped: highest epoch to abort */
    struct rg_mailbox *mailbox;  /* mapped, as the orders */
    const struct rg_orders *orders;
    struct rg_plan *plan[2];
};

/* Slot's two words of the counts: sent to it, received from it. */
#define RG_MESSAGES_OF(slot) (2 * (uint64_t)(slot))

enum rg_post_kind {
    RG_POST_SEND = 0,
    RG_POST_RECV,
    RG_POST_COPY /* to the own slot: both ends in one */
};

enum { RG_POST_NONE = 0xffff };

/* One of a launch of messages, which all make progress at once. */
struct rg_post {
    const void *from;
    void *to;
    uint64_t bytes;
    uint32_t slot;
    uint16_t kind;
    uint16_t before; /* the last of its kind and slot ahead of it, or none */
};

/* Parameters of one launch, by value. Pointers are stable or the user's. */
struct rg_launch {
    struct rg_comm_dev *comm;
    const void *send;
    void *recv;
    uint64_t count; /* of what is built: bytes, where data is only moved */
    uint32_t collective;
    uint32_t root; /* a slot */
    uint32_t op;
    uint32_t slots; /* slot count the buffers were sized for */
    uint32_t dtype; /* for rules; what is built for one may serve another */
    uint32_t unit;  /* all_to_all_v: bytes of what its layout counts */
    const uint64_t *layout;      /* all_to_all_v (regroup.h) */
    uint64_t room[2];            /* all_to_all_v: elements of send and recv */
    const struct rg_post *posts; /* sendrecv: as teams see them */
    uint64_t nposts;
};

/* Of sendrecv, whose messages go with the launch. */
struct rg_post_launch {
    struct rg_launch launch;
    struct rg_post post[RG_GROUP_MAX];
};

#endif
