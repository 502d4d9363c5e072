/* Measures and checks all-reduce. */
#include "bench/perf.h"

int main(int argc, char **argv)
{
    return perf_main("all_reduce_perf", RG_COLL_all_reduce, argc, argv);
}
