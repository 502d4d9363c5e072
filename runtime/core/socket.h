/* Options that every TCP connection of ours has. */
#ifndef RG_CORE_SOCKET_H
#define RG_CORE_SOCKET_H

/*
 * What is small leaves at once, with no delay to fill segments, and a host that
 * is back after an outage need not wait as long as it was away: what got lost
 * is sent again once a second at least. Kernels before 6.15 do without the
 * latter.
 */
void rg_socket_set_prompt(int fd);

#endif
