/*
 * How other hosts reach this process. What decides, in this order:
 *
 *   RG_CONTROL_HOST   a name or an address
 *   RG_CONTROL_IFACE  an interface ("ib0") or a network ("10.1.0.0/16", also
 *                     IPv6), so that all hosts can be told the same
 *   else the interfaces but loopback: one that has its cable, IPv4, the one
 *   with the default route, the first listed
 */
#ifndef RG_CORE_ADDRESS_H
#define RG_CORE_ADDRESS_H

#include <stddef.h>

/*
 * The numeric text, of at most `bytes` with its end. `rank` is for the log.
 * RG_OK, RG_ECONFIG (a variable that fits nothing) or RG_ESYSTEM, logged.
 */
int rg_address_own(int rank, char *address_out, size_t bytes);
/* Whether one of the variables says what the address is to be. */
int rg_address_is_given(void);

#endif
