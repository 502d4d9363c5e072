#include "runtime/core/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* Of Linux 6.15; older ones refuse it. */
#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44
#endif

enum { RESEND_MS = 1000 };

void rg_socket_set_prompt(int fd)
{
    const int on = 1, resend = RESEND_MS;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &resend, sizeof(resend));
}
