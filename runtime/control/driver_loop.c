/* The driver's thread: links, timers, and the machines between them. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/control/driver_socket.h"
#include "runtime/control/driver_state.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/status.h"

enum {
    EVENTS_MAX = 64,
    NS_PER_MS = 1000000,
    QUEUE_MAX = 1 << 26 /* bytes on the way to one peer */
};

/* ---- letters ------------------------------------------------------------ */

int rg_loop_post(struct rg_letters *letters, int to_coordinator,
                 const struct rg_input *input)
{
    struct rg_letter *letter = calloc(1, sizeof(*letter));

    if (!letter)
        return RG_ENOMEM;
    letter->to_coordinator = to_coordinator;
    letter->input = *input;
    if (input->message)
        rg_message_ref(input->message);
    if (letters->last)
        letters->last->next = letter;
    else
        letters->first = letter;
    letters->last = letter;
    return RG_OK;
}

static struct rg_letter *take_letter(struct rg_letters *letters)
{
    struct rg_letter *letter = letters->first;

    if (letter) {
        letters->first = letter->next;
        if (!letters->first)
            letters->last = NULL;
    }
    return letter;
}

static void letter_destroy(struct rg_letter *letter)
{
    rg_message_unref(letter->input.message);
    free(letter);
}

void rg_loop_drop(struct rg_letters *letters)
{
    struct rg_letter *letter;

    while ((letter = take_letter(letters)))
        letter_destroy(letter);
}

/* Nothing works any more: says so once and lets all callers go. */
static void fail(struct rg_driver *driver, int status)
{
    if (driver->failed)
        return;
    driver->failed = status;
    rg_log(RG_LOG_ERROR, driver->rank, "the control thread gives up: %s",
           status == RG_ENOMEM ? "out of memory" : "a system call failed");
    pthread_cond_broadcast(&driver->changed);
}

static void post(struct rg_driver *driver, int to_coordinator,
                 const struct rg_input *input)
{
    if (rg_loop_post(&driver->letters, to_coordinator, input))
        fail(driver, RG_ENOMEM);
}

/* ---- timers ------------------------------------------------------------- */

static int alarm_index(const struct rg_driver *driver, int of_coordinator,
                       struct rg_timer timer)
{
    for (size_t i = 0; i < driver->nalarms; i++) {
        const struct rg_alarm *alarm = &driver->alarms[i];

        if (alarm->of_coordinator == of_coordinator &&
            alarm->timer.kind == timer.kind &&
            alarm->timer.group == timer.group)
            return (int)i;
    }
    return -1;
}

static void alarm_cancel(struct rg_driver *driver, int index)
{
    if (index >= 0)
        driver->alarms[index] = driver->alarms[--driver->nalarms];
}

static void alarm_set(struct rg_driver *driver, int of_coordinator,
                      struct rg_timer timer, uint64_t delay_ms)
{
    alarm_cancel(driver, alarm_index(driver, of_coordinator, timer));
    if (!delay_ms)
        return;
    if (driver->nalarms == driver->alarm_room) {
        size_t room = driver->alarm_room ? 2 * driver->alarm_room : 8;
        void *alarms = realloc(driver->alarms, room * sizeof(struct rg_alarm));

        if (!alarms) {
            fail(driver, RG_ENOMEM);
            return;
        }
        driver->alarms = alarms;
        driver->alarm_room = room;
    }
    driver->alarms[driver->nalarms++] =
        (struct rg_alarm){.of_coordinator = of_coordinator,
                          .timer = timer,
                          .deadline_ns = rg_clock_after_ms(delay_ms)};
}

/*
 * The thread was due at `due_ns` and has been kept from running until now. If
 * that was a stop of the process, which may have been one of the whole job, the
 * others have not been late meanwhile.
 */
static void excuse_gap(struct rg_driver *driver, uint64_t due_ns)
{
    const uint64_t latest_ns = due_ns + RG_GAP_MS * (uint64_t)NS_PER_MS;
    uint64_t now = rg_clock_ns();

    for (size_t i = 0; i < driver->nalarms && now > latest_ns; i++)
        driver->alarms[i].deadline_ns += now - latest_ns;
}

static void expire_alarms(struct rg_driver *driver)
{
    uint64_t now = rg_clock_ns();
    size_t i = 0;

    while (i < driver->nalarms) {
        struct rg_alarm alarm = driver->alarms[i];
        struct rg_input input = {.kind = RG_INPUT_TIMER, .timer = alarm.timer};

        if (alarm.deadline_ns > now) {
            i++;
            continue;
        }
        alarm_cancel(driver, (int)i);
        post(driver, alarm.of_coordinator, &input);
    }
}

/* ---- machines ----------------------------------------------------------- */

/*
 * Opens a link to a process we have not talked to, or not for a while. Hosts
 * that do not answer are tried again after a heartbeat only.
 */
static struct rg_link *reach(struct rg_driver *driver, int rank)
{
    struct rg_peer *peer = &driver->peers[rank];
    uint64_t now = rg_clock_ns();
    struct rg_link *link;
    int fd;

    if (peer->has_ended || peer->is_gone || driver->stop >= RG_STOP_CLOSING ||
        now < peer->retry_ns)
        return NULL;
    peer->retry_ns = now + driver->settings.heartbeat_ms * NS_PER_MS;
    if (rg_socket_start_tcp(driver->rank,
                            &driver->boot.addresses[rank].endpoint, &fd) ||
        rg_loop_adopt(driver, RG_LINK_CONTROL, fd, rank, &link))
        return NULL;
    return rg_loop_hello(driver, link) == RG_OK ? link : NULL;
}

static void send_message(struct rg_driver *driver, int rank,
                         struct rg_message *message)
{
    struct rg_link *link;

    if (rank == driver->rank) {
        struct rg_input input = {
            .kind = RG_INPUT_MESSAGE, .peer = rank, .message = message};

        post(driver, rg_message_for_coordinator(message->kind), &input);
        return;
    }
    if (rank < 0 || rank >= driver->size || driver->peers[rank].is_dropped)
        return;
    link = driver->peers[rank].control;
    if (!link)
        link = reach(driver, rank);
    /*
     * A link that has failed shows as readable: lost there, not here. A peer
     * that takes nothing any more is not written to for ever: what matters is
     * repeated.
     */
    if (link && !link->finishing && link->queued < QUEUE_MAX &&
        rg_link_send(link, message, -1) == RG_ENOMEM)
        fail(driver, RG_ENOMEM);
}

static void carry_out(struct rg_driver *driver, int of_coordinator)
{
    struct rg_effects *effects = &driver->effects;

    for (size_t i = 0; i < effects->count; i++) {
        struct rg_effect *effect = &effects->items[i];

        switch (effect->kind) {
        case RG_EFFECT_SEND:
            send_message(driver, effect->peer, effect->message);
            break;
        case RG_EFFECT_DELIVER:
            if (rg_driver_deliver(driver, effect->message))
                fail(driver, RG_ENOMEM);
            break;
        case RG_EFFECT_TIMER:
            alarm_set(driver, of_coordinator, effect->timer, effect->delay_ms);
            break;
        case RG_EFFECT_LOG:
            rg_log((enum rg_log_level)effect->level, driver->rank, "%s",
                   effect->text);
            break;
        case RG_EFFECT_NONE:
            break;
        }
    }
    if (effects->rc)
        fail(driver, effects->rc);
    rg_effects_clear(effects);
}

static void step_agent(struct rg_driver *driver, const struct rg_input *input)
{
    rg_agent_step(driver->agent, input, &driver->effects);
    /* The commit floor may have risen: see rg_driver_wait_committed(). */
    if (input->kind == RG_INPUT_MESSAGE && input->message->kind == RG_MSG_BEAT)
        pthread_cond_broadcast(&driver->changed);
}

static void run_machines(struct rg_driver *driver)
{
    struct rg_letter *letter;

    while ((letter = take_letter(&driver->letters))) {
        if (!letter->to_coordinator)
            step_agent(driver, &letter->input);
        else
            rg_coordinator_step(driver->coordinator, &letter->input,
                                &driver->effects);
        carry_out(driver, letter->to_coordinator);
        letter_destroy(letter);
    }
}

static void take_requests(struct rg_driver *driver)
{
    struct rg_letter *letter;

    while ((letter = take_letter(&driver->requests))) {
        rg_driver_asked(driver, letter->input.message);
        post(driver, 0, &letter->input);
        letter_destroy(letter);
        run_machines(driver);
    }
}

/* ---- links -------------------------------------------------------------- */

static int watch(struct rg_driver *driver, int fd, uint32_t events, void *what)
{
    struct epoll_event event = {.events = events, .data.ptr = what};

    return epoll_ctl(driver->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? RG_ESYSTEM
                                                                  : RG_OK;
}

/*
 * Closes a watched descriptor. By itself the system would go on reporting it
 * until every copy is closed: of a pulse all others of this host have one, of
 * any socket a child of the program may.
 */
static void unwatch(struct rg_driver *driver, int *fd)
{
    if (*fd < 0)
        return;
    epoll_ctl(driver->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
    close(*fd);
    *fd = -1;
}

/* Whether there is something to read, or the end. */
static int is_readable(int fd)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};

    return fd >= 0 && poll(&poller, 1, 0) > 0;
}

/* From the first lifeline on the system says when the process has exited. */
static void watch_process(struct rg_driver *driver, const struct rg_link *link)
{
    struct rg_peer *peer = &driver->peers[link->peer];

    if (link->kind != RG_LINK_LIFELINE || peer->pid_fd >= 0)
        return;
    peer->pid_fd = rg_socket_watch_peer(driver->rank, link->fd);
    if (peer->pid_fd >= 0 &&
        watch(driver, peer->pid_fd, EPOLLIN, peer) != RG_OK)
        unwatch(driver, &peer->pid_fd);
}

static struct rg_link **peer_link(struct rg_driver *driver,
                                  const struct rg_link *link)
{
    struct rg_peer *peer = &driver->peers[link->peer];

    return link->kind == RG_LINK_CONTROL ? &peer->control : &peer->lifeline;
}

int rg_loop_adopt(struct rg_driver *driver, enum rg_link_kind kind, int fd,
                  int peer, struct rg_link **link_out)
{
    struct rg_link *link = rg_link_create(kind, fd, peer);

    if (!link)
        return RG_ENOMEM;
    /* Edge-triggered: links are always read dry and flushed when writable. */
    if (watch(driver, fd, EPOLLIN | EPOLLOUT | EPOLLET, link)) {
        rg_log(RG_LOG_ERROR, driver->rank, "cannot watch a link: %m");
        rg_link_destroy(link);
        return RG_ESYSTEM;
    }
    link->next = driver->links;
    driver->links = link;
    if (peer >= 0) {
        link->process = driver->boot.addresses[peer].process;
        *peer_link(driver, link) = link;
        watch_process(driver, link);
    }
    *link_out = link;
    return RG_OK;
}

static int show_pulse(struct rg_driver *driver, struct rg_link *link)
{
    struct rg_message *pulse;
    int rc;

    if (!driver->pulse)
        return RG_OK;
    pulse = rg_message_create(RG_MSG_PULSE, 0);
    rc = pulse ? rg_link_send(link, pulse, rg_pulse_fd(driver->pulse))
               : RG_ENOMEM;
    rg_message_unref(pulse);
    if (rc == RG_ESYSTEM)
        rg_log(RG_LOG_ERROR, driver->rank, "cannot show the pulse: %m");
    return rc;
}

/* What has been offered to all before this one came. */
static int offer_again(struct rg_driver *driver, struct rg_link *link)
{
    int fd = driver->peers[driver->rank].offered_fd;
    struct rg_message *offer;
    int rc;

    if (fd < 0)
        return RG_OK;
    offer = rg_message_create(RG_MSG_OFFER, 0);
    rc = offer ? rg_link_send(link, offer, fd) : RG_ENOMEM;
    rg_message_unref(offer);
    return rc == RG_ENOMEM ? rc : RG_OK;
}

int rg_loop_hello(struct rg_driver *driver, struct rg_link *link)
{
    struct rg_message *hello = rg_message_create(RG_MSG_HELLO, 0);
    int rc = RG_ENOMEM;

    if (hello && !rg_message_set_data(hello, driver->boot.secret,
                                      sizeof(driver->boot.secret))) {
        hello->world_rank = driver->rank;
        hello->incarnation = driver->process;
        rc = rg_link_send(link, hello, -1);
    }
    rg_message_unref(hello);
    if (!rc && link->kind == RG_LINK_LIFELINE)
        rc = show_pulse(driver, link);
    if (!rc && link->kind == RG_LINK_LIFELINE)
        rc = offer_again(driver, link);
    return rc;
}

void rg_loop_lifeline(struct rg_driver *driver, int rank)
{
    struct rg_link *link;
    int fd;

    if (driver->peers[rank].lifeline || driver->stop >= RG_STOP_CLOSING)
        return;
    fd = rg_socket_try_unix(&driver->boot.addresses[rank].endpoint);
    if (fd >= 0 && !rg_loop_adopt(driver, RG_LINK_LIFELINE, fd, rank, &link) &&
        rg_loop_hello(driver, link) == RG_ENOMEM)
        fail(driver, RG_ENOMEM);
}

/* ---- the end of others -------------------------------------------------- */

static void tell_end_of(struct rg_driver *driver, int rank, uint32_t process,
                        enum rg_input_kind kind)
{
    const struct rg_input input = {
        .kind = kind, .peer = rank, .process = process};

    if (driver->stop >= RG_STOP_CLOSING)
        return;
    post(driver, 0, &input);
    post(driver, 1, &input);
}

static void tell_end(struct rg_driver *driver, int rank,
                     enum rg_input_kind kind)
{
    struct rg_peer *peer = &driver->peers[rank];

    if (kind == RG_INPUT_GONE && peer->is_gone)
        return;
    peer->is_gone |= driver->stop < RG_STOP_CLOSING;
    tell_end_of(driver, rank, peer->process, kind);
}

/* Its memory is out of its reach. */
static void peer_exited(struct rg_driver *driver, struct rg_peer *peer)
{
    unwatch(driver, &peer->pid_fd);
    if (!peer->has_ended)
        tell_end(driver, (int)(peer - driver->peers), RG_INPUT_EXITED);
}

/* Another link of the same kind to the same process, or null. */
static struct rg_link *link_instead(const struct rg_driver *driver,
                                    const struct rg_link *lost)
{
    struct rg_link *link = driver->links;

    while (link && (link == lost || link->fd < 0 || link->kind != lost->kind ||
                    link->peer != lost->peer || link->process != lost->process))
        link = link->next;
    return link;
}

/* Closes the socket; the link itself is freed by reap(). */
static void link_close(struct rg_driver *driver, struct rg_link *link)
{
    unwatch(driver, &link->fd);
    if (link->peer >= 0 && *peer_link(driver, link) == link)
        *peer_link(driver, link) = link_instead(driver, link);
    pthread_cond_broadcast(&driver->changed);
}

/*
 * End of file or a broken stream. The last lifeline that ends without a BYE is
 * the death of the process behind it, and so is a host that answers that nobody
 * listens there any more. A control link may end for many reasons: a new one
 * is made when there is something to say. A link to an earlier process of the
 * rank, which may be tried until long after, tells nothing of the one that is
 * there now.
 */
static void link_lost(struct rg_driver *driver, struct rg_link *link, int rc)
{
    int rank = link->peer;
    int died = !link->said_bye && ((link->kind == RG_LINK_LIFELINE &&
                                    rank >= 0 && !link_instead(driver, link)) ||
                                   link->refused);

    if (rc == RG_EPROTO && rank < 0)
        rg_log(RG_LOG_WARN, driver->rank,
               "closed a connection that is not of this job");
    else if (rc == RG_EPROTO)
        rg_log(RG_LOG_ERROR, driver->rank,
               "closed the link to rank %d: malformed message", rank);
    link_close(driver, link);
    if (rank < 0)
        return;
    if (link->process != driver->peers[rank].process) {
        if (died && rc != RG_EPROTO)
            tell_end_of(driver, rank, link->process, RG_INPUT_GONE);
        return;
    }
    driver->peers[rank].has_ended |= link->said_bye;
    if (died && !driver->peers[rank].has_ended && rc != RG_EPROTO) {
        tell_end(driver, rank, RG_INPUT_GONE);
        /* Without a process of its own there is nothing left to exit. */
        if (driver->peers[rank].pid_fd < 0 && link->kind == RG_LINK_LIFELINE)
            tell_end(driver, rank, RG_INPUT_EXITED);
    }
}

/* ---- strangers ---------------------------------------------------------- */

/* No early exit: the time does not tell how much of a guess was right. */
static int secret_equal(const unsigned char *a, const unsigned char *b)
{
    unsigned char difference = 0;

    for (int i = 0; i < RG_SECRET_BYTES; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

/*
 * A rank that has been started anew: its last process has ended, which on
 * another host nothing may tell before, for what is said to the rank now goes
 * to the new one. What else was known of it is void.
 */
void rg_loop_meet(struct rg_driver *driver, int rank, uint32_t process)
{
    struct rg_peer *peer = &driver->peers[rank];

    if (process <= peer->process)
        return;
    if (!peer->has_ended)
        tell_end(driver, rank, RG_INPUT_GONE);
    unwatch(driver, &peer->pid_fd);
    unwatch(driver, &peer->pulse_fd);
    if (peer->offered_fd >= 0)
        close(peer->offered_fd);
    *peer = (struct rg_peer){
        .process = process, .offered_fd = -1, .pid_fd = -1, .pulse_fd = -1};
}

/* The first message of an accepted connection: who is it? */
static int prove(struct rg_driver *driver, struct rg_link *link,
                 const struct rg_message *hello)
{
    struct rg_peer *peer;

    if (hello->kind != RG_MSG_HELLO || hello->bytes != RG_SECRET_BYTES ||
        !secret_equal(hello->data, driver->boot.secret) ||
        hello->world_rank < 0 || hello->world_rank >= driver->size ||
        hello->world_rank == driver->rank)
        return RG_EPROTO;
    peer = &driver->peers[hello->world_rank];
    rg_loop_meet(driver, hello->world_rank, hello->incarnation);
    if (hello->incarnation < peer->process)
        return RG_EPROTO;
    link->peer = hello->world_rank;
    link->process = hello->incarnation;
    /* Others than the first coordinator wait for lifelines only. */
    if (driver->missing_links &&
        (link->kind == RG_LINK_LIFELINE ||
         (driver->rank == RG_FIRST_COORDINATOR && !peer->control)))
        driver->missing_links--;
    if (!*peer_link(driver, link))
        *peer_link(driver, link) = link;
    watch_process(driver, link);
    pthread_cond_broadcast(&driver->changed);
    if (link->kind != RG_LINK_LIFELINE)
        return RG_OK;
    return show_pulse(driver, link) == RG_ENOMEM ? RG_ENOMEM
                                                 : offer_again(driver, link);
}

/* Keeps the descriptor; leaves in *fd what it replaces, or -1. */
static void take_offer(struct rg_driver *driver, int rank, int *fd)
{
    struct rg_peer *peer = &driver->peers[rank];
    int before = peer->offered_fd;

    peer->offered_fd = *fd;
    *fd = before;
    pthread_cond_broadcast(&driver->changed);
}

/* Keeps the descriptor, unless it has one. */
static void take_pulse(struct rg_driver *driver, int rank, int *fd)
{
    struct rg_peer *peer = &driver->peers[rank];

    if (peer->pulse_fd >= 0 || watch(driver, *fd, EPOLLIN, &peer->pulse_fd))
        return;
    peer->pulse_fd = *fd;
    *fd = -1;
}

/* RG_EPROTO: the peer may not say this here. */
static int take_message(struct rg_driver *driver, struct rg_link *link,
                        struct rg_message *message)
{
    struct rg_input input = {
        .kind = RG_INPUT_MESSAGE, .peer = link->peer, .message = message};
    int to_coordinator = rg_message_for_coordinator(message->kind);

    if (message->kind == RG_MSG_BYE)
        link->said_bye = 1;
    else if (message->kind < RG_MSG_JOIN || link->kind != RG_LINK_CONTROL ||
             rg_message_is_local(message->kind))
        return RG_EPROTO;
    else
        post(driver, to_coordinator, &input);
    return RG_OK;
}

static void link_ready(struct rg_driver *driver, struct rg_link *link)
{
    struct rg_message *message;
    int fd = -1;
    int rc;

    if (link->fd < 0)
        return;
    rg_link_flush(link);
    while ((rc = rg_link_receive(link, &message, &fd)) == RG_OK) {
        if (link->peer < 0)
            rc = prove(driver, link, message);
        else if (rg_link_brings_fd(message->kind) && fd < 0)
            rg_log(RG_LOG_ERROR, driver->rank,
                   "a descriptor of rank %d is lost: too many are open",
                   link->peer);
        else if (message->kind == RG_MSG_OFFER)
            take_offer(driver, link->peer, &fd);
        else if (message->kind == RG_MSG_PULSE)
            take_pulse(driver, link->peer, &fd);
        else
            rc = take_message(driver, link, message);
        if (fd >= 0)
            close(fd);
        fd = -1;
        rg_message_unref(message);
        if (rc)
            break;
    }
    if (rc == RG_ENOMEM)
        fail(driver, rc);
    if (rc != RG_EPENDING)
        link_lost(driver, link, rc);
}

/*
 * The pulse has ended: the process is dying, unless it has said BYE, which
 * then is on its lifeline already.
 */
static void pulse_ended(struct rg_driver *driver, struct rg_peer *peer)
{
    if (peer->pulse_fd < 0)
        return; /* of a process before, seen in the same turn */
    unwatch(driver, &peer->pulse_fd);
    if (peer->lifeline)
        link_ready(driver, peer->lifeline);
    if (!peer->has_ended && !(peer->lifeline && peer->lifeline->said_bye))
        tell_end(driver, (int)(peer - driver->peers), RG_INPUT_GONE);
}

static void accept_all(struct rg_driver *driver, int listen_fd,
                       enum rg_link_kind kind)
{
    struct rg_link *link;
    int fd;

    while ((fd = rg_socket_accept(listen_fd)) >= 0) {
        if (rg_loop_adopt(driver, kind, fd, -1, &link))
            return;
        link->deadline_ns = rg_clock_after_ms(driver->settings.bootstrap_ms);
    }
}

/* Closes connections that never proved themselves; frees closed links. */
static void reap(struct rg_driver *driver)
{
    struct rg_link **at = &driver->links;
    uint64_t now = rg_clock_ns();

    while (*at) {
        struct rg_link *link = *at;

        if (link->fd >= 0 && link->peer < 0 && link->deadline_ns <= now)
            link_lost(driver, link, RG_EPROTO);
        if (link->fd < 0) {
            *at = link->next;
            rg_link_destroy(link);
        } else {
            at = &link->next;
        }
    }
}

/* ---- the thread --------------------------------------------------------- */

/* Milliseconds until something is due, rounded up; -1: nothing is. */
static int wait_ms(const struct rg_driver *driver)
{
    uint64_t now = rg_clock_ns();
    uint64_t due = driver->stop ? driver->stop_ns : UINT64_MAX;

    for (size_t i = 0; i < driver->nalarms; i++)
        if (driver->alarms[i].deadline_ns < due)
            due = driver->alarms[i].deadline_ns;
    for (const struct rg_link *link = driver->links; link; link = link->next)
        if (link->peer < 0 && link->deadline_ns < due)
            due = link->deadline_ns;
    if (due == UINT64_MAX)
        return -1;
    return due <= now ? 0 : (int)((due - now + NS_PER_MS - 1) / NS_PER_MS);
}

/* The peer that this points to or into, or null. */
static struct rg_peer *peer_of(const struct rg_driver *driver, const void *what)
{
    const uintptr_t at = (uintptr_t)what, begin = (uintptr_t)driver->peers;
    const uintptr_t end = (uintptr_t)(driver->peers + driver->size);

    return at >= begin && at < end
               ? &driver->peers[(at - begin) / sizeof(*driver->peers)]
               : NULL;
}

/* What epoll has seen may have been of the rank's last process. */
static void peer_ready(struct rg_driver *driver, struct rg_peer *peer,
                       const void *what)
{
    if (what == &peer->pulse_fd && is_readable(peer->pulse_fd))
        pulse_ended(driver, peer);
    else if (what == peer && is_readable(peer->pid_fd))
        peer_exited(driver, peer);
}

static void handle(struct rg_driver *driver, void *what)
{
    struct rg_peer *peer;
    uint64_t count;

    if (what == &driver->boot.tcp_fd)
        accept_all(driver, driver->boot.tcp_fd, RG_LINK_CONTROL);
    else if (what == &driver->boot.unix_fd)
        accept_all(driver, driver->boot.unix_fd, RG_LINK_LIFELINE);
    else if (what == &driver->wake_fd)
        while (read(driver->wake_fd, &count, sizeof(count)) > 0)
            ;
    else if ((peer = peer_of(driver, what)))
        peer_ready(driver, peer, what);
    else
        link_ready(driver, what);
}

static void leave_all(struct rg_driver *driver)
{
    for (struct rg_box *box = driver->boxes; box; box = box->next) {
        struct rg_input input = {
            .kind = RG_INPUT_REQUEST,
            .message = rg_message_create(RG_MSG_LEAVE, box->group)};

        if (input.message)
            post(driver, 0, &input);
        rg_message_unref(input.message);
    }
    run_machines(driver);
}

/*
 * The sockets stay open until the peers have closed theirs: closing with
 * unread input would reset the stream and lose what they have not read yet.
 */
static void say_bye(struct rg_driver *driver)
{
    struct rg_message *bye = rg_message_create(RG_MSG_BYE, 0);

    for (struct rg_link *link = driver->links; link; link = link->next) {
        if (link->fd < 0)
            continue;
        if (link->peer < 0) {
            link_close(driver, link);
            continue;
        }
        if (bye)
            rg_link_send(link, bye, -1);
        rg_link_finish(link);
    }
    rg_message_unref(bye);
}

static void advance_stop(struct rg_driver *driver)
{
    uint64_t now = rg_clock_ns();

    if (driver->stop == RG_STOP_ASKED) {
        leave_all(driver);
        driver->stop = RG_STOP_SERVING;
        driver->stop_ns = now + driver->settings.deadline_ms * NS_PER_MS;
    }
    if (driver->stop == RG_STOP_SERVING && now >= driver->stop_ns) {
        rg_coordinator_retire(driver->coordinator, &driver->effects);
        carry_out(driver, 1);
    }
    if (driver->stop == RG_STOP_SERVING &&
        (now >= driver->stop_ns ||
         rg_coordinator_is_idle(driver->coordinator))) {
        say_bye(driver);
        driver->stop = RG_STOP_CLOSING;
        driver->stop_ns = now + driver->settings.window_ms * NS_PER_MS;
    }
}

static int is_over(const struct rg_driver *driver)
{
    return driver->failed ||
           (driver->stop == RG_STOP_CLOSING &&
            (!driver->links || rg_clock_ns() >= driver->stop_ns));
}

static int watch_all(struct rg_driver *driver)
{
    int rc = watch(driver, driver->wake_fd, EPOLLIN, &driver->wake_fd);

    if (!rc)
        rc = watch(driver, driver->boot.tcp_fd, EPOLLIN, &driver->boot.tcp_fd);
    if (!rc)
        rc =
            watch(driver, driver->boot.unix_fd, EPOLLIN, &driver->boot.unix_fd);
    return rc;
}

/* One turn, under the lock: what epoll has seen, then what is due. */
static void turn(struct rg_driver *driver, const struct epoll_event *events,
                 int count)
{
    for (int i = 0; i < count; i++)
        handle(driver, events[i].data.ptr);
    run_machines(driver);
    take_requests(driver);
    expire_alarms(driver);
    run_machines(driver);
    advance_stop(driver);
    reap(driver);
}

void *rg_loop_main(void *arg)
{
    struct rg_driver *driver = arg;
    struct epoll_event events[EVENTS_MAX];

    rg_thread_name("driver");
    pthread_mutex_lock(&driver->lock);
    if (watch_all(driver))
        fail(driver, RG_ESYSTEM);
    while (!is_over(driver)) {
        int timeout = wait_ms(driver);
        uint64_t due_ns =
            rg_clock_after_ms((uint64_t)(timeout > 0 ? timeout : 0));
        int count;

        pthread_mutex_unlock(&driver->lock);
        count = epoll_wait(driver->epoll_fd, events, EVENTS_MAX, timeout);
        pthread_mutex_lock(&driver->lock);
        excuse_gap(driver, due_ns);
        if (driver->is_abandoned)
            break;
        if (count < 0 && errno != EINTR)
            fail(driver, RG_ESYSTEM);
        turn(driver, events, count);
    }
    pthread_mutex_unlock(&driver->lock);
    return NULL;
}
