#include "runtime/core/env.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/core/log.h"
#include "runtime/status.h"

/* Digits only; sets *end_out behind them. RG_EINVAL: none, or overflow. */
static int parse_digits(const char *text, uint64_t *value_out,
                        const char **end_out)
{
    uint64_t value = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return RG_EINVAL;
    if (at == text)
        return RG_EINVAL;
    *value_out = value;
    *end_out = at;
    return RG_OK;
}

/* The power of two a unit letter stands for, or -1. */
static int unit_shift(char unit)
{
    static const char units[] = "KMGT";
    const char *found;

    if (unit >= 'a' && unit <= 'z')
        unit = (char)(unit - 'a' + 'A');
    found = unit ? strchr(units, unit) : NULL;
    return found ? 10 * (int)(found - units + 1) : -1;
}

int rg_parse_size(const char *text, uint64_t *value_out)
{
    uint64_t value;
    const char *end;
    int shift = 0;

    if (parse_digits(text, &value, &end))
        return RG_EINVAL;
    if (*end) {
        shift = unit_shift(*end);
        if (shift < 0 || end[1] || value > UINT64_MAX >> shift)
            return RG_EINVAL;
    }
    *value_out = value << shift;
    return RG_OK;
}

int rg_parse_u64(const char *text, uint64_t *value_out)
{
    uint64_t value;
    const char *end;

    if (parse_digits(text, &value, &end) || *end)
        return RG_EINVAL;
    *value_out = value;
    return RG_OK;
}

/* The variable's text, or null when it is unset or empty. */
static const char *text_of(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

static int reject(const char *name, const char *text, const char *wanted)
{
    rg_log(RG_LOG_ERROR, -1, "%s=%s is not %s", name, text, wanted);
    return RG_ECONFIG;
}

int rg_env_size(const char *name, uint64_t *value)
{
    const char *text = text_of(name);

    if (text && rg_parse_size(text, value))
        return reject(name, text, "a size such as 4096, 64K or 1G");
    return RG_OK;
}

int rg_env_u64(const char *name, uint64_t *value)
{
    const char *text = text_of(name);

    if (text && rg_parse_u64(text, value))
        return reject(name, text, "an unsigned decimal number");
    return RG_OK;
}

int rg_env_bool(const char *name, int *value)
{
    static const char *const words[] = {"0",   "1",  "no",    "yes",
                                        "off", "on", "false", "true"};
    const char *text = text_of(name);

    if (!text)
        return RG_OK;
    for (int i = 0; i < 8; i++)
        if (!strcasecmp(text, words[i])) {
            *value = i % 2;
            return RG_OK;
        }
    return reject(name, text, "yes or no");
}
