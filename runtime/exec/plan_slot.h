/*
 * Workspace layout and plans.
 *
 * A layout is fixed for a communicator: which algorithms there are, and where
 * each has its area within a workspace generation. Sizing: a communicator's
 * share of the region is region / RG_SHARES; it holds the generations. In a
 * generation each algorithm has an even part of what those before it in the
 * table left: so those that want little are best listed first. An algorithm
 * that cannot work in its part reports so and is not eligible.
 *
 * A plan is what one epoch runs by; it is built in host memory here and copied
 * to the idle plan of the device.
 */
#ifndef RG_EXEC_PLAN_SLOT_H
#define RG_EXEC_PLAN_SLOT_H

#include "runtime/algo.h"
#include "runtime/control/view.h"
#include "runtime/device/mailbox.h"

enum { RG_SHARES = 4, RG_AREA_ALIGN = 4096 };

struct rg_layout {
    struct rg_shape shape; /* with the budget of the last algorithm */
    int count[RG_COLL_AREAS];
    const struct rg_algo *algo[RG_COLL_AREAS][RG_MAX_ALGOS];
    struct rg_limits limits[RG_COLL_AREAS][RG_MAX_ALGOS];
    uint64_t offset[RG_COLL_AREAS][RG_MAX_ALGOS];
    uint64_t budget[RG_COLL_AREAS][RG_MAX_ALGOS]; /* of its area */
    uint64_t bytes;                               /* of one generation */
    uint64_t hash; /* equal hashes: same algorithms at the same offsets */
};

/* share: bytes of region for the communicator. RG_OK or RG_ENOSPC. */
int rg_layout_init(struct rg_layout *layout_out,
                   const struct rg_algo *const *algos, int capacity,
                   int max_channels, int generations, uint64_t share);
/* The algorithm's index in its collective, or -1. */
int rg_layout_find(const struct rg_layout *layout, int coll, const char *name);

struct rg_selection;

/* What a plan is made from, beside the layout. */
struct rg_plan_input {
    const struct rg_view *view;
    const struct rg_route *routes; /* [view->nactive]; not for rules alone */
    int rank;
    enum rg_device_kind kind;
    int channels;        /* of a rule that does not say how many */
    uint64_t node_ranks; /* slots that count as one node; 0: by their host */
    uint64_t workspace;  /* offset of the generation in the region */
    /* What the view's policy says (select.h); null: it is read anew. */
    const struct rg_selection *selection;
};

/* Bytes of a plan for a capacity. */
size_t rg_plan_bytes(int capacity);
/* RG_OK or RG_ENOMEM. A plan passes over what cannot run (select.h). */
int rg_plan_build(const struct rg_layout *layout,
                  const struct rg_plan_input *input, struct rg_plan *plan_out);
/*
 * What an epoch that ran by this plan leaves behind, and the next one in its
 * workspace must find zero: of the algorithms that a rule names, and of those
 * that need none, signals, cursors, and packet slots as far as a rule reaches.
 * Returns how many of RG_CLEAN_PARTS it filled.
 */
int rg_plan_parts(const struct rg_layout *layout, const struct rg_plan *plan,
                  struct rg_part *parts_out);
/* Whether an all-reduce of so many bytes goes by the hot line. */
int rg_plan_is_hot(const struct rg_layout *layout, const struct rg_plan *plan,
                   uint64_t bytes);
/* The small path's excerpt of a plan. `region` is the own region. */
void rg_plan_excerpt(const struct rg_layout *layout, const struct rg_plan *plan,
                     uint8_t *region, struct rg_hot_plan *hot_out);

#endif
