#include "runtime/core/settings.h"

#include <string.h>

#include "runtime/core/env.h"
#include "runtime/core/log.h"
#include "runtime/status.h"

/* Keeps sums of timeouts in nanoseconds, and waits in int, in range. */
enum { DAY_MS = 24 * 3600 * 1000 };

static int load_one(const char *name, const char *unit, uint64_t *value)
{
    int rc = strcmp(unit, "bytes") ? rg_env_u64(name, value)
                                   : rg_env_size(name, value);

    if (!rc && !strcmp(unit, "ms") && *value > DAY_MS) {
        rg_log(RG_LOG_ERROR, -1, "%s=%llu exceeds a day of %d ms", name,
               (unsigned long long)*value, DAY_MS);
        return RG_ECONFIG;
    }
    return rc;
}

static int check(const struct rg_settings *settings)
{
    const char *wrong = NULL;

    if (settings->workspaces < 2 || settings->workspaces > 8)
        wrong = "RG_WORKSPACES must be 2 to 8";
    else if (settings->mode > 2)
        wrong = "RG_MODE must be 0 to 2";
    else if (!settings->deadline_ms || !settings->window_ms ||
             !settings->heartbeat_ms || !settings->bootstrap_ms ||
             !settings->park_ms || !settings->isolate_ms)
        wrong = "a timeout of 0 ms cannot be met";
    else if (settings->heartbeat_miss_ms <= settings->heartbeat_ms)
        wrong = "RG_HEARTBEAT_MISS_MS must exceed RG_HEARTBEAT_MS";
    if (!wrong)
        return RG_OK;
    rg_log(RG_LOG_ERROR, -1, "%s", wrong);
    return RG_ECONFIG;
}

int rg_settings_load(struct rg_settings *settings_out)
{
    struct rg_settings settings = {
#define RG_X(field, variable, value, unit, meaning) .field = value,
        RG_SETTINGS_LIST(RG_X)
#undef RG_X
    };
    int rc = RG_OK;

#define RG_X(field, variable, value, unit, meaning)                            \
    if (!rc)                                                                   \
        rc = load_one(variable, unit, &settings.field);
    RG_SETTINGS_LIST(RG_X)
#undef RG_X
    if (!rc)
        rc = check(&settings);
    if (!rc)
        *settings_out = settings;
    return rc;
}
