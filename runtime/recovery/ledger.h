/*
 * The ledger: which epoch each seq belongs to, and what became of it. A value
 * without threads or clocks; whoever owns it guards it.
 *
 * A view enters with committed_seq and first_seq of protocol step VIEW
 * (control/coordinator.h): seqs of the epoch before up to committed_seq are
 * committed, those between are aborted, first_seq is the first of the new
 * epoch. Every member enters the same views, so every ledger says the same.
 */
#ifndef RG_RECOVERY_LEDGER_H
#define RG_RECOVERY_LEDGER_H

#include "runtime/control/view.h"
#include "runtime/regroup.h"

struct rg_ledger_epoch;

/* The last RG_OUTCOME_EPOCHS epochs; older ones are forgotten. */
struct rg_ledger {
    struct rg_ledger_epoch *epochs; /* ascending; owned */
    int count;
    int room; /* RG_OUTCOME_EPOCHS at most */
};

void rg_ledger_fini(struct rg_ledger *ledger);
/* `view` is decided. RG_OK or RG_ENOMEM. */
int rg_ledger_enter(struct rg_ledger *ledger, const struct rg_view *view);
/* No longer a member: all that is known is that seqs to `floor` committed. */
void rg_ledger_leave(struct rg_ledger *ledger, uint64_t floor);
/*
 * `floor`: committed in the last epoch; `completed`: here. RG_OK, or
 * RG_EUNAVAILABLE: decided, if at all, while this rank was no member, or
 * forgotten.
 */
int rg_ledger_find(const struct rg_ledger *ledger, uint64_t seq, uint64_t floor,
                   uint64_t completed, struct rg_outcome *outcome_out);

#endif
