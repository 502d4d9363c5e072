/* What the runtime's threads have in common: a name, for ps and debuggers. */
#ifndef RG_CORE_THREAD_H
#define RG_CORE_THREAD_H

#define RG_THREAD_PREFIX "rg-"

/* The calling thread is RG_THREAD_PREFIX and this, 15 bytes at most. */
#define rg_thread_name(what) rg_thread_set_name(RG_THREAD_PREFIX what)
void rg_thread_set_name(const char *name);

#endif
