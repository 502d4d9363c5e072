/*
 * The emulated device: streams are queues of host work, teams are host
 * threads, device memory is host memory.
 *
 * A launch of one thread on an idle stream runs inline in the caller, as long
 * as it is the rank's only stream: with a second one, an inline launch could
 * keep the caller from making the launch a peer waits for; and so could lone
 * sends or receives. Everything else
 * goes through the stream's runner thread, and launches of several threads
 * through its gang.
 */
#ifndef RG_EXEC_EMU_H
#define RG_EXEC_EMU_H

#include <pthread.h>

#include "runtime/device/team.h"
#include "runtime/exec/device.h"

struct emu_device {
    struct rg_device_config config;
    uint64_t process; /* identity of this process on its host */
    int cores;
    int crowded; /* the job has more ranks than there are cores */
    int max_teams;
    int streams; /* live ones; touched by the rank's thread only */
    char host_id[64];
};

enum emu_work_kind {
    EMU_WORK_LAUNCH,
    EMU_WORK_KERNEL,
    EMU_WORK_EVENT,
    EMU_WORK_FOLLOW,
    EMU_WORK_GRAPH
};

struct emu_graph;
struct emu_event;
struct emu_stream;

/* One thing a stream does; copied into queues and graphs. */
struct emu_work {
    enum emu_work_kind kind;
    int teams;
    int threads; /* a team */
    union {
        struct {
            rg_emu_entry entry;
            struct rg_launch launch; /* its posts are owned */
        } launch;
        struct {
            void (*run)(const void *args, int team, int teams);
            uint64_t args[RG_KERNEL_ARGS_MAX / sizeof(uint64_t)];
        } kernel;
        struct emu_event *event;
        struct emu_graph *graph;
        struct {
            struct emu_stream *stream;
            uint64_t ticket;
        } follow;
    } u;
};

/* A growing array of work: a queue's or a graph's. */
struct emu_list {
    struct emu_work *work; /* owned */
    int count;
    int room;
};

struct emu_graph {
    struct emu_list list;
    uint64_t users; /* handle and queued replays; freed by the last */
};

struct emu_event {
    uint64_t time_ns;
    uint64_t recorded; /* times asked for; the rank's thread only */
    uint64_t reached;  /* times passed */
};

/* Threads that run a launch's teams together; thread 0 is the runner. */
struct emu_gang {
    pthread_mutex_t lock;
    pthread_cond_t start, done;
    pthread_t *threads; /* helpers; owned */
    int count;          /* helpers that exist */
    uint64_t round;
    int wanted; /* helpers of this round */
    int running;
    int stop;
    const struct emu_work *work;
    struct rg_emu_team *teams; /* [work->teams]; owned */
    int team_room;
};

struct emu_stream {
    struct emu_device *device;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct emu_list queue;
    int head;
    uint64_t posted; /* work ever queued */
    uint64_t ended;
    int stop;
    int started; /* the runner exists */
    pthread_t runner;
    struct emu_gang gang;
    struct emu_list *capture; /* owned while capturing */
};

int emu_list_add(struct emu_list *list, const struct emu_work *work);
/* Frees what a launch has of its own, once it has run for the last time. */
void emu_work_fini(const struct emu_work *work);

/* gang.c: runs a launch over teams x threads; the caller is one of them. */
int emu_gang_init(struct emu_gang *gang);
void emu_gang_fini(struct emu_gang *gang);
int emu_gang_run(struct emu_gang *gang, struct emu_device *device,
                 const struct emu_work *work);

/* stream.c */
int emu_stream_create(void *device, void *native, void **stream_out);
void emu_stream_destroy(void *stream);
int emu_stream_synchronize(void *stream);
int emu_stream_query(void *stream);
int emu_stream_follow(void *stream, void *after);
/* Runs or queues or, while capturing, records. */
int emu_stream_post(struct emu_stream *stream, const struct emu_work *work);
int emu_capture_begin(void *stream);
int emu_capture_end(void *stream, void **graph_out);
int emu_graph_launch(void *graph, void *stream);
void emu_graph_destroy(void *graph);

/* event.c */
int emu_event_create(void *device, void **event_out);
void emu_event_destroy(void *event);
int emu_event_record(void *event, void *stream);
int emu_event_synchronize(void *event);
int emu_event_elapsed_us(void *begin, void *end, double *us_out);
void emu_event_reach(struct emu_event *event);

/* wait.c: how a host thread waits for another (protocols: spin, yield, nap) */
void emu_relax(uint64_t polls, int crowded);

#endif
