/* Measures and checks all-to-all with counts that differ by pair. */
#include "bench/perf.h"

int main(int argc, char **argv)
{
    return perf_main("all_to_all_v_perf", RG_COLL_all_to_all_v, argc, argv);
}
