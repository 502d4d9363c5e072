/*
 * The tcp provider: one stream per peer. Inside runtime/engine/tcp only.
 *
 * A connection starts with a mutual proof that both hold the job secret:
 *
 *   connector                                acceptor
 *     HELLO(ranks, token, nonce c)     -->
 *                                      <--   CHALLENGE(token, nonce a,
 *                                              hash("a", ranks, c, a))
 *     PROOF(hash("c", ranks, c, a))    -->
 *                                      <--   WELCOME, once the acceptor has
 *                                              been given this peer's card
 *     START                            -->
 *
 * It keeps out who does not know the secret, strays and former lives of a rank
 * (by token). It neither encrypts nor protects what follows: somebody who can
 * alter packets in flight can alter payload, so the network must be trusted
 * with that as with MPI.
 *
 * The first connection is made by the lower rank, one after a loss by either;
 * if both try at once the lower rank's counts: it turns the other down, and the
 * other gives its own up when it welcomes. START tells a connection that is
 * wanted from one that was given up after its proof. Then frames in both
 * directions:
 *
 *   PUT   header, payload, verdict: the signal follows the payload, and a
 *         command can be called off after its payload has begun to flow
 *   NACK  header: that command was refused, with its status
 *   ACK   header alone; every header carries how many PUTs have been dealt with
 *
 * Frames use the byte order of the host; the magic number refuses another.
 * TCP's own keep-alive is the heartbeat when idle: the kernel answers it, also
 * for a process that is busy elsewhere and does not poll.
 */
#ifndef RG_ENGINE_TCP_TCP_H
#define RG_ENGINE_TCP_TCP_H

#include <stdint.h>

#include "runtime/engine/provider.h"
#include "runtime/engine/tcp/keyed.h"

enum {
    RG_TCP_NONCE_BYTES = 16,
    RG_TCP_BUFFER_BYTES = 16384,
    RG_TCP_BATCH_BYTES = 8192, /* of frames that go out together */
    RG_TCP_LAZY_PUTS = 16      /* so many are not left unacknowledged */
};

enum rg_tcp_stage {
    RG_TCP_CONNECTING = 0, /* the socket is not connected yet */
    RG_TCP_WANT_HELLO,
    RG_TCP_WANT_CHALLENGE,
    RG_TCP_WANT_PROOF,
    RG_TCP_WANT_WELCOME,
    RG_TCP_PROVEN, /* accepted; waits for the peer's card */
    RG_TCP_WELCOMED,
    RG_TCP_UP,
    RG_TCP_DEAD /* to be freed at the end of the poll */
};

struct rg_tcp_hello {
    uint32_t magic;
    uint32_t stage; /* that of the receiver */
    int32_t from;   /* the connector */
    int32_t to;
    uint64_t token; /* of the sender */
    unsigned char nonce[RG_TCP_NONCE_BYTES];
    unsigned char hash[RG_KEYED_BYTES];
};

enum rg_tcp_kind { RG_TCP_PUT = 1, RG_TCP_ACK, RG_TCP_NACK };

struct rg_tcp_header {
    uint32_t magic;
    uint8_t kind;
    uint8_t op;
    int16_t status; /* NACK */
    uint64_t generation;
    uint64_t offset;
    uint64_t bytes;
    uint64_t signal;
    uint64_t value;
    uint64_t sequence; /* PUT: its number, from 1; NACK: the refused */
    uint64_t ack;      /* the last PUT dealt with in the other direction */
};

/* Behind the payload, if there is one. */
enum rg_tcp_verdict { RG_TCP_VOID = 0, RG_TCP_GO = 0x474f };

enum rg_tcp_in_state {
    RG_TCP_IN_HEADER = 0,
    RG_TCP_IN_DOOR, /* a PUT that may be of a generation to come */
    RG_TCP_IN_PAYLOAD,
    RG_TCP_IN_VERDICT
};

struct rg_tcp_in {
    enum rg_tcp_in_state state;
    struct rg_tcp_header header;
    int status;          /* why the command at hand is refused */
    uint64_t left;       /* payload bytes to come */
    uint64_t completed;  /* PUTs dealt with */
    uint64_t acked;      /* of these, those told to the peer */
    uint64_t acked_then; /* so many at the last look (tcp.c) */
    int awaited;         /* some that are not have a source that waits */
    unsigned char buffer[RG_TCP_BUFFER_BYTES];
    size_t begin, end;
    int drained; /* the last call got less than there was room for */
};

/* The frame that is being written. */
struct rg_tcp_out {
    int active;
    struct rg_tcp_header header;
    const unsigned char *source; /* null: called off, zeros flow */
    uint64_t bytes;              /* of payload */
    uint64_t verdict;
    uint64_t total; /* of the frame */
    uint64_t written;
    uint64_t sequence; /* of the last PUT begun */
    /* Small frames, whole: `total` bytes of this, and nothing of the above. */
    int batched;
    unsigned char batch[RG_TCP_BATCH_BYTES];
};

struct rg_tcp_refusal {
    uint64_t sequence;
    int status;
};

struct rg_tcp_conn {
    struct rg_tcp_conn *next;
    int fd;
    enum rg_tcp_stage stage;
    int peer; /* -1: not known yet */
    int outgoing;
    int blocked;      /* the socket was full: wait until it is writable */
    uint32_t events;  /* what epoll watches */
    uint64_t token;   /* of the peer's life */
    uint64_t born_ns; /* bounds the handshake */
    struct rg_tcp_hello hello, challenge;
    size_t hello_bytes; /* of the message being read, in in.buffer */
    struct rg_tcp_in in;
    struct rg_tcp_out out;
    struct rg_tcp_refusal *refusals; /* not told yet, owned */
    size_t refused, refusals_size;
};

struct rg_tcp_link {
    int dirty;                    /* something was queued since the last poll */
    struct rg_tcp_conn *conn;     /* up, or null */
    struct rg_tcp_conn *attempt;  /* outgoing, or null */
    int expected;                 /* connect was called, not failed since */
    int lost;                     /* was up or tried to be, and is not */
    struct rg_engine_queue queue; /* not begun */
    struct rg_engine_queue sent;  /* begun; ascending by sequence */
};

struct rg_tcp {
    struct rg_engine *engine; /* borrowed */
    struct rg_tcp_link *links;
    struct rg_tcp_conn *conns; /* all of them, also the dead */
    int listen_fd;
    int epoll_fd;
    uint64_t silence_ms;
    uint64_t expired_ns; /* when deadlines were last looked at */
    uint64_t told_ns;    /* when lazy ends last acknowledged what was left */
    int *dirty;          /* [size] peers whose links are; owned */
    int dirty_count;
};

/* tcp.c: */
/* The connection has ended; a link that used it has lost its commands. */
void rg_tcp_lose(struct rg_tcp *tcp, struct rg_tcp_conn *conn);
/* The handshake is over; takes the place of what the link had. */
void rg_tcp_adopt(struct rg_tcp *tcp, struct rg_tcp_conn *conn);
/* Ends the attempt of its own to reach the peer. */
void rg_tcp_give_up(struct rg_tcp *tcp, int peer);
/* Owned by tcp from then on. Null: no memory, or epoll refuses it (logged). */
struct rg_tcp_conn *rg_tcp_add(struct rg_tcp *tcp, int fd);
/* Asks epoll for the readiness that the connection waits for. */
void rg_tcp_watch(struct rg_tcp *tcp, struct rg_tcp_conn *conn);

/* handshake.c: */
/* Opens the listening socket and puts its address into the engine's card. */
int rg_tcp_listen(struct rg_tcp *tcp);
/* Starts a connection to the card's address. Null: failed, and logged. */
struct rg_tcp_conn *rg_tcp_start(struct rg_tcp *tcp, int peer,
                                 const struct rg_engine_card_data *card);
void rg_tcp_accept(struct rg_tcp *tcp);
/* Moves a connection that is not up on. */
void rg_tcp_shake(struct rg_tcp *tcp, struct rg_tcp_conn *conn);
/* A proven connection whose card has come is let in. */
void rg_tcp_admit(struct rg_tcp *tcp, struct rg_tcp_conn *conn);

/* stream.c: */
void rg_tcp_read(struct rg_tcp *tcp, struct rg_tcp_conn *conn);
void rg_tcp_write(struct rg_tcp *tcp, struct rg_tcp_conn *conn);
/* Tells what has been dealt with, also where that is in no hurry. */
void rg_tcp_acknowledge(struct rg_tcp *tcp, struct rg_tcp_conn *conn);
/* A PUT at the door that waits for a generation to come. */
int rg_tcp_is_held(const struct rg_tcp *tcp, const struct rg_tcp_conn *conn);
/* The frame being written stops reading its source if no command owns it. */
void rg_tcp_detach(struct rg_tcp_link *link);

#endif
