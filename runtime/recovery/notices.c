#include "runtime/recovery/notices.h"

void rg_notices_push(struct rg_notices *notices, const struct rg_notice *notice)
{
    notices->items[(notices->first + notices->count) % RG_NOTICES_MAX] =
        *notice;
    if (notices->count < RG_NOTICES_MAX)
        notices->count++;
    else
        notices->first = (notices->first + 1) % RG_NOTICES_MAX;
}

int rg_notices_pop(struct rg_notices *notices, struct rg_notice *notice_out)
{
    if (!notices->count)
        return 0;
    *notice_out = notices->items[notices->first];
    notices->first = (notices->first + 1) % RG_NOTICES_MAX;
    notices->count--;
    return 1;
}
