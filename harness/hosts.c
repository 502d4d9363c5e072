#include "harness/hosts.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/status.h"

static const char variable[] = "RG_HOSTS_COMMAND";

int rg_hosts_present(void)
{
    const char *command = getenv(variable);

    return command != NULL && *command != '\0';
}

int rg_hosts_do(const char *verb, const char *host)
{
    char *const argv[] = {getenv(variable), (char *)verb, (char *)host, NULL};
    int status = 0;
    pid_t pid;

    if (!rg_hosts_present())
        return RG_ENOTSUP;
    if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) != 0)
        return RG_ESYSTEM;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return RG_ESYSTEM;
    return status == 0 ? RG_OK : RG_ESYSTEM;
}
