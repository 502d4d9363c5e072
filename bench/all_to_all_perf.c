/* Measures and checks all-to-all. */
#include "bench/perf.h"

int main(int argc, char **argv)
{
    return perf_main("all_to_all_perf", RG_COLL_all_to_all, argc, argv);
}
