#include "harness/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/supervision.h"
#include "harness/wire.h"

enum {
    CHILD_FD = 3, /* the child's end of the socket */
    EXIT_NO_EXEC = 127
};

static const char child_variable[] = RG_WORKER_VARIABLE "=3";

static int read_file(const char *path, struct rg_bytes *bytes)
{
    char piece[4096];
    ssize_t n = -1;
    int status = RG_ESYSTEM;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return RG_ESYSTEM;
    while ((n = read(fd, piece, sizeof piece)) > 0) {
        status = rg_bytes_append(bytes, piece, (size_t)n);
        if (status != RG_OK)
            break;
    }
    close(fd);
    return n < 0 ? RG_ESYSTEM : status;
}

/* The kernel keeps the words, each with its null byte, in one run. */
static int take_arguments(struct rg_self *self)
{
    struct rg_bytes text = {0};
    int status = read_file("/proc/self/cmdline", &text);
    size_t n = 0;

    self->words = text.data;
    if (status != RG_OK)
        return status;
    for (size_t i = 0; i < text.used; i++)
        n += text.data[i] == '\0';
    self->argv = calloc(n + 1, sizeof *self->argv);
    if (!self->argv)
        return RG_ENOMEM;
    for (size_t i = 0, at = 0; i < n; i++, at += strlen(text.data + at) + 1)
        self->argv[i] = text.data + at;
    return RG_OK;
}

static int take_environment(struct rg_self *self)
{
    const size_t length = sizeof RG_WORKER_VARIABLE; /* with the '=' */
    size_t n = 0;
    size_t kept = 0;

    while (environ[n])
        n++;
    self->environ = calloc(n + 2, sizeof *self->environ);
    if (!self->environ)
        return RG_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], child_variable, length) != 0)
            self->environ[kept++] = environ[i];
    self->environ[kept] = (char *)child_variable; /* nobody writes there */
    return RG_OK;
}

int rg_self_init(struct rg_self *self)
{
    int status;

    *self = (struct rg_self){0};
    status = take_arguments(self);
    return status == RG_OK ? take_environment(self) : status;
}

void rg_self_fini(struct rg_self *self)
{
    free(self->argv);
    free(self->words);
    free(self->environ);
    *self = (struct rg_self){0};
}

static void close_from(int first)
{
    const long limit = sysconf(_SC_OPEN_MAX);

#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return;
#endif
    for (int fd = first; fd < limit; fd++)
        close(fd);
}

/* In the child, behind a fork of a process with threads: only calls that are
 * safe in a signal handler. */
static void become(const struct rg_self *self, int fd, pid_t parent)
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_NO_EXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (fd != CHILD_FD)
        dup2(fd, CHILD_FD);
    fcntl(CHILD_FD, F_SETFD, 0);
    close_from(CHILD_FD + 1);
    execve("/proc/self/exe", self->argv, self->environ);
    _exit(EXIT_NO_EXEC);
}

int rg_process_start(const struct rg_self *self, int fd,
                     struct rg_process *process_out)
{
    const pid_t parent = getpid();
    pid_t pid = fork();
    int pidfd;

    if (pid == 0)
        become(self, fd, parent);
    if (pid < 0)
        return RG_ESYSTEM;
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return RG_ESYSTEM;
    }
    process_out->pid = pid;
    process_out->pidfd = pidfd;
    return RG_OK;
}

/* By number, which is safe: it stays taken until it is reaped here. */
void rg_process_signal(const struct rg_process *process, int signal_number)
{
    if (process->pid > 0)
        kill(process->pid, signal_number);
}

int rg_process_reap(struct rg_process *process, int *wait_out)
{
    pid_t pid;
    int status = 0;

    do {
        pid = waitpid(process->pid, &status, WNOHANG);
    } while (pid < 0 && errno == EINTR);
    if (pid == 0)
        return RG_EPENDING;
    close(process->pidfd);
    *process = (struct rg_process){.pidfd = -1};
    *wait_out = status;
    return RG_OK;
}
