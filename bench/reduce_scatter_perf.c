/* Measures and checks reduce-scatter. */
#include "bench/perf.h"

int main(int argc, char **argv)
{
    return perf_main("reduce_scatter_perf", RG_COLL_reduce_scatter, argc, argv);
}
