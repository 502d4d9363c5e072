#include "harness/hub.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/supervision.h"
#include "harness/wait.h"
#include "runtime/core/address.h"

struct seat {
    struct rg_wire wire;
    int absent;   /* takes part in no exchange any more */
    int asked;    /* waits for an exchange to complete */
    uint32_t ask; /* its id */
    struct rg_bytes share;
    int idle;              /* no worker, and none to come */
    uint32_t restarts;     /* handed on to it */
    struct rg_bytes words; /* its fate and records */
};

struct rg_hub {
    int size;
    int listener;
    uint64_t key;
    int tickets; /* so far, of this scenario */
    int done;    /* the scenario is over */
    struct seat *seats;
};

/* ---- connections -------------------------------------------------------- */

/* What to bind or to connect to; the caller frees it. */
static int look_up(const char *host, uint16_t port, struct addrinfo **list_out)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    char text[8];

    snprintf(text, sizeof text, "%u", (unsigned)port);
    return getaddrinfo(host, text, &hints, list_out) ? RG_ESYSTEM : RG_OK;
}

/* What a socket is bound to. */
union name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Listens at place->host, at any port, which is stored. */
static int listen_there(struct rg_hub_place *place, int backlog)
{
    union name name;
    socklen_t length = sizeof name;
    struct addrinfo *at;
    int fd;

    if (look_up(place->host, 0, &at))
        return -1;
    fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (bind(fd, at->ai_addr, at->ai_addrlen) != 0 ||
                    listen(fd, backlog) != 0 ||
                    getsockname(fd, &name.any, &length) != 0)) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(at);
    if (fd >= 0)
        place->port = ntohs(name.any.sa_family == AF_INET ? name.v4.sin_port
                                                          : name.v6.sin6_port);
    return fd;
}

/* A job on one host is for that host alone. */
static int listen_somewhere(const struct rg_job *job,
                            struct rg_hub_place *place)
{
    if (job->hosts == 1)
        snprintf(place->host, sizeof place->host, "127.0.0.1");
    else if (rg_address_own(job->rank, place->host, sizeof place->host))
        return -1;
    return listen_there(place, job->size);
}

static int create(const struct rg_job *job, struct rg_hub **hub_out,
                  struct rg_hub_place *place)
{
    struct rg_hub *hub = calloc(1, sizeof *hub);

    if (!hub)
        return RG_ENOMEM;
    hub->size = job->size;
    hub->listener = -1;
    hub->seats = calloc((size_t)job->size, sizeof *hub->seats);
    if (!hub->seats) {
        free(hub);
        return RG_ENOMEM;
    }
    for (int r = 0; r < hub->size; r++)
        rg_wire_init(&hub->seats[r].wire, -1);
    hub->listener = listen_somewhere(job, place);
    if (hub->listener < 0 ||
        getrandom(&hub->key, sizeof hub->key, 0) != sizeof hub->key) {
        rg_hub_destroy(hub);
        return RG_ESYSTEM;
    }
    place->key = hub->key;
    *hub_out = hub;
    return RG_OK;
}

int rg_hub_create(const struct rg_job *job, struct rg_hub **hub_out,
                  struct rg_hub_place *place_out)
{
    *place_out = (struct rg_hub_place){0};
    place_out->status = create(job, hub_out, place_out);
    return place_out->status;
}

void rg_hub_destroy(struct rg_hub *hub)
{
    if (!hub)
        return;
    for (int r = 0; r < hub->size; r++) {
        rg_wire_fini(&hub->seats[r].wire);
        rg_bytes_fini(&hub->seats[r].share);
        rg_bytes_fini(&hub->seats[r].words);
    }
    if (hub->listener >= 0)
        close(hub->listener);
    free(hub->seats);
    free(hub);
}

static void send_at_once(int fd)
{
    const int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static int connect_to(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
        close(fd);
        fd = -1;
    }
    if (fd >= 0)
        send_at_once(fd);
    return fd;
}

int rg_hub_connect(const struct rg_hub_place *place, const struct rg_job *job,
                   struct rg_wire *wire_out)
{
    const struct rg_frame hello = {
        .kind = RG_FRAME_HELLO, .value = job->rank, .bytes = sizeof place->key};
    struct addrinfo *list;
    int fd = -1;

    rg_wire_init(wire_out, -1);
    if (look_up(place->host, place->port, &list))
        return RG_ESYSTEM;
    for (struct addrinfo *at = list; at && fd < 0; at = at->ai_next)
        fd = connect_to(at);
    freeaddrinfo(list);
    if (fd < 0)
        return RG_ESYSTEM;
    rg_wire_init(wire_out, fd);
    if (rg_wire_send(wire_out, &hello, &place->key) == RG_OK)
        return RG_OK;
    rg_wire_fini(wire_out);
    return RG_ESYSTEM;
}

/* Reads who it is; a stranger, or one that says nothing, is sent away. */
static int seat_one(struct rg_hub *hub, int fd, uint64_t deadline_ns)
{
    struct rg_wire wire;
    struct rg_frame head;
    const void *body;
    int status;

    rg_wire_init(&wire, fd);
    while ((status = rg_wire_receive(&wire, &head, &body)) == RG_EPENDING)
        if (rg_wire_wait(&wire, POLLIN, deadline_ns) != RG_OK)
            break;
    if (status != RG_OK || head.kind != RG_FRAME_HELLO ||
        head.bytes != sizeof hub->key ||
        memcmp(body, &hub->key, sizeof hub->key) != 0 || head.value < 0 ||
        head.value >= hub->size || hub->seats[head.value].wire.fd >= 0) {
        rg_wire_fini(&wire);
        return 0;
    }
    send_at_once(fd);
    hub->seats[head.value].wire = wire;
    return 1;
}

int rg_hub_accept(struct rg_hub *hub, uint64_t deadline_ns)
{
    int missing = hub->size;

    while (missing > 0) {
        struct pollfd entry = {.fd = hub->listener, .events = POLLIN};
        int fd;

        if (rg_now_ns() >= deadline_ns)
            return RG_ETIMEDOUT;
        if (poll(&entry, 1, rg_ms_until(deadline_ns)) <= 0)
            continue;
        fd = accept4(hub->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            missing -= seat_one(hub, fd, deadline_ns);
    }
    close(hub->listener);
    hub->listener = -1;
    return RG_OK;
}

/* ---- a scenario --------------------------------------------------------- */

void rg_hub_begin(struct rg_hub *hub)
{
    for (int r = 0; r < hub->size; r++) {
        struct seat *seat = &hub->seats[r];

        seat->absent = 0;
        seat->asked = 0;
        seat->idle = 0;
        seat->restarts = 0;
    }
    hub->tickets = 0;
    hub->done = 0;
}

struct rg_wire *rg_hub_wire(struct rg_hub *hub, int rank)
{
    return &hub->seats[rank].wire;
}

/* A connection that fails here is found broken when it is next read from. */
static void tell(struct seat *seat, enum rg_frame_kind kind, uint32_t id,
                 int value, const struct rg_bytes *body)
{
    const struct rg_frame head = {.bytes = body ? (uint32_t)body->used : 0,
                                  .kind = kind,
                                  .id = id,
                                  .value = value};

    rg_wire_send(&seat->wire, &head, body ? body->data : NULL);
}

/* Ends the scenario for all, once. */
static void finish(struct rg_hub *hub, int status)
{
    if (hub->done)
        return;
    hub->done = 1;
    for (int to = 0; to < hub->size; to++) {
        for (int r = 0; status == RG_OK && r < hub->size; r++)
            tell(&hub->seats[to], RG_FRAME_RESULT, 0, r, &hub->seats[r].words);
        tell(&hub->seats[to], RG_FRAME_DONE, 0, status, NULL);
    }
}

static void answer_all(struct rg_hub *hub, int status,
                       const struct rg_bytes *body)
{
    for (int r = 0; r < hub->size; r++) {
        struct seat *seat = &hub->seats[r];

        if (seat->asked)
            tell(seat, RG_FRAME_GATHERED, seat->ask, status, body);
        seat->asked = 0;
    }
}

/* RG_EPENDING: not all are in. With one absent no exchange can complete. */
static int gathered(const struct rg_hub *hub)
{
    const struct seat *first = &hub->seats[0];
    int status = RG_OK;

    for (int r = 0; r < hub->size; r++)
        if (hub->seats[r].absent)
            return RG_EFAILED;
    for (int r = 0; r < hub->size; r++) {
        if (!hub->seats[r].asked)
            return RG_EPENDING;
        if (hub->seats[r].share.used != first->share.used)
            status = RG_EINVAL;
    }
    return status;
}

static void gather(struct rg_hub *hub)
{
    struct rg_bytes all = {0};
    int status = gathered(hub);

    if (status == RG_EPENDING)
        return;
    for (int r = 0; status == RG_OK && r < hub->size; r++)
        status = rg_bytes_append(&all, hub->seats[r].share.data,
                                 hub->seats[r].share.used);
    answer_all(hub, status, status == RG_OK ? &all : NULL);
    rg_bytes_fini(&all);
}

static void hand_on_restart(struct rg_hub *hub, const struct rg_frame *head,
                            const void *body)
{
    struct rg_injection injection;
    struct seat *to;

    if (head->bytes != sizeof injection)
        return;
    memcpy(&injection, body, sizeof injection);
    if (injection.rank < 0 || injection.rank >= hub->size)
        return;
    to = &hub->seats[injection.rank];
    to->restarts++;
    to->idle = 0;
    rg_wire_send(&to->wire, head, body);
}

static void hand_on_ticket(struct rg_hub *hub, const struct rg_frame *head,
                           const void *body)
{
    struct rg_frame numbered = *head;

    numbered.value = ++hub->tickets;
    for (int r = 0; r < hub->size; r++)
        rg_wire_send(&hub->seats[r].wire, &numbered, body);
}

/* It counts only when the sender knew of all restarts handed on to it. */
static void take_idle(struct rg_hub *hub, struct seat *seat,
                      const struct rg_frame *head, const void *body)
{
    if (head->id != seat->restarts)
        return;
    if (rg_bytes_set(&seat->words, body, head->bytes) != RG_OK) {
        finish(hub, RG_ENOMEM);
        return;
    }
    seat->idle = 1;
    for (int r = 0; r < hub->size; r++)
        if (!hub->seats[r].idle)
            return;
    finish(hub, RG_OK);
}

static void take_absent(struct rg_hub *hub, struct seat *seat)
{
    seat->absent = 1;
    for (int to = 0; to < hub->size; to++)
        tell(&hub->seats[to], RG_FRAME_ABSENT, 0, (int)(seat - hub->seats),
             NULL);
    gather(hub);
}

static void handle(struct rg_hub *hub, struct seat *seat,
                   const struct rg_frame *head, const void *body)
{
    switch (head->kind) {
    case RG_FRAME_ALLGATHER:
        if (rg_bytes_set(&seat->share, body, head->bytes) != RG_OK)
            finish(hub, RG_ENOMEM);
        seat->asked = 1;
        seat->ask = head->id;
        gather(hub);
        break;
    case RG_FRAME_ABSENT:
        take_absent(hub, seat);
        break;
    case RG_FRAME_TICKET:
        hand_on_ticket(hub, head, body);
        break;
    case RG_FRAME_RESTART:
        hand_on_restart(hub, head, body);
        break;
    case RG_FRAME_IDLE:
        take_idle(hub, seat, head, body);
        break;
    default:
        finish(hub, RG_EPROTO);
    }
}

/* A supervisor that closed has failed: it would stay until the end. What one
 * sends behind the end of a scenario belongs to the next. */
void rg_hub_serve(struct rg_hub *hub, int rank)
{
    struct seat *seat = &hub->seats[rank];
    struct rg_frame head;
    const void *body;
    int status = RG_EPENDING;

    rg_wire_flush(&seat->wire);
    while (!hub->done &&
           (status = rg_wire_receive(&seat->wire, &head, &body)) == RG_OK)
        handle(hub, seat, &head, body);
    if (!hub->done && status != RG_EPENDING)
        finish(hub, status);
}

int rg_hub_is_quiet(struct rg_hub *hub)
{
    for (int r = 0; r < hub->size; r++)
        if (rg_wire_flush(&hub->seats[r].wire) == RG_EPENDING)
            return 0;
    return 1;
}
