/*
 * Reading, proving and advancing the hot line (plan.h).
 *
 * An invocation by the hot line pushes before it knows what its claim has
 * found, for the answer takes half as long as the wire. That is sound. A push
 * goes where the line said, into a workspace generation that the line was of.
 * If the word was held by then, that epoch is about to end and its generation
 * to retire; a peer that takes the packets completes a seq that this rank has
 * not, so it is above `committed` and aborted by the view. If the same plan is
 * opened again, the launch pushes the same packets once more. Nothing of the
 * user's is written, and nothing counts as completed, before the claim is
 * known.
 */
#ifndef RG_DEVICE_HOT_H
#define RG_DEVICE_HOT_H

#include "runtime/device/plan.h"
#include "runtime/device/word.h"

/* The line as one thread has read it. */
struct rg_hot {
    const uint8_t *packets;
    uint64_t run;
    uint64_t completed;
    uint64_t cursor;
    uint32_t max_bytes;
    uint32_t stride;
    uint32_t half;
    int rank;
    int nranks;
    uint64_t blocks; /* of the collectives of RG_HOT_LIST; 0: not read */
    uint64_t mark;
    int whole; /* every mark that this thread has seen was `mark` */
    /* Where inboxes are read; null: each lane of the one warp has its own. */
    const uint64_t *inboxes;
    uint64_t inbox;
};

/* What of the line is not its inboxes, as it was loaded. */
struct rg_hot_words {
    uint64_t packets, run, completed, cursor, sizes, ranks, blocks;
};

/* A word without its mark. */
RG_FN uint64_t rg_hot_unmark(struct rg_hot *hot, uint64_t word)
{
    hot->whole &= (int)(~(word ^ hot->mark) & 1);
    return word & ~1ull;
}

RG_FN struct rg_hot rg_hot_unpack(const struct rg_hot_words *words,
                                  const uint64_t *inboxes)
{
    struct rg_hot hot;

    hot.mark = words->packets & 1;
    hot.whole = 1;
    hot.packets = (const uint8_t *)rg_hot_unmark(&hot, words->packets);
    hot.run = words->run;
    hot.completed = words->completed;
    hot.cursor = rg_hot_unmark(&hot, words->cursor) >> 1;
    hot.max_bytes = (uint32_t)words->sizes;
    hot.stride = (uint32_t)(words->sizes >> 32);
    hot.half = (uint32_t)rg_hot_unmark(&hot, (uint32_t)words->ranks);
    hot.rank = (int)(words->ranks >> 32 & 0xffff);
    hot.nranks = (int)(words->ranks >> 48);
    hot.blocks = rg_hot_unmark(&hot, words->blocks);
    hot.inboxes = inboxes;
    hot.inbox = 0;
    return hot;
}

/* What all_reduce needs: as if no other collective went by the line. */
RG_FN struct rg_hot_words rg_hot_words_of(const struct rg_hot_line *line)
{
    struct rg_hot_words words;

    rg_load_relaxed_pair(&line->packets, &words.packets, &words.run);
    rg_load_relaxed_pair(&line->completed, &words.completed, &words.cursor);
    rg_load_relaxed_pair(&line->sizes, &words.sizes, &words.ranks);
    words.blocks = words.packets & 1;
    return words;
}

/* From global memory, each thread by itself. */
RG_FN struct rg_hot rg_hot_read(const struct rg_hot_line *line)
{
    struct rg_hot_words words = rg_hot_words_of(line);

    words.blocks = rg_load_relaxed(&line->blocks);
    return rg_hot_unpack(&words, line->inbox);
}

#if RG_ON_CUDA

/* One warp: its lanes fetch the inboxes in the same wave. */
RG_FN struct rg_hot rg_hot_read_warp(const struct rg_hot_line *line)
{
    const int lane = (int)threadIdx.x;
    struct rg_hot_words words;
    uint64_t inbox = 0;
    struct rg_hot hot;

    if (lane < RG_HOT_PEERS)
        inbox = rg_load_relaxed(&line->inbox[lane]);
    words = rg_hot_words_of(line);
    hot = rg_hot_unpack(&words, line->inbox);
    hot.inboxes = 0;
    hot.inbox = inbox;
    return hot;
}

/* A block: `line` is a copy in shared memory. */
RG_FN struct rg_hot rg_hot_read_shared(const struct rg_hot_line *line)
{
    const struct rg_hot_words words = {
        line->packets, line->packet_run, line->completed, line->cursor,
        line->sizes,   line->ranks,      line->blocks};

    return rg_hot_unpack(&words, line->inbox);
}

#endif

/*
 * Where a peer keeps the slots this rank writes; good as long as the line is
 * `whole` after it. Every lane, where lanes have the inboxes.
 */
RG_FN uint64_t rg_hot_inbox_word(const struct rg_hot *hot, int peer)
{
#if RG_ON_CUDA
    return hot->inboxes ? hot->inboxes[peer]
                        : __shfl_sync(~0u, hot->inbox, peer);
#else
    return rg_load_relaxed(&hot->inboxes[peer]);
#endif
}

RG_FN uint8_t *rg_hot_inbox(struct rg_hot *hot, int peer)
{
    const uint64_t word = rg_hot_unmark(hot, rg_hot_inbox_word(hot, peer));

    return (uint8_t *)(word & ((1ull << RG_HOT_ADDRESS_BITS) - 1));
}

/* The group's slot of a rank, as good as its inbox. */
RG_FN int rg_hot_slot(struct rg_hot *hot, int rank)
{
    const uint64_t word = rg_hot_unmark(hot, rg_hot_inbox_word(hot, rank));

    return (int)(word >> RG_HOT_ADDRESS_BITS);
}

/* Units of a block up to which the line serves the collective. */
RG_FN uint64_t rg_hot_units(const struct rg_hot *hot, enum rg_hot_coll coll)
{
    const uint64_t size = hot->blocks >> (8 * (1 + (int)coll)) & 0xff;

    return hot->max_bytes && size ? 1ull << (size - 1) : 0;
}

/* The line's word for so many invocations. */
RG_FN uint64_t rg_hot_cursor(uint64_t cursor, uint64_t mark)
{
    return cursor << 1 | mark;
}

/* What a claim finds if everything read is of the plan in force. */
RG_FN uint64_t rg_hot_claim(const struct rg_hot *hot)
{
    return hot->completed << RG_CONTROL_SEQ_SHIFT |
           (hot->mark ? RG_CONTROL_PLAN : 0);
}

/* ---- writing, one thread ------------------------------------------------ */

RG_FN uint64_t rg_hot_plan_blocks(const struct rg_hot_plan *plan)
{
    uint64_t blocks = 0;

    for (int c = 0; c < RG_HOT_COLLS; c++)
        blocks |= RG_HOT_SIZE(c, plan->size[c]);
    return blocks;
}

/* While the word is held and nothing is in flight. */
RG_FN void rg_hot_write(struct rg_comm_dev *dev, const struct rg_hot_plan *plan,
                        uint64_t mark, uint64_t ended)
{
    struct rg_hot_line *line = &dev->hot;
    const int begun = (int64_t)(ended + 1 - plan->first_seq) >= 0;

    dev->hot_sizes = RG_HOT_SIZES(plan->packet_max_bytes, plan->packet_stride);
    rg_store_relaxed(&line->packets, (uint64_t)plan->packets | mark);
    rg_store_relaxed(&line->packet_run, plan->run);
    rg_store_relaxed_pair(&line->completed, ended,
                          rg_hot_cursor(plan->packet_cursor, mark));
    rg_store_relaxed(&line->sizes, begun ? dev->hot_sizes : 0);
    rg_store_relaxed(&line->ranks,
                     RG_HOT_RANKS(plan->packet_half, plan->rank, plan->nranks) |
                         mark);
    rg_store_relaxed(&line->blocks, rg_hot_plan_blocks(plan) | mark);
    for (int p = 0; p < RG_HOT_PEERS; p++)
        rg_store_relaxed(&line->inbox[p],
                         RG_HOT_INBOX(plan->inbox[p], plan->slot[p]) | mark);
}

/* The invocation that `hot` was read for is over; it used packets. */
RG_FN void rg_hot_done(struct rg_comm_dev *dev, const struct rg_hot *hot,
                       uint64_t run)
{
    rg_store_relaxed(&dev->hot.run, run);
    /* Seen with the end of the launch, like the outputs it stands for. */
    rg_store_relaxed_pair(&dev->hot.completed, hot->completed + 1,
                          rg_hot_cursor(hot->cursor + 1, hot->mark));
}

#endif
