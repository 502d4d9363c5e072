/*
 * Binding near a device, on a machine made up for hwloc: two packages of one
 * core, a device at each. The cores are the first two of this machine, so that
 * what is bound is seen.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/topo.h"

#define SETS(mask)                                                             \
    " cpuset=\"" mask "\" complete_cpuset=\"" mask "\" nodeset=\"" mask        \
    "\" complete_nodeset=\"" mask "\""
#define PACKAGE(index, mask, bus)                                              \
    "<object type=\"Package\" os_index=\"" index "\"" SETS(                    \
        mask) ">"                                                              \
              "<object type=\"NUMANode\" os_index=\"" index "\"" SETS(         \
                  mask) " local_memory=\"1\"/>"                                \
                        "<object type=\"Core\" os_index=\"" index "\"" SETS(   \
                            mask) ">"                                          \
                                  "<object type=\"PU\" os_index=\"" index      \
                                  "\"" SETS(                                   \
                                      mask) "/></object>"                      \
                                            "<object type=\"Bridge\" "         \
                                            "bridge_type=\"0-1\" depth=\"0\""  \
                                            " bridge_pci=\"0000:[" bus "-" bus \
                                            "]\">"                             \
                                            "<object type=\"PCIDev\" "         \
                                            "pci_busid=\"0000:" bus ":00.0\""  \
                                            " pci_type=\"0302 [10de:2330] "    \
                                            "[10de:16c1] a1\""                 \
                                            " pci_link_speed=\"0.000000\"/></" \
                                            "object></object>"

static const char machine[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
    "<topology version=\"2.0\"><object type=\"Machine\" os_index=\"0\""
    " allowed_cpuset=\"0x3\" allowed_nodeset=\"0x3\"" SETS("0x3") ">" PACKAGE(
        "0", "0x1", "01") PACKAGE("1", "0x2", "02") "</object></topology>\n";

static char path[] = "/tmp/test_topo-XXXXXX";

static cpu_set_t of_cores(unsigned int mask)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int core = 0; core < 2; core++)
        if (mask >> core & 1)
            CPU_SET(core, &set);
    return set;
}

static void expect_cores(pthread_t thread, unsigned int mask)
{
    const cpu_set_t wanted = of_cores(mask);
    cpu_set_t now;

    assert_int_equal(pthread_getaffinity_np(thread, sizeof now, &now), 0);
    assert_true(CPU_EQUAL(&now, &wanted));
}

/* A thread of the runtime, so to speak: it lives until it is joined. */
static void *wait_for_end(void *barrier)
{
    pthread_barrier_wait(barrier);
    return NULL;
}

/* Binds from `mask`; then this thread may run on `own`, another on `other`. */
static void bind_near(enum rg_launch_kind kind, const char *bus,
                      unsigned int mask, unsigned int own, unsigned int other)
{
    const struct rg_job job = {.kind = kind, .local_size = 1};
    const cpu_set_t before = of_cores(mask);
    pthread_barrier_t barrier;
    struct rg_topo *topo;
    pthread_t thread;

    if (sched_setaffinity(0, sizeof before, &before) ||
        sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_end, &barrier), 0);
    assert_int_equal(rg_topo_create(1, &topo), RG_OK);
    rg_topo_bind_near(topo, &job, bus);
    expect_cores(pthread_self(), own);
    expect_cores(thread, other);
    rg_topo_destroy(topo);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
}

static void a_process_is_bound_near_its_device(void **state)
{
    (void)state;
    bind_near(RG_LAUNCH_MPI, "0000:01:00.0", 3, 1, 1);
    bind_near(RG_LAUNCH_MPI, "0000:02:00.0", 3, 2, 2);
}

static void ranks_that_are_threads_are_bound_alone(void **state)
{
    (void)state;
    bind_near(RG_LAUNCH_LOCAL, "0000:02:00.0", 3, 2, 3);
}

static void who_is_bound_already_stays(void **state)
{
    (void)state;
    bind_near(RG_LAUNCH_MPI, "0000:02:00.0", 1, 1, 1);
}

static void an_unknown_device_binds_nobody(void **state)
{
    (void)state;
    bind_near(RG_LAUNCH_MPI, "0000:07:00.0", 3, 3, 3);
    bind_near(RG_LAUNCH_MPI, "", 3, 3, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_bound_near_its_device),
        cmocka_unit_test(ranks_that_are_threads_are_bound_alone),
        cmocka_unit_test(who_is_bound_already_stays),
        cmocka_unit_test(an_unknown_device_binds_nobody),
    };
    const int fd = mkstemp(path);
    int failed;

    if (fd < 0 || write(fd, machine, sizeof machine - 1) < 0)
        return 99;
    close(fd);
    setenv("HWLOC_XMLFILE", path, 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
