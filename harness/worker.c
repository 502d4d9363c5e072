#include "harness/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/wait.h"
#include "harness/wire.h"

/*
 * A request that waits for its answer. Whichever waiting thread finds nobody
 * reading reads for all: answers come in any order.
 */
struct request {
    struct request *next;
    uint32_t id;
    int answered;
    int value;
    struct rg_bytes body;
};

struct rg_worker {
    struct rg_job job;
    int life;
    char host[64];
    struct rg_bytes scenario;

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t changed;
    struct rg_wire wire; /* received from by the reading thread alone */
    int reading;
    int status; /* why the connection can no longer be used */
    uint32_t last_id;
    struct request *requests;
};

/* ---- requests ----------------------------------------------------------- */

/* Sends all of it; the socket's other end always reads. */
static int send_locked(struct rg_worker *worker, enum rg_frame_kind kind,
                       uint32_t id, int value, const void *body, size_t bytes)
{
    const struct rg_frame head = {
        .bytes = (uint32_t)bytes, .kind = kind, .id = id, .value = value};
    int status = worker->status;

    if (bytes > RG_FRAME_BYTES_MAX)
        return RG_EINVAL;
    if (status == RG_OK)
        status = rg_wire_send(&worker->wire, &head, body);
    while (status == RG_OK &&
           (status = rg_wire_flush(&worker->wire)) == RG_EPENDING) {
        status = rg_wire_wait(&worker->wire, POLLOUT, UINT64_MAX);
    }
    return status;
}

static int tell(struct rg_worker *worker, enum rg_frame_kind kind,
                const void *body, size_t bytes)
{
    int status;

    pthread_mutex_lock(&worker->lock);
    status = send_locked(worker, kind, 0, 0, body, bytes);
    pthread_mutex_unlock(&worker->lock);
    return status;
}

/* Answers whose request has given up are dropped. */
static void hand_over(struct rg_worker *worker, const struct rg_frame *head,
                      const void *body)
{
    for (struct request *at = worker->requests; at; at = at->next) {
        if (at->id != head->id)
            continue;
        at->value = head->value;
        if (rg_bytes_set(&at->body, body, head->bytes) != RG_OK)
            at->value = RG_ENOMEM;
        at->answered = 1;
    }
}

/* With the lock held, which is released while nothing is there to read. */
static void read_for_all(struct rg_worker *worker, uint64_t deadline_ns)
{
    struct rg_frame head;
    const void *body;
    int status = rg_wire_receive(&worker->wire, &head, &body);

    if (status == RG_OK) {
        hand_over(worker, &head, body);
    } else if (status == RG_EPENDING) {
        worker->reading = 1;
        pthread_mutex_unlock(&worker->lock);
        rg_wire_wait(&worker->wire, POLLIN, deadline_ns);
        pthread_mutex_lock(&worker->lock);
        worker->reading = 0;
    } else {
        worker->status = status;
    }
    pthread_cond_broadcast(&worker->changed);
}

static void enlist(struct rg_worker *worker, struct request *request)
{
    /* 0 is what needs no answer. */
    worker->last_id += worker->last_id == UINT32_MAX ? 2 : 1;
    request->id = worker->last_id;
    request->next = worker->requests;
    worker->requests = request;
}

static void strike(struct rg_worker *worker, struct request *request)
{
    struct request **at = &worker->requests;

    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
}

/*
 * Asks and waits for the answer, which is left in *request; the caller frees
 * its body. RG_OK, RG_ETIMEDOUT, RG_ECLOSED or another failure to speak.
 */
static int ask(struct rg_worker *worker, struct request *request,
               const struct rg_frame *head, const void *body,
               uint64_t deadline_ns)
{
    int status;

    pthread_mutex_lock(&worker->lock);
    enlist(worker, request);
    status = send_locked(worker, (enum rg_frame_kind)head->kind, request->id,
                         head->value, body, head->bytes);
    while (status == RG_OK && !request->answered) {
        if (rg_now_ns() >= deadline_ns)
            status = RG_ETIMEDOUT;
        else if (worker->reading)
            rg_wait_until(&worker->changed, &worker->lock, deadline_ns);
        else
            read_for_all(worker, deadline_ns);
        if (!request->answered && worker->status != RG_OK)
            status = worker->status;
    }
    strike(worker, request);
    pthread_mutex_unlock(&worker->lock);
    return status;
}

/* ---- life --------------------------------------------------------------- */

int rg_worker_present(void)
{
    return getenv(RG_WORKER_VARIABLE) != NULL;
}

static int allgather(void *arg, const void *in, void *out, size_t bytes)
{
    struct rg_worker *worker = arg;
    const struct rg_frame head = {.kind = RG_FRAME_ALLGATHER,
                                  .bytes = (uint32_t)bytes};
    struct request request = {0};
    int status;

    if (bytes > RG_FRAME_BYTES_MAX / (size_t)worker->job.size)
        return RG_EINVAL;
    status = ask(worker, &request, &head, in, UINT64_MAX);
    if (status == RG_OK)
        status = request.value;
    if (status == RG_OK &&
        request.body.used != bytes * (size_t)worker->job.size)
        status = RG_EPROTO;
    if (status == RG_OK && bytes > 0)
        memcpy(out, request.body.data, request.body.used);
    rg_bytes_fini(&request.body);
    return status;
}

static int take_welcome(struct rg_worker *worker, const struct rg_frame *head,
                        const void *body)
{
    struct rg_welcome place;

    if (head->kind != RG_FRAME_WELCOME || head->bytes < sizeof place)
        return RG_EPROTO;
    memcpy(&place, body, sizeof place);
    memcpy(worker->host, place.host, sizeof worker->host);
    worker->life = head->value;
    worker->job = (struct rg_job){
        .rank = place.rank,
        .size = place.size,
        .local_rank = place.local_rank,
        .local_size = place.local_size,
        .hosts = place.hosts,
        .kind = RG_LAUNCH_WORKER,
        .host = worker->host,
        .bootstrap = {.arg = worker, .allgather = allgather},
    };
    return rg_bytes_set(&worker->scenario, (const char *)body + sizeof place,
                        head->bytes - sizeof place);
}

static int receive_welcome(struct rg_worker *worker)
{
    struct rg_frame head;
    const void *body;
    int status;

    while ((status = rg_wire_receive(&worker->wire, &head, &body)) ==
           RG_EPENDING)
        rg_wire_wait(&worker->wire, POLLIN, UINT64_MAX);
    return status == RG_OK ? take_welcome(worker, &head, body) : status;
}

int rg_worker_open(struct rg_worker **worker_out)
{
    const char *text = getenv(RG_WORKER_VARIABLE);
    struct rg_worker *worker;
    int fd = text ? atoi(text) : -1;
    int status;

    /* Also finds out whether there is such a descriptor. */
    if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return RG_ECLOSED;
    worker = calloc(1, sizeof *worker);
    if (!worker)
        return RG_ENOMEM;
    status = rg_wait_init(&worker->changed);
    if (status != RG_OK) {
        free(worker);
        return status;
    }
    pthread_mutex_init(&worker->lock, NULL);
    rg_wire_init(&worker->wire, fd);
    status = receive_welcome(worker);
    if (status != RG_OK) {
        rg_worker_close(worker);
        return status;
    }
    *worker_out = worker;
    return RG_OK;
}

void rg_worker_close(struct rg_worker *worker)
{
    if (!worker)
        return;
    rg_wire_fini(&worker->wire);
    rg_bytes_fini(&worker->scenario);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

const struct rg_job *rg_worker_job(const struct rg_worker *worker)
{
    return &worker->job;
}

int rg_worker_life(const struct rg_worker *worker)
{
    return worker->life;
}

const void *rg_worker_scenario(const struct rg_worker *worker,
                               size_t *bytes_out)
{
    *bytes_out = worker->scenario.used;
    return worker->scenario.data;
}

/* ---- what it says ------------------------------------------------------- */

int rg_worker_report(struct rg_worker *worker, const void *data, size_t bytes)
{
    return tell(worker, RG_FRAME_REPORT, data, bytes);
}

int rg_worker_event(struct rg_worker *worker, const char *name, uint64_t value)
{
    struct rg_event event = {.time_ns = rg_now_ns(), .value = value};

    snprintf(event.name, sizeof event.name, "%s", name);
    return tell(worker, RG_FRAME_EVENT, &event, sizeof event);
}

int rg_worker_publish(struct rg_worker *worker, const void *ticket,
                      size_t bytes)
{
    return tell(worker, RG_FRAME_TICKET, ticket, bytes);
}

int rg_worker_ticket(struct rg_worker *worker, int known, int timeout_ms,
                     void **ticket_out, size_t *bytes_out, int *number_out)
{
    const struct rg_frame head = {.kind = RG_FRAME_GET_TICKET, .value = known};
    struct request request = {0};
    int status = ask(worker, &request, &head, NULL,
                     rg_now_ns() + (uint64_t)timeout_ms * 1000000);

    if (status == RG_OK && request.value < 0)
        status = request.value;
    if (status != RG_OK) {
        rg_bytes_fini(&request.body);
        return status;
    }
    *ticket_out = request.body.data; /* now the caller's */
    *bytes_out = request.body.used;
    *number_out = request.value;
    return RG_OK;
}

int rg_worker_ends(struct rg_worker *worker, int rank, int *ends_out)
{
    const struct rg_frame head = {.kind = RG_FRAME_GET_ENDS, .value = rank};
    struct request request = {0};
    int status = ask(worker, &request, &head, NULL, UINT64_MAX);

    rg_bytes_fini(&request.body);
    if (status == RG_OK && request.value < 0)
        status = request.value;
    if (status == RG_OK)
        *ends_out = request.value;
    return status;
}

int rg_worker_inject(struct rg_worker *worker,
                     const struct rg_injection *injection)
{
    const struct rg_frame head = {.kind = RG_FRAME_INJECT,
                                  .bytes = sizeof *injection};
    struct request request = {0};
    int status = ask(worker, &request, &head, injection, UINT64_MAX);

    rg_bytes_fini(&request.body);
    return status == RG_OK ? request.value : status;
}
