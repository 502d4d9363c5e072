#include "runtime/core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/core/escape.h"

enum { LINE_BYTES = 1024 };

static enum rg_log_level threshold(void)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    const char *text = getenv("RG_LOG");

    for (int level = RG_LOG_ERROR; text && level <= RG_LOG_DEBUG; level++)
        if (!strcmp(text, names[level]))
            return (enum rg_log_level)level;
    return RG_LOG_WARN;
}

/* Clamps what snprintf says it would have written to what it wrote. */
static size_t written(int n, size_t room)
{
    if (n < 0 || room == 0)
        return 0;
    return (size_t)n < room ? (size_t)n : room - 1;
}

void rg_log(enum rg_log_level level, int rank, const char *format, ...)
{
    int saved = errno;
    char text[LINE_BYTES], line[LINE_BYTES];
    size_t room = sizeof(line) - 1; /* the newline always fits */
    size_t used;
    va_list args;

    if (level > threshold())
        return;
    if (rank < 0)
        used = written(snprintf(line, room, "regroup: "), room);
    else
        used = written(snprintf(line, room, "regroup[%d]: ", rank), room);
    va_start(args, format);
    errno = saved; /* for %m */
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    used += rg_escape(text, line + used, room - used);
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, used) < 0) {
        /* There is nowhere left to say so. */
    }
    errno = saved;
}
