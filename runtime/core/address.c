#include "runtime/core/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/core/env.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

enum { V6_BYTES = 16 };

/* What makes one address better than another; more than all below it. */
enum { HAS_DEFAULT_ROUTE = 1, IS_V4 = 2, HAS_CABLE = 4 };

/* What RG_CONTROL_IFACE asks for. */
struct wanted {
    const char *text; /* null: nothing */
    int family;       /* of a network; 0: it is an interface's name */
    unsigned char network[V6_BYTES];
    uint64_t bits;
};

static const char *given(const char *variable)
{
    const char *text = getenv(variable);

    return text && *text ? text : NULL;
}

int rg_address_is_given(void)
{
    return given("RG_CONTROL_HOST") || given("RG_CONTROL_IFACE");
}

/* The bytes of an IPv4 or IPv6 address; null: it is of neither. */
static const unsigned char *raw_of(const struct sockaddr *from)
{
    const void *raw = NULL;

    if (from && from->sa_family == AF_INET)
        raw = &((const struct sockaddr_in *)(const void *)from)->sin_addr;
    else if (from && from->sa_family == AF_INET6)
        raw = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
    return raw;
}

static int print(const struct sockaddr *from, char *address_out, size_t bytes)
{
    const unsigned char *raw = raw_of(from);

    return raw && inet_ntop(from->sa_family, raw, address_out, (socklen_t)bytes)
               ? RG_OK
               : RG_ESYSTEM;
}

static int resolve(int rank, const char *host, char *address_out, size_t bytes)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const int error = getaddrinfo(host, NULL, &hints, &found);
    const int failed = error || print(found->ai_addr, address_out, bytes);

    if (failed)
        rg_log(RG_LOG_ERROR, rank, "RG_CONTROL_HOST=%s: %s", host,
               error ? gai_strerror(error) : "no internet address");
    if (found)
        freeaddrinfo(found);
    return failed ? RG_ECONFIG : RG_OK;
}

/* ---- interfaces --------------------------------------------------------- */

/* "ADDRESS/BITS". RG_EINVAL: it is neither that nor a name. */
static int wanted_parse(const char *text, struct wanted *wanted_out)
{
    const char *slash = text ? strchr(text, '/') : NULL;
    char address[INET6_ADDRSTRLEN];

    *wanted_out = (struct wanted){.text = text};
    if (!slash)
        return RG_OK;
    snprintf(address, sizeof address, "%.*s", (int)(slash - text), text);
    if (inet_pton(AF_INET, address, wanted_out->network) == 1)
        wanted_out->family = AF_INET;
    else if (inet_pton(AF_INET6, address, wanted_out->network) == 1)
        wanted_out->family = AF_INET6;
    if (!wanted_out->family || rg_parse_u64(slash + 1, &wanted_out->bits) ||
        wanted_out->bits > (wanted_out->family == AF_INET ? 32 : 128))
        return RG_EINVAL;
    return RG_OK;
}

static int in_network(const struct wanted *wanted, const unsigned char *raw)
{
    for (uint64_t bit = 0; bit < wanted->bits; bit++)
        if ((wanted->network[bit / 8] ^ raw[bit / 8]) >> (7 - bit % 8) & 1)
            return 0;
    return 1;
}

/* Link-local IPv6 would need a scope and is left out. */
static int is_usable(const struct ifaddrs *at, const struct wanted *wanted)
{
    const struct sockaddr *address = at->ifa_addr;
    const unsigned char *raw = raw_of(address);

    if (!raw || !(at->ifa_flags & IFF_UP) ||
        (address->sa_family == AF_INET6 && raw[0] == 0xfe &&
         (raw[1] & 0xc0) == 0x80))
        return 0;
    if (!wanted->text)
        return !(at->ifa_flags & IFF_LOOPBACK);
    if (!wanted->family)
        return strcmp(at->ifa_name, wanted->text) == 0;
    return address->sa_family == wanted->family && in_network(wanted, raw);
}

/* The interface of the IPv4 route that is taken when no other fits; or "". */
static void default_route(char name_out[IF_NAMESIZE])
{
    FILE *file = fopen("/proc/net/route", "r");
    unsigned long best = 0;
    char line[256];

    *name_out = 0;
    while (file && fgets(line, sizeof line, file)) {
        unsigned long target, mask, metric;
        char name[IF_NAMESIZE];

        if (sscanf(line, "%15s %lx %*x %*x %*u %*u %lu %lx", name, &target,
                   &metric, &mask) == 4 &&
            !target && !mask && (!*name_out || metric < best)) {
            memcpy(name_out, name, sizeof name);
            best = metric;
        }
    }
    if (file)
        fclose(file);
}

static int merit(const struct ifaddrs *at, const char *routed)
{
    return (at->ifa_flags & IFF_RUNNING ? HAS_CABLE : 0) +
           (at->ifa_addr->sa_family == AF_INET ? IS_V4 : 0) +
           (strcmp(at->ifa_name, routed) == 0 ? HAS_DEFAULT_ROUTE : 0);
}

/* The first of the best; null: none is usable. */
static const struct ifaddrs *best_of(const struct ifaddrs *all,
                                     const struct wanted *wanted)
{
    const struct ifaddrs *best = NULL;
    char routed[IF_NAMESIZE];

    default_route(routed);
    for (const struct ifaddrs *at = all; at; at = at->ifa_next)
        if (is_usable(at, wanted) &&
            (!best || merit(at, routed) > merit(best, routed)))
            best = at;
    return best;
}

static int none_is_usable(int rank, const struct wanted *wanted)
{
    if (!wanted->text) {
        rg_log(RG_LOG_ERROR, rank,
               "no network interface is up; set RG_CONTROL_HOST");
        return RG_ESYSTEM;
    }
    rg_log(RG_LOG_ERROR, rank,
           "RG_CONTROL_IFACE=%s: no interface here that is up has that %s",
           wanted->text, wanted->family ? "network" : "name");
    return RG_ECONFIG;
}

static int choose(int rank, const struct wanted *wanted, char *address_out,
                  size_t bytes)
{
    const struct ifaddrs *best;
    struct ifaddrs *all;
    int status;

    if (getifaddrs(&all)) {
        rg_log(RG_LOG_ERROR, rank, "cannot list network interfaces: %m");
        return RG_ESYSTEM;
    }
    best = best_of(all, wanted);
    status = best ? print(best->ifa_addr, address_out, bytes)
                  : none_is_usable(rank, wanted);
    freeifaddrs(all);
    return status;
}

int rg_address_own(int rank, char *address_out, size_t bytes)
{
    const char *host = given("RG_CONTROL_HOST");
    struct wanted wanted;

    if (host)
        return resolve(rank, host, address_out, bytes);
    if (wanted_parse(given("RG_CONTROL_IFACE"), &wanted)) {
        rg_log(RG_LOG_ERROR, rank,
               "RG_CONTROL_IFACE=%s is neither an interface nor a network such "
               "as 10.1.0.0/16",
               wanted.text);
        return RG_ECONFIG;
    }
    return choose(rank, &wanted, address_out, bytes);
}
