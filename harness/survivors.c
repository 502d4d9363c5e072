#include "harness/survivors.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LOOKS = 500, LOOK_US = 10000 };

static int has_shrunk(struct rg_comm *comm, int size,
                      struct rg_view_info *view_out)
{
    return rg_comm_view(comm, view_out) == RG_OK && view_out->nranks < size;
}

/* The slots are those of all ranks: who is in none is lost. The view does not
 * say how: a process that is stopped is left behind as one that died. */
static void name_lost(struct rg_comm *comm, const struct rg_view_info *view,
                      int size, char *text, size_t bytes)
{
    int *members = calloc((size_t)view->capacity, sizeof *members);
    size_t used = 0;

    snprintf(text, bytes, "a rank has died or does not answer");
    if (members && rg_comm_members(comm, members) == RG_OK)
        for (int rank = 0; rank < size && used + 48 < bytes; rank++) {
            int is_there = 0;

            for (int slot = 0; slot < view->capacity; slot++)
                is_there |= members[slot] == rank;
            if (!is_there)
                used += (size_t)snprintf(text + used, bytes - used,
                                         "%srank %d has died or does not "
                                         "answer",
                                         used ? ", " : "", rank);
        }
    free(members);
}

int rg_survivors(struct rg_comm *comm, int size, int wait,
                 struct rg_report *report, char *text, size_t bytes)
{
    const int looks = wait ? LOOKS : 0;
    struct rg_view_info view;

    for (int i = 0; i < looks && !has_shrunk(comm, size, &view); i++)
        usleep(LOOK_US);
    if (!has_shrunk(comm, size, &view))
        return 0;
    name_lost(comm, &view, size, text, bytes);
    if (view.rank == 0)
        rg_report_speak(report);
    return 1;
}
