/* Measures and checks broadcast. */
#include "bench/perf.h"

int main(int argc, char **argv)
{
    return perf_main("broadcast_perf", RG_COLL_broadcast, argc, argv);
}
