/* The callers' half of the driver: creation, requests, waiting. */
#include "runtime/control/driver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/control/driver_socket.h"
#include "runtime/control/driver_state.h"
#include "runtime/core/clock.h"
#include "runtime/core/cond.h"
#include "runtime/core/log.h"
#include "runtime/core/seq.h"
#include "runtime/status.h"

enum {
    FIRST_PROCESS = 1,
    ROUTES_OF_A_PAIR = 2, /* peer to peer, then through the hosts */
    NS_PER_MS = 1000000
};

/* ---- boxes: what waits for the caller ------------------------------------ */

struct rg_box *rg_driver_box(const struct rg_driver *driver, uint32_t group)
{
    struct rg_box *box = driver->boxes;

    while (box && box->group != group)
        box = box->next;
    return box;
}

static int box_create(struct rg_driver *driver, uint32_t group)
{
    struct rg_box *box = calloc(1, sizeof(*box));

    if (!box)
        return RG_ENOMEM;
    box->group = group;
    box->next = driver->boxes;
    driver->boxes = box;
    return RG_OK;
}

static void box_remove(struct rg_driver *driver, struct rg_box *box)
{
    struct rg_box **link = &driver->boxes;

    while (*link != box)
        link = &(*link)->next;
    *link = box->next;
    while (box->first) {
        struct rg_boxed *boxed = box->first;

        box->first = boxed->next;
        rg_view_destroy(boxed->event.view);
        rg_bitset_fini(&boxed->event.slots);
        free(boxed);
    }
    free(box);
}

static enum rg_event_kind event_kind(enum rg_message_kind kind)
{
    switch (kind) {
    case RG_MSG_PREPARE:
        return RG_EVENT_PREPARE;
    case RG_MSG_VIEW:
        return RG_EVENT_VIEW;
    case RG_MSG_ACTIVATE:
        return RG_EVENT_ACTIVATE;
    case RG_MSG_ERROR:
        return RG_EVENT_ERROR;
    case RG_MSG_EXCLUDED:
        return RG_EVENT_ISOLATED;
    case RG_MSG_NOTICE:
        return RG_EVENT_NOTICE;
    default:
        return RG_EVENT_NONE;
    }
}

/* The slots of a message as a set the caller owns. */
static int take_slots(const struct rg_message *message, struct rg_bitset *slots)
{
    int bits = (int)message->bytes * 8;

    if (rg_bitset_init(slots, bits ? bits : 1))
        return RG_ENOMEM;
    for (int slot = 0; slot < bits; slot++)
        if (rg_message_has_slot(message, slot))
            rg_bitset_set(slots, slot);
    return RG_OK;
}

static int box_put(struct rg_box *box, const struct rg_message *message)
{
    struct rg_boxed *boxed = calloc(1, sizeof(*boxed));

    if (!boxed)
        return RG_ENOMEM;
    boxed->event = (struct rg_group_event){.kind = event_kind(message->kind),
                                           .epoch = message->epoch,
                                           .workspace = message->workspace,
                                           .status = message->status};
    if (message->view) {
        boxed->event.view = rg_view_clone(message->view);
        if (!boxed->event.view) {
            free(boxed);
            return RG_ENOMEM;
        }
    }
    if (message->kind == RG_MSG_NOTICE &&
        take_slots(message, &boxed->event.slots)) {
        free(boxed);
        return RG_ENOMEM;
    }
    if (box->first)
        box->last->next = boxed;
    else
        box->first = boxed;
    box->last = boxed;
    return RG_OK;
}

/* Hands the blocks to the caller that waits; late answers find none. */
static void box_gathered(const struct rg_driver *driver, struct rg_box *box,
                         const struct rg_message *message)
{
    const struct rg_view *view = rg_agent_view(driver->agent, box->group);
    size_t expected = view ? (size_t)view->nactive * box->gather.bytes : 0;

    if (box->gather.state != RG_GATHER_OPEN)
        return;
    box->gather.state = RG_GATHER_DONE;
    box->gather.status = message->status;
    if (message->status)
        return;
    if (message->bytes != expected)
        box->gather.status = RG_EPROTO;
    else if (expected)
        memcpy(box->gather.out, message->data, expected);
}

void rg_driver_asked(struct rg_driver *driver, const struct rg_message *request)
{
    struct rg_box *box = rg_driver_box(driver, request->group);

    if (box && request->kind == RG_MSG_GATHER &&
        box->gather.state == RG_GATHER_ASKED &&
        box->gather.serial == request->call)
        box->gather.state = RG_GATHER_OPEN;
}

/*
 * A process started anew listens elsewhere, and another that was started at
 * about the same time may not have heard of it. Who misses a lifeline opens
 * one; if both do, they have two.
 */
static void learn_address(struct rg_driver *driver,
                          const struct rg_member *member)
{
    const int rank = member->world_rank;
    const uint32_t process = member->incarnation >> RG_INCARNATION_SHIFT;
    struct rg_address *address = &driver->boot.addresses[rank];

    if (rank == driver->rank || process < address->process)
        return;
    address->endpoint = member->endpoint;
    address->process = process;
    rg_loop_meet(driver, rank, process);
    if (address->same_host && !driver->peers[rank].is_gone)
        rg_loop_lifeline(driver, rank);
}

static void learn_addresses(struct rg_driver *driver,
                            const struct rg_view *view)
{
    for (int slot = 0; slot < view->capacity; slot++) {
        const struct rg_member *member = &view->members[slot];

        if (member->status == RG_MEMBER_ACTIVE && member->endpoint.port &&
            member->world_rank < driver->size)
            learn_address(driver, member);
    }
}

/* RG_FENCE=kill: who was left behind on this host must not write any more. */
static void fence_left_behind(struct rg_driver *driver, uint32_t group)
{
    const struct rg_view *view = rg_agent_view(driver->agent, group);

    for (int slot = 0; view && slot < view->capacity; slot++) {
        const struct rg_member *member = &view->members[slot];
        const struct rg_peer *peer;

        if (!member->quarantine || member->world_rank < 0 ||
            member->world_rank >= driver->size)
            continue;
        peer = &driver->peers[member->world_rank];
        if (peer->pid_fd < 0 ||
            peer->process != member->incarnation >> RG_INCARNATION_SHIFT)
            continue;
        if (!peer->is_gone)
            rg_log(RG_LOG_WARN, driver->rank,
                   "group %u: kills rank %d, which was left behind (RG_FENCE)",
                   group, member->world_rank);
        rg_socket_kill_peer(peer->pid_fd);
    }
}

int rg_driver_deliver(struct rg_driver *driver,
                      const struct rg_message *message)
{
    struct rg_box *box = rg_driver_box(driver, message->group);
    int rc = RG_OK;

    if (message->kind == RG_MSG_VIEW)
        learn_addresses(driver, message->view);
    if (message->kind == RG_MSG_ACTIVATE && driver->fences)
        fence_left_behind(driver, message->group);
    if (!box)
        return RG_OK; /* the caller has left meanwhile */
    if (message->kind == RG_MSG_GATHERED)
        box_gathered(driver, box, message);
    else
        rc = box_put(box, message);
    pthread_cond_broadcast(&driver->changed);
    return rc;
}

/* ---- asking and waiting -------------------------------------------------- */

static uint64_t patience_ns(uint64_t timeout_ms)
{
    return timeout_ms * NS_PER_MS;
}

static uint64_t patience_of(int timeout_ms)
{
    return patience_ns(timeout_ms > 0 ? (uint64_t)timeout_ms : 0);
}

/*
 * Under the lock: waits for a change, but not for long, and takes the time from
 * the caller's patience. A process that was stopped has not waited meanwhile:
 * one wait counts as a gap at most. RG_OK; RG_ETIMEDOUT: no patience is left.
 */
static int wait_changed(struct rg_driver *driver, uint64_t *left_ns)
{
    const uint64_t gap_ns = RG_GAP_MS * (uint64_t)NS_PER_MS;
    uint64_t most_ns = *left_ns < gap_ns ? *left_ns : gap_ns;
    uint64_t begin_ns = rg_clock_ns();
    uint64_t spent_ns;

    if (!*left_ns)
        return RG_ETIMEDOUT;
    rg_cond_wait(&driver->changed, &driver->lock, begin_ns + most_ns);
    spent_ns = rg_clock_ns() - begin_ns;
    *left_ns -= spent_ns < most_ns ? spent_ns : most_ns;
    return RG_OK;
}

static void wake(struct rg_driver *driver)
{
    uint64_t one = 1;

    /* Cannot fail: the counter would have to be full. */
    if (write(driver->wake_fd, &one, sizeof(one)) < 0)
        rg_log(RG_LOG_ERROR, driver->rank, "cannot wake the driver: %m");
}

/* Under the lock: queues a request for the agent; drops the reference. */
static int ask(struct rg_driver *driver, struct rg_message *message)
{
    struct rg_input input = {.kind = RG_INPUT_REQUEST, .message = message};
    int rc = driver->failed;

    if (!rc)
        rc = message ? rg_loop_post(&driver->requests, 0, &input) : RG_ENOMEM;
    rg_message_unref(message);
    if (!rc)
        wake(driver);
    return rc;
}

/* For requests that need a known group and no answer. */
static int ask_known(struct rg_driver *driver, struct rg_message *message)
{
    int rc = RG_EINVAL;

    pthread_mutex_lock(&driver->lock);
    if (message && !rg_driver_box(driver, message->group))
        rg_message_unref(message);
    else
        rc = ask(driver, message);
    pthread_mutex_unlock(&driver->lock);
    return rc;
}

void rg_driver_identity(const struct rg_driver *driver,
                        unsigned char secret_out[RG_DRIVER_SECRET_BYTES],
                        char address_out[RG_ADDRESS_BYTES])
{
    const struct rg_endpoint *own =
        &driver->boot.addresses[driver->rank].endpoint;

    _Static_assert((int)RG_DRIVER_SECRET_BYTES == (int)RG_SECRET_BYTES,
                   "the whole secret is handed out, and no more");
    memcpy(secret_out, driver->boot.secret, RG_DRIVER_SECRET_BYTES);
    memcpy(address_out, own->address, RG_ADDRESS_BYTES);
}

/* ---- groups -------------------------------------------------------------- */

int rg_driver_join(struct rg_driver *driver, const struct rg_join *join)
{
    const char *policy = join->policy ? join->policy : "";
    struct rg_message *message;
    int rc;

    if (join->capacity < 1 || join->capacity > RG_CAPACITY_MAX ||
        join->first_seq < 1 || strlen(policy) > RG_TEXT_MAX)
        return RG_EINVAL;
    message = rg_message_create(RG_MSG_JOIN, join->group);
    if (!message || rg_message_set_data(message, policy, strlen(policy))) {
        rg_message_unref(message);
        return RG_ENOMEM;
    }
    message->status = join->rejoin;
    message->capacity = join->capacity;
    message->first_seq = join->first_seq;
    message->endpoint = driver->boot.addresses[driver->rank].endpoint;
    message->info = join->info;
    pthread_mutex_lock(&driver->lock);
    rc = rg_driver_box(driver, join->group) ? RG_EBUSY
                                            : box_create(driver, join->group);
    if (rc) {
        rg_message_unref(message);
    } else {
        rc = ask(driver, message);
        if (rc)
            box_remove(driver, rg_driver_box(driver, join->group));
    }
    pthread_mutex_unlock(&driver->lock);
    return rc;
}

int rg_driver_leave(struct rg_driver *driver, uint32_t group)
{
    struct rg_box *box;
    int rc = RG_EINVAL;

    pthread_mutex_lock(&driver->lock);
    box = rg_driver_box(driver, group);
    if (box) {
        box_remove(driver, box);
        pthread_cond_broadcast(&driver->changed);
        rc = ask(driver, rg_message_create(RG_MSG_LEAVE, group));
    }
    pthread_mutex_unlock(&driver->lock);
    return rc;
}

int rg_driver_next(struct rg_driver *driver, uint32_t group, int timeout_ms,
                   struct rg_group_event *event_out)
{
    uint64_t left_ns = patience_of(timeout_ms);
    struct rg_boxed *boxed = NULL;
    struct rg_box *box;
    int rc = RG_OK;

    pthread_mutex_lock(&driver->lock);
    while ((box = rg_driver_box(driver, group)) && !box->first && !rc) {
        rc = driver->failed;
        if (!rc && wait_changed(driver, &left_ns))
            rc = RG_EPENDING;
    }
    if (!box) {
        rc = RG_EINVAL;
    } else if (box->first) {
        boxed = box->first;
        box->first = boxed->next;
        rc = RG_OK;
    }
    pthread_mutex_unlock(&driver->lock);
    if (boxed)
        *event_out = boxed->event;
    free(boxed);
    return rc;
}

int rg_driver_quiesced(struct rg_driver *driver, uint32_t group, uint64_t epoch,
                       uint64_t completed, uint64_t claimed,
                       const struct rg_pairs *pairs)
{
    struct rg_message *message = rg_message_create(RG_MSG_QUIESCED, group);

    if (message) {
        message->epoch = epoch;
        message->completed = completed;
        message->claimed = claimed;
    }
    if (message && pairs && rg_pairs_copy(pairs, &message->pairs)) {
        rg_message_unref(message);
        message = NULL;
    }
    return ask_known(driver, message);
}

int rg_driver_view_ready(struct rg_driver *driver, uint32_t group,
                         uint64_t epoch, uint64_t rules)
{
    struct rg_message *message = rg_message_create(RG_MSG_VIEW_ACK, group);

    if (message) {
        message->epoch = epoch;
        message->rules = rules;
    }
    return ask_known(driver, message);
}

int rg_driver_propose_policy(struct rg_driver *driver, uint32_t group,
                             const char *policy)
{
    struct rg_message *message;

    if (strlen(policy) > RG_TEXT_MAX)
        return RG_EINVAL;
    message = rg_message_create(RG_MSG_POLICY, group);
    if (message && rg_message_set_data(message, policy, strlen(policy))) {
        rg_message_unref(message);
        return RG_ENOMEM;
    }
    return ask_known(driver, message);
}

static int ask_slots(struct rg_driver *driver, struct rg_message *message,
                     const struct rg_bitset *slots)
{
    if (message && rg_message_set_slots(message, slots)) {
        rg_message_unref(message);
        message = NULL;
    }
    return ask_known(driver, message);
}

int rg_driver_change(struct rg_driver *driver, uint32_t group,
                     const struct rg_bitset *leavers, int vouch)
{
    struct rg_message *message = rg_message_create(RG_MSG_CHANGE, group);

    if (message)
        message->status = vouch != 0;
    return ask_slots(driver, message, leavers);
}

int rg_driver_report_stall(struct rg_driver *driver, uint32_t group,
                           uint64_t seq, const struct rg_bitset *slots)
{
    struct rg_message *message = rg_message_create(RG_MSG_REPORT, group);

    if (message) {
        message->status = RG_EVIDENCE_STALLED;
        message->claimed = seq;
    }
    return ask_slots(driver, message, slots);
}

int rg_driver_report_unreachable(struct rg_driver *driver, uint32_t group,
                                 const struct rg_bitset *slots)
{
    struct rg_message *message = rg_message_create(RG_MSG_REPORT, group);

    if (message)
        message->status = RG_EVIDENCE_UNREACHABLE;
    return ask_slots(driver, message, slots);
}

int rg_driver_progress(struct rg_driver *driver, uint32_t group,
                       uint64_t completed, int has_graphs, int waits)
{
    struct rg_message *message = rg_message_create(RG_MSG_PROGRESS, group);

    if (message) {
        message->completed = completed;
        message->claimed = has_graphs != 0;
        message->status = waits ? RG_HEARTBEAT_URGENT : RG_HEARTBEAT_CALM;
    }
    return ask_known(driver, message);
}

int rg_driver_fenced(struct rg_driver *driver, uint32_t group)
{
    return ask_known(driver, rg_message_create(RG_MSG_FENCED, group));
}

int rg_driver_committed(struct rg_driver *driver, uint32_t group,
                        uint64_t epoch, uint64_t *seq_out)
{
    const struct rg_view *view;
    int known;

    pthread_mutex_lock(&driver->lock);
    view = rg_agent_view(driver->agent, group);
    known = view && view->epoch == epoch;
    if (known)
        *seq_out = rg_agent_committed(driver->agent, group);
    pthread_mutex_unlock(&driver->lock);
    return known ? RG_OK : RG_EUNAVAILABLE;
}

/* RG_EPENDING: neither committed nor decided against. */
static int committed_status(const struct rg_driver *driver, uint32_t group,
                            uint64_t epoch, uint64_t seq)
{
    const struct rg_view *view = rg_agent_view(driver->agent, group);

    if (!view)
        return RG_EISOLATED;
    if (view->epoch != epoch || !rg_agent_is_settled(driver->agent, group))
        return RG_EABORTED;
    return rg_seq_precedes(rg_agent_committed(driver->agent, group), seq)
               ? RG_EPENDING
               : RG_OK;
}

int rg_driver_wait_committed(struct rg_driver *driver, uint32_t group,
                             uint64_t seq, int timeout_ms)
{
    uint64_t left_ns = patience_of(timeout_ms);
    const struct rg_view *view;
    uint64_t epoch;
    int rc;

    pthread_mutex_lock(&driver->lock);
    view = rg_agent_view(driver->agent, group);
    epoch = view ? view->epoch : 0;
    while ((rc = committed_status(driver, group, epoch, seq)) == RG_EPENDING) {
        rc = driver->failed;
        if (!rc)
            rc = wait_changed(driver, &left_ns);
        if (rc)
            break;
    }
    pthread_mutex_unlock(&driver->lock);
    return rc;
}

int rg_driver_drop_link(struct rg_driver *driver, int world_rank, int on)
{
    if (world_rank < 0 || world_rank >= driver->size ||
        world_rank == driver->rank)
        return RG_EINVAL;
    pthread_mutex_lock(&driver->lock);
    driver->peers[world_rank].is_dropped = on != 0;
    pthread_mutex_unlock(&driver->lock);
    return RG_OK;
}

int rg_driver_describe(struct rg_driver *driver, uint32_t group, char *text,
                       size_t bytes)
{
    pthread_mutex_lock(&driver->lock);
    rg_agent_describe(driver->agent, group, text, bytes);
    pthread_mutex_unlock(&driver->lock);
    return RG_OK;
}

/* ---- gather -------------------------------------------------------------- */

/*
 * Under the lock: waits until the group's gather is done. RG_ECLOSED: the group
 * has been left meanwhile.
 */
static int gather_done(struct rg_driver *driver, uint32_t group,
                       uint64_t left_ns)
{
    struct rg_box *box;
    int rc = RG_OK;

    while ((box = rg_driver_box(driver, group)) &&
           box->gather.state != RG_GATHER_DONE && !rc) {
        rc = driver->failed;
        if (!rc)
            rc = wait_changed(driver, &left_ns);
    }
    if (!box)
        return RG_ECLOSED;
    return box->gather.state == RG_GATHER_DONE ? box->gather.status : rc;
}

/*
 * The same for as long as the caller is patient. Then the call is given up for
 * all members alike, by the coordinator's word: who went on by itself would
 * take part in another call than they.
 */
static int gather_wait(struct rg_driver *driver, uint32_t group, int timeout_ms)
{
    int rc = gather_done(driver, group, patience_of(timeout_ms));
    struct rg_box *box = rg_driver_box(driver, group);
    struct rg_message *message;

    if (box && rc == RG_ETIMEDOUT && box->gather.state != RG_GATHER_DONE) {
        message = rg_message_create(RG_MSG_GATHER, group);
        if (message)
            message->status = RG_ETIMEDOUT;
        rc = ask(driver, message);
        if (!rc)
            rc = gather_done(driver, group,
                             patience_ns(driver->settings.window_ms));
        box = rg_driver_box(driver, group);
    }
    if (box)
        box->gather.state = RG_GATHER_IDLE;
    return rc;
}

int rg_driver_gather(struct rg_driver *driver, uint32_t group, const void *in,
                     size_t bytes, void *out, int timeout_ms)
{
    struct rg_message *message;
    struct rg_box *box;
    int rc;

    message = rg_message_create(RG_MSG_GATHER, group);
    /* It counts as a call, else the next one would pair with the others'. */
    if (message && bytes > RG_GATHER_MAX)
        message->status = RG_EINVAL;
    else if (!message || rg_message_set_data(message, in, bytes)) {
        rg_message_unref(message);
        return RG_ENOMEM;
    }
    pthread_mutex_lock(&driver->lock);
    box = rg_driver_box(driver, group);
    rc = !box ? RG_EINVAL
              : (box->gather.state != RG_GATHER_IDLE ? RG_EBUSY : RG_OK);
    if (rc) {
        rg_message_unref(message);
    } else {
        box->gather.state = RG_GATHER_ASKED;
        box->gather.out = out;
        box->gather.bytes = bytes;
        message->call = ++box->gather.serial;
        rc = ask(driver, message);
        if (rc)
            box->gather.state = RG_GATHER_IDLE;
        else
            rc = gather_wait(driver, group, timeout_ms);
    }
    pthread_mutex_unlock(&driver->lock);
    return rc;
}

/* ---- descriptors --------------------------------------------------------- */

int rg_driver_offer_fd(struct rg_driver *driver, int fd)
{
    struct rg_message *offer = rg_message_create(RG_MSG_OFFER, 0);
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    int rc = offer ? RG_OK : RG_ENOMEM;

    if (!rc && copy < 0) {
        rg_log(RG_LOG_ERROR, driver->rank, "cannot offer a descriptor: %m");
        rc = RG_ESYSTEM;
    }
    pthread_mutex_lock(&driver->lock);
    for (int peer = 0; peer < driver->size && !rc; peer++) {
        struct rg_link *link = driver->peers[peer].lifeline;

        /* A peer that has died since is no failure of the offer. */
        if (link && rg_link_send(link, offer, fd) == RG_ENOMEM)
            rc = RG_ENOMEM;
    }
    if (!rc) {
        struct rg_peer *own = &driver->peers[driver->rank];
        int before = own->offered_fd;

        own->offered_fd = copy;
        copy = before;
    }
    pthread_mutex_unlock(&driver->lock);
    if (copy >= 0)
        close(copy);
    rg_message_unref(offer);
    return rc;
}

int rg_driver_fetch_fd(struct rg_driver *driver, int world_rank, int timeout_ms,
                       int *fd_out)
{
    uint64_t left_ns = patience_of(timeout_ms);
    const struct rg_peer *peer;
    int fd = -1;
    int rc = RG_OK;

    if (world_rank < 0 || world_rank >= driver->size)
        return RG_EINVAL;
    if (!driver->boot.addresses[world_rank].same_host)
        return RG_ENOTSUP;
    peer = &driver->peers[world_rank];
    pthread_mutex_lock(&driver->lock);
    while (peer->offered_fd < 0 && !rc) {
        rc = driver->failed;
        if (!rc && world_rank != driver->rank && !peer->lifeline)
            rc = RG_ECLOSED;
        if (!rc)
            rc = wait_changed(driver, &left_ns);
    }
    if (peer->offered_fd >= 0) {
        fd = fcntl(peer->offered_fd, F_DUPFD_CLOEXEC, 0);
        rc = fd < 0 ? RG_ESYSTEM : RG_OK;
    }
    pthread_mutex_unlock(&driver->lock);
    if (!rc)
        *fd_out = fd;
    return rc;
}

/* ---- life ---------------------------------------------------------------- */

static int create_machines(struct rg_driver *driver)
{
    const struct rg_settings *settings = &driver->settings;
    const struct rg_agent_config agent = {
        .rank = driver->rank,
        .world_size = driver->size,
        .coordinator = RG_FIRST_COORDINATOR,
        .process = driver->process,
        .form_ms = settings->bootstrap_ms,
        .heartbeat_ms = settings->heartbeat_ms,
        .miss_ms = settings->heartbeat_miss_ms,
        .window_ms = settings->window_ms,
        .isolate_ms = settings->isolate_ms};
    const struct rg_coordinator_config coordinator = {
        .rank = driver->rank,
        .first = RG_FIRST_COORDINATOR,
        .world_size = driver->size,
        .mode = (enum rg_mode)settings->mode,
        .workspaces = (uint32_t)settings->workspaces,
        .routes = ROUTES_OF_A_PAIR,
        .heartbeat_ms = settings->heartbeat_ms,
        .miss_ms = settings->heartbeat_miss_ms,
        .window_ms = settings->window_ms,
        .plan_ms = settings->deadline_ms};

    driver->agent = rg_agent_create(&agent);
    driver->coordinator = rg_coordinator_create(&coordinator);
    return driver->agent && driver->coordinator ? RG_OK : RG_ENOMEM;
}

static int create_waiting(struct rg_driver *driver)
{
    if (rg_cond_init_locked(&driver->changed, &driver->lock))
        return RG_ENOMEM;
    driver->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    driver->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (driver->epoll_fd < 0 || driver->wake_fd < 0) {
        rg_log(RG_LOG_ERROR, driver->rank, "cannot start the driver: %m");
        return RG_ESYSTEM;
    }
    return RG_OK;
}

/* Opens a link to a listening peer and says who we are. */
static int connect_peer(struct rg_driver *driver, enum rg_link_kind kind,
                        int peer, uint64_t deadline_ns)
{
    const struct rg_endpoint *endpoint = &driver->boot.addresses[peer].endpoint;
    struct rg_link *link;
    int fd;
    int rc;

    rc = kind == RG_LINK_CONTROL
             ? rg_socket_connect_tcp(driver->rank, endpoint, deadline_ns, &fd)
             : rg_socket_connect_unix(driver->rank, endpoint, deadline_ns, &fd);
    if (!rc)
        rc = rg_loop_adopt(driver, kind, fd, peer, &link);
    if (!rc)
        rc = rg_loop_hello(driver, link);
    return rc;
}

/*
 * Lower ranks are connected to, higher ones are waited for: no two ranks wait
 * for each other, since rank 0 connects to none.
 */
static int connect_all(struct rg_driver *driver, uint64_t deadline_ns)
{
    int rc = RG_OK;

    if (driver->rank == RG_FIRST_COORDINATOR)
        driver->missing_links = driver->size - 1;
    else
        rc = connect_peer(driver, RG_LINK_CONTROL, RG_FIRST_COORDINATOR,
                          deadline_ns);
    for (int peer = 0; peer < driver->size && !rc; peer++) {
        if (!driver->boot.addresses[peer].same_host)
            continue;
        if (peer < driver->rank)
            rc = connect_peer(driver, RG_LINK_LIFELINE, peer, deadline_ns);
        else
            driver->missing_links += peer > driver->rank;
    }
    return rc;
}

/*
 * Into a running job: lifelines to all who live on this host. Whoever else is
 * needed is reached when there is something to say.
 */
static int connect_living(struct rg_driver *driver)
{
    for (int peer = 0; peer < driver->size; peer++) {
        const struct rg_address *address = &driver->boot.addresses[peer];
        struct rg_link *link;
        int fd = -1;
        int rc;

        driver->peers[peer].process = address->process;
        if (peer != driver->rank && address->same_host)
            fd = rg_socket_try_unix(&address->endpoint);
        if (fd < 0)
            continue;
        rc = rg_loop_adopt(driver, RG_LINK_LIFELINE, fd, peer, &link);
        if (!rc)
            rc = rg_loop_hello(driver, link);
        if (rc == RG_ENOMEM)
            return rc;
    }
    return RG_OK;
}

int rg_driver_ticket(struct rg_driver *driver, unsigned char **ticket_out,
                     size_t *bytes_out)
{
    int rc;

    pthread_mutex_lock(&driver->lock);
    rc =
        rg_bootstrap_ticket(&driver->boot, driver->size, ticket_out, bytes_out);
    pthread_mutex_unlock(&driver->lock);
    return rc;
}

/* Signals belong to the program's own threads. */
static int start_thread(struct rg_driver *driver)
{
    sigset_t all;
    sigset_t before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&driver->thread, NULL, rg_loop_main, driver);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        rg_log(RG_LOG_ERROR, driver->rank, "cannot start the driver: %s",
               strerror(error));
        return RG_ESYSTEM;
    }
    driver->running = 1;
    return RG_OK;
}

static int wait_linked(struct rg_driver *driver)
{
    uint64_t left_ns = patience_ns(driver->settings.bootstrap_ms);
    int rc = RG_OK;

    pthread_mutex_lock(&driver->lock);
    while (driver->missing_links && !rc) {
        rc = driver->failed;
        if (!rc)
            rc = wait_changed(driver, &left_ns);
    }
    if (rc == RG_ETIMEDOUT)
        rg_log(RG_LOG_ERROR, driver->rank,
               "%d links of other ranks are missing after %llu ms "
               "(RG_BOOTSTRAP_MS)",
               driver->missing_links,
               (unsigned long long)driver->settings.bootstrap_ms);
    pthread_mutex_unlock(&driver->lock);
    return rc;
}

int rg_driver_fences(int rank, int *fences_out)
{
    const char *text = getenv("RG_FENCE");

    *fences_out = text && !strcmp(text, "kill");
    if (!text || !*text || *fences_out)
        return RG_OK;
    rg_log(RG_LOG_ERROR, rank, "RG_FENCE=%s is not \"kill\"", text);
    return RG_ECONFIG;
}

static int create_peers(struct rg_driver *driver)
{
    driver->peers = calloc((size_t)driver->size, sizeof(*driver->peers));
    if (!driver->peers)
        return RG_ENOMEM;
    for (int peer = 0; peer < driver->size; peer++)
        driver->peers[peer] = (struct rg_peer){.process = FIRST_PROCESS,
                                               .offered_fd = -1,
                                               .pid_fd = -1,
                                               .pulse_fd = -1};
    return RG_OK;
}

/* Before there is any other descriptor worth the name. */
static int start_pulse(struct rg_driver *driver)
{
    int rc = rg_pulse_create(driver->rank, &driver->pulse);

    if (rc != RG_ENOTSUP)
        return rc;
    rg_log(RG_LOG_INFO, driver->rank,
           "no pulse here: deaths are seen by their lifelines");
    return RG_OK;
}

/* All that takes nobody else. */
static int prepare(struct rg_driver *driver)
{
    int rc = rg_driver_fences(driver->rank, &driver->fences);

    if (!rc)
        rc = create_waiting(driver);
    if (!rc)
        rc = create_peers(driver);
    if (!rc)
        rc = create_machines(driver);
    return rc ? rc : start_pulse(driver);
}

/*
 * With all others of the job. After each step they agree on how it went, so
 * that none waits for one that has failed.
 */
static int begin_job(struct rg_driver *driver,
                     const struct rg_driver_config *config)
{
    const uint64_t deadline_ns =
        rg_clock_after_ms(driver->settings.bootstrap_ms);
    int rc = rg_bootstrap_run(config, prepare(driver), &driver->boot);

    if (rc)
        return rc;
    rc = connect_all(driver, deadline_ns);
    if (!rc)
        rc = start_thread(driver);
    rc = rg_bootstrap_agree(config, rc);
    return rc ? rc : rg_bootstrap_agree(config, wait_linked(driver));
}

/* Alone, into a job that runs. */
static int enter_job(struct rg_driver *driver,
                     const struct rg_driver_config *config)
{
    int rc = prepare(driver);

    if (!rc)
        rc = rg_bootstrap_enter(config, &driver->boot);
    if (!rc)
        rc = connect_living(driver);
    return rc ? rc : start_thread(driver);
}

int rg_driver_create(const struct rg_driver_config *config,
                     struct rg_driver **driver_out)
{
    struct rg_driver *driver = calloc(1, sizeof(*driver));
    int rc = RG_ENOMEM;

    if (!driver)
        return rc;
    driver->rank = config->world_rank;
    driver->size = config->world_size;
    driver->process = config->process ? config->process : FIRST_PROCESS;
    driver->settings = *config->settings;
    driver->boot.tcp_fd = driver->boot.unix_fd = -1;
    driver->epoll_fd = driver->wake_fd = -1;
    rc = config->ticket ? enter_job(driver, config) : begin_job(driver, config);
    if (rc) {
        rg_driver_destroy(driver);
        return rc;
    }
    *driver_out = driver;
    return RG_OK;
}

static void stop_thread(struct rg_driver *driver)
{
    if (!driver->running)
        return;
    pthread_mutex_lock(&driver->lock);
    driver->stop = RG_STOP_ASKED;
    wake(driver);
    pthread_mutex_unlock(&driver->lock);
    pthread_join(driver->thread, NULL);
    driver->running = 0;
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* Everything that others of the job could notice; the thread has ended. */
static void close_all(struct rg_driver *driver)
{
    int *const own[] = {&driver->boot.tcp_fd, &driver->boot.unix_fd,
                        &driver->epoll_fd, &driver->wake_fd};

    while (driver->links) {
        struct rg_link *link = driver->links;

        driver->links = link->next;
        rg_link_destroy(link);
    }
    for (int peer = 0; driver->peers && peer < driver->size; peer++) {
        struct rg_peer *closed = &driver->peers[peer];

        close_if_open(closed->offered_fd);
        close_if_open(closed->pid_fd);
        close_if_open(closed->pulse_fd);
        closed->offered_fd = closed->pid_fd = closed->pulse_fd = -1;
        closed->control = closed->lifeline = NULL;
    }
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
        close_if_open(*own[i]);
        *own[i] = -1;
    }
    rg_pulse_destroy(driver->pulse);
    driver->pulse = NULL;
}

void rg_driver_abandon(struct rg_driver *driver)
{
    pthread_mutex_lock(&driver->lock);
    driver->is_abandoned = 1;
    pthread_mutex_unlock(&driver->lock);
    stop_thread(driver);
    pthread_mutex_lock(&driver->lock);
    driver->failed = RG_ECLOSED;
    close_all(driver);
    pthread_cond_broadcast(&driver->changed);
    pthread_mutex_unlock(&driver->lock);
}

void rg_driver_destroy(struct rg_driver *driver)
{
    if (!driver)
        return;
    stop_thread(driver);
    close_all(driver);
    while (driver->boxes)
        box_remove(driver, driver->boxes);
    rg_loop_drop(&driver->requests);
    rg_loop_drop(&driver->letters);
    rg_effects_fini(&driver->effects);
    rg_agent_destroy(driver->agent);
    rg_coordinator_destroy(driver->coordinator);
    free(driver->boot.addresses);
    free(driver->peers);
    free(driver->alarms);
    pthread_cond_destroy(&driver->changed);
    pthread_mutex_destroy(&driver->lock);
    free(driver);
}
