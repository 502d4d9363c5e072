/* A session that cannot be made says why, in one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/session.h"

/* No memory for what the ranks exchange. */
static int no_room(void *arg, const void *in, void *out, size_t bytes)
{
    (void)arg;
    (void)in;
    (void)out;
    (void)bytes;
    return RG_ENOMEM;
}

/* What was written to standard error since begin() began. */
static FILE *begin(int *kept_out)
{
    FILE *said = tmpfile();

    assert_non_null(said);
    fflush(stderr);
    *kept_out = dup(STDERR_FILENO);
    dup2(fileno(said), STDERR_FILENO);
    return said;
}

static void end(FILE *said, int kept, char *text, size_t room)
{
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(said);
    text[fread(text, 1, room - 1, said)] = '\0';
    fclose(said);
}

static void tells_that_memory_is_short(void **state)
{
    const struct rg_job job = {.size = 1,
                               .local_size = 1,
                               .hosts = 1,
                               .host = "here",
                               .kind = RG_LAUNCH_LOCAL,
                               .bootstrap = {.allgather = no_room}};
    const struct rg_session_config config = {.program = "program", .job = &job};
    struct rg_session *session = NULL;
    char text[512];
    int kept, status;
    FILE *said = begin(&kept);

    (void)state;
    status = rg_session_create(&config, &session);
    end(said, kept, text, sizeof text);
    assert_int_equal(status, RG_ENOMEM);
    assert_null(session);
    assert_ptr_equal(strstr(text, "program: rank 0: "), text);
    assert_non_null(strstr(text, rg_status_string(RG_ENOMEM)));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_that_memory_is_short)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
