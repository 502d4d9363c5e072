/*
 * Strict parsing of environment variables and option values. "Strict": the
 * whole string must be consumed; anything else is RG_ECONFIG with one log line
 * that names the variable and the value.
 */
#ifndef RG_CORE_ENV_H
#define RG_CORE_ENV_H

#include <stddef.h>
#include <stdint.h>

/* "8", "4K", "1M", "2G" (powers of 1024), no sign. RG_OK or RG_EINVAL. */
int rg_parse_size(const char *text, uint64_t *value_out);
/* Decimal, no sign. RG_OK or RG_EINVAL. */
int rg_parse_u64(const char *text, uint64_t *value_out);

/* Unset or empty: *value keeps what it holds (the default). */
int rg_env_size(const char *name, uint64_t *value);
int rg_env_u64(const char *name, uint64_t *value);
/* "1", "yes", "on", "true" / "0", "no", "off", "false". */
int rg_env_bool(const char *name, int *value);

#endif
