#include "harness/verdict.h"

#include <stdlib.h>

void rg_verdict_pass(struct rg_verdict *verdict)
{
    verdict->passed++;
}

void rg_verdict_fail(struct rg_verdict *verdict, enum rg_exit code)
{
    verdict->failed++;
    verdict->code = rg_exit_worse(verdict->code, (int)code);
}

void rg_verdict_skip(struct rg_verdict *verdict)
{
    verdict->skipped++;
}

/* When one rank is late, the others are aborted: what came first counts more.
 */
static int badness(int code)
{
    static const int ascending[] = {
        RG_EXIT_PASS,        RG_EXIT_SKIP,     RG_EXIT_GATE,    RG_EXIT_USAGE,
        RG_EXIT_ENVIRONMENT, RG_EXIT_RECOVERY, RG_EXIT_TIMEOUT, RG_EXIT_WRONG};
    const int n = (int)(sizeof ascending / sizeof *ascending);

    for (int i = 0; i < n; i++)
        if (ascending[i] == code)
            return i;
    return n;
}

int rg_exit_worse(int a, int b)
{
    return badness(b) > badness(a) ? b : a;
}

int rg_exit_of_status(int status)
{
    switch (status) {
    case RG_OK:
        return RG_EXIT_PASS;
    case RG_EINVAL:
    case RG_ECONFIG:
    case RG_EPOLICY:
    case RG_EBACKEND:
        return RG_EXIT_USAGE;
    case RG_ETIMEDOUT:
    case RG_EISOLATED: /* the others have waited for this rank in vain */
        return RG_EXIT_TIMEOUT;
    case RG_EABORTED:
    case RG_EUNAVAILABLE:
    case RG_EFAILED:
    case RG_ECLOSED:
        return RG_EXIT_RECOVERY;
    default:
        return RG_EXIT_ENVIRONMENT;
    }
}

void rg_verdict_row(struct rg_verdict *verdict, int64_t wrong, double ratio,
                    double least)
{
    if (wrong > 0)
        rg_verdict_fail(verdict, RG_EXIT_WRONG);
    else if (least > 0 && ratio < least)
        rg_verdict_fail(verdict, RG_EXIT_GATE);
    else
        rg_verdict_pass(verdict);
}

int rg_status_is_told(int status)
{
    return status == RG_ECONFIG || status == RG_EPOLICY;
}

int rg_verdict_exit(const struct rg_verdict *verdict)
{
    if (verdict->code != RG_EXIT_PASS)
        return verdict->code;
    if (verdict->passed > 0)
        return RG_EXIT_PASS;
    return verdict->skipped > 0 ? RG_EXIT_SKIP : RG_EXIT_ENVIRONMENT;
}

static void take_worse(struct rg_verdict *verdict, const struct rg_verdict *of)
{
    if (of->passed > verdict->passed)
        verdict->passed = of->passed;
    if (of->failed > verdict->failed)
        verdict->failed = of->failed;
    if (of->skipped > verdict->skipped)
        verdict->skipped = of->skipped;
    verdict->code = rg_exit_worse(verdict->code, of->code);
}

int rg_verdict_reduce(struct rg_verdict *verdict, struct rg_comm *comm)
{
    struct rg_view_info view;
    struct rg_verdict *all;
    int status = rg_comm_view(comm, &view);

    if (status != RG_OK)
        return status;
    all = calloc((size_t)view.nranks, sizeof *all);
    if (!all)
        return RG_ENOMEM;
    status = rg_comm_gather(comm, verdict, sizeof *verdict, all);
    for (int i = 0; status == RG_OK && i < view.nranks; i++)
        take_worse(verdict, &all[i]);
    free(all);
    return status;
}
