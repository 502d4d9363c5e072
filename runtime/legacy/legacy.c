#include "runtime/legacy/legacy.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/core/log.h"
#include "runtime/core/seq.h"
#include "runtime/device/word.h"
#include "runtime/legacy/state.h"
#include "runtime/status.h"

enum {
    WORKSPACES = 3,
    CHUNK_BYTES = 128 * 1024,
    CHUNK_UNIT = 64, /* keeps elements whole and slots aligned */
    DEADLINE_MS = 10000,
    NS_PER_MS = 1000000
};

static uint64_t value_or(uint64_t value, uint64_t otherwise)
{
    return value ? value : otherwise;
}

static int make_engine(struct rg_legacy *legacy,
                       const struct rg_engine_config *given)
{
    struct rg_engine_config config = *given;
    int rc;

    /* The area is still at 0: where the slots of one rank too many begin. */
    legacy->area_bytes = rg_legacy_slots_at(legacy, legacy->size);
    config.bytes = (uint64_t)legacy->workspaces * legacy->area_bytes;
    config.memory = NULL;
    config.generation = 0;
    rc = rg_engine_create(&config, &legacy->engine);
    if (!rc)
        legacy->region = rg_engine_memory(legacy->engine);
    return rc;
}

static int allocate(struct rg_legacy *legacy)
{
    const size_t size = (size_t)legacy->size;

    legacy->world_rank = calloc(size, sizeof(*legacy->world_rank));
    legacy->streams = calloc(size, sizeof(*legacy->streams));
    legacy->exchange.parts = calloc(size, sizeof(*legacy->exchange.parts));
    legacy->sources = calloc(size, sizeof(*legacy->sources));
    legacy->stage = calloc(1, legacy->chunk_bytes);
    return legacy->world_rank && legacy->streams && legacy->exchange.parts &&
                   legacy->sources && legacy->stage
               ? RG_OK
               : RG_ENOMEM;
}

int rg_legacy_create(const struct rg_legacy_config *config,
                     struct rg_legacy **legacy_out)
{
    struct rg_legacy *legacy;
    int rc;

    if (config->engine.size < 1 || config->workspaces < 0 ||
        config->chunk_bytes % CHUNK_UNIT) {
        rg_log(RG_LOG_ERROR, config->engine.rank,
               "legacy backend: %d ranks, %d workspaces, chunks of %llu bytes",
               config->engine.size, config->workspaces,
               (unsigned long long)config->chunk_bytes);
        return RG_EINVAL;
    }
    legacy = calloc(1, sizeof(*legacy));
    if (!legacy)
        return RG_ENOMEM;
    legacy->size = config->engine.size;
    legacy->workspaces = config->workspaces ? config->workspaces : WORKSPACES;
    legacy->chunk_bytes = value_or(config->chunk_bytes, CHUNK_BYTES);
    legacy->deadline_ns =
        value_or(config->deadline_ms, DEADLINE_MS) * NS_PER_MS;
    legacy->status = RG_EUNAVAILABLE; /* no view yet */
    rc = allocate(legacy);
    if (!rc)
        rc = make_engine(legacy, &config->engine);
    if (rc)
        goto error;
    *legacy_out = legacy;
    return RG_OK;
error:
    rg_legacy_destroy(legacy);
    return rc;
}

void rg_legacy_destroy(struct rg_legacy *legacy)
{
    if (!legacy)
        return;
    rg_engine_destroy(legacy->engine);
    free(legacy->world_rank);
    free(legacy->streams);
    free(legacy->exchange.parts);
    free(legacy->sources);
    free(legacy->stage);
    free(legacy);
}

void rg_legacy_get_card(const struct rg_legacy *legacy,
                        struct rg_engine_card *card_out)
{
    rg_engine_get_card(legacy->engine, card_out);
}

/* ---- views -------------------------------------------------------------- */

static int check_view(const struct rg_legacy *legacy,
                      const struct rg_legacy_view *view)
{
    int ok = view->epoch > legacy->epoch && view->workspace >= 0 &&
             view->workspace < legacy->workspaces && view->nranks >= 1 &&
             view->nranks <= legacy->size && view->rank >= 0 &&
             view->rank < view->nranks;

    for (int rank = 0; ok && rank < view->nranks; rank++)
        ok = view->world_rank[rank] >= 0 &&
             view->world_rank[rank] < legacy->size;
    if (ok)
        return RG_OK;
    rg_log(RG_LOG_ERROR, -1, "legacy backend: the view of epoch %llu is wrong",
           (unsigned long long)view->epoch);
    return RG_EINVAL;
}

static int is_in_view(const struct rg_legacy_view *view, int world_rank)
{
    for (int rank = 0; rank < view->nranks; rank++)
        if (view->world_rank[rank] == world_rank)
            return 1;
    return 0;
}

/* Who has left can write to this rank no more, as far as it is in our hands. */
static void drop_others(struct rg_legacy *legacy,
                        const struct rg_legacy_view *view)
{
    for (int peer = 0; peer < legacy->size; peer++)
        if (!is_in_view(view, peer))
            rg_engine_fail(legacy->engine, peer);
}

static int connect_all(struct rg_legacy *legacy,
                       const struct rg_legacy_view *view)
{
    int rc = RG_OK;

    for (int rank = 0; rank < view->nranks && !rc; rank++) {
        if (rank == view->rank)
            continue;
        rc = rg_engine_connect(legacy->engine, view->world_rank[rank],
                               &view->cards[rank]);
        /* Out of reach is not wrong: the next run says whom it misses. */
        if (rc == RG_ESYSTEM || rc == RG_ENOTSUP)
            rc = RG_OK;
    }
    return rc;
}

/* Everything that the others may signal, and all that is counted here. */
static void clear(struct rg_legacy *legacy)
{
    const uint64_t words = 2 * (uint64_t)legacy->size;
    uint64_t *word = (uint64_t *)(void *)(legacy->region + legacy->area);

    for (uint64_t i = 0; i < words; i++)
        rg_store_relaxed(&word[i], 0);
    memset(legacy->streams, 0, (size_t)legacy->size * sizeof(*legacy->streams));
}

int rg_legacy_apply(struct rg_legacy *legacy, const struct rg_legacy_view *view)
{
    int rc = check_view(legacy, view);

    if (rc)
        return rc;
    rg_legacy_exchange_stop(legacy);
    legacy->epoch = view->epoch;
    legacy->first_seq = view->first_seq;
    legacy->area = (uint64_t)view->workspace * legacy->area_bytes;
    legacy->nranks = view->nranks;
    legacy->rank = view->rank;
    memcpy(legacy->world_rank, view->world_rank,
           (size_t)view->nranks * sizeof(*legacy->world_rank));
    drop_others(legacy, view);
    clear(legacy);
    /* From here on the others of this view are let in. */
    rg_engine_advance(legacy->engine, view->epoch);
    rc = connect_all(legacy, view);
    legacy->status = rc;
    return rc;
}

/* ---- running ------------------------------------------------------------ */

int rg_legacy_run(struct rg_legacy *legacy, const struct rg_legacy_op *op,
                  struct rg_bitset *failed_out)
{
    int rc;

    if (failed_out)
        rg_bitset_zero(failed_out);
    if (legacy->status)
        return legacy->status;
    if (rg_seq_precedes(op->seq, legacy->first_seq))
        return RG_EABORTED;
    rc = rg_legacy_check(legacy, op);
    if (rc)
        return rc;
    rc = rg_legacy_perform(legacy, op);
    if (!rc)
        return RG_OK;
    if (failed_out)
        rg_legacy_exchange_blame(legacy, rc, failed_out);
    rg_legacy_exchange_stop(legacy);
    legacy->status = rc;
    return rc;
}

void rg_legacy_abort(struct rg_legacy *legacy, uint64_t epoch)
{
    uint64_t seen = __atomic_load_n(&legacy->abort_epoch, __ATOMIC_RELAXED);

    /* Pairs with the acquire of the wait; only ever grows. */
    while (seen < epoch &&
           !__atomic_compare_exchange_n(&legacy->abort_epoch, &seen, epoch, 0,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}
