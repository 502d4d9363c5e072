/* Measures and checks gather. */
#include "bench/perf.h"

int main(int argc, char **argv)
{
    return perf_main("gather_perf", RG_COLL_gather, argc, argv);
}
