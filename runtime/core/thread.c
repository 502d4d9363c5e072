#include "runtime/core/thread.h"

#include <sys/prctl.h>

void rg_thread_set_name(const char *name)
{
    prctl(PR_SET_NAME, name);
}
