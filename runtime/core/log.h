/*
 * Diagnostics on standard error. The level comes from RG_LOG (error, warn,
 * info, debug; default warn) and is read at each call: there is no state.
 * One call is one line, written with one write(), prefixed "regroup[rank]: ",
 * control characters escaped.
 */
#ifndef RG_CORE_LOG_H
#define RG_CORE_LOG_H

enum rg_log_level { RG_LOG_ERROR, RG_LOG_WARN, RG_LOG_INFO, RG_LOG_DEBUG };

/* rank -1: no rank is known yet. Never fails, keeps errno. */
void rg_log(enum rg_log_level level, int rank, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
