/*
 * Unit tests of the pulse: it ends with its process's threads, not with its
 * process's descriptors.
 */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/control/driver_pulse.h"
#include "runtime/status.h"

enum { SECONDS = 20 };

/* 1 when the other end is gone, 0 when it is not after `ms`. */
static int has_ended(int fd, int ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, ms) == 1 && poll_fd.revents & POLLHUP;
}

static void a_pulse_ends_when_it_is_stopped(void **state)
{
    struct rg_pulse *pulse;
    int fd;

    (void)state;
    assert_int_equal(rg_pulse_create(0, &pulse), RG_OK);
    fd = dup(rg_pulse_fd(pulse));
    assert_false(has_ended(fd, 50));
    rg_pulse_destroy(pulse);
    assert_true(has_ended(fd, SECONDS * 1000));
    close(fd);
}

static void send_fd(int socket, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(socket, &message, 0) != 1)
        _exit(1);
}

static int receive_fd(int socket)
{
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    int fd;

    assert_int_equal(recvmsg(socket, &message, 0), 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

/*
 * A process with a pulse and a child that keeps copies of all its descriptors:
 * says both process ids, and hands over its pulse.
 */
static void live(int socket)
{
    struct rg_pulse *pulse;
    pid_t pids[2] = {getpid(), 0};

    if (rg_pulse_create(0, &pulse))
        _exit(1);
    pids[1] = fork();
    if (pids[1] == 0) {
        alarm(SECONDS);
        for (;;)
            pause();
    }
    send_fd(socket, rg_pulse_fd(pulse));
    if (write(socket, pids, sizeof pids) != sizeof pids)
        _exit(1);
    alarm(SECONDS);
    for (;;)
        pause();
}

static void a_pulse_ends_with_its_process_alone(void **state)
{
    int sockets[2];
    pid_t pids[2], child;
    int pulse;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    child = fork();
    if (child == 0) {
        close(sockets[0]);
        live(sockets[1]);
    }
    close(sockets[1]);
    pulse = receive_fd(sockets[0]);
    assert_int_equal(read(sockets[0], pids, sizeof pids), sizeof pids);
    assert_false(has_ended(pulse, 50));
    kill(child, SIGKILL);
    assert_true(has_ended(pulse, SECONDS * 1000));
    /* The copies still hold the other descriptors open. */
    assert_false(has_ended(sockets[0], 50));
    kill(pids[1], SIGKILL);
    assert_true(has_ended(sockets[0], SECONDS * 1000));
    waitpid(child, NULL, 0);
    close(pulse);
    close(sockets[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pulse_ends_when_it_is_stopped),
        cmocka_unit_test(a_pulse_ends_with_its_process_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
