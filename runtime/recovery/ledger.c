#include "runtime/recovery/ledger.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/seq.h"

enum epoch_state {
    EPOCH_OPEN = 0, /* in force */
    EPOCH_DECIDED,  /* followed by the next one */
    EPOCH_UNKNOWN   /* this rank has left it */
};

struct rg_ledger_epoch {
    enum epoch_state state;
    uint64_t epoch;
    uint64_t first_seq;
    uint64_t committed; /* DECIDED: all of it; UNKNOWN: what is known */
    int nparticipants;
    uint64_t participants[RG_SLOTS_MAX / 64];
};

static_assert((int)RG_SLOTS_MAX == 4096, "the public bitmap holds all slots");
static_assert(RG_OUTCOME_EPOCHS >= 4 &&
                  !(RG_OUTCOME_EPOCHS & (RG_OUTCOME_EPOCHS - 1)),
              "room doubles up to it");

void rg_ledger_fini(struct rg_ledger *ledger)
{
    free(ledger->epochs);
    memset(ledger, 0, sizeof *ledger);
}

static void forget_oldest(struct rg_ledger *ledger)
{
    memmove(ledger->epochs, ledger->epochs + 1,
            (size_t)--ledger->count * sizeof *ledger->epochs);
}

static struct rg_ledger_epoch *ledger_add(struct rg_ledger *ledger)
{
    if (ledger->count == RG_OUTCOME_EPOCHS)
        forget_oldest(ledger);
    if (ledger->count == ledger->room) {
        const int room = ledger->room ? 2 * ledger->room : 4;
        struct rg_ledger_epoch *more =
            realloc(ledger->epochs, (size_t)room * sizeof *more);

        if (!more)
            return NULL;
        ledger->epochs = more;
        ledger->room = room;
    }
    return &ledger->epochs[ledger->count++];
}

int rg_ledger_enter(struct rg_ledger *ledger, const struct rg_view *view)
{
    struct rg_ledger_epoch *entry = ledger_add(ledger);

    if (!entry)
        return RG_ENOMEM;
    memset(entry, 0, sizeof *entry);
    entry->epoch = view->epoch;
    entry->first_seq = view->first_seq;
    entry->nparticipants = view->nactive;
    for (int rank = 0; rank < view->nactive; rank++)
        entry->participants[view->order[rank] / 64] |=
            1ull << (view->order[rank] % 64);
    if (ledger->count > 1 && entry[-1].state == EPOCH_OPEN) {
        entry[-1].state = EPOCH_DECIDED;
        entry[-1].committed = view->committed_seq;
    }
    return RG_OK;
}

void rg_ledger_leave(struct rg_ledger *ledger, uint64_t floor)
{
    struct rg_ledger_epoch *last;

    if (!ledger->count)
        return;
    last = &ledger->epochs[ledger->count - 1];
    if (last->state != EPOCH_OPEN)
        return;
    last->state = EPOCH_UNKNOWN;
    last->committed = floor;
}

static enum rg_outcome_state state_of(const struct rg_ledger_epoch *entry,
                                      uint64_t seq, uint64_t floor,
                                      uint64_t completed)
{
    if (!rg_seq_precedes(entry->state == EPOCH_OPEN ? floor : entry->committed,
                         seq))
        return RG_OUTCOME_COMMITTED;
    if (entry->state == EPOCH_DECIDED)
        return RG_OUTCOME_ABORTED;
    return rg_seq_precedes(completed, seq) ? RG_OUTCOME_PENDING
                                           : RG_OUTCOME_COMPLETED;
}

int rg_ledger_find(const struct rg_ledger *ledger, uint64_t seq, uint64_t floor,
                   uint64_t completed, struct rg_outcome *outcome_out)
{
    int i = ledger->count - 1;
    const struct rg_ledger_epoch *entry;
    enum rg_outcome_state state;

    while (i >= 0 && rg_seq_precedes(seq, ledger->epochs[i].first_seq))
        i--;
    if (i < 0)
        return RG_EUNAVAILABLE;
    entry = &ledger->epochs[i];
    state = state_of(entry, seq, floor, completed);
    if (entry->state == EPOCH_UNKNOWN && state != RG_OUTCOME_COMMITTED)
        return RG_EUNAVAILABLE;
    outcome_out->state = state;
    outcome_out->epoch = entry->epoch;
    outcome_out->nparticipants = entry->nparticipants;
    memcpy(outcome_out->participants, entry->participants,
           sizeof entry->participants);
    return RG_OK;
}
