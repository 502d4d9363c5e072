/* Measures and checks all-gather. */
#include "bench/perf.h"

int main(int argc, char **argv)
{
    return perf_main("all_gather_perf", RG_COLL_all_gather, argc, argv);
}
