#include "runtime/control/driver_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/core/address.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/socket.h"
#include "runtime/status.h"

enum {
    NS_PER_MS = 1000000,
    SOCKET_TYPE = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC
};

/* Closes fd (if any) and logs the call that failed with errno. */
static int system_error(int rank, int fd, const char *what, const char *where)
{
    rg_log(RG_LOG_ERROR, rank, "cannot %s %s: %m", what, where);
    if (fd >= 0)
        close(fd);
    return RG_ESYSTEM;
}

/* ---- addresses ---------------------------------------------------------- */

int rg_socket_own_address(int rank, int local, char address[RG_ADDRESS_BYTES])
{
    if (!local || rg_address_is_given())
        return rg_address_own(rank, address, RG_ADDRESS_BYTES);
    snprintf(address, RG_ADDRESS_BYTES, "127.0.0.1");
    return RG_OK;
}

/* An address to bind or connect to. */
union name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
};

static socklen_t tcp_name(const struct rg_endpoint *endpoint, union name *name)
{
    memset(name, 0, sizeof(*name));
    if (inet_pton(AF_INET, endpoint->address, &name->v4.sin_addr) == 1) {
        name->v4.sin_family = AF_INET;
        name->v4.sin_port = htons((uint16_t)endpoint->port);
        return sizeof(name->v4);
    }
    inet_pton(AF_INET6, endpoint->address, &name->v6.sin6_addr);
    name->v6.sin6_family = AF_INET6;
    name->v6.sin6_port = htons((uint16_t)endpoint->port);
    return sizeof(name->v6);
}

static socklen_t unix_name(const struct rg_endpoint *endpoint, union name *name)
{
    size_t length = strlen(endpoint->unix_name);

    memset(name, 0, sizeof(*name));
    name->un.sun_family = AF_UNIX;
    memcpy(name->un.sun_path + 1, endpoint->unix_name, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

/* ---- listening ---------------------------------------------------------- */

int rg_socket_listen_tcp(int rank, struct rg_endpoint *endpoint, int backlog,
                         int *fd_out)
{
    union name name;
    socklen_t length;
    int fd;

    endpoint->port = 0;
    length = tcp_name(endpoint, &name);
    fd = socket(name.any.sa_family, SOCKET_TYPE, 0);
    if (fd < 0 || bind(fd, &name.any, length) || listen(fd, backlog) ||
        getsockname(fd, &name.any, &length))
        return system_error(rank, fd, "listen on", endpoint->address);
    endpoint->port = ntohs(name.any.sa_family == AF_INET ? name.v4.sin_port
                                                         : name.v6.sin6_port);
    *fd_out = fd;
    return RG_OK;
}

int rg_socket_listen_unix(int rank, struct rg_endpoint *endpoint, int backlog,
                          int *fd_out)
{
    uint64_t random;
    union name name;
    socklen_t length;
    int fd;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random))
        return system_error(rank, -1, "read", "random bytes");
    snprintf(endpoint->unix_name, sizeof(endpoint->unix_name),
             "regroup-%016llx", (unsigned long long)random);
    length = unix_name(endpoint, &name);
    fd = socket(AF_UNIX, SOCKET_TYPE, 0);
    if (fd < 0 || bind(fd, &name.any, length) || listen(fd, backlog))
        return system_error(rank, fd, "listen on", endpoint->unix_name);
    *fd_out = fd;
    return RG_OK;
}

int rg_socket_accept(int listen_fd)
{
    union name name;
    socklen_t length = sizeof(name);
    int fd =
        accept4(listen_fd, &name.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd >= 0 && name.any.sa_family != AF_UNIX)
        rg_socket_set_prompt(fd);
    return fd;
}

/* ---- connecting --------------------------------------------------------- */

/* Waits until the socket is writable; its error in errno; -1: failed. */
static int wait_connected(int fd, uint64_t deadline_ns)
{
    struct pollfd poller = {.fd = fd, .events = POLLOUT};
    socklen_t length = sizeof(errno);
    int error = 0;
    int ready;

    do {
        uint64_t now = rg_clock_ns();
        uint64_t left = deadline_ns > now ? deadline_ns - now : 0;

        ready = poll(&poller, 1, (int)((left + NS_PER_MS - 1) / NS_PER_MS));
    } while (ready < 0 && errno == EINTR);
    if (ready == 0)
        error = ETIMEDOUT;
    else if (ready < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
        error = errno;
    errno = error;
    return error ? -1 : 0;
}

static int connect_to(int rank, union name *name, socklen_t length,
                      const char *where, uint64_t deadline_ns, int *fd_out)
{
    int fd = socket(name->any.sa_family, SOCKET_TYPE, 0);
    int failed = fd < 0;

    while (!failed && connect(fd, &name->any, length)) {
        if (errno == EINPROGRESS) {
            failed = wait_connected(fd, deadline_ns) < 0;
            break;
        }
        /* A UNIX listener whose queue is full says EAGAIN: come again. */
        failed = errno != EAGAIN || rg_clock_ns() >= deadline_ns;
        if (!failed)
            rg_clock_sleep_ns(NS_PER_MS);
    }
    if (failed) {
        int late = errno == EAGAIN || errno == ETIMEDOUT;

        system_error(rank, fd, "connect to", where);
        return late ? RG_ETIMEDOUT : RG_ESYSTEM;
    }
    *fd_out = fd;
    return RG_OK;
}

int rg_socket_connect_tcp(int rank, const struct rg_endpoint *endpoint,
                          uint64_t deadline_ns, int *fd_out)
{
    union name name;
    socklen_t length = tcp_name(endpoint, &name);
    int rc =
        connect_to(rank, &name, length, endpoint->address, deadline_ns, fd_out);

    if (!rc)
        rg_socket_set_prompt(*fd_out);
    return rc;
}

int rg_socket_start_tcp(int rank, const struct rg_endpoint *endpoint,
                        int *fd_out)
{
    union name name;
    socklen_t length = tcp_name(endpoint, &name);
    int fd = socket(name.any.sa_family, SOCKET_TYPE, 0);

    if (fd < 0)
        return system_error(rank, fd, "open a socket to", endpoint->address);
    rg_socket_set_prompt(fd);
    if (connect(fd, &name.any, length) && errno != EINPROGRESS &&
        errno != ECONNREFUSED)
        return system_error(rank, fd, "connect to", endpoint->address);
    *fd_out = fd;
    return RG_OK;
}

int rg_socket_try_unix(const struct rg_endpoint *endpoint)
{
    union name name;
    socklen_t length = unix_name(endpoint, &name);
    int fd = socket(AF_UNIX, SOCKET_TYPE, 0);

    if (fd >= 0 && connect(fd, &name.any, length)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int rg_socket_watch_peer(int rank, int unix_fd)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);
    int fd;

    if (getsockopt(unix_fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) ||
        peer.pid == getpid())
        return -1;
    fd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
    if (fd < 0)
        rg_log(RG_LOG_WARN, rank, "cannot watch process %d: %m", (int)peer.pid);
    else
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

void rg_socket_kill_peer(int pid_fd)
{
    /* It may have ended meanwhile: then there is nothing to do. */
    syscall(SYS_pidfd_send_signal, pid_fd, SIGKILL, NULL, 0);
}

int rg_socket_connect_unix(int rank, const struct rg_endpoint *endpoint,
                           uint64_t deadline_ns, int *fd_out)
{
    union name name;
    socklen_t length = unix_name(endpoint, &name);

    return connect_to(rank, &name, length, endpoint->unix_name, deadline_ns,
                      fd_out);
}
