/* Measures and checks barriers. */
#include "bench/perf.h"

int main(int argc, char **argv)
{
    return perf_main("barrier_perf", RG_COLL_barrier, argc, argv);
}
