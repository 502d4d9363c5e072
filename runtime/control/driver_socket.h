/*
 * The socket calls of the driver. All sockets are non-blocking, close-on-exec
 * streams. Functions return RG_OK or a logged RG_ESYSTEM, RG_ETIMEDOUT.
 */
#ifndef RG_CONTROL_DRIVER_SOCKET_H
#define RG_CONTROL_DRIVER_SOCKET_H

#include <stdint.h>

#include "runtime/control/message.h"

/*
 * The numeric address other processes reach this one at: loopback when `local`
 * and no variable says otherwise, else rg_address_own(). `rank` is for the log.
 */
int rg_socket_own_address(int rank, int local, char address[RG_ADDRESS_BYTES]);

/* Listens at endpoint->address on a free port, stored in endpoint->port. */
int rg_socket_listen_tcp(int rank, struct rg_endpoint *endpoint, int backlog,
                         int *fd_out);
/* Makes up an abstract name, stored in endpoint->unix_name, and listens. */
int rg_socket_listen_unix(int rank, struct rg_endpoint *endpoint, int backlog,
                          int *fd_out);

/* Connects by `deadline_ns` (rg_clock_ns). */
int rg_socket_connect_tcp(int rank, const struct rg_endpoint *endpoint,
                          uint64_t deadline_ns, int *fd_out);
int rg_socket_connect_unix(int rank, const struct rg_endpoint *endpoint,
                           uint64_t deadline_ns, int *fd_out);

/* Begins to connect; the socket becomes writable, or readable with an error. */
int rg_socket_start_tcp(int rank, const struct rg_endpoint *endpoint,
                        int *fd_out);

/* Connects if somebody listens there now; -1 and no word if not. */
int rg_socket_try_unix(const struct rg_endpoint *endpoint);

/*
 * A descriptor that becomes readable when the process at the other end of a
 * UNIX socket has exited; -1: it is this process, or there is none.
 */
int rg_socket_watch_peer(int rank, int unix_fd);

/* Kills the process that such a descriptor stands for. */
void rg_socket_kill_peer(int pid_fd);

/* The next waiting connection, or -1. */
int rg_socket_accept(int listen_fd);

#endif
