/* Measures and checks scatter. */
#include "bench/perf.h"

int main(int argc, char **argv)
{
    return perf_main("scatter_perf", RG_COLL_scatter, argc, argv);
}
