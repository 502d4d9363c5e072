#include "harness/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/verdict.h"
#include "runtime/core/escape.h"

enum { LINE_BYTES = 1024, PATH_BYTES = 4096 };

void rg_say(const char *program, const char *format, ...)
{
    char text[LINE_BYTES], line[LINE_BYTES];
    size_t used;
    va_list list;
    int head;

    va_start(list, format);
    head = snprintf(text, sizeof text, "%s: ", program);
    vsnprintf(text + head, sizeof text - (size_t)head, format, list);
    va_end(list);
    used = rg_escape(text, line, sizeof line - 1);
    line[used++] = '\n';
    fwrite(line, 1, used, stderr);
}

/* The folder that a file is in, terminated. */
static const char *folder_of(const char *path, char *folder, size_t room)
{
    char *slash;

    snprintf(folder, room, "%s", path);
    slash = strrchr(folder, '/');
    if (!slash)
        return ".";
    slash[slash == folder] = '\0';
    return folder;
}

static const char *folder_fault(const char *path)
{
    char folder[PATH_BYTES];

    return access(folder_of(path, folder, sizeof folder), W_OK | X_OK) == 0
               ? NULL
               : strerror(errno);
}

const char *rg_output_fault(const char *path, enum rg_output_kind kind)
{
    struct stat place;

    if (strlen(path) >= PATH_BYTES)
        return strerror(ENAMETOOLONG);
    if (stat(path, &place) != 0)
        return errno == ENOENT && *path ? folder_fault(path) : strerror(errno);
    if (S_ISDIR(place.st_mode))
        return strerror(EISDIR);
    if (kind != RG_OUTPUT_STREAM && !S_ISREG(place.st_mode))
        return "not a regular file";
    if (kind == RG_OUTPUT_NEW)
        return folder_fault(path);
    return access(path, W_OK) == 0 ? NULL : strerror(errno);
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int is_same_file(const char *a, const char *b)
{
    struct stat place, other;

    return stat(a, &place) == 0 && stat(b, &other) == 0 &&
           place.st_dev == other.st_dev && place.st_ino == other.st_ino;
}

int rg_output_is_same(const char *a, const char *b)
{
    char of_a[PATH_BYTES], of_b[PATH_BYTES];

    if (!a || !b)
        return 0;
    if (strcmp(a, b) == 0 || is_same_file(a, b))
        return 1;
    return strcmp(base_of(a), base_of(b)) == 0 &&
           is_same_file(folder_of(a, of_a, sizeof of_a),
                        folder_of(b, of_b, sizeof of_b));
}

int rg_output_close(int code)
{
    const int failed = ferror(stdout);

    errno = 0;
    if (fflush(stdout) == 0 && !failed)
        return code;
    rg_say(program_invocation_short_name,
           "standard output cannot be written: %s",
           errno ? strerror(errno) : "some of it is lost");
    return rg_exit_worse(code, RG_EXIT_ENVIRONMENT);
}
