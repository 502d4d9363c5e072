/*
 * The hosts of scripts/hosts, as programs that run on them see them: their
 * cables are unplugged and plugged in by that script, which says where it is in
 * RG_HOSTS_COMMAND.
 */
#ifndef RG_HARNESS_HOSTS_H
#define RG_HARNESS_HOSTS_H

/* 1 on such a host. */
int rg_hosts_present(void);
/*
 * `verb` is cut, split or heal; returns when it is done. RG_OK; RG_ENOTSUP: not
 * on such a host; RG_ESYSTEM: the script failed, and said why.
 */
int rg_hosts_do(const char *verb, const char *host);

#endif
