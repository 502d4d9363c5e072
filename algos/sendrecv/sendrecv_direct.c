/*
 * Send and receive by flows (pattern/flow.h), each message straight to its
 * reader's memory in chunks, with credits. The flows are of their own: what one
 * end of a pair has begun, no other rank need know.
 *
 * Given two teams a channel, one sends and one receives.
 *
 * The messages of a launch make progress independently of each other, in any
 * order that their peers allow: thread 0 looks for one that can go on, and the
 * team moves a chunk of it. Messages of one kind with one peer follow each
 * other, as the peer's do. What is left of each lies in front of the flows:
 *
 *   area: item[channel][message], then flows
 */
#include "algos/pattern/flow.h"
#include "algos/sendrecv/sendrecv.h"

/* A message's share of a channel, of which [at, end) is left. */
struct sendrecv_item {
    uint64_t at, end; /* bytes */
    uint32_t peer;    /* dense rank */
    uint32_t rule;    /* index among sendrecv's */
};

enum { SENDRECV_DONE = -1, SENDRECV_FAILED = -2 };

/* A channel more costs more than to move so many bytes by one. */
enum { SENDRECV_SHARE = 16 << 10 };

RG_FN uint64_t sendrecv_items_bytes(uint64_t channels)
{
    const uint64_t row = RG_GROUP_MAX * sizeof(struct sendrecv_item);

    return channels * ((row + RG_LINE - 1) / RG_LINE * RG_LINE);
}

/* The launch's channels that this team serves. */
struct sendrecv_turns {
    int channel, step; /* channel, channel + step, ... below channels */
    int channels;      /* of the message that has most */
    int count;         /* of this team's */
    int messages;
    int sends, receives; /* which of them it serves */
};

RG_FN struct sendrecv_item *sendrecv_row(const struct rg_call *call,
                                         int channel)
{
    return (struct sendrecv_item *)(void *)rg_inbox(
        call, call->workspace + sendrecv_items_bytes((uint64_t)channel));
}

RG_FN const struct rg_rule *sendrecv_rule(const struct rg_call *call,
                                          const struct rg_post *message)
{
    return rg_rule_for(call->plan, RG_COLL_sendrecv, RG_u8, message->bytes);
}

/* Of a message, the same at both of its ends. */
RG_FN int sendrecv_channels(const struct rg_call *call,
                            const struct rg_post *message)
{
    const uint64_t most = sendrecv_rule(call, message)->channels;
    const uint64_t shares =
        (message->bytes + SENDRECV_SHARE - 1) / SENDRECV_SHARE;

    return (int)rg_min_u64(rg_max_u64(shares, 1), most);
}

RG_FN struct sendrecv_turns sendrecv_turns(const struct rg_call *call)
{
    struct sendrecv_turns turns;
    struct rg_roles roles;

    turns.messages = (int)call->launch->nposts;
    turns.channels = 1;
    for (int m = 0; m < turns.messages; m++) {
        const int channels = sendrecv_channels(call, &call->launch->posts[m]);

        turns.channels = turns.channels < channels ? channels : turns.channels;
    }
    roles = rg_roles_of(&call->team, turns.channels);
    turns.channel = roles.channel;
    turns.step = roles.step;
    turns.sends = roles.first;
    turns.receives = roles.second;
    turns.count = turns.channel < turns.channels
                      ? (turns.channels - turns.channel - 1) / turns.step + 1
                      : 0;
    return turns;
}

RG_FN int sendrecv_is_mine(const struct rg_call *call,
                           const struct sendrecv_turns *turns, int m)
{
    return call->launch->posts[m].kind == RG_POST_RECV ? turns->receives
                                                       : turns->sends;
}

/* ---- before and after ---------------------------------------------------- */

/* One message's share of a channel; that to nobody is nothing. */
RG_FN struct sendrecv_item sendrecv_share(const struct rg_call *call,
                                          const struct rg_post *message,
                                          int channel)
{
    const struct rg_rule *rule = sendrecv_rule(call, message);
    const int rank = rg_plan_rank(call->plan, message->slot);
    const int channels = sendrecv_channels(call, message);
    struct sendrecv_item item = {0, 0, (uint32_t)rank, 0};

    item.rule = (uint32_t)(rule - call->plan->rules[RG_COLL_sendrecv].rule);
    if (rank >= 0 && channel < channels)
        rg_share_elems(message->bytes, channel, channels, &item.at, &item.end);
    return item;
}

/* Every thread: sets out what this team has to do. */
RG_FN void sendrecv_set_out(struct rg_call *call,
                            const struct sendrecv_turns *turns)
{
    const struct rg_post *messages = call->launch->posts;

    for (int i = call->team.thread; i < turns->count * turns->messages;
         i += call->team.threads) {
        const int channel = turns->channel + i / turns->messages * turns->step;
        const int m = i % turns->messages;

        if (sendrecv_is_mine(call, turns, m))
            sendrecv_row(call, channel)[m] =
                sendrecv_share(call, &messages[m], channel);
    }
    rg_team_barrier(&call->team);
}

/* Every thread: what stays in this rank. */
RG_FN void sendrecv_copies(struct rg_call *call,
                           const struct sendrecv_turns *turns)
{
    for (int i = 0; i < turns->count * turns->messages; i++) {
        const struct rg_post *message =
            &call->launch->posts[i % turns->messages];
        struct sendrecv_item *item = &sendrecv_row(
            call, turns->channel +
                      i / turns->messages * turns->step)[i % turns->messages];

        if (message->kind != RG_POST_COPY || !turns->sends)
            continue;
        rg_team_copy(&call->team, (uint8_t *)message->to + item->at,
                     (const uint8_t *)message->from + item->at,
                     item->end - item->at);
        rg_team_barrier(&call->team);
        if (call->team.thread == 0)
            item->at = item->end;
    }
}

/* ---- one after the other ------------------------------------------------- */

/* Those of the same kind and peer ahead of it have left the channel. */
RG_FN int sendrecv_is_first(const struct rg_call *call,
                            const struct sendrecv_item *row, int m)
{
    const struct rg_post *messages = call->launch->posts;

    for (int b = messages[m].before; b != RG_POST_NONE; b = messages[b].before)
        if (row[b].at < row[b].end)
            return 0;
    return 1;
}

/* The channel's flow as one message's rule has it. */
RG_FN struct rg_flow sendrecv_flow(struct rg_call *call, int channel,
                                   const struct sendrecv_item *item)
{
    struct rg_call flows = *call;

    flows.rule = &call->plan->rules[RG_COLL_sendrecv].rule[item->rule];
    flows.workspace += sendrecv_items_bytes((uint64_t)call->plan->max_channels);
    return rg_flow_open(&flows, channel);
}

/* One thread: a chunk of it can be moved now. */
RG_FN int sendrecv_is_ready(const struct rg_call *call,
                            const struct rg_flow *flow, int kind, int peer)
{
    const uint64_t word = (kind == RG_POST_SEND ? flow->credit : flow->full) +
                          (uint64_t)peer * RG_LINE;
    const uint64_t value = kind == RG_POST_SEND
                               ? flow->sent[peer] + 1 - RG_FLOW_DEPTH
                               : flow->taken[peer] + 1;

    /* Pairs with the release of the peer's signal. */
    return rg_signal_reached(
        rg_load_acquire((const uint64_t *)(const void *)rg_inbox(call, word)),
        value);
}

/* One thread: the next from `at` on that can go on; *left_out: any at all. */
RG_FN int sendrecv_find(struct rg_call *call,
                        const struct sendrecv_turns *turns, int at,
                        int *left_out)
{
    const int total = turns->count * turns->messages;

    *left_out = 0;
    for (int n = 0; n < total; n++) {
        const int i = (at + n) % total, m = i % turns->messages;
        const int channel = turns->channel + i / turns->messages * turns->step;
        const struct sendrecv_item *row = sendrecv_row(call, channel);
        struct rg_flow flow;

        if (!sendrecv_is_mine(call, turns, m) || row[m].at >= row[m].end)
            continue;
        *left_out = 1;
        if (!sendrecv_is_first(call, row, m))
            continue;
        flow = sendrecv_flow(call, channel, &row[m]);
        if (sendrecv_is_ready(call, &flow, call->launch->posts[m].kind,
                              (int)row[m].peer))
            return i;
    }
    return SENDRECV_DONE;
}

/* One thread: gives up; whoever still owes something is late, if it is late. */
RG_FN void sendrecv_give_up(struct rg_call *call,
                            const struct sendrecv_turns *turns, int status)
{
    for (int i = 0; i < turns->count * turns->messages; i++) {
        const struct sendrecv_item *item = &sendrecv_row(
            call, turns->channel +
                      i / turns->messages * turns->step)[i % turns->messages];

        if (sendrecv_is_mine(call, turns, i % turns->messages) &&
            item->at < item->end)
            rg_wait_failed(call, status, (int)item->peer);
    }
}

/* One thread: waits for one that can go on, SENDRECV_DONE or _FAILED. */
RG_FN int sendrecv_next(struct rg_call *call,
                        const struct sendrecv_turns *turns, int at)
{
    struct rg_waiter waiter = RG_WAITER_INIT;
    int status = RG_OK, left, i;

    for (;;) {
        i = sendrecv_find(call, turns, at, &left);
        if (i >= 0 || !left)
            return i;
        /* One more look after the last. */
        if (status) {
            sendrecv_give_up(call, turns, status);
            return SENDRECV_FAILED;
        }
        status = rg_wait_more(call, &waiter);
    }
}

/* Every thread: a chunk of the message; it does not wait. 0, or 1 for failed.
 */
RG_FN int sendrecv_move(struct rg_call *call, struct rg_flow *flow,
                        const struct rg_post *message, int peer, uint64_t at,
                        uint64_t bytes)
{
    const uint8_t *from;

    if (message->kind == RG_POST_SEND) {
        flow->reader = peer;
        flow->room = flow->sent[peer] + 1;
        if (rg_flow_put(call, flow, peer, 0,
                        (const uint8_t *)message->from + at, bytes))
            return 1;
        rg_flow_sent(call, flow, peer, 1);
        return 0;
    }
    flow->writer = peer;
    flow->landed = flow->taken[peer] + 1;
    from = rg_flow_take(call, flow, peer, 0);
    rg_team_copy(&call->team, (uint8_t *)message->to + at, from, bytes);
    if (rg_flow_give(call, flow, peer, 0))
        return 1;
    rg_flow_taken(call, flow, peer, 1);
    return 0;
}

RG_FN int sendrecv_step(struct rg_call *call,
                        const struct sendrecv_turns *turns, int i)
{
    const int m = i % turns->messages;
    const int channel = turns->channel + i / turns->messages * turns->step;
    struct sendrecv_item *item = &sendrecv_row(call, channel)[m];
    struct rg_flow flow = sendrecv_flow(call, channel, item);
    const uint64_t at = item->at;
    const uint64_t bytes = rg_min_u64(flow.chunk, item->end - at);

    if (sendrecv_move(call, &flow, &call->launch->posts[m], (int)item->peer, at,
                      bytes))
        return 1;
    if (call->team.thread == 0)
        item->at = at + bytes;
    return 0;
}

RG_FN int sendrecv_direct(struct rg_call *call)
{
    const struct sendrecv_turns turns = sendrecv_turns(call);
    int i = 0;

    sendrecv_set_out(call, &turns);
    sendrecv_copies(call, &turns);
    for (;;) {
        call->step++;
        if (call->team.thread == 0)
            i = sendrecv_next(call, &turns, i + 1);
        i = (int)rg_team_share_word(&call->team, (uint64_t)(int64_t)i);
        if (i < 0)
            return i == SENDRECV_FAILED;
        if (sendrecv_step(call, &turns, i))
            return 1;
    }
}

RG_ALGO_LAYOUT(sendrecv_direct)
{
    const uint64_t items = sendrecv_items_bytes((uint64_t)shape->max_channels);
    struct rg_shape flows = *shape;
    uint64_t bytes;

    if (shape->budget <= items)
        return 0;
    flows.budget -= items;
    bytes = rg_flow_layout(&flows, limits_out);
    limits_out->head += items;
    return bytes ? bytes + items : 0;
}

RG_ALGO(sendrecv_direct, "direct", RG_COLL_sendrecv, 0, 1, RG_FLOW_MAX_RANKS);
