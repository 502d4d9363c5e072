/*
 * exchange: every rank puts to every rank, on all lanes at once, and looks at
 * each byte that arrives. A place is spoilt before its writer may use it, so
 * what a signal shows too early, or not whole, is seen. The source is filled
 * anew for the next peer once a flush has said that it may.
 *
 *   1. spoil all places, give each peer credit for a turn
 *   2. for each turn, on all lanes, to all peers: wait for credit, fill the
 *      source, put with signal, flush
 *   3. for each turn, on all lanes, from all peers: wait, check, spoil, credit
 *
 * Every other rank, in turns, begins with step 3: so somebody is waiting while
 * a payload is under way, and looks at its last bytes first.
 */
#include "algos/transfer/transfer.h"

/* What the bytes of one payload are made of. */
RG_FN uint32_t transfer_key(const struct transfer *s, int from, int to,
                            int lane, uint64_t turn)
{
    const uint32_t mixed =
        (uint32_t)(s->ask.salt + (s->base >> TRANSFER_TURN_BITS)) *
            2654435761u +
        (uint32_t)from * 2246822519u + (uint32_t)to * 3266489917u +
        (uint32_t)lane * 668265263u + (uint32_t)turn * 374761393u;

    return mixed ^ mixed >> 15;
}

/* Never TRANSFER_STALE: that is even. */
RG_FN uint8_t transfer_byte(uint32_t key, uint64_t i)
{
    return (uint8_t)((key ^ (uint32_t)i * 2654435761u) >> 20 | 1);
}

RG_FN void transfer_fill(const struct rg_call *call, const struct transfer *s,
                         int lane, int to, uint64_t turn)
{
    const uint32_t key = transfer_key(s, s->rank, to, lane, turn);
    uint8_t *source = transfer_source(s, lane);

    for (uint64_t i = (uint64_t)call->team.thread; i < s->ask.bytes;
         i += (uint64_t)call->team.threads)
        source[i] = transfer_byte(key, i);
}

RG_FN void transfer_spoil(const struct rg_call *call, const struct transfer *s,
                          int lane, int from)
{
    uint8_t *place = rg_inbox(call, transfer_place(s, lane, from));

    for (uint64_t i = (uint64_t)call->team.thread; i < s->place;
         i += (uint64_t)call->team.threads)
        place[i] = TRANSFER_STALE;
}

/* Step 2 for one lane and peer. */
RG_FN int transfer_exchange_put(struct rg_call *call, const struct transfer *s,
                                int lane, int peer, uint64_t turn)
{
    if (transfer_allowed(call, s, lane, peer, turn + 1))
        return 1;
    transfer_fill(call, s, lane, peer, turn);
    rg_team_barrier(&call->team);
    if (transfer_send(call, s, lane, peer, 0, turn + 1))
        return 1;
    return rg_flush(call, peer, lane);
}

/* Bytes of the payload that are wrong. */
RG_FN uint64_t transfer_wrong(const struct rg_call *call,
                              const struct transfer *s, int lane, int from,
                              uint64_t turn)
{
    const uint8_t *payload = rg_inbox(call, transfer_place(s, lane, from)) +
                             RG_TRANSFER_GUARD + s->ask.offset;
    const uint32_t key = transfer_key(s, from, s->rank, lane, turn);
    uint64_t wrong = 0;

    for (uint64_t i = (uint64_t)call->team.thread; i < s->ask.bytes;
         i += (uint64_t)call->team.threads) {
        const uint64_t last = s->ask.bytes - 1 - i;

        wrong += payload[last] != transfer_byte(key, last);
    }
    return wrong;
}

/* Bytes beside it that have changed. */
RG_FN uint64_t transfer_spilled(const struct rg_call *call,
                                const struct transfer *s, int lane, int from)
{
    const uint8_t *place = rg_inbox(call, transfer_place(s, lane, from));
    const uint64_t begin = RG_TRANSFER_GUARD + s->ask.offset;
    const uint64_t beside = s->place - s->ask.bytes;
    uint64_t spilled = 0;

    for (uint64_t i = (uint64_t)call->team.thread; i < beside;
         i += (uint64_t)call->team.threads)
        spilled += place[i < begin ? i : i + s->ask.bytes] != TRANSFER_STALE;
    return spilled;
}

/* The word is what was signalled, to the bit: once Set, or Add upon Add. */
RG_FN uint64_t transfer_missignalled(const struct rg_call *call,
                                     const struct transfer *s, int lane,
                                     int from, uint64_t turn)
{
    const uint64_t *word = (const uint64_t *)(const void *)rg_inbox(
        call, transfer_word(s, s->full, lane, from));

    return call->team.thread == 0 &&
           rg_load_relaxed(word) != s->base + turn + 1;
}

RG_FN void transfer_check(const struct rg_call *call, const struct transfer *s,
                          int lane, int from, uint64_t turn)
{
    const uint64_t signals = transfer_missignalled(call, s, lane, from, turn);
    const uint64_t wrong = transfer_wrong(call, s, lane, from, turn);
    const uint64_t spilled = transfer_spilled(call, s, lane, from);

    if (call->team.thread == 0)
        rg_add_relaxed_dev(&s->report->turns, 1);
    if (!(signals | wrong | spilled))
        return;
    rg_add_relaxed_dev(&s->report->signals, signals);
    rg_add_relaxed_dev(&s->report->wrong, wrong);
    rg_add_relaxed_dev(&s->report->spilled, spilled);
    rg_store_relaxed(&s->report->where,
                     (uint64_t)from << 32 | (uint64_t)lane << 24 | turn);
}

/* Step 3 for one lane and peer. */
RG_FN int transfer_exchange_take(struct rg_call *call, const struct transfer *s,
                                 int lane, int peer, uint64_t turn)
{
    if (transfer_landed(call, s, lane, peer, turn + 1))
        return 1;
    transfer_check(call, s, lane, peer, turn);
    if (turn + 1 == s->ask.turns)
        return 0;
    rg_team_barrier(&call->team);
    transfer_spoil(call, s, lane, peer);
    return transfer_allow(call, s, lane, peer, turn + 2);
}

/* Whether a rank waits in this turn before it puts. */
RG_FN int transfer_waits(int rank, uint64_t turn)
{
    return (int)(((uint64_t)rank + turn) & 1);
}

/* Step 3 for the peers that wait first, or for those that do not. */
RG_FN int transfer_exchange_takes(struct rg_call *call,
                                  const struct transfer *s, uint64_t turn,
                                  int waits)
{
    for (int i = 1; i <= s->nranks; i++) {
        const int peer = (s->rank + s->nranks - i) % s->nranks;

        if (transfer_waits(peer, turn) != waits)
            continue;
        for (int lane = call->team.index; lane < s->lanes;
             lane += call->team.count)
            if (transfer_exchange_take(call, s, lane, peer, turn))
                return 1;
    }
    return 0;
}

RG_FN int transfer_exchange_puts(struct rg_call *call, const struct transfer *s,
                                 uint64_t turn)
{
    for (int i = 0; i < s->nranks; i++)
        for (int lane = call->team.index; lane < s->lanes;
             lane += call->team.count)
            if (transfer_exchange_put(call, s, lane, (s->rank + i) % s->nranks,
                                      turn))
                return 1;
    return 0;
}

RG_FN int transfer_exchange_turn(struct rg_call *call, const struct transfer *s,
                                 uint64_t turn)
{
    const int waits = transfer_waits(s->rank, turn);

    call->step = turn;
    if (waits && transfer_exchange_takes(call, s, turn, 0))
        return 1;
    if (transfer_exchange_puts(call, s, turn))
        return 1;
    return (!waits && transfer_exchange_takes(call, s, turn, 0)) ||
           transfer_exchange_takes(call, s, turn, 1);
}

RG_FN int transfer_exchange(struct rg_call *call, const struct transfer *s)
{
    const int first = call->team.index, step = call->team.count;

    for (int peer = 0; peer < s->nranks; peer++)
        for (int lane = first; lane < s->lanes; lane += step) {
            transfer_spoil(call, s, lane, peer);
            if (transfer_allow(call, s, lane, peer, 1))
                return 1;
        }
    for (uint64_t turn = 0; turn < s->ask.turns; turn++)
        if (transfer_exchange_turn(call, s, turn))
            return 1;
    return 0;
}
