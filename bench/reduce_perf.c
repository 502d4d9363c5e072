/* Measures and checks reduce. */
#include "bench/perf.h"

int main(int argc, char **argv)
{
    return perf_main("reduce_perf", RG_COLL_reduce, argc, argv);
}
