/* The driver's thread: links, timers, and the machines between them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/control/driver_socket.h"
#include "runtime/control/driver_state.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

enum { EVENTS_MAX = 64, NS_PER_MS = 1000000 };

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
                          .deadline_ns = rg_clock_ns() + delay_ms * NS_PER_MS};
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

static void send_message(struct rg_driver *driver, int peer,
                         struct rg_message *message)
{
    struct rg_link *link = driver->peers[peer].control;

    if (peer == driver->rank) {
        struct rg_input input = {
            .kind = RG_INPUT_MESSAGE, .peer = peer, .message = message};

        post(driver, rg_message_for_coordinator(message->kind), &input);
    } else if (link && !link->finishing) {
        /* A link that has failed shows as readable: lost there, not here. */
        if (rg_link_send(link, message, -1) == RG_ENOMEM)
            fail(driver, RG_ENOMEM);
    }
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

static void run_machines(struct rg_driver *driver)
{
    struct rg_letter *letter;

    while ((letter = take_letter(&driver->letters))) {
        if (!letter->to_coordinator)
            rg_agent_step(driver->agent, &letter->input, &driver->effects);
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
    if (peer >= 0)
        *peer_link(driver, link) = link;
    *link_out = link;
    return RG_OK;
}

static void tell_gone(struct rg_driver *driver, int rank)
{
    struct rg_input input = {.kind = RG_INPUT_GONE, .peer = rank, .process = 1};

    if (driver->peers[rank].gone)
        return;
    driver->peers[rank].gone = 1;
    post(driver, 0, &input);
    post(driver, 1, &input);
}

/* Closes the socket; the link itself is freed by reap(). */
static void link_close(struct rg_driver *driver, struct rg_link *link)
{
    close(link->fd);
    link->fd = -1;
    if (link->peer >= 0)
        *peer_link(driver, link) = NULL;
    pthread_cond_broadcast(&driver->changed);
}

/*
 * End of file or a broken stream. Without a BYE the process behind it has
 * died. With one it went in order.
 */
static void link_lost(struct rg_driver *driver, struct rg_link *link, int rc)
{
    int peer = link->peer;
    if (rc == RG_EPROTO && peer < 0)
        rg_log(RG_LOG_WARN, driver->rank,
               "closed a connection that is not of this job");
    else if (rc == RG_EPROTO)
        rg_log(RG_LOG_ERROR, driver->rank,
               "closed the link to rank %d: malformed message", peer);
    link_close(driver, link);
    if (peer >= 0 && driver->stop < RG_STOP_CLOSING && !link->said_bye)
        tell_gone(driver, peer);
}

/* No early exit: the time does not tell how much of a guess was right. */
static int secret_equal(const unsigned char *a, const unsigned char *b)
{
    unsigned char difference = 0;

    for (int i = 0; i < RG_SECRET_BYTES; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}

/* The first message of an accepted connection: who is it? */
static int prove(struct rg_driver *driver, struct rg_link *link,
                 const struct rg_message *hello)
{
    if (hello->kind != RG_MSG_HELLO || hello->bytes != RG_SECRET_BYTES ||
        !secret_equal(hello->data, driver->boot.secret) ||
        hello->world_rank < 0 || hello->world_rank >= driver->size ||
        hello->world_rank == driver->rank)
        return RG_EPROTO;
    link->peer = hello->world_rank;
    if (*peer_link(driver, link)) {
        link->peer = -1;
        return RG_EPROTO;
    }
    *peer_link(driver, link) = link;
    driver->missing_links--;
    pthread_cond_broadcast(&driver->changed);
    return RG_OK;
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
        else if (message->kind == RG_MSG_OFFER)
            take_offer(driver, link->peer, &fd);
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

static void accept_all(struct rg_driver *driver, int listen_fd,
                       enum rg_link_kind kind)
{
    struct rg_link *link;
    int fd;

    while ((fd = rg_socket_accept(listen_fd)) >= 0) {
        if (rg_loop_adopt(driver, kind, fd, -1, &link))
            return;
        link->deadline_ns =
            rg_clock_ns() + driver->settings.bootstrap_ms * NS_PER_MS;
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

static void handle(struct rg_driver *driver, void *what)
{
    uint64_t count;

    if (what == &driver->boot.tcp_fd)
        accept_all(driver, driver->boot.tcp_fd, RG_LINK_CONTROL);
    else if (what == &driver->boot.unix_fd)
        accept_all(driver, driver->boot.unix_fd, RG_LINK_LIFELINE);
    else if (what == &driver->wake_fd)
        while (read(driver->wake_fd, &count, sizeof(count)) > 0)
            ;
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

    pthread_mutex_lock(&driver->lock);
    if (watch_all(driver))
        fail(driver, RG_ESYSTEM);
    while (!is_over(driver)) {
        int timeout = wait_ms(driver);
        int count;

        pthread_mutex_unlock(&driver->lock);
        count = epoll_wait(driver->epoll_fd, events, EVENTS_MAX, timeout);
        pthread_mutex_lock(&driver->lock);
        if (count < 0 && errno != EINTR)
            fail(driver, RG_ESYSTEM);
        turn(driver, events, count);
    }
    pthread_mutex_unlock(&driver->lock);
    return NULL;
}
