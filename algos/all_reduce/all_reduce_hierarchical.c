/*
 * All-reduce in two levels: within nodes, and between them.
 *
 * A step serves C columns of at most a chunk each; pattern/nodes.h says who
 * owns a column. With G nodes, an owner cuts its column into G parts, part g at
 * home in node g. Per step, with columns of b bytes:
 *
 *   0. scatter: each column goes to its owner in the node
 *   1. combine: an owner reduces its column over its node, in rank order, and
 *      sends part g to the column's owner in node g   (G-1)/G x b across
 *   2. finish: an owner reduces its own part over the nodes, in their order,
 *      and sends it to the column's other owners      (G-1)/G x b across
 *   3. gather: an owner has its whole column, and sends it to its node
 *   4. keep: columns of others are kept
 *
 * So a node sends 2 (G-1)/G times the buffer to other nodes, and as much comes
 * in: no all-reduce can do with less, and with two nodes each byte crosses
 * once per direction. With one node 1 and 2 have nobody to send to, with nodes
 * of one rank 0, 3 and 4 have not. One rank makes each result, so all have the
 * same bits.
 *
 * Each way (scatter, combine, finish, gather) has a word for each writer that
 * says what has arrived, one that gives its slots back, and slots of its own:
 * `depth` turns of them. A team does 0 to 4 for steps k, k-1, .. k-4; so what
 * it waits for others have sent in an earlier round of this loop, as long as
 * depth is at least 2, and nobody waits in a circle. In place, a column is
 * written over once it has been sent, or by the reduction that reads it.
 *
 *   area: full[channel][way][rank], credit[channel][way][rank],
 *         cursor[channel]                    one word a line
 *         inbox[channel][depth][slot]
 *
 * With s ranks in the node, w = ceil(C/s) columns at most a rank:
 *   scatter [own column][writer]      w (s-1)   slots
 *   combine [own column], by node     w
 *   finish  [own column], by node     w
 *   gather  [column of others]        w (s-1)
 * 2 w s in all, and that is 2 n at most: if s = C, w is 1 and s <= n; else
 * w s <= C + s - 1 < n, for there is a node of C ranks beside this one.
 */
#include "algos/all_reduce/all_reduce.h"
#include "algos/pattern/nodes.h"
#include "runtime/device/reduce.h"
#include "runtime/device/transfer.h"

enum { RG_HIERARCHICAL_DEPTH = 2, RG_HIERARCHICAL_MAX_RANKS = 64 };

enum all_reduce_hierarchical_way {
    RG_WAY_SCATTER = 0,
    RG_WAY_COMBINE,
    RG_WAY_FINISH,
    RG_WAY_GATHER,
    RG_WAYS
};

/* Words and lines of a channel, in bytes. */
RG_FN uint64_t all_reduce_hierarchical_words(uint64_t capacity)
{
    return (2 * RG_WAYS * capacity + 1) * RG_LINE;
}

/* A slot has a chunk, whose parts may be rounded up to a grain each. */
RG_FN uint64_t all_reduce_hierarchical_slot(uint64_t capacity, uint64_t chunk)
{
    return chunk + capacity * RG_GRAIN;
}

/* One channel of one invocation. */
struct all_reduce_hierarchical {
    const struct rg_place *places; /* by rank */
    const struct rg_place *here;   /* this rank's */
    uint64_t begin, end;           /* elements */
    uint64_t most;                 /* elements of a column */
    uint64_t steps;
    uint64_t turn;  /* steps of earlier invocations */
    uint64_t words; /* offsets in the region */
    uint64_t inbox;
    uint64_t slot; /* bytes */
    uint64_t capacity;
    int columns, nodes;
    int lane;
    int rank, nranks;
};

/* One step's columns and parts. */
struct all_reduce_hierarchical_step {
    uint64_t base;   /* the first element */
    uint64_t column; /* elements of a column; the last ones may be short */
    uint64_t part;   /* elements of a column's part; the same */
    uint64_t turn;
};

/* ---- where things are --------------------------------------------------- */

RG_FN uint64_t *all_reduce_hierarchical_cursor(const struct rg_call *call,
                                               uint64_t words)
{
    return (uint64_t *)(void *)rg_inbox(
        call, words + 2ull * RG_WAYS * call->plan->capacity * RG_LINE);
}

RG_FN struct all_reduce_hierarchical
all_reduce_hierarchical_open(const struct rg_call *call, int channel)
{
    const uint64_t c = (uint64_t)channel;
    struct all_reduce_hierarchical s;
    uint64_t whole;

    s.places = rg_plan_places(call->plan);
    s.rank = (int)call->plan->rank;
    s.nranks = (int)call->plan->nranks;
    s.here = &s.places[s.rank];
    s.columns = (int)call->plan->widest;
    s.nodes = (int)call->plan->nodes;
    s.lane = channel % RG_LANES;
    s.capacity = call->plan->capacity;
    s.most = call->rule->chunk / sizeof(rg_elem);
    s.slot = all_reduce_hierarchical_slot(s.capacity, call->rule->slot);
    s.words = call->workspace + c * all_reduce_hierarchical_words(s.capacity);
    s.inbox =
        call->workspace +
        call->plan->max_channels * all_reduce_hierarchical_words(s.capacity) +
        c * RG_HIERARCHICAL_DEPTH * 2 * s.capacity * s.slot;
    s.turn = rg_load_relaxed(all_reduce_hierarchical_cursor(call, s.words));
    rg_share_elems(call->count, channel, (int)call->rule->channels, &s.begin,
                   &s.end);
    whole = s.most * (uint64_t)s.columns;
    s.steps = (s.end - s.begin + whole - 1) / whole;
    return s;
}

RG_FN struct all_reduce_hierarchical_step
all_reduce_hierarchical_step_of(const struct all_reduce_hierarchical *s,
                                uint64_t k)
{
    const uint64_t columns = (uint64_t)s->columns, nodes = (uint64_t)s->nodes;
    struct all_reduce_hierarchical_step t;

    t.base = s->begin + k * s->most * columns;
    t.column = rg_min_u64(
        rg_part_round((s->end - t.base + columns - 1) / columns), s->most);
    t.part = rg_part_round((t.column + nodes - 1) / nodes);
    t.turn = s->turn + k;
    return t;
}

/* Column c: its first element, and its length. */
RG_FN uint64_t all_reduce_hierarchical_column(
    const struct all_reduce_hierarchical *s,
    const struct all_reduce_hierarchical_step *t, int c, uint64_t *n_out)
{
    const uint64_t at = rg_min_u64(t->base + (uint64_t)c * t->column, s->end);

    *n_out = rg_min_u64(t->column, s->end - at);
    return at;
}

/* The part of column c that is at home in a node. */
RG_FN uint64_t
all_reduce_hierarchical_part(const struct all_reduce_hierarchical *s,
                             const struct all_reduce_hierarchical_step *t,
                             int c, int node, uint64_t *n_out)
{
    uint64_t n, at = all_reduce_hierarchical_column(s, t, c, &n);
    const uint64_t skip = rg_min_u64((uint64_t)node * t->part, n);

    *n_out = rg_min_u64(t->part, n - skip);
    return at + skip;
}

/*
 * The slot at `reader` for column c that comes from `writer`, an offset. Of
 * combine and finish it is the place in it for the writer's node.
 */
RG_FN uint64_t all_reduce_hierarchical_at(
    const struct all_reduce_hierarchical *s,
    const struct all_reduce_hierarchical_step *t,
    enum all_reduce_hierarchical_way way, const struct rg_place *writer,
    const struct rg_place *reader, int c)
{
    const int size = (int)reader->size, own = c / size;
    const int wide = (s->columns + size - 1) / size;
    const int others = wide * (size - 1);
    int slot = others, node = 0;

    if (way == RG_WAY_SCATTER || way == RG_WAY_GATHER)
        slot = own * (size - 1) +
               rg_peer_index((int)writer->local, (int)reader->local) +
               (way == RG_WAY_GATHER ? others + 2 * wide : 0);
    else {
        slot += own + (way == RG_WAY_FINISH ? wide : 0);
        node = rg_peer_index((int)writer->node, (int)reader->node);
    }
    return s->inbox +
           (t->turn % RG_HIERARCHICAL_DEPTH * 2 * s->capacity +
            (uint64_t)slot) *
               s->slot +
           (uint64_t)node * t->part * sizeof(rg_elem);
}

/* ---- who talks to whom -------------------------------------------------- */

/* 1: this rank and p exchange something on this way. */
RG_FN int all_reduce_hierarchical_talks(const struct all_reduce_hierarchical *s,
                                        enum all_reduce_hierarchical_way way,
                                        int p)
{
    const struct rg_place *there = &s->places[p];

    if (p == s->rank)
        return 0;
    if (way == RG_WAY_SCATTER || way == RG_WAY_GATHER)
        return there->node == s->here->node;
    return there->node != s->here->node &&
           rg_nodes_common(s->here, there, 0, s->columns) < s->columns;
}

/* The word of `rank` on a way; 0 full, 1 credit. */
RG_FN uint64_t all_reduce_hierarchical_word(
    const struct all_reduce_hierarchical *s, int credit,
    enum all_reduce_hierarchical_way way, int rank)
{
    return s->words + ((uint64_t)(credit * RG_WAYS + (int)way) * s->capacity +
                       (uint64_t)rank) *
                          RG_LINE;
}

/* Sets this rank's word at every rank that it talks to on this way. */
RG_FN int
all_reduce_hierarchical_tell(struct rg_call *call,
                             const struct all_reduce_hierarchical *s,
                             const struct all_reduce_hierarchical_step *t,
                             int credit, enum all_reduce_hierarchical_way way)
{
    rg_team_barrier(&call->team);
    RG_ROLLED
    for (int p = call->team.thread; p < s->nranks; p += call->team.threads)
        if (all_reduce_hierarchical_talks(s, way, p))
            rg_signal_send(
                call, p, s->lane,
                all_reduce_hierarchical_word(s, credit, way, s->rank),
                credit ? RG_SIGNAL_CREDIT : RG_SIGNAL_SET, t->turn + 1);
    return 0;
}

/* Waits for the words of all of those. 0, or 1 for failed. */
RG_FN int all_reduce_hierarchical_wait(struct rg_call *call,
                                       const struct all_reduce_hierarchical *s,
                                       int credit,
                                       enum all_reduce_hierarchical_way way,
                                       uint64_t value)
{
    int failed = 0;

    RG_ROLLED
    for (int p = call->team.thread; p < s->nranks; p += call->team.threads)
        if (all_reduce_hierarchical_talks(s, way, p))
            failed |= rg_wait_word(
                call,
                (const uint64_t *)(const void *)rg_inbox(
                    call, all_reduce_hierarchical_word(s, credit, way, p)),
                value, p);
    return rg_team_any(&call->team, failed);
}

RG_FN int
all_reduce_hierarchical_arrived(struct rg_call *call,
                                const struct all_reduce_hierarchical *s,
                                const struct all_reduce_hierarchical_step *t,
                                enum all_reduce_hierarchical_way way)
{
    return all_reduce_hierarchical_wait(call, s, 0, way, t->turn + 1);
}

/* Waits until the slots of this turn have been given back. */
RG_FN int
all_reduce_hierarchical_room(struct rg_call *call,
                             const struct all_reduce_hierarchical *s,
                             const struct all_reduce_hierarchical_step *t,
                             enum all_reduce_hierarchical_way way)
{
    return all_reduce_hierarchical_wait(call, s, 1, way,
                                        t->turn + 1 - RG_HIERARCHICAL_DEPTH);
}

/* ---- steps -------------------------------------------------------------- */

/* To p: what lies at [at, at + n) of `data`, for column c. */
RG_FN int
all_reduce_hierarchical_put(struct rg_call *call,
                            const struct all_reduce_hierarchical *s,
                            const struct all_reduce_hierarchical_step *t,
                            enum all_reduce_hierarchical_way way, int p, int c,
                            const void *data, uint64_t at, uint64_t n)
{
    return rg_put(
        call, p, s->lane,
        all_reduce_hierarchical_at(s, t, way, s->here, &s->places[p], c),
        (const rg_elem *)data + at, n * sizeof(rg_elem));
}

/*
 * Columns of `data` to the ranks of the own node: each gets those it owns, or,
 * with `own`, all those that this rank owns. 0, or 1 for failed; so are those
 * below.
 */
RG_FN int all_reduce_hierarchical_give(
    struct rg_call *call, const struct all_reduce_hierarchical *s,
    const struct all_reduce_hierarchical_step *t,
    enum all_reduce_hierarchical_way way, int own, const void *data)
{
    RG_ROLLED
    for (int i = 1; i < s->nranks; i++) {
        const int p = (s->rank + i) % s->nranks;
        const struct rg_place *owner = own ? s->here : &s->places[p];

        if (!all_reduce_hierarchical_talks(s, way, p))
            continue;
        RG_ROLLED
        for (int c = (int)owner->local; c < s->columns; c += (int)owner->size) {
            uint64_t n, at = all_reduce_hierarchical_column(s, t, c, &n);

            if (all_reduce_hierarchical_put(call, s, t, way, p, c, data, at, n))
                return 1;
        }
    }
    return all_reduce_hierarchical_tell(call, s, t, 0, way);
}

/* Step 0, for step t. */
RG_FN int
all_reduce_hierarchical_scatter(struct rg_call *call,
                                const struct all_reduce_hierarchical *s,
                                const struct all_reduce_hierarchical_step *t)
{
    return all_reduce_hierarchical_room(call, s, t, RG_WAY_SCATTER) ||
           all_reduce_hierarchical_give(call, s, t, RG_WAY_SCATTER, 0,
                                        call->send);
}

/*
 * From this rank's recv to the other owners of its columns: part g to node g
 * on the way `combine`, the own part on the way `finish`.
 */
RG_FN int
all_reduce_hierarchical_cross(struct rg_call *call,
                              const struct all_reduce_hierarchical *s,
                              const struct all_reduce_hierarchical_step *t,
                              enum all_reduce_hierarchical_way way)
{
    RG_ROLLED
    for (int i = 1; i < s->nranks; i++) {
        const int p = (s->rank + i) % s->nranks;
        const struct rg_place *there = &s->places[p];
        const int node = (int)(way == RG_WAY_COMBINE ? there : s->here)->node;
        int c;

        if (there->node == s->here->node)
            continue;
        RG_ROLLED
        for (c = rg_nodes_common(s->here, there, 0, s->columns); c < s->columns;
             c = rg_nodes_common(s->here, there, c + 1, s->columns)) {
            uint64_t n, at = all_reduce_hierarchical_part(s, t, c, node, &n);

            if (all_reduce_hierarchical_put(call, s, t, way, p, c, call->recv,
                                            at, n))
                return 1;
        }
    }
    return all_reduce_hierarchical_tell(call, s, t, 0, way);
}

/* Column c of this rank's, over its node; divided if that is all. */
RG_FN void all_reduce_hierarchical_combine_column(
    struct rg_call *call, enum rg_op op,
    const struct all_reduce_hierarchical *s,
    const struct all_reduce_hierarchical_step *t, int c)
{
    uint64_t n, at = all_reduce_hierarchical_column(s, t, c, &n);
    const rg_elem *own = (const rg_elem *)call->send + at;
    rg_elem *out = (rg_elem *)call->recv + at;
    struct rg_place first = *s->here;
    struct rg_sources from;

    first.local = s->here->local == 0; /* the lowest of the others */
    from.own = (const uint8_t *)own;
    from.inbox = rg_inbox(call, all_reduce_hierarchical_at(s, t, RG_WAY_SCATTER,
                                                           &first, s->here, c));
    from.stride = s->slot;
    from.rank = (int)s->here->local;
    from.count = (int)s->here->size;
    if (from.count > 1)
        rg_team_reduce(&call->team, op, out, 0, &from, n,
                       s->nodes == 1 ? s->nranks : 0);
    else if (own != out)
        rg_team_copy(&call->team, out, own, n * sizeof(rg_elem));
}

/* Step 1. */
RG_FN int
all_reduce_hierarchical_combine(struct rg_call *call, enum rg_op op,
                                const struct all_reduce_hierarchical *s,
                                const struct all_reduce_hierarchical_step *t)
{
    if (all_reduce_hierarchical_arrived(call, s, t, RG_WAY_SCATTER) ||
        all_reduce_hierarchical_room(call, s, t, RG_WAY_COMBINE))
        return 1;
    RG_ROLLED
    for (int c = (int)s->here->local; c < s->columns; c += (int)s->here->size)
        all_reduce_hierarchical_combine_column(call, op, s, t, c);
    /* Has a barrier: what is sent now is all there. */
    if (all_reduce_hierarchical_tell(call, s, t, 1, RG_WAY_SCATTER))
        return 1;
    return all_reduce_hierarchical_cross(call, s, t, RG_WAY_COMBINE);
}

/* Step 2. */
RG_FN int
all_reduce_hierarchical_finish(struct rg_call *call, enum rg_op op,
                               const struct all_reduce_hierarchical *s,
                               const struct all_reduce_hierarchical_step *t)
{
    struct rg_place first = *s->here;

    first.node = s->here->node == 0; /* the lowest of the others */
    if (all_reduce_hierarchical_arrived(call, s, t, RG_WAY_COMBINE) ||
        all_reduce_hierarchical_room(call, s, t, RG_WAY_FINISH))
        return 1;
    RG_ROLLED
    for (int c = (int)s->here->local; c < s->columns; c += (int)s->here->size) {
        uint64_t n,
            at = all_reduce_hierarchical_part(s, t, c, (int)s->here->node, &n);
        rg_elem *out = (rg_elem *)call->recv + at;
        struct rg_sources from;

        from.own = (const uint8_t *)out;
        from.inbox =
            rg_inbox(call, all_reduce_hierarchical_at(s, t, RG_WAY_COMBINE,
                                                      &first, s->here, c));
        from.stride = t->part * sizeof(rg_elem);
        from.rank = (int)s->here->node;
        from.count = s->nodes;
        rg_team_reduce(&call->team, op, out, 0, &from, n, s->nranks);
    }
    if (all_reduce_hierarchical_tell(call, s, t, 1, RG_WAY_COMBINE))
        return 1;
    return all_reduce_hierarchical_cross(call, s, t, RG_WAY_FINISH);
}

/* Step 3's first half: the other nodes' parts of an own column. */
RG_FN void all_reduce_hierarchical_collect_column(
    struct rg_call *call, const struct all_reduce_hierarchical *s,
    const struct all_reduce_hierarchical_step *t, int c)
{
    struct rg_place from = *s->here;

    RG_ROLLED
    for (int g = 0; g < s->nodes; g++) {
        uint64_t n, at = all_reduce_hierarchical_part(s, t, c, g, &n);

        if (g == (int)s->here->node)
            continue;
        from.node = (uint32_t)g;
        rg_team_copy(
            &call->team, (rg_elem *)call->recv + at,
            rg_inbox(call, all_reduce_hierarchical_at(s, t, RG_WAY_FINISH,
                                                      &from, s->here, c)),
            n * sizeof(rg_elem));
    }
}

RG_FN int
all_reduce_hierarchical_collect(struct rg_call *call,
                                const struct all_reduce_hierarchical *s,
                                const struct all_reduce_hierarchical_step *t)
{
    if (all_reduce_hierarchical_arrived(call, s, t, RG_WAY_FINISH))
        return 1;
    RG_ROLLED
    for (int c = (int)s->here->local; c < s->columns; c += (int)s->here->size)
        all_reduce_hierarchical_collect_column(call, s, t, c);
    return all_reduce_hierarchical_tell(call, s, t, 1, RG_WAY_FINISH);
}

/* Step 3. */
RG_FN int
all_reduce_hierarchical_gather(struct rg_call *call,
                               const struct all_reduce_hierarchical *s,
                               const struct all_reduce_hierarchical_step *t)
{
    return all_reduce_hierarchical_collect(call, s, t) ||
           all_reduce_hierarchical_room(call, s, t, RG_WAY_GATHER) ||
           all_reduce_hierarchical_give(call, s, t, RG_WAY_GATHER, 1,
                                        call->recv);
}

/* Step 4. */
RG_FN int
all_reduce_hierarchical_keep(struct rg_call *call,
                             const struct all_reduce_hierarchical *s,
                             const struct all_reduce_hierarchical_step *t)
{
    struct rg_place owner = *s->here;

    if (all_reduce_hierarchical_arrived(call, s, t, RG_WAY_GATHER))
        return 1;
    RG_ROLLED
    for (int c = 0; c < s->columns; c++) {
        uint64_t n, at = all_reduce_hierarchical_column(s, t, c, &n);

        owner.local = (uint32_t)(c % (int)owner.size);
        if (owner.local == s->here->local)
            continue;
        rg_team_copy(
            &call->team, (rg_elem *)call->recv + at,
            rg_inbox(call, all_reduce_hierarchical_at(s, t, RG_WAY_GATHER,
                                                      &owner, s->here, c)),
            n * sizeof(rg_elem));
    }
    return all_reduce_hierarchical_tell(call, s, t, 1, RG_WAY_GATHER);
}

/* ---- the loop ----------------------------------------------------------- */

enum { RG_HIERARCHICAL_STEPS = 5 };

/* Step `which` of the head, for the k-th step; nothing where no one needs it.
 */
RG_FN int all_reduce_hierarchical_do(struct rg_call *call, enum rg_op op,
                                     const struct all_reduce_hierarchical *s,
                                     int which, uint64_t k)
{
    const struct all_reduce_hierarchical_step t =
        all_reduce_hierarchical_step_of(s, k);

    switch (which) {
    case 0:
        return all_reduce_hierarchical_scatter(call, s, &t);
    case 1:
        return all_reduce_hierarchical_combine(call, op, s, &t);
    case 2:
        return s->nodes > 1 && all_reduce_hierarchical_finish(call, op, s, &t);
    case 3:
        return all_reduce_hierarchical_gather(call, s, &t);
    default:
        return all_reduce_hierarchical_keep(call, s, &t);
    }
}

/* One channel; 0, or 1 for failed. */
RG_FN int all_reduce_hierarchical_channel(struct rg_call *call, enum rg_op op,
                                          int channel)
{
    const struct all_reduce_hierarchical s =
        all_reduce_hierarchical_open(call, channel);
    const uint64_t rounds = s.steps ? s.steps + RG_HIERARCHICAL_STEPS - 1 : 0;

    RG_ROLLED
    for (uint64_t k = 0; k < rounds; k++) {
        call->step = k;
        RG_ROLLED
        for (uint64_t which = 0; which < RG_HIERARCHICAL_STEPS; which++)
            if (k >= which && k - which < s.steps &&
                all_reduce_hierarchical_do(call, op, &s, (int)which, k - which))
                return 1;
    }
    rg_team_barrier(&call->team);
    if (call->team.thread == 0)
        rg_store_relaxed(all_reduce_hierarchical_cursor(call, s.words),
                         s.turn + s.steps);
    return 0;
}

RG_FN int all_reduce_hierarchical(struct rg_call *call, enum rg_op op)
{
    const int channels = (int)call->rule->channels;

    RG_ROLLED
    for (int c = call->team.index; c < channels; c += call->team.count)
        if (all_reduce_hierarchical_channel(call, op, c))
            return 1;
    return 0;
}

RG_ALGO_LAYOUT(all_reduce_hierarchical)
{
    const uint64_t capacity = (uint64_t)shape->capacity;
    const uint64_t channels = (uint64_t)shape->max_channels;
    const uint64_t head = channels * all_reduce_hierarchical_words(capacity);
    const uint64_t slots = channels * RG_HIERARCHICAL_DEPTH * 2 * capacity;
    const uint64_t room = shape->budget > head ? shape->budget - head : 0;
    const uint64_t pad = all_reduce_hierarchical_slot(capacity, 0);

    if (capacity > RG_HIERARCHICAL_MAX_RANKS || room / slots < pad + RG_GRAIN)
        return 0;
    limits_out->max_bytes = UINT64_MAX;
    limits_out->head = head;
    limits_out->max_chunk = rg_chunk_round(room / slots - pad);
    return head + slots * all_reduce_hierarchical_slot(capacity,
                                                       limits_out->max_chunk);
}

RG_ALGO(all_reduce_hierarchical, "hierarchical", RG_COLL_all_reduce, 0, 1,
        RG_HIERARCHICAL_MAX_RANKS);
